//! Dead letters: what was handed out as often as its group allows, until somebody looks after it.
//!
//! ```text
//!   nack, lease end ── DeadLetter ──> unit of %DLQ% ── list
//!                                          └── Redrive ──> unit of %RETRY% (attempts from 1)
//! ```
//!
//! A redrive counts as an ack of the dead letter by its group, so that it happens once: the leases of the
//! dead letters' queue are the referee until dispatch has folded it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::lease::{LeaseNumber, QueueLeases};
use super::{Consumers, Leases, Seat, seat};
use crate::clock::{Now, Timestamp};
use crate::commitlog::{AppendError, ReadError, Receipt};
use crate::consumequeue::{QueueError, Unit};
use crate::message::Attributes;
use crate::message::id::ClaimedId;
use crate::message::record::{
    DeadLetter, DeathReason, Kind, Nack, Origin, RecordError, Redrive, Redriven,
};
use crate::store::{CauseError, Group, Holds, MakeError, Read, Topic};

/// Dead letters redriven by one record.
const REDRIVE_BATCH: usize = 1000;

/// Why it is not known where a message first stood.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoOrigin {
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Read(CauseError),
    /// The record that says so is damaged, or lost.
    #[error("it is damaged")]
    Damaged(Option<RecordError>),
}

impl From<ReadError> for NoOrigin {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Record { cause, .. } => Self::Damaged(Some(cause)),
            error => Self::Read(error.into()),
        }
    }
}

impl From<CauseError> for NoOrigin {
    fn from(error: CauseError) -> Self {
        match error {
            CauseError::Read(error) => error.into(),
            error @ CauseError::Index(_) => Self::Read(error),
        }
    }
}

/// Why dead letters were not listed or redriven.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DeadLettersError {
    #[error(transparent)]
    Origin(#[from] NoOrigin),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Make(#[from] MakeError),
}

/// A dead letter, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadMessage {
    pub message_id: String,
    pub topic: String,
    pub queue: u16,
    pub queue_offset: u64,
    pub attributes: Attributes,
    pub born_at: Timestamp,
    pub deliver_at: Timestamp,
    /// `None` for a message that was ready at once.
    pub fired_at: Option<Timestamp>,
    pub attempts: u32,
    pub reason: DeathReason,
    pub dead_at: Timestamp,
    /// Where it stands in the list.
    pub mark: Mark,
}

/// A place in a group's list of dead letters: topic by topic, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub topic_id: u32,
    pub offset: u64,
}

/// Which dead letters to redrive.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Message ids; `None`: all.
    pub ids: Option<Vec<String>>,
    /// `None`: of all topics.
    pub topic_id: Option<u32>,
}

impl Consumers {
    /// Where the message first stood that was handed out from this place.
    pub(super) fn origin(&self, seat: Seat, queue_offset: u64) -> Result<Origin, NoOrigin> {
        let topic = self.store.topic_by_id(seat.topic_id).ok_or(NoOrigin::Damaged(None))?;
        let queue = topic.queue(seat.queue).ok_or(NoOrigin::Damaged(None))?;
        let unit = queue.units.unit(queue_offset)?;
        if unit.is_hole() {
            return Err(NoOrigin::Damaged(None));
        }
        if topic.belongs.is_some() {
            return self.origin_of(unit);
        }
        Ok(Origin {
            topic_id: seat.topic_id,
            queue: seat.queue,
            queue_offset,
            cause: unit.offset,
            length: unit.length,
            readable_at: unit.time,
            message: self.store.home_of_cause(unit.offset, unit.length)?,
        })
    }

    /// Of a unit of a retry queue, which points at a nack or a dead letter.
    fn origin_of(&self, unit: Unit) -> Result<Origin, NoOrigin> {
        let mut bytes = Vec::new();
        let record = self.store.log().reader().head(unit.offset, &mut bytes)?;
        let origin = match record.header.kind {
            Kind::DeadLetter => DeadLetter::decode(&record).map(|letter| letter.origin),
            _ => Nack::decode(&record).map(|nack| nack.origin),
        };
        origin.map_err(|error| NoOrigin::Damaged(Some(error)))
    }

