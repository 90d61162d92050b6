//! The envelope, to be tried with bytes that nobody wrote.

use super::{CRC, Format, HEAD, PAYLOAD, Stored, crc, decode, encode};
use crate::bytes::put_u32;
use crate::decoder::{Decoder, Judged};

const FORMAT: Format = Format { magic: *b"A magic.", version: 3 };

pub(crate) fn decoder() -> Decoder {
    Decoder::new("checkpoint", samples, seal, judge)
}

fn samples() -> Vec<Vec<u8>> {
    let old = Format { version: 2, ..FORMAT };
    vec![encode(FORMAT, 7, b"a payload of some length"), encode(old, 8, b"")]
}

fn seal(bytes: &mut [u8]) {
    if bytes.len() >= PAYLOAD {
        let head = crc32c::crc32c(&bytes[..HEAD]);
        put_u32(bytes, HEAD, head);
        let crc = crc(bytes);
        put_u32(bytes, CRC, crc);
    }
}

fn judge(bytes: &[u8]) -> Judged {
    Judged::of(bytes, decode(FORMAT, bytes).ok(), |stored: &Stored| {
        encode(Format { version: stored.version, ..FORMAT }, stored.generation, &stored.payload)
    })
}
