//! What can go wrong with a row.

use crate::disk::DiskError;
use crate::error::Damage;

/// A failed call on a row of segments.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RowError {
    /// The disk failed. After a failed sync, every later call repeats the error of that sync.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file is missing, has a wrong length or a name that does not belong here.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// A read that is not wholly within one file of what may be read.
    #[error("{length} bytes at position {position} are not within one file of {begin}..{end}")]
    OutOfReach { position: u64, length: usize, begin: u64, end: u64 },
}
