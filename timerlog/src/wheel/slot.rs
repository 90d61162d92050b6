//! A slot: the two ends of its chain, and how much is pending in it. In a snapshot it is 32 bytes.
//!
//! ```text
//!  0               8               16              24      28      32
//!  +---------------+---------------+---------------+-------+-------+
//!  | number        | first_pos     | last_pos      | count | crc   |
//!  +---------------+---------------+---------------+-------+-------+
//! ```
//!
//! | at | bytes | field     | meaning                                                        |
//! |----|-------|-----------|----------------------------------------------------------------|
//! | 0  | 8     | number    | which slot: time since 1970 in slots of the ring's width       |
//! | 8  | 8     | first_pos | position of the oldest record of the chain, never 0            |
//! | 16 | 8     | last_pos  | position of the newest                                         |
//! | 24 | 4     | count     | adds less cancels, not below 0                                 |
//! | 28 | 4     | crc       | crc32c of the slot's offset in the file (8 bytes), bytes 0 - 27 |
//!
//! Little-endian. Version: that of the snapshot. Empty slots are not written.

use crate::bytes::{crc_at, get_u32, get_u64, put_u32, put_u64};
use crate::error::DamageKind;
use crate::log::EntryKind;
use crate::position::Position;

pub(super) const SIZE: usize = CRC + 4;
const NUMBER: usize = 0;
const FIRST: usize = NUMBER + 8;
const LAST: usize = FIRST + 8;
const COUNT: usize = LAST + 8;
const CRC: usize = COUNT + 4;
const _: () = assert!(SIZE == 32);

/// What is in a slot that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotState {
    /// The oldest record of the slot.
    pub first: Position,
    /// The newest: where a walk begins.
    pub last: Position,
    /// How many entries are pending here: adds less cancels; notes do not count. Exact but for a cancel that overtakes
    /// the re-filing of its entry; nothing but lists and figures may rest on it.
    pub count: u32,
}

impl SlotState {
    /// The slot once a record of `kind` at `position` has been filed in it.
    pub(super) fn after(before: Option<Self>, position: Position, kind: EntryKind) -> Self {
        let count = before.map_or(0, |state| state.count);
        Self {
            first: before.map_or(position, |state| state.first),
            last: position,
            count: match kind {
                EntryKind::Add => count.saturating_add(1),
                EntryKind::Cancel => count.saturating_sub(1),
                EntryKind::Note => count,
            },
        }
    }

    /// The bytes of this slot at `offset` of a snapshot.
    pub(super) fn encode(&self, number: u64, offset: u64) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        put_u64(&mut bytes, NUMBER, number);
        put_u64(&mut bytes, FIRST, self.first.get());
        put_u64(&mut bytes, LAST, self.last.get());
        put_u32(&mut bytes, COUNT, self.count);
        let crc = crc_at(offset, &bytes[..CRC]);
        put_u32(&mut bytes, CRC, crc);
        bytes
    }

    /// The number and state of the slot that `bytes`, found at `offset`, are.
    pub(super) fn decode(bytes: &[u8], offset: u64) -> Result<(u64, Self), DamageKind> {
        let (expected, found) = (get_u32(bytes, CRC), crc_at(offset, &bytes[..CRC]));
        if expected != found {
            return Err(DamageKind::Checksum { expected, found });
        }
        let (first, last) = (get_u64(bytes, FIRST), get_u64(bytes, LAST));
        match (Position::new(first), Position::new(last)) {
            (Some(first), Some(last)) if first <= last => {
                Ok((get_u64(bytes, NUMBER), Self { first, last, count: get_u32(bytes, COUNT) }))
            }
            _ => Err(DamageKind::LeadsForward { previous: first }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(bytes: u64) -> Position {
        Position::new(bytes).expect("not zero")
    }

    #[test]
    fn the_bytes_are_those_of_version_1() {
        let state = SlotState { first: at(0x30), last: at(0x0102), count: 7 };
        let mut golden = [0; SIZE];
        golden[..5].copy_from_slice(&[0x0D, 0x0C, 0x0B, 0x0A, 0x09]);
        golden[8] = 0x30;
        golden[16..18].copy_from_slice(&[0x02, 0x01]);
        golden[24] = 7;
        golden[28..].copy_from_slice(&[0x66, 0xC4, 0xDE, 0xDE]);
        assert_eq!(state.encode(0x09_0A0B_0C0D, 96), golden);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let state = SlotState { first: at(48), last: at(96), count: 2 };
        for bit in 0..SIZE * 8 {
            let mut bytes = state.encode(5, 96);
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SlotState::decode(&bytes, 96).is_err(), "bit {bit}");
        }
        assert!(SlotState::decode(&state.encode(5, 96), 128).is_err(), "at another place");
        assert!(SlotState::decode(&[0; SIZE], 96).is_err(), "zeros are no slot");
    }

    #[test]
    fn cancels_take_away_but_not_below_zero() {
        let state = SlotState::after(None, at(48), EntryKind::Cancel);
        assert_eq!(state, SlotState { first: at(48), last: at(48), count: 0 });
        let state = SlotState::after(Some(state), at(96), EntryKind::Add);
        assert_eq!(state, SlotState { first: at(48), last: at(96), count: 1 });
        assert_eq!(SlotState::after(Some(state), at(144), EntryKind::Cancel).count, 0);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            number in any::<u64>(),
            first in 1..u64::MAX / 2,
            more in 0..u64::MAX / 2,
            count in any::<u32>(),
            offset in any::<u64>(),
        ) {
            let state = SlotState { first: at(first), last: at(first + more), count };
            prop_assert_eq!(SlotState::decode(&state.encode(number, offset), offset), Ok((number, state)));
        }
    }
}
