//! The first page of a run, and where all the rest of it stands.
//!
//! ```text
//! byte   0        4096                            fence                filter               length
//!        +--------+- - - - - - - - - - - - - - - -+- - - - - - - - - - +- - - - - - - - - - +
//!        | header | pages of entries              | last entry of      | blocks of 64 bytes |
//!        |        |                               | each page, 16 bytes|                    |
//!        +--------+- - - - - - - - - - - - - - - -+- - - - - - - - - - +- - - - - - - - - - +
//! ```
//!
//! | at | bytes | field      | meaning                                                               |
//! |----|-------|------------|-----------------------------------------------------------------------|
//! | 0  | 8     | magic      | `HOROIDXR`                                                            |
//! | 8  | 4     | version    | 1                                                                     |
//! | 12 | 4     | crc        | CRC-32C over the whole page of the header but these four bytes        |
//! | 16 | 8     | number     | the run's, which is also its name                                     |
//! | 24 | 8     | capacity   | entries there is room for; the places above follow from it            |
//! | 32 | 8     | entries    | entries there are, not above the capacity                             |
//! | 40 | 8     | lowest     | the lowest offset of them                                             |
//! | 48 | 8     | highest    | the highest                                                           |
//! | 56 | 8     | pages hash | XXH3-64 of each page's crc, seeded by that of the page before (0):    |
//! |    |       |            | tells runs of one number apart                                        |
//! | 64 | 4     | fence crc  | CRC-32C over the fence, as far as there are pages                     |
//! | 68 | 4     | filter crc | CRC-32C over the filter                                               |
//! | 72 | 4024  | zeros      |                                                                       |
//!
//! Little-endian. The length of a file is fixed before its entries are counted (a merge leaves out what is
//! double or forgotten), hence the capacity. The header is written last; a reader trusts it when a
//! checkpoint lists it by its *digest*, XXH3-64 over the header.

use xxhash_rust::xxh3::xxh3_64;

use super::filter::{self, BLOCK_LENGTH};
use super::page::{PAGE_ENTRIES, PAGE_LENGTH};
use crate::index::entry::ENTRY_LENGTH;
use crate::index::error::Damage;
use crate::message::offset::Offset;
use crate::message::record::{read_u32, read_u64};

const MAGIC: usize = 0;
const VERSION: usize = MAGIC + 8;
const CRC: usize = VERSION + 4;
const NUMBER: usize = CRC + 4;
const CAPACITY: usize = NUMBER + 8;
const ENTRIES: usize = CAPACITY + 8;
const LOWEST: usize = ENTRIES + 8;
const HIGHEST: usize = LOWEST + 8;
const PAGES_HASH: usize = HIGHEST + 8;
const FENCE_CRC: usize = PAGES_HASH + 8;
const FILTER_CRC: usize = FENCE_CRC + 4;
const ZEROS: usize = FILTER_CRC + 4;
const _: () = assert!(ZEROS == 72);
/// The header with its zeros, in bytes.
pub(super) const HEADER_LENGTH: usize = PAGE_LENGTH;

const MAGIC_BYTES: [u8; 8] = *b"HOROIDXR";
const KNOWN_VERSION: u32 = 1;

/// Entries of the largest run: its file has 16 TiB, which is what a file system holds.
const MAX_CAPACITY: u64 = 1 << 40;

/// Where the parts of a run stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    capacity: u64,
}

impl Layout {
    pub(super) const fn of(capacity: u64) -> Self {
        Self { capacity }
    }

    pub(super) const fn capacity(self) -> u64 {
        self.capacity
    }

    pub(super) const fn page_at(page: u64) -> u64 {
        HEADER_LENGTH as u64 + page * PAGE_LENGTH as u64
    }

    pub(super) const fn fence_at(self) -> u64 {
        Self::page_at(pages_of(self.capacity))
    }

    pub(super) const fn filter_at(self) -> u64 {
        let end = self.fence_at() + pages_of(self.capacity) * ENTRY_LENGTH as u64;
        // So that a block is one cache line of the mapping.
        end.next_multiple_of(BLOCK_LENGTH as u64)
    }

    pub(super) const fn blocks(self) -> u64 {
        filter::block_count(self.capacity)
    }

    pub(super) const fn length(self) -> u64 {
        self.filter_at() + self.blocks() * BLOCK_LENGTH as u64
    }
}

/// Pages that `entries` entries take.
pub(super) const fn pages_of(entries: u64) -> u64 {
    entries.div_ceil(PAGE_ENTRIES as u64)
}

