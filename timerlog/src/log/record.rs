//! The TimerLog record: 48 bytes that say what is due, when, and which record of its slot came
//! before.
//!
//! ```text
//!  0       4       8                       16                      24
//!  +-------+-------+---------------------+-+-----------------------+
//!  | crc   | length| slot                |k| previous              |
//!  +-------+-------+---------------------+-+-----------------------+
//!  24                      32                      40              48
//!  +-----------------------+-----------------------+---------------+
//!  | deadline              | offset                | tag           |
//!  +-----------------------+-----------------------+---------------+
//! ```
//!
//! | at | bytes | field    | meaning                                                             |
//! |----|-------|----------|---------------------------------------------------------------------|
//! | 0  | 4     | crc      | crc32c of the record's position (8 bytes) and of its bytes 4 to 47   |
//! | 4  | 4     | length   | bytes of what is due, as its owner counts them                       |
//! | 8  | 7     | slot     | number of the slot: time since 1970 in slots of this log's width     |
//! | 15 | 1     | kind     | 1 add, 2 cancel, 3 note; other numbers are free                      |
//! | 16 | 8     | previous | position of the record before it in the same slot; 0: it is the first|
//! | 24 | 8     | deadline | when it is due, in milliseconds since 1970                           |
//! | 32 | 8     | offset   | its name: where the owner keeps it                                   |
//! | 40 | 8     | tag      | 64 bits of the owner's                                               |
//!
//! Little-endian throughout. Format version: that of the file header. Written by the sole writer of
//! the wheel, in one write per batch. A reader may trust a record below the checkpointed length of
//! the log, or below the committed length while the writer lives, if its crc is right. The position
//! is under the crc so that a page that shows up in a wrong place is noticed, even though each
//! record on it is sound.

use crate::bytes::{crc_at, get_u32, get_u64, put_u32, put_u64};
use crate::error::DamageKind;
use crate::position::Position;

pub(crate) const SIZE: usize = TAG + 8;
/// [`SIZE`] in positions.
pub(crate) const STEP: u64 = SIZE as u64;
const CRC: usize = 0;
const LENGTH: usize = CRC + 4;
const SLOT: usize = LENGTH + 4;
const KIND: usize = SLOT + 7;
const PREVIOUS: usize = KIND + 1;
const DEADLINE: usize = PREVIOUS + 8;
const OFFSET: usize = DEADLINE + 8;
const TAG: usize = OFFSET + 8;
const _: () = assert!(SIZE == 48);

/// The highest slot number that fits the seven bytes it has.
pub(crate) const SLOT_MAX: u64 = (1 << 56) - 1;

/// One thing that is due at one moment. The index looks only at `deadline` and `offset`; the rest it
/// keeps and gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// When it is due, in milliseconds since 1970.
    pub deadline: u64,
    /// Its name: unique, and higher for what arrived later. Ties of the deadline are ordered by it.
    pub offset: u64,
    /// Bytes of it, as its owner counts them.
    pub length: u32,
    /// 64 bits of the owner's.
    pub tag: u64,
}

/// What a record does to the entry it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// The entry is due at its deadline. Persisted as 1.
    Add = 1,
    /// The entry of this offset need not be looked at any more. Persisted as 2.
    Cancel = 2,
    /// As an add, and not counted: it is about something that is no entry of its own. Persisted as 3.
    Note = 3,
}

impl EntryKind {
    fn decode(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Add),
            2 => Some(Self::Cancel),
            3 => Some(Self::Note),
            _ => None,
        }
    }
}

/// A record of a TimerLog, as it was filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: EntryKind,
    /// The slot it was filed in: that of its deadline, or a later one if that was settled already.
    pub slot: u64,
    /// The record before it in the chain of its slot.
    pub previous: Option<Position>,
    pub entry: Entry,
}

impl Record {
    /// The bytes of the record at `position`.
    ///
    /// # Panics
    ///
    /// When the slot number does not fit, or `previous` is not before `position`.
    pub(crate) fn encode(&self, position: Position) -> [u8; SIZE] {
        assert!(self.slot <= SLOT_MAX, "slot {} does not fit seven bytes", self.slot);
        assert!(self.previous < Some(position), "a chain leads back: {self:?} at {position}");
        let mut bytes = [0; SIZE];
        put_u32(&mut bytes, LENGTH, self.entry.length);
        put_u64(&mut bytes, SLOT, self.slot);
        bytes[KIND] = self.kind as u8;
        put_u64(&mut bytes, PREVIOUS, Position::encode(self.previous));
        put_u64(&mut bytes, DEADLINE, self.entry.deadline);
        put_u64(&mut bytes, OFFSET, self.entry.offset);
        put_u64(&mut bytes, TAG, self.entry.tag);
        let crc = crc_at(position.get(), &bytes[LENGTH..]);
        put_u32(&mut bytes, CRC, crc);
        bytes
    }

