//! The identity of a data directory, to be tried with bytes that nobody wrote.

use timerlog::decoder::{Decoder, Judged};

use super::*;

pub(in crate::store) fn decoder() -> Decoder {
    Decoder::new("identity", samples, seal, judge)
}

fn samples() -> Vec<Vec<u8>> {
    vec![encode(&[3; 32], 1 << 30).to_vec()]
}

fn seal(bytes: &mut [u8]) {
    if bytes.len() >= LENGTH {
        let crc = crc32c::crc32c(&bytes[..CRC]);
        bytes[CRC..LENGTH].copy_from_slice(&crc.to_le_bytes());
    }
}

fn judge(bytes: &[u8]) -> Judged {
    let Some(bytes) = bytes.first_chunk::<LENGTH>() else { return Judged::Refused };
    Judged::of(bytes, Identity::decode(bytes).ok(), |identity| {
        // The key itself is not kept.
        let key = bytes[KEY..SEGMENT_SIZE].try_into().expect("32 bytes");
        encode(key, identity.segment_size).to_vec()
    })
}
