//! Units, to be tried with bytes that nobody wrote.

use timerlog::decoder::{Decoder, Judged};

use super::{UNIT_LENGTH, Unit};
use crate::clock::Timestamp;
use crate::message::offset::Offset;

const PLACE: u64 = 1_000_000;

pub(crate) fn decoder() -> Decoder {
    Decoder::new("unit", samples, seal, judge)
}

fn samples() -> Vec<Vec<u8>> {
    let time = Timestamp::from_millis(1_790_000_000_000);
    let unit = Unit { offset: Offset::new(1 << 40), length: 200, tag_hash: 0xabcd, time };
    vec![unit.encode(PLACE).to_vec(), Unit::HOLE.encode(PLACE).to_vec()]
}

fn seal(bytes: &mut [u8]) {
    if bytes.len() >= UNIT_LENGTH {
        let crc = crc32c::crc32c(&bytes[..UNIT_LENGTH - 4]);
        let crc = crc32c::crc32c_append(crc, &PLACE.to_le_bytes());
        bytes[UNIT_LENGTH - 4..UNIT_LENGTH].copy_from_slice(&crc.to_le_bytes());
    }
}

fn judge(bytes: &[u8]) -> Judged {
    let Some(bytes) = bytes.first_chunk() else { return Judged::Refused };
    Judged::of(bytes, Unit::decode(bytes, PLACE), |unit| unit.encode(PLACE).to_vec())
}
