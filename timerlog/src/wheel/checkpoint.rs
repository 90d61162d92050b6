//! What a wheel must be told to be the same again: its part of the store's checkpoint, 128 bytes.
//!
//! | at  | bytes | field         | meaning                                                      |
//! |-----|-------|---------------|--------------------------------------------------------------|
//! | 0   | 4     | version       | 1                                                            |
//! | 4   | 4     | precision     | milliseconds in a near slot                                  |
//! | 8   | 8     | near slots    | slots in the near ring                                       |
//! | 16  | 8     | far slots     | slots in the far ring                                        |
//! | 24  | 8     | segment size  | bytes in each file of the logs                               |
//! | 32  | 8     | near floor    | everything in the near log below it is settled               |
//! | 40  | 8     | near length   | nothing in the near log past it is read                      |
//! | 48  | 8     | far floor     | the same for the far log                                     |
//! | 56  | 8     | far length    |                                                              |
//! | 64  | 8     | read time     | the first near slot that is not wholly settled               |
//! | 72  | 8     | far boundary  | the first near slot that is still filed far                  |
//! | 80  | 8     | revision      | how many changes the wheel has seen since it was created     |
//! | 88  | 8     | mark          | the caller's                                                 |
//! | 96  | 8     | lineage       | which wheel of its directory this is; the logs carry it too  |
//! | 104 | 20    | zeros         | free for later versions                                      |
//! | 124 | 4     | crc           | crc32c of bytes 0 to 123                                     |
//!
//! Little-endian. It is embedded in a checkpoint that is written when the logs are flushed up to
//! these lengths; until then it must not be trusted.

use super::Config;
use crate::bytes::{get_u32, get_u64, put_u32, put_u64};
use crate::error::DamageKind;

const VERSION: usize = 0;
const PRECISION: usize = VERSION + 4;
const NEAR_SLOTS: usize = PRECISION + 4;
const FAR_SLOTS: usize = NEAR_SLOTS + 8;
const SEGMENT_SIZE: usize = FAR_SLOTS + 8;
const NEAR_FLOOR: usize = SEGMENT_SIZE + 8;
const NEAR_LENGTH: usize = NEAR_FLOOR + 8;
const FAR_FLOOR: usize = NEAR_LENGTH + 8;
const FAR_LENGTH: usize = FAR_FLOOR + 8;
const READ_TIME: usize = FAR_LENGTH + 8;
const FAR_BOUNDARY: usize = READ_TIME + 8;
const REVISION: usize = FAR_BOUNDARY + 8;
const MARK: usize = REVISION + 8;
const LINEAGE: usize = MARK + 8;
const ZEROS: usize = LINEAGE + 8;
const CRC: usize = ZEROS + 20;
const SIZE: usize = CRC + 4;
const _: () = assert!(SIZE == TimerCheckpoint::SIZE);

const THE_VERSION: u32 = 1;

/// Where a wheel stood at one moment. See [`TimerWheel::checkpoint`](super::TimerWheel::checkpoint)
/// for when it may be written, and [`TimerWheel::open`](super::TimerWheel::open) for its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerCheckpoint {
    /// Milliseconds in a near slot.
    pub precision_ms: u32,
    pub near_slots: u64,
    pub far_slots: u64,
    /// Bytes in each file of the logs.
    pub segment_size: u64,
    /// Everything in the near log below this position is settled; its files may be gone.
    pub near_floor: u64,
    /// How much of the near log there is, in bytes.
    pub near_length: u64,
    pub far_floor: u64,
    pub far_length: u64,
    /// The first near slot that is not wholly settled.
    pub read_time: u64,
    /// The first near slot that is still filed in the far ring.
    pub far_boundary: u64,
    /// How many changes the wheel had seen. Tells which snapshots are not from later.
    pub revision: u64,
    /// What the caller last gave to [`TimerWheel::set_mark`](super::TimerWheel::set_mark) when this
    /// was the state of the wheel.
    pub mark: u64,
    /// Which wheel this is of those that were made in its directory, one after another.
    pub lineage: u64,
}

