//! What a disk or a client holds may be anything: bytes that somebody made up, and bytes that were good once.
//!
//! This file is part of the tests of both crates.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{Decoder, Edit, Judged, decoders, edited};

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        any::<usize>().prop_map(|bit| Edit::Flip { bit }),
        // Lengths and counts that cannot be, too.
        (any::<usize>(), prop_oneof![Just(0), Just(1), Just(0x7f), Just(0xff), any::<u8>()])
            .prop_map(|(at, byte)| Edit::Set { at, byte }),
        any::<usize>().prop_map(|length| Edit::Cut { length }),
        any::<[usize; 3]>().prop_map(|[at, from, length]| Edit::Splice { at, from, length }),
        any::<[usize; 2]>().prop_map(|[at, length]| Edit::Remove { at, length }),
    ];
    vec(edit, 1..6)
}

/// Judges the bytes, which must cost no more memory than their number accounts for, whatever they claim.
fn try_bytes(decoder: &Decoder, bytes: &[u8]) -> Judged {
    let mut judged = Ok(Judged::Refused);
    // A panic must not pass through the counter, which would go on counting.
    let judge = AssertUnwindSafe(|| decoder.try_bytes(bytes));
    let cost = allocation_counter::measure(|| judged = catch_unwind(judge));
    let judged = judged.unwrap_or_else(|panic| resume_unwind(panic));
    let limit = decoder.memory_max(bytes.len());
    let (name, got, length) = (decoder.name, cost.bytes_max, bytes.len());
    assert!(got <= limit, "{name}: {got} bytes for an input of {length}");
    judged
}

#[test]
fn what_was_written_is_accepted() {
    for decoder in decoders() {
        for sample in (decoder.samples)() {
            assert_eq!((decoder.judge)(&sample), Judged::Accepted, "{}", decoder.name);
            assert_eq!(try_bytes(&decoder, &sample), Judged::Accepted, "{}", decoder.name);
            let mut sealed = sample.clone();
            (decoder.seal)(&mut sealed);
            assert_eq!(sealed, sample, "{}: its checksums were right", decoder.name);
        }
    }
}

#[test]
fn bytes_that_somebody_made_up_are_judged_and_cost_little() {
    for decoder in decoders() {
        proptest!(|(bytes in vec(any::<u8>(), 0..600))| { try_bytes(&decoder, &bytes); });
        for byte in [0, 1, 0x7f, b'"', b'[', b'{', b'9', 0xff] {
            for length in [0, 1, 7, 40, 128, 4096, 5000] {
                try_bytes(&decoder, &vec![byte; length]);
            }
        }
    }
}

#[test]
fn what_was_written_and_then_changed_is_judged_and_costs_little() {
    for decoder in decoders() {
        let samples = (decoder.samples)();
        let changed = (any::<Index>(), any::<Index>(), edits());
        proptest!(ProptestConfig::with_cases(1024), |((one, other, edits) in changed)| {
            let bytes = edited(&samples[one.index(samples.len())], &edits, &samples[other.index(samples.len())]);
            try_bytes(&decoder, &bytes);
        });
    }
}

#[test]
fn one_flipped_bit_and_one_cut_is_judged_wherever_it_is() {
    for decoder in decoders() {
        for sample in (decoder.samples)() {
            // Of what is large, as much as has a meaning, and something of the rest.
            let step = |at: usize| if at < 512 { 1 } else { 97 };
            let mut bit = 0;
            while bit < sample.len() * 8 {
                let mut bytes = sample.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                try_bytes(&decoder, &bytes);
                bit += step(bit / 8);
            }
            let mut length = 0;
            while length < sample.len() {
                try_bytes(&decoder, &sample[..length]);
                length += step(length);
            }
        }
    }
}
