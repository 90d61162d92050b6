//! The scan: what is due at the heads of the level queues is settled and appended as delivery runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use timerlog::planted::{self, Fault};

use super::Observer;
use crate::clock::{Now, Timestamp};
use crate::clock_watch::ClockWatch;
use crate::commitlog::settled::SettledError;
use crate::commitlog::{AppendError, Outcome, ReadError, SettleError, Turn};
use crate::consumequeue::{QueueError, Unit};
use crate::message::record::{Delivery, DeliveryReason, Fired, Message, MessageHead, RecordError};
use crate::stage::{Progress, Signal, Stage, StageError};
use crate::store::{ArrivalListener, LEVEL_TOPIC_ID, QueueKey, Store, Topic};

/// Units of one level queue in a turn.
const TURN: usize = 256;
/// Turns in a step: the clock is read anew between steps.
const TURNS_A_STEP: usize = 16;
/// How long to wait when the log takes nothing.
const LOG_BUSY_MS: u64 = 2;

pub(super) struct Scan {
    store: Arc<Store>,
    watch: ClockWatch,
    observer: Box<dyn Observer>,
    /// The queue that had the last turn.
    last: u16,
    signal: Signal,
    units: Vec<Unit>,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Scan(after queue {})", self.last)
    }
}

/// Wakes the scan when something comes to wait.
#[derive(Debug)]
struct Wake(Signal);

impl ArrivalListener for Wake {
    fn arrived(&self, topic_id: u32, _count: u64) {
        if topic_id == LEVEL_TOPIC_ID {
            self.0.raise();
        }
    }
}

/// What the heads say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heads {
    /// The head of this queue is due, and it is the queue's turn.
    Due(u16),
    /// The first is due then.
    NotBefore(Timestamp),
    Empty,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Release {
    Done,
    /// The log takes nothing right now; nothing was lost.
    LogBusy,
}

/// Why no turn is possible any more.
#[derive(Debug, thiserror::Error)]
enum ReleaseError {
    #[error(transparent)]
    Append(AppendError),
    #[error(transparent)]
    Settled(#[from] SettledError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Read(ReadError),
}

/// What is due in one queue of a real topic, in the order in which it waited.
type Runs = BTreeMap<QueueKey, Vec<Unit>>;

impl Scan {
    pub(super) fn new(store: Arc<Store>, watch: ClockWatch, observer: Box<dyn Observer>) -> Self {
        let signal = Signal::default();
        store.listen(Arc::new(Wake(signal.clone())));
        let (units, bytes) = (Vec::new(), Vec::new());
        Self { store, watch, observer, last: 0, signal, units, bytes }
    }

    /// Looks at all heads: the queue whose turn it is, the next in the round of those with something due.
    fn heads(&self, topic: &Topic, now: Timestamp) -> Result<Heads, QueueError> {
        let (mut next, mut lowest, mut first) = (None, None, None::<Timestamp>);
        for (queue, level) in (0..).zip(&topic.queues) {
            let place = self.store.levels().released(queue);
            if place >= level.units.committed() {
                continue;
            }
            // A hole has time 0: it is passed at once.
            let head = level.units.unit(place)?.time;
            if head <= now {
                lowest = lowest.or(Some(queue));
                next = next.or(Some(queue).filter(|&queue| queue > self.last));
            }
            first = Some(first.map_or(head, |first| first.min(head)));
        }
        Ok(match (next.or(lowest), first) {
            (Some(queue), _) => Heads::Due(queue),
            (None, Some(first)) => Heads::NotBefore(first),
            (None, None) => Heads::Empty,
        })
    }

    /// Releases up to a turn's worth of what is due at the head of `queue`.
    fn release(&mut self, topic: &Topic, queue: u16, now: Now) -> Result<Release, ReleaseError> {
        self.last = queue;
        let Some(level) = topic.queue(queue) else { return Ok(Release::Done) };
        let from = self.store.levels().released(queue);
        let mut units = std::mem::take(&mut self.units);
        level.units.read(from, TURN, &mut units)?;
        let is_due = |unit: &Unit| unit.time <= now.wall || planted::is(Fault::LevelBehindHead);
        units.truncate(units.iter().take_while(|unit| is_due(unit)).count());
        let runs = self.route(&units)?;
        let upto = from + units.len() as u64;
        self.units = units;
        if let Release::LogBusy = self.append(runs, now.wall)? {
            return Ok(Release::LogBusy);
        }
        self.store.levels().set_released(queue, upto);
        Ok(Release::Done)
    }

    /// Where the units lead; what need not be released is left out.
    fn route(&mut self, units: &[Unit]) -> Result<Runs, ReleaseError> {
        let mut runs = Runs::new();
        for unit in units.iter().filter(|unit| !unit.is_hole()) {
            if let Some(queue) = self.queue_of(unit)? {
                runs.entry(queue).or_default().push(*unit);
            }
        }
        Ok(runs)
    }

