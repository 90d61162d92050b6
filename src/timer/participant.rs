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
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use timerlog::{TimerCheckpoint, TimerError};

use super::Shared;
use crate::store::StoreError;
use crate::store::checkpoint::Participant;

/// Syncs the TimerLogs, takes a snapshot of the wheel now and then, and says how far both are.
#[derive(Debug)]
pub struct TimerParticipant {
    shared: Arc<Shared>,
    snapshot_after_bytes: u64,
    snapshot_at_bytes: Mutex<u64>,
}

impl TimerParticipant {
    pub(super) fn new(shared: Arc<Shared>, snapshot_after_bytes: u64) -> Self {
        let snapshot_at_bytes = Mutex::new(shared.wheel.lock().log_bytes());
        Self { shared, snapshot_after_bytes, snapshot_at_bytes }
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
            let snapshot = wanted.then(|| {
                *snapshot_at = bytes.max(1);
                wheel.capture()
            });
            let opened = self.shared.opened.load(Ordering::Relaxed);
            (wheel.checkpoint(), opened, wheel.start_flush(), snapshot)
        };
        // The disk works while stage 2 goes on filing.
        flush.wait().map_err(store_error)?;
        if let Some(snapshot) = snapshot {
            snapshot.write(&*self.shared.directory)?;
        }
        Ok(Some([&checkpoint.encode()[..], &opened.to_le_bytes()].concat()))
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
