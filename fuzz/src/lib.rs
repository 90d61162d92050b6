//! What the targets share.

use std::path::Path;
use std::sync::LazyLock;

pub use libfuzzer_sys;
use timerlog::decoder::Decoder;

static DECODERS: LazyLock<Vec<Decoder>> = LazyLock::new(|| {
    let mut all = horolog::fuzzing::decoders();
    all.extend(timerlog::fuzzing::decoders());
    all
});

/// The target that tries the decoders of these names, one at a time.
#[macro_export]
macro_rules! target {
    ([$($name:literal),* $(,)?]) => {
        $crate::libfuzzer_sys::fuzz_target!(
            init: $crate::write_samples(&[$($name),*]),
            |bytes: &[u8]| $crate::try_one(&[$($name),*], bytes)
        );
    };
}

fn decoder(name: &str) -> &'static Decoder {
    DECODERS.iter().find(|decoder| decoder.name == name).expect("there is a decoder of this name")
}

/// Writes what the decoders accept into the directory `HOROLOG_FUZZ_SAMPLES`, when that is set: a corpus to begin with.
///
/// # Panics
///
/// When a sample cannot be written.
pub fn write_samples(names: &[&str]) {
    let Ok(directory) = std::env::var("HOROLOG_FUZZ_SAMPLES") else { return };
    for (choice, name) in (0..).zip(names) {
        for (number, sample) in (decoder(name).samples)().iter().enumerate() {
            let path = Path::new(&directory).join(format!("sample-{name}-{number}"));
            let input =
                if names.len() > 1 { [&[choice], &sample[..]].concat() } else { sample.clone() };
            std::fs::write(path, input).expect("the corpus can be written");
        }
    }
}

/// Tries one of the decoders of these names, which the first byte chooses where there are several, with the others: as
/// they are, and under right checksums.
///
/// # Panics
///
/// When the decoder does, when it accepts what it should not or takes more memory than the bytes account for, or when
/// there is none of the name.
pub fn try_one(names: &[&str], input: &[u8]) {
    let (name, bytes) = match (names, input) {
        ([only], bytes) => (*only, bytes),
        (_, [choice, bytes @ ..]) => (names[usize::from(*choice) % names.len()], bytes),
        (_, []) => return,
    };
    let decoder = decoder(name);
    let cost = allocation_counter::measure(|| {
        decoder.try_bytes(bytes);
    });
    let (got, length) = (cost.bytes_max, bytes.len());
    assert!(got <= decoder.memory_max(length), "{name}: {got} bytes for an input of {length}");
}
