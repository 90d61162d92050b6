//! Stage 1: read the timer topic, unit by unit, and find out what each asks for.

use std::sync::Arc;

use timerlog::{Entry, Filing};

use super::Requests;
use crate::clock::{Now, Timestamp};
use crate::commitlog::{Outcome, ReadError};
use crate::consumequeue::Unit;
use crate::message::offset::Offset;
use crate::message::record::{
    Cancel, Commit, Kind, Message, Nack, Placement, Record, RecordError, Reschedule, Round,
};
use crate::message::timer_tag::TimerTag;
use crate::stage::{Pipe, Progress, Signal, Stage, StageError};
use crate::store::{ArrivalListener, Store, StoreError, TIMER_TOPIC_ID, Topic};

/// Units read in one step.
const BATCH: usize = 1024;

#[derive(Debug)]
pub(super) struct EnqueueGet {
    store: Arc<Store>,
    topic: Arc<Topic>,
    next: u64,
    out: Pipe<Requests>,
    held: Option<Requests>,
    signal: Signal,
    units: Vec<Unit>,
    bytes: Vec<u8>,
}

/// Wakes the stage when the timer topic grows.
#[derive(Debug)]
struct Wake(Signal);

impl ArrivalListener for Wake {
    fn arrived(&self, topic_id: u32, _count: u64) {
        if topic_id == TIMER_TOPIC_ID {
            self.0.raise();
        }
    }
}

impl EnqueueGet {
    pub(super) fn new(
        store: Arc<Store>,
        topic: Arc<Topic>,
        next: u64,
        out: Pipe<Requests>,
        signal: Signal,
    ) -> Self {
        store.listen(Arc::new(Wake(signal.clone())));
        let (units, bytes) = (Vec::new(), Vec::new());
        Self { store, topic, next, out, held: None, signal, units, bytes }
    }

    /// The next batch; `None` when there is no unit that was not read.
    fn read(&mut self) -> Result<Option<Requests>, StoreError> {
        self.topic.queues[0].units.read(self.next, BATCH, &mut self.units)?;
        if self.units.is_empty() {
            return Ok(None);
        }
        let mut filings = Vec::with_capacity(self.units.len());
        for unit in std::mem::take(&mut self.units) {
            self.file(unit, &mut filings)?;
            self.next += 1;
        }
        Ok(Some(Requests { filings, upto: self.next }))
    }

