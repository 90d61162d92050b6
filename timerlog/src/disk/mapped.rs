//! A file seen through the page cache, read-only. The only unsafe code of the project is here.
//!
//! Why a mapping and not a read: a walk along a chain touches many small records, and a copy out of
//! the page cache costs nanoseconds where a system call costs half a microsecond.

#![expect(
    unsafe_code,
    reason = "copying out of a mapping has no safe form; each block argues its case"
)]

use std::fs::File as OsFile;
use std::io;
use std::ptr;

use memmap2::{MmapOptions, MmapRaw};

use super::Mapping;
use super::checks::end_within;

/// A read-only mapping of a whole file of the operating system.
#[derive(Debug)]
pub(super) struct Mapped {
    map: MmapRaw,
    length: u64,
}

impl Mapped {
    /// Maps `length` bytes of `file`, which must have them.
    pub(super) fn new(file: &OsFile, length: u64) -> io::Result<Self> {
        let bytes = usize::try_from(length).map_err(io::Error::other)?;
        // An empty mapping does not exist; one byte past an empty file is mapped and never read.
        let map = MmapOptions::new().len(bytes.max(1)).map_raw_read_only(file)?;
        Ok(Self { map, length })
    }
}

impl Mapping for Mapped {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        if end_within(offset, buffer.len(), self.length).is_none() {
            return false;
        }
        let Ok(offset) = usize::try_from(offset) else { return false };
        // SAFETY:
        // - In bounds: `offset + buffer.len() <= self.length` was checked above, and `self.length`
        //   bytes are mapped for as long as `self.map` lives, which `&self` outlasts.
        // - Backed: the file had this length, allocated, when it was mapped (`Directory::create`),
        //   and nothing in this house shrinks a file, so a page of it cannot fault for lack of one.
        // - No data race: no reference into the mapping is ever made, only this raw copy, and the
        //   contract of `Mapping` is that callers read only bytes their writer has finished with
        //   and published by a release store that the reader has seen by an acquire load.
        // - No overlap: `buffer` is a unique borrow of ordinary memory, and the mapping is read-only,
        //   so nobody can hold a `&mut` into it.
        unsafe {
            ptr::copy_nonoverlapping(
                self.map.as_ptr().add(offset),
                buffer.as_mut_ptr(),
                buffer.len(),
            );
        }
        true
    }
}
