//! The fold over the log: it turns records into queue units, progress and counts.
//!
//! The same fold serves live groups ([`dispatch`](super::dispatch)) and recovery, which also gets back
//! what the appender knew ([`replay`](super::replay)). It takes no clock and nothing random, so
//! the state is a function of the log. A record that cannot be folded is logged and left out: it is lost
//! alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use timerlog::planted::{self, Fault};

use super::StoreError;
use super::groups::{Group, Groups, QueueKey};
use super::keep::Keep;
use super::levels::Levels;
use super::quarantined::Quarantined;
use super::state::Counts;
use super::topics::{
    HALF_TOPIC_ID, LEVEL_TOPIC, LEVEL_TOPIC_ID, OP_TOPIC_ID, TIMER_TOPIC_ID, Topic, TopicAt, Topics,
};
use crate::commitlog::ScanFrom;
use crate::consumequeue::{QueueError, Unit};
use crate::message::TopicSettings;
use crate::message::offset::Offset;
use crate::message::record::{
    Ack, Acked, Cancel, Commit, Delivery, GroupSet, IdempotencyKey, Kind, LeaseExpired, Message,
    Moved, Opened, Placement, Quarantine, Record, RecordError, Reschedule, Rollback, Round,
    StateEnd, StatePart, TopicDeleted, TopicSet,
};
use crate::message::timer_tag::TimerTag;
use crate::stage::Watermark;
use crate::sync::{AtomicU64, Ordering};

/// Queues that a topic has when only a message of it tells that it exists.
const QUEUES_UNKNOWN: u16 = 1;

/// What dispatch alone writes, behind one lock.
#[derive(Debug)]
pub(super) struct Dispatcher {
    /// Everything before this is folded.
    pub(super) at: ScanFrom,
    /// The group after that is folded up to here, and its units are not all written. What else is here is
    /// ahead of `at` then, and nothing for a checkpoint.
    pub(super) folded_to: Option<ScanFrom>,
    pub(super) counts: Counts,
    pub(super) keep: Keep,
    /// Where the state at the begin of a segment is written down, and where it is read.
    pub(super) boundaries: BTreeMap<u64, Vec<Offset>>,
    /// The parts of the state that is being written down.
    pub(super) parts: (Offset, Vec<Offset>),
    /// What of the log is set aside.
    pub(super) quarantined: Quarantined,
    pub(super) batch: Batch,
    /// The group at hand, kept for its room.
    pub(super) bytes: Vec<u8>,
}

impl Dispatcher {
    pub(super) fn new(at: ScanFrom, counts: Counts, keep: Keep) -> Self {
        Self {
            at,
            folded_to: None,
            counts,
            keep,
            boundaries: BTreeMap::new(),
            parts: (Offset::ZERO, Vec::new()),
            quarantined: Quarantined::default(),
            batch: Batch::default(),
            bytes: Vec::new(),
        }
    }
}

/// Units of one group, to be written queue by queue.
#[derive(Debug, Default)]
pub(super) struct Batch {
    queues: BTreeMap<QueueKey, Vec<(u64, Unit)>>,
}

impl Batch {
    pub(super) fn units(&self) -> usize {
        self.queues.values().map(Vec::len).sum()
    }

    pub(super) fn add(&mut self, key: QueueKey, place: u64, unit: Unit) {
        self.queues.entry(key).or_default().push((place, unit));
    }
}

/// Counts for those who do not hold the lock.
#[derive(Debug, Default)]
pub(super) struct LiveCounts {
    pub(super) accepted: AtomicU64,
    pub(super) pending: AtomicU64,
    pub(super) dispatched: AtomicU64,
    /// The same, for those who wait for it.
    pub(super) dispatch_mark: Watermark,
    /// Units written to queues since the start.
    pub(super) units_written: AtomicU64,
}

