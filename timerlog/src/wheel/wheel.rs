//! The wheel itself: its state, how time moves over it, and how it becomes durable.

use std::ops::Range;
use std::sync::Arc;

use super::checkpoint::TimerCheckpoint;
use super::config::Config;
use super::reader::WheelReader;
use super::recovery::Recovery;
use super::refile::Refiling;
use super::ring::Ring;
use super::slot::SlotState;
use super::snapshot::{self, Head, Snapshot};
use super::track::Track;
use super::window::Window;
use crate::disk::Directory;
use crate::error::TimerError;
use crate::planted::{self, Fault};
use crate::position::Position;
use crate::segment::{RowError, RowFlush};

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
    pub(super) refiling: Option<Refiling>,
    pub(super) snapshot_due: SnapshotDue,
    pub(super) recovery: Recovery,
}

/// Whether the next flush must also take a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SnapshotDue {
    No,
    /// The read time has stepped back over slots that were settled and emptied. The logs alone
    /// would fill them again.
    SteppedBack,
}

/// What came of an attempt to move the read time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the read time may not have moved"]
pub enum Advance {
    /// The slot is settled and emptied; the next one is open.
    Moved,
    /// More was filed in the slot since it was walked. Walk from `last` to where the walk before
    /// began, and try again.
    Joined { last: Position },
    /// Another slot is open.
    NotOpen { read_time: u64 },
    /// The next far slot has to be re-filed first: see [`TimerWheel::refile`].
    FarSlotDue,
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

