//! How far a group is with a queue: a floor, and one bit for each offset above it.

use std::collections::{BTreeMap, VecDeque};

/// Everything below `floor` is acknowledged; above it, the bits say. Memory is one bit for each offset
/// between the floor and the highest ack, so the read cursor is kept from running too far ahead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueProgress {
    floor: u64,
    /// Bit `i` of word `w` is offset `first + 64 w + i`, where `first` is `floor` rounded down to 64.
    words: VecDeque<u64>,
    /// Attempts that ended without an ack, of messages that have any.
    attempts: BTreeMap<u64, u32>,
}

impl QueueProgress {
    /// Puts back what [`QueueProgress::parts`] gave.
    pub fn from_parts(floor: u64, words: Vec<u64>, attempts: BTreeMap<u64, u32>) -> Self {
        Self { floor, words: words.into(), attempts }
    }

    pub fn parts(&self) -> (u64, impl ExactSizeIterator<Item = u64>, &BTreeMap<u64, u32>) {
        (self.floor, self.words.iter().copied(), &self.attempts)
    }

    /// The first offset that is not acknowledged.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// How many offsets are acknowledged.
    pub fn acked(&self) -> u64 {
        let (_, bit) = self.place(self.floor);
        let mut words = self.words.iter();
        let first = words.next().map_or(0, |word| u64::from((word & !(bit - 1)).count_ones()));
        self.floor + first + words.map(|word| u64::from(word.count_ones())).sum::<u64>()
    }

    pub fn is_acked(&self, offset: u64) -> bool {
        if offset < self.floor {
            return true;
        }
        let (word, bit) = self.place(offset);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    pub fn ack(&mut self, offset: u64) {
        if offset < self.floor {
            return;
        }
        self.attempts.remove(&offset);
        let (word, bit) = self.place(offset);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
        self.raise_floor();
    }

    /// The attempt numbered `attempt` ended without an ack.
    pub fn attempted(&mut self, offset: u64, attempt: u32) {
        if !self.is_acked(offset) {
            let known = self.attempts.entry(offset).or_default();
            *known = attempt.max(*known);
        }
    }

    /// How many attempts have ended without an ack.
    pub fn attempts(&self, offset: u64) -> u32 {
        self.attempts.get(&offset).copied().unwrap_or(0)
    }

    fn place(&self, offset: u64) -> (usize, u64) {
        let distance = offset - self.floor / 64 * 64;
        let word = usize::try_from(distance / 64).expect("the cursor stays near the floor");
        (word, 1 << (distance % 64))
    }

    fn raise_floor(&mut self) {
        while let Some(&word) = self.words.front() {
            let (_, bit) = self.place(self.floor);
            let below = bit - 1;
            let run = (word | below).trailing_ones();
            self.floor = self.floor / 64 * 64 + u64::from(run);
            if run < 64 {
                return;
            }
            self.words.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn acks_in_any_order_are_a_plain_set(offsets in prop::collection::vec(0_u64..300, 0..400)) {
            let mut progress = QueueProgress::default();
            let mut set = BTreeSet::new();
            for offset in offsets {
                progress.ack(offset);
                set.insert(offset);
                let floor = (0..).find(|offset| !set.contains(offset)).unwrap();
                prop_assert_eq!(progress.floor(), floor);
                for offset in 0..400 {
                    prop_assert_eq!(progress.is_acked(offset), set.contains(&offset));
                }
                let (floor, words, attempts) = progress.parts();
                let again = QueueProgress::from_parts(floor, words.collect(), attempts.clone());
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
        progress.ack(5);
        assert_eq!(progress.attempts(5), 0);
        progress.attempted(5, 3);
        assert_eq!(progress.attempts(5), 0);
    }
}
