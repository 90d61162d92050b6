//! Look-up: from an id to its message, in one read.

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::commitlog::settled::SettledError;
use crate::commitlog::{Outcome, ReadError, Receipt};
use crate::message::State;
use crate::message::id::ClaimedId;
use crate::message::offset::Offset;
use crate::message::record::{Kind, Message, Placement, RecordError};
use crate::store::{Store, StoreError, Topic};

/// How many units before the likely ones are looked at for the firing of a message: about 10 ms of search.
const SEARCH_BACK: u64 = 100_000;

/// A message that an id stands for.
#[derive(Clone, Debug)]
pub struct Found {
    pub offset: Offset,
    /// The record's unpadded length.
    pub length: u32,
    pub message: Message,
}

/// Why an id stands for nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotFound {
    /// It is not ours, or its message is gone.
    #[error("there is no message with this id")]
    Unknown,
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The message that `id` stands for.
///
/// # Errors
///
/// [`NotFound::Unknown`] for everything that is not an id of a message that is kept.
pub fn find(store: &Store, id: &str) -> Result<Found, NotFound> {
    let claimed = ClaimedId::parse(id).ok_or(NotFound::Unknown)?;
    let mut bytes = Vec::new();
    let record = match store.log().reader().head(claimed.offset, &mut bytes) {
        Ok(record) => record,
        // Nothing that looks like a record stands where a forged id points.
        Err(ReadError::Record { .. } | ReadError::PastTheEnd { .. } | ReadError::Group { .. }) => {
            return Err(NotFound::Unknown);
        }
        Err(error @ ReadError::Row(_)) => return Err(error.into()),
    };
    if record.header.kind != Kind::Message {
        return Err(NotFound::Unknown);
    }
    let message = Message::decode(&record).map_err(|_| NotFound::Unknown)?;
    if !store.ids().confirms(&claimed, message.nonce) {
        return Err(NotFound::Unknown);
    }
    let length = u32::try_from(record.header.length()).map_err(|_| NotFound::Unknown)?;
    Ok(Found { offset: claimed.offset, length, message })
}

/// The message that `cause` speaks for, of `length` bytes as the wheel has it. Nothing when its record is
/// damaged: it is lost alone.
///
/// # Errors
///
/// When the disk fails.
pub fn of_cause(store: &Store, cause: Offset, length: u32) -> Result<Option<Found>, ReadError> {
    let mut bytes = Vec::new();
    let record = match store.log().reader().head(cause, &mut bytes) {
        Ok(record) => record,
        Err(ReadError::Record { offset, cause }) => {
            tracing::error!(offset, error = %cause, "a timed record is damaged");
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    match record.header.kind {
        Kind::Message => {
            let message = Message::decode(&record).ok();
            Ok(message.map(|message| Found { offset: cause, length, message }))
        }
        kind => {
            tracing::error!(offset = cause.get(), ?kind, "a timer leads to another kind of record");
            Ok(None)
        }
    }
}

/// Why a message's body cannot be given out.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BodyError {
    #[error(transparent)]
    Damaged(RecordError),
    #[error(transparent)]
    Read(ReadError),
}

/// The body of a message that was found.
///
/// # Errors
///
/// [`BodyError::Damaged`] when the disk has not kept it.
pub fn body(store: &Store, found: &Found) -> Result<Bytes, BodyError> {
    let mut bytes = Vec::new();
    match store.log().reader().record(found.offset, Some(found.length), &mut bytes) {
        Ok(record) => Ok(Bytes::copy_from_slice(record.body)),
        Err(ReadError::Record { cause, .. }) => Err(BodyError::Damaged(cause)),
        Err(error) => Err(BodyError::Read(error)),
    }
}

/// Where a message stands, and what the answer waits for.
#[derive(Clone, Debug)]
pub struct Standing {
    pub state: State,
    pub receipt: Option<Receipt>,
}

impl Found {
    /// When it is to be readable, or was put.
    pub fn deliver_at(&self) -> Timestamp {
        match self.message.placement {
            Placement::Timed { deadline } => deadline,
            Placement::Ready { .. } => self.message.born_at,
        }
    }

    /// Where the message stands now. A timed message's answer holds once its receipt is durable.
    ///
    /// # Errors
    ///
    /// When the settled bits cannot be read.
    pub fn standing(&self, store: &Store) -> Result<Standing, SettledError> {
        if let Placement::Ready { .. } = self.message.placement {
            return Ok(Standing { state: State::Ready, receipt: None });
        }
        let outcome = store.log().settled().get(self.offset)?;
        let state = match outcome {
            None => State::Scheduled,
            Some(Outcome::Delivered) => State::Ready,
            Some(Outcome::Withdrawn | Outcome::Superseded | Outcome::Dropped) => State::Cancelled,
        };
        Ok(Standing { state, receipt: Some(store.log().latest_receipt()) })
    }

    /// When the message fired, searched in its queue; `None` when dispatch has not brought it there, or it
    /// fired too long before its place in the order of time, under a clock that was set back.
    ///
    /// Firing leaves no index behind. A queue's units are in the order of their firing, so the search
    /// starts at the deadline; it ends at once but for messages that fired long after theirs.
    ///
    /// # Errors
    ///
    /// When the queue cannot be read.
    pub fn fired_at(&self, topic: &Topic) -> Result<Option<Timestamp>, StoreError> {
        let Placement::Timed { deadline } = self.message.placement else { return Ok(None) };
        let Some(queue) = topic.queue(self.message.queue) else { return Ok(None) };
        let start = queue.units.first_not_before(deadline)?;
        // A clock that was stepped back breaks the order: then some of what lies before is searched, too.
        let before = start.saturating_sub(SEARCH_BACK)..start;
        for place in (start..queue.units.committed()).chain(before.rev()) {
            let unit = queue.units.unit(place)?;
            if unit.offset == self.offset {
                return Ok(Some(unit.time));
            }
        }
        Ok(None)
    }
}
