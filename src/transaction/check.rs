//! Which checks are due, and who is given them.

use std::fmt;
use std::sync::Arc;

use super::parked::{Asked, Due, Parked};
use crate::clock::Timestamp;
use crate::commitlog::{AppendError, Receipt};
use crate::message::offset::Offset;
use crate::producer::{self, ChangeError, Decided, Found, HandedOut, LookError};
use crate::stage::StageError;
use crate::store::Store;
use crate::sync::Mutex;
use crate::timer::{CheckOutcome, DueChecks};

/// How long a parked check stays in the wheel before it is looked at again: a start finds it within this.
pub const LOOK_AGAIN_MS: u64 = 60_000;
/// An interval of checks may be shorter than looking is worth.
const LOOK_AGAIN_MS_MIN: u64 = 1000;

/// Told for whom a check waits; must not block.
type Wake = Box<dyn Fn(&Asked) + Send + Sync>;

/// All checks that are due. Shared by reference.
pub struct Checks {
    store: Arc<Store>,
    parked: Mutex<Parked>,
    wake: Wake,
}

impl fmt::Debug for Checks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Checks({} parked)", self.parked())
    }
}

/// A check for a caller.
#[derive(Clone, Debug)]
pub struct Check {
    pub found: Found,
    pub handed: HandedOut,
}

/// What a caller may be given once the receipt is durable.
#[derive(Debug)]
pub struct Taken {
    pub checks: Vec<Check>,
    pub receipt: Receipt,
}

impl Checks {
    pub fn new(store: Arc<Store>, wake: Wake) -> Self {
        Self { store, parked: Mutex::default(), wake }
    }

    /// How many wait in memory.
    pub fn parked(&self) -> usize {
        self.parked.lock().len()
    }

    /// Whether something waits for them, perhaps.
    pub fn may_have(&self, asked: &Asked) -> bool {
        self.parked.lock().has(asked)
    }

    /// The next host that is to be asked for something, in turn after `after`, of those that are `free`.
    pub fn next_host(&self, after: &str, free: impl FnMut(&str) -> bool) -> Option<String> {
        self.parked.lock().next_host(after, free)
    }

    /// Takes up to `max` checks for who is asked. They must be given them, or each must be
    /// [given back](producer::give_back).
    ///
    /// # Errors
    ///
    /// [`ChangeError`], when nothing could be taken; what could not be is parked as before.
    pub fn take(&self, asked: &Asked, max: usize, now: Timestamp) -> Result<Taken, ChangeError> {
        let mut checks = Vec::new();
        let mut receipt = self.store.log().latest_receipt();
        while checks.len() < max {
            let first = self.parked.lock().take(asked);
            let Some((due, abandoned_at)) = first else { break };
            match self.hand_out(due.cause, now) {
                Ok(None) => {}
                Ok(Some((found, decided))) => {
                    receipt = decided.receipt;
                    checks.push(Check { found, handed: decided.answer });
                }
                // Its topic is gone.
                Err(ChangeError::Unknown) => {}
                Err(error) => {
                    self.parked.lock().park(asked, due, abandoned_at);
                    if checks.is_empty() {
                        return Err(error);
                    }
                    break;
                }
            }
        }
        Ok(Taken { checks, receipt })
    }

    fn hand_out(
        &self,
        cause: Offset,
        now: Timestamp,
    ) -> Result<Option<(Found, Decided<HandedOut>)>, ChangeError> {
        let Some((found, _)) = producer::transaction_of(&self.store, cause)? else {
            return Ok(None);
        };
        let decided = producer::hand_out(&self.store, &found, cause, now)?;
        Ok(decided.map(|decided| (found, decided)))
    }

    fn look(&self, cause: Offset, now: Timestamp) -> Result<CheckOutcome, ChangeError> {
        if self.store.log().settled().get(cause).map_err(LookError::from)?.is_some() {
            self.parked.lock().remove(cause);
            return Ok(CheckOutcome::Done);
        }
        let ends = self.parked.lock().abandoned_at(cause);
        if let Some(ends) = ends.filter(|ends| *ends > now) {
            return Ok(CheckOutcome::Again(later(now, LOOK_AGAIN_MS).min(ends)));
        }
        let there = producer::transaction_of(&self.store, cause)?;
        let Some((found, clockwork)) =
            there.filter(|(found, _)| found.topic(&self.store).is_some())
        else {
            self.parked.lock().remove(cause);
            return Ok(CheckOutcome::Done);
        };
        if clockwork.abandoned_at <= now {
            producer::abandon(&self.store, &found, now)?;
            self.parked.lock().remove(cause);
            return Ok(CheckOutcome::Done);
        }
        let Some(at) = clockwork.next_check_at.filter(|at| *at <= now) else {
            // The clock was set back.
            return Ok(CheckOutcome::Again(clockwork.wakes_at()));
        };
        let Some(terms) = &found.message.terms else { return Ok(CheckOutcome::Done) };
        let asked = Asked::of(terms);
        if self.parked.lock().park(&asked, Due { at, cause }, clockwork.abandoned_at) {
            (self.wake)(&asked);
        }
        let again = terms.check_interval_ms.clamp(LOOK_AGAIN_MS_MIN, LOOK_AGAIN_MS);
        Ok(CheckOutcome::Again(later(now, again).min(clockwork.abandoned_at)))
    }
}

fn later(now: Timestamp, by_ms: u64) -> Timestamp {
    now.checked_add(by_ms).unwrap_or(Timestamp::from_millis(u64::MAX))
}

impl DueChecks for Checks {
    fn due(&self, cause: Offset, _length: u32, now: Timestamp) -> Result<CheckOutcome, StageError> {
        match self.look(cause, now) {
            Ok(outcome) => Ok(outcome),
            // Its topic went in this moment.
            Err(ChangeError::Unknown) => Ok(CheckOutcome::Done),
            Err(
                ChangeError::Look(LookError::NotWritten(_))
                | ChangeError::Append(
                    AppendError::Overloaded { .. }
                    | AppendError::IndexBehind
                    | AppendError::StorageFull,
                ),
            ) => Ok(CheckOutcome::Busy),
            Err(error) => Err(StageError::new("dequeue_check", error)),
        }
    }
}
