//! State and identity, to be tried with bytes that nobody wrote.

use timerlog::decoder::Decoder;

use super::{identity, state};

pub(crate) fn decoders() -> Vec<Decoder> {
    vec![state::fuzzing::decoder(), identity::fuzzing::decoder()]
}
