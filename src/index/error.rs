//! Why the index cannot be opened, read or written.

use timerlog::disk::{DiskError, Operation};

/// What is wrong with a file or a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("it is missing")]
    Missing,
    #[error("it cannot be read: {cause}")]
    Unreadable { cause: String },
    #[error("it has {got} bytes where {expected} belong")]
    Length { got: u64, expected: u64 },
    #[error("it does not begin as what it should be")]
    Magic,
    #[error("bytes that must be zero are not")]
    NotZero,
    #[error("it has format version {found}, and this program knows {known}")]
    Version { found: u32, known: u32 },
    #[error("the crc of its {part} is {got:08x}, computed {expected:08x}")]
    Crc { part: &'static str, got: u32, expected: u32 },
    #[error(
        "it is not the file that the checkpoint lists, but another or an older one of its name"
    )]
    Other,
    #[error("page {page} has crc {got:08x}, computed {expected:08x}")]
    Page { page: u64, got: u32, expected: u32 },
    #[error("its {part} are out of order, or there twice")]
    Order { part: &'static str },
    #[error("its header says what cannot be")]
    Header,
    #[error("page {page} belongs elsewhere")]
    Misplaced { page: u64 },
}

/// Why a call of the index failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IndexError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Derived data is damaged, missing or an older copy: it must be built again from the log.
    #[error("{file} of the index is damaged: {damage}")]
    Damaged { file: String, damage: Damage },
}

impl IndexError {
    pub(super) fn damaged(file: impl Into<String>, damage: Damage) -> Self {
        Self::Damaged { file: file.into(), damage }
    }

    /// At a start a bad sector is damage as any other: the file is of no use, and can be built again.
    pub(super) fn or_unreadable(self) -> Self {
        match self {
            Self::Disk(error) if error.operation == Operation::Read => {
                let cause = error.cause.to_string();
                Self::damaged(error.path, Damage::Unreadable { cause })
            }
            other => other,
        }
    }

    /// Whether the server must end: after a write or a sync that failed nobody knows what the disk has.
    /// A full disk is not meant, nor a page that cannot be read: that concerns the keys of that page.
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Disk(error) => !self.is_full() && error.operation != Operation::Read,
            Self::Damaged { .. } => false,
        }
    }

    /// The disk has no room for a file: nothing was lost, and the same work may be tried again. A sync
    /// that fails is not meant, whatever the reason: nobody knows what it left.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Disk(error) => {
                error.is_full() && matches!(error.operation, Operation::Create | Operation::Write)
            }
            Self::Damaged { .. } => false,
        }
    }
}
