//! Stage 4: route entries by their tag, leave out what is settled, and group by queue.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use timerlog::Entry;
use timerlog::planted::{self, Fault};

use super::{Due, Outstanding, Run, Shared, Walked};
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
    /// Routed, and waiting for room in the pipe.
    held: VecDeque<Run>,
    signal: Signal,
}

impl DequeueMessage {
    pub(super) fn new(
        store: Arc<Store>,
        shared: Arc<Shared>,
        input: Pipe<Walked>,
        out: Pipe<Run>,
        signal: Signal,
    ) -> Self {
        Self { store, shared, input, out, held: VecDeque::new(), signal }
    }

    fn route(&mut self, walked: Walked) -> Result<(), SettledError> {
        let Walked { entries, outstanding } = walked;
        let mut queues: BTreeMap<QueueKey, Vec<Due>> = BTreeMap::new();
        let mut left_out = 0;
        for entry in &entries {
            match self.due(entry)? {
                Some((queue, due)) => queues.entry(queue).or_default().push(due),
                None => left_out += 1,
            }
        }
        for (queue, mut due) in queues {
            due.sort_unstable();
            self.held.push_back(Run { queue, due, outstanding: Outstanding::clone(&outstanding) });
        }
        outstanding.settled(&self.shared, left_out);
        Ok(())
    }

    /// Where the entry goes; nothing when it is settled, or where it should go is gone. Looking here
    /// also brings the settled bits into memory, ahead of the moment.
    fn due(&self, entry: &Entry) -> Result<Option<(QueueKey, Due)>, SettledError> {
        let cause = Offset::new(entry.offset);
        let settled = self.store.log().settled().get(cause)?;
        if settled.is_some() && !planted::is(Fault::NoSettledCheck) {
            return Ok(None);
        }
        let tag = TimerTag(entry.tag);
        let Some(topic) = self.store.topic_by_id(tag.topic_id()) else {
            // Its topic was deleted.
            return Ok(None);
        };
        if !matches!(tag.kind(), Some(TimedKind::Message | TimedKind::Retry))
            || topic.queue(tag.queue()).is_none()
        {
            tracing::error!(offset = entry.offset, tag = entry.tag, "a timer leads nowhere");
            return Ok(None);
        }
        let deadline = Timestamp::from_millis(entry.deadline);
        let due = Due { deadline, cause, length: entry.length, tag_hash: tag.tag_hash() };
        Ok(Some(((tag.topic_id(), tag.queue()), due)))
    }

    /// `false` when the pipe has no more room.
    fn hand_on(&mut self) -> bool {
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