/// Why a record cannot be folded.
#[derive(Debug, thiserror::Error)]
pub(super) enum FoldError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("it speaks of topic {0}, which no record has made")]
    UnknownTopic(u32),
    #[error("it speaks of queue {queue} of topic {topic}, which has fewer")]
    UnknownQueue { topic: u32, queue: u16 },
    #[error("it speaks of group {0}, which no record has made")]
    UnknownGroup(u32),
    /// Nothing to do with the record: the whole fold must stop.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<QueueError> for FoldError {
    fn from(error: QueueError) -> Self {
        Self::Store(error.into())
    }
}

/// What the fold makes.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) topics: Topics,
    pub(super) groups: Groups,
    pub(super) levels: Levels,
    pub(super) counts: LiveCounts,
}

impl Fold {
    pub(super) fn publish(&self, dispatcher: &Dispatcher) {
        let counts = &dispatcher.counts;
        self.counts.accepted.store(counts.accepted, Ordering::Relaxed);
        self.counts.pending.store(counts.pending(), Ordering::Relaxed);
        self.counts.dispatched.store(dispatcher.at.offset.get(), Ordering::Release);
        self.counts.dispatch_mark.raise(dispatcher.at.offset.get());
    }

    /// Folds one record; one that cannot be folded is left out.
    pub(super) fn fold(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), StoreError> {
        let folded = match record.header.kind {
            Kind::Message => self.fold_message(dispatcher, record),
            Kind::Cancel => self.fold_cancel(dispatcher, record),
            Kind::HalfMessage => self.fold_half(dispatcher, record),
            Kind::Check | Kind::Resume | Kind::Abandon => self.fold_round(dispatcher, record),
            Kind::Commit => self.fold_commit(dispatcher, record),
            Kind::Rollback => self.fold_rollback(dispatcher, record),
            Kind::Delivery => self.fold_delivery(dispatcher, record),
            Kind::Ack => self.fold_ack(record),
            Kind::LeaseExpired => self.fold_lease_expired(record),
            Kind::Reschedule => self.fold_reschedule(dispatcher, record),
            Kind::TopicSet => self.fold_topic_set(record),
            Kind::TopicDeleted => self.fold_topic_deleted(dispatcher, record),
            Kind::GroupSet => self.fold_group_set(record),
            Kind::Nack => self.fold_nack(dispatcher, record),
            Kind::DeadLetter => self.fold_dead_letter(dispatcher, record),
            Kind::Redrive => self.fold_redrive(dispatcher, record),
            Kind::OffsetsReset => self.fold_offsets_reset(record),
            Kind::IdempotencyKey => self.fold_idempotency_key(dispatcher, record),
            Kind::Opened => self.fold_opened(dispatcher, record),
            Kind::Move => self.fold_move(dispatcher, record),
            Kind::State => fold_state_part(dispatcher, record),
            Kind::StateEnd => fold_state_end(dispatcher, record),
            Kind::Quarantine => fold_quarantine(dispatcher, record),
            kind => {
                // A later version writes these; this one would lose what they say.
                return Err(StoreError::UnknownKind { kind, offset: record.header.offset.get() });
            }
        };
        match folded {
            Ok(()) => Ok(()),
            Err(FoldError::Store(error)) => Err(error),
            Err(error) => {
                let offset = record.header.offset.get();
                tracing::error!(offset, %error, "a record cannot be folded");
                Ok(())
            }
        }
    }

