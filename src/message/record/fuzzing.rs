//! Records, to be tried with bytes that nobody wrote.

use std::sync::LazyLock;

use timerlog::decoder::{Decoder, Judged};

use super::*;

#[cfg(not(test))]
#[path = "tests/samples.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod samples;
#[cfg(test)]
use super::tests::samples;

use samples::{Fact, MAGIC as SECRET, OFFSET, samples};

/// The kinds that have a decoder.
static DECODED: LazyLock<Vec<u8>> =
    LazyLock::new(|| samples().iter().map(|(_, fact)| fact.encode().bytes[KIND]).collect());

pub(crate) fn decoder() -> Decoder {
    LazyLock::force(&DECODED);
    Decoder::new("record", written, seal, judge)
}

fn written() -> Vec<Vec<u8>> {
    samples().iter().map(|(_, fact)| fact.encode().seal(OFFSET, SECRET).to_vec()).collect()
}

fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER_LENGTH {
        return;
    }
    let head_end = HEADER_LENGTH.saturating_add(read_u32(bytes, HEAD_LENGTH) as usize);
    let body_end = head_end.saturating_add(read_u32(bytes, BODY_LENGTH) as usize);
    if let Some(body) = bytes.get(head_end..body_end) {
        let crc = crc32c::crc32c(body);
        bytes[BODY_CRC..OWN_OFFSET].copy_from_slice(&crc.to_le_bytes());
    }
    if let Some(head) = bytes.get(BODY_CRC..head_end) {
        let crc = crc32c::crc32c(head);
        bytes[HEADER_CRC..BODY_CRC].copy_from_slice(&crc.to_le_bytes());
    }
}

fn judge(bytes: &[u8]) -> Judged {
    let Ok(record) = Record::check(bytes, OFFSET, SECRET) else { return Judged::Refused };
    if !DECODED.contains(&(record.header.kind as u8)) {
        return Judged::Refused;
    }
    let length = record.header.padded_length().min(bytes.len());
    Judged::of(&bytes[..length], Fact::decode(&record).ok(), |fact| {
        let mut again = fact.encode().seal(OFFSET, SECRET).to_vec();
        // The padding of the last record of a block may not be there.
        again.truncate(length.max(record.header.length()));
        again
    })
}
