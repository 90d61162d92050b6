//! The append group: what one turn of the flush writes. This page is the format of its header.
//!
//! ```text
//! byte   0         8            16       24            32             40              56       60      64          72      74      76            92       96
//!        +---------+------------+--------+-------------+--------------+---------------+--------+-------+-----------+-------+-------+-------------+--------+
//!        | magic   | own offset | number | incarnation | durable upto | previous hash | length | count | closed at | kind  | ver-  | records     | header |
//!        |         |            |        |             |              |               |        |       | ms        |       | sion  | hash        | crc    |
//!        +---------+------------+--------+-------------+--------------+---------------+--------+-------+-----------+-------+-------+-------------+--------+
//! ```
//!
//! - Little-endian. *length* counts the header and all records; *count* the records.
//! - *records hash*: XXH3-128 over the crcs of the records, in order. With the records' own crcs it
//!   says whether the group is whole. The group's *hash* is XXH3-128 over the header up to the
//!   header crc; the next group carries it as *previous hash*, so that groups form a chain.
//! - *durable upto*: how far the log was flushed when this group was written. So a damaged group
//!   below the *durable upto* of a later one is rot, and one above all of them is a torn tail.
//! - *kind* 1 holds records. Kind 2 ends a segment: nothing more stands in it, *length* reaches to
//!   the segment's end, *count* is zero.
//! - *number* grows by one from group to group; *incarnation* counts the starts of the server.
//! - Written by the flush alone. A group is there whole after a crash or not at all; no request is
//!   split over two.

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::clock::Timestamp;
use crate::message::offset::Offset;
use crate::message::record::{read_u16, read_u32, read_u64};

const MAGIC: usize = 0;
const OWN_OFFSET: usize = MAGIC + 8;
const NUMBER: usize = OWN_OFFSET + 8;
const INCARNATION: usize = NUMBER + 8;
const DURABLE_UPTO: usize = INCARNATION + 8;
const PREVIOUS_HASH: usize = DURABLE_UPTO + 8;
const LENGTH: usize = PREVIOUS_HASH + 16;
const COUNT: usize = LENGTH + 4;
const CLOSED_AT: usize = COUNT + 4;
const KIND: usize = CLOSED_AT + 8;
const VERSION_AT: usize = KIND + 2;
const RECORDS_HASH: usize = VERSION_AT + 2;
const HEADER_CRC: usize = RECORDS_HASH + 16;
/// The header of a group, in bytes: three steps.
pub const GROUP_HEADER: usize = HEADER_CRC + 4;
const _: () = assert!(GROUP_HEADER == 96);

/// The longest group, in bytes: what a turn may take before the next one begins.
pub const MAX_GROUP: usize = 8 * 1024 * 1024;

const VERSION: u16 = 1;

/// Secret to one data directory, so that a body cannot pass for a group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GroupMagic(pub u64);

impl std::fmt::Debug for GroupMagic {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("GroupMagic(secret)")
    }
}

/// What a group is for. Persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum GroupKind {
    Records = 1,
    EndOfSegment = 2,
}

/// A group's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupHeader {
    pub offset: Offset,
    pub number: u64,
    pub incarnation: u64,
    pub durable_upto: Offset,
    pub previous_hash: u128,
    pub length: u32,
    pub count: u32,
    pub closed_at: Timestamp,
    pub kind: GroupKind,
    pub records_hash: u128,
}

/// Why bytes are not a group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    #[error("{got} bytes are too few for a group's header")]
    Short { got: usize },
    #[error("it does not begin with this data directory's magic")]
    Magic,
    #[error("header crc is {got:08x}, computed {expected:08x}")]
    HeaderCrc { got: u32, expected: u32 },
    #[error("it names offset {got} as its own, but stands at {expected}")]
    Offset { got: u64, expected: u64 },
    #[error("group version {got} is newer than {VERSION}, the newest this program reads")]
    Version { got: u16 },
    #[error("its header does not follow the format: {0}")]
    Head(&'static str),
}

