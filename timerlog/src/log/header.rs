//! The first 48 bytes of each file of a TimerLog: what it is, and where it belongs.
//!
//! ```text
//!  0               8       12      16              24              32              40      48
//!  +---------------+-------+-------+---------------+---------------+---------------+-------+
//!  | magic         |version| crc   | start         | slot width    | lineage       | zeros |
//!  +---------------+-------+-------+---------------+---------------+---------------+-------+
//! ```
//!
//! | at | bytes | field      | meaning                                                  |
//! |----|-------|------------|----------------------------------------------------------|
//! | 0  | 8     | magic      | `HoroTLog`                                               |
//! | 8  | 4     | version    | 1                                                        |
//! | 12 | 4     | crc        | crc32c of bytes 0 to 11 and 16 to 47                     |
//! | 16 | 8     | start      | position of this header in the log; also the file's name |
//! | 24 | 8     | slot width | milliseconds per slot: tells the near log from the far   |
//! | 32 | 8     | lineage    | which wheel of this directory, of those made one after another |
//! | 40 | 8     | zeros      | free for later versions                                  |
//!
//! Little-endian. It is as long as a record, so that every record lies at a multiple of 48. Written
//! in one write with the first records of the file, and checked for every file that holds trusted
//! bytes when the log is opened.

use crate::bytes::{get_u32, get_u64, put_u32, put_u64};
use crate::error::DamageKind;

pub(crate) const SIZE: usize = ZEROS + 8;
const MAGIC: usize = 0;
const VERSION: usize = MAGIC + 8;
const CRC: usize = VERSION + 4;
const START: usize = CRC + 4;
const SLOT_WIDTH: usize = START + 8;
const LINEAGE: usize = SLOT_WIDTH + 8;
const ZEROS: usize = LINEAGE + 8;
const _: () = assert!(SIZE == super::record::SIZE);

const THE_MAGIC: [u8; 8] = *b"HoroTLog";
const THE_VERSION: u32 = 1;

/// Where a file belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) start: u64,
    pub(crate) slot_width_ms: u64,
    pub(crate) lineage: u64,
}

impl Header {
    pub(crate) fn encode(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..VERSION].copy_from_slice(&THE_MAGIC);
        put_u32(&mut bytes, VERSION, THE_VERSION);
        put_u64(&mut bytes, START, self.start);
        put_u64(&mut bytes, SLOT_WIDTH, self.slot_width_ms);
        put_u64(&mut bytes, LINEAGE, self.lineage);
        let crc = crc(&bytes);
        put_u32(&mut bytes, CRC, crc);
        bytes
    }

    /// Checks that `bytes` are this header.
    pub(crate) fn check(self, bytes: &[u8; SIZE]) -> Result<(), DamageKind> {
        let (expected, found) = (get_u32(bytes, CRC), crc(bytes));
        if expected != found || bytes[..VERSION] != THE_MAGIC {
            return Err(DamageKind::Checksum { expected, found });
        }
        let version = get_u32(bytes, VERSION);
        if version != THE_VERSION {
            return Err(DamageKind::UnknownVersion { known: THE_VERSION, found: version });
        }
        let header = Self {
            start: get_u64(bytes, START),
            slot_width_ms: get_u64(bytes, SLOT_WIDTH),
            lineage: get_u64(bytes, LINEAGE),
        };
        if header != self {
            return Err(DamageKind::Misplaced);
        }
        if *bytes != self.encode() {
            return Err(DamageKind::NotZero);
        }
        Ok(())
    }
}

fn crc(bytes: &[u8; SIZE]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CRC]), &bytes[START..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAMPLE: Header = Header { start: 0x3000, slot_width_ms: 1000, lineage: 7 };

    #[test]
    fn the_bytes_are_those_of_version_1() {
        let mut golden = [0; SIZE];
        golden[..8].copy_from_slice(b"HoroTLog");
        golden[8] = 1;
        golden[12..16].copy_from_slice(&[0x65, 0x8E, 0x36, 0x10]);
        golden[16..18].copy_from_slice(&[0x00, 0x30]);
        golden[24..26].copy_from_slice(&[0xE8, 0x03]);
        golden[32] = 7;
        assert_eq!(SAMPLE.encode(), golden);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for bit in 0..SIZE * 8 {
            let mut bytes = SAMPLE.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SAMPLE.check(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_later_version_is_refused_by_its_number() {
        let mut bytes = SAMPLE.encode();
        put_u32(&mut bytes, VERSION, 2);
        let crc = crc(&bytes);
        put_u32(&mut bytes, CRC, crc);
        let refused = DamageKind::UnknownVersion { known: 1, found: 2 };
        assert_eq!(SAMPLE.check(&bytes), Err(refused));
    }

    proptest! {
        #[test]
        fn a_header_passes_for_itself_alone(
            (start, slot_width_ms, lineage) in any::<(u64, u64, u64)>(),
        ) {
            let header = Header { start, slot_width_ms, lineage };
            prop_assert_eq!(header.check(&header.encode()), Ok(()));
            if header != SAMPLE {
                prop_assert_eq!(SAMPLE.check(&header.encode()), Err(DamageKind::Misplaced));
            }
        }
    }
}
