//! What is pending, read out of the wheel while it turns.
//!
//! ```text
//!   Place ──> resolve (the wheel's lock) ──> legs: a few slots' states, copied
//!     ^                                        │
//!     │                                        v
//!     └──────────── one record on ──── chains of the TimerLogs, outside of the lock
//!                                              │ deadline, topic, tag hash, settled bits
//!                                              v
//!                                        entries, to whoever asked
//! ```
//!
//! The order is that of the slots: the near ring by seconds, then the far ring by its 3-day slots, and
//! within a slot newest filed first. What waits in the delay levels comes before all that, queue by queue.
//!
//! Ground rules:
//!
//! - Whether an entry is pending is asked of the settled bits and of nothing else. The wheel only says
//!   where to look; its counts are figures.
//! - The wheel's lock is held to copy the states of at most 256 slots, never while a chain is read.
//! - A walk ends at a bound of work, not at a bound of time alone; a [`Place`] says where it goes on,
//!   and may be kept for as long as one likes.
//! - **Races.** While a walk rests, slots are fired and emptied, and a far slot is re-filed into near
//!   ones that the walk may have passed. What was pending all along is passed over by none of it: see
//!   [`Place`] for how. A piece of a chain that is gone because its slot was done meanwhile is looked up
//!   anew, not an error.
//! - Nothing here waits, but for [`Pending::catch_up`].

mod budget;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod legs;
mod levels;
mod place;
mod timeline;
mod walk;

pub use budget::Budget;
pub use place::{PLACE_LENGTH, Place};
pub use timeline::{Bucket, Timeline, TimelineError};
pub use walk::{Step, Walk, WalkError, Wanted};

use std::sync::Arc;
use std::time::Duration;

use timerlog::WheelReader;

use super::Shared;
use crate::clock::Clock;
use crate::store::{Store, TIMER_TOPIC_ID};
use crate::sync::Ordering;

/// How long a reader waits for the timer to come to what is visible in the log.
pub const CATCH_UP: Duration = Duration::from_secs(1);

/// Reads what is pending, from any thread.
#[derive(Debug)]
pub struct Pending {
    store: Arc<Store>,
    shared: Arc<Shared>,
    reader: WheelReader,
    precision_ms: u64,
    /// Near slots in a far slot.
    far_width: u64,
}

impl Pending {
    pub fn new(store: Arc<Store>, shared: Arc<Shared>) -> Self {
        let wheel = shared.wheel.lock();
        let reader = wheel.reader();
        let (precision_ms, far_width) = (u64::from(wheel.precision_ms()), wheel.far_width());
        drop(wheel);
        Self { store, shared, reader, precision_ms, far_width }
    }

    /// Milliseconds in a near slot.
    pub fn precision_ms(&self) -> u64 {
        self.precision_ms
    }

    /// Blocks until everything that is visible in the log as of now is in the wheel, so that whoever was
    /// told that a message is stored finds it; [`CATCH_UP`] at most. After a start the timer may be
    /// further behind than that: then `false`, and a walk shows what is there.
    pub fn catch_up(&self, clock: &dyn Clock) -> bool {
        let start = clock.now().monotonic;
        if !self.store.wait_for_dispatch(self.store.log().visible(), CATCH_UP) {
            return false;
        }
        let topic = self.store.topic_by_id(TIMER_TOPIC_ID);
        let units = topic.map_or(0, |topic| topic.queues[0].units.committed());
        let passed = clock.now().monotonic.saturating_sub(start);
        self.shared.filed_upto.wait_for(units, CATCH_UP.saturating_sub(passed))
    }

    fn slot_of(&self, deadline_ms: u64) -> u64 {
        deadline_ms / self.precision_ms
    }

    /// The highest near slot in which something may be settled that the counts do not know of, or due
    /// before the slot begins.
    fn opened(&self) -> u64 {
        self.shared.opened.load(Ordering::Relaxed)
    }
}
