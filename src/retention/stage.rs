//! Retention as a stage: the state at each segment's begin goes into the log, and the log's begin moves on.

use std::sync::Arc;
use std::time::Duration;

use super::plan::{Plan, plan};
use crate::clock::{Now, Timestamp};
use crate::commitlog::{AppendError, Durability, Next, ReadError, Receipt};
use crate::consumer::{Consumers, DeadLettersError, LettersWalk};
use crate::message::offset::Offset;
use crate::producer::{ChangeError, Hold, LookError, carry};
use crate::stage::{Progress, Signal, Stage, StageError};
use crate::store::{Boundary, Expired, Store};
use crate::timer;

/// How often it is asked whether anything may go.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// At the latest then what was waited for is looked at again.
const LOOK_AGAIN_MS: u64 = 3_600_000;
const LOOK_AGAIN_MS_MIN: u64 = 1000;
/// How long to wait when the log takes nothing.
const LOG_BUSY_MS: u64 = 10;
/// Records read in a step.
const RECORDS_A_STEP: usize = 256;
/// Dead letters looked at in a step.
const LETTERS_A_STEP: usize = 256;

/// Told what retention does.
pub trait RetentionObserver: Send {
    /// The log begins here now.
    fn let_go(&self, begin: Offset);
    /// What nobody had read in time.
    fn expired(&self, expired: &Expired);
    /// So many messages were carried on.
    fn carried(&self, count: u64);
}

/// Moves the log's begin on.
pub struct RetentionStage {
    store: Arc<Store>,
    consumers: Arc<Consumers>,
    timer: Arc<timer::Shared>,
    retention_ms: u64,
    observer: Box<dyn RetentionObserver>,
    /// A state on its way into the log.
    boundary: Option<(Boundary, usize)>,
    work: Work,
    look_at: Duration,
    signal: Signal,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for RetentionStage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "RetentionStage({:?})", self.work)
    }
}

/// How far the log's begin is on its way.
#[derive(Debug)]
enum Work {
    Idle,
    /// What stands before `at` holds nothing before `upto` any more.
    Read {
        at: Offset,
        upto: Offset,
    },
    /// Something at `at` is waited for.
    Wait {
        at: Offset,
        until: Timestamp,
    },
    Letters {
        walk: LettersWalk,
        upto: Offset,
    },
    /// The state is on its way into the log, for the last time.
    State {
        boundary: Boundary,
        part: usize,
    },
    /// It must be durable, and dispatched everything that was appended before its segments were closed.
    Durable {
        boundary: Boundary,
        receipt: Receipt,
        end: Offset,
    },
}

/// What a step came to.
enum Step {
    On(Work, Progress),
    /// The log takes nothing right now.
    Busy(Work),
}

/// Why a step was not possible.
#[derive(Debug, thiserror::Error)]
enum RetentionError {
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error(transparent)]
    Letters(#[from] DeadLettersError),
}

impl RetentionError {
    /// Whether the same may be possible a little later.
    fn is_busy(&self) -> bool {
        let append = match self {
            Self::Append(error)
            | Self::Change(ChangeError::Append(error))
            | Self::Letters(DeadLettersError::Append(error)) => error,
            Self::Change(ChangeError::Look(LookError::NotWritten(_))) => return true,
            _ => return false,
        };
        matches!(
            append,
            AppendError::Overloaded { .. } | AppendError::IndexBehind | AppendError::StorageFull
        )
    }
}

impl RetentionStage {
    pub fn new(
        store: Arc<Store>,
        consumers: Arc<Consumers>,
        timer: Arc<timer::Shared>,
        retention_ms: u64,
        observer: Box<dyn RetentionObserver>,
    ) -> Self {
        Self {
            store,
            consumers,
            timer,
            retention_ms,
            observer,
            boundary: None,
            work: Work::Idle,
            look_at: Duration::ZERO,
            signal: Signal::default(),
            bytes: Vec::new(),
        }
    }

