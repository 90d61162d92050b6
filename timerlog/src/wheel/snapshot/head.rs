//! The format of a snapshot, and the codec of its head.
//!
//! ```text
//!  0               8       12      16              24              32              40
//!  +---------------+-------+-------+---------------+---------------+---------------+
//!  | magic         |version| crc   | revision      | near length   | far length    |
//!  +---------------+-------+-------+---------------+---------------+---------------+
//!  40              48              56              64              72              96
//!  +---------------+---------------+---------------+---------------+---------------+
//!  | read time     | far boundary  | near count    | far count     | zeros         |
//!  +---------------+---------------+---------------+---------------+---------------+
//!  96
//!  +--------------------------------+--------------------------------+---- - -
//!  | slot, 32 bytes                 | slot, 32 bytes                 |
//!  +--------------------------------+--------------------------------+---- - -
//! ```
//!
//! | at | bytes | field        | meaning                                                     |
//! |----|-------|--------------|-------------------------------------------------------------|
//! | 0  | 8     | magic        | `HoroSnap`                                                  |
//! | 8  | 4     | version      | 1                                                           |
//! | 12 | 4     | crc          | crc32c of bytes 0 to 11 and 16 to 95                        |
//! | 16 | 8     | revision     | how many changes the wheel had seen; also the file's name   |
//! | 24 | 8     | near length  | the near log up to here is in the near slots                |
//! | 32 | 8     | far length   | the far log up to here is in the far slots                  |
//! | 40 | 8     | read time    | of the wheel at that moment                                 |
//! | 48 | 8     | far boundary | of the wheel at that moment                                 |
//! | 56 | 8     | near count   | slots of the near ring that follow                          |
//! | 64 | 8     | far count    | slots of the far ring that follow those                     |
//! | 72 | 24    | zeros        | free for later versions                                     |
//! | 96 | 32 n  | slots        | `slot` has their format; each has its own crc               |
//!
//! Little-endian. Written whole under another name, synced, then renamed, by the sole writer of the
//! wheel or by whoever it gave the captured slots to. A reader trusts it when every crc is right and
//! its revision is not above that of the checkpoint: a later one knows of slots that were settled
//! after the checkpoint, and they may not be settled any more.

use crate::bytes::{get_u32, get_u64, put_u32, put_u64};
use crate::error::DamageKind;
use crate::wheel::slot;

const MAGIC: usize = 0;
const VERSION: usize = MAGIC + 8;
const CRC: usize = VERSION + 4;
const REVISION: usize = CRC + 4;
const NEAR_LENGTH: usize = REVISION + 8;
const FAR_LENGTH: usize = NEAR_LENGTH + 8;
const READ_TIME: usize = FAR_LENGTH + 8;
const FAR_BOUNDARY: usize = READ_TIME + 8;
const NEAR_COUNT: usize = FAR_BOUNDARY + 8;
const FAR_COUNT: usize = NEAR_COUNT + 8;
const ZEROS: usize = FAR_COUNT + 8;
/// Where the slots begin.
pub(super) const SLOTS: usize = ZEROS + 24;
const _: () = assert!(SLOTS == 96 && SLOTS.is_multiple_of(slot::SIZE));

const THE_MAGIC: [u8; 8] = *b"HoroSnap";
const THE_VERSION: u32 = 1;

/// What the slots are a snapshot of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wheel) struct Head {
    pub(in crate::wheel) revision: u64,
    pub(in crate::wheel) near_length: u64,
    pub(in crate::wheel) far_length: u64,
    pub(in crate::wheel) read_time: u64,
    pub(in crate::wheel) far_boundary: u64,
    pub(in crate::wheel) near_count: u64,
    pub(in crate::wheel) far_count: u64,
}

impl Head {
    pub(super) fn encode(&self) -> [u8; SLOTS] {
        let mut bytes = [0; SLOTS];
        bytes[..VERSION].copy_from_slice(&THE_MAGIC);
        put_u32(&mut bytes, VERSION, THE_VERSION);
        put_u64(&mut bytes, REVISION, self.revision);
        put_u64(&mut bytes, NEAR_LENGTH, self.near_length);
        put_u64(&mut bytes, FAR_LENGTH, self.far_length);
        put_u64(&mut bytes, READ_TIME, self.read_time);
        put_u64(&mut bytes, FAR_BOUNDARY, self.far_boundary);
        put_u64(&mut bytes, NEAR_COUNT, self.near_count);
        put_u64(&mut bytes, FAR_COUNT, self.far_count);
        let crc = crc(&bytes);
        put_u32(&mut bytes, CRC, crc);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; SLOTS]) -> Result<Self, DamageKind> {
        let (expected, found) = (get_u32(bytes, CRC), crc(bytes));
        if expected != found || bytes[..VERSION] != THE_MAGIC {
            return Err(DamageKind::Checksum { expected, found });
        }
        let version = get_u32(bytes, VERSION);
        if version != THE_VERSION {
            return Err(DamageKind::UnknownVersion { known: THE_VERSION, found: version });
        }
        if bytes[ZEROS..] != [0; SLOTS - ZEROS] {
            return Err(DamageKind::NotZero);
        }
        Ok(Self {
            revision: get_u64(bytes, REVISION),
            near_length: get_u64(bytes, NEAR_LENGTH),
            far_length: get_u64(bytes, FAR_LENGTH),
            read_time: get_u64(bytes, READ_TIME),
            far_boundary: get_u64(bytes, FAR_BOUNDARY),
            near_count: get_u64(bytes, NEAR_COUNT),
            far_count: get_u64(bytes, FAR_COUNT),
        })
    }

    /// The length of the file, unless the counts are beyond all sense.
    pub(super) fn file_length(&self) -> Option<u64> {
        let slots = self.near_count.checked_add(self.far_count)?;
        slots.checked_mul(slot::SIZE as u64)?.checked_add(SLOTS as u64)
    }
}

fn crc(bytes: &[u8; SLOTS]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CRC]), &bytes[REVISION..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(revision: u64, near_count: u64, far_count: u64) -> Head {
        Head {
            revision,
            near_length: 2,
            far_length: 3,
            read_time: 4,
            far_boundary: 5,
            near_count,
            far_count,
        }
    }

    #[test]
    fn the_bytes_of_the_head_are_those_of_version_1() {
        let mut golden = [0; SLOTS];
        golden[..8].copy_from_slice(b"HoroSnap");
        golden[8] = 1;
        golden[12..16].copy_from_slice(&[0xF6, 0x25, 0xA9, 0xE3]);
        for number in 1..=7_u8 {
            golden[8 + 8 * usize::from(number)] = number;
        }
        assert_eq!(head(1, 6, 7).encode(), golden);
        assert_eq!(Head::decode(&golden), Ok(head(1, 6, 7)));
    }
}
