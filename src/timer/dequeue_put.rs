//! Stage 5: at the millisecond, settle what is due and append it as delivery runs.
//!
//! Queues with something due take turns of 256 messages, so that a million in one queue keep a lone one
//! in another from waiting. Inside a queue the order is (deadline, arrival).

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;

use timerlog::planted::{self, Fault};

use super::{Due, Observer, Outstanding, Run, Shared};
use crate::clock::{Now, Timestamp};
use crate::clock_watch::ClockWatch;
use crate::commitlog::settled::SettledError;
use crate::commitlog::{AppendError, Outcome, SettleError, Turn};
use crate::message::record::{Delivery, DeliveryReason, Fired};
use crate::stage::{Pipe, Progress, Signal, Stage, StageError};
use crate::store::{QueueKey, Store, Topic};
use crate::sync::Ordering;

/// Messages of one queue in a turn.
const TURN: usize = 256;
/// Turns in a step: the clock is read anew between steps.
const TURNS_A_STEP: usize = 16;
/// How long to wait when the log takes nothing.
const LOG_BUSY_MS: u64 = 2;

pub(super) struct DequeuePut {
    store: Arc<Store>,
    shared: Arc<Shared>,
    input: Pipe<Run>,
    queues: HashMap<QueueKey, BinaryHeap<Reverse<Waiting>>>,
    /// Each queue that waits, by its first deadline.
    first: BTreeSet<(Timestamp, QueueKey)>,
    /// The queue that had the last turn.
    last: QueueKey,
    runs: HashMap<u32, RunLeft>,
    next_run: u32,
    watch: ClockWatch,
    observer: Arc<dyn Observer>,
    signal: Signal,
}

impl std::fmt::Debug for DequeuePut {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "DequeuePut({} queues waiting)", self.queues.len())
    }
}

/// A message that waits for its millisecond, and the run it came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    due: Due,
    run: u32,
}

/// What is left of a run.
#[derive(Debug)]
struct RunLeft {
    outstanding: Outstanding,
    count: usize,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fire {
    Done,
    /// The log takes nothing right now; nothing was lost.
    LogBusy,
}

/// Why no turn is possible any more.
#[derive(Debug, thiserror::Error)]
enum FireError {
    #[error(transparent)]
    Append(AppendError),
    #[error(transparent)]
    Settled(#[from] SettledError),
}

impl DequeuePut {
    pub(super) fn new(
        store: Arc<Store>,
        shared: Arc<Shared>,
        input: Pipe<Run>,
        watch: ClockWatch,
        observer: Arc<dyn Observer>,
        signal: Signal,
    ) -> Self {
        Self {
            store,
            shared,
            input,
            queues: HashMap::new(),
            first: BTreeSet::new(),
            last: (0, 0),
            runs: HashMap::new(),
            next_run: 0,
            watch,
            observer,
            signal,
        }
    }

    /// Takes in what stage 4 has routed.
    fn take_in(&mut self) {
        while let Some(Run { queue, due, outstanding }) = self.input.pop() {
            let run = self.next_run;
            self.next_run = self.next_run.wrapping_add(1);
            self.runs.insert(run, RunLeft { outstanding, count: due.len() });
            self.put_back(queue, due.into_iter().map(|due| Waiting { due, run }));
        }
    }

    fn put_back(&mut self, queue: QueueKey, waiting: impl Iterator<Item = Waiting>) {
        self.forget_first(queue);
        self.queues.entry(queue).or_default().extend(waiting.map(Reverse));
        self.note_first(queue);
    }

    fn forget_first(&mut self, queue: QueueKey) {
        if let Some(Reverse(first)) = self.queues.get(&queue).and_then(BinaryHeap::peek) {
            self.first.remove(&(first.due.deadline, queue));
        }
    }

    fn note_first(&mut self, queue: QueueKey) {
        match self.queues.get(&queue).map(BinaryHeap::peek) {
            Some(Some(Reverse(first))) => {
                self.first.insert((first.due.deadline, queue));
            }
            Some(None) => {
                self.queues.remove(&queue);
            }
            None => {}
        }
    }

    /// The queue whose turn it is: the next in the round that has something due.
    fn next_queue(&self, now: Timestamp) -> Option<QueueKey> {
        let due = || self.first.range(..=(now, (u32::MAX, u16::MAX))).map(|&(_, queue)| queue);
        due().filter(|&queue| queue > self.last).min().or_else(|| due().min())
    }

