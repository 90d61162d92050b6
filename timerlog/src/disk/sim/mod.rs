//! A disk in memory that can lose, tear and fail, by a seed.
//!
//! It stands behind the same two traits as the real disk, so the storage code under test is the
//! code that ships. The same seed and the same calls leave the same bytes.
//!
//! # The fault model
//!
//! Each file has two images. **Live** is what every reader sees, through `read_at` or a mapping: the
//! page cache. **Durable** is what the platter holds. They differ in the 4 KiB pages that were
//! written since the last successful sync of that file. Each directory has two images of its names
//! in the same way, with the changes between them in a journal, in order.
//!
//! - **Power cut** ([`SimDisk::crash`]): for each unsynced page the seed picks whether it is new, old,
//!   or torn, each of its 512-byte sectors new or old on its own. A page that the kernel wrote early
//!   and one that it never wrote are both covered. Of each directory's journal a prefix survives.
//!   A file that was never synced may have lost its length too, and is then empty. Content and names
//!   are independent: a name may survive without its bytes and the other way round.
//! - **Process crash** ([`SimDisk::kill`]): the page cache stays. Everything written is visible,
//!   nothing more is durable than was before.
//! - After both, locks are free and every handle of the old life answers with an error.
//! - **Failed sync** ([`SimDisk::fail_next`] with `Operation::Sync`): as on Linux, the kernel marks the
//!   pages clean and forgets that they never arrived. Readers still see them, a later sync succeeds
//!   and does not save them, and a power cut brings the old content back. Only a page that is
//!   written again gets another chance. A directory whose sync failed makes no change durable again
//!   before the next crash.
//! - **Failed write**: some prefix of the bytes, picked by the seed, has been written.
//! - **Failed create, rename, remove, read, open, map**: nothing has happened.
//! - **Full disk** ([`SimDisk::set_capacity`]): `create` is refused once the lengths of all files
//!   would exceed the capacity, and so is a new directory when there is no block for it. Writes never
//!   are: their bytes were allocated.
//! - **Power cut at the n-th change** ([`SimDisk::cut_after`]): for tests that count the changes of a
//!   run and then cut at each one. A write that is cut is in the page cache, so that the crash picks
//!   among its pages; every other call that is cut has not happened.
//! - **Rot** ([`SimDisk::flip_bit`], [`SimDisk::edit`]): both images change behind everyone's back.

mod directory;
mod file;
mod folder;
mod gate;
mod pages;
mod random;
#[cfg(test)]
mod tests;

pub use directory::SimDirectory;
pub use gate::Counters;
pub use random::Random;

use std::fmt;
use std::io;
use std::sync::Arc;

use self::file::Inode;
use self::folder::{Change, Folder, Node};
use self::gate::Gate;
use super::{Directory, Operation};
use crate::sync::{Mutex, MutexGuard};

/// A simulated disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk {
    machine: Arc<Machine>,
}

/// The disk and the process on it. Locked in this order: gate, names, content.
pub(in crate::disk) struct Machine {
    hook: Mutex<Option<Hook>>,
    gate: Mutex<Gate>,
    root: Arc<Folder>,
}

/// Is told of every call before it is made, with the path it is about.
type Hook = Arc<dyn Fn(Operation, &str) + Send + Sync>;

impl fmt::Debug for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Machine").field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl Machine {
    /// The gate, for a call that the hook is told of first. A call that the hook holds up holds up no other.
    fn enter(&self, operation: Operation, path: &str) -> MutexGuard<'_, Gate> {
        let hook = self.hook.lock().clone();
        if let Some(hook) = hook {
            hook(operation, path);
        }
        self.gate.lock()
    }

    fn allocated(&self) -> u64 {
        self.root.length()
    }
}

impl SimDisk {
    /// An empty disk. The seed decides only how much of a failing write arrives; a crash brings its
    /// own.
    pub fn new(seed: u64) -> Self {
        let machine = Machine {
            hook: Mutex::new(None),
            gate: Mutex::new(Gate::new(seed)),
            root: Arc::default(),
        };
        Self { machine: Arc::new(machine) }
    }

    /// The top directory, for the process that lives now: after a crash or a kill, ask again.
    pub fn root(&self) -> Arc<dyn Directory> {
        Arc::new(SimDirectory {
            machine: Arc::clone(&self.machine),
            folder: Arc::clone(&self.machine.root),
            path: String::new(),
            life: self.machine.gate.lock().life,
        })
    }

    /// Cuts the power and switches it on again: the disk now holds what `random` lets survive.
    pub fn crash(&self, random: &mut Random) {
        let mut gate = self.machine.gate.lock();
        gate.restart();
        self.machine.root.crash(random);
    }

    /// Ends the process, as `kill -9` does.
    pub fn kill(&self) {
        self.machine.gate.lock().restart();
    }

    /// Orders an error of `kind` for the `nth` call of `operation` from now, 1 being the next.
    ///
    /// # Panics
    ///
    /// When `nth` is zero.
    pub fn fail_next(&self, operation: Operation, nth: u64, kind: io::ErrorKind) {
        self.machine.gate.lock().plan(operation, nth, kind);
    }

