//! The files of a row, shared by the writer, its readers and its flushes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::RowError;
use crate::disk::{DiskError, File, Mapping};
use crate::sync::{AtomicU64, Mutex, Ordering, RwLock};

/// One file of the row.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) file: Arc<dyn File>,
    /// How many writes are finished, and how many of them a finished sync has covered.
    written: AtomicU64,
    synced: AtomicU64,
    /// Held during a sync, so that a second flush waits for the first instead of passing it by.
    syncing: Mutex<()>,
    mapping: OnceLock<Arc<dyn Mapping>>,
}

impl Segment {
    pub(super) fn new(file: Arc<dyn File>) -> Arc<Self> {
        Arc::new(Self {
            file,
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            syncing: Mutex::new(()),
            mapping: OnceLock::new(),
        })
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.write_at(offset, bytes)?;
        self.written.fetch_add(1, Ordering::Release);
        Ok(())
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.written.load(Ordering::Acquire) != self.synced.load(Ordering::Acquire)
    }

    /// Syncs unless all finished writes are covered. A failure is latched before the next flush
    /// can get in, so that no file is ever synced again after it.
    fn sync(&self, shared: &Shared) -> Result<(), RowError> {
        let _alone = self.syncing.lock();
        shared.check()?;
        let written = self.written.load(Ordering::Acquire);
        if written != self.synced.load(Ordering::Acquire) {
            shared.latch(self.file.sync())?;
            self.synced.store(written, Ordering::Release);
        }
        Ok(())
    }

    /// The mapping of the file, made by the first reader that asks.
    pub(super) fn mapping(&self) -> Result<&Arc<dyn Mapping>, DiskError> {
        match self.mapping.get() {
            Some(mapping) => Ok(mapping),
            None => {
                let made = self.file.map()?;
                // Two readers may race to here; the mapping of the slower one is dropped.
                Ok(self.mapping.get_or_init(|| made))
            }
        }
    }
}

/// What the writer and its readers have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) segment_size: u64,
    pub(super) segments: RwLock<BTreeMap<u64, Arc<Segment>>>,
    pub(super) committed: AtomicU64,
    /// The error of the first failed sync.
    pub(super) failed: OnceLock<DiskError>,
}

impl Shared {
    pub(super) fn start_of(&self, position: u64) -> u64 {
        position - position % self.segment_size
    }

    pub(super) fn begin(&self) -> u64 {
        self.segments.read().keys().next().copied().unwrap_or(0)
    }

    pub(super) fn allocated(&self) -> u64 {
        self.segments.read().keys().next_back().map_or(0, |start| start + self.segment_size)
    }

    /// The segment that holds all of `position..position + length`, and where it starts.
    pub(super) fn find(&self, position: u64, length: usize) -> Option<(u64, Arc<Segment>)> {
        let start = self.start_of(position);
        let end = position.checked_add(length as u64)?;
        let segment = self.segments.read().get(&start).cloned()?;
        (end <= start + self.segment_size).then_some((start, segment))
    }

    /// Refuses once a sync has failed.
    pub(super) fn check(&self) -> Result<(), RowError> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone().into()))
    }

    /// Remembers the first failed sync and passes it on.
    pub(super) fn latch(&self, result: Result<(), DiskError>) -> Result<(), RowError> {
        result.map_err(|error| {
            let _ = self.failed.set(error.clone());
            error.into()
        })
    }
}

/// A flush that was begun; see [`Row::start_flush`](super::Row::start_flush).
#[derive(Debug)]
#[must_use = "nothing is durable until the flush has been waited for"]
pub struct RowFlush {
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) shared: Arc<Shared>,
}

impl RowFlush {
    /// Returns once the bytes are on the disk.
    ///
    /// # Errors
    ///
    /// As [`Row::flush`](super::Row::flush).
    pub fn wait(self) -> Result<(), RowError> {
        self.shared.check()?;
        self.segments.iter().try_for_each(|segment| segment.sync(&self.shared))
    }
}
