//! What the index holds: a key's hash and a place in the log, in one order everywhere.
//!
//! ```text
//! byte   0        8              14         16
//!        +--------+--------------+----------+
//!        | hash   | offset / 32  | zeros    |
//!        +--------+--------------+----------+
//! ```
//!
//! Little-endian. Six bytes of steps of 32 reach 8 PiB of log. Entries are ordered by hash, and those of
//! one hash newest first: so whoever looks for the newest finds it first.

use std::cmp::Ordering;
use std::fmt;

use crate::message::offset::{Offset, STEP};
use crate::message::record::read_u64;

const HASH: usize = 0;
const STEPS: usize = HASH + 8;
const ZEROS: usize = STEPS + 6;
/// An entry on the disk, in bytes.
pub(super) const ENTRY_LENGTH: usize = ZEROS + 2;
const _: () = assert!(ENTRY_LENGTH == 16);

/// The end of what an entry can name.
const OFFSET_END: u64 = STEP << 48;

/// A key's 64-bit hash, made by the caller with a secret seed: the index relies on its bits being
/// evenly spread, and on nobody being able to choose them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(u64);

impl KeyHash {
    pub const fn new(hash: u64) -> Self {
        Self(hash)
    }

    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "#{:016x}", self.0)
    }
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) hash: KeyHash,
    pub(super) offset: Offset,
}

impl Entry {
    /// # Panics
    ///
    /// When no record can begin at `offset`.
    pub(super) fn new(hash: KeyHash, offset: Offset) -> Self {
        assert!(offset.is_on_step(), "no record begins at {offset}");
        assert!(offset.get() < OFFSET_END, "a log of 8 PiB has other troubles than its index");
        Self { hash, offset }
    }

    /// What comes before every entry of `hash` below `below` and after all others of it; `None` when
    /// nothing can be below.
    pub(super) fn first_below(hash: KeyHash, below: Option<Offset>) -> Option<Self> {
        let offset = match below {
            None => u64::MAX,
            Some(below) => below.get().checked_sub(1)?,
        };
        Some(Self { hash, offset: Offset::new(offset) })
    }

    pub(super) fn encode(self) -> [u8; ENTRY_LENGTH] {
        let mut bytes = [0; ENTRY_LENGTH];
        bytes[HASH..STEPS].copy_from_slice(&self.hash.get().to_le_bytes());
        let steps = (self.offset.get() / STEP).to_le_bytes();
        bytes[STEPS..ZEROS].copy_from_slice(&steps[..ZEROS - STEPS]);
        bytes
    }

    /// Reads bytes that a crc has vouched for.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let mut steps = [0; 8];
        steps[..ZEROS - STEPS].copy_from_slice(&bytes[STEPS..ZEROS]);
        Self {
            hash: KeyHash::new(read_u64(bytes, HASH)),
            offset: Offset::new(u64::from_le_bytes(steps) * STEP),
        }
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.hash, other.offset).cmp(&(other.hash, self.offset))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bytes_of_an_entry_are_these() {
        let entry =
            Entry::new(KeyHash::new(0x1122_3344_5566_7788), Offset::new(0x0000_0A0B_0C0D_0E20));
        assert_eq!(
            entry.encode(),
            [
                0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // hash
                0x71, 0x68, 0x60, 0x58, 0x50, 0x00, // steps: a 32nd of the offset
                0, 0,
            ]
        );
    }

    proptest! {
        #[test]
        fn an_entry_reads_as_it_was_written(hash: u64, steps in 0_u64..1 << 48) {
            let entry = Entry::new(KeyHash::new(hash), Offset::new(steps * STEP));
            prop_assert_eq!(Entry::decode(&entry.encode()), entry);
        }

        #[test]
        fn what_is_below_comes_after_the_bound_and_the_rest_before(
            steps in 0_u64..1 << 20,
            below in 0_u64..1 << 25,
        ) {
            let hash = KeyHash::new(7);
            let entry = Entry::new(hash, Offset::new(steps * STEP));
            let bound = Entry::first_below(hash, Some(Offset::new(below)));
            let is_after = bound.is_some_and(|bound| entry >= bound);
            prop_assert_eq!(is_after, entry.offset.get() < below);
        }
    }
}