/// What a run says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) number: u64,
    pub(super) capacity: u64,
    pub(super) entries: u64,
    pub(super) lowest: Offset,
    pub(super) highest: Offset,
    pub(super) pages_hash: u64,
    pub(super) fence_crc: u32,
    pub(super) filter_crc: u32,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        let mut put = |at: usize, value: &[u8]| {
            bytes[at..at + value.len()].copy_from_slice(value);
        };
        put(MAGIC, &MAGIC_BYTES);
        put(VERSION, &KNOWN_VERSION.to_le_bytes());
        put(NUMBER, &self.number.to_le_bytes());
        put(CAPACITY, &self.capacity.to_le_bytes());
        put(ENTRIES, &self.entries.to_le_bytes());
        put(LOWEST, &self.lowest.get().to_le_bytes());
        put(HIGHEST, &self.highest.get().to_le_bytes());
        put(PAGES_HASH, &self.pages_hash.to_le_bytes());
        put(FENCE_CRC, &self.fence_crc.to_le_bytes());
        put(FILTER_CRC, &self.filter_crc.to_le_bytes());
        let crc = checksum(&bytes);
        bytes[CRC..NUMBER].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HEADER_LENGTH]) -> Result<Self, Damage> {
        if bytes[MAGIC..VERSION] != MAGIC_BYTES {
            return Err(Damage::Magic);
        }
        let (got, expected) = (read_u32(bytes, CRC), checksum(bytes));
        if got != expected {
            return Err(Damage::Crc { part: "header", got, expected });
        }
        let found = read_u32(bytes, VERSION);
        if found != KNOWN_VERSION {
            return Err(Damage::Version { found, known: KNOWN_VERSION });
        }
        if bytes[ZEROS..] != [0; HEADER_LENGTH - ZEROS] {
            return Err(Damage::NotZero);
        }
        let header = Self {
            number: read_u64(bytes, NUMBER),
            capacity: read_u64(bytes, CAPACITY),
            entries: read_u64(bytes, ENTRIES),
            lowest: Offset::new(read_u64(bytes, LOWEST)),
            highest: Offset::new(read_u64(bytes, HIGHEST)),
            pages_hash: read_u64(bytes, PAGES_HASH),
            fence_crc: read_u32(bytes, FENCE_CRC),
            filter_crc: read_u32(bytes, FILTER_CRC),
        };
        let has_entries = header.entries > 0;
        if header.capacity > MAX_CAPACITY
            || header.entries > header.capacity
            || has_entries && header.lowest > header.highest
        {
            return Err(Damage::Header);
        }
        Ok(header)
    }

    /// What a checkpoint knows this very run by.
    pub(super) fn digest(&self) -> u64 {
        xxh3_64(&self.encode())
    }
}

fn checksum(bytes: &[u8; HEADER_LENGTH]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CRC]), &bytes[NUMBER..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header {
        number: 0x0101,
        capacity: 0x0202,
        entries: 0x0201,
        lowest: Offset::new(0x20),
        highest: Offset::new(0x40),
        pages_hash: 0x0807_0605_0403_0201,
        fence_crc: 0x0B0B_0B0B,
        filter_crc: 0x0C0C_0C0C,
    };

    #[test]
    fn the_bytes_of_a_header_are_these() {
        let bytes = HEADER.encode();
        assert_eq!(bytes[..12], *b"HOROIDXR\x01\0\0\0");
        assert_eq!(
            bytes[16..72],
            [
                1, 1, 0, 0, 0, 0, 0, 0, // number
                2, 2, 0, 0, 0, 0, 0, 0, // capacity
                1, 2, 0, 0, 0, 0, 0, 0, // entries
                0x20, 0, 0, 0, 0, 0, 0, 0, // lowest
                0x40, 0, 0, 0, 0, 0, 0, 0, // highest
                1, 2, 3, 4, 5, 6, 7, 8, // pages hash
                11, 11, 11, 11, 12, 12, 12, 12, // crcs of fence and filter
            ]
        );
        assert_eq!(bytes[72..], [0; HEADER_LENGTH - 72]);
        assert_eq!(read_u32(&bytes, CRC), 0x8FCA_1F8E);
        assert_eq!(HEADER.digest(), 0x6EC0_F6DC_9C1D_BFF3);
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        let whole = HEADER.encode();
        for bit in 0..HEADER_LENGTH * 8 {
            let mut bytes = whole;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&bytes).is_err(), "bit {bit}");
        }
        assert_eq!(Header::decode(&whole), Ok(HEADER));
    }

    #[test]
    fn another_version_is_told_from_damage() {
        let mut bytes = HEADER.encode();
        bytes[VERSION] = 2;
        let crc = checksum(&bytes);
        bytes[CRC..NUMBER].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Header::decode(&bytes), Err(Damage::Version { found: 2, known: 1 }));
    }

    /// From the capacity follow places in the file: one that no file has made them run over.
    #[test]
    fn a_header_that_says_what_cannot_be_is_refused() {
        let largest = Header { capacity: MAX_CAPACITY, ..HEADER };
        assert_eq!(Header::decode(&largest.encode()), Ok(largest));
        for header in [
            Header { capacity: u64::MAX, ..HEADER },
            Header { capacity: MAX_CAPACITY + 1, ..HEADER },
            Header { entries: HEADER.capacity + 1, ..HEADER },
            Header { lowest: HEADER.highest, highest: HEADER.lowest, ..HEADER },
        ] {
            assert_eq!(Header::decode(&header.encode()), Err(Damage::Header), "{header:?}");
        }
    }

    #[test]
    fn the_parts_follow_each_other() {
        let layout = Layout::of(256);
        assert_eq!(layout.fence_at(), 3 * 4096);
        assert_eq!(layout.filter_at(), 3 * 4096 + 64);
        assert_eq!(layout.blocks(), 8);
        assert_eq!(layout.length(), 3 * 4096 + 64 + 8 * 64);
    }
}
