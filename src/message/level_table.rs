//! The delay levels by their numbers: level 1 is the first of the table.

/// Most levels of a table.
pub const MAX_LEVELS: usize = 32;

/// What each level delays by, in milliseconds: level *n* by the entry at *n* - 1. In any order, and two
/// levels may be alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelTable(Vec<u64>);

impl LevelTable {
    /// A table of these delays; `None` unless there are 1 to [`MAX_LEVELS`] of them, and each is one that
    /// a message can wait for.
    pub fn new(delays_ms: Vec<u64>) -> Option<Self> {
        let is_good = |delay: &u64| (1..=super::MAX_DELAY_MS).contains(delay);
        let good = (1..=MAX_LEVELS).contains(&delays_ms.len()) && delays_ms.iter().all(is_good);
        good.then_some(Self(delays_ms))
    }

    pub fn delays_ms(&self) -> &[u64] {
        &self.0
    }
}

/// RocketMQ's table: 1s 5s 10s 30s, 1 to 10 minutes, 20m 30m 1h 2h.
impl Default for LevelTable {
    fn default() -> Self {
        const MINUTE: u64 = 60 * 1000;
        let seconds = [1, 5, 10, 30].map(|seconds| seconds * 1000);
        let minutes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 60, 120].map(|count| count * MINUTE);
        Self([&seconds[..], &minutes[..]].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MAX_DELAY_MS;

    #[test]
    fn a_table_has_1_to_32_levels_that_can_be_waited_for() {
        assert_eq!(LevelTable::default().delays_ms().len(), 18);
        for good in [vec![1], vec![5, 1, 5], vec![MAX_DELAY_MS], vec![7; MAX_LEVELS]] {
            assert_eq!(LevelTable::new(good.clone()), Some(LevelTable(good)));
        }
        for bad in [vec![], vec![0], vec![5, 0], vec![MAX_DELAY_MS + 1], vec![7; MAX_LEVELS + 1]] {
            assert_eq!(LevelTable::new(bad), None);
        }
    }
}
