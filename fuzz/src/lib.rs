//! What the targets share.

use std::sync::LazyLock;

use timerlog::decoder::Decoder;

static DECODERS: LazyLock<Vec<Decoder>> = LazyLock::new(|| {
    let mut all = horolog::fuzzing::decoders();
    all.extend(timerlog::fuzzing::decoders());
    all
});

/// Tries the decoders of these names with `bytes`, and with `bytes` under right checksums.
///
/// # Panics
///
/// When a decoder does, when it accepts what it should not, or when there is none of a name.
pub fn try_all(names: &[&str], bytes: &[u8]) {
    for name in names {
        let decoder = DECODERS.iter().find(|decoder| decoder.name == *name);
        decoder.expect("there is a decoder of this name").try_bytes(bytes);
    }
}
