//! What can go wrong with a TimerLog.

use crate::disk::DiskError;
use crate::error::{Damage, DamageKind, TimerError};
use crate::segment::{RowError, RowReader};

/// A chain that could not be walked to its end.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ChainError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A record is not what was written, or the chain leads astray. The log cannot be trusted any
    /// more and has to be made anew.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The slot was settled, and its records released, before the walk came to them.
    #[error("the records at position {position} are settled and released")]
    Released { position: u64 },
}

impl ChainError {
    /// What a failed read of `position` means.
    pub(super) fn of(error: RowError, reader: &RowReader) -> Self {
        match error {
            RowError::Disk(error) => Self::Disk(error),
            RowError::Damaged(damage) => Self::Damaged(damage),
            RowError::OutOfReach { position, .. } if position < reader.begin() => {
                Self::Released { position }
            }
            RowError::OutOfReach { position, end, .. } => {
                Self::Damaged(damage(reader, position, DamageKind::PastEnd { end }))
            }
        }
    }
}

/// Damage at `position` of the log.
pub(super) fn damage(reader: &RowReader, position: u64, kind: DamageKind) -> Damage {
    let (file, offset) = reader.place(position);
    Damage { file, offset: Some(offset), kind }
}

/// What a failed call on the row of `reader` means for the whole index.
pub(super) fn from_row(error: RowError, reader: &RowReader) -> TimerError {
    match error {
        RowError::Disk(error) => TimerError::Disk(error),
        RowError::Damaged(damage) => TimerError::NeedsRebuild(damage),
        RowError::OutOfReach { position, end, .. } => {
            TimerError::NeedsRebuild(damage(reader, position, DamageKind::PastEnd { end }))
        }
    }
}

impl From<ChainError> for TimerError {
    /// Whoever walks a slot that is not settled yet finds every record, or the index is damaged.
    fn from(error: ChainError) -> Self {
        match error {
            ChainError::Disk(error) => Self::Disk(error),
            ChainError::Damaged(damage) => Self::NeedsRebuild(damage),
            ChainError::Released { position } => Self::NeedsRebuild(Damage::of(
                format!("the log at {position}"),
                DamageKind::Missing,
            )),
        }
    }
}
