//! Cancel: a message that waits will never be delivered, or the caller is told why not.

use super::{Decided, Found};
use crate::clock::Timestamp;
use crate::commitlog::settled::SettledError;
use crate::commitlog::{AppendError, Outcome, SettleError, Turn};
use crate::message::offset::Offset;
use crate::message::record::{Cancel, Encoded, Placement};
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

/// What a cancel settles, as its entry in the wheel names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    pub offset: Offset,
    pub deadline: Timestamp,
    pub tag: TimerTag,
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
    let tag = TimerTag::message(message.topic_id, message.queue, message.tag_hash);
    let cause = Cause { offset: found.offset, deadline, tag };
    let record = record(&cause, now);
    let mut turn = store.log().turn(record.len())?;
    let answer = decide(&mut turn, &cause, record)?;
    let receipt = turn.receipt();
    Ok(Decided { answer, receipt })
}

/// Cancels many in one turn: each is decided for itself, as a single cancel is, and its answer stands at
/// its place.
///
/// # Errors
///
/// [`CancelError::Append`]; nothing was changed then. [`CancelError::Settled`] when the bits of one cannot
/// be read: those before it are cancelled.
pub fn cancel_all(
    store: &Store,
    causes: &[Cause],
    now: Timestamp,
) -> Result<Decided<Vec<CancelAnswer>>, CancelError> {
    let records: Vec<_> = causes.iter().map(|cause| record(cause, now)).collect();
    let mut turn = store.log().turn(records.iter().map(Encoded::len).sum())?;
    let decided = causes.iter().zip(records);
    let answer: Result<_, SettledError> =
        decided.map(|(cause, record)| decide(&mut turn, cause, record)).collect();
    let receipt = turn.receipt();
    Ok(Decided { answer: answer?, receipt })
}

fn record(cause: &Cause, now: Timestamp) -> Encoded {
    let Cause { offset, deadline, tag } = *cause;
    Cancel { cause: offset, deadline, tag: tag.0, at: now }.encode()
}

fn decide(
    turn: &mut Turn<'_>,
    cause: &Cause,
    record: Encoded,
) -> Result<CancelAnswer, SettledError> {
    match turn.settle(cause.offset, Outcome::Withdrawn) {
        Ok(()) => {
            turn.append(record);
            Ok(CancelAnswer::Cancelled(Cancelled::First))
        }
        Err(SettleError::Before(Outcome::Delivered)) => Ok(CancelAnswer::AlreadyDelivered),
        Err(SettleError::Before(Outcome::Withdrawn | Outcome::Superseded | Outcome::Dropped)) => {
            Ok(CancelAnswer::Cancelled(Cancelled::Before))
        }
        Err(SettleError::Disk(error)) => Err(error),
    }
}
