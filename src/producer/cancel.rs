//! Cancel: a message that waits will never be delivered, or the caller is told why not.

use super::{Decided, Found};
use crate::clock::Timestamp;
use crate::commitlog::settled::SettledError;
use crate::commitlog::{AppendError, Outcome, SettleError};
use crate::message::record::{Cancel, Placement};
use crate::message::timer_tag::TimerTag;
use crate::store::Store;

/// The answer to a cancel: final, whichever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAnswer {
    /// It will never be delivered. `First` when this call is the one that cancelled it.
    Cancelled(Cancelled),
    AlreadyDelivered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    First,
    Before,
}

/// Why nothing was decided.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CancelError {
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Settled(#[from] SettledError),
}

/// Cancels the message that was found.
///
/// # Errors
///
/// [`CancelError`]; nothing was changed then.
pub fn cancel(
    store: &Store,
    found: &Found,
    now: Timestamp,
) -> Result<Decided<CancelAnswer>, CancelError> {
    let Placement::Timed { deadline } = found.message.placement else {
        let receipt = store.log().latest_receipt();
        return Ok(Decided { answer: CancelAnswer::AlreadyDelivered, receipt });
    };
    let message = &found.message;
    let tag = TimerTag::message(message.topic_id, message.queue, message.tag_hash).0;
    let record = Cancel { cause: found.offset, deadline, tag, at: now }.encode();
    let mut turn = store.log().turn(record.len())?;
    let answer = match turn.settle(found.offset, Outcome::Withdrawn) {
        Ok(()) => {
            turn.append(record);
            CancelAnswer::Cancelled(Cancelled::First)
        }
        Err(SettleError::Before(Outcome::Delivered)) => CancelAnswer::AlreadyDelivered,
        Err(SettleError::Before(Outcome::Withdrawn | Outcome::Superseded | Outcome::Dropped)) => {
            CancelAnswer::Cancelled(Cancelled::Before)
        }
        Err(SettleError::Disk(error)) => return Err(error.into()),
    };
    let receipt = turn.receipt();
    Ok(Decided { answer, receipt })
}
