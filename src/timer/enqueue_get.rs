//! Stage 1: read the timer topic, unit by unit, and find out what each asks for.

use std::sync::Arc;

use timerlog::{Entry, EntryKind, Filing};

use super::Requests;
use crate::clock::Now;
use crate::commitlog::{Outcome, ReadError};
use crate::consumequeue::Unit;
use crate::message::record::{Cancel, Kind, Message, Placement, Record};
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
            if let Some(filing) = self.filing(unit)? {
                filings.push(filing);
            }
            self.next += 1;
        }
        Ok(Some(Requests { filings, upto: self.next }))
    }

    /// What the unit asks for; nothing when it is settled, or lost to damage.
    fn filing(&mut self, unit: Unit) -> Result<Option<Filing>, StoreError> {
        if unit.is_hole() {
            return Ok(None);
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        let filing = match self.store.log().reader().head(unit.offset, &mut bytes) {
            Ok(record) => self.filing_of(unit, &record),
            Err(ReadError::Record { offset, cause }) => {
                // One bad record is lost alone: it must not stop those behind it.
                tracing::error!(offset, error = %cause, "a timed record is damaged");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        };
        self.bytes = bytes;
        filing
    }

    fn filing_of(&self, unit: Unit, record: &Record<'_>) -> Result<Option<Filing>, StoreError> {
        let offset = unit.offset.get();
        match record.header.kind {
            Kind::Message => {
                // What was delivered is left out. What was cancelled is filed all the same: its cancel
                // stands later in the topic and takes it out of the counts again.
                if self.store.log().settled().get(unit.offset)? == Some(Outcome::Delivered) {
                    return Ok(None);
                }
                let Ok(head) = Message::decode_fixed(record) else { return Ok(None) };
                let Placement::Timed { deadline } = head.placement else { return Ok(None) };
                let deadline = deadline.as_millis();
                let tag = TimerTag::message(head.topic_id, head.queue, head.tag_hash).0;
                let entry = Entry { deadline, offset, length: unit.length, tag };
                Ok(Some(Filing { kind: EntryKind::Add, entry }))
            }
            Kind::Cancel => {
                let Ok(cancel) = Cancel::decode(record) else { return Ok(None) };
                let entry = Entry {
                    deadline: cancel.deadline.as_millis(),
                    offset: cancel.cause.get(),
                    length: 0,
                    tag: cancel.tag,
                };
                Ok(Some(Filing { kind: EntryKind::Cancel, entry }))
            }
            kind => {
                tracing::error!(offset, ?kind, "the timer topic points at another kind of record");
                Ok(None)
            }
        }
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
