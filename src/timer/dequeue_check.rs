//! Beside stage 5: at the millisecond, tell of the checks that are due, and file again what stays open.
//!
//! ```text
//!   stage 4 ──> waits for its millisecond ──> DueChecks ──> done
//!                                                └──> again at a later moment: back into the wheel
//! ```
//!
//! Ground rules:
//!
//! - An entry that is to come again is filed before the old one is reported done: a snapshot of the wheel has
//!   the one or the other, so no open transaction is ever missing from it.
//! - What comes too early (a note waits in the last near slot for a far moment) is filed again unseen.
//! - One that cannot be told of now stays here; one that is damaged is lost alone.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use timerlog::{Entry, FileError, Filing};

use super::{Outstanding, Shared, WalkedChecks};
use crate::clock::{Now, Timestamp};
use crate::message::offset::Offset;
use crate::stage::{Pipe, Progress, Signal, Stage, StageError};

/// Checks told of in a step: the clock is read anew between steps.
const CHECKS_A_STEP: usize = 64;
/// How long to wait when nothing can be decided.
const BUSY_MS: u64 = 2;
/// How long to wait while firing is held.
const HELD_MS: u64 = 1000;

/// What becomes of a check that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It needs no looking after any more: something later speaks for its transaction, or it is damaged.
    Done,
    /// It is to be told of again, at this moment at the latest after every start.
    Again(Timestamp),
    /// Nothing can be decided now; ask again shortly.
    Busy,
}

/// Who is told of checks that are due; called on the stage's thread.
pub trait DueChecks: Send + Sync + Debug {
    /// The check that waits under the record at `cause`, `length` bytes long, is due.
    ///
    /// # Errors
    ///
    /// When the store cannot be read or written any more.
    fn due(&self, cause: Offset, length: u32, now: Timestamp) -> Result<CheckOutcome, StageError>;
}

#[derive(Debug)]
pub(super) struct DequeueCheck {
    shared: Arc<Shared>,
    input: Pipe<WalkedChecks>,
    checks: Arc<dyn DueChecks>,
    /// By deadline and cause; the number keeps apart what the wheel holds twice.
    waiting: BTreeMap<(u64, u64, u64), (Entry, Outstanding)>,
    taken_in: u64,
    /// Due far from now, and to be filed again when the near ring has come on. With the slot that each stands
    /// in: it is filed in a later one, so this comes to an end.
    early: Vec<(Entry, Outstanding, u64)>,
}

impl DequeueCheck {
    pub(super) fn new(
        shared: Arc<Shared>,
        input: Pipe<WalkedChecks>,
        checks: Arc<dyn DueChecks>,
    ) -> Self {
        let (waiting, early) = (BTreeMap::new(), Vec::new());
        Self { shared, input, checks, waiting, taken_in: 0, early }
    }

    /// Takes in what stage 4 has routed. `true` when there was some, or some could be filed again.
    fn take_in(&mut self) -> Result<bool, StageError> {
        let mut took = false;
        while let Some(WalkedChecks { slot, entries, outstanding }) = self.input.pop() {
            took = true;
            let early = entries.into_iter().map(|entry| (entry, outstanding.clone(), slot));
            self.early.extend(early);
        }
        if self.early.is_empty() {
            return Ok(took);
        }
        let (precision, boundary) = {
            let wheel = self.shared.wheel.lock();
            (u64::from(wheel.precision_ms()), wheel.far_boundary())
        };
        let mut again = Vec::new();
        for (entry, outstanding, slot) in std::mem::take(&mut self.early) {
            // One that waited here for a later slot's moment would hold the read time meanwhile, and with it
            // all that is overdue and still far.
            if entry.deadline / precision <= slot {
                self.taken_in += 1;
                let key = (entry.deadline, entry.offset, self.taken_in);
                self.waiting.insert(key, (entry, outstanding));
            } else if boundary > slot + 1 {
                again.push((entry, outstanding));
            } else {
                // It stands in the last near slot, and there is no later one yet.
                self.early.push((entry, outstanding, slot));
            }
        }
        if !again.is_empty() {
            took = true;
            let entries: Vec<_> = again.iter().map(|(entry, _)| *entry).collect();
            self.file(&entries)?;
            again.iter().for_each(|(_, outstanding)| outstanding.settled(&self.shared, 1));
        }
        Ok(took)
    }

    fn file(&self, entries: &[Entry]) -> Result<(), StageError> {
        if entries.is_empty() {
            return Ok(());
        }
        let filings: Vec<_> = entries.iter().map(|entry| Filing::note(*entry)).collect();
        match self.shared.wheel.lock().file(&filings) {
            Ok(()) => {}
            Err(FileError::Timer(error)) => return Err(self.shared.failed(self.name(), &error)),
            Err(error @ FileError::BeyondRange { .. }) => {
                return Err(StageError::new(self.name(), error));
            }
        }
        self.shared.dequeue_get.raise();
        Ok(())
    }
}

impl Stage for DequeueCheck {
    fn name(&self) -> &'static str {
        "dequeue_check"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        let mut worked = self.take_in()?;
        if self.shared.is_held() {
            let later = now.wall.checked_add(HELD_MS);
            return Ok(later.map_or(Progress::Idle, Progress::IdleUntil));
        }
        for _ in 0..CHECKS_A_STEP {
            let Some(first) = self.waiting.first_entry() else { break };
            let due = Timestamp::from_millis(first.key().0);
            if due > now.wall {
                break;
            }
            let (key, (entry, outstanding)) = first.remove_entry();
            let cause = Offset::new(entry.offset);
            match self.checks.due(cause, entry.length, now.wall)? {
                CheckOutcome::Done => {}
                CheckOutcome::Again(at) => {
                    self.file(&[Entry { deadline: at.as_millis(), ..entry }])?;
                }
                CheckOutcome::Busy => {
                    self.waiting.insert(key, (entry, outstanding));
                    let later = now.wall.checked_add(BUSY_MS);
                    return Ok(later.map_or(Progress::Idle, Progress::IdleUntil));
                }
            }
            outstanding.settled(&self.shared, 1);
            worked = true;
        }
        if worked {
            return Ok(Progress::Worked);
        }
        // What is early waits for the far boundary, whose move raises the signal.
        let next = self.waiting.keys().next().map(|key| Timestamp::from_millis(key.0));
        Ok(next.map_or(Progress::Idle, Progress::IdleUntil))
    }

    fn signal(&self) -> &Signal {
        &self.shared.dequeue_check
    }
}