    /// The queue that the unit's message is for; nothing when it is settled, its topic is gone, or its record
    /// is damaged.
    fn queue_of(&mut self, unit: &Unit) -> Result<Option<QueueKey>, ReleaseError> {
        let settled = self.store.log().settled().get(unit.offset)?;
        if settled.is_some() && !planted::is(Fault::LevelNotAsked) {
            return Ok(None);
        }
        let head = match self.head(unit) {
            Ok(head) => head,
            Err(ReadError::Record { offset, cause }) => {
                tracing::error!(offset, error = %cause, "a record in a delay level is damaged");
                return Ok(None);
            }
            Err(error) => return Err(ReleaseError::Read(error)),
        };
        let Some(topic) = self.store.topic_by_id(head.topic_id) else { return Ok(None) };
        if topic.queue(head.queue).is_none() {
            let (offset, queue) = (unit.offset.get(), head.queue);
            tracing::error!(offset, queue, "a message in a delay level leads nowhere");
            return Ok(None);
        }
        Ok(Some((head.topic_id, head.queue)))
    }

    fn head(&mut self, unit: &Unit) -> Result<MessageHead, ReadError> {
        let record = self.store.log().reader().head(unit.offset, &mut self.bytes)?;
        let bad = |cause: RecordError| ReadError::Record { offset: unit.offset.get(), cause };
        Message::decode_fixed(&record).map_err(bad)
    }

    /// Settles the runs and appends them, in one turn.
    fn append(&self, runs: Runs, now: Timestamp) -> Result<Release, ReleaseError> {
        if runs.is_empty() {
            return Ok(Release::Done);
        }
        let room = runs.values().map(|run| Delivery::encoded_length(run.len())).sum();
        let mut turn = match self.store.log().turn_for_accepted(room) {
            Ok(turn) => turn,
            Err(AppendError::Overloaded { .. } | AppendError::StorageFull) => {
                return Ok(Release::LogBusy);
            }
            Err(error) => return Err(ReleaseError::Append(error)),
        };
        let mut released = Vec::new();
        let mut outcome = Ok(());
        for ((topic_id, queue), run) in runs {
            // Deleted: nothing of it is delivered any more, whatever waits here.
            let topic = self.store.topic_by_id(topic_id).filter(|topic| !topic.is_deleted());
            let Some(topic) = topic else { continue };
            let settled;
            (settled, outcome) = settle(&mut turn, run);
            append_run(&mut turn, &topic, queue, &settled, now);
            released.extend(settled);
            if outcome.is_err() {
                break;
            }
        }
        drop(turn);
        for same in released.chunk_by(|one, next| one.time == next.time) {
            self.observer.released(same.len() as u64, now.since(same[0].time));
        }
        // The rest is not decided: the position stays before it.
        outcome?;
        Ok(Release::Done)
    }

    /// Looks at the clock; answers until when releases are held, if they are. The timer tells of a step.
    fn held_until(&mut self, now: Now) -> Option<Timestamp> {
        self.watch.look(now);
        let held = self.watch.held_for(now)?;
        let millis = u64::try_from(held.as_millis()).unwrap_or(u64::MAX);
        now.wall.checked_add(millis.max(1))
    }
}

/// Settles a run, in order; answers what is released, and whether the bits could all be read.
fn settle(turn: &mut Turn<'_>, run: Vec<Unit>) -> (Vec<Unit>, Result<(), SettledError>) {
    let mut settled = Vec::with_capacity(run.len());
    for unit in run {
        match turn.settle(unit.offset, Outcome::Delivered) {
            Ok(()) => settled.push(unit),
            Err(SettleError::Before(_)) if planted::is(Fault::LevelNotAsked) => settled.push(unit),
            Err(SettleError::Before(_)) => {}
            Err(SettleError::Disk(error)) => return (settled, Err(error)),
        }
    }
    (settled, Ok(()))
}

fn append_run(turn: &mut Turn<'_>, topic: &Topic, queue: u16, run: &[Unit], now: Timestamp) {
    if run.is_empty() {
        return;
    }
    let place = topic.queue(queue).expect("the queue was found when the run was routed");
    let fired = run.iter().map(|unit| {
        assert!(unit.time <= now, "nothing is released early");
        Fired { cause: unit.offset, length: unit.length, tag_hash: unit.tag_hash }
    });
    let delivery = Delivery {
        fired_at: now,
        first_queue_offset: place.take_offsets(run.len() as u64),
        topic_id: topic.id,
        queue,
        reason: DeliveryReason::Level,
        fired: fired.collect(),
    };
    topic.appended(turn.append(delivery.encode()));
}

impl Stage for Scan {
    fn name(&self) -> &'static str {
        "delay_levels"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        if let Some(until) = self.held_until(now) {
            return Ok(Progress::IdleUntil(until));
        }
        let Some(topic) = self.store.topic_by_id(LEVEL_TOPIC_ID) else { return Ok(Progress::Idle) };
        let failed = |error: ReleaseError| StageError::new("delay_levels", error);
        for turn in 0..TURNS_A_STEP {
            let queue = match self.heads(&topic, now.wall).map_err(|error| failed(error.into()))? {
                Heads::Due(queue) => queue,
                Heads::NotBefore(_) | Heads::Empty if turn > 0 => return Ok(Progress::Worked),
                Heads::NotBefore(first) => return Ok(Progress::IdleUntil(first)),
                Heads::Empty => return Ok(Progress::Idle),
            };
            match self.release(&topic, queue, now).map_err(failed)? {
                Release::Done => {}
                Release::LogBusy => {
                    let later = now.wall.checked_add(LOG_BUSY_MS);
                    return Ok(later.map_or(Progress::Idle, Progress::IdleUntil));
                }
            }
        }
        Ok(Progress::Worked)
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}
