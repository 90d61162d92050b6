//! Stage 3: open slots ahead of their time, walk their chains, and move the read time over what is done.

use std::collections::BTreeMap;
use std::sync::Arc;

use timerlog::{Advance, EntryKind, Position, TimerError, TimerWheel, WheelReader};

use super::{Outstanding, Shared, Walked};
use crate::clock::{Now, Timestamp};
use crate::stage::{Pipe, Progress, Signal, Stage, StageError};
use crate::sync::Ordering;

/// Entries that may be walked and not settled before no further slot is opened: what bounds memory when
/// much is due at once. The first open slot is walked whatever its size.
const MAX_IN_FLIGHT: u64 = 2_000_000;

/// Slots that may be open at once: a backlog is drained slot by slot, in order.
const MAX_OPEN: usize = 64;

/// How far past the read time slots are looked at, whatever the clock says: after a long downtime the
/// read time moves over the empty ones first, in one step.
const MAX_LOOK: u64 = 256;

#[derive(Debug)]
pub(super) struct DequeueGet {
    shared: Arc<Shared>,
    reader: WheelReader,
    out: Pipe<Walked>,
    lookahead_ms: u64,
    /// What is due is in order once the wheel has all that was to be filed when the server started.
    begins_at: u64,
    open: BTreeMap<u64, OpenSlot>,
}

/// A slot that was walked, and is not done.
#[derive(Debug)]
struct OpenSlot {
    /// The newest record seen: the slot has more when its `last` is another.
    walked: Position,
    outstanding: Outstanding,
}

/// A chain to walk.
#[derive(Clone, Copy, Debug)]
struct Walk {
    slot: u64,
    last: Position,
    until: Option<Position>,
}

impl DequeueGet {
    /// Begins when the first `begins_at` units of the timer topic are filed.
    pub(super) fn new(
        shared: Arc<Shared>,
        out: Pipe<Walked>,
        lookahead_ms: u64,
        begins_at: u64,
    ) -> Self {
        let reader = shared.wheel.lock().reader();
        Self { shared, reader, out, lookahead_ms, begins_at, open: BTreeMap::new() }
    }

    /// Moves the read time over slots that are done. `true` when it has moved.
    fn advance(&mut self, wheel: &mut TimerWheel, today: u64) -> bool {
        let before = wheel.read_time();
        while wheel.read_time() < today {
            let slot = wheel.read_time();
            let walked = match self.open.get(&slot) {
                Some(open) if !open.outstanding.is_zero() => break,
                Some(open) => Some(open.walked),
                None => None,
            };
            match wheel.advance(slot, walked) {
                Advance::Moved => {
                    self.open.remove(&slot);
                    if self.open.is_empty() {
                        wheel.skip_empty(today);
                    }
                }
                // More was filed since the walk: it is walked next.
                Advance::Joined { .. } => break,
                Advance::FarSlotDue | Advance::NotOpen { .. } => {
                    self.shared.enqueue_put.raise();
                    break;
                }
            }
        }
        if wheel.read_time() / wheel.far_width() != before / wheel.far_width() {
            self.shared.enqueue_put.raise();
        }
        wheel.read_time() != before
    }

    /// The first slot up to `horizon` that has something not walked yet.
    fn next_walk(&self, wheel: &TimerWheel, horizon: u64) -> Option<Walk> {
        let first = wheel.read_time();
        let crowded = self.shared.in_flight.load(Ordering::Relaxed) >= MAX_IN_FLIGHT;
        for slot in first..=horizon.min(first + MAX_LOOK) {
            if slot > first && (crowded || self.open.len() >= MAX_OPEN) {
                return None;
            }
            let Some(state) = wheel.slot(slot) else { continue };
            let until = self.open.get(&slot).map(|open| open.walked);
            if until != Some(state.last) {
                return Some(Walk { slot, last: state.last, until });
            }
        }
        None
    }

    fn walk(&self, walk: Walk) -> Result<Vec<timerlog::Entry>, TimerError> {
        let mut entries = Vec::new();
        for step in self.reader.near().chain(walk.slot, walk.last, walk.until) {
            let (_, record) = step?;
            if record.kind != EntryKind::Cancel {
                entries.push(record.entry);
            }
        }
        Ok(entries)
    }

    /// When there is something to do again of itself: a slot comes within the look-ahead, or the open one
    /// is over.
    fn next_wake(&self, wheel: &TimerWheel, now: Now) -> Option<Timestamp> {
        let precision = u64::from(wheel.precision_ms());
        let today = wheel.slot_of(now.wall.as_millis());
        let ahead = wheel.slot_of(now.wall.checked_add(self.lookahead_ms)?.as_millis());
        let opens = ((ahead + 1) * precision).saturating_sub(self.lookahead_ms);
        let ends = (today + 1) * precision;
        Some(Timestamp::from_millis(opens.min(ends)))
    }
}

impl Stage for DequeueGet {
    fn name(&self) -> &'static str {
        "dequeue_get"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        // Filing raises the signal.
        if self.out.is_full() || self.shared.filed_upto.get() < self.begins_at {
            return Ok(Progress::Idle);
        }
        let shared = Arc::clone(&self.shared);
        let mut wheel = shared.wheel.lock();
        let today = wheel.slot_of(now.wall.as_millis());
        let moved = self.advance(&mut wheel, today);
        let horizon = now.wall.as_millis().saturating_add(self.lookahead_ms);
        let horizon = wheel.slot_of(horizon);
        let Some(walk) = self.next_walk(&wheel, horizon) else {
            let wake = self.next_wake(&wheel, now);
            return Ok(match wake {
                _ if moved => Progress::Worked,
                Some(wake) => Progress::IdleUntil(wake),
                None => Progress::Idle,
            });
        };
        self.shared.opened.fetch_max(walk.slot, Ordering::Relaxed);
        drop(wheel);
        let entries = self.walk(walk).map_err(|error| self.shared.failed("dequeue_get", &error))?;
        let open = self
            .open
            .entry(walk.slot)
            .or_insert_with(|| OpenSlot { walked: walk.last, outstanding: Outstanding::new() });
        open.walked = walk.last;
        if !entries.is_empty() {
            let outstanding = open.outstanding.clone();
            outstanding.add(&self.shared, entries.len());
            let walked = Walked { slot: walk.slot, entries, outstanding };
            self.out.push(walked).expect("the pipe had room and this stage alone pushes");
        }
        Ok(Progress::Worked)
    }

    fn signal(&self) -> &Signal {
        &self.shared.dequeue_get
    }
}