    /// Adds what the unit asks for; nothing when it is settled, or lost to damage.
    fn file(&mut self, unit: Unit, filings: &mut Vec<Filing>) -> Result<(), StoreError> {
        if unit.is_hole() || unit.offset < self.store.log().begin() {
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        let filed = match self.store.log().reader().head(unit.offset, &mut bytes) {
            Ok(record) => self.file_record(unit, &record, filings),
            Err(ReadError::Record { cause, .. }) => Err(FilingError::Record(cause)),
            Err(error) => Err(FilingError::Store(error.into())),
        };
        self.bytes = bytes;
        match filed {
            Ok(()) => Ok(()),
            Err(FilingError::Record(error)) => {
                // One bad record is lost alone: it must not stop those behind it.
                let offset = unit.offset.get();
                tracing::error!(offset, %error, "a timed record is damaged");
                Ok(())
            }
            Err(FilingError::Store(error)) => Err(error),
        }
    }

    /// A record may ask for two things: what takes the place of another cause takes that out.
    fn file_record(
        &self,
        unit: Unit,
        record: &Record<'_>,
        filings: &mut Vec<Filing>,
    ) -> Result<(), FilingError> {
        match record.header.kind {
            Kind::Message => {
                let head = Message::decode_fixed(record)?;
                if let Placement::Timed { deadline } = head.placement {
                    let tag = TimerTag::message(head.topic_id, head.queue, head.tag_hash);
                    self.add(unit, deadline, tag.0, filings)?;
                }
                if head.replaces
                    && let Some(timer) = Message::decode(record)?.timer
                    && let Some(replaced) = timer.replaces
                {
                    self.take_out(replaced.cause, replaced.deadline, replaced.tag, filings);
                }
            }
            Kind::Reschedule => {
                let moved = Reschedule::decode(record)?;
                let tag = TimerTag(moved.tag).in_the_wheel();
                self.add(unit, moved.deadline, tag.0, filings)?;
                self.take_out(moved.cause, moved.was_due_at, moved.tag, filings);
            }
            Kind::Nack => {
                let nack = Nack::decode(record)?;
                if let Some(tag) = nack.tag {
                    self.add(unit, nack.comes_at, tag, filings)?;
                }
            }
            Kind::Cancel => {
                let cancel = Cancel::decode(record)?;
                self.take_out(cancel.cause, cancel.deadline, cancel.tag, filings);
            }
            Kind::Commit => {
                let commit = Commit::decode(record)?;
                if let Placement::Timed { deadline } = commit.placement {
                    self.add(unit, deadline, commit.tag, filings)?;
                }
            }
            Kind::HalfMessage => {
                let half = Message::decode(record)?;
                if let Some(terms) = &half.terms {
                    let tag = TimerTag::check(half.topic_id);
                    self.note(unit, terms.opened(half.born_at).wakes_at(), tag, filings)?;
                }
            }
            Kind::Check | Kind::Resume => {
                let round = Round::decode(record)?;
                self.note(unit, round.clockwork().wakes_at(), TimerTag(round.tag), filings)?;
            }
            // What was abandoned waits for nothing.
            Kind::Abandon => {}
            got => return Err(RecordError::Kind { got, expected: Kind::Message }.into()),
        }
        Ok(())
    }

    /// What was delivered is left out, and what has lost its topic. What was settled otherwise is filed all
    /// the same: the record that did it stands later in the topic and takes it out of the counts again.
    fn add(
        &self,
        unit: Unit,
        deadline: Timestamp,
        tag: u64,
        filings: &mut Vec<Filing>,
    ) -> Result<(), FilingError> {
        let settled = self.store.log().settled().get(unit.offset).map_err(StoreError::from)?;
        if settled == Some(Outcome::Delivered) || !self.has_topic(tag) {
            return Ok(());
        }
        let (deadline, offset) = (deadline.as_millis(), unit.offset.get());
        let entry = Entry { deadline, offset, length: unit.length, tag };
        filings.push(Filing::add(entry));
        Ok(())
    }

    /// Files a check. One that is settled in any way is of no use to anybody.
    fn note(
        &self,
        unit: Unit,
        at: Timestamp,
        tag: TimerTag,
        filings: &mut Vec<Filing>,
    ) -> Result<(), FilingError> {
        let settled = self.store.log().settled().get(unit.offset).map_err(StoreError::from)?;
        if settled.is_none() && self.has_topic(tag.0) {
            let (deadline, offset) = (at.as_millis(), unit.offset.get());
            filings.push(Filing::note(Entry { deadline, offset, length: unit.length, tag: tag.0 }));
        }
        Ok(())
    }

    /// Takes the entry of `cause` out of its slot's counts. With its topic gone it may not have been filed,
    /// and would be taken out of what others are counted for; what waits in a delay level never was.
    fn take_out(&self, cause: Offset, deadline: Timestamp, tag: u64, filings: &mut Vec<Filing>) {
        if self.has_topic(tag) && TimerTag(tag).is_in_the_wheel() {
            let (deadline, offset) = (deadline.as_millis(), cause.get());
            filings.push(Filing::cancel(Entry { deadline, offset, length: 0, tag }));
        }
    }

    fn has_topic(&self, tag: u64) -> bool {
        self.store.topic_by_id(TimerTag(tag).topic_id()).is_some()
    }
}

/// Why a unit of the timer topic is not filed.
enum FilingError {
    Record(RecordError),
    Store(StoreError),
}

impl From<RecordError> for FilingError {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

impl From<StoreError> for FilingError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Stage for EnqueueGet {
    fn name(&self) -> &'static str {
        "enqueue_get"
    }

    fn step(&mut self, _now: Now) -> Result<Progress, StageError> {
        let requests = match self.held.take() {
            Some(held) => Some(held),
            None => self.read().map_err(|error| StageError::new(self.name(), error))?,
        };
        // A batch of which nothing is to be filed goes on, too: somebody may wait for its mark.
        let Some(requests) = requests else { return Ok(Progress::Idle) };
        match self.out.push(requests) {
            Ok(()) => Ok(Progress::Worked),
            Err(full) => {
                self.held = Some(full);
                Ok(Progress::Idle)
            }
        }
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}