    /// The record that `bytes`, found at `position`, are.
    ///
    /// # Errors
    ///
    /// When they are none that was written at this position.
    pub(crate) fn decode(bytes: &[u8], position: Position) -> Result<Self, DamageKind> {
        let expected = get_u32(bytes, CRC);
        let found = crc_at(position.get(), &bytes[LENGTH..SIZE]);
        if expected != found {
            return Err(DamageKind::Checksum { expected, found });
        }
        let kind = EntryKind::decode(bytes[KIND]);
        let kind = kind.ok_or(DamageKind::UnknownKind { found: bytes[KIND] })?;
        let previous = Position::new(get_u64(bytes, PREVIOUS));
        if previous >= Some(position) {
            return Err(DamageKind::LeadsForward { previous: Position::encode(previous) });
        }
        Ok(Self {
            kind,
            slot: get_u64(bytes, SLOT) & SLOT_MAX,
            previous,
            entry: Entry {
                deadline: get_u64(bytes, DEADLINE),
                offset: get_u64(bytes, OFFSET),
                length: get_u32(bytes, LENGTH),
                tag: get_u64(bytes, TAG),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(bytes: u64) -> Position {
        Position::new(bytes).expect("not zero")
    }

    fn sample() -> Record {
        let entry = Entry {
            deadline: 1_700_000_000_123,
            offset: 0x0102_0304_0506_0708,
            length: 0x0A0B_0C0D,
            tag: 0x1112_1314_1516_1718,
        };
        Record { kind: EntryKind::Cancel, slot: 1_700_000_000, previous: Some(at(96)), entry }
    }

    #[test]
    fn the_bytes_are_those_of_version_1() {
        let golden = [
            0x22, 0xF1, 0xC3, 0x9F, 0x0D, 0x0C, 0x0B, 0x0A, // crc, length
            0x00, 0xF1, 0x53, 0x65, 0x00, 0x00, 0x00, 0x02, // slot, kind
            0x60, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // previous
            0x7B, 0x68, 0xE5, 0xCF, 0x8B, 0x01, 0x00, 0x00, // deadline
            0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, // offset
            0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, // tag
        ];
        assert_eq!(sample().encode(at(144)), golden);
        assert_eq!(Record::decode(&golden, at(144)), Ok(sample()));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = sample().encode(at(144));
        for bit in 0..SIZE * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            let result = Record::decode(&damaged, at(144));
            assert!(matches!(result, Err(DamageKind::Checksum { .. })), "bit {bit}");
        }
    }

    #[test]
    fn a_record_at_another_position_is_noticed() {
        let bytes = sample().encode(at(144));
        assert!(Record::decode(&bytes, at(192)).is_err());
        assert!(Record::decode(&[0; SIZE], at(144)).is_err(), "zeros are no record");
    }

    #[test]
    fn a_kind_of_a_later_version_is_refused_by_its_number() {
        let mut bytes = sample().encode(at(144));
        bytes[KIND] = 4;
        let crc = crc_at(144, &bytes[LENGTH..]);
        put_u32(&mut bytes, CRC, crc);
        assert_eq!(Record::decode(&bytes, at(144)), Err(DamageKind::UnknownKind { found: 4 }));
    }

    #[test]
    fn a_previous_that_does_not_lead_back_is_refused() {
        let mut bytes = sample().encode(at(144));
        put_u64(&mut bytes, PREVIOUS, 144);
        let crc = crc_at(144, &bytes[LENGTH..]);
        put_u32(&mut bytes, CRC, crc);
        let refused = Record::decode(&bytes, at(144));
        assert_eq!(refused, Err(DamageKind::LeadsForward { previous: 144 }));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            add in any::<bool>(),
            slot in 0..=SLOT_MAX,
            (previous, position) in (0..u64::MAX - 1).prop_flat_map(|p| (Just(p), p + 1..u64::MAX)),
            (deadline, offset, length, tag) in any::<(u64, u64, u32, u64)>(),
        ) {
            let kind = if add { EntryKind::Add } else { EntryKind::Cancel };
            let entry = Entry { deadline, offset, length, tag };
            let record = Record { kind, slot, previous: Position::new(previous), entry };
            let bytes = record.encode(at(position));
            prop_assert_eq!(Record::decode(&bytes, at(position)), Ok(record));
        }
    }
}
