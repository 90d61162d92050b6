//! The timer's part of a checkpoint.
//!
//! ```text
//!  0                                     n        n + 8
//!  +-------------------------------------+--------+
//!  | the wheel's checkpoint (timerlog)   | opened |     n = TimerCheckpoint::SIZE
//!  +-------------------------------------+--------+
//! ```
//!
//! *opened* (little-endian) is the highest near slot that was opened, or that something early joined: after a
//! clock was set back, what is due earlier stands there, and a list by time looks that far. The crc is that of
//! the checkpoint that holds both.

use std::sync::Arc;

use timerlog::{Compaction, Entry, TimerCheckpoint, TimerError, TimerWheel};

use super::Shared;
use crate::commitlog::Outcome;
use crate::message::offset::Offset;
use crate::store::checkpoint::Participant;
use crate::store::{Store, StoreError};
use crate::sync::{Mutex, Ordering};

/// Records of a far slot that are written again in one go, to free those before them: some milliseconds under
/// the wheel's lock, and 3 MiB. A far slot with more keeps its place until its time comes.
const COMPACT_RECORDS_MAX: usize = 65_536;

/// Syncs the TimerLogs, takes a snapshot of the wheel now and then, says how far both are, and gives back the
/// files that no checkpoint needs.
#[derive(Debug)]
pub struct TimerParticipant {
    store: Arc<Store>,
    shared: Arc<Shared>,
    snapshot_after_bytes: u64,
    snapshot_at_bytes: Mutex<u64>,
    checkpoints: Mutex<Checkpoints>,
}

/// The last that was captured, and the last that is on the disk.
#[derive(Debug)]
struct Checkpoints {
    captured: TimerCheckpoint,
    written: TimerCheckpoint,
}

impl TimerParticipant {
    pub(super) fn new(store: Arc<Store>, shared: Arc<Shared>, snapshot_after_bytes: u64) -> Self {
        let (bytes, found) = {
            let wheel = shared.wheel.lock();
            (wheel.log_bytes(), wheel.checkpoint())
        };
        let snapshot_at_bytes = Mutex::new(bytes);
        // As the wheel was found is as the checkpoint on the disk has it, or it is new and has nothing to free.
        let checkpoints = Mutex::new(Checkpoints { captured: found, written: found });
        Self { store, shared, snapshot_after_bytes, snapshot_at_bytes, checkpoints }
    }

    /// Makes the far log shorter where few old records hold much of it.
    fn compact(&self, wheel: &mut TimerWheel) -> Result<(), TimerError> {
        let settled = self.store.log().settled();
        // What was cancelled is told by its cancel, which also corrects the counts.
        let mut fired = |entry: &Entry| {
            matches!(settled.get(Offset::new(entry.offset)), Ok(Some(Outcome::Delivered)))
        };
        while let Compaction::Done { .. } = wheel.compact(COMPACT_RECORDS_MAX, &mut fired)? {}
        Ok(())
    }

    /// Takes a snapshot at the next checkpoint, so that the next start replays nothing.
    pub fn want_snapshot(&self) {
        *self.snapshot_at_bytes.lock() = 0;
    }
}

impl Participant for TimerParticipant {
    fn capture(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let mut snapshot_at = self.snapshot_at_bytes.lock();
        let (checkpoint, opened, flush, snapshot) = {
            let mut wheel = self.shared.wheel.lock();
            let bytes = wheel.log_bytes();
            let grown = bytes.saturating_sub(*snapshot_at) >= self.snapshot_after_bytes;
            let wanted = grown || *snapshot_at == 0 || wheel.snapshot_is_due();
            if wanted {
                match self.compact(&mut wheel) {
                    // Then it stays as long as it is: what is compacted needs room first.
                    Err(error) if error.wants_room() => {}
                    compacted => compacted.map_err(store_error)?,
                }
            }
            let snapshot = wanted.then(|| {
                *snapshot_at = bytes.max(1);
                wheel.capture()
            });
            let opened = self.shared.opened.load(Ordering::Relaxed);
            (wheel.checkpoint(), opened, wheel.start_flush(), snapshot)
        };
        // The disk works while stage 2 goes on filing.
        flush.wait().map_err(store_error)?;
        if let Some(snapshot) = snapshot
            && let Err(error) = snapshot.write(&*self.shared.directory)
        {
            // It is taken again at the next checkpoint.
            *snapshot_at = 0;
            self.shared.wheel.lock().snapshot_failed();
            return Err(error.into());
        }
        self.checkpoints.lock().captured = checkpoint;
        Ok(Some([&checkpoint.encode()[..], &opened.to_le_bytes()].concat()))
    }

    fn written(&self) -> Result<(), StoreError> {
        let mut checkpoints = self.checkpoints.lock();
        let captured = checkpoints.captured;
        let before = std::mem::replace(&mut checkpoints.written, captured);
        self.shared.wheel.lock().release(&before).map_err(store_error)
    }
}

/// The two parts of what a capture gave; nothing when it has another length.
pub(super) fn parts_of(captured: &[u8]) -> Option<(&[u8; TimerCheckpoint::SIZE], u64)> {
    let (checkpoint, opened) = captured.split_first_chunk()?;
    Some((checkpoint, u64::from_le_bytes(opened.try_into().ok()?)))
}

/// How long it is.
pub(super) const LENGTH: usize = TimerCheckpoint::SIZE + size_of::<u64>();

fn store_error(error: TimerError) -> StoreError {
    match error {
        TimerError::Disk(error) => error.into(),
        TimerError::NeedsRebuild(damage) => StoreError::Timer(damage),
    }
}