    fn fold_message(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let head = Message::decode_fixed(record)?;
        let topic = match self.topics.by_id(head.topic_id) {
            Some(topic) => topic,
            None => self.topic_of_message(record)?,
        };
        let mut unit = Unit {
            offset: record.header.offset,
            length: pointer_length(record),
            tag_hash: head.tag_hash,
            time: head.born_at,
        };
        let at = record.header.offset;
        dispatcher.keep.put(at, head.born_at);
        match head.placement {
            Placement::Ready { queue_offset } => {
                check_queue(&topic, head.queue)?;
                dispatcher.keep.needed(at, head.born_at, self.retention_of(dispatcher, &topic));
                dispatcher.batch.add((topic.id, head.queue), queue_offset, unit);
                if head.replaces {
                    // The timer learns of it by way of its topic, as of a cancel.
                    self.file_timer_unit(dispatcher, unit);
                }
            }
            Placement::Timed { deadline } => {
                unit.time = deadline;
                self.file_timer_unit(dispatcher, unit);
                dispatcher.keep.waits(at);
                dispatcher.counts.scheduled += 1;
                topic.scheduled();
            }
            Placement::Level { deadline, queue } => {
                unit.time = deadline;
                self.file_level_unit(dispatcher, queue, unit, deadline.since(head.born_at))?;
                if head.replaces {
                    self.file_timer_unit(dispatcher, unit);
                }
                dispatcher.keep.waits(at);
                dispatcher.counts.scheduled += 1;
                topic.scheduled();
            }
        }
        dispatcher.counts.accepted += 1;
        if head.replaces {
            let timer = Message::decode(record)?.timer;
            if let Some(replaced) = timer.and_then(|timer| timer.replaces) {
                dispatcher.keep.settled(replaced.cause);
            }
            dispatcher.counts.cancelled += 1;
            topic.settled(1);
        }
        Ok(())
    }

    /// The message waits as before, elsewhere: nothing is counted.
    fn fold_reschedule(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let reschedule = Reschedule::decode(record)?;
        let unit = Unit {
            offset: record.header.offset,
            length: pointer_length(record),
            tag_hash: 0,
            time: reschedule.deadline,
        };
        self.file_timer_unit(dispatcher, unit);
        dispatcher.keep.settled(reschedule.cause);
        dispatcher.keep.waits(record.header.offset);
        Ok(())
    }

    /// It waits for its decision, and so counts for nothing yet; its first check waits in the wheel.
    fn fold_half(&self, dispatcher: &mut Dispatcher, record: &Record<'_>) -> Result<(), FoldError> {
        let head = Message::decode_fixed(record)?;
        if self.topics.by_id(head.topic_id).is_none() {
            self.topic_of_message(record)?;
        }
        let (offset, length) = (record.header.offset, pointer_length(record));
        let unit = Unit { offset, length, tag_hash: 0, time: head.born_at };
        self.file_system_unit(dispatcher, HALF_TOPIC_ID, unit)?;
        self.file_timer_unit(dispatcher, unit);
        dispatcher.keep.put(offset, head.born_at);
        dispatcher.keep.waits(offset);
        dispatcher.counts.accepted += 1;
        Ok(())
    }

    /// The timer learns when the producer is to be asked next.
    fn fold_round(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let round = Round::decode(record)?;
        let (offset, length) = (record.header.offset, pointer_length(record));
        self.file_timer_unit(dispatcher, Unit { offset, length, tag_hash: 0, time: round.at });
        dispatcher.keep.settled(round.cause);
        dispatcher.keep.waits(offset);
        Ok(())
    }

    fn fold_commit(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let commit = Commit::decode(record)?;
        let (offset, length) = (record.header.offset, pointer_length(record));
        let op = Unit { offset, length, tag_hash: 0, time: commit.at };
        self.file_system_unit(dispatcher, OP_TOPIC_ID, op)?;
        let tag = TimerTag(commit.tag);
        let topic = self.topics.by_id(tag.topic_id());
        let topic = topic.ok_or(FoldError::UnknownTopic(tag.topic_id()))?;
        dispatcher.keep.settled(commit.cause);
        match commit.placement {
            Placement::Ready { queue_offset } => {
                check_queue(&topic, tag.queue())?;
                let retention_ms = self.retention_of(dispatcher, &topic);
                dispatcher.keep.needed(commit.home, commit.at, retention_ms);
                let (offset, length) = (commit.home, commit.message_length);
                let unit = Unit { offset, length, tag_hash: tag.tag_hash(), time: commit.at };
                dispatcher.batch.add((topic.id, tag.queue()), queue_offset, unit);
            }
            Placement::Timed { deadline } | Placement::Level { deadline, .. } => {
                self.file_timer_unit(dispatcher, Unit { time: deadline, ..op });
                dispatcher.keep.waits(offset);
                dispatcher.counts.scheduled += 1;
                topic.scheduled();
            }
        }
        Ok(())
    }

