//! The pages of one checkpoint, written whole before any is written in place.
//!
//! ```text
//! byte   0        8             16         20      24     28    32
//!        +--------+-------------+----------+-------+------+-----+- - - - - - - - - - - -+- - - - - - - - - - - -
//!        | magic  | durable     | segments | pages | zero | crc | segment 8, digest 8 ..| number 8, page 4096 ..
//!        |        | upto        |          |       |      |     |                       |
//!        +--------+-------------+----------+-------+------+-----+- - - - - - - - - - - -+- - - - - - - - - - - -
//! ```
//!
//! Little-endian. *crc* is CRC-32C over the header before it and all that follows it. *durable upto* is
//! how far the log was flushed when the pages were copied. The digests are those of every segment's
//! file once the pages are in place: a file that is missing, or an older copy, gives itself away. Segments
//! and pages ascend.
//!
//! One journal there is, named `journal`, replaced by rename. A torn one was never needed, since nothing
//! had been written in place.

use timerlog::disk::{Directory, DiskError};

use super::page::PAGE_LENGTH;
use crate::message::offset::Offset;
use crate::message::record::{read_u32, read_u64};

const NAME: &str = "journal";
const NEW_NAME: &str = "journal.new";
const MAGIC: u64 = u64::from_le_bytes(*b"HOROSETJ");

const DURABLE_UPTO: usize = 8;
const SEGMENTS: usize = DURABLE_UPTO + 8;
const PAGES: usize = SEGMENTS + 4;
const ZERO: usize = PAGES + 4;
const CRC: usize = ZERO + 4;
const HEADER: usize = CRC + 4;
const DIGEST: usize = 16;
const ENTRY: usize = 8 + PAGE_LENGTH;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Journal {
    pub(super) durable_upto: Offset,
    /// Segment number and digest, for each segment that has a file.
    pub(super) digests: Vec<(u64, u64)>,
    pub(super) pages: Vec<(u64, [u8; PAGE_LENGTH])>,
}

impl Journal {
    pub(super) fn write(&self, directory: &dyn Directory) -> Result<(), DiskError> {
        let bytes = self.encode();
        if let Err(error) = directory.remove(NEW_NAME)
            && !error.is_not_found()
        {
            return Err(error);
        }
        let file = directory.create(NEW_NAME, bytes.len() as u64)?;
        file.write_at(0, &bytes)?;
        file.sync()?;
        directory.rename(NEW_NAME, NAME)?;
        directory.sync()
    }

    /// The last checkpoint's journal; none when there is no whole one.
    pub(super) fn read(directory: &dyn Directory) -> Result<Option<Self>, DiskError> {
        let file = match directory.open(NAME) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = vec![0; usize::try_from(file.length()).unwrap_or(0)];
        file.read_at(0, &mut bytes)?;
        Ok(Self::decode(&bytes))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let length = HEADER + self.digests.len() * DIGEST + self.pages.len() * ENTRY;
        let mut bytes = Vec::with_capacity(length);
        let count = |items: usize| {
            u32::try_from(items).expect("pages and segments are counted in thousands").to_le_bytes()
        };
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&self.durable_upto.get().to_le_bytes());
        bytes.extend_from_slice(&count(self.digests.len()));
        bytes.extend_from_slice(&count(self.pages.len()));
        bytes.extend_from_slice(&[0; 8]);
        for (segment, digest) in &self.digests {
            bytes.extend_from_slice(&segment.to_le_bytes());
            bytes.extend_from_slice(&digest.to_le_bytes());
        }
        for (number, page) in &self.pages {
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(page);
        }
        let crc = checksum(&bytes);
        bytes[CRC..HEADER].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < HEADER
            || read_u64(bytes, 0) != MAGIC
            || read_u32(bytes, CRC) != checksum(bytes)
            || read_u32(bytes, ZERO) != 0
        {
            return None;
        }
        let (segments, pages) = (read_u32(bytes, SEGMENTS), read_u32(bytes, PAGES));
        let pages_at = (segments as usize).checked_mul(DIGEST)?.checked_add(HEADER)?;
        let end = (pages as usize).checked_mul(ENTRY)?.checked_add(pages_at)?;
        if end != bytes.len() {
            return None;
        }
        let digests = bytes[HEADER..pages_at].chunks_exact(DIGEST);
        let entries = bytes[pages_at..].chunks_exact(ENTRY);
        let journal = Self {
            durable_upto: Offset::new(read_u64(bytes, DURABLE_UPTO)),
            digests: digests.map(|item| (read_u64(item, 0), read_u64(item, 8))).collect(),
            pages: entries
                .map(|entry| {
                    let mut page = [0; PAGE_LENGTH];
                    page.copy_from_slice(&entry[8..]);
                    (read_u64(entry, 0), page)
                })
                .collect(),
        };
        journal.is_in_order().then_some(journal)
    }

    /// Segments and pages ascend, each is there once: of two copies of a page only one could be right.
    fn is_in_order(&self) -> bool {
        self.digests.is_sorted_by(|one, next| one.0 < next.0)
            && self.pages.is_sorted_by(|one, next| one.0 < next.0)
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CRC]), &bytes[HEADER..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_journal_is_noticed() {
        let journal = Journal {
            durable_upto: Offset::new(640),
            digests: vec![(0, 11), (1, 12)],
            pages: vec![(3, [5; PAGE_LENGTH])],
        };
        let whole = journal.encode();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Journal::decode(&bytes), None, "bit {bit}");
        }
        assert_eq!(Journal::decode(&whole), Some(journal));
    }

    #[test]
    fn a_journal_with_something_twice_or_out_of_order_is_none() {
        let journal = |segments: [u64; 2], pages: [u64; 2]| {
            let (digests, pages) =
                (segments.map(|n| (n, 11)), pages.map(|n| (n, [5; PAGE_LENGTH])));
            Journal { durable_upto: Offset::new(640), digests: digests.into(), pages: pages.into() }
        };
        let whole = journal([0, 1], [3, 4]);
        assert_eq!(Journal::decode(&whole.encode()), Some(whole));
        for (segments, pages) in
            [([1, 0], [3, 4]), ([1, 1], [3, 4]), ([0, 1], [4, 3]), ([0, 1], [4, 4])]
        {
            let refused = Journal::decode(&journal(segments, pages).encode());
            assert_eq!(refused, None, "{segments:?} {pages:?}");
        }
    }
}
