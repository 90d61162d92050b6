//! Everything that enters: messages put, and changes of mind.
//!
//! ```text
//!   put, batch, timer ──prepare──┐
//!   reschedule, fire, cancel ────┼──> a turn: settle? append, index ──> Decided (answer, receipt)
//!   look-up, search ─────────────┘        ^ moved meanwhile: look again
//! ```
//!
//! Each operation is a function of the store, the request and `now`. It decides and appends in one turn
//! and answers a [`Decided`]: the answer, and the claim on the log that must be durable before the
//! answer is told. Nothing here waits: where a record is needed that is not written yet, the answer is
//! [`LookError::NotWritten`], and the caller asks again when its receipt is durable.

mod cancel;
mod carry;
mod deadline;
mod idempotency;
mod look;
mod lookup;
mod put;
mod reschedule;
mod scheduled;
mod search;
mod timer;
mod transaction;

pub use cancel::{CancelAnswer, Cancelled, Cause, cancel, cancel_all};
pub use carry::{Hold, carry};
pub use idempotency::IDEMPOTENT_FOR_MS;
pub use look::LookError;
pub use lookup::{BodyError, Fate, Found, Live, NotFound, Speaker, Standing, body, find, of_cause};
pub use put::{
    Atomic, Item, PutAnswer, PutError, PutSettings, PutsAnswer, Refusal, Request, put, put_all,
};
pub use reschedule::{Changed, FireAnswer, RescheduleAnswer, fire_now, reschedule};
pub use scheduled::{
    BulkCancel, Listed, MAX_BULK_CANCEL, Page, Query, ScheduledError, Selected, WhenMatched,
    cancel_scheduled, list_scheduled,
};
pub use search::{FoundPage, search};
pub use timer::{IfExists, TimerPut, find_timer, put_timer};
pub use transaction::{
    EndAnswer, Ended, HandedOut, Resumed, TransactionPage, TransactionStanding, abandon, end,
    give_back, hand_out, list_transactions, prepare_transaction, resume, transaction_of,
    transaction_standing,
};

use timerlog::planted::{self, Fault};

use crate::commitlog::{AppendError, Outcome, Receipt, SettleError, Turn};
use crate::message::offset::Offset;

/// An answer that holds once its receipt is durable.
#[derive(Clone, Debug)]
pub struct Decided<T> {
    pub answer: T,
    pub receipt: Receipt,
}

/// Why a change of mind was not decided. Nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ChangeError {
    /// Its topic is gone.
    #[error("there is no message with this id")]
    Unknown,
    #[error("the moment lies more than 100 years ahead")]
    TooFarAhead,
    #[error("the transaction of the message is not decided")]
    TransactionOpen,
    #[error(transparent)]
    Look(#[from] LookError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// How a change of mind about a half message must end without being tried, if it must. Nothing for any other
/// message, and for one that was committed and waits for its moment.
fn foregone(found: &Found, live: &Live) -> Result<Option<Outcome>, ChangeError> {
    if !found.is_half() {
        return Ok(None);
    }
    match live.fate() {
        Fate::Open(_) | Fate::Abandoned { .. } => Err(ChangeError::TransactionOpen),
        Fate::RolledBack => Ok(Some(Outcome::Withdrawn)),
        Fate::Committed => Ok(live.outcome.filter(|outcome| *outcome == Outcome::Delivered)),
    }
}

/// What a turn says of a cause that somebody wants to settle.
enum Settled {
    Now,
    Before(Outcome),
}

fn settle(turn: &mut Turn<'_>, cause: Offset, outcome: Outcome) -> Result<Settled, LookError> {
    if outcome == Outcome::Superseded && planted::is(Fault::MoveWithoutSettling) {
        return Ok(Settled::Now);
    }
    match turn.settle(cause, outcome) {
        Ok(()) => Ok(Settled::Now),
        Err(SettleError::Before(before)) => Ok(Settled::Before(before)),
        Err(SettleError::Disk(error)) => Err(error.into()),
    }
}
