//! How a wheel becomes durable, and gives back the room it does not need.

use super::checkpoint::TimerCheckpoint;
use super::refile::Refiling;
use super::snapshot::{self, Head, Snapshot};
use super::wheel::TimerWheel;
use crate::error::TimerError;
use crate::segment::{RowError, RowFlush};

/// Whether the next flush must also take a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SnapshotDue {
    No,
    /// The read time has stepped back over slots that were settled and emptied. The logs alone
    /// would fill them again.
    SteppedBack,
    /// The last that was captured was not written, and perhaps it was due for that reason.
    Failed,
}

impl TimerWheel {
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
            lineage: self.lineage,
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
            SnapshotDue::SteppedBack | SnapshotDue::Failed => self.snapshot(),
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

    /// What was captured last could not be written: another one is due.
    pub fn snapshot_failed(&mut self) {
        self.snapshot_due = SnapshotDue::Failed;
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
