//! How far a group is with a queue: a floor, and the stretches above it that are acknowledged.
//!
//! ```text
//!        floor
//!   ───────┤    ├──────┤   ├┤      ├───────────────────┤
//!    acked   out   acked  out  acked     left out by the filter
//! ```
//!
//! Memory grows with the gaps, not with the distance: there are at most as many stretches as messages below
//! the read cursor that are out or waiting to come again, and of those there is a bound.

use std::collections::{BTreeMap, BTreeSet};

use super::resets::Resets;
use crate::clock::Timestamp;

/// Places kept of messages that went on: what a retry storm costs in memory, and in a checkpoint.
const MAX_RETURNED: usize = 4096;

/// Everything below `floor` is acknowledged; above it, what the stretches cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueProgress {
    floor: u64,
    /// From the first offset of a stretch to the one after its last. No two touch, nor the floor one.
    stretches: BTreeMap<u64, u64>,
    /// Offsets in the stretches.
    above: u64,
    /// Attempts that ended without an ack, of messages that have any.
    attempts: BTreeMap<u64, u32>,
    /// Not to be handed out again before: of messages that wait in their place.
    delays: BTreeMap<u64, Timestamp>,
    /// Places that are acknowledged because their message went on, to its retry or to the dead letters: who
    /// acknowledges that again is not told that it is done.
    returned: BTreeSet<u64>,
    /// Below this nobody knows any more which places those are.
    vouched_from: u64,
    /// Of this queue, that there may be retries from before.
    resets: Resets,
}

impl QueueProgress {
    /// Has everything below `floor`, and nothing from it on.
    pub fn starting_at(floor: u64) -> Self {
        Self { floor, ..Self::default() }
    }

    /// As above, by resets that leave no retry from before them.
    #[must_use]
    pub fn with_resets(self, resets: Resets) -> Self {
        Self { resets, ..self }
    }

    pub fn resets(&self) -> &Resets {
        &self.resets
    }

    /// Puts back what [`QueueProgress::parts`] gave.
    pub fn from_parts(
        floor: u64,
        stretches: BTreeMap<u64, u64>,
        attempts: BTreeMap<u64, u32>,
    ) -> Self {
        let above = stretches.iter().map(|(first, end)| end - first).sum();
        Self { floor, stretches, above, attempts, ..Self::default() }
    }

    pub fn parts(&self) -> (u64, &BTreeMap<u64, u64>, &BTreeMap<u64, u32>) {
        (self.floor, &self.stretches, &self.attempts)
    }

    /// Until when messages wait in their place.
    pub fn delays(&self) -> &BTreeMap<u64, Timestamp> {
        &self.delays
    }

    /// What went on, and from where on that is known.
    pub fn returned(&self) -> (u64, &BTreeSet<u64>) {
        (self.vouched_from, &self.returned)
    }

    /// Puts back what [`QueueProgress::delays`] and [`QueueProgress::returned`] gave.
    #[must_use]
    pub fn with_returned(
        self,
        delays: BTreeMap<u64, Timestamp>,
        vouched_from: u64,
        returned: BTreeSet<u64>,
    ) -> Self {
        Self { delays, vouched_from, returned, ..self }
    }

    /// Whether calls of these methods can have led here: only what is not acknowledged has attempts, only what has
    /// attempts is delayed, only what is acknowledged went on, and no more of that is kept than there is room for.
    pub fn adds_up(&self) -> bool {
        self.attempts.keys().all(|&offset| !self.is_acked(offset))
            && self.delays.keys().all(|offset| self.attempts.contains_key(offset))
            && self.returned.iter().all(|&offset| self.is_acked(offset))
            && self.returned.len() <= MAX_RETURNED
    }

    /// The place is done with, and its message goes on.
    pub fn give_back(&mut self, offset: u64) {
        self.ack(offset);
        self.returned.insert(offset);
        if self.returned.len() > MAX_RETURNED
            && let Some(oldest) = self.returned.pop_first()
        {
            self.vouched_from = self.vouched_from.max(oldest + 1);
        }
    }

    /// Whether the message of the acknowledged place went on, or may have.
    pub fn is_returned(&self, offset: u64) -> bool {
        offset < self.vouched_from || self.returned.contains(&offset)
    }

    /// The first offset that is not acknowledged.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// How many offsets are acknowledged, also of those that stand before the group's start.
    pub fn acked(&self) -> u64 {
        self.floor + self.above
    }

    pub fn is_acked(&self, offset: u64) -> bool {
        self.next_unacked(offset) != offset
    }

    /// The first offset from `offset` on that is not acknowledged.
    pub fn next_unacked(&self, offset: u64) -> u64 {
        let offset = offset.max(self.floor);
        match self.stretches.range(..=offset).next_back() {
            Some((_, &end)) => offset.max(end),
            None => offset,
        }
    }

    pub fn ack(&mut self, offset: u64) {
        self.ack_run(offset, 1);
    }

