//! The seeded simulation: the whole engine on a simulated disk and a manual clock, on one thread.
//!
//! A seed decides everything: which operation comes next, which stage steps, when the power goes and what
//! the disk then holds. A model ([`model`]) knows what was promised and to whom; every answer is held
//! against it, and at the end of a run every message must be where the promises say.
//!
//! A failure is made smaller and prints its seed and the operations that are enough for it. To run it again, or many
//! more, so many or for so long:
//!
//! ```text
//! HOROLOG_SIM_SEED=4711 cargo test --test sim one_seed -- --nocapture
//! HOROLOG_SIM_SEEDS=10000 cargo test --test sim many_seeds
//! HOROLOG_SIM_MINUTES=60 cargo test --test sim seeds_for_some_minutes -- --nocapture
//! ```

#![expect(clippy::panic, clippy::print_stdout, reason = "a test fails, and says with which seed")]
#![expect(clippy::disallowed_types, reason = "it runs on one thread, and asks for no scheduler")]

mod bench;
mod bytes;
mod changes;
mod clock_steps;
mod counts;
mod damage;
mod deadlines;
mod every_change;
mod full_disk;
mod groups;
mod keys;
mod levels;
mod model;
mod moves;
mod operations;
mod ops_groups;
mod ops_resets;
mod ops_returned;
mod ordered;
mod pending;
mod planted;
mod poison;
mod races;
mod reads;
mod refiling;
mod regressions;
mod regressions_retries;
mod retention;
mod retries;
mod retries_reset;
mod returned;
mod room;
mod smaller;
mod transactions;
mod world;
mod years;

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::time::Duration;

use horolog::clock::{Clock, SystemClock};
use world::{Ended, World};

/// Operations in a run.
const OPERATIONS: usize = 1000;

fn run(seed: u64) -> Ended {
    let run = catch_unwind(|| World::new(seed).run(OPERATIONS));
    let violation = match run {
        Ok(Ok(ended)) => return ended,
        Ok(Err(violation)) => violation,
        Err(_) => "it panicked; see above".to_owned(),
    };
    let (only, violation) = smaller::smallest(seed, OPERATIONS, violation);
    panic!("{}", smaller::told(seed, &only, &violation));
}

/// So many seeds meet everything that can happen; a block of them in the bounded set does not meet what is rare.
const MEET_THE_RARE: u64 = 500;

fn run_all(seeds: std::ops::Range<u64>) -> world::Coverage {
    let mut seen = world::Coverage::default();
    for seed in seeds {
        seen.add(&run(seed).coverage);
    }
    // A run in which a fault never happens proves nothing about it.
    seen.check();
    seen
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

// Many tests, so that the test runner spreads the seeds over the cores.
macro_rules! seeds {
    ($($name:ident: $range:expr;)*) => {
        $(
            #[test]
            fn $name() {
                run_all($range);
            }
        )*
    };
}

seeds! {
    every_promise_holds_for_seeds_0_to_31: 0..32;
    every_promise_holds_for_seeds_32_to_63: 32..64;
    every_promise_holds_for_seeds_64_to_95: 64..96;
    every_promise_holds_for_seeds_96_to_127: 96..128;
    every_promise_holds_for_seeds_128_to_159: 128..160;
    every_promise_holds_for_seeds_160_to_191: 160..192;
    every_promise_holds_for_seeds_192_to_223: 192..224;
    every_promise_holds_for_seeds_224_to_255: 224..256;
    every_promise_holds_for_seeds_256_to_287: 256..288;
    every_promise_holds_for_seeds_288_to_319: 288..320;
    every_promise_holds_for_seeds_320_to_351: 320..352;
    every_promise_holds_for_seeds_352_to_383: 352..384;
    every_promise_holds_for_seeds_384_to_415: 384..416;
    every_promise_holds_for_seeds_416_to_447: 416..448;
    every_promise_holds_for_seeds_448_to_479: 448..480;
    every_promise_holds_for_seeds_480_to_511: 480..512;
}

#[test]
fn one_seed() {
    let seed = number("HOROLOG_SIM_SEED").unwrap_or(1);
    let only = std::env::var("HOROLOG_SIM_ONLY").ok().map(|list| {
        list.split(',').map(|number| number.parse().expect("a number")).collect::<BTreeSet<_>>()
    });
    let ended = match only {
        None => run(seed),
        Some(only) => match smaller::run_only(seed, OPERATIONS, Some(&only)) {
            Ok(ended) => ended,
            Err(violation) => panic!("{}", smaller::told(seed, &only, &violation)),
        },
    };
    println!("seed {seed}: {:?}, fingerprint {:016x}", ended.coverage, ended.fingerprint);
}

#[test]
fn many_seeds() {
    let count = number("HOROLOG_SIM_SEEDS").unwrap_or(1);
    if count >= MEET_THE_RARE {
        run_all(1000..1000 + count).check_rare();
        return;
    }
    for seed in 1000..1000 + count {
        run(seed);
    }
}

/// For so many minutes, seeds that nobody has run before: they begin where the wall clock stands.
#[test]
fn seeds_for_some_minutes() {
    let Some(minutes) = number("HOROLOG_SIM_MINUTES") else { return };
    let clock = SystemClock::new();
    let (first, began) = (clock.now().wall.as_millis(), clock.now().monotonic);
    let (mut seen, mut count) = (world::Coverage::default(), 0);
    while clock.now().monotonic - began < Duration::from_secs(60 * minutes) {
        seen.add(&run(first + count).coverage);
        count += 1;
    }
    println!("{count} seeds from {first} on: {seen:?}");
}

#[test]
fn the_same_seed_twice_leaves_identical_bytes() {
    for seed in [3, 77, 4711] {
        assert_eq!(run(seed).fingerprint, run(seed).fingerprint, "seed {seed}");
    }
}
