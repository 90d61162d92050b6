//! A page of entries.
//!
//! ```text
//! byte   0      4             8            16                                  4096
//!        +------+-------------+------------+------------------------------------+
//!        | crc  | page number | run number | 255 entries of 16 bytes, ascending |
//!        +------+-------------+------------+------------------------------------+
//! ```
//!
//! Little-endian. *crc* is CRC-32C over bytes 4 to 4096. The numbers tell a page that was written to
//! another's place, or that another file left there. All pages of a run are full but the last, whose
//! rest is zeros: how many entries it has follows from the run's header.

use crate::index::entry::{ENTRY_LENGTH, Entry};
use crate::index::error::Damage;
use crate::message::record::{read_u32, read_u64};

/// A page on the disk, in bytes.
pub(super) const PAGE_LENGTH: usize = 4096;

const CRC: usize = 0;
const NUMBER: usize = CRC + 4;
const RUN: usize = NUMBER + 4;
const ENTRIES: usize = RUN + 8;
/// Entries in a page.
pub(super) const PAGE_ENTRIES: usize = (PAGE_LENGTH - ENTRIES) / ENTRY_LENGTH;
const _: () = assert!(PAGE_ENTRIES == 255);

/// The bytes of a sealed page's crc.
pub(super) fn crc_of(page: &[u8; PAGE_LENGTH]) -> &[u8] {
    &page[CRC..NUMBER]
}

/// A page that was read and found whole, or that is being filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    bytes: Box<[u8; PAGE_LENGTH]>,
    count: usize,
}

impl Page {
    pub(super) fn empty() -> Self {
        Self { bytes: Box::new([0; PAGE_LENGTH]), count: 0 }
    }

    /// Takes `bytes` for page `number` of run `run`, with `count` entries.
    pub(super) fn read(
        bytes: Box<[u8; PAGE_LENGTH]>,
        run: u64,
        number: u64,
        count: usize,
    ) -> Result<Self, Damage> {
        let (got, expected) = (read_u32(&*bytes, CRC), crc32c::crc32c(&bytes[NUMBER..]));
        if got != expected {
            return Err(Damage::Page { page: number, got, expected });
        }
        if u64::from(read_u32(&*bytes, NUMBER)) != number || read_u64(&*bytes, RUN) != run {
            return Err(Damage::Misplaced { page: number });
        }
        let (entries, rest) = bytes[ENTRIES..].split_at(count * ENTRY_LENGTH);
        if rest.iter().any(|&byte| byte != 0) {
            return Err(Damage::NotZero);
        }
        // Among entries out of order some that are there would not be found.
        let (entries, _) = entries.as_chunks::<ENTRY_LENGTH>();
        if !entries.is_sorted_by(|one, next| Entry::decode(one) <= Entry::decode(next)) {
            return Err(Damage::Order { part: "entries" });
        }
        Ok(Self { bytes, count })
    }

    /// Adds `entry` behind the others; there must be room.
    pub(super) fn push(&mut self, entry: Entry) {
        let at = ENTRIES + self.count * ENTRY_LENGTH;
        self.bytes[at..at + ENTRY_LENGTH].copy_from_slice(&entry.encode());
        self.count += 1;
    }

    /// The bytes to write.
    pub(super) fn seal(&mut self, run: u64, number: u64) -> &[u8; PAGE_LENGTH] {
        let number = u32::try_from(number).expect("a run has below 2^32 pages");
        self.bytes[NUMBER..RUN].copy_from_slice(&number.to_le_bytes());
        self.bytes[RUN..ENTRIES].copy_from_slice(&run.to_le_bytes());
        let crc = crc32c::crc32c(&self.bytes[NUMBER..]);
        self.bytes[CRC..NUMBER].copy_from_slice(&crc.to_le_bytes());
        &self.bytes
    }

    pub(super) fn is_full(&self) -> bool {
        self.count == PAGE_ENTRIES
    }

    /// The entry at `index`, if there are that many.
    pub(super) fn get(&self, index: usize) -> Option<Entry> {
        let at = ENTRIES + index * ENTRY_LENGTH;
        (index < self.count).then(|| Entry::decode(&self.bytes[at..at + ENTRY_LENGTH]))
    }

    /// How many entries come before `bound`.
    pub(super) fn count_before(&self, bound: Entry) -> usize {
        let entries = &self.bytes[ENTRIES..ENTRIES + self.count * ENTRY_LENGTH];
        let (entries, _) = entries.as_chunks::<ENTRY_LENGTH>();
        entries.partition_point(|entry| Entry::decode(entry) < bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::entry::KeyHash;
    use crate::message::offset::Offset;

    fn entry(number: u64) -> Entry {
        Entry::new(KeyHash::new(number / 3), Offset::new(3200 - number % 3 * 32))
    }

    #[test]
    fn the_bytes_of_a_page_are_these() {
        let mut page = Page::empty();
        page.push(Entry::new(KeyHash::new(0x0807_0605_0403_0201), Offset::new(64)));
        let bytes = *page.seal(3, 5);
        assert_eq!(
            bytes[4..32],
            [
                5, 0, 0, 0, // page number
                3, 0, 0, 0, 0, 0, 0, 0, // run number
                1, 2, 3, 4, 5, 6, 7, 8, // hash
                2, 0, 0, 0, 0, 0, 0, 0, // steps, zeros
            ]
        );
        assert_eq!(bytes[32..], [0; PAGE_LENGTH - 32]);
        assert_eq!(read_u32(&bytes, CRC), 0xFAA1_FE44);
    }

    #[test]
    fn every_flipped_bit_of_a_page_is_noticed() {
        let mut page = Page::empty();
        (0..255).for_each(|number| page.push(entry(number)));
        assert!(page.is_full());
        let whole = Box::new(*page.seal(3, 5));
        for bit in 0..PAGE_LENGTH * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Page::read(bytes, 3, 5, 255).is_err(), "bit {bit}");
        }
        let misplaced = Err(Damage::Misplaced { page: 6 });
        assert_eq!(Page::read(whole.clone(), 3, 6, 255), misplaced);
        let misplaced = Err(Damage::Misplaced { page: 5 });
        assert_eq!(Page::read(whole.clone(), 4, 5, 255), misplaced);
        assert_eq!(Page::read(whole, 3, 5, 255), Ok(page));
    }

    #[test]
    fn a_page_out_of_order_or_of_more_entries_than_are_known_of_is_refused() {
        let mut page = Page::empty();
        [entry(7), entry(3)].into_iter().for_each(|entry| page.push(entry));
        let bytes = Box::new(*page.seal(3, 5));
        assert_eq!(Page::read(bytes.clone(), 3, 5, 2), Err(Damage::Order { part: "entries" }));
        assert_eq!(Page::read(bytes, 3, 5, 1), Err(Damage::NotZero));
    }

    #[test]
    fn a_bound_is_found_among_the_entries() {
        let mut page = Page::empty();
        (0..200).for_each(|number| page.push(entry(number)));
        for number in 0..200 {
            let index = usize::try_from(number).unwrap();
            assert_eq!(page.count_before(entry(number)), index);
            assert_eq!(page.get(index), Some(entry(number)));
        }
        assert_eq!(page.count_before(entry(201)), 200);
        assert_eq!(page.get(200), None);
    }
}
