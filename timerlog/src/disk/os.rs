//! The disk that is there: folders and files of the operating system.
//!
//! Folders are made 0700 and files 0600: what people schedule is nobody else's business. A file is
//! allocated when it is made (`fallocate`, or zeros written where the file system has no such call),
//! so a full disk shows here, as an error.

#![expect(clippy::disallowed_methods, reason = "this is the door that the ban points to")]

use std::fs::{DirBuilder, File as OsFile, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;

use super::checks::{assert_plain, end_within};
use super::mapped::Mapped;
use super::{Directory, DiskError, File, Lock, Mapping, Operation, Space};

/// A folder of the operating system.
#[derive(Debug)]
pub struct OsDirectory {
    path: PathBuf,
}

impl OsDirectory {
    /// Opens the folder `path`, making it (mode 0700, its name durable) when it is missing. The
    /// folder above must be there: a mistyped path should be an error, not a new tree.
    ///
    /// # Errors
    ///
    /// When `path` is not a folder and cannot become one.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, DiskError> {
        let path = path.into();
        if make_directory(&path)? {
            let above = match path.parent() {
                Some(above) if !above.as_os_str().is_empty() => above,
                _ => Path::new("."),
            };
            sync_directory(above)?;
        }
        Ok(Self { path })
    }

    fn at(&self, name: &str) -> PathBuf {
        assert_plain(name);
        self.path.join(name)
    }

    /// The sorted names of the entries whose type `wanted` accepts.
    fn names(&self, wanted: fn(&std::fs::FileType) -> bool) -> Result<Vec<String>, DiskError> {
        let fault = |cause| error(Operation::List, &self.path, cause);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            if wanted(&entry.file_type().map_err(fault)?) {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

impl Directory for OsDirectory {
    fn create(&self, name: &str, length: u64) -> Result<Arc<dyn File>, DiskError> {
        let path = self.at(name);
        let fault = |cause| error(Operation::Create, &path, cause);
        let file = options().create_new(true).open(&path).map_err(fault)?;
        if let Err(cause) = allocate(&file, length) {
            // The half-made file goes; the reason it could not be made is what matters to the
            // caller, so a failure to remove it is not reported over it.
            let _ = std::fs::remove_file(&path);
            return Err(fault(cause));
        }
        Ok(Arc::new(OsHandle { file, length, path }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn File>, DiskError> {
        let path = self.at(name);
        let fault = |cause| error(Operation::Open, &path, cause);
        let file = options().open(&path).map_err(fault)?;
        let length = file.metadata().map_err(fault)?.len();
        Ok(Arc::new(OsHandle { file, length, path }))
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.names(std::fs::FileType::is_file)
    }

    fn subdirectories(&self) -> Result<Vec<String>, DiskError> {
        self.names(std::fs::FileType::is_dir)
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>, DiskError> {
        let path = self.at(name);
        make_directory(&path)?;
        Ok(Arc::new(Self { path }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let path = self.at(from);
        std::fs::rename(&path, self.at(to)).map_err(|cause| error(Operation::Rename, &path, cause))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        let path = self.at(name);
        std::fs::remove_file(&path).map_err(|cause| error(Operation::Remove, &path, cause))
    }

    fn sync(&self) -> Result<(), DiskError> {
        sync_directory(&self.path)
    }

    fn lock(&self, name: &str, holder: &str) -> Result<Box<dyn Lock>, DiskError> {
        let path = self.at(name);
        let fault = |cause| error(Operation::Lock, &path, cause);
        let mut file = options().create(true).truncate(false).open(&path).map_err(fault)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(fault(held_by(&file))),
            Err(std::fs::TryLockError::Error(cause)) => return Err(fault(cause)),
        }
        // The one file of the house that changes its length: nobody maps it, and only the holder
        // of the lock writes it.
        file.set_len(0).map_err(fault)?;
        file.write_all(holder.as_bytes()).map_err(fault)?;
        Ok(Box::new(OsLock { file, path }))
    }

    fn space(&self) -> Result<Space, DiskError> {
        let found = rustix::fs::statvfs(&self.path)
            .map_err(|errno| error(Operation::Measure, &self.path, errno.into()))?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        // What is kept back for the super-user does not count, as it does not for `df`.
        Ok(Space { total: bytes(found.f_blocks), free: bytes(found.f_bavail) })
    }

    fn path(&self) -> String {
        self.path.display().to_string()
    }
}

/// An open file; closed when the last handle and mapping are gone.
#[derive(Debug)]
struct OsHandle {
    file: OsFile,
    length: u64,
    path: PathBuf,
}

impl OsHandle {
    fn check_range(
        &self,
        operation: Operation,
        offset: u64,
        length: usize,
    ) -> Result<(), DiskError> {
        if end_within(offset, length, self.length).is_some() {
            return Ok(());
        }
        let text = format!("{length} bytes reach past the end at {}", self.length);
        let cause = io::Error::new(io::ErrorKind::InvalidInput, text);
        Err(error(operation, &self.path, cause).at(offset))
    }
}

impl File for OsHandle {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        self.check_range(Operation::Read, offset, buffer.len())?;
        self.file
            .read_exact_at(buffer, offset)
            .map_err(|cause| error(Operation::Read, &self.path, cause).at(offset))
    }

    fn next_data(&self, offset: u64) -> Result<Option<u64>, DiskError> {
        // Extents that were allocated and never written count as holes.
        match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(found) => Ok((found < self.length).then_some(found)),
            Err(Errno::NXIO) => Ok(None),
            // A file system that cannot tell has data everywhere.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok((offset < self.length).then_some(offset)),
            Err(errno) => Err(error(Operation::Read, &self.path, errno.into()).at(offset)),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.check_range(Operation::Write, offset, bytes.len())?;
        self.file
            .write_all_at(bytes, offset)
            .map_err(|cause| error(Operation::Write, &self.path, cause).at(offset))
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync_data().map_err(|cause| error(Operation::Sync, &self.path, cause))
    }

    fn map(&self) -> Result<Arc<dyn Mapping>, DiskError> {
        match Mapped::new(&self.file, self.length) {
            Ok(mapped) => Ok(Arc::new(mapped)),
            Err(cause) => Err(error(Operation::Map, &self.path, cause)),
        }
    }

    fn path(&self) -> String {
        self.path.display().to_string()
    }
}

/// The lock lives on the open descriptor, so it ends with the process, however that ends.
#[derive(Debug)]
struct OsLock {
    file: OsFile,
    path: PathBuf,
}

impl Lock for OsLock {
    fn check(&self) -> Result<(), DiskError> {
        let fault = |cause| error(Operation::Lock, &self.path, cause);
        let held = self.file.metadata().map_err(fault)?;
        let there = std::fs::metadata(&self.path).map_err(fault)?;
        if (held.dev(), held.ino()) == (there.dev(), there.ino()) {
            return Ok(());
        }
        Err(fault(io::Error::other("another file has taken the place of the one that is locked")))
    }
}

fn error(operation: Operation, path: &Path, cause: io::Error) -> DiskError {
    DiskError::new(operation, path.display().to_string(), cause)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// Makes the folder `path` unless it is there; whether it was made.
fn make_directory(path: &Path) -> Result<bool, DiskError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(true),
        Err(_) if path.is_dir() => Ok(false),
        Err(cause) => Err(error(Operation::Create, path, cause)),
    }
}

fn sync_directory(path: &Path) -> Result<(), DiskError> {
    OsFile::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(|cause| error(Operation::SyncDirectory, path, cause))
}

/// Gives the empty `file` its length, every byte allocated and zero.
fn allocate(file: &OsFile, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return write_zeros(file, length),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// What `posix_fallocate` does where the file system cannot allocate.
fn write_zeros(file: &OsFile, length: u64) -> io::Result<()> {
    const CHUNK: usize = 256 * 1024;
    let zeros = vec![0; CHUNK];
    let mut offset = 0;
    while offset < length {
        let rest = usize::try_from(length - offset).unwrap_or(CHUNK).min(CHUNK);
        file.write_all_at(&zeros[..rest], offset)?;
        offset += rest as u64;
    }
    Ok(())
}

/// The refusal, carrying the line that the holder of the lock wrote into the file.
fn held_by(file: &OsFile) -> io::Error {
    const LINE_LENGTH_MAX: u64 = 512;
    let mut holder = Vec::new();
    // A line that cannot be read leaves the name of the holder out, not the refusal.
    let _ = Read::take(file, LINE_LENGTH_MAX).read_to_end(&mut holder);
    let holder = String::from_utf8_lossy(&holder);
    io::Error::new(io::ErrorKind::WouldBlock, format!("held by {}", holder.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn folders_and_files_are_private() {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let path = temporary.path().join("data");
        let directory = OsDirectory::open(&path).expect("open");
        directory.create("file", 10).expect("create");
        directory.subdirectory("below").expect("subdirectory");
        let mode = |path: PathBuf| path.metadata().expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode(path.clone()), 0o700);
        assert_eq!(mode(path.join("file")), 0o600);
        assert_eq!(mode(path.join("below")), 0o700);
    }

    #[test]
    fn a_folder_is_not_made_under_a_missing_one() {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let path = temporary.path().join("missing/data");
        let refused = OsDirectory::open(&path).expect_err("there is no folder above");
        assert!(refused.is_not_found());
        assert!(refused.to_string().contains("missing/data"), "{refused}");
    }

    #[test]
    fn zeros_stand_in_for_allocation() {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let path = temporary.path().join("file");
        let file = options().create_new(true).open(&path).expect("create");
        write_zeros(&file, 600_001).expect("write");
        assert_eq!(file.metadata().expect("metadata").len(), 600_001);
    }
}