    /// Acknowledges `count` offsets, the first of them `first`.
    pub fn ack_run(&mut self, first: u64, count: u64) {
        let (mut first, mut end) = (first.max(self.floor), first.saturating_add(count));
        if first >= end {
            return;
        }
        while let Some((&attempted, _)) = self.attempts.range(first..end).next() {
            self.attempts.remove(&attempted);
            self.delays.remove(&attempted);
        }
        // Every stretch that overlaps or touches becomes part of this one.
        while let Some((&other, &others_end)) = self.stretches.range(..=end).next_back() {
            if others_end < first {
                break;
            }
            self.stretches.remove(&other);
            self.above -= others_end - other;
            (first, end) = (first.min(other), end.max(others_end));
        }
        if first == self.floor {
            self.floor = end;
        } else {
            self.stretches.insert(first, end);
            self.above += end - first;
        }
    }

    /// What is before `first` has expired; answers how many of it were not acknowledged.
    pub fn expire(&mut self, first: u64) -> u64 {
        let below = self.stretches.range(..first);
        let acked: u64 = below.map(|(&from, &end)| end.min(first) - from).sum();
        let unread = first.saturating_sub(self.floor) - acked.min(first.saturating_sub(self.floor));
        if first > 0 {
            self.ack_run(0, first);
        }
        let kept = self.returned.split_off(&first);
        self.returned = kept;
        self.vouched_from = self.vouched_from.max(first);
        unread
    }

    /// The attempt numbered `attempt` ended without an ack.
    pub fn attempted(&mut self, offset: u64, attempt: u32) {
        if !self.is_acked(offset) {
            let known = self.attempts.entry(offset).or_default();
            *known = attempt.max(*known);
        }
    }

    /// The attempt ended, and the next one is not to begin before `until`.
    pub fn delayed(&mut self, offset: u64, attempt: u32, until: Timestamp) {
        if !self.is_acked(offset) && self.attempts(offset) <= attempt {
            self.attempted(offset, attempt);
            self.delays.insert(offset, until);
        }
    }

    /// Until when the message waits in its place, if it does.
    pub fn delayed_until(&self, offset: u64) -> Option<Timestamp> {
        self.delays.get(&offset).copied()
    }

    /// How many attempts have ended without an ack.
    pub fn attempts(&self, offset: u64) -> u32 {
        self.attempts.get(&offset).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn acks_in_any_order_are_a_plain_set(
            start in 0_u64..40,
            runs in prop::collection::vec((0_u64..300, prop_oneof![Just(1), 1_u64..30]), 0..300),
        ) {
            let mut progress = QueueProgress::starting_at(start);
            let mut set: BTreeSet<_> = (0..start).collect();
            for (first, count) in runs {
                progress.ack_run(first, count);
                set.extend(first..first + count);
                let unacked = |from: u64| (from..).find(|offset| !set.contains(offset)).unwrap();
                prop_assert_eq!(progress.floor(), unacked(0));
                prop_assert_eq!(progress.acked(), set.len() as u64);
                for offset in 0..400 {
                    prop_assert_eq!(progress.is_acked(offset), set.contains(&offset));
                    prop_assert_eq!(progress.next_unacked(offset), unacked(offset));
                }
                let (floor, stretches, attempts) = progress.parts();
                let parts = (floor, stretches.clone(), attempts.clone());
                let again = QueueProgress::from_parts(parts.0, parts.1, parts.2);
                prop_assert_eq!(&again, &progress);
            }
        }
    }

    #[test]
    fn attempts_are_kept_until_the_ack() {
        let mut progress = QueueProgress::default();
        progress.attempted(5, 2);
        progress.attempted(5, 1);
        assert_eq!(progress.attempts(5), 2);
        progress.ack_run(3, 4);
        assert_eq!(progress.attempts(5), 0);
        progress.attempted(5, 3);
        assert_eq!(progress.attempts(5), 0);
    }

    #[test]
    fn what_went_on_is_told_from_what_was_acknowledged_and_costs_little() {
        let mut progress = QueueProgress::default();
        progress.ack(0);
        progress.give_back(1);
        assert!(!progress.is_returned(0) && progress.is_returned(1) && progress.is_acked(1));
        (2..2 + MAX_RETURNED as u64).for_each(|offset| progress.give_back(offset));
        assert!(progress.is_returned(0), "nobody knows any more");
        assert_eq!(progress.returned().1.len(), MAX_RETURNED);
        assert!(!progress.is_returned(2 + MAX_RETURNED as u64));
    }

    #[test]
    fn a_million_left_out_behind_one_that_is_stuck_are_one_stretch() {
        let mut progress = QueueProgress::default();
        for run in 0..1000 {
            progress.ack_run(1 + run * 1000, 1000);
        }
        assert_eq!(progress.parts().1.len(), 1);
        assert_eq!((progress.floor(), progress.acked()), (0, 1_000_000));
        progress.ack(0);
        assert_eq!((progress.floor(), progress.parts().1.len()), (1_000_001, 0));
        progress.ack_run(u64::MAX - 1, 5);
        assert_eq!(progress.next_unacked(u64::MAX - 1), u64::MAX);
    }
}
