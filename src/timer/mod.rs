//! The timer: five stages that carry a message from the timer topic through the wheel to its topic.
//!
//! ```text
//!   units of rmq_sys_wheel_timer
//!     │ 1 enqueue_get      read units in order, find entry and tag
//!     ▼
//!     │ 2 enqueue_put      file in the wheel (its sole writer), re-file far slots
//!     ▼
//!   TimerLogs and slots
//!     │ 3 dequeue_get      open slots ahead of time, walk their chains, move the read time
//!     ▼
//!     │ 4 dequeue_message  route by the tag, leave out what is settled, group by queue
//!     ▼
//!     │ 5 dequeue_put      at the millisecond: settle and append delivery runs
//!     │ + dequeue_check    at the millisecond: tell of checks, and file those again that stay open
//!     ▼
//!   dispatch ─> ConsumeQueue of the real topic
//! ```
//!
//! Ground rules:
//!
//! - **The wheel is a hint.** It may hold an entry twice, or one that is settled; it never misses an
//!   unsettled one. Whether something fires is decided by the appender alone, in stage 5.
//! - A slot is done once every entry walked in it is settled *and* nothing was filed since the walk. Both
//!   are looked at under the wheel's lock, which stage 2 holds while it files.
//! - No stage calls another and no pipe closes a cycle: an entry for an open slot is found by stage 3 as
//!   the slot's `last` differs from the position last walked.
//! - A check that stays open is filed again under the wheel's lock before its old entry is reported done, so a
//!   wheel that holds an open transaction holds it at any moment. Such entries are notes: they do not count as
//!   pending.
//! - Nothing here reads a clock: `now` comes with each step.

mod dequeue_check;
mod dequeue_get;
mod dequeue_message;
mod dequeue_put;
mod enqueue_get;
mod enqueue_put;
mod open;
mod participant;
pub mod pending;

pub use dequeue_check::{CheckOutcome, DueChecks};
pub use open::{OpenError, Opened, check_files, open};
pub use participant::TimerParticipant;
pub use pending::Pending;

use std::sync::Arc;

use timerlog::disk::Directory;
use timerlog::{Filing, TimerError, TimerWheel};

use crate::clock::Timestamp;
pub use crate::clock_watch::ClockStep;
use crate::message::offset::Offset;
use crate::stage::{Signal, StageError, Watermark};
use crate::store::{QueueKey, Store, TIMER_TOPIC_ID};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// A slot that is not done so long after its time is behind.
const BEHIND_MS: u64 = 60_000;

/// The file that says: do not open this wheel, make a new one.
const CONDEMNED: &str = "condemned";

/// How the timer works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub wheel: timerlog::Config,
    /// How long before its time a slot is opened and walked.
    pub lookahead_ms: u64,
    /// A jump of the wall clock by more than this, forward, while running, holds firing ...
    pub clock_jump_ms: u64,
    /// ... for so long.
    pub clock_hold_ms: u64,
    /// Bytes of TimerLog after which a checkpoint takes a snapshot of the wheel.
    pub snapshot_after_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            wheel: timerlog::Config::default(),
            lookahead_ms: 3000,
            clock_jump_ms: 60 * 60 * 1000,
            clock_hold_ms: 60_000,
            snapshot_after_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Told what the timer does; called on the stages' threads.
pub trait Observer: Send + Sync {
    /// `count` messages fired `late_ms` after their deadline.
    fn fired(&self, count: u64, late_ms: u64);
    /// The wall clock was stepped.
    fn clock_stepped(&self, step: ClockStep);
}

/// What the stages share.
#[derive(Debug)]
pub struct Shared {
    wheel: Mutex<TimerWheel>,
    directory: Arc<dyn Directory>,
    /// Entries walked and not yet settled, over all open slots.
    in_flight: AtomicU64,
    /// Requests filed since the start.
    filed: AtomicU64,
    /// Units of the timer topic before this are filed, or need not be.
    filed_upto: Watermark,
    /// The highest near slot that was opened, or that something early joined.
    opened: AtomicU64,
    /// Firing is held after a jump of the clock.
    held: AtomicBool,
    enqueue_put: Signal,
    dequeue_get: Signal,
    dequeue_check: Signal,
}

impl Shared {
    /// Whether firing is held since the wall clock jumped.
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// How many units of the timer topic are in the wheel.
    pub fn filed_upto(&self) -> u64 {
        self.filed_upto.get()
    }

    /// Whether everything that was to fire more than a minute ago has: nothing waits to be filed, and the slots
    /// before are done.
    pub fn is_caught_up(&self, store: &Store, now: Timestamp) -> bool {
        let units = store.topic_by_id(TIMER_TOPIC_ID).map_or(0, |t| t.queues[0].units.committed());
        let wheel = self.wheel.lock();
        let read = wheel.read_time().saturating_mul(u64::from(wheel.precision_ms()));
        drop(wheel);
        !self.is_held()
            && self.filed_upto.get() >= units
            && read.saturating_add(BEHIND_MS) >= now.as_millis()
    }

    /// Bytes written to the TimerLogs since the start, re-filing aside.
    pub fn log_bytes_written(&self) -> u64 {
        self.filed.load(Ordering::Relaxed) * timerlog::RECORD_LENGTH
    }

    /// How a stage ends over an error of the wheel. Damage condemns the wheel: the next start makes
    /// it anew, for it would find the same damage in the same place.
    fn failed(&self, stage: &'static str, error: &TimerError) -> StageError {
        if let TimerError::NeedsRebuild(_) = error {
            let condemned = self.directory.create(CONDEMNED, 0).map(drop);
            if let Err(error) = condemned.and_then(|()| self.directory.sync()) {
                tracing::error!(%error, "the damaged wheel could not be condemned");
            }
        }
        StageError::new(stage, error)
    }
}

/// From stage 1 to 2: entries in the order of the timer topic.
#[derive(Debug)]
struct Requests {
    filings: Vec<Filing>,
    /// The unit after the last one that these stand for.
    upto: u64,
}

/// From stage 3 to 4: what one walk found in a slot.
#[derive(Debug)]
struct Walked {
    slot: u64,
    entries: Vec<timerlog::Entry>,
    outstanding: Outstanding,
}

/// From stage 4 to the checks: those that one walk found.
#[derive(Debug)]
struct WalkedChecks {
    slot: u64,
    entries: Vec<timerlog::Entry>,
    outstanding: Outstanding,
}

/// From stage 4 to 5: what is due in one queue, by (deadline, arrival).
#[derive(Debug)]
struct Run {
    queue: QueueKey,
    due: Vec<Due>,
    outstanding: Outstanding,
}

/// One message that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    deadline: Timestamp,
    cause: Offset,
    length: u32,
    tag_hash: u16,
}

/// How many walked entries of a slot are not settled yet.
#[derive(Clone, Debug)]
struct Outstanding {
    slot: Arc<AtomicU64>,
}

impl Outstanding {
    fn new() -> Self {
        Self { slot: Arc::default() }
    }

    fn add(&self, shared: &Shared, count: usize) {
        self.slot.fetch_add(count as u64, Ordering::Relaxed);
        shared.in_flight.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// `count` entries are settled, or need not be. The facts were appended before this.
    fn settled(&self, shared: &Shared, count: usize) {
        if count == 0 {
            return;
        }
        shared.in_flight.fetch_sub(count as u64, Ordering::Relaxed);
        let before = self.slot.fetch_sub(count as u64, Ordering::Release);
        if before == count as u64 {
            shared.dequeue_get.raise();
        }
    }

    fn is_zero(&self) -> bool {
        self.slot.load(Ordering::Acquire) == 0
    }
}
