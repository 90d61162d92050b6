//! Every decoder of what comes from a disk or a client, for the tests here and for the fuzz targets in `fuzz/`.

use timerlog::decoder::Decoder;
#[cfg(test)]
use timerlog::decoder::{Edit, Judged, edited, memory_max};

use crate::{
    api, check_back, commitlog, consumequeue, index, message, outbound, store, timer, units,
};

/// All decoders.
pub fn decoders() -> Vec<Decoder> {
    let mut all = vec![message::record::fuzzing::decoder(), consumequeue::fuzzing::decoder()];
    all.extend(message::id::fuzzing::decoders());
    all.extend(commitlog::fuzzing::decoders());
    all.extend(index::fuzzing::decoders());
    all.extend(store::fuzzing::decoders());
    all.push(timer::pending::fuzzing::decoder());
    all.extend(units::fuzzing::decoders());
    all.extend(api::fuzzing::decoders());
    all.extend(outbound::fuzzing::decoders());
    all.push(check_back::fuzzing::decoder());
    all
}

#[cfg(test)]
#[path = "../timerlog/src/decoder/tests.rs"]
mod tests;