    /// Appends the state at a segment's begin, if there is one to append.
    fn write_down(&mut self) -> Result<bool, AppendError> {
        if self.boundary.is_none() {
            self.boundary = self.store.next_boundary().map(|boundary| (boundary, 0));
        }
        let Some((boundary, part)) = &mut self.boundary else { return Ok(false) };
        self.store.append_boundary(boundary, false, part)?;
        self.boundary = None;
        Ok(true)
    }

    fn go_on(&mut self, work: Work, now: Now) -> Result<Step, RetentionError> {
        match work {
            Work::Idle => Ok(self.look(None, now)),
            Work::Wait { at, until } if until <= now.wall => Ok(self.look(Some(at), now)),
            // The clock may have been set back meanwhile.
            Work::Wait { at, until } if until.since(now.wall) > LOOK_AGAIN_MS => {
                Ok(self.look(Some(at), now))
            }
            Work::Wait { until, .. } => Ok(Step::On(work, Progress::IdleUntil(until))),
            Work::Read { at, upto } => self.read(at, upto, now),
            Work::Letters { mut walk, upto } => {
                let over = self.consumers.carry_letters(&mut walk, LETTERS_A_STEP, upto, now);
                match over {
                    Ok(true) => {
                        self.observer.carried(walk.carried);
                        Ok(self.begin_state(upto, now))
                    }
                    Ok(false) => Ok(Step::On(Work::Letters { walk, upto }, Progress::Worked)),
                    Err(error) => busy(Work::Letters { walk, upto }, error),
                }
            }
            Work::State { boundary, mut part } => {
                match self.store.append_boundary(&boundary, true, &mut part) {
                    Ok(receipt) => {
                        let end = self.store.log().close(boundary.at);
                        let durable = Work::Durable { boundary, receipt, end };
                        Ok(Step::On(durable, Progress::Worked))
                    }
                    Err(error) => busy(Work::State { boundary, part }, error),
                }
            }
            Work::Durable { boundary, receipt, end } => {
                Ok(self.let_go(boundary, receipt, end, now))
            }
        }
    }

    /// Asks whether something may go; what is before `read` was found to hold nothing.
    fn look(&mut self, read: Option<Offset>, now: Now) -> Step {
        self.look_at = now.monotonic + LOOK_EVERY;
        let kept = self.store.kept();
        let later = Step::On(Work::Idle, idle(now, LOOK_EVERY));
        if !self.timer.is_caught_up(&self.store, now.wall) {
            return later;
        }
        match plan(&kept, self.store.log().segment_size(), now.wall) {
            Plan::Nothing => later,
            Plan::LetGo(upto) => {
                let at = read.unwrap_or(kept.begin).max(kept.begin);
                Step::On(Work::Read { at, upto }, Progress::Worked)
            }
        }
    }

    /// Reads on from `at`, and carries on what still waits.
    fn read(&mut self, at: Offset, upto: Offset, now: Now) -> Result<Step, RetentionError> {
        let (mut at, mut carried, mut stopped) = (at, 0, None);
        for _ in 0..RECORDS_A_STEP {
            if at >= upto {
                break;
            }
            let mut bytes = std::mem::take(&mut self.bytes);
            let (next, hold) = match self.store.log().reader().next(at, &mut bytes)? {
                Next::Record(record) => (
                    at.plus(record.header.padded_length() as u64),
                    carry(&self.store, &record, upto, self.retention_ms, now),
                ),
                Next::Other { next } => (next, Ok(Hold::Free)),
            };
            self.bytes = bytes;
            match hold {
                Ok(Hold::Free) => {}
                Ok(Hold::Carried) => carried += 1,
                Ok(Hold::Until(_)) | Err(_) => {
                    stopped = Some(hold);
                    break;
                }
            }
            at = next;
        }
        if carried > 0 {
            self.observer.carried(carried);
        }
        match stopped {
            Some(Ok(Hold::Until(until))) => Ok(self.wait(at, until, now)),
            // What was read before is not read again.
            Some(Err(error)) => match busy(Work::Read { at, upto }, error)? {
                // Something was appended, so it has worked.
                Step::Busy(work) if carried > 0 => Ok(Step::On(work, Progress::Worked)),
                step => Ok(step),
            },
            _ if at < upto => Ok(Step::On(Work::Read { at, upto }, Progress::Worked)),
            _ => Ok(letters(upto)),
        }
    }