impl TimerCheckpoint {
    /// Bytes of an encoded checkpoint.
    pub const SIZE: usize = 128;

    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; SIZE];
        put_u32(&mut bytes, VERSION, THE_VERSION);
        put_u32(&mut bytes, PRECISION, self.precision_ms);
        put_u64(&mut bytes, NEAR_SLOTS, self.near_slots);
        put_u64(&mut bytes, FAR_SLOTS, self.far_slots);
        put_u64(&mut bytes, SEGMENT_SIZE, self.segment_size);
        put_u64(&mut bytes, NEAR_FLOOR, self.near_floor);
        put_u64(&mut bytes, NEAR_LENGTH, self.near_length);
        put_u64(&mut bytes, FAR_FLOOR, self.far_floor);
        put_u64(&mut bytes, FAR_LENGTH, self.far_length);
        put_u64(&mut bytes, READ_TIME, self.read_time);
        put_u64(&mut bytes, FAR_BOUNDARY, self.far_boundary);
        put_u64(&mut bytes, REVISION, self.revision);
        put_u64(&mut bytes, MARK, self.mark);
        put_u64(&mut bytes, LINEAGE, self.lineage);
        let crc = crc32c::crc32c(&bytes[..CRC]);
        put_u32(&mut bytes, CRC, crc);
        bytes
    }

    /// The checkpoint that `bytes` are.
    ///
    /// # Errors
    ///
    /// [`DamageKind::Checksum`] when they are not what was encoded, [`DamageKind::UnknownVersion`]
    /// when another version of this program encoded them, [`DamageKind::PastEnd`] when a log would begin after its end.
    pub fn decode(bytes: &[u8; Self::SIZE]) -> Result<Self, DamageKind> {
        let (expected, found) = (get_u32(bytes, CRC), crc32c::crc32c(&bytes[..CRC]));
        if expected != found {
            return Err(DamageKind::Checksum { expected, found });
        }
        let version = get_u32(bytes, VERSION);
        if version != THE_VERSION {
            return Err(DamageKind::UnknownVersion { known: THE_VERSION, found: version });
        }
        if bytes[ZEROS..CRC] != [0; CRC - ZEROS] {
            return Err(DamageKind::NotZero);
        }
        let read = Self {
            precision_ms: get_u32(bytes, PRECISION),
            near_slots: get_u64(bytes, NEAR_SLOTS),
            far_slots: get_u64(bytes, FAR_SLOTS),
            segment_size: get_u64(bytes, SEGMENT_SIZE),
            near_floor: get_u64(bytes, NEAR_FLOOR),
            near_length: get_u64(bytes, NEAR_LENGTH),
            far_floor: get_u64(bytes, FAR_FLOOR),
            far_length: get_u64(bytes, FAR_LENGTH),
            read_time: get_u64(bytes, READ_TIME),
            far_boundary: get_u64(bytes, FAR_BOUNDARY),
            revision: get_u64(bytes, REVISION),
            mark: get_u64(bytes, MARK),
            lineage: get_u64(bytes, LINEAGE),
        };
        for (floor, end) in [(read.near_floor, read.near_length), (read.far_floor, read.far_length)]
        {
            if floor > end {
                return Err(DamageKind::PastEnd { end });
            }
        }
        Ok(read)
    }

    /// Whether a wheel of these measures wrote it.
    pub(super) fn is_of(&self, config: &Config) -> bool {
        self.precision_ms == config.precision_ms
            && self.near_slots == config.near_slots
            && self.far_slots == config.far_slots
            && self.segment_size == config.segment_size
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checkpoint(numbers: [u64; 12], precision_ms: u32) -> TimerCheckpoint {
        TimerCheckpoint {
            precision_ms,
            near_slots: numbers[0],
            far_slots: numbers[1],
            segment_size: numbers[2],
            near_floor: numbers[3],
            near_length: numbers[4],
            far_floor: numbers[5],
            far_length: numbers[6],
            read_time: numbers[7],
            far_boundary: numbers[8],
            revision: numbers[9],
            mark: numbers[10],
            lineage: numbers[11],
        }
    }

    #[test]
    fn the_bytes_are_those_of_version_1() {
        let numbers = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let bytes = checkpoint(numbers, 1000).encode();
        let mut golden = [0; SIZE];
        golden[0] = 1;
        golden[4..6].copy_from_slice(&[0xE8, 0x03]);
        for (index, number) in numbers.into_iter().enumerate() {
            golden[8 + index * 8] = u8::try_from(number).expect("small");
        }
        golden[124..].copy_from_slice(&[0x77, 0x6D, 0x46, 0xEA]);
        assert_eq!(bytes, golden);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = checkpoint([7; 12], 1000).encode();
        for bit in 0..SIZE * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(TimerCheckpoint::decode(&damaged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_later_version_is_refused_by_its_number() {
        let mut bytes = checkpoint([7; 12], 1000).encode();
        put_u32(&mut bytes, VERSION, 2);
        let crc = crc32c::crc32c(&bytes[..CRC]);
        put_u32(&mut bytes, CRC, crc);
        let refused = DamageKind::UnknownVersion { known: 1, found: 2 };
        assert_eq!(TimerCheckpoint::decode(&bytes), Err(refused));
    }

    /// Such a log was opened, and what was appended to it went to where it was thought to be settled.
    #[test]
    fn a_log_that_begins_after_its_end_is_refused() {
        let whole = checkpoint([7; 12], 1000);
        let refused = Err(DamageKind::PastEnd { end: 7 });
        let near = TimerCheckpoint { near_floor: 8, ..whole };
        assert_eq!(TimerCheckpoint::decode(&near.encode()), refused);
        let far = TimerCheckpoint { far_floor: 8, ..whole };
        assert_eq!(TimerCheckpoint::decode(&far.encode()), refused);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            mut numbers in any::<[u64; 12]>(),
            precision_ms in any::<u32>(),
        ) {
            // Each log's floor, then its length.
            numbers[3..5].sort_unstable();
            numbers[5..7].sort_unstable();
            let checkpoint = checkpoint(numbers, precision_ms);
            prop_assert_eq!(TimerCheckpoint::decode(&checkpoint.encode()), Ok(checkpoint));
        }
    }
}
