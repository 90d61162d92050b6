//! Every decoder of what comes from a disk or a client, for the tests here and for the fuzz targets in `fuzz/`.

use timerlog::decoder::Decoder;
#[cfg(test)]
use timerlog::decoder::{Edit, Judged, edited};

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

#[cfg(test)]
mod targets {
    /// What the fuzz targets say that they try.
    const TARGETS: [&str; 13] = [
        include_str!("../fuzz/fuzz_targets/control.rs"),
        include_str!("../fuzz/fuzz_targets/group.rs"),
        include_str!("../fuzz/fuzz_targets/index.rs"),
        include_str!("../fuzz/fuzz_targets/outbound.rs"),
        include_str!("../fuzz/fuzz_targets/query.rs"),
        include_str!("../fuzz/fuzz_targets/record.rs"),
        include_str!("../fuzz/fuzz_targets/request.rs"),
        include_str!("../fuzz/fuzz_targets/settings.rs"),
        include_str!("../fuzz/fuzz_targets/settled.rs"),
        include_str!("../fuzz/fuzz_targets/state.rs"),
        include_str!("../fuzz/fuzz_targets/time.rs"),
        include_str!("../fuzz/fuzz_targets/token.rs"),
        include_str!("../fuzz/fuzz_targets/unit.rs"),
    ];

    #[test]
    fn every_decoder_is_tried_by_one_fuzz_target() {
        for decoder in super::decoders() {
            let named = format!("{:?}", decoder.name);
            let trying = TARGETS.iter().filter(|target| target.contains(&named)).count();
            assert_eq!(trying, 1, "{named}");
        }
    }
}
