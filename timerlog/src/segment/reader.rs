//! The reading side of a row.

use std::sync::Arc;

use super::shared::Shared;
use super::{RowError, name};
use crate::sync::Ordering;

/// Reads a row while its writer appends. Clones read the same row.
#[derive(Clone, Debug)]
pub struct RowReader {
    pub(super) shared: Arc<Shared>,
}

impl RowReader {
    /// The position below which bytes may be read: all that was appended and not cut off again.
    pub fn committed(&self) -> u64 {
        self.shared.committed.load(Ordering::Acquire)
    }

    /// The position of the oldest byte kept.
    pub fn begin(&self) -> u64 {
        self.shared.begin()
    }

    /// The length of each file, in bytes.
    pub fn segment_size(&self) -> u64 {
        self.shared.segment_size
    }

    /// The path of the file that holds `position`, and the offset in it: for messages.
    pub fn place(&self, position: u64) -> (String, u64) {
        let offset = position % self.shared.segment_size;
        match self.shared.find(position, 0) {
            Some((_, segment)) => (segment.file.path(), offset),
            None => (name::encode(position - offset), offset),
        }
    }

    /// Fills `buffer` from `position` by a copy out of the page cache, without a system call.
    ///
    /// # Errors
    ///
    /// [`RowError::OutOfReach`] when the bytes are not below [`RowReader::committed`] within one
    /// file that is kept; [`RowError::Disk`] when the file cannot be mapped.
    pub fn read(&self, position: u64, buffer: &mut [u8]) -> Result<(), RowError> {
        let end = self.committed();
        let within = position.checked_add(buffer.len() as u64).is_some_and(|last| last <= end);
        let found = self.shared.find(position, buffer.len()).filter(|_| within);
        let Some((start, segment)) = found else {
            return Err(self.out_of_reach(position, buffer.len(), end));
        };
        if segment.mapping()?.read(position - start, buffer) {
            return Ok(());
        }
        Err(self.out_of_reach(position, buffer.len(), end))
    }

    /// The first position from `position` on, up to the end of the last file, where there may be
    /// anything but zeros: for recovery, which need not read what was allocated and never written.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn next_data(&self, position: u64) -> Result<Option<u64>, RowError> {
        let mut at = position;
        while let Some((start, segment)) = self.shared.find(at, 0) {
            if let Some(found) = segment.file.next_data(at - start)? {
                return Ok(Some(start + found));
            }
            at = start + self.shared.segment_size;
        }
        Ok(None)
    }

    /// Fills `buffer` from `position` by a system call, so that a bad sector is an error. It may
    /// read past [`RowReader::committed`], up to the end of the last file: for recovery, which
    /// must look at leftovers to judge them.
    ///
    /// # Errors
    ///
    /// [`RowError::OutOfReach`] when the bytes are not within one file that is kept;
    /// [`RowError::Disk`] when the disk fails.
    pub fn read_exact_from_disk(&self, position: u64, buffer: &mut [u8]) -> Result<(), RowError> {
        match self.shared.find(position, buffer.len()) {
            Some((start, segment)) => Ok(segment.file.read_at(position - start, buffer)?),
            None => Err(self.out_of_reach(position, buffer.len(), self.shared.allocated())),
        }
    }

    fn out_of_reach(&self, position: u64, length: usize, end: u64) -> RowError {
        RowError::OutOfReach { position, length, begin: self.begin(), end }
    }
}
