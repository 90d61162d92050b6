//! The wheel itself: what it consists of, and what it can be asked.

use std::ops::Range;
use std::sync::Arc;

use super::config::Config;
use super::durable::SnapshotDue;
use super::reader::WheelReader;
use super::recovery::Recovery;
use super::refile::Refiling;
use super::ring::Ring;
use super::slot::SlotState;
use super::track::Track;
use super::window::Window;
use crate::disk::Directory;

/// Two rings of slots over two TimerLogs, and the sole writer of both.
///
/// Slots are numbered in time since 1970: near slots by the precision, far slots by a quarter of the
/// near ring. Every entry that was filed and not settled is in a near slot at or after the read time,
/// or in a far slot at or after the far boundary. It may be there twice, and so may one that is
/// settled: the owner knows what is settled, and the wheel only where to look. What it never does is
/// miss one.
///
/// It is changed by one owner at a time; a [`WheelReader`] walks its slots meanwhile, from any
/// thread. The usual round is: [`file`](Self::file) what came in, [`refile`](Self::refile) what is
/// due for it, walk the [`slot`](Self::slot) at [`read_time`](Self::read_time), settle what was found
/// there, [`advance`](Self::advance); and from time to time [`flush`](Self::flush), write the
/// [`checkpoint`](Self::checkpoint), [`snapshot`](Self::snapshot), [`release`](Self::release).
#[derive(Debug)]
pub struct TimerWheel {
    pub(super) directory: Arc<dyn Directory>,
    pub(super) config: Config,
    pub(super) window: Window,
    pub(super) near: Track,
    pub(super) far: Track,
    pub(super) read_time: u64,
    pub(super) boundary: u64,
    pub(super) revision: u64,
    pub(super) mark: u64,
    pub(super) lineage: u64,
    pub(super) refiling: Option<Refiling>,
    pub(super) snapshot_due: SnapshotDue,
    pub(super) recovery: Recovery,
}

impl TimerWheel {
    /// The open slot: the first that is not wholly settled.
    pub fn read_time(&self) -> u64 {
        self.read_time
    }

    /// The first near slot number whose entries are in the far ring. While a far slot is re-filed,
    /// its entries are in either ring, or in both.
    pub fn far_boundary(&self) -> u64 {
        self.boundary
    }

    /// The number of near slots in a far slot.
    pub fn far_width(&self) -> u64 {
        self.window.far_width()
    }

    /// Milliseconds in a near slot.
    pub fn precision_ms(&self) -> u32 {
        self.config.precision_ms
    }

    /// Whether a snapshot must be written before the next checkpoint: after a step back, or one that failed.
    pub fn snapshot_is_due(&self) -> bool {
        self.snapshot_due != SnapshotDue::No
    }

    /// The near slot number of a deadline in milliseconds since 1970.
    pub fn slot_of(&self, deadline: u64) -> u64 {
        self.window.slot_of(deadline)
    }

    /// The first deadline, in milliseconds since 1970, that is too far away to be filed.
    pub fn deadline_limit(&self) -> u64 {
        self.window.end(self.boundary).saturating_mul(self.window.precision_ms)
    }

    /// The near slot `slot`, unless it is empty.
    pub fn slot(&self, slot: u64) -> Option<SlotState> {
        self.near.ring.get(slot)
    }

    /// The far slot `far_slot`, unless it is empty.
    pub fn far_slot(&self, far_slot: u64) -> Option<SlotState> {
        self.far.ring.get(far_slot)
    }

    /// The near slots of `range` that are not empty, in order. Costs a look at each occupied slot.
    pub fn slots_in(&self, range: Range<u64>) -> Vec<(u64, SlotState)> {
        slots_in(&self.near.ring, &range)
    }

    /// The far slots of `range`, a range of far slot numbers, that are not empty, in order.
    pub fn far_slots_in(&self, range: Range<u64>) -> Vec<(u64, SlotState)> {
        slots_in(&self.far.ring, &range)
    }

    /// The first near slots of `range` that are not empty, in order, at most `count_max` of them.
    /// Costs a look at each of those and at one bit for each place between them, so that a lock
    /// need not be held for long.
    pub fn first_slots_in(&self, range: Range<u64>, count_max: usize) -> Vec<(u64, SlotState)> {
        first_slots_in(&self.near.ring, range, count_max)
    }

    /// The same of the far slots of `range`, a range of far slot numbers.
    pub fn first_far_slots_in(&self, range: Range<u64>, count_max: usize) -> Vec<(u64, SlotState)> {
        first_slots_in(&self.far.ring, range, count_max)
    }

    /// Whether the far slot at the [far boundary](Self::far_boundary) is being re-filed: what is
    /// filed for its time meanwhile goes near.
    pub fn is_refiling(&self) -> bool {
        self.refiling.is_some()
    }

    /// How many entries are pending in the near slots of `range`. Costs a look at each occupied
    /// slot.
    pub fn pending_in(&self, range: Range<u64>) -> u64 {
        self.near.ring.pending_in(&range)
    }

    /// How many entries are pending in the far slots of `range`, a range of far slot numbers.
    pub fn far_pending_in(&self, range: Range<u64>) -> u64 {
        self.far.ring.pending_in(&range)
    }

    /// How many entries are pending in all: adds less cancels, since their slots were last empty.
    pub fn pending(&self) -> u64 {
        self.near.ring.pending() + self.far.ring.pending()
    }

    /// Bytes in the files of both logs that may still be led to.
    pub fn log_bytes(&self) -> u64 {
        let kept = |track: &Track| track.log.length() - track.log.begin();
        kept(&self.near) + kept(&self.far)
    }

    /// How the wheel was found when it was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// A reader of the chains, for any thread.
    pub fn reader(&self) -> WheelReader {
        WheelReader { near: self.near.log.reader(), far: self.far.log.reader() }
    }

    /// Marks the wheel as changed.
    pub(super) fn touch(&mut self) {
        self.revision += 1;
    }
}

fn slots_in(ring: &Ring, range: &Range<u64>) -> Vec<(u64, SlotState)> {
    let mut slots: Vec<_> = ring.iter().filter(|(number, _)| range.contains(number)).collect();
    slots.sort_unstable_by_key(|(number, _)| *number);
    slots
}

fn first_slots_in(ring: &Ring, range: Range<u64>, count_max: usize) -> Vec<(u64, SlotState)> {
    let mut slots = Vec::new();
    // One turn is all that there can be.
    let end = range.end.min(range.start.saturating_add(ring.length()));
    let mut start = range.start;
    while slots.len() < count_max
        && let Some(number) = ring.first_in(start..end)
    {
        slots.extend(ring.get(number).map(|state| (number, state)));
        start = number + 1;
    }
    slots
}
