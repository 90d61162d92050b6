//! Heads of requests, to be tried with bytes that are none, in any pieces.

use crate::sync::{AtomicU8, Ordering};

use timerlog::decoder::{Decoder, Judged, unsealed};

use super::{Notes, Place, SAW_ENCODING, SAW_LENGTH, Scan};

pub(in crate::api) fn decoder() -> Decoder {
    Decoder::new("head", samples, unsealed, judge)
}

fn samples() -> Vec<Vec<u8>> {
    let heads = [
        "POST /v1/topics/a/messages HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "\r\n\nPOST / HTTP/1.1\nx: content-length:\ntransfer-encoding:chunked\n\nContent-Length: 5\n",
    ];
    heads.map(|head| head.as_bytes().to_vec()).into()
}

/// Whatever pieces a head comes in, the same is seen of it, and that is what stands in its lines. Accepted is a head
/// with a transfer encoding alone, which goes on to its body.
fn judge(bytes: &[u8]) -> Judged {
    let piece = usize::from(bytes.first().copied().unwrap_or(0) % 7) + 1;
    let (place, seen) = scan(bytes.chunks(piece));
    assert_eq!((&place, seen), (&scan([bytes].into_iter()).0, expected(bytes)));
    let notes = Notes(AtomicU8::new(seen).into());
    let encoded = notes.take() == super::Framing::Encoded;
    assert_eq!(notes.take(), super::Framing::Doubtful, "it is good for one request");
    if encoded && place == Place::Behind { Judged::Accepted } else { Judged::Refused }
}

fn scan<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Place, u8) {
    let (mut scan, notes) = (Scan::new(), AtomicU8::new(0));
    pieces.for_each(|piece| scan.feed(piece, &notes));
    (scan.place, notes.load(Ordering::Relaxed))
}

/// The same, of all lines at once: those before the first blank one that follows another.
fn expected(bytes: &[u8]) -> u8 {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(&[][..], |end| &bytes[..end]);
    let is_blank = |line: &&[u8]| line.is_empty() || **line == *b"\r";
    let lines = whole.split(|&byte| byte == b'\n').skip_while(is_blank);
    let names = lines.take_while(|line| !is_blank(line)).filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some(line[..colon].to_ascii_lowercase())
    });
    names.fold(0, |seen, name| match &*name {
        b"content-length" => seen | SAW_LENGTH,
        b"transfer-encoding" => seen | SAW_ENCODING,
        _ => seen,
    })
}
