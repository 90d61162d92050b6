//! A unit: one place in a queue, pointing at a message in the CommitLog.
//!
//! ```text
//! byte   0              8         12         14           20     24
//!        +--------------+---------+----------+------------+------+
//!        | offset       | length  | tag hash | time ms    | crc  |
//!        +--------------+---------+----------+------------+------+
//! ```
//!
//! - Little-endian. *offset* is the record that gave the message its moment: the message itself, unless
//!   it was moved. *length* is that record's, unpadded; 0 marks a place whose message was lost to a
//!   damaged record.
//! - *time*: on a topic's queue when the message became readable, on the timer topic its deadline.
//! - *crc*: CRC-32C over bytes 0 to 20 and then the unit's place in its queue (8 bytes), so that a unit
//!   found at another place is none.
//! - Written by dispatch alone. A reader may trust it below the queue's committed count.

use crate::clock::Timestamp;
use crate::message::offset::Offset;
use crate::message::record::{read_u16, read_u32, read_u64};

const LENGTH: usize = 8;
const TAG_HASH: usize = LENGTH + 4;
const TIME: usize = TAG_HASH + 2;
const CRC: usize = TIME + 6;
/// A unit on the disk, in bytes.
pub const UNIT_LENGTH: usize = CRC + 4;
const _: () = assert!(UNIT_LENGTH == 24);

/// The latest time a unit can tell: the year 10889.
const MAX_TIME: u64 = (1 << 48) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub offset: Offset,
    pub length: u32,
    pub tag_hash: u16,
    pub time: Timestamp,
}

impl Unit {
    /// Stands where the log lost what belongs there.
    pub const HOLE: Self =
        Self { offset: Offset::ZERO, length: 0, tag_hash: 0, time: Timestamp::from_millis(0) };

    pub fn is_hole(&self) -> bool {
        self.length == 0
    }

    pub fn encode(&self, place: u64) -> [u8; UNIT_LENGTH] {
        let mut bytes = [0; UNIT_LENGTH];
        bytes[..LENGTH].copy_from_slice(&self.offset.get().to_le_bytes());
        bytes[LENGTH..TAG_HASH].copy_from_slice(&self.length.to_le_bytes());
        bytes[TAG_HASH..TIME].copy_from_slice(&self.tag_hash.to_le_bytes());
        let time = self.time.as_millis().min(MAX_TIME).to_le_bytes();
        bytes[TIME..CRC].copy_from_slice(&time[..6]);
        let crc = checksum(&bytes, place);
        bytes[CRC..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The unit at `place`, or `None` when these bytes are not it.
    pub fn decode(bytes: &[u8; UNIT_LENGTH], place: u64) -> Option<Self> {
        if read_u32(bytes, CRC) != checksum(bytes, place) {
            return None;
        }
        let mut time = [0; 8];
        time[..6].copy_from_slice(&bytes[TIME..CRC]);
        Some(Self {
            offset: Offset::new(read_u64(bytes, 0)),
            length: read_u32(bytes, LENGTH),
            tag_hash: read_u16(bytes, TAG_HASH),
            time: Timestamp::from_millis(u64::from_le_bytes(time)),
        })
    }
}

fn checksum(bytes: &[u8; UNIT_LENGTH], place: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CRC]), &place.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Unit {
        Unit {
            offset: Offset::new(0x1020_3040),
            length: 1100,
            tag_hash: 0xabcd,
            time: Timestamp::from_millis(1_790_000_000_123),
        }
    }

    #[test]
    fn a_unit_comes_back_and_only_at_its_place() {
        for unit in [sample(), Unit::HOLE] {
            let bytes = unit.encode(9);
            assert_eq!(Unit::decode(&bytes, 9), Some(unit));
            assert_eq!(Unit::decode(&bytes, 10), None);
        }
    }

    #[test]
    fn the_bytes_of_a_unit_are_fixed() {
        let bytes = sample().encode(9);
        assert_eq!(
            bytes[..CRC],
            [64, 48, 32, 16, 0, 0, 0, 0, 76, 4, 0, 0, 0xcd, 0xab, 123, 108, 80, 196, 160, 1]
        );
        assert_eq!(read_u32(&bytes, CRC), checksum(&bytes, 9));
    }

    #[test]
    fn every_flipped_bit_is_noticed_and_so_is_a_page_of_zeros() {
        let whole = sample().encode(3);
        for bit in 0..UNIT_LENGTH * 8 {
            let mut bytes = whole;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Unit::decode(&bytes, 3), None, "bit {bit}");
        }
        assert_eq!(Unit::decode(&[0; UNIT_LENGTH], 3), None);
    }
}
