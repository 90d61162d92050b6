//! Checks that wait to be asked for, in a row for each producer group.

use std::collections::{BTreeSet, HashMap};

use crate::clock::Timestamp;
use crate::message::offset::Offset;

/// Checks that wait in memory, of all groups together.
pub const PARKED_MAX: usize = 100_000;
/// Of these, of one group.
pub const PARKED_OF_GROUP_MAX: usize = 20_000;

/// A check that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub(super) at: Timestamp,
    pub(super) cause: Offset,
}

/// All that wait; of a group the one that was due first comes first.
#[derive(Debug, Default)]
pub(super) struct Parked {
    rows: HashMap<String, BTreeSet<Due>>,
    by_cause: HashMap<Offset, Place>,
}

#[derive(Clone, Debug)]
struct Place {
    group: String,
    at: Timestamp,
    /// When its transaction ends of itself.
    abandoned_at: Timestamp,
}

impl Parked {
    /// When the transaction of the parked check ends; nothing when it is not parked.
    pub(super) fn abandoned_at(&self, cause: Offset) -> Option<Timestamp> {
        self.by_cause.get(&cause).map(|place| place.abandoned_at)
    }

    /// `false` when there is no room.
    pub(super) fn park(&mut self, group: &str, due: Due, abandoned_at: Timestamp) -> bool {
        if self.by_cause.len() >= PARKED_MAX {
            return false;
        }
        let row = self.rows.entry(group.to_owned()).or_default();
        if row.len() >= PARKED_OF_GROUP_MAX {
            return false;
        }
        row.insert(due);
        let place = Place { group: group.to_owned(), at: due.at, abandoned_at };
        self.by_cause.insert(due.cause, place);
        true
    }

    pub(super) fn remove(&mut self, cause: Offset) {
        if let Some(Place { group, at, .. }) = self.by_cause.remove(&cause)
            && let Some(row) = self.rows.get_mut(&group)
        {
            row.remove(&Due { at, cause });
            if row.is_empty() {
                self.rows.remove(&group);
            }
        }
    }

    /// Takes the first of the group's row out of it.
    pub(super) fn take(&mut self, group: &str) -> Option<(Due, Timestamp)> {
        let first = *self.rows.get(group)?.first()?;
        let abandoned_at = self.abandoned_at(first.cause)?;
        self.remove(first.cause);
        Some((first, abandoned_at))
    }

    pub(super) fn has(&self, group: &str) -> bool {
        self.rows.contains_key(group)
    }

    pub(super) fn len(&self) -> usize {
        self.by_cause.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(at: u64, cause: u64) -> Due {
        Due { at: Timestamp::from_millis(at), cause: Offset::new(cause) }
    }

    const END: Timestamp = Timestamp::from_millis(1 << 40);

    #[test]
    fn of_a_group_the_first_due_comes_first_and_another_groups_never() {
        let mut parked = Parked::default();
        for (group, at, cause) in [("a", 2, 96), ("a", 1, 192), ("b", 0, 288)] {
            assert!(parked.park(group, due(at, cause), END));
        }
        assert_eq!(parked.take("a"), Some((due(1, 192), END)));
        assert_eq!(parked.take("a"), Some((due(2, 96), END)));
        assert_eq!(parked.take("a"), None);
        assert!(parked.has("b") && !parked.has("a"));
        parked.remove(Offset::new(288));
        parked.remove(Offset::new(288));
        assert_eq!((parked.len(), parked.has("b")), (0, false));
    }

    #[test]
    fn one_group_fills_its_own_bound_and_all_together_theirs() {
        let mut parked = Parked::default();
        for group in 0..PARKED_MAX / PARKED_OF_GROUP_MAX {
            let name = group.to_string();
            for index in 0..PARKED_OF_GROUP_MAX {
                let cause = (group * PARKED_OF_GROUP_MAX + index) as u64 * 32;
                assert!(parked.park(&name, due(1, cause), END));
            }
            assert!(!parked.park(&name, due(1, 31), END), "the group's bound");
        }
        assert_eq!(parked.len(), PARKED_MAX);
        assert!(!parked.park("other", due(1, 31), END), "the bound of all");
        parked.take("0");
        assert!(parked.park("other", due(1, 31), END));
    }
}
