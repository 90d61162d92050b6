//! A run: a file of entries in order, written once and never changed.
//!
//! ```text
//!   look-up ──> filter (mapped) ── maybe ──> fence (mapped) ──> one page (read)
//!                  └ no: done
//! ```
//!
//! Only pages of entries are read by a call, and counted. A filter block and a few fences are copied
//! out of the page cache; both were checked against their crcs when the run was opened.
//!
//! A run is *condemned* by whoever finds that it cannot be read whole. It goes on answering for what is
//! whole, is merged no more, and loses its file's name: so the next start finds it missing and builds
//! the index anew.

mod cursor;
mod fence;
mod filter;
#[cfg(any(test, fuzzing))]
mod fuzzing;
mod header;
mod page;
mod stream;
mod writer;

use std::sync::Arc;

use timerlog::disk::{Directory, DiskError, File, Mapping};

pub(super) use self::cursor::RunCursor;
use self::filter::BLOCK_LENGTH;
#[cfg(any(test, fuzzing))]
pub(super) use self::fuzzing::decoders;
use self::header::{HEADER_LENGTH, Header, Layout, pages_of};
use self::page::{PAGE_ENTRIES, PAGE_LENGTH, Page};
pub(super) use self::stream::RunStream;
pub(super) use self::writer::RunWriter;
use super::entry::{ENTRY_LENGTH, Entry, KeyHash};
use super::error::{Damage, IndexError};
use crate::message::offset::Offset;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// What a crc is computed over at a time.
const CHECK_CHUNK: usize = 256 << 10;

/// The name of run `number`'s file.
pub(super) fn file_name(number: u64) -> String {
    format!("{number:020}")
}

/// A run by the number and the digest that a checkpoint lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) number: u64,
    pub(super) digest: u64,
}

/// An open run.
#[derive(Debug)]
pub(super) struct Run {
    file: Arc<dyn File>,
    mapping: Arc<dyn Mapping>,
    header: Header,
    layout: Layout,
    page_reads: Arc<AtomicU64>,
    is_condemned: AtomicBool,
}

impl Run {
    /// Opens the run that `listed` means, reading all of it but its entries.
    pub(super) fn open(
        directory: &dyn Directory,
        listed: Listed,
        page_reads: Arc<AtomicU64>,
    ) -> Result<Self, IndexError> {
        let file = directory.open(&file_name(listed.number)).map_err(|error| {
            if error.is_not_found() {
                IndexError::damaged(error.path, Damage::Missing)
            } else {
                error.into()
            }
        })?;
        let damaged = |damage| IndexError::damaged(file.path(), damage);
        let header = read_header(&*file)?.map_err(damaged)?;
        if header.number != listed.number || header.digest() != listed.digest {
            return Err(damaged(Damage::Other));
        }
        let (got, expected) = (file.length(), Layout::of(header.capacity).length());
        if got != expected {
            return Err(damaged(Damage::Length { got, expected }));
        }
        let run = Self::over(file, header, page_reads)?;
        let (fence, filter) = (run.layout.fence_at(), run.layout.filter_at());
        run.check("fence", fence, run.pages() * ENTRY_LENGTH as u64, header.fence_crc)?;
        run.check("filter", filter, run.layout.length() - filter, header.filter_crc)?;
        Ok(run)
    }

    fn over(
        file: Arc<dyn File>,
        header: Header,
        page_reads: Arc<AtomicU64>,
    ) -> Result<Self, DiskError> {
        let mapping = file.map()?;
        let (layout, is_condemned) = (Layout::of(header.capacity), AtomicBool::new(false));
        Ok(Self { file, mapping, header, layout, page_reads, is_condemned })
    }

    fn check(&self, part: &'static str, at: u64, length: u64, got: u32) -> Result<(), IndexError> {
        let mut chunk = vec![0; CHECK_CHUNK];
        let (mut crc, end) = (0, at + length);
        for from in (at..end).step_by(CHECK_CHUNK) {
            let left = usize::try_from(end - from).unwrap_or(usize::MAX);
            let chunk = &mut chunk[..left.min(CHECK_CHUNK)];
            self.file.read_at(from, chunk)?;
            crc = crc32c::crc32c_append(crc, chunk);
        }
        if crc != got {
            return Err(self.damaged(Damage::Crc { part, got, expected: crc }));
        }
        Ok(())
    }

    pub(super) fn listed(&self) -> Listed {
        Listed { number: self.header.number, digest: self.header.digest() }
    }

    pub(super) fn number(&self) -> u64 {
        self.header.number
    }

    pub(super) fn entries(&self) -> u64 {
        self.header.entries
    }

    pub(super) fn lowest(&self) -> Offset {
        self.header.lowest
    }

    pub(super) fn highest(&self) -> Offset {
        self.header.highest
    }

    fn pages(&self) -> u64 {
        pages_of(self.header.entries)
    }

    /// `false`: no entry has `key`. `true`: one may have.
    fn may_contain(&self, key: KeyHash) -> Result<bool, IndexError> {
        let mut block = [0; BLOCK_LENGTH];
        let number = filter::block_of(key, self.layout.blocks());
        self.copy(self.layout.filter_at() + number * BLOCK_LENGTH as u64, &mut block)?;
        Ok(filter::may_contain(&block, key))
    }

    /// The last entry of page `page`.
    fn fence(&self, page: u64) -> Result<Entry, IndexError> {
        let mut entry = [0; ENTRY_LENGTH];
        self.copy(self.layout.fence_at() + page * ENTRY_LENGTH as u64, &mut entry)?;
        Ok(Entry::decode(&entry))
    }

    fn copy(&self, at: u64, bytes: &mut [u8]) -> Result<(), IndexError> {
        if self.mapping.read(at, bytes) {
            return Ok(());
        }
        let (got, expected) = (self.file.length(), self.layout.length());
        Err(self.damaged(Damage::Length { got, expected }))
    }

    /// Reads a page for a look-up.
    fn page(&self, number: u64) -> Result<Page, IndexError> {
        self.page_reads.fetch_add(1, Ordering::Relaxed);
        let mut bytes = Box::new([0; PAGE_LENGTH]);
        self.file.read_at(Layout::page_at(number), &mut *bytes)?;
        self.whole_page(bytes, number)
    }

    /// Reads every page: so many.
    pub(super) fn check_pages(&self) -> Result<u64, IndexError> {
        (0..self.pages()).try_for_each(|number| self.page(number).map(drop))?;
        Ok(self.pages())
    }

    fn whole_page(&self, bytes: Box<[u8; PAGE_LENGTH]>, number: u64) -> Result<Page, IndexError> {
        let before = number * PAGE_ENTRIES as u64;
        let left = usize::try_from(self.header.entries - before).unwrap_or(usize::MAX);
        Page::read(bytes, self.header.number, number, left.min(PAGE_ENTRIES)).map_err(|damage| {
            self.condemn();
            self.damaged(damage)
        })
    }

    pub(super) fn condemn(&self) {
        self.is_condemned.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_condemned(&self) -> bool {
        self.is_condemned.load(Ordering::Relaxed)
    }

    fn damaged(&self, damage: Damage) -> IndexError {
        IndexError::damaged(self.file.path(), damage)
    }
}

fn read_header(file: &dyn File) -> Result<Result<Header, Damage>, DiskError> {
    let expected = HEADER_LENGTH as u64;
    if file.length() < expected {
        return Ok(Err(Damage::Length { got: file.length(), expected }));
    }
    let mut bytes = [0; HEADER_LENGTH];
    file.read_at(0, &mut bytes)?;
    Ok(Header::decode(&bytes))
}

#[cfg(test)]
mod tests;
