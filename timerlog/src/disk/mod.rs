//! The only door to the operating system's files.
//!
//! Everything that Horolog keeps goes through the two traits of this room, so that the same storage
//! code runs on a real disk (`os`) and on a simulated one (`sim`) that can lose what was not synced,
//! tear pages and fail on purpose. One suite (`conformance`) is run against both.
//!
//! ```text
//!   Directory ── create / open ──> File ── map ──> Mapping (read-only)
//!       │                            │
//!       └ sync: names are durable    └ sync: bytes are durable
//! ```
//!
//! Ground rules:
//!
//! - A file never changes its length: it is created with the length it will have, every byte
//!   allocated and zero, so that a full disk is an error here and never a fault on a mapped page.
//! - Bytes are durable after [`File::sync`]; names (create, rename, remove) after
//!   [`Directory::sync`]. Nothing else is promised: before that, any subset of the written pages may
//!   survive a power cut, each whole, old, or torn at 512 bytes.
//! - A failed `sync` is never retried by anyone: what the kernel dropped is gone, and a second call
//!   would answer as if it were not. Whoever sees it latches and refuses.
//! - Threads: `read_at`, `write_at` and `sync` may run at the same time on one file; writers of the
//!   same range must exclude each other (one writer per file is the rule of the house).

mod checks;
mod error;
mod mapped;
mod os;
pub mod sim;

#[cfg(test)]
mod conformance;

pub use error::{DiskError, Operation};
pub use os::OsDirectory;

use std::fmt::Debug;
use std::sync::Arc;

/// A folder of files, flat but for [`Directory::subdirectory`].
///
/// Names are single path components; a name with a separator is an error of the caller and panics.
pub trait Directory: Debug + Send + Sync {
    /// Makes the file `name`, `length` bytes long, all of them allocated on the disk and zero.
    ///
    /// Durable after [`File::sync`] and [`Directory::sync`].
    ///
    /// # Errors
    ///
    /// [`DiskError::is_already_exists`] when the name is taken, [`DiskError::is_full`] when the disk
    /// has no room for `length` bytes; in both cases nothing is left behind.
    fn create(&self, name: &str, length: u64) -> Result<Arc<dyn File>, DiskError>;

    /// Opens the file `name` for reading and writing.
    ///
    /// # Errors
    ///
    /// [`DiskError::is_not_found`] when there is none.
    fn open(&self, name: &str) -> Result<Arc<dyn File>, DiskError>;

    /// The names of the files in here, sorted.
    fn list(&self) -> Result<Vec<String>, DiskError>;

    /// The names of the subdirectories in here, sorted.
    fn subdirectories(&self) -> Result<Vec<String>, DiskError>;

    /// The directory `name` below this one, made when it is missing. Its name is durable after
    /// [`Directory::sync`] on this directory.
    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>, DiskError>;

    /// Gives the file `from` the name `to`, replacing a file that has it.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes the name `name`. Open handles and mappings of the file go on working.
    fn remove(&self, name: &str) -> Result<(), DiskError>;

    /// Makes every create, rename and remove in this directory durable.
    fn sync(&self) -> Result<(), DiskError>;

    /// Takes the lock file `name` for this process, writing `holder` (one short line: who holds it)
    /// into it. The lock is held until the returned value is dropped or the process ends, however
    /// it ends.
    ///
    /// # Errors
    ///
    /// [`DiskError::is_locked`] when another handle or process has it; the error's text then
    /// carries the line that its holder wrote.
    fn lock(&self, name: &str, holder: &str) -> Result<Box<dyn Lock>, DiskError>;

    /// How large the disk is that this directory is on, and how much of it is free.
    ///
    /// # Errors
    ///
    /// When the directory is gone, or the disk fails.
    fn space(&self) -> Result<Space, DiskError>;

    /// How to name this directory to a person: a path, or what stands for one.
    fn path(&self) -> String;
}

/// The room of a disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    /// What this process may still take.
    pub free: u64,
}

/// One file of fixed length.
pub trait File: Debug + Send + Sync {
    /// The length it was created with, in bytes.
    fn length(&self) -> u64;

    /// Fills `buffer` from `offset` by a read system call: a bad sector is an error, not a signal.
    ///
    /// # Errors
    ///
    /// When the range reaches past the end, or the disk fails.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError>;

    /// The first offset from `offset` on where there may be anything but zeros; `None` when all that
    /// follows is zeros. A hint that saves reading what was allocated and never written: `offset`
    /// itself is always a right answer.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    fn next_data(&self, offset: u64) -> Result<Option<u64>, DiskError>;

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    ///
    /// When the range reaches past the end (files do not grow), or the disk fails; then any part of
    /// `bytes` may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Returns once every byte written before the call is on the disk (`fdatasync`).
    fn sync(&self) -> Result<(), DiskError>;

    /// Maps the whole file read-only.
    fn map(&self) -> Result<Arc<dyn Mapping>, DiskError>;

    /// How to name this file to a person.
    fn path(&self) -> String;
}

/// A read-only view of a file that copies out without a system call.
///
/// It sees what [`File::write_at`] wrote before. Only bytes that their writer has finished with may
/// be read through it (the caller's `committed` watermark): it is for hot, small reads.
pub trait Mapping: Debug + Send + Sync {
    /// Copies `buffer.len()` bytes from `offset`. `false` when the range reaches past the end.
    #[must_use]
    fn read(&self, offset: u64, buffer: &mut [u8]) -> bool;
}

/// A held lock file; dropping it lets go.
pub trait Lock: Debug + Send + Sync {
    /// Whether the file that is locked still has its name. When it has not, its directory was removed,
    /// renamed or replaced, and another process may hold a lock of the same name.
    ///
    /// # Errors
    ///
    /// When it has not, or that cannot be found out.
    fn check(&self) -> Result<(), DiskError>;
}