    fn fold_rollback(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let rollback = Rollback::decode(record)?;
        let (offset, length) = (record.header.offset, pointer_length(record));
        let unit = Unit { offset, length, tag_hash: 0, time: rollback.at };
        dispatcher.keep.settled(rollback.cause);
        self.file_system_unit(dispatcher, OP_TOPIC_ID, unit)
    }

    /// Appends to one of the system's own topics: the fold alone gives its places.
    fn file_system_unit(
        &self,
        dispatcher: &mut Dispatcher,
        topic_id: u32,
        unit: Unit,
    ) -> Result<(), FoldError> {
        let topic = self.topics.by_id(topic_id).ok_or(FoldError::UnknownTopic(topic_id))?;
        let place = topic.queues[0].take_offsets(1);
        dispatcher.batch.add((topic_id, 0), place, unit);
        Ok(())
    }

    /// The record that made the topic is lost, but a message of it is not: the topic is made again.
    fn topic_of_message(&self, record: &Record<'_>) -> Result<Arc<Topic>, FoldError> {
        let message = Message::decode(record)?;
        let queues = QUEUES_UNKNOWN.max(message.queue.saturating_add(1));
        Ok(self.topics.set(&TopicAt {
            id: message.topic_id,
            name: &message.topic,
            settings: TopicSettings::mixed(queues),
            set_at: record.header.offset,
        }))
    }

    pub(super) fn file_timer_unit(&self, dispatcher: &mut Dispatcher, unit: Unit) {
        let place = dispatcher.counts.timer_units;
        dispatcher.counts.timer_units += 1;
        dispatcher.batch.add((TIMER_TOPIC_ID, 0), place, unit);
    }

    /// The message waits in a queue of the level topic, which delays by `delay_ms`. The record that made the
    /// queue may be lost; its messages are not.
    fn file_level_unit(
        &self,
        dispatcher: &mut Dispatcher,
        queue: u16,
        unit: Unit,
        delay_ms: u64,
    ) -> Result<(), FoldError> {
        let id = LEVEL_TOPIC_ID;
        let topic = self.topics.by_id(id).ok_or(FoldError::UnknownTopic(id))?;
        let place = match topic.queue(queue) {
            Some(there) => there.take_offsets(1),
            None => {
                let settings = TopicSettings::mixed(queue.saturating_add(1));
                let at = TopicAt { id, name: LEVEL_TOPIC, settings, set_at: unit.offset };
                let topic = self.topics.set(&at);
                self.levels.set_delay(queue, delay_ms);
                let made =
                    topic.queue(queue).ok_or(FoldError::UnknownQueue { topic: id, queue })?;
                made.take_offsets(1)
            }
        };
        dispatcher.batch.add((id, queue), place, unit);
        Ok(())
    }

    fn fold_cancel(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let cancel = Cancel::decode(record)?;
        let unit = Unit {
            offset: record.header.offset,
            length: pointer_length(record),
            tag_hash: 0,
            time: cancel.deadline,
        };
        let tag = TimerTag(cancel.tag);
        if tag.is_in_the_wheel() {
            self.file_timer_unit(dispatcher, unit);
        }
        dispatcher.keep.settled(cancel.cause);
        dispatcher.counts.cancelled += 1;
        if let Some(topic) = self.topics.by_id(tag.topic_id()) {
            topic.settled(1);
        }
        Ok(())
    }

    fn fold_delivery(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let run = Delivery::decode(record)?;
        let topic = self.topics.by_id(run.topic_id).ok_or(FoldError::UnknownTopic(run.topic_id))?;
        check_queue(&topic, run.queue)?;
        let key = (topic.id, run.queue);
        let retention_ms = self.retention_of(dispatcher, &topic);
        dispatcher.keep.latest = dispatcher.keep.latest.max(run.fired_at);
        let units = dispatcher.batch.queues.entry(key).or_default();
        for (place, fired) in (run.first_queue_offset..).zip(&run.fired) {
            dispatcher.keep.needed(fired.cause, run.fired_at, retention_ms);
            dispatcher.keep.settled(fired.cause);
            let (offset, length) = (fired.cause, fired.length);
            let (tag_hash, time) = (fired.tag_hash, run.fired_at);
            units.push((place, Unit { offset, length, tag_hash, time }));
        }
        let count = run.fired.len() as u64;
        // A retry has fired before.
        if topic.belongs.is_none() {
            dispatcher.counts.fired += count;
        }
        topic.settled(count);
        Ok(())
    }

