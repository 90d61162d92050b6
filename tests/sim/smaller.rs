//! A run that fails, made smaller: operations are left out for as long as it still fails.
//!
//! Each operation draws from a random of its own, so leaving one out changes nothing of what the others draw; only what
//! they find there. What is left is seldom more than some dozens.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::world::{Ended, World};

/// Runs that are tried at the most.
const TRIES: usize = 600;

/// Runs the operations of the seed, all or only these.
pub(crate) fn run_only(
    seed: u64,
    operations: usize,
    only: Option<&BTreeSet<usize>>,
) -> Result<Ended, String> {
    let mut world = World::new(seed);
    world.only = only.cloned();
    world.run(operations)
}

/// What a run comes to, when it fails or panics.
fn failure(seed: u64, operations: usize, only: &BTreeSet<usize>) -> Option<String> {
    let run = catch_unwind(AssertUnwindSafe(|| run_only(seed, operations, Some(only))));
    match run {
        Ok(Ok(_)) => None,
        Ok(Err(violation)) => Some(violation),
        Err(_) => Some("it panicked; see above".to_owned()),
    }
}

/// The fewest operations that were found to fail, and how they fail then.
pub(crate) fn smallest(
    seed: u64,
    operations: usize,
    violation: String,
) -> (BTreeSet<usize>, String) {
    let (mut kept, mut violation): (Vec<usize>, _) = ((0..operations).collect(), violation);
    let (mut chunk, mut tries) = (operations.div_ceil(2), 0);
    while chunk > 0 && tries < TRIES {
        let (mut at, before) = (0, kept.len());
        while at < kept.len() && tries < TRIES {
            let end = (at + chunk).min(kept.len());
            let without: BTreeSet<_> = kept[..at].iter().chain(&kept[end..]).copied().collect();
            tries += 1;
            match failure(seed, operations, &without) {
                Some(smaller) => {
                    violation = smaller;
                    kept.drain(at..end);
                }
                None => at = end,
            }
        }
        // What could go may let others go.
        if chunk > 1 || kept.len() == before {
            chunk /= 2;
        }
    }
    (kept.into_iter().collect(), violation)
}

/// How to do it again.
pub(crate) fn told(seed: u64, only: &BTreeSet<usize>, violation: &str) -> String {
    let list: Vec<_> = only.iter().map(ToString::to_string).collect();
    format!(
        "{violation}\nof the operations {} are enough for it:\n\
         HOROLOG_SIM_SEED={seed} HOROLOG_SIM_ONLY={} cargo test --test sim one_seed -- --nocapture",
        only.len(),
        list.join(",")
    )
}
