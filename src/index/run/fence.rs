//! Finds the page of an entry by the last entries of all pages, read through the mapping.
//!
//! Hashes are evenly spread, so a hash's share of 2^64 is about its page's share of the run. The search
//! begins there, doubles its stride until the page is between two fences, and halves what is left: a
//! few probes close together, whatever the length of the run, and a logarithm of it when a hot key
//! makes the guess wrong.

use crate::index::entry::{Entry, KeyHash};

/// How many of the `pages` fences are before `bound`, where `fence` reads one. The page of that number has
/// the first entry that is not.
pub(super) fn count_before<E>(
    pages: u64,
    bound: Entry,
    mut fence: impl FnMut(u64) -> Result<Entry, E>,
) -> Result<u64, E> {
    let (mut low, mut high) = (0, pages);
    let mut probe = guess(pages, bound.hash);
    let mut stride = 1;
    while low < high {
        if fence(probe)? < bound {
            low = probe + 1;
            probe = if high == pages { low.saturating_add(stride) } else { low + (high - low) / 2 };
        } else {
            high = probe;
            probe = if low == 0 { high.saturating_sub(stride) } else { low + (high - low) / 2 };
        }
        stride *= 2;
        probe = probe.min(high.saturating_sub(1)).max(low);
    }
    Ok(low)
}

fn guess(pages: u64, hash: KeyHash) -> u64 {
    let scaled = (u128::from(hash.get()) * u128::from(pages)) >> u64::BITS;
    u64::try_from(scaled).expect("a 64-bit number times a fraction below one")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;
    use timerlog::disk::sim::Random;

    use super::*;
    use crate::message::offset::Offset;

    fn count(fences: &[Entry], bound: Entry) -> (u64, usize) {
        let mut probes = 0;
        let fence = |page| -> Result<Entry, Infallible> {
            probes += 1;
            Ok(fences[usize::try_from(page).unwrap()])
        };
        let Ok(count) = count_before(fences.len() as u64, bound, fence);
        (count, probes)
    }

    fn entry(hash: u64, steps: u64) -> Entry {
        Entry::new(KeyHash::new(hash), Offset::new(steps * 32))
    }

    proptest! {
        #[test]
        fn any_fences_are_searched_as_a_plain_search_does(
            fences in prop::collection::btree_set((0_u64..9, 0_u64..9), 0..40),
            high in prop::bool::ANY,
            bound in (0_u64..9, 0_u64..9),
        ) {
            // At one end of all hashes the guess is wrong for all of them.
            let place = |hash: u64| if high { u64::MAX - 9 + hash } else { hash };
            let mut fences: Vec<_> =
                fences.iter().map(|&(hash, steps)| entry(place(hash), steps)).collect();
            fences.sort();
            let bound = entry(place(bound.0), bound.1);
            let expected = fences.partition_point(|&fence| fence < bound) as u64;
            prop_assert_eq!(count(&fences, bound).0, expected);
        }
    }

    #[test]
    fn even_hashes_take_few_probes() {
        let mut random = Random::new(1);
        let mut fences: Vec<_> = (0..100_000).map(|_| entry(random.next(), 1)).collect();
        fences.sort();
        let probes: usize = (0..1000).map(|_| count(&fences, entry(random.next(), 1)).1).sum();
        assert!(probes < 20_000, "{probes} for 1000");
    }
}
