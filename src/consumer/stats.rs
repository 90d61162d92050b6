//! How far a group is with the topics that it reads. What it costs grows with queues, not with messages.

use std::sync::Arc;

use super::fifo::Lanes;
use super::lease::QueueLeases;
use super::{Consumers, Leases, Seat};
use crate::clock::Timestamp;
use crate::consumequeue::{ConsumeQueue, QueueError, Unit};
use crate::message::TagFilter;
use crate::store::{ArrivalListener, Group, Holds, QueueProgress, Topic};

/// Units looked at to find the oldest that is not acknowledged: holes and what the filter leaves out stand
/// before it only until the next receive.
const LOOKED_AT: u64 = 256;

/// A group and a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicStats {
    pub topic: String,
    /// Messages that are not acknowledged, in flight, waiting for their retry, or neither. What the filter
    /// leaves out, and a retry that a reset has made void, count until a receive has looked at them.
    pub lag: u64,
    pub in_flight: u64,
    /// When the oldest of them became readable.
    pub oldest_unacked: Option<Timestamp>,
    pub dead_letters: u64,
}

/// Queues that a group reads no further before it acknowledges, of all groups together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuesAtBound {
    /// As many of their messages as may be are out, or back and not yet handed out again.
    pub out: u32,
    /// As many as may be are parked behind others of their message groups.
    pub parked: u32,
}

impl Consumers {
    /// Which queues wait at a bound. What it costs grows with the queues that were read since the start.
    pub fn queues_at_bound(&self) -> QueuesAtBound {
        let leases = self.leases.lock();
        let count = |queues: usize| u32::try_from(queues).unwrap_or(u32::MAX);
        QueuesAtBound {
            out: count(leases.queues.values().filter(|queue| queue.is_at_bound()).count()),
            parked: count(leases.lanes.values().map(Lanes::queues_at_bound).sum()),
        }
    }

    /// How far the group is with each topic that it has begun with, by name.
    ///
    /// # Errors
    ///
    /// When a queue cannot be read.
    pub fn stats(&self, group: &Group) -> Result<Vec<TopicStats>, QueueError> {
        let topics = self.topics_of(&self.leases.lock(), group);
        topics.iter().map(|topic| self.topic_stats(group, topic)).collect()
    }

    /// The topics that the group has begun with, by name.
    pub(super) fn topics_of(&self, leases: &Leases, group: &Group) -> Vec<Arc<Topic>> {
        let mut ids = group.topics();
        // Begun with, and not folded yet.
        let appended = leases.readings.range((group.id, 0)..=(group.id, u32::MAX));
        ids.extend(appended.filter(|(_, reading)| reading.is_some()).map(|((_, id), _)| *id));
        ids.sort_unstable();
        ids.dedup();
        let topics = ids.into_iter().filter_map(|id| self.store.topic_by_id(id));
        let mut topics: Vec<_> = topics.collect();
        topics.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        topics
    }

    /// How many messages of the topic the groups that have begun with it have still to acknowledge, all
    /// groups together, dead letters too. What cannot be looked at counts as one: nobody knows.
    pub fn unacked(&self, topic: &Topic) -> u64 {
        let groups = self.store.groups(None, usize::MAX);
        let reading = groups.iter().filter(|group| self.reading(group, topic).is_some());
        reading
            .map(|group| {
                self.topic_stats(group, topic).map_or(1, |stats| stats.lag + stats.dead_letters)
            })
            .sum()
    }

    /// The topic is gone: leases of it are forgotten, and who waits for it is told.
    pub fn topic_deleted(&self, topic: &Topic) {
        let mut leases = self.leases.lock();
        let gone = |seat: &Seat| {
            let system = self.store.topic_by_id(seat.topic_id);
            seat.topic_id == topic.id || system.is_none_or(|system| system.is_deleted())
        };
        leases.queues.retain(|seat, _| !gone(seat));
        leases.nacked.retain(|(seat, _), _| !gone(seat));
        leases.readings.retain(|&(_, topic_id), _| topic_id != topic.id);
        leases.turns.retain(|&(_, topic_id), _| topic_id != topic.id);
        leases.lanes.retain(|&(_, topic_id), _| topic_id != topic.id);
        leases.releases.retain(|release| release.topic_id != topic.id);
        drop(leases);
        self.polls.arrived(topic.id, u64::MAX);
    }

    fn topic_stats(&self, group: &Group, topic: &Topic) -> Result<TopicStats, QueueError> {
        let (mut lag, mut in_flight, mut oldest_unacked) = (0, 0, None);
        let letters = self.store.system_topic(Holds::DeadLetters, group, topic.id);
        let retries = self.store.system_topic(Holds::Retries, group, topic.id);
        let sources = self.sources(group, topic);
        let mut leases = self.leases.lock();
        let reading = leases.reading(group, topic.id).as_ref();
        let own = reading.and_then(|reading| reading.filter.clone()).unwrap_or_default();
        let everything = TagFilter::everything();
        for source in &sources {
            let units = source.units();
            // What is in the retry queue has passed the filter, and has no tag hash.
            let is_own = source.seat.topic_id == topic.id;
            let filter = if is_own { &own } else { &everything };
            let look = |state: &mut QueueLeases, progress: &QueueProgress| {
                lag += units.committed().saturating_sub(progress.acked());
                in_flight += state.in_flight();
                oldest(units, progress, filter)
            };
            let oldest = leases.look(group, source.seat, look)?;
            oldest_unacked = oldest_unacked.into_iter().chain(oldest).min();
        }
        let dead_letters = letters.map_or(0, |letters| leases.dead_letters(group, &letters));
        lag += retries.map_or(0, |retries| retries.pending());
        let topic = topic.name.clone();
        Ok(TopicStats { topic, lag, in_flight, oldest_unacked, dead_letters })
    }
}

/// The time of the first unit that the group has yet to acknowledge, if one is near the floor.
fn oldest(
    units: &ConsumeQueue,
    progress: &QueueProgress,
    filter: &TagFilter,
) -> Result<Option<Timestamp>, QueueError> {
    let mut offset = progress.floor();
    for _ in 0..LOOKED_AT {
        if offset >= units.committed() {
            break;
        }
        let unit: Unit = units.unit(offset)?;
        if !unit.is_hole() && filter.may_admit(unit.tag_hash) {
            return Ok(Some(unit.time));
        }
        offset = progress.next_unacked(offset + 1);
    }
    Ok(None)
}
