//! Checks that wait, in a row for each producer group that asks for them, and for each host that is asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use crate::clock::Timestamp;
use crate::message::offset::Offset;
use crate::message::record::Terms;

/// Checks that wait in memory, of all rows together.
pub const PARKED_MAX: usize = 100_000;
/// Of these, of one row.
pub const PARKED_OF_ROW_MAX: usize = 20_000;

/// Who is to answer a check.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Asked {
    /// Whoever of this producer group asks for checks.
    Group(String),
    /// The server at this host and port, which we ask.
    Host(String),
}

impl Asked {
    pub(super) fn of(terms: &Terms) -> Self {
        match &terms.check_url {
            None => Self::Group(terms.producer_group.clone()),
            Some(url) => Self::Host(url.authority().to_owned()),
        }
    }
}

/// A check that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub(super) at: Timestamp,
    pub(super) cause: Offset,
}

/// All that wait; of a row the one that was due first comes first.
#[derive(Debug, Default)]
pub(super) struct Parked {
    rows: BTreeMap<Asked, BTreeSet<Due>>,
    by_cause: HashMap<Offset, Place>,
}

#[derive(Clone, Debug)]
struct Place {
    asked: Asked,
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
    pub(super) fn park(&mut self, asked: &Asked, due: Due, abandoned_at: Timestamp) -> bool {
        if self.by_cause.len() >= PARKED_MAX {
            return false;
        }
        let row = self.rows.entry(asked.clone()).or_default();
        if row.len() >= PARKED_OF_ROW_MAX {
            return false;
        }
        row.insert(due);
        let place = Place { asked: asked.clone(), at: due.at, abandoned_at };
        self.by_cause.insert(due.cause, place);
        true
    }

    pub(super) fn remove(&mut self, cause: Offset) {
        if let Some(Place { asked, at, .. }) = self.by_cause.remove(&cause)
            && let Some(row) = self.rows.get_mut(&asked)
        {
            row.remove(&Due { at, cause });
            if row.is_empty() {
                self.rows.remove(&asked);
            }
        }
    }

    /// Takes the first of the row out of it.
    pub(super) fn take(&mut self, asked: &Asked) -> Option<(Due, Timestamp)> {
        let first = *self.rows.get(asked)?.first()?;
        let abandoned_at = self.abandoned_at(first.cause)?;
        self.remove(first.cause);
        Some((first, abandoned_at))
    }

    pub(super) fn has(&self, asked: &Asked) -> bool {
        self.rows.contains_key(asked)
    }

    /// The first host after `after` for which something waits and `free` is true; from the beginning again
    /// after the last.
    pub(super) fn next_host(
        &self,
        after: &str,
        mut free: impl FnMut(&str) -> bool,
    ) -> Option<String> {
        let after = Bound::Excluded(Asked::Host(after.to_owned()));
        let later = self.rows.range((after, Bound::Unbounded));
        let hosts = later.chain(self.rows.iter()).filter_map(|(asked, _)| match asked {
            Asked::Host(host) => Some(host),
            Asked::Group(_) => None,
        });
        hosts.into_iter().find(|host| free(host)).cloned()
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

    fn group(name: &str) -> Asked {
        Asked::Group(name.to_owned())
    }

    const END: Timestamp = Timestamp::from_millis(1 << 40);

    #[test]
    fn of_a_group_the_first_due_comes_first_and_another_groups_never() {
        let mut parked = Parked::default();
        for (name, at, cause) in [("a", 2, 96), ("a", 1, 192), ("b", 0, 288)] {
            assert!(parked.park(&group(name), due(at, cause), END));
        }
        assert_eq!(parked.take(&group("a")), Some((due(1, 192), END)));
        assert_eq!(parked.take(&group("a")), Some((due(2, 96), END)));
        assert_eq!(parked.take(&group("a")), None);
        assert!(parked.has(&group("b")) && !parked.has(&group("a")));
        parked.remove(Offset::new(288));
        parked.remove(Offset::new(288));
        assert_eq!((parked.len(), parked.has(&group("b"))), (0, false));
    }

    #[test]
    fn one_group_fills_its_own_bound_and_all_together_theirs() {
        let mut parked = Parked::default();
        for row in 0..PARKED_MAX / PARKED_OF_ROW_MAX {
            let name = group(&row.to_string());
            for index in 0..PARKED_OF_ROW_MAX {
                let cause = (row * PARKED_OF_ROW_MAX + index) as u64 * 32;
                assert!(parked.park(&name, due(1, cause), END));
            }
            assert!(!parked.park(&name, due(1, 31), END), "the group's bound");
        }
        assert_eq!(parked.len(), PARKED_MAX);
        assert!(!parked.park(&group("other"), due(1, 31), END), "the bound of all");
        parked.take(&group("0"));
        assert!(parked.park(&group("other"), due(1, 31), END));
    }

    #[test]
    fn hosts_take_turns_and_one_that_is_busy_is_passed() {
        let mut parked = Parked::default();
        assert!(parked.park(&group("shop"), due(1, 32), END));
        for (cause, host) in [(96, "a:1"), (192, "b:1"), (288, "c:1")] {
            assert!(parked.park(&Asked::Host(host.to_owned()), due(1, cause), END));
        }
        let next = |after, busy: &str| parked.next_host(after, |host| host != busy);
        assert_eq!(next("", "").as_deref(), Some("a:1"));
        assert_eq!(next("a:1", "").as_deref(), Some("b:1"));
        assert_eq!(next("a:1", "b:1").as_deref(), Some("c:1"));
        assert_eq!(next("c:1", "").as_deref(), Some("a:1"));
        assert_eq!(parked.next_host("", |_| false), None);
    }
}
