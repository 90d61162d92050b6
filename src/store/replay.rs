//! Recovery's side of the fold: it also gets back what the appender knew when it wrote the records, and
//! told nobody: settled bits, next offsets, index entries.

use timerlog::planted::{self, Fault};

use super::StoreError;
use super::fold::{Dispatcher, Fold};
use super::keys::Keys;
use crate::commitlog::settled::Settled;
use crate::commitlog::{Outcome, ScanFrom};
use crate::index::Index;
use crate::message::record::{
    Cancel, Commit, DeadLetter, Delivery, DeliveryReason, IdempotencyKey, Kind, Message, Moved,
    Placement, Record, RecordError, Redrive, Reschedule, Rollback, Round,
};
use crate::message::timer_tag::TimerTag;

/// Units kept in memory before they are written.
const MAX_BATCH: usize = 65_536;

/// What a recovery brings up to date.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    pub(super) fold: &'a Fold,
    pub(super) dispatcher: &'a mut Dispatcher,
    pub(super) settled: &'a Settled,
    pub(super) index: &'a Index,
    pub(super) keys: &'a Keys,
}

/// Why what the appender knew cannot be got back from a record.
#[derive(Debug)]
enum ReplayError {
    Record(RecordError),
    Store(StoreError),
}

impl From<RecordError> for ReplayError {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

impl<E: Into<StoreError>> From<E> for ReplayError {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}

impl Replay<'_> {
    /// Folds a record, and what the appender had known of it.
    pub(super) fn record(&mut self, record: &Record<'_>) -> Result<(), StoreError> {
        self.fold.fold(self.dispatcher, record)?;
        match self.known(record) {
            Ok(()) => {}
            Err(ReplayError::Store(error)) => return Err(error),
            Err(ReplayError::Record(error)) => {
                let offset = record.header.offset.get();
                tracing::error!(offset, %error, "a record cannot be folded");
            }
        }
        if self.dispatcher.batch.units() > MAX_BATCH {
            self.fold.write_batch(self.dispatcher)?;
        }
        self.make_room_in_the_index()
    }

    /// Ends the recovery: everything folded is written.
    pub(super) fn finish(self, tail: ScanFrom) -> Result<(), StoreError> {
        self.fold.write_batch(self.dispatcher)?;
        self.dispatcher.at = tail;
        self.fold.publish(self.dispatcher);
        Ok(())
    }

    fn known(&self, record: &Record<'_>) -> Result<(), ReplayError> {
        let offset = record.header.offset;
        match record.header.kind {
            Kind::Message => self.message(record)?,
            Kind::Cancel => {
                self.settled.replay(Cancel::decode(record)?.cause, Outcome::Withdrawn)?;
            }
            Kind::Reschedule => {
                let reschedule = Reschedule::decode(record)?;
                self.settled.replay(reschedule.cause, Outcome::Superseded)?;
                if !planted::is(Fault::ForgetIndexEntries) {
                    self.index.insert(self.keys.moved(reschedule.message), offset);
                }
            }
            Kind::HalfMessage => {
                let message = Message::decode(record)?;
                self.keys.of_message(&message, |key| self.index.insert(key, offset));
            }
            Kind::Check | Kind::Resume | Kind::Abandon => {
                let round = Round::decode(record)?;
                self.settled.replay(round.cause, Outcome::Superseded)?;
                self.index.insert(self.keys.moved(round.message), offset);
            }
            Kind::Commit => self.commit(record)?,
            Kind::Rollback => {
                self.settled.replay(Rollback::decode(record)?.cause, Outcome::Withdrawn)?;
            }
            Kind::Delivery => self.delivery(record)?,
            Kind::DeadLetter => {
                let letter = DeadLetter::decode(record)?;
                self.raise_next_offset(letter.dead_letters, 0, letter.queue_offset + 1);
            }
            Kind::Redrive => {
                let redrive = Redrive::decode(record)?;
                let end = redrive.first_queue_offset + redrive.redriven.len() as u64;
                self.raise_next_offset(redrive.retry_topic, 0, end);
            }
            Kind::Move => {
                let moved = Moved::decode(record)?;
                self.keys.of_moved(&moved, |key| self.index.insert(key, offset));
            }
            Kind::IdempotencyKey => {
                let (_, bound) = IdempotencyKey::decode_fixed(record)?;
                self.index.insert(self.keys.idempotency(&bound.key), offset);
            }
            _ => {}
        }
        Ok(())
    }

    fn message(&self, record: &Record<'_>) -> Result<(), ReplayError> {
        let head = Message::decode_fixed(record)?;
        if let Placement::Ready { queue_offset } = head.placement {
            self.raise_next_offset(head.topic_id, head.queue, queue_offset + 1);
        }
        if head.indexed {
            let message = Message::decode(record)?;
            self.keys.of_message(&message, |key| self.index.insert(key, record.header.offset));
            if let Some(replaced) = message.timer.and_then(|timer| timer.replaces) {
                self.settled.replay(replaced.cause, Outcome::Withdrawn)?;
            }
        }
        Ok(())
    }

    fn commit(&self, record: &Record<'_>) -> Result<(), ReplayError> {
        let commit = Commit::decode(record)?;
        let outcome = match commit.placement {
            Placement::Ready { queue_offset } => {
                let tag = TimerTag(commit.tag);
                self.raise_next_offset(tag.topic_id(), tag.queue(), queue_offset + 1);
                Outcome::Delivered
            }
            Placement::Timed { .. } | Placement::Level { .. } => Outcome::Superseded,
        };
        self.settled.replay(commit.cause, outcome)?;
        if !planted::is(Fault::ForgetIndexEntries) {
            self.index.insert(self.keys.moved(commit.message), record.header.offset);
        }
        Ok(())
    }

    fn delivery(&self, record: &Record<'_>) -> Result<(), ReplayError> {
        let run = Delivery::decode(record)?;
        for fired in &run.fired {
            self.settled.replay(fired.cause, Outcome::Delivered)?;
            if run.reason == DeliveryReason::Asked {
                self.index.insert(self.keys.asked(fired.cause), record.header.offset);
            }
        }
        let end = run.first_queue_offset + run.fired.len() as u64;
        self.raise_next_offset(run.topic_id, run.queue, end);
        Ok(())
    }

    fn raise_next_offset(&self, topic_id: u32, queue: u16, end: u64) {
        if let Some(topic) = self.fold.topics.by_id(topic_id)
            && let Some(queue) = topic.queue(queue)
        {
            queue.raise_next_offset(end);
        }
    }

    /// No stage runs yet that would write what the memtable cannot take.
    fn make_room_in_the_index(&self) -> Result<(), StoreError> {
        while !self.index.has_room() && self.index.step()? {}
        Ok(())
    }
}
