//! How a writer learns that what it appended is durable.

use std::sync::Arc;

use timerlog::planted::{self, Fault};

use crate::sync::{AtomicU8, Notify, Ordering};

const PENDING: u8 = 0;
const DONE: u8 = 1;
const FAILED: u8 = 2;

/// The end of one append group's wait; one wake-up serves all who wait for the group.
#[derive(Debug, Default)]
pub(super) struct Completion {
    state: AtomicU8,
    waiters: Notify,
}

impl Completion {
    pub(super) fn finish(&self, outcome: Durability) {
        let state = match outcome {
            Durability::Durable => DONE,
            Durability::Failed => FAILED,
        };
        self.state.store(state, Ordering::Release);
        self.waiters.notify_waiters();
    }

    fn outcome(&self) -> Option<Durability> {
        match self.state.load(Ordering::Acquire) {
            PENDING => None,
            DONE => Some(Durability::Durable),
            _ => Some(Durability::Failed),
        }
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// On the disk (in `async` mode: written to the operating system).
    Durable,
    /// The log failed: nobody knows whether it will be there after a restart.
    Failed,
}

/// A decision's claim on the log: the decision may be told once the receipt is durable.
#[derive(Clone, Debug)]
pub struct Receipt(pub(super) Arc<Completion>);

impl Receipt {
    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<Durability> {
        self.0.outcome()
    }

    /// Waits for the flush. Dropping the wait changes nothing: what was appended stays.
    pub async fn wait(&self) -> Durability {
        loop {
            if planted::is(Fault::AskedAfterLook) && self.0.outcome().is_none() {
                self.0.waiters.notified().await;
            }
            let notified = self.0.waiters.notified();
            tokio::pin!(notified);
            // Registered before the state is read, so that a flush in between is not missed.
            notified.as_mut().enable();
            if let Some(outcome) = self.0.outcome() {
                return outcome;
            }
            notified.await;
        }
    }
}
