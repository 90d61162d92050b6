//! What a checkpoint keeps of the index, to be tried with bytes that nobody wrote.

use timerlog::decoder::{Decoder, Judged};

use super::manifest::Manifest;
use super::run::{self, Listed};
use crate::message::offset::Offset;

pub(crate) fn decoders() -> Vec<Decoder> {
    let mut all = run::decoders();
    all.push(Decoder::new("manifest", samples, seal, judge));
    all
}

fn samples() -> Vec<Vec<u8>> {
    let runs = (0..40).map(|number| Listed { number, digest: number << 40 | 1 });
    let manifest = Manifest { floor: Offset::new(64), runs: runs.collect() };
    vec![manifest.encode(), Manifest::default().encode()]
}

fn seal(bytes: &mut [u8]) {
    if bytes.len() >= 4 {
        let crc = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

fn judge(bytes: &[u8]) -> Judged {
    Judged::of(bytes, Manifest::decode(bytes).ok(), Manifest::encode)
}