    /// Up to `max` dead letters of the group from `from` on, and where the next page begins, if there is
    /// one. What is damaged is left out.
    ///
    /// # Errors
    ///
    /// [`DeadLettersError`].
    pub fn dead_letters(
        &self,
        group: &Group,
        from: Mark,
        max: usize,
    ) -> Result<(Vec<DeadMessage>, Option<Mark>), DeadLettersError> {
        let mut found = Vec::new();
        for (topic, letters) in self.dead_letters_of(group, None) {
            if topic.id < from.topic_id {
                continue;
            }
            let mut offset = if topic.id == from.topic_id { from.offset } else { 0 };
            while let Some(next) = self.next_letter(group, &letters, offset) {
                let mark = Mark { topic_id: topic.id, offset: next };
                if found.len() >= max {
                    return Ok((found, Some(mark)));
                }
                let unit = queue_of(&letters).unit(next)?;
                if !unit.is_hole()
                    && let Some(letter) = self.dead_letter(unit, mark)?
                {
                    found.push(letter);
                }
                offset = next + 1;
            }
        }
        Ok((found, None))
    }

    fn dead_letter(&self, unit: Unit, mark: Mark) -> Result<Option<DeadMessage>, NoOrigin> {
        let mut bytes = Vec::new();
        let letter = match self.letter(unit, &mut bytes) {
            Ok(letter) => letter,
            Err(NoOrigin::Damaged(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let origin = letter.origin;
        let caused =
            match self.store.caused(origin.cause, origin.length, Read::HeadOnly, &mut bytes) {
                Ok(caused) => caused,
                Err(CauseError::Read(ReadError::Record { .. })) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        let message_id = self.store.ids().message_id(caused.offset, caused.message.nonce);
        let (deadline, message) = (caused.deadline, caused.message);
        Ok(Some(DeadMessage {
            message_id,
            topic: message.topic,
            queue: origin.queue,
            queue_offset: origin.queue_offset,
            attributes: message.attributes,
            born_at: message.born_at,
            deliver_at: deadline.unwrap_or(message.born_at),
            fired_at: deadline.map(|_| origin.readable_at),
            attempts: letter.attempts,
            reason: letter.reason,
            dead_at: letter.at,
            mark,
        }))
    }

    pub(super) fn letter(&self, unit: Unit, bytes: &mut Vec<u8>) -> Result<DeadLetter, NoOrigin> {
        let record = self.store.log().reader().head(unit.offset, bytes)?;
        DeadLetter::decode(&record).map_err(|error| NoOrigin::Damaged(Some(error)))
    }

    /// Makes dead letters readable by their group again, with attempts from 1, and says how many. What is
    /// redriven already is passed over. With ids the cost grows with the dead letters there are. Holds once
    /// the receipt is durable.
    ///
    /// # Errors
    ///
    /// [`DeadLettersError`]; what was redriven before it is.
    pub fn redrive(
        &self,
        group: &Group,
        wanted: &Wanted,
        now: Now,
    ) -> Result<(u64, Receipt), DeadLettersError> {
        let claimed = wanted.ids.as_ref().map(|ids| {
            ids.iter().filter_map(|id| Some((ClaimedId::parse(id)?.offset, id.as_str())))
        });
        let claimed: Option<BTreeSet<_>> = claimed.map(Iterator::collect);
        let mut count = 0;
        for (topic, letters) in self.dead_letters_of(group, wanted.topic_id) {
            let made =
                self.store.system_topic_or_make(Holds::Retries, group, topic.id, now.wall)?;
            let Some(retries) = made else { continue };
            let mut offset = 0;
            let mut batch = Vec::new();
            let mut bytes = Vec::new();
            while let Some(next) = self.next_letter(group, &letters, offset) {
                offset = next + 1;
                let unit = queue_of(&letters).unit(next)?;
                if unit.is_hole() || !self.is_wanted(unit, claimed.as_ref())? {
                    continue;
                }
                let message = match self.letter(unit, &mut bytes) {
                    Ok(letter) => letter.origin.message,
                    Err(NoOrigin::Damaged(_)) => continue,
                    Err(error) => return Err(error.into()),
                };
                let (record, length) = (unit.offset, unit.length);
                batch.push(Redriven { queue_offset: next, record, length, message });
                if batch.len() == REDRIVE_BATCH {
                    let batch = std::mem::take(&mut batch);
                    count += self.redrive_batch(group, &topic, &letters, &retries, batch, now)?;
                }
            }
            count += self.redrive_batch(group, &topic, &letters, &retries, batch, now)?;
        }
        Ok((count, self.store.log().latest_receipt()))
    }

    fn is_wanted(
        &self,
        unit: Unit,
        claimed: Option<&BTreeSet<(crate::message::offset::Offset, &str)>>,
    ) -> Result<bool, NoOrigin> {
        let Some(claimed) = claimed else { return Ok(true) };
        let letter = self.dead_letter(unit, Mark::default())?;
        Ok(letter.is_some_and(|letter| {
            let id = ClaimedId::parse(&letter.message_id).expect("it was written just now");
            claimed.contains(&(id.offset, letter.message_id.as_str()))
        }))
    }

    fn redrive_batch(
        &self,
        group: &Group,
        topic: &Topic,
        letters: &Topic,
        retries: &Topic,
        mut batch: Vec<Redriven>,
        now: Now,
    ) -> Result<u64, DeadLettersError> {
        let place = seat(group, letters, 0);
        let mut leases = self.leases.lock();
        leases.look(group, place, |state: &mut QueueLeases, progress| {
            batch.retain(|one| !state.is_done(one.queue_offset, progress));
        });
        if batch.is_empty() {
            return Ok(0);
        }
        let mut turn = self.store.log().turn(Redrive::encoded_length(batch.len()))?;
        // Those that are carried on are met again at the end of the list.
        batch.retain(|one| !turn.is_closed(one.record) && !turn.is_closed(one.message));
        if topic.is_deleted() || batch.is_empty() {
            return Ok(0);
        }
        let count = batch.len() as u64;
        let queue = retries.queue(0).expect("a system topic has a queue");
        let record = Redrive {
            group_id: group.id,
            at: now.wall,
            dead_letters: letters.id,
            retry_topic: retries.id,
            first_queue_offset: queue.take_offsets(count),
            redriven: batch,
        };
        topic.appended(turn.append(record.encode()));
        drop(turn);
        let number = leases.numbers.next();
        for one in &record.redriven {
            leases.queue(group, place).acking(one.queue_offset, number);
        }
        Ok(count)
    }

    /// The first dead letter from `offset` on that is not redriven.
    pub(super) fn next_letter(&self, group: &Group, letters: &Topic, offset: u64) -> Option<u64> {
        let (place, end) = (seat(group, letters, 0), queue_of(letters).committed());
        self.leases.lock().look(group, place, |state, progress| {
            let mut offset = offset;
            loop {
                offset = progress.next_unacked(offset);
                if offset >= end {
                    return None;
                }
                if !state.is_done(offset, progress) {
                    return Some(offset);
                }
                offset += 1;
            }
        })
    }

    /// The topics of which the group may have dead letters, by id.
    pub(super) fn dead_letters_of(
        &self,
        group: &Group,
        only: Option<u32>,
    ) -> Vec<(Arc<Topic>, Arc<Topic>)> {
        let mut topics = self.topics_of(&self.leases.lock(), group);
        topics.sort_unstable_by_key(|topic| topic.id);
        topics.retain(|topic| only.is_none_or(|only| only == topic.id));
        let pairs = topics.into_iter().filter_map(|topic| {
            let letters = self.store.system_topic(Holds::DeadLetters, group, topic.id)?;
            Some((topic, letters))
        });
        pairs.collect()
    }
}

impl Leases {
    /// How many dead letters of the topic the group has.
    pub(super) fn dead_letters(&mut self, group: &Group, letters: &Topic) -> u64 {
        let end = queue_of(letters).committed();
        self.look(group, seat(group, letters, 0), |state, progress| {
            end.saturating_sub(progress.acked() + state.acking_beyond(progress))
        })
    }

    /// The lease's end is the last one: see [`Leases::done`].
    pub(super) fn dead(&mut self, group: &Group, place: Seat, topic_id: u32, offset: u64) {
        let number: LeaseNumber = self.numbers.next();
        self.queue(group, place).acking(offset, number);
        self.done(group, place, topic_id, offset);
    }
}

pub(super) fn queue_of(topic: &Topic) -> &crate::consumequeue::ConsumeQueue {
    &topic.queue(0).expect("a system topic has a queue").units
}