    /// Whether a snapshot must be written before the next checkpoint: after a step back.
    pub fn snapshot_is_due(&self) -> bool {
        self.snapshot_due == SnapshotDue::SteppedBack
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

    /// Settles the open slot `slot`, whose records up to `walked` were seen (`None`: it was empty),
    /// and opens the next.
    pub fn advance(&mut self, slot: u64, walked: Option<Position>) -> Advance {
        if slot != self.read_time {
            return Advance::NotOpen { read_time: self.read_time };
        }
        if slot >= self.boundary {
            return Advance::FarSlotDue;
        }
        match self.slot(slot) {
            Some(SlotState { last, .. })
                if Some(last) != walked && !planted::is(Fault::AdvanceWithoutJoin) =>
            {
                Advance::Joined { last }
            }
            _ => {
                self.near.ring.clear(slot);
                self.read_time += 1;
                self.touch();
                Advance::Moved
            }
        }
    }

    /// Moves the read time over empty slots: to the first that is not, to `upto`, or to the far
    /// boundary, whichever comes first. Returns where it is now. Never moves it back.
    pub fn skip_empty(&mut self, upto: u64) -> u64 {
        let end = upto.min(self.boundary);
        if self.read_time < end {
            // The boundary is never more than one turn ahead.
            self.read_time = self.near.ring.first_in(self.read_time..end).unwrap_or(end);
            self.touch();
        }
        self.read_time
    }

    /// Moves the read time back to `to`, for a wall clock that was set back, or as near to it as the
    /// slots in use allow: each must still have its own place in the ring. What is due before the
    /// read time then joins the open slot. Returns where the read time is now.
    ///
    /// Take a snapshot before the next checkpoint; [`TimerWheel::flush`] does.
    pub fn step_back(&mut self, to: u64) -> u64 {
        if to >= self.read_time {
            return self.read_time;
        }
        let end = self.end_in_use();
        let limit = match planted::is(Fault::UnclampedStepBack) {
            true => 0,
            false => self.window.step_back_limit(end),
        };
        let read_time = to.max(limit).min(self.read_time);
        if read_time < self.read_time {
            self.read_time = read_time;
            let lower = self.window.boundary_for(read_time).max(end);
            self.boundary = self.boundary.min(lower);
            self.snapshot_due = SnapshotDue::SteppedBack;
            self.touch();
        }
        self.read_time
    }

    /// A boundary that leaves every slot in use on the side where it is, and every far slot its own
    /// place in the ring.
    fn end_in_use(&self) -> u64 {
        if self.refiling.is_some() {
            return self.boundary + self.window.far_width();
        }
        let near_end = self.near.ring.highest().map_or(0, |slot| slot + 1);
        let far_end = self.far.ring.highest().map_or(0, |slot| slot + 1);
        let far_begin = far_end.saturating_sub(self.window.far_slots) * self.window.far_width();
        self.window.boundary_over(near_end).max(far_begin)
    }

    /// Notes how far the caller's source has been filed. The checkpoint of this state carries it.
    pub fn set_mark(&mut self, mark: u64) {
        self.mark = mark;
    }

    /// Where the wheel stands. It may be written once a flush that began at this moment or later
    /// has ended.
    ///
    /// While a far slot is re-filed this is the state from before, mark included: a crash begins the
    /// re-filing anew, and cuts off what it had filed.
    pub fn checkpoint(&self) -> TimerCheckpoint {
        self.refiling.as_ref().map_or_else(|| self.present(), Refiling::before)
    }

    pub(super) fn present(&self) -> TimerCheckpoint {
        TimerCheckpoint {
            precision_ms: self.config.precision_ms,
            near_slots: self.config.near_slots,
            far_slots: self.config.far_slots,
            segment_size: self.config.segment_size,
            near_floor: self.near.log.floor(),
            near_length: self.near.log.length(),
            far_floor: self.far.log.floor(),
            far_length: self.far.log.length(),
            read_time: self.read_time,
            far_boundary: self.boundary,
            revision: self.revision,
            mark: self.mark,
        }
    }

    /// Returns once everything filed before the call is on the disk; after a step back, also a
    /// snapshot.
    ///
    /// # Errors
    ///
    /// When the disk fails. A failed sync is not tried again: the wheel refuses all that follows.
    pub fn flush(&mut self) -> Result<(), TimerError> {
        self.take_due_snapshot()?;
        self.start_flush().wait()
    }

    pub(super) fn take_due_snapshot(&mut self) -> Result<(), TimerError> {
        match self.snapshot_due {
            SnapshotDue::No => Ok(()),
            SnapshotDue::SteppedBack => self.snapshot(),
        }
    }

    /// The flush of both logs as a value that may be waited for outside the mutex.
    pub fn start_flush(&mut self) -> WheelFlush {
        WheelFlush { near: self.near.log.start_flush(), far: self.far.log.start_flush() }
    }

    /// Takes and writes a snapshot. It shortens the next recovery, and it is what lets
    /// [`TimerWheel::release`] give files back.
    ///
    /// # Errors
    ///
    /// When the disk fails; the wheel goes on without it.
    pub fn snapshot(&mut self) -> Result<(), TimerError> {
        let due = self.snapshot_due;
        let snapshot = self.capture();
        snapshot.write(&*self.directory).inspect_err(|_| self.snapshot_due = due)?;
        Ok(())
    }

    /// The snapshot as a value that may be written outside the mutex. Costs a copy of each occupied
    /// slot, 32 bytes.
    ///
    /// After a step back it must be written before the next checkpoint is; if that fails, take
    /// another.
    pub fn capture(&mut self) -> Snapshot {
        for track in [&mut self.near, &mut self.far] {
            let floor = track.lowest_in_use();
            track.log.raise_floor(floor);
        }
        let near: Vec<_> = self.near.ring.iter().collect();
        let far: Vec<_> = self.far.ring.iter().collect();
        let head = Head {
            revision: self.revision,
            near_length: self.near.log.length(),
            far_length: self.far.log.length(),
            read_time: self.read_time,
            far_boundary: self.boundary,
            near_count: near.len() as u64,
            far_count: far.len() as u64,
        };
        self.snapshot_due = SnapshotDue::No;
        Snapshot { head, slots: [near, far].concat() }
    }

    /// Removes what `checkpoint`, which must be durable, and everything after it can do without:
    /// files of both logs that no slot leads to, and all but the two newest snapshots that are of
    /// use to it. Files of a log become free when their slots are settled and a snapshot has been
    /// captured since.
    ///
    /// A fallback to a checkpoint before this one may then find its files gone, and need a rebuild.
    /// Whoever keeps two checkpoints gives the older one.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn release(&mut self, checkpoint: &TimerCheckpoint) -> Result<(), TimerError> {
        self.near.log.release(checkpoint.near_floor)?;
        self.far.log.release(checkpoint.far_floor)?;
        Ok(snapshot::remove_older(&*self.directory, checkpoint.revision)?)
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

/// A flush of both logs that was begun; see [`TimerWheel::start_flush`].
#[derive(Debug)]
#[must_use = "nothing is durable until the flush has been waited for"]
pub struct WheelFlush {
    near: RowFlush,
    far: RowFlush,
}

impl WheelFlush {
    /// Returns once the bytes are on the disk.
    ///
    /// # Errors
    ///
    /// As [`TimerWheel::flush`].
    pub fn wait(self) -> Result<(), TimerError> {
        for flush in [self.near, self.far] {
            flush.wait().map_err(|error| match error {
                RowError::Disk(error) => TimerError::Disk(error),
                RowError::Damaged(damage) => TimerError::NeedsRebuild(damage),
                RowError::OutOfReach { .. } => unreachable!("a flush reads no position"),
            })?;
        }
        Ok(())
    }
}
