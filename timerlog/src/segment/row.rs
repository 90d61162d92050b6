//! The writing side of a row.

use std::sync::{Arc, OnceLock};

use super::open::find_segments;
use super::shared::{Segment, Shared};
use super::{RowError, RowFlush, RowReader, name};
use crate::disk::Directory;
use crate::sync::{AtomicU64, Ordering, RwLock};

/// Files are allocated and mapped by pages of this many bytes.
const PAGE_SIZE: u64 = 4096;

/// The sole writer of a row of segments.
#[derive(Debug)]
pub struct Row {
    directory: Arc<dyn Directory>,
    length: u64,
    shared: Arc<Shared>,
}

impl Row {
    /// Opens the row in `directory`, trusting only its first `length` bytes (those that are kept:
    /// the oldest files may have been released), which a flush of an earlier life must have made
    /// durable: no flush of this life covers them. What lies after them is space to append to.
    ///
    /// With a `length` before the oldest file nothing is trusted, and the row's length is where that
    /// file begins. An empty directory is a row of length 0.
    ///
    /// # Errors
    ///
    /// [`RowError::Damaged`], naming the file, when one is missing in the middle or before `length`,
    /// has a wrong length, or has a name that is not one of a segment of this size.
    ///
    /// # Panics
    ///
    /// When `segment_size` is not a multiple of 4096, or zero.
    pub fn open(
        directory: Arc<dyn Directory>,
        segment_size: u64,
        length: u64,
    ) -> Result<Self, RowError> {
        let whole_pages = segment_size > 0 && segment_size.is_multiple_of(PAGE_SIZE);
        assert!(whole_pages, "{segment_size} is not a whole number of pages");
        let segments = find_segments(&*directory, segment_size, length)?;
        let begin = segments.keys().next().copied().unwrap_or(0);
        let length = length.max(begin);
        let shared = Arc::new(Shared {
            segment_size,
            segments: RwLock::new(segments),
            committed: AtomicU64::new(length),
            failed: OnceLock::new(),
        });
        Ok(Self { directory, length, shared })
    }

    /// The position of the oldest byte kept: where the oldest file starts.
    pub fn begin(&self) -> u64 {
        self.shared.begin()
    }

    /// The position where the next byte is appended.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The position up to which there are files: how far a log that must look for its own tail has
    /// to look.
    pub fn allocated(&self) -> u64 {
        self.shared.allocated()
    }

    /// The length of each file, in bytes.
    pub fn segment_size(&self) -> u64 {
        self.shared.segment_size
    }

    /// How many bytes fit before the end of the present file. At the end of a file it is a whole
    /// segment, because the next append begins the next file.
    pub fn room(&self) -> u64 {
        self.shared.segment_size - self.length % self.shared.segment_size
    }

    /// Leaves the rest of the present file unused. What is skipped can be read and is zeros or
    /// leftovers. Does nothing at the start of a file.
    pub fn skip_to_next_segment(&mut self) {
        if !self.length.is_multiple_of(self.shared.segment_size) {
            self.reset(self.length + self.room());
        }
    }

    /// Appends `bytes` and returns the position of the first; makes the next file when the present
    /// one is full. Durable after [`Row::flush`]. After an error nothing has been appended.
    ///
    /// # Errors
    ///
    /// When the next file cannot be made ([`DiskError::is_full`](crate::disk::DiskError::is_full)),
    /// the write fails, or a sync has failed before.
    ///
    /// # Panics
    ///
    /// When `bytes` are longer than [`Row::room`]: an append never straddles two files.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64, RowError> {
        let position = self.length;
        let length = bytes.len() as u64;
        assert!(length <= self.room(), "{length} bytes straddle the file at {position}");
        self.prepare(position)?;
        self.write_at(position, bytes)?;
        self.reset(position + length);
        Ok(position)
    }

    /// Sees to it that the files up to and including the one that holds `position` exist, are
    /// allocated, and are durable by content and by name: so a later append there cannot meet a
    /// full disk.
    ///
    /// # Errors
    ///
    /// When a file cannot be made or synced; those before it stay.
    pub fn prepare(&mut self, position: u64) -> Result<(), RowError> {
        self.shared.check()?;
        while self.shared.allocated() <= position {
            let start = self.shared.allocated();
            let file = self.directory.create(&name::encode(start), self.shared.segment_size)?;
            self.shared.latch(file.sync())?;
            self.shared.latch(self.directory.sync())?;
            self.shared.segments.write().insert(start, Segment::new(file));
        }
        Ok(())
    }

    /// Writes `bytes` over what is at `position`: for recovery, which writes again what the page
    /// cache shows and the disk may lack. Durable after [`Row::flush`].
    ///
    /// # Errors
    ///
    /// When the write fails, or a sync has failed before.
    ///
    /// # Panics
    ///
    /// When the bytes are not within one file of the row.
    pub fn write_at(&mut self, position: u64, bytes: &[u8]) -> Result<(), RowError> {
        self.shared.check()?;
        let found = self.shared.find(position, bytes.len());
        let (start, segment) = found.expect("the caller writes within one file of the row");
        Ok(segment.write(position - start, bytes)?)
    }

    /// Cuts the row to `length`, or lengthens it over what recovery has found to be good. No byte
    /// is touched.
    ///
    /// # Panics
    ///
    /// When `length` is not within the files of the row.
    pub fn reset_length(&mut self, length: u64) {
        let files = self.begin()..=self.allocated();
        assert!(files.contains(&length), "{length} is not within {files:?}");
        self.reset(length);
    }

    fn reset(&mut self, length: u64) {
        self.length = length;
        self.shared.committed.store(length, Ordering::Release);
    }

    /// Returns once everything appended or written before the call is on the disk.
    ///
    /// # Errors
    ///
    /// When a sync fails, now or before. It is not tried again, and the row refuses all that
    /// follows.
    pub fn flush(&mut self) -> Result<(), RowError> {
        self.start_flush().wait()
    }

    /// The flush as a value that may be carried to another thread, so that appends can go on while
    /// the disk works. It covers what was appended before this call. Until it has been waited for,
    /// nothing is durable; one that is dropped is made good by the next flush.
    pub fn start_flush(&mut self) -> RowFlush {
        let segments = self.shared.segments.read();
        let dirty = segments.values().filter(|segment| segment.is_dirty());
        RowFlush { segments: dirty.cloned().collect(), shared: Arc::clone(&self.shared) }
    }

    /// Removes the files that lie wholly before `position`, oldest first, durably. Files that hold
    /// bytes at or after `position` or at or after [`Row::length`] stay, and so does the newest:
    /// its name is what the row knows its place by. Readers that are in the
    /// midst of a removed file finish; later reads there are out of reach.
    ///
    /// # Errors
    ///
    /// When a file cannot be removed; those before it are gone.
    pub fn release(&mut self, position: u64) -> Result<(), RowError> {
        self.shared.check()?;
        let newest = self.shared.allocated().saturating_sub(1);
        let keep = self.shared.start_of(position.min(self.length).min(newest));
        let released: Vec<u64> =
            self.shared.segments.read().range(..keep).map(|(start, _)| *start).collect();
        for start in &released {
            self.directory.remove(&name::encode(*start))?;
            self.shared.segments.write().remove(start);
        }
        if released.is_empty() {
            return Ok(());
        }
        self.shared.latch(self.directory.sync())
    }

    /// A reader of this row, for any thread.
    pub fn reader(&self) -> RowReader {
        RowReader { shared: Arc::clone(&self.shared) }
    }
}