    /// Lets `changes - 1` more changes (create, rename, remove, write, sync, sync directory) happen
    /// and cuts the next one; from then on every call fails until [`SimDisk::crash`] or
    /// [`SimDisk::kill`].
    ///
    /// # Panics
    ///
    /// When `changes` is zero.
    pub fn cut_after(&self, changes: u64) {
        assert!(changes > 0, "the next change is the first one");
        self.machine.gate.lock().cut_after(changes);
    }

    /// Whether [`SimDisk::cut_after`] has struck, and nothing has brought the power back.
    pub fn is_cut(&self) -> bool {
        self.machine.gate.lock().is_cut()
    }

    /// Limits the sum of the lengths of all files, in bytes; `None` lifts the limit.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.machine.gate.lock().capacity = capacity;
    }

    /// The sum of the lengths of all files, in bytes.
    pub fn allocated(&self) -> u64 {
        self.machine.allocated()
    }

    pub fn counters(&self) -> Counters {
        self.machine.gate.lock().counters
    }

    /// Calls `hook` before every call, with its path. While it does not return, that call is not made; others are.
    pub fn on_operation(&self, hook: impl Fn(Operation, &str) + Send + Sync + 'static) {
        *self.machine.hook.lock() = Some(Arc::new(hook));
    }

    /// The paths of all files, sorted.
    pub fn files(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.machine.root.walk("", &mut |path, node| {
            if matches!(node, Node::File(_)) {
                paths.push(path.to_owned());
            }
        });
        paths.sort_unstable();
        paths
    }

    /// The whole live content of the file `path`.
    ///
    /// # Panics
    ///
    /// When there is no such file, as all the following do.
    pub fn content(&self, path: &str) -> Vec<u8> {
        self.inode(path).bytes()
    }

    /// Turns over bit `bit` (0 to 7) of the byte at `offset` of the file `path`.
    pub fn flip_bit(&self, path: &str, offset: u64, bit: u8) {
        let inode = self.inode(path);
        let mut content = inode.content.lock();
        assert!(offset < content.length && bit < 8, "{path} has no bit {bit} at {offset}");
        content.pages.flip_bit(offset, bit);
    }

    /// Changes the content of the file `path` in any way, its length included. Handles that are
    /// open keep the length they had.
    pub fn edit(&self, path: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let inode = self.inode(path);
        let mut bytes = inode.bytes();
        edit(&mut bytes);
        inode.replace(&bytes);
    }

    /// Removes the file or the directory `path`, with all that is in it, as `rm -r` and a `sync` do.
    pub fn remove_tree(&self, path: &str) {
        let (folder, name) = self.find(path);
        let mut names = folder.names.lock();
        assert!(names.live().contains_key(&name), "no such path: {path}");
        names.change_durably(&Change::Unlink { name });
    }

    /// A hash of all names and bytes, live and durable: equal disks have equal fingerprints.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::new();
        self.machine.root.describe(&mut |line| hash.add(line.as_bytes()));
        self.machine.root.walk("", &mut |path, node| {
            hash.add(path.as_bytes());
            match node {
                Node::Folder(folder) => folder.describe(&mut |line| hash.add(line.as_bytes())),
                Node::File(inode) => {
                    let content = inode.content.lock();
                    hash.add(&content.length.to_le_bytes());
                    content.pages.visit(|page, bytes| {
                        hash.add(&page.to_le_bytes());
                        hash.add(bytes);
                    });
                }
            }
        });
        hash.state
    }

    fn inode(&self, path: &str) -> Arc<Inode> {
        let (folder, name) = self.find(path);
        let node = folder.names.lock().live().get(&name).cloned();
        let Some(Node::File(inode)) = node else { panic_no_file(path) };
        inode
    }

    fn find(&self, path: &str) -> (Arc<Folder>, String) {
        let mut folder = Arc::clone(&self.machine.root);
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return (folder, part.to_owned());
            }
            let node = folder.names.lock().live().get(part).cloned();
            let Some(Node::Folder(below)) = node else { panic_no_file(path) };
            folder = below;
        }
        panic_no_file(path)
    }
}

#[expect(clippy::panic, reason = "a test that names a file that is not there is wrong itself")]
fn panic_no_file(path: &str) -> ! {
    panic!("no such path on the simulated disk: {path}")
}

/// FNV-1a over words instead of bytes: a hash that is the same on every machine and build.
struct Fnv {
    state: u64,
}

impl Fnv {
    const fn new() -> Self {
        Self { state: 0xCBF2_9CE4_8422_2325 }
    }

    fn add(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            self.state ^= u64::from_le_bytes(padded);
            self.state = self.state.wrapping_mul(0x0000_0100_0000_01B3).rotate_left(23);
        }
        self.state = self.state.wrapping_mul(0x0000_0100_0000_01B3) ^ bytes.len() as u64;
    }
}
