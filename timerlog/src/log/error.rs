//! What can go wrong with a TimerLog.

use crate::disk::DiskError;
use crate::error::{Damage, DamageKind};
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

/// A TimerLog that could not be opened, read through or appended to.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Damaged(#[from] Damage),
}

impl LogError {
    pub(super) fn of(error: RowError, reader: &RowReader) -> Self {
        match error {
            RowError::Disk(error) => Self::Disk(error),
            RowError::Damaged(damage) => Self::Damaged(damage),
            RowError::OutOfReach { position, end, .. } => {
                Self::Damaged(damage(reader, position, DamageKind::PastEnd { end }))
            }
        }
    }
}