    /// Fires up to a turn's worth of what is due in `queue`.
    fn fire(&mut self, queue: QueueKey, now: Now) -> Result<Fire, FireError> {
        self.last = queue;
        let mut taken = self.take_due(queue, now.wall);
        let store = Arc::clone(&self.store);
        let mut turn = match store.log().turn_for_accepted(Delivery::encoded_length(taken.len())) {
            Ok(turn) => turn,
            Err(AppendError::Overloaded { .. } | AppendError::StorageFull) => {
                self.put_back(queue, taken.into_iter());
                return Ok(Fire::LogBusy);
            }
            Err(error) => return Err(FireError::Append(error)),
        };
        // Deleted: nothing of it is delivered any more, whatever waits here.
        let topic = store.topic_by_id(queue.0).filter(|topic| !topic.is_deleted());
        let Some(topic) = topic else {
            drop(turn);
            self.report(&taken, &[], now.wall);
            return Ok(Fire::Done);
        };
        let (settled, outcome) = settle(&mut turn, &taken);
        append(&mut turn, &topic, queue.1, &settled, now.wall);
        drop(turn);
        if outcome.is_err() {
            // The rest is not decided: it stays out of the counts, so the read time stays before it.
            taken.truncate(settled.len());
        }
        self.report(&taken, &settled, now.wall);
        outcome.map(|()| Fire::Done).map_err(Into::into)
    }

    fn take_due(&mut self, queue: QueueKey, now: Timestamp) -> Vec<Waiting> {
        self.forget_first(queue);
        let heap = self.queues.entry(queue).or_default();
        let mut taken = Vec::with_capacity(TURN.min(heap.len()));
        while taken.len() < TURN
            && let Some(first) = heap.peek()
            && first.0.due.deadline <= now
        {
            taken.extend(heap.pop().map(|Reverse(waiting)| waiting));
        }
        self.note_first(queue);
        taken
    }

    /// Tells the slots that their entries are settled, and the observer what fired.
    fn report(&mut self, taken: &[Waiting], settled: &[Due], now: Timestamp) {
        for run in taken.chunk_by(|one, next| one.run == next.run) {
            let key = run[0].run;
            let left = self.runs.get_mut(&key).expect("a run is kept while it has messages");
            left.count -= run.len();
            left.outstanding.settled(&self.shared, run.len());
            if left.count == 0 {
                self.runs.remove(&key);
            }
        }
        for same in settled.chunk_by(|one, next| one.deadline == next.deadline) {
            self.observer.fired(same.len() as u64, now.since(same[0].deadline));
        }
    }

    /// Looks at the clock; answers until when firing is held, if it is.
    fn held_until(&mut self, now: Now) -> Option<Timestamp> {
        if let Some(step) = self.watch.look(now) {
            tracing::warn!(?step, "the wall clock was stepped");
            self.observer.clock_stepped(step);
        }
        let held = self.watch.held_for(now);
        self.shared.held.store(held.is_some(), Ordering::Relaxed);
        let millis = u64::try_from(held?.as_millis()).unwrap_or(u64::MAX);
        now.wall.checked_add(millis.max(1))
    }
}

fn append(turn: &mut Turn<'_>, topic: &Topic, queue: u16, settled: &[Due], now: Timestamp) {
    if settled.is_empty() {
        return;
    }
    let place = topic.queue(queue).expect("stage 4 found the queue");
    let fired = settled.iter().map(|due| {
        assert!(due.deadline <= now, "nothing fires early");
        Fired { cause: due.cause, length: due.length, tag_hash: due.tag_hash }
    });
    let run = Delivery {
        fired_at: now,
        first_queue_offset: place.take_offsets(settled.len() as u64),
        topic_id: topic.id,
        queue,
        reason: match topic.belongs {
            Some(_) => DeliveryReason::Retry,
            None => DeliveryReason::Deadline,
        },
        fired: fired.collect(),
    };
    topic.appended(turn.append(run.encode()));
}

/// Settles what is taken, in order; answers those that fire, and whether the bits could all be read.
fn settle(turn: &mut Turn<'_>, taken: &[Waiting]) -> (Vec<Due>, Result<(), SettledError>) {
    let mut settled = Vec::with_capacity(taken.len());
    for waiting in taken {
        match turn.settle(waiting.due.cause, Outcome::Delivered) {
            Ok(()) => settled.push(waiting.due),
            Err(SettleError::Before(_)) => {}
            Err(SettleError::Disk(error)) => return (settled, Err(error)),
        }
    }
    (settled, Ok(()))
}

impl Stage for DequeuePut {
    fn name(&self) -> &'static str {
        "dequeue_put"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        self.take_in();
        if let Some(until) = self.held_until(now) {
            return Ok(Progress::IdleUntil(until));
        }
        for turn in 0..TURNS_A_STEP {
            let now = match planted::is(Fault::Early) {
                true => Now { wall: now.wall.checked_add(500).unwrap_or(now.wall), ..now },
                false => now,
            };
            let Some(queue) = self.next_queue(now.wall) else {
                if turn > 0 {
                    return Ok(Progress::Worked);
                }
                let first = self.first.first();
                return Ok(first.map_or(Progress::Idle, |&(at, _)| Progress::IdleUntil(at)));
            };
            match self.fire(queue, now) {
                Ok(Fire::Done) => {}
                Ok(Fire::LogBusy) => {
                    let later = now.wall.checked_add(LOG_BUSY_MS);
                    return Ok(later.map_or(Progress::Idle, Progress::IdleUntil));
                }
                Err(error) => return Err(StageError::new(self.name(), error)),
            }
        }
        Ok(Progress::Worked)
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}
