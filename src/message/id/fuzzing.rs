//! Ids, receipt handles and cursors, to be tried with text that we never gave out.

use timerlog::decoder::{Decoder, Judged, unsealed};

use super::*;

const CURSOR: usize = 17;

fn key() -> IdKey {
    IdKey::new(&[7; 32])
}

pub(crate) fn decoders() -> Vec<Decoder> {
    let decoder = |name, samples, judge| Decoder::new(name, samples, unsealed, judge);
    vec![
        decoder("message_id", ids as fn() -> _, judge_id as fn(&[u8]) -> _),
        decoder("receipt_handle", handles, judge_handle),
        decoder("cursor", cursors, judge_cursor),
    ]
}

fn ids() -> Vec<Vec<u8>> {
    let id = |offset, nonce| key().message_id(Offset::new(offset), nonce).into_bytes();
    vec![id(0, 0), id(96, 5), id((1 << 53) - 32, u64::MAX)]
}

fn judge_id(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Refused };
    Judged::of(bytes, ClaimedId::parse(text), |claimed| {
        let mut again = [0; ID_LENGTH];
        again[2..8].copy_from_slice(&step_bytes(claimed.offset));
        again[8..].copy_from_slice(&claimed.mac);
        URL_SAFE_NO_PAD.encode(again).into_bytes()
    })
}

fn handle() -> Handle {
    Handle {
        group_id: 1,
        topic_id: 20,
        queue: 3,
        queue_offset: 77,
        attempt: 2,
        lease: 1 << 40 | 9,
        until: Timestamp::from_millis(1_790_000_000_000),
        epoch: 4,
    }
}

fn handles() -> Vec<Vec<u8>> {
    let other = Handle { queue_offset: u64::MAX, lease: u64::MAX, ..handle() };
    vec![key().write_handle(&handle()).into_bytes(), key().write_handle(&other).into_bytes()]
}

fn judge_handle(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Refused };
    let judged = Judged::of(bytes, key().read_handle(text), |handle| {
        key().write_handle(handle).into_bytes()
    });
    // Nobody who has not the key makes one up.
    let ours = || handles().iter().any(|handle| handle == bytes);
    assert!(judged == Judged::Refused || ours(), "{text} was never given out");
    judged
}

fn cursors() -> Vec<Vec<u8>> {
    vec![
        key().write_cursor(&[5; CURSOR]).into_bytes(),
        key().write_cursor(&[0; CURSOR]).into_bytes(),
    ]
}

fn judge_cursor(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Refused };
    let read = key().read_cursor::<CURSOR>(text);
    let judged = Judged::of(bytes, read, |fields| key().write_cursor(fields).into_bytes());
    let ours = || cursors().iter().any(|cursor| cursor == bytes);
    assert!(judged == Judged::Refused || ours(), "{text} was never given out");
    judged
}
