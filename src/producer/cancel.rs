//! Cancel: a message that waits will never be delivered, or the caller is told why not.

use timerlog::planted::{self, Fault};

use super::lookup::{Found, Live};
use super::{ChangeError, Decided, LookError, Settled, foregone, settle};
use crate::clock::Timestamp;
use crate::commitlog::{Outcome, Turn};
use crate::message::offset::Offset;
use crate::message::record::{Cancel, Encoded};
use crate::message::timer_tag::TimerTag;
use crate::store::{Store, Topic};

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
/// [`ChangeError`]; nothing was changed then.
pub fn cancel(
    store: &Store,
    found: &Found,
    now: Timestamp,
) -> Result<Decided<CancelAnswer>, ChangeError> {
    let topic = found.topic(store).ok_or(ChangeError::Unknown)?;
    loop {
        let Some(live) = found.live(store)? else {
            let receipt = store.log().latest_receipt();
            return Ok(Decided { answer: CancelAnswer::AlreadyDelivered, receipt });
        };
        if let Some(outcome) = foregone(found, &live)? {
            let answer = match outcome {
                Outcome::Delivered => CancelAnswer::AlreadyDelivered,
                _ => CancelAnswer::Cancelled(Cancelled::Before),
            };
            return Ok(Decided { answer, receipt: store.log().latest_receipt() });
        }
        let Live { cause: offset, deadline, .. } = live;
        let cause = Cause { offset, deadline, tag: found.timer_tag(&live) };
        let record = record(&cause, now);
        let mut turn = store.log().turn_for_accepted(record.len())?;
        if topic.is_deleted() {
            return Err(ChangeError::Unknown);
        }
        if planted::is(Fault::DecidedBeforeTurn)
            && live.outcome.is_none()
            && matches!(store.log().settled().get(offset), Ok(Some(Outcome::Delivered)))
        {
            topic.appended(turn.append(record));
            let answer = CancelAnswer::Cancelled(Cancelled::First);
            return Ok(Decided { answer, receipt: turn.receipt() });
        }
        if let Some(answer) = decide(&mut turn, &topic, &cause, record)? {
            return Ok(Decided { answer, receipt: turn.receipt() });
        }
    }
}

/// Cancels many in one turn: each is decided for itself, as a single cancel is, and its answer stands at
/// its place. `None` is one that was moved, or lost its topic, since it was looked up: its cause speaks for
/// nothing any more.
///
/// # Errors
///
/// [`ChangeError::Append`]; nothing was changed then. [`ChangeError::Look`] when the bits of one cannot be
/// read: those before it are cancelled.
pub fn cancel_all(
    store: &Store,
    causes: &[Cause],
    now: Timestamp,
) -> Result<Decided<Vec<Option<CancelAnswer>>>, ChangeError> {
    let records: Vec<_> = causes.iter().map(|cause| record(cause, now)).collect();
    let mut turn = store.log().turn_for_accepted(records.iter().map(Encoded::len).sum())?;
    let decided = causes.iter().zip(records).map(|(cause, record)| {
        match store.topic_by_id(cause.tag.topic_id()).filter(|topic| !topic.is_deleted()) {
            Some(topic) => decide(&mut turn, &topic, cause, record),
            None => Ok(None),
        }
    });
    let answer: Result<_, LookError> = decided.collect();
    let receipt = turn.receipt();
    Ok(Decided { answer: answer?, receipt })
}

fn record(cause: &Cause, now: Timestamp) -> Encoded {
    let Cause { offset, deadline, tag } = *cause;
    Cancel { cause: offset, deadline, tag: tag.0, at: now }.encode()
}

/// Decides in the turn; nothing when another cause speaks for the message by now.
fn decide(
    turn: &mut Turn<'_>,
    topic: &Topic,
    cause: &Cause,
    record: Encoded,
) -> Result<Option<CancelAnswer>, LookError> {
    Ok(match settle(turn, cause.offset, Outcome::Withdrawn)? {
        Settled::Now => {
            topic.appended(turn.append(record));
            Some(CancelAnswer::Cancelled(Cancelled::First))
        }
        Settled::Before(Outcome::Delivered) => Some(CancelAnswer::AlreadyDelivered),
        Settled::Before(Outcome::Withdrawn | Outcome::Dropped) => {
            Some(CancelAnswer::Cancelled(Cancelled::Before))
        }
        Settled::Before(Outcome::Superseded) => None,
    })
}
