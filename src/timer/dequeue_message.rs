//! Stage 4: route entries by their tag, leave out what is settled, and group by queue.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use timerlog::Entry;
use timerlog::planted::{self, Fault};

use super::{Due, Outstanding, Run, Shared, Walked, WalkedChecks};
use crate::clock::{Now, Timestamp};
use crate::commitlog::settled::SettledError;
use crate::message::offset::Offset;
use crate::message::timer_tag::{TimedKind, TimerTag};
use crate::stage::{Pipe, Progress, Signal, Stage, StageError};
use crate::store::{QueueKey, Store};

#[derive(Debug)]
pub(super) struct DequeueMessage {
    store: Arc<Store>,
    shared: Arc<Shared>,
    input: Pipe<Walked>,
    out: Pipe<Run>,
    checks: Pipe<WalkedChecks>,
    held_checks: Option<WalkedChecks>,
    /// Routed, and waiting for room in the pipe.
    held: VecDeque<Run>,
    signal: Signal,
}

/// Where an entry goes.
enum Routed {
    Message(QueueKey, Due),
    Check,
    Nowhere,
}

impl DequeueMessage {
    pub(super) fn new(
        store: Arc<Store>,
        shared: Arc<Shared>,
        input: Pipe<Walked>,
        out: Pipe<Run>,
        checks: Pipe<WalkedChecks>,
        signal: Signal,
    ) -> Self {
        let (held_checks, held) = (None, VecDeque::new());
        Self { store, shared, input, out, checks, held_checks, held, signal }
    }

    fn route(&mut self, walked: Walked) -> Result<(), SettledError> {
        let Walked { slot, entries, outstanding } = walked;
        let mut queues: BTreeMap<QueueKey, Vec<Due>> = BTreeMap::new();
        let (mut left_out, mut checks) = (0, Vec::new());
        for entry in &entries {
            match self.due(entry)? {
                Routed::Message(queue, due) => queues.entry(queue).or_default().push(due),
                Routed::Check => checks.push(*entry),
                Routed::Nowhere => left_out += 1,
            }
        }
        for (queue, mut due) in queues {
            due.sort_unstable();
            self.held.push_back(Run { queue, due, outstanding: Outstanding::clone(&outstanding) });
        }
        if !checks.is_empty() {
            let outstanding = Outstanding::clone(&outstanding);
            self.held_checks = Some(WalkedChecks { slot, entries: checks, outstanding });
        }
        outstanding.settled(&self.shared, left_out);
        Ok(())
    }

    /// Where the entry goes; nothing when it is settled, or where it should go is gone. Looking here
    /// also brings the settled bits into memory, ahead of the moment.
    fn due(&self, entry: &Entry) -> Result<Routed, SettledError> {
        let tag = TimerTag(entry.tag);
        if tag.kind() == Some(TimedKind::Check) {
            // Settled or not: whoever holds it in memory lets go of it.
            return Ok(Routed::Check);
        }
        let cause = Offset::new(entry.offset);
        let settled = self.store.log().settled().get(cause)?;
        if settled.is_some() && !planted::is(Fault::NoSettledCheck) {
            return Ok(Routed::Nowhere);
        }
        let Some(topic) = self.store.topic_by_id(tag.topic_id()) else {
            // Its topic was deleted.
            return Ok(Routed::Nowhere);
        };
        if !matches!(tag.kind(), Some(TimedKind::Message | TimedKind::Retry))
            || topic.queue(tag.queue()).is_none()
        {
            tracing::error!(offset = entry.offset, tag = entry.tag, "a timer leads nowhere");
            return Ok(Routed::Nowhere);
        }
        let deadline = Timestamp::from_millis(entry.deadline);
        let due = Due { deadline, cause, length: entry.length, tag_hash: tag.tag_hash() };
        Ok(Routed::Message((tag.topic_id(), tag.queue()), due))
    }

    /// `false` when the pipe has no more room.
    fn hand_on(&mut self) -> bool {
        if let Some(checks) = self.held_checks.take()
            && let Err(checks) = self.checks.push(checks)
        {
            self.held_checks = Some(checks);
            return false;
        }
        while let Some(run) = self.held.pop_front() {
            if let Err(run) = self.out.push(run) {
                self.held.push_front(run);
                return false;
            }
        }
        true
    }
}

impl Stage for DequeueMessage {
    fn name(&self) -> &'static str {
        "dequeue_message"
    }

    fn step(&mut self, _now: Now) -> Result<Progress, StageError> {
        if !self.hand_on() {
            return Ok(Progress::Idle);
        }
        let Some(walked) = self.input.pop() else { return Ok(Progress::Idle) };
        self.route(walked).map_err(|error| StageError::new(self.name(), error))?;
        self.hand_on();
        Ok(Progress::Worked)
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}
