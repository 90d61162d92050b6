//! The head of a snapshot, to be tried with bytes that nobody wrote.

use super::head::{Head, SLOTS};
use crate::bytes::put_u32;
use crate::decoder::{Decoder, Judged};

pub(in crate::wheel) fn decoder() -> Decoder {
    Decoder::new("snapshot_head", samples, seal, judge)
}

fn samples() -> Vec<Vec<u8>> {
    let head = Head {
        revision: 1,
        near_length: 9600,
        far_length: 4800,
        read_time: 1_790_000_000,
        far_boundary: 1_790_262_144,
        near_count: 2,
        far_count: 1,
    };
    vec![head.encode().to_vec()]
}

fn seal(bytes: &mut [u8]) {
    if bytes.len() >= SLOTS {
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..SLOTS]);
        put_u32(bytes, 12, crc);
    }
}

fn judge(bytes: &[u8]) -> Judged {
    let Some(bytes) = bytes.first_chunk() else { return Judged::Refused };
    let read = Head::decode(bytes).ok();
    // Whatever it counts, its length is told without a panic.
    let _ = read.map(|head| head.file_length());
    Judged::of(bytes, read, |head| head.encode().to_vec())
}
