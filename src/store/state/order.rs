//! What holds in every state that is captured, and that the format alone does not say.

use std::collections::HashSet;

use super::{State, StateError};
use crate::store::quarantined::LISTED_MAX;
use crate::store::topics::LEVEL_TOPIC_ID;

/// Whether a state that was read is one that can have been written.
///
/// # Errors
///
/// [`StateError::NotAsWritten`] says what cannot be.
pub(super) fn check(state: &State) -> Result<(), StateError> {
    let rules = [
        (topics(state), "topics ascend by id, below the next one"),
        (queues(state), "a queue begins after its end"),
        (groups(state), "groups ascend by id, below the next one, each with a name of its own"),
        (levels(state), "more is released of a level than there is"),
        (boundaries(state), "the parts of a state stand one behind the other"),
        (quarantined(state), "more is set aside than was counted, or than is listed"),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, what)) => Err(StateError::NotAsWritten(what)),
        None => Ok(()),
    }
}

fn topics(state: &State) -> bool {
    state.topics.is_sorted_by(|one, next| one.id < next.id)
        && state.topics.last().is_none_or(|last| last.id < state.next_topic_id)
}

fn queues(state: &State) -> bool {
    state.topics.iter().flat_map(|topic| &topic.queues).all(|(first, length)| first <= length)
}

/// Names of topics are another matter: one that is being deleted has lost its name to whoever took it.
fn groups(state: &State) -> bool {
    let mut names = HashSet::new();
    state.groups.is_sorted_by(|one, next| one.id < next.id)
        && state.groups.last().is_none_or(|last| last.id < state.next_group_id)
        && state.groups.iter().all(|group| names.insert(&group.name))
}

fn levels(state: &State) -> bool {
    let topic = state.topics.iter().find(|topic| topic.id == LEVEL_TOPIC_ID);
    match topic {
        None => state.levels.is_empty(),
        Some(topic) => {
            let mut both = state.levels.iter().zip(&topic.queues);
            both.all(|(level, &(_, length))| level.released <= length)
        }
    }
}

fn boundaries(state: &State) -> bool {
    let mut all = state.boundaries.values();
    all.all(|parts| parts.is_sorted_by(|one, next| one < next))
}

fn quarantined(state: &State) -> bool {
    let listed = state.quarantined.listed.len();
    listed <= LISTED_MAX && listed as u64 <= state.quarantined.count
}

#[cfg(test)]
mod tests {
    use super::super::fuzzing::sample;
    use super::super::{LevelQueue, Offset, TopicState};
    use super::*;
    use crate::message::record::DamageReason;

    /// Each of these was taken for a state: a start went by it, and ended, or answered nonsense, later on.
    #[test]
    fn what_no_capture_writes_is_refused() {
        type Change = fn(&mut State);
        let changes: [(&str, Change); 12] = [
            ("topics out of order", |state| state.topics.swap(0, 1)),
            ("a topic twice", |state| state.topics.insert(0, state.topics[0].clone())),
            ("the next topic's id is taken", |state| state.next_topic_id = 16),
            ("no id is left for the next topic", |state| state.topics[1].id = u32::MAX),
            ("a queue that begins after its end", |state| state.topics[1].queues[1] = (3, 2)),
            ("groups out of order", |state| state.groups.swap(0, 1)),
            ("the next group's id is taken", |state| state.next_group_id = 2),
            ("two groups of a name", |state| {
                state.groups[1].name = state.groups[0].name.clone();
            }),
            ("a level released beyond its end", |state| {
                state.levels[0] = LevelQueue { delay_ms: 1000, released: 8 };
            }),
            ("levels without their topic", |state| drop(state.topics.remove(0))),
            ("parts out of order", |state| {
                let parts = vec![Offset::new(8960), Offset::new(8320)];
                state.boundaries.insert(8192, parts);
            }),
            ("more listed than were counted", |state| state.quarantined.count = 1),
        ];
        for (what, change) in changes {
            let mut state = sample();
            change(&mut state);
            let read = State::decode(&state.encode());
            assert!(matches!(read, Err(StateError::NotAsWritten(_))), "{what}: {read:?}");
        }
    }

    #[test]
    fn more_set_aside_than_are_listed_is_refused() {
        let mut state = sample();
        let damaged = |from: u64| (from * 64, (64, DamageReason::Body));
        state.quarantined.count = 5000;
        state.quarantined.listed = (0..LISTED_MAX as u64).map(damaged).collect();
        assert_eq!(State::decode(&state.encode()).as_ref(), Ok(&state));
        state.quarantined.listed.extend([damaged(LISTED_MAX as u64)]);
        assert!(State::decode(&state.encode()).is_err());
    }

    #[test]
    fn two_topics_may_have_a_name_while_one_is_being_deleted() {
        let mut state = sample();
        let again = TopicState { id: 17, ..state.topics[1].clone() };
        state.topics.push(again);
        state.next_topic_id = 18;
        assert_eq!(State::decode(&state.encode()).as_ref(), Ok(&state));
    }
}