    /// The index has what is to be known of a key.
    fn fold_idempotency_key(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let (at, _) = IdempotencyKey::decode_fixed(record)?;
        dispatcher.keep.put(record.header.offset, at);
        Ok(())
    }

    fn fold_opened(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let opened = Opened::decode(record)?;
        let topics = self.topics.all();
        let own = topics.iter().filter_map(|topic| topic.settings.retention_ms);
        let longest = own.max().unwrap_or(0).max(dispatcher.keep.retention_ms);
        dispatcher.keep.opened(opened.at, longest);
        Ok(())
    }

    /// What moves is a body: what is to become of the message is said by other records.
    fn fold_move(&self, dispatcher: &mut Dispatcher, record: &Record<'_>) -> Result<(), FoldError> {
        let moved = Moved::decode(record)?;
        let topic = self.topics.by_id(moved.of.topic_id);
        let retention_ms = topic.map_or(0, |topic| self.retention_of(dispatcher, &topic));
        let at = record.header.offset;
        dispatcher.keep.put(at, moved.at);
        // What has fired once is needed for as long as what waits for its readers.
        if !moved.waits {
            dispatcher.keep.needed(at, moved.at, retention_ms);
        }
        if moved.waits && moved.of.terms.is_some() {
            let (length, time) = (pointer_length(record), moved.of.born_at);
            let unit = Unit { offset: at, length, tag_hash: 0, time };
            self.file_system_unit(dispatcher, HALF_TOPIC_ID, unit)?;
        }
        Ok(())
    }

    /// How long messages of the topic wait for their readers.
    pub(super) fn retention_of(&self, dispatcher: &Dispatcher, topic: &Topic) -> u64 {
        let of =
            |topic: &Topic| topic.settings.retention_ms.unwrap_or(dispatcher.keep.retention_ms);
        // What comes again, or never, is as good as where it came from.
        let origin = topic.belongs.and_then(|belongs| self.topics.by_id(belongs.topic_id));
        origin.map_or_else(|| of(topic), |origin| of(&origin))
    }

    fn fold_ack(&self, record: &Record<'_>) -> Result<(), FoldError> {
        let ack = Ack::decode(record)?;
        if planted::is(Fault::ForgetAcks) {
            return Ok(());
        }
        let group = self.groups.by_id(ack.group_id).ok_or(FoldError::UnknownGroup(ack.group_id))?;
        let mut progress = group.progress.lock();
        for run in ack.acked {
            let Acked { topic_id, queue, queue_offset } = run.first;
            // What was out when its topic was deleted may be acked after it.
            if self.topics.by_id(topic_id).is_none() {
                continue;
            }
            progress.entry((topic_id, queue)).or_default().ack_run(queue_offset, run.count());
        }
        Ok(())
    }

    fn fold_lease_expired(&self, record: &Record<'_>) -> Result<(), FoldError> {
        let expired = LeaseExpired::decode(record)?;
        let id = expired.group_id;
        let group = self.groups.by_id(id).ok_or(FoldError::UnknownGroup(id))?;
        if self.topics.by_id(expired.message.topic_id).is_none() {
            return Ok(());
        }
        let key = (expired.message.topic_id, expired.message.queue);
        let mut progress = group.progress.lock();
        let queue = progress.entry(key).or_default();
        queue.attempted(expired.message.queue_offset, expired.attempt);
        Ok(())
    }

