//! Reading what the index points at.

use crate::commitlog::settled::SettledError;
use crate::commitlog::{ReadError, Receipt};
use crate::consumequeue::QueueError;
use crate::index::IndexError;
use crate::message::offset::Offset;
use crate::message::record::{Record, RecordError};
use crate::store::{CauseError, Store};

/// Why something cannot be looked up, now or ever.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LookError {
    /// The record that decides was appended just now. Once the receipt is durable it can be read.
    #[error("a record is on its way to the disk")]
    NotWritten(Receipt),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Settled(#[from] SettledError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The settled bits say that a later record speaks for the message, and the index has none.
    #[error("the index has lost the record that moved the message at offset {message}")]
    Lost { message: u64 },
}

impl From<CauseError> for LookError {
    fn from(error: CauseError) -> Self {
        match error {
            CauseError::Read(error) => error.into(),
            CauseError::Index(error) => error.into(),
        }
    }
}

impl LookError {
    /// Nothing of this offset is written yet: everything appended so far must be.
    pub(super) fn not_written(store: &Store) -> Self {
        Self::NotWritten(store.log().latest_receipt())
    }
}

/// Reads the head of the record at `offset`, which the index has named, and shows it to `look`, which says
/// whether it is what was looked for. A damaged record is none: it is lost alone.
///
/// # Errors
///
/// [`LookError::NotWritten`] when it is still in memory.
pub(super) fn head<T>(
    store: &Store,
    offset: Offset,
    look: impl FnOnce(&Record<'_>) -> Result<Option<T>, RecordError>,
) -> Result<Option<T>, LookError> {
    let mut bytes = Vec::new();
    let looked = match store.log().reader().head(offset, &mut bytes) {
        Ok(record) => look(&record),
        Err(ReadError::PastTheEnd { .. }) => return Err(LookError::not_written(store)),
        Err(ReadError::Record { cause, .. }) => Err(cause),
        Err(error) => return Err(error.into()),
    };
    Ok(looked.unwrap_or_else(|error| {
        tracing::error!(offset = offset.get(), %error, "a record that the index names is damaged");
        None
    }))
}