impl GroupHeader {
    pub fn encode(&self, magic: GroupMagic) -> [u8; GROUP_HEADER] {
        let mut bytes = [0; GROUP_HEADER];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(MAGIC, &magic.0.to_le_bytes());
        put(OWN_OFFSET, &self.offset.get().to_le_bytes());
        put(NUMBER, &self.number.to_le_bytes());
        put(INCARNATION, &self.incarnation.to_le_bytes());
        put(DURABLE_UPTO, &self.durable_upto.get().to_le_bytes());
        put(PREVIOUS_HASH, &self.previous_hash.to_le_bytes());
        put(LENGTH, &self.length.to_le_bytes());
        put(COUNT, &self.count.to_le_bytes());
        put(CLOSED_AT, &self.closed_at.as_millis().to_le_bytes());
        put(KIND, &(self.kind as u16).to_le_bytes());
        put(VERSION_AT, &VERSION.to_le_bytes());
        put(RECORDS_HASH, &self.records_hash.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..HEADER_CRC]);
        bytes[HEADER_CRC..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Checks the header of the group that begins with `bytes` and stands at `offset`.
    ///
    /// # Errors
    ///
    /// [`GroupError`] says what is wrong; nothing of the header can be believed then.
    pub fn decode(bytes: &[u8], offset: Offset, magic: GroupMagic) -> Result<Self, GroupError> {
        let Some(bytes) = bytes.get(..GROUP_HEADER) else {
            return Err(GroupError::Short { got: bytes.len() });
        };
        if read_u64(bytes, MAGIC) != magic.0 {
            return Err(GroupError::Magic);
        }
        let (got, expected) = (read_u32(bytes, HEADER_CRC), crc32c::crc32c(&bytes[..HEADER_CRC]));
        if got != expected {
            return Err(GroupError::HeaderCrc { got, expected });
        }
        let own = read_u64(bytes, OWN_OFFSET);
        if own != offset.get() {
            return Err(GroupError::Offset { got: own, expected: offset.get() });
        }
        let version = read_u16(bytes, VERSION_AT);
        if version > VERSION {
            return Err(GroupError::Version { got: version });
        }
        if version == 0 {
            return Err(GroupError::Head("no group was ever written in version 0"));
        }
        let kind = match read_u16(bytes, KIND) {
            1 => GroupKind::Records,
            2 => GroupKind::EndOfSegment,
            _ => return Err(GroupError::Head("a group's kind is not known")),
        };
        let length = read_u32(bytes, LENGTH);
        if kind == GroupKind::Records && !(GROUP_HEADER..=MAX_GROUP).contains(&(length as usize))
            || !u64::from(length).is_multiple_of(crate::message::offset::STEP)
        {
            return Err(GroupError::Head("a group's length is out of range"));
        }
        Ok(Self {
            offset,
            number: read_u64(bytes, NUMBER),
            incarnation: read_u64(bytes, INCARNATION),
            durable_upto: Offset::new(read_u64(bytes, DURABLE_UPTO)),
            previous_hash: read_u128(bytes, PREVIOUS_HASH),
            length,
            count: read_u32(bytes, COUNT),
            closed_at: Timestamp::from_millis(read_u64(bytes, CLOSED_AT)),
            kind,
            records_hash: read_u128(bytes, RECORDS_HASH),
        })
    }

    /// What the next group carries as its previous hash.
    pub fn hash(&self, magic: GroupMagic) -> u128 {
        xxh3_128(&self.encode(magic)[..HEADER_CRC])
    }

    /// Where the next group begins.
    pub fn end(&self) -> Offset {
        self.offset.plus(u64::from(self.length))
    }
}

/// Collects the crcs of a group's records.
#[derive(Default)]
pub struct RecordsHash(Xxh3);

impl RecordsHash {
    pub fn add(&mut self, crcs: [u8; 8]) {
        self.0.update(&crcs);
    }

    pub fn finish(&self) -> u128 {
        self.0.digest128()
    }
}

impl std::fmt::Debug for RecordsHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "RecordsHash({:032x})", self.finish())
    }
}

fn read_u128(bytes: &[u8], at: usize) -> u128 {
    u128::from(read_u64(bytes, at)) | u128::from(read_u64(bytes, at + 8)) << 64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: GroupMagic = GroupMagic(0x1122_3344_5566_7788);

    fn sample() -> GroupHeader {
        GroupHeader {
            offset: Offset::new(4096),
            number: 7,
            incarnation: 3,
            durable_upto: Offset::new(4096),
            previous_hash: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
            length: 960,
            count: 5,
            closed_at: Timestamp::from_millis(1_790_000_000_000),
            kind: GroupKind::Records,
            records_hash: 42,
        }
    }

    #[test]
    fn a_header_comes_back_as_it_was_written() {
        let header = sample();
        assert_eq!(GroupHeader::decode(&header.encode(SECRET), header.offset, SECRET), Ok(header));
    }

    #[test]
    fn the_bytes_of_a_header_are_fixed() {
        let bytes = sample().encode(SECRET);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "8877665544332211001000000000000007000000000000000300000000000000\
             0010000000000000100f0e0d0c0b0a090807060504030201c003000005000000\
             006c50c4a0010000010001002a000000000000000000000000000000"
                .to_owned()
                + &format!("{:08x}", crc32c::crc32c(&bytes[..92]).swap_bytes())
        );
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let header = sample();
        let whole = header.encode(SECRET);
        for bit in 0..GROUP_HEADER * 8 {
            let mut bytes = whole;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(GroupHeader::decode(&bytes, header.offset, SECRET).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_header_elsewhere_or_of_another_directory_is_none() {
        let header = sample();
        let bytes = header.encode(SECRET);
        assert_eq!(
            GroupHeader::decode(&bytes, Offset::new(8192), SECRET),
            Err(GroupError::Offset { got: 4096, expected: 8192 })
        );
        assert_eq!(
            GroupHeader::decode(&bytes, header.offset, GroupMagic(1)),
            Err(GroupError::Magic)
        );
    }
}