    fn fold_topic_set(&self, record: &Record<'_>) -> Result<(), FoldError> {
        let set = TopicSet::decode(record)?;
        if set.topic_id == LEVEL_TOPIC_ID {
            self.levels.set_delays(&set.delays_ms);
        }
        self.topics.set(&TopicAt {
            id: set.topic_id,
            name: &set.name,
            settings: set.settings,
            set_at: record.header.offset,
        });
        Ok(())
    }

    /// What waited is never delivered, and what groups had read of the topic is forgotten.
    fn fold_topic_deleted(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let deleted = TopicDeleted::decode(record)?;
        let id = deleted.topic_id;
        let topic = self.topics.remove(id).ok_or(FoldError::UnknownTopic(id))?;
        dispatcher.counts.dropped += topic.pending();
        let mut gone = vec![id];
        for system in self.topics.of_topic(id) {
            self.topics.remove(system.id);
            gone.push(system.id);
        }
        for group in self.groups.all() {
            gone.iter().for_each(|&id| group.forget_topic(id));
        }
        Ok(())
    }

    fn fold_group_set(&self, record: &Record<'_>) -> Result<(), FoldError> {
        let set = GroupSet::decode(record)?;
        let at = record.header.offset;
        let group = Group::new(set.group_id, &set.name, set.epoch, at, set.settings.clone());
        self.groups.add(group).set(at, set.settings);
        Ok(())
    }

    /// Writes the units of the batch and answers how many went to which topic. After an error for want of room
    /// the batch is as it was: what of it is written is passed over then.
    pub(super) fn write_batch(
        &self,
        dispatcher: &mut Dispatcher,
    ) -> Result<Vec<(u32, u64)>, StoreError> {
        let mut arrived: Vec<(u32, u64)> = Vec::new();
        let mut run = Vec::new();
        for (&(topic_id, queue), units) in &mut dispatcher.batch.queues {
            let Some(topic) = self.topics.by_id(topic_id) else { continue };
            let Some(queue) = topic.queue(queue) else { continue };
            units.sort_by_key(|&(place, _)| place);
            for row in units.chunk_by(|(place, _), (next, _)| place + 1 == *next) {
                run.clear();
                run.extend(row.iter().map(|&(_, unit)| unit));
                queue.units.append(row[0].0, &run)?;
            }
            match arrived.last_mut() {
                Some((last, count)) if *last == topic_id => *count += units.len() as u64,
                _ => arrived.push((topic_id, units.len() as u64)),
            }
        }
        dispatcher.batch.queues.clear();
        let written = arrived.iter().map(|&(_, count)| count).sum();
        self.counts.units_written.fetch_add(written, Ordering::Relaxed);
        Ok(arrived)
    }
}

fn fold_state_part(dispatcher: &mut Dispatcher, record: &Record<'_>) -> Result<(), FoldError> {
    let part = StatePart::decode(record)?;
    let (at, parts) = &mut dispatcher.parts;
    if part.part == 0 {
        *at = part.at;
        parts.clear();
    }
    // Of a state whose begin is damaged, or in a log that begins later, there is no use.
    if *at == part.at && parts.len() == part.part as usize {
        parts.push(record.header.offset);
    }
    Ok(())
}

fn fold_state_end(dispatcher: &mut Dispatcher, record: &Record<'_>) -> Result<(), FoldError> {
    let end = StateEnd::decode(record)?;
    let (at, parts) = &mut dispatcher.parts;
    if *at == end.at && parts.len() == end.parts as usize {
        dispatcher.boundaries.insert(end.at.get(), std::mem::take(parts));
    }
    Ok(())
}

fn fold_quarantine(dispatcher: &mut Dispatcher, record: &Record<'_>) -> Result<(), FoldError> {
    dispatcher.quarantined.add(Quarantine::decode(record)?);
    Ok(())
}

fn check_queue(topic: &Topic, queue: u16) -> Result<(), FoldError> {
    match topic.queue(queue) {
        Some(_) => Ok(()),
        None => Err(FoldError::UnknownQueue { topic: topic.id, queue }),
    }
}

pub(super) fn pointer_length(record: &Record<'_>) -> u32 {
    u32::try_from(record.header.length()).expect("a record is shorter than its group of 8 MiB")
}
