//! The writing side of a TimerLog, and reading it through from one place to another.

use std::sync::Arc;

use super::chain::ChainReader;
use super::error::{damage, from_row};
use super::header::{self, Header};
use super::record::{self, Record};
use crate::disk::Directory;
use crate::error::{Damage, DamageKind, TimerError};
use crate::position::Position;
use crate::segment::{Row, RowError, RowFlush};
use crate::sync::{AtomicU64, Ordering};

/// How much is read at once when the log is read through.
const BLOCK_SIZE: u64 = 2048 * record::STEP;

/// Which log this is, and how its files are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// A multiple of 12,288: of the page size, and of the record size.
    pub(crate) segment_size: u64,
    pub(crate) slot_width_ms: u64,
    /// Tells this log from one that was here before and was made anew.
    pub(crate) lineage: u64,
}

/// How much of the log on disk is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Below it everything is settled, and files may be gone.
    pub(crate) floor: u64,
    /// Past it nothing is read.
    pub(crate) length: u64,
}

#[derive(Debug)]
pub(crate) struct TimerLog {
    row: Row,
    shape: Shape,
    floor: Arc<AtomicU64>,
}

impl TimerLog {
    /// Removes what there is and begins an empty log.
    pub(crate) fn create(directory: Arc<dyn Directory>, shape: Shape) -> Result<Self, TimerError> {
        for name in directory.list()? {
            directory.remove(&name)?;
        }
        directory.sync()?;
        Self::open(directory, shape, Extent { floor: 0, length: 0 })
    }

    /// Opens the log, cut to `extent`.
    pub(crate) fn open(
        directory: Arc<dyn Directory>,
        shape: Shape,
        extent: Extent,
    ) -> Result<Self, TimerError> {
        assert!(shape.segment_size.is_multiple_of(record::STEP), "records straddle the files");
        let path = directory.path();
        let row = match Row::open(directory, shape.segment_size, extent.length) {
            Ok(row) => row,
            Err(RowError::Damaged(damage)) => return Err(damage.into()),
            Err(RowError::Disk(error)) => return Err(error.into()),
            Err(RowError::OutOfReach { .. }) => unreachable!("opening reads no position"),
        };
        let log = Self { row, shape, floor: Arc::new(AtomicU64::new(extent.floor)) };
        let first = extent.floor - extent.floor % shape.segment_size;
        if log.row.begin() > first.min(extent.length) || log.row.length() != extent.length {
            return Err(Damage::of(format!("{path}/{first:020}"), DamageKind::Missing).into());
        }
        log.check_headers()?;
        Ok(log)
    }

    fn check_headers(&self) -> Result<(), TimerError> {
        let reader = self.row.reader();
        let mut start = self.row.begin();
        while start < self.row.length() {
            let mut bytes = [0; header::SIZE];
            reader
                .read_exact_from_disk(start, &mut bytes)
                .map_err(|error| from_row(error, &reader))?;
            self.header(start).check(&bytes).map_err(|kind| damage(&reader, start, kind))?;
            start += self.shape.segment_size;
        }
        Ok(())
    }

    fn header(&self, start: u64) -> Header {
        let Shape { slot_width_ms, lineage, .. } = self.shape;
        Header { start, slot_width_ms, lineage }
    }

    pub(crate) fn length(&self) -> u64 {
        self.row.length()
    }

    pub(crate) fn begin(&self) -> u64 {
        self.row.begin()
    }

    pub(crate) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    /// Every entry in a record below `floor` is settled from now on.
    pub(crate) fn raise_floor(&mut self, floor: u64) {
        self.floor.fetch_max(floor, Ordering::AcqRel);
    }

    /// Where the next records will be.
    pub(crate) fn places(&self) -> Places {
        Places { next: self.row.length(), segment_size: self.shape.segment_size }
    }

    /// Makes the files that the next `count` records will stand in.
    pub(crate) fn make_room(&mut self, count: usize) -> Result<(), TimerError> {
        let mut places = self.places();
        let Some(last) = (0..count).map(|_| places.take()).last() else { return Ok(()) };
        self.row.prepare(last.get()).map_err(|error| from_row(error, &self.row.reader()))
    }

    /// Appends `records`, which know their places from [`TimerLog::places`], with one write for
    /// each file they touch. After an error none of them is in the log.
    pub(crate) fn append(&mut self, records: &[(Position, Record)]) -> Result<(), TimerError> {
        let length = self.row.length();
        let segment_size = self.shape.segment_size;
        let file_of = |position: Position| position.get() / segment_size;
        for run in records.chunk_by(|(one, _), (next, _)| file_of(*one) == file_of(*next)) {
            if let Err(error) = self.append_run(run) {
                // The runs before this one must not stay: their slots were never told of them.
                self.row.reset_length(length);
                return Err(from_row(error, &self.row.reader()));
            }
        }
        Ok(())
    }

    fn append_run(&mut self, run: &[(Position, Record)]) -> Result<(), RowError> {
        let mut bytes = Vec::with_capacity((run.len() + 1) * record::SIZE);
        let start = self.row.length();
        if start.is_multiple_of(self.shape.segment_size) {
            bytes.extend(self.header(start).encode());
        }
        for (position, record) in run {
            assert_eq!(position.get(), start + bytes.len() as u64, "the record has another place");
            bytes.extend(record.encode(*position));
        }
        self.row.append(&bytes)?;
        Ok(())
    }

    /// Reads every record from `from` to the end of the log, oldest first, by system calls.
    pub(crate) fn replay(
        &self,
        from: u64,
        mut visit: impl FnMut(Position, &Record) -> Result<(), DamageKind>,
    ) -> Result<(), TimerError> {
        let reader = self.row.reader();
        let mut block = Vec::new();
        let mut position = from.max(self.row.begin());
        while position < self.row.length() {
            let to_file_end = self.shape.segment_size - position % self.shape.segment_size;
            let length = BLOCK_SIZE.min(to_file_end).min(self.row.length() - position);
            block.resize(usize::try_from(length).expect("a block is small"), 0);
            reader
                .read_exact_from_disk(position, &mut block)
                .map_err(|error| from_row(error, &reader))?;
            for bytes in block.chunks_exact(record::SIZE) {
                if !position.is_multiple_of(self.shape.segment_size) {
                    let place = Position::new(position).expect("only a header is at 0");
                    Record::decode(bytes, place)
                        .and_then(|record| visit(place, &record))
                        .map_err(|kind| damage(&reader, position, kind))?;
                }
                position += record::STEP;
            }
        }
        Ok(())
    }

    pub(crate) fn start_flush(&mut self) -> RowFlush {
        self.row.start_flush()
    }

    /// Removes the files below `position`, in which everything is settled.
    pub(crate) fn release(&mut self, position: u64) -> Result<(), TimerError> {
        self.raise_floor(position);
        self.row.release(position).map_err(|error| from_row(error, &self.row.reader()))
    }

    pub(crate) fn reader(&self) -> ChainReader {
        ChainReader { row: self.row.reader(), floor: Arc::clone(&self.floor) }
    }
}

/// The positions that records will be appended at, in order: every 48 bytes but for the headers.
#[derive(Debug)]
pub(crate) struct Places {
    next: u64,
    segment_size: u64,
}

impl Places {
    pub(crate) fn take(&mut self) -> Position {
        if self.next.is_multiple_of(self.segment_size) {
            self.next += record::STEP;
        }
        let position = Position::new(self.next).expect("the header is at 0");
        self.next += record::STEP;
        position
    }
}
