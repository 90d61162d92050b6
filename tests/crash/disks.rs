//! Disks of their own: a file system that a test can fill up or cut the power of.
//!
//! They take root and some tools. Where those are missing the test says why and checks nothing.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A mounted file system; unmounted when this is dropped, unless the test has failed.
#[derive(Debug)]
pub(crate) struct Disk {
    /// Removed with the disk; there until then.
    above: Option<TempDir>,
    mounted_at: PathBuf,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Memory { size: String },
    Image(PathBuf),
}

/// A file system in an image file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileSystem {
    Ext4,
    Xfs,
}

impl Disk {
    /// A tmpfs of `size`.
    pub(crate) fn in_memory(size: &str) -> Result<Self, String> {
        Self::mounted(|_| Ok(Source::Memory { size: size.to_owned() }))
    }

    /// A file system of `mebibytes` in a file that is mounted by a loop device.
    pub(crate) fn in_a_file(kind: FileSystem, mebibytes: u64) -> Result<Self, String> {
        Self::mounted(|above| {
            let image = above.join("image");
            let size = format!("{mebibytes}M");
            run(Command::new("truncate").args(["-s", &size]).arg(&image))?;
            let make = match kind {
                FileSystem::Ext4 => {
                    Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).output()
                }
                FileSystem::Xfs => Command::new("mkfs.xfs").args(["-q", "-f"]).arg(&image).output(),
            };
            succeeded("mkfs", make)?;
            Ok(Source::Image(image))
        })
    }

    fn mounted(make: impl FnOnce(&Path) -> Result<Source, String>) -> Result<Self, String> {
        let above = tempfile::Builder::new().prefix("horolog-disk-").tempdir();
        let above = above.expect("a test needs a directory");
        let source = make(above.path())?;
        let mounted_at = above.path().join("mounted");
        std::fs::create_dir(&mounted_at).expect("the directory is new");
        mount(&source, &mounted_at)?;
        Ok(Self { above: Some(above), mounted_at, source })
    }

    pub(crate) fn mount(&self) -> Result<(), String> {
        mount(&self.source, &self.mounted_at)
    }

    /// Changes how it is mounted: `ro`, `rw`, or the size of one in memory.
    pub(crate) fn remount(&self, option: &str) -> Result<(), String> {
        let option = format!("remount,{option}");
        run(Command::new("mount").args(["-o", &option]).arg(&self.mounted_at))
    }

    pub(crate) fn unmount(&self) -> Result<(), String> {
        run(Command::new("umount").arg(&self.mounted_at))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.mounted_at
    }

    /// Writes a file until not a byte fits any more, and answers how long it is.
    pub(crate) fn fill(&self, name: &str) -> u64 {
        use std::io::ErrorKind;
        let path = self.mounted_at.join(name);
        let mut file = std::fs::File::create(path).expect("a name needs no room here");
        let block = [0x5A; 4096];
        let mut length = 0;
        loop {
            match file.write(&block) {
                Ok(written) => length += written as u64,
                Err(error) if error.kind() == ErrorKind::StorageFull => return length,
                Err(error) => panic!("the disk cannot be filled up: {error}"),
            }
        }
    }

    /// Takes all the free room of a disk in memory at one stroke. A file that fills it takes a while, and on a busy
    /// machine it takes the room, too, that the server gives up meanwhile.
    pub(crate) fn shrink(&self) {
        for _ in 0..1000 {
            // Between the look and the remount a file may grow: then there is more in it than it is to hold.
            let used = used(&self.mounted_at).expect("a mounted disk tells what is used");
            if self.remount(&format!("size={used}")).is_ok() {
                return;
            }
        }
        panic!("the disk grew whenever it was to be made as small as what is in it");
    }

    pub(crate) fn empty(&self, name: &str) {
        std::fs::remove_file(self.mounted_at.join(name)).expect("the test has written it");
    }
}

/// The bytes that are taken on the disk.
fn used(mounted_at: &Path) -> Result<u64, String> {
    let mut df = Command::new("df");
    let output = df.args(["--block-size=1", "--output=used"]).arg(mounted_at).output();
    let output = output.map_err(|error| format!("df: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let figure = said.lines().nth(1).and_then(|line| line.trim().parse().ok());
    figure.ok_or_else(|| format!("df said {said:?}"))
}

fn mount(source: &Source, at: &Path) -> Result<(), String> {
    let mut mount = Command::new("mount");
    match source {
        Source::Memory { size } => {
            mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
        }
        Source::Image(image) => mount.args(["-o", "loop"]).arg(image),
    };
    run(mount.arg(at))
}

impl Drop for Disk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What is below would go with it.
            self.above.take().map(TempDir::keep);
            println!("kept mounted: {}", self.mounted_at.display());
        } else if let Err(why) = self.unmount() {
            println!("{} is still mounted: {why}", self.mounted_at.display());
        }
    }
}

/// What a test that cannot be run says. It has checked nothing, and does not look as if it had: what is printed by
/// tests that do not fail is kept from whoever runs them, so this goes past that.
pub(crate) fn skipped(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    writeln!(std::io::stderr(), "SKIPPED {test}, nothing was checked: {why}")
        .expect("whoever runs tests reads what they say");
}

/// Runs the command; what it said when it failed.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let name = format!("{command:?}");
    succeeded(&name, command.output())
}

fn succeeded(name: &str, output: std::io::Result<std::process::Output>) -> Result<(), String> {
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
