//! What went wrong at the disk, where, and doing what.

use std::fmt;
use std::io;
use std::sync::Arc;

/// The call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    Create,
    Open,
    List,
    Rename,
    Remove,
    Read,
    Write,
    Sync,
    SyncDirectory,
    Map,
    Lock,
    Measure,
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Create => "create",
            Self::Open => "open",
            Self::List => "list",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::SyncDirectory => "sync directory",
            Self::Map => "map",
            Self::Lock => "lock",
            Self::Measure => "measure the free space of",
        })
    }
}

/// A failed call to the operating system, with the file and, where there is one, the offset.
///
/// Cheap to clone: a poisoned store hands the same error to everyone who waits.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot {operation} {path}{}: {cause}", .offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default())]
pub struct DiskError {
    pub operation: Operation,
    pub path: String,
    pub offset: Option<u64>,
    #[source]
    pub cause: Arc<io::Error>,
}

impl DiskError {
    pub fn new(operation: Operation, path: impl Into<String>, cause: io::Error) -> Self {
        Self { operation, path: path.into(), offset: None, cause: Arc::new(cause) }
    }

    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    pub fn is_not_found(&self) -> bool {
        self.cause.kind() == io::ErrorKind::NotFound
    }

    pub fn is_already_exists(&self) -> bool {
        self.cause.kind() == io::ErrorKind::AlreadyExists
    }

    /// The disk, or the quota on it, is full.
    pub fn is_full(&self) -> bool {
        matches!(self.cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// The disk had no room for a new file or a new name, and so nothing has happened: the same may be
    /// tried again when there is room. A write or a sync that finds no room is not meant, since nobody
    /// knows what it left.
    pub fn wants_room(&self) -> bool {
        self.is_full() && matches!(self.operation, Operation::Create | Operation::Rename)
    }

    /// Another process, or another handle of this one, holds the lock.
    pub fn is_locked(&self) -> bool {
        self.operation == Operation::Lock && self.cause.kind() == io::ErrorKind::WouldBlock
    }
}
