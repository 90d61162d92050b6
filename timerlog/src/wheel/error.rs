//! What can go wrong when something is filed.

use crate::error::TimerError;

/// Entries that were not filed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FileError {
    /// A deadline that the far ring does not reach. Nothing of the batch was filed.
    #[error("deadline {deadline} ms is not before {limit} ms, where the wheel ends")]
    BeyondRange { deadline: u64, limit: u64 },
    /// The logs could not be written. Part of the batch may be filed; to file it again does no harm
    /// but to the counts.
    #[error(transparent)]
    Timer(#[from] TimerError),
}
