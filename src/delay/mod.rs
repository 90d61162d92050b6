//! The delay levels: messages that wait for one of a few fixed delays, each delay in a queue of its own.
//!
//! ```text
//!   put with delayLevel 3 ─> record: level queue 2 ─> dispatch ─> SCHEDULE_TOPIC_XXXX, queue 2 (FIFO)
//!                                                                     │ scan: the head decides
//!                                                                     ▼
//!                                          settle and append delivery runs (reason Level)
//!                                                                     │
//!                              dispatch ─> ConsumeQueue of the real topic
//! ```
//!
//! All that waits in a queue has the same delay, so it is in the order of its deadlines, and the scan looks
//! at heads only: it sleeps until the first is due. Which level leads to which queue is decided at the start
//! ([`Levels`](crate::store::Levels)).
//!
//! Ground rules:
//!
//! - **The position is a hint.** Whether something is released is decided by the appender alone. What was
//!   cancelled, moved into the wheel or fired on request is found settled, and passed over.
//! - **Never early.** Each message is held against its own deadline, not only the head. Under a wall clock
//!   that was set back, what was put before stands in front with later deadlines: what was put since waits
//!   behind it, late by at most the step.
//! - **Overdue after a downtime** is released in order, 256 messages of a queue at a time; queues take turns.
//! - **One bad record is lost alone**: it is logged and passed over. A damaged file of the queue itself ends
//!   the server, as everywhere; it is derived, and built again when it is removed.
//! - After a jump of the clock by more than an hour releases are held, as firing is by the timer.
//! - A released message's record is read, its head alone: it says which topic and queue it belongs to.

mod scan;

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::clock_watch::ClockWatch;
use crate::message::LevelTable;
use crate::stage::Stage;
use crate::store::{MakeError, Store};

/// How the levels work.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// A jump of the wall clock by more than this, forward, while running, holds releases ...
    pub clock_jump_ms: u64,
    /// ... for so long.
    pub clock_hold_ms: u64,
}

/// Told what is released; called on the stage's thread.
pub trait Observer: Send {
    /// `count` messages were released `late_ms` after their deadline.
    fn released(&self, count: u64, late_ms: u64);
}

/// Makes the levels those of `table`, and answers the stage that releases them.
///
/// # Errors
///
/// When a level needs a new queue and the log takes no record of it.
pub fn open(
    store: &Arc<Store>,
    table: &LevelTable,
    settings: Settings,
    observer: Box<dyn Observer>,
    now: Timestamp,
) -> Result<Box<dyn Stage>, MakeError> {
    store.set_levels(table, now)?;
    let watch = ClockWatch::new(settings.clock_jump_ms, settings.clock_hold_ms);
    Ok(Box::new(scan::Scan::new(Arc::clone(store), watch, observer)))
}
