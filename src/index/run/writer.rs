//! Writes a run: entries in order, in a single pass and constant memory.
//!
//! ```text
//!   push ─┬─> page ─────────> pages  ─┐
//!         │    └─ its last ─> fence  ─┼─> the file, in chunks; at the end the header
//!         └─> block ────────> filter ─┘
//! ```

use std::sync::Arc;

use timerlog::disk::{Directory, DiskError, File};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::filter::{self, BLOCK_LENGTH, Block};
use super::header::{Header, Layout};
use super::page::{self, Page};
use super::{Run, file_name};
use crate::index::entry::Entry;
use crate::message::offset::Offset;
use crate::sync::AtomicU64;

/// What a part gathers before it is written.
const CHUNK: usize = 256 << 10;

static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// What is written between two syncs, so that no sync has long to do.
const SYNC_BYTES: usize = 8 << 20;

/// A run that is being written.
#[derive(Debug)]
pub(in crate::index) struct RunWriter {
    file: Arc<dyn File>,
    layout: Layout,
    number: u64,
    page: Page,
    pages: Part,
    pages_written: u64,
    pages_hash: u64,
    fence: Part,
    filter: Part,
    block: Block,
    block_number: u64,
    last: Option<Entry>,
    entries: u64,
    lowest: Offset,
    highest: Offset,
    unsynced: usize,
}

impl RunWriter {
    /// Makes the file of run `number`, for up to `capacity` entries.
    ///
    /// # Errors
    ///
    /// When the disk fails or is full; then there is no file.
    pub(in crate::index) fn create(
        directory: &dyn Directory,
        number: u64,
        capacity: u64,
    ) -> Result<Self, DiskError> {
        let layout = Layout::of(capacity);
        Ok(Self {
            file: directory.create(&file_name(number), layout.length())?,
            layout,
            number,
            page: Page::empty(),
            pages: Part::at(Layout::page_at(0)),
            pages_written: 0,
            pages_hash: 0,
            fence: Part::at(layout.fence_at()),
            filter: Part::at(layout.filter_at()),
            block: [0; BLOCK_LENGTH],
            block_number: 0,
            last: None,
            entries: 0,
            lowest: Offset::new(u64::MAX),
            highest: Offset::ZERO,
            unsynced: 0,
        })
    }

    /// Adds `entry`, which comes after all before it.
    ///
    /// # Errors
    ///
    /// When the disk fails; then give the file up.
    ///
    /// # Panics
    ///
    /// When entries are out of order or more than there is room for.
    pub(in crate::index) fn push(&mut self, entry: Entry) -> Result<(), DiskError> {
        assert!(self.last < Some(entry), "{entry:?} after {:?}", self.last);
        assert!(self.entries < self.layout.capacity(), "more entries than there is room for");
        if self.page.is_full() {
            self.write_page()?;
        }
        self.page.push(entry);
        let block = filter::block_of(entry.hash, self.layout.blocks());
        self.write_blocks_before(block)?;
        filter::set(&mut self.block, entry.hash);
        self.last = Some(entry);
        self.entries += 1;
        self.lowest = self.lowest.min(entry.offset);
        self.highest = self.highest.max(entry.offset);
        Ok(())
    }

    /// Writes what is left, syncs, and opens the run. Its name is durable after a sync of the
    /// directory.
    ///
    /// # Errors
    ///
    /// When the disk fails; then give the file up.
    ///
    /// # Panics
    ///
    /// When nothing was pushed: there is no empty run.
    pub(in crate::index) fn finish(mut self, page_reads: Arc<AtomicU64>) -> Result<Run, DiskError> {
        assert!(self.entries > 0, "an empty run");
        self.write_page()?;
        self.write_blocks_before(self.layout.blocks())?;
        for part in [&mut self.pages, &mut self.fence, &mut self.filter] {
            part.write(&*self.file)?;
        }
        let header = Header {
            number: self.number,
            capacity: self.layout.capacity(),
            entries: self.entries,
            lowest: self.lowest,
            highest: self.highest,
            pages_hash: self.pages_hash,
            fence_crc: self.fence.crc,
            filter_crc: self.filter.crc,
        };
        self.file.write_at(0, &header.encode())?;
        self.file.sync()?;
        Run::over(self.file, header, page_reads)
    }

    fn write_page(&mut self) -> Result<(), DiskError> {
        let last = self.last.expect("a page that is written has an entry");
        self.fence.push(&*self.file, &last.encode())?;
        let bytes = self.page.seal(self.number, self.pages_written);
        self.pages_hash = xxh3_64_with_seed(page::crc_of(bytes), self.pages_hash);
        self.unsynced += bytes.len();
        self.pages.push(&*self.file, bytes)?;
        self.pages_written += 1;
        self.page = Page::empty();
        if self.unsynced >= SYNC_BYTES {
            self.unsynced = 0;
            self.file.sync()?;
        }
        Ok(())
    }

    /// Writes the block that was being filled and the empty ones before `block`, which is filled next.
    fn write_blocks_before(&mut self, block: u64) -> Result<(), DiskError> {
        if self.block_number == block {
            return Ok(());
        }
        self.filter.push(&*self.file, &self.block)?;
        let empty = block - self.block_number - 1;
        self.filter.push_zeros(&*self.file, empty * BLOCK_LENGTH as u64)?;
        self.block = [0; BLOCK_LENGTH];
        self.block_number = block;
        Ok(())
    }
}

/// One part of the file, written from its begin to its end.
#[derive(Debug)]
struct Part {
    at: u64,
    chunk: Vec<u8>,
    /// Over all that was pushed.
    crc: u32,
}

impl Part {
    fn at(at: u64) -> Self {
        Self { at, chunk: Vec::new(), crc: 0 }
    }

    fn push(&mut self, file: &dyn File, bytes: &[u8]) -> Result<(), DiskError> {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= CHUNK { self.write(file) } else { Ok(()) }
    }

    /// Pushes zeros. Many are not written, since the file has them already: the filter of a key with
    /// millions of offsets is little else.
    fn push_zeros(&mut self, file: &dyn File, length: u64) -> Result<(), DiskError> {
        let length = usize::try_from(length).expect("a filter fits the address space");
        if length < CHUNK {
            return self.push(file, &ZEROS[..length]);
        }
        self.write(file)?;
        self.at += length as u64;
        for from in (0..length).step_by(CHUNK) {
            let zeros = &ZEROS[..CHUNK.min(length - from)];
            self.crc = crc32c::crc32c_append(self.crc, zeros);
        }
        Ok(())
    }

    fn write(&mut self, file: &dyn File) -> Result<(), DiskError> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        file.write_at(self.at, &self.chunk)?;
        self.at += self.chunk.len() as u64;
        self.chunk.clear();
        Ok(())
    }
}
