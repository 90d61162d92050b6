//! Which retries a reset of offsets has taken the place of.
//!
//! A reset makes a queue's messages come again from some offset on. A retry from before it, of a message
//! that stands there, would be the same message twice: it is void, wherever it waits. Nothing looks for
//! such retries when offsets are reset; each is told by where it and its message stand, when it is about to
//! be handed out.
//!
//! ```text
//!   log      nack a ─── nack b ─── reset to 5 ─── nack c      of offsets 3, 7, 9
//!   retries    a: comes, its message stands before 5;  b: void, 7 comes in its queue;  c: comes
//! ```

use crate::message::offset::Offset;

/// Resets kept of one queue. Each is needed only while a retry from before it is there.
const MAX_RESETS: usize = 256;

/// One reset of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// Its record.
    pub at: Offset,
    /// The queue is read from here.
    pub start: u64,
    /// The group's retry queue ended here.
    pub retries_end: u64,
}

/// A retry, and where its message first stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Its place in the retry queue.
    pub place: u64,
    /// The nack's record; `None` for what was redriven, which is as old as its place.
    pub nacked_at: Option<Offset>,
    pub origin: u64,
}

/// The resets of one queue that there may be retries from before, oldest first. Starts grow: a later reset
/// to the same offset or further back says all that an earlier one does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resets(Vec<Reset>);

impl Resets {
    /// Puts back what [`Resets::parts`] gave. `None` when no calls of [`Resets::push`] lead to these: they are too
    /// many, or not in the order of their records, or one says no more than a later one does.
    pub fn from_parts(resets: Vec<Reset>) -> Option<Self> {
        let in_order = |one: &Reset, next: &Reset| one.at < next.at && one.start < next.start;
        (resets.len() <= MAX_RESETS && resets.is_sorted_by(in_order)).then_some(Self(resets))
    }

    pub fn parts(&self) -> &[Reset] {
        &self.0
    }

    /// At the bound the oldest is forgotten: then a retry that is older still may be one too many.
    pub fn push(&mut self, reset: Reset) {
        while self.0.last().is_some_and(|last| last.start >= reset.start) {
            self.0.pop();
        }
        if self.0.len() == MAX_RESETS {
            self.0.remove(0);
        }
        self.0.push(reset);
    }

    /// Whether the retry's message has come, or comes, in its own queue instead.
    pub fn void(&self, retry: Retry) -> bool {
        self.0.iter().any(|reset| {
            let before = retry.place < reset.retries_end
                || retry.nacked_at.is_some_and(|nacked_at| nacked_at < reset.at);
            before && retry.origin >= reset.start
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reset(at: u64, start: u64, retries_end: u64) -> Reset {
        Reset { at: Offset::new(at), start, retries_end }
    }

    #[test]
    fn a_retry_from_before_a_reset_is_void_when_its_message_comes_in_its_queue() {
        let mut resets = Resets::default();
        resets.push(reset(1000, 5, 3));
        let nacked = |place, at, origin| Retry { place, nacked_at: Some(Offset::new(at)), origin };
        let redriven = |place, origin| Retry { place, nacked_at: None, origin };
        assert!(resets.void(nacked(2, 500, 5)), "it was readable already");
        assert!(resets.void(nacked(3, 500, 7)), "it fired only afterwards");
        assert!(!resets.void(nacked(3, 1500, 7)), "its message came by the reset");
        assert!(!resets.void(nacked(2, 500, 4)), "its message does not come otherwise");
        assert!(resets.void(redriven(2, 5)));
        assert!(!resets.void(redriven(3, 5)), "somebody asked for it after the reset");
        // Offsets are skipped: what was void stays so.
        resets.push(reset(2000, 100, 4));
        assert!(resets.void(nacked(2, 500, 5)));
        assert!(!resets.void(nacked(4, 1500, 7)));
        assert!(resets.void(nacked(4, 1500, 100)));
    }

    #[test]
    fn resets_that_no_pushes_lead_to_are_not_put_back() {
        let ascending = |count: u64| (0..count).map(|n| reset(10 * n, n, n)).collect::<Vec<_>>();
        let mut pushed = Resets::default();
        ascending(300).into_iter().for_each(|reset| pushed.push(reset));
        assert_eq!(Resets::from_parts(pushed.parts().to_vec()), Some(pushed));
        assert_eq!(Resets::from_parts(ascending(MAX_RESETS as u64 + 1)), None, "too many");
        for (what, two) in [
            ("records out of order", [reset(20, 1, 1), reset(10, 2, 2)]),
            ("one record twice", [reset(10, 1, 1), reset(10, 2, 1)]),
            ("starts out of order", [reset(10, 2, 1), reset(20, 1, 2)]),
            ("one that says nothing more", [reset(10, 2, 1), reset(20, 2, 2)]),
        ] {
            assert_eq!(Resets::from_parts(two.to_vec()), None, "{what}");
        }
    }

    proptest! {
        #[test]
        fn what_is_forgotten_was_said_again(
            starts in prop::collection::vec(0_u64..20, 0..60),
            retries in prop::collection::vec((0_u64..700, 0_u64..70, 0_u64..20), 60),
        ) {
            let all: Vec<_> = (0..).zip(&starts).map(|(n, &start)| reset(10 * n, start, n)).collect();
            let mut resets = Resets::default();
            all.iter().for_each(|&reset| resets.push(reset));
            prop_assert!(resets.parts().is_sorted_by(|one, next| one.start < next.start));
            for (at, place, origin) in retries {
                for nacked_at in [None, Some(Offset::new(at))] {
                    let retry = Retry { place, nacked_at, origin };
                    prop_assert_eq!(resets.void(retry), Resets(all.clone()).void(retry));
                }
            }
        }
    }
}