    /// What is at `at` holds its segment. What lies before that may go all the same.
    fn wait(&self, at: Offset, until: Timestamp, now: Now) -> Step {
        let segment = at.get() - at.get() % self.store.log().segment_size();
        let kept = self.store.kept();
        let mut before = kept.boundaries.iter().rev();
        let before = before.find(|&&boundary| boundary.get() <= segment && boundary > kept.begin);
        if let Some(&before) = before {
            return letters(before);
        }
        let latest = now.wall.checked_add(LOOK_AGAIN_MS).unwrap_or(until);
        let soonest = now.wall.checked_add(LOOK_AGAIN_MS_MIN).unwrap_or(until);
        let until = until.min(latest).max(soonest);
        Step::On(Work::Wait { at, until }, Progress::IdleUntil(until))
    }

    fn begin_state(&mut self, upto: Offset, now: Now) -> Step {
        match self.store.boundary(upto) {
            Ok(boundary) => Step::On(Work::State { boundary, part: 0 }, Progress::Worked),
            Err(error) => {
                tracing::error!(at = upto.get(), %error, "the log cannot begin there");
                self.store.forget_boundary(upto);
                Step::On(Work::Idle, idle(now, LOOK_EVERY))
            }
        }
    }

    fn let_go(&mut self, boundary: Boundary, receipt: Receipt, end: Offset, now: Now) -> Step {
        match receipt.outcome() {
            Some(Durability::Durable) => {}
            None => {
                let durable = Work::Durable { boundary, receipt, end };
                return Step::Busy(durable);
            }
            // The log has failed, and with it the server ends.
            Some(Durability::Failed) => return Step::On(Work::Idle, Progress::Idle),
        }
        if self.store.log().durable() < end || self.store.dispatched() < end {
            return Step::Busy(Work::Durable { boundary, receipt, end });
        }
        // What was appended up to there may need it: a retry, a redrive.
        let kept = self.store.kept();
        let mut before = kept.segments.iter().filter(|(at, _)| *at < boundary.at);
        if before.all(|(_, segment)| segment.free_after < now.wall) {
            for expired in self.store.let_go(&boundary) {
                self.observer.expired(&expired);
            }
            self.observer.let_go(boundary.at);
        } else {
            self.store.log().reopen();
        }
        Step::On(Work::Idle, Progress::Worked)
    }
}

/// The same again a little later, if it may be possible then.
fn busy(work: Work, error: impl Into<RetentionError>) -> Result<Step, RetentionError> {
    match error.into() {
        error if error.is_busy() => Ok(Step::Busy(work)),
        error => Err(error),
    }
}

fn letters(upto: Offset) -> Step {
    Step::On(Work::Letters { walk: LettersWalk::default(), upto }, Progress::Worked)
}

fn idle(now: Now, wait: Duration) -> Progress {
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    now.wall.checked_add(wait).map_or(Progress::Idle, Progress::IdleUntil)
}

impl Stage for RetentionStage {
    fn name(&self) -> &'static str {
        "retention"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        let wait = || idle(now, Duration::from_millis(LOG_BUSY_MS));
        match self.write_down() {
            Ok(true) => return Ok(Progress::Worked),
            Ok(false) => {}
            Err(error) => {
                let error = RetentionError::from(error);
                return match error.is_busy() {
                    true => Ok(wait()),
                    false => Err(StageError::new(self.name(), error)),
                };
            }
        }
        if matches!(self.work, Work::Idle) && now.monotonic < self.look_at {
            return Ok(idle(now, self.look_at - now.monotonic));
        }
        let work = std::mem::replace(&mut self.work, Work::Idle);
        match self.go_on(work, now) {
            Ok(Step::On(work, progress)) => {
                self.work = work;
                Ok(progress)
            }
            Ok(Step::Busy(work)) => {
                self.work = work;
                Ok(wait())
            }
            Err(error) => Err(StageError::new(self.name(), error)),
        }
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}
