//! Cancel: a message that waits will never be delivered, or the caller is told why not.

use super::lookup::{Found, Live};
use super::{ChangeError, Decided, Settled, settle};
use crate::clock::Timestamp;
use crate::commitlog::Outcome;
use crate::message::record::Cancel;
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
        let Some(Live { cause, deadline, .. }) = found.live(store)? else {
            let receipt = store.log().latest_receipt();
            return Ok(Decided { answer: CancelAnswer::AlreadyDelivered, receipt });
        };
        let record = Cancel { cause, deadline, tag: found.timer_tag(), at: now }.encode();
        let mut turn = store.log().turn(record.len())?;
        if topic.is_deleted() {
            return Err(ChangeError::Unknown);
        }
        let answer = match settle(&mut turn, cause, Outcome::Withdrawn)? {
            Settled::Now => {
                topic.appended(turn.append(record));
                CancelAnswer::Cancelled(Cancelled::First)
            }
            Settled::Before(Outcome::Delivered) => CancelAnswer::AlreadyDelivered,
            Settled::Before(Outcome::Withdrawn | Outcome::Dropped) => {
                CancelAnswer::Cancelled(Cancelled::Before)
            }
            // Moved since it was looked up.
            Settled::Before(Outcome::Superseded) => continue,
        };
        let receipt = turn.receipt();
        return Ok(Decided { answer, receipt });
    }
}
