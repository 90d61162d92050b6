//! The place in a cursor, to be tried with bytes that nobody wrote.

use timerlog::decoder::{Decoder, Judged, unsealed};

use super::{PLACE_LENGTH, Place};

pub(crate) fn decoder() -> Decoder {
    Decoder::new("place", samples, unsealed, judge)
}

fn samples() -> Vec<Vec<u8>> {
    let places = [Place::level(3), Place::near(1_790_000_000, None), Place::far(6828, None)];
    places.iter().map(|place| place.encode().to_vec()).collect()
}

fn judge(bytes: &[u8]) -> Judged {
    let Ok(bytes) = <&[u8; PLACE_LENGTH]>::try_from(bytes) else { return Judged::Refused };
    Judged::of(bytes, Place::decode(bytes), |place| place.encode().to_vec())
}
