//! From where a group reads a topic, and what of it: decided once, at its first receive, and again only
//! when its offsets are reset.
//!
//! ```text
//!   first receive ─┐                                      ┌──> leases: cursors, fence, filter   (at once)
//!                  ├─> leases' lock ─> turn ─> OffsetsReset
//!   reset ─────────┘                                      └──> dispatch ──> the group's progress (later)
//! ```
//!
//! Ground rules:
//!
//! - The record is appended under the leases' lock, as acks are. So the log says which acks came before it:
//!   those are folded before it and count no more. An ack after it needs a handle from after it.
//! - A handle from before has a lease number below the *fence*, which is a lease number, too. Numbers grow
//!   across restarts, so that neither a handle nor a fence that went with the power is ever taken for a
//!   later one.
//! - Until dispatch comes to the record, the folded progress is that of before it. So each queue begins
//!   with a progress of its own, which counts until then: nothing that is received in between is swallowed.

use std::sync::Arc;

use super::lease::{LeaseNumber, QueueLeases};
use super::{Consumers, Leases, Seat, seat};
use crate::clock::Timestamp;
use crate::commitlog::{AppendError, Durability, Receipt};
use crate::message::offset::Offset;
use crate::message::record::OffsetsReset;
use crate::message::{StartFrom, TagFilter};
use crate::store::{self, Group, Holds, Queue, QueueProgress, Reset, Topic};
use timerlog::planted::{self, Fault};

/// What is decided, as appended.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) fence: LeaseNumber,
    /// `None` until the first receive: offsets can be reset before it.
    pub(super) filter: Option<TagFilter>,
    /// Not durable yet, when it was last asked.
    receipt: Option<Receipt>,
}

/// Where the queues of a topic are read from, by an appended record; `None` stays where it is.
pub(super) struct Start {
    pub(super) queues: Vec<Option<u64>>,
    /// The group's retries from before the record, if there ever were any.
    retries: Option<Before>,
}

struct Before {
    retries: Arc<Topic>,
    /// Where their queue ended.
    end: u64,
    /// The record.
    at: Offset,
}

/// Why a group cannot receive what it asked for.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubscribeError {
    #[error("the group reads this topic by another set of tags: {}", written(there))]
    Mismatch { there: TagFilter },
    #[error(transparent)]
    Append(#[from] AppendError),
}

fn written(filter: &TagFilter) -> String {
    match filter.admits_everything() {
        true => "it has no filter".to_owned(),
        false => filter.tags().join(", "),
    }
}

impl Reading {
    fn appended(fence: LeaseNumber, filter: Option<TagFilter>, receipt: Receipt) -> Self {
        Self { fence, filter, receipt: Some(receipt) }
    }

    /// What must be waited for before anything that was received is shown.
    fn pending(&mut self) -> Option<Receipt> {
        if self.receipt.as_ref().is_some_and(|r| r.outcome() == Some(Durability::Durable)) {
            self.receipt = None;
        }
        self.receipt.clone()
    }
}

impl Consumers {
    /// Lets the group read the topic by the filter `asked`, or by the one that is there. At the group's
    /// first receive of the topic, this decides where it starts and by which filter it reads, for good.
    ///
    /// Nothing that is received may be shown before the receipt, if there is one, is durable: it could
    /// start elsewhere after a power cut.
    ///
    /// # Errors
    ///
    /// [`SubscribeError::Mismatch`] when the group reads by another filter.
    pub fn subscribe(
        &self,
        group: &Group,
        topic: &Topic,
        asked: Option<&TagFilter>,
        now: Timestamp,
    ) -> Result<Option<Receipt>, SubscribeError> {
        self.leases.lock().subscribe(self, group, topic, asked, now)
    }

    /// How the group reads the topic by what was appended; `None` when it has never begun with it.
    pub fn reading(&self, group: &Group, topic: &Topic) -> Option<store::Reading> {
        let mut leases = self.leases.lock();
        let reading = leases.reading(group, topic.id).as_ref()?;
        Some(store::Reading { fence: reading.fence.0, filter: reading.filter.clone() })
    }

    /// Appends where the group starts, for each queue by `start`, and answers that and the receipt.
    ///
    /// `start` is asked while the appender is held: what it sees of a queue's end is the log's end. So is
    /// the end of the group's retries.
    pub(super) fn append_start<E: From<AppendError>>(
        &self,
        record: OffsetsReset,
        group: &Group,
        topic: &Topic,
        start: impl Fn(u16, &Queue) -> Result<Option<u64>, E>,
    ) -> Result<(Start, Receipt), E> {
        let room = OffsetsReset { queues: vec![None; topic.queues.len()], ..record.clone() };
        let mut turn = self.store.log().turn_for_accepted(room.encode().len())?;
        let queues = (0..).zip(&topic.queues).map(|(number, queue)| start(number, queue));
        let queues = queues.collect::<Result<Vec<_>, E>>()?;
        let retries = self.store.system_topic(Holds::Retries, group, topic.id);
        let mut start = Start { queues, retries: None };
        let end = retries.as_ref().map_or(0, |retries| retries.queues[0].next_offset());
        if !planted::is(Fault::StartNotRecorded) || record.filter.is_none() {
            let queues = start.queues.clone();
            let at = turn.append(OffsetsReset { queues, retries_end: end, ..record }.encode());
            start.retries = retries.map(|retries| Before { retries, end, at });
        }
        Ok((start, turn.receipt()))
    }
}

/// Where a queue of a topic that was not read before is read from.
pub(super) fn first_start(start_from: StartFrom, queue: &Queue) -> u64 {
    match start_from {
        StartFrom::Earliest => queue.units.first(),
        StartFrom::Latest => queue.next_offset(),
    }
}

impl Leases {
    pub(super) fn subscribe(
        &mut self,
        consumers: &Consumers,
        group: &Group,
        topic: &Topic,
        asked: Option<&TagFilter>,
        now: Timestamp,
    ) -> Result<Option<Receipt>, SubscribeError> {
        let before = self.reading(group, topic.id);
        let fence = before.as_ref().map(|reading| reading.fence);
        let settings = group.settings();
        let there = match before.as_mut().and_then(|reading| reading.filter.as_ref()) {
            Some(filter) => Some(filter),
            None => settings.filters.get(&topic.name),
        };
        let filter = match (there, asked) {
            (Some(there), Some(asked)) if there != asked => {
                return Err(SubscribeError::Mismatch { there: there.clone() });
            }
            (Some(filter), _) | (None, Some(filter)) => filter.clone(),
            (None, None) => TagFilter::everything(),
        };
        if let Some(reading) = before.as_mut().filter(|reading| reading.filter.is_some()) {
            return Ok(reading.pending());
        }
        let number = fence.unwrap_or_else(|| self.numbers.next());
        let record = OffsetsReset {
            group_id: group.id,
            topic_id: topic.id,
            at: now,
            fence: number.0,
            queues: Vec::new(),
            filter: Some(filter.clone()),
            retries_end: 0,
        };
        // Offsets that were reset before the first receive stand.
        let first = fence.is_none();
        let start = |_, queue: &Queue| {
            Ok::<_, SubscribeError>(first.then(|| first_start(settings.start_from, queue)))
        };
        let (start, receipt) = consumers.append_start(record, group, topic, start)?;
        self.begin(group, topic, &start);
        let reading = Reading::appended(number, Some(filter), receipt);
        let reading = self.readings.entry((group.id, topic.id)).insert_entry(Some(reading));
        Ok(reading.into_mut().as_mut().and_then(Reading::pending))
    }

    /// The offsets of the group's topic were reset by an appended record.
    pub(super) fn restart(
        &mut self,
        group: &Group,
        topic: &Topic,
        fence: LeaseNumber,
        start: &Start,
        receipt: Receipt,
    ) {
        let filter = self.reading(group, topic.id).as_ref().and_then(|r| r.filter.clone());
        self.begin(group, topic, start);
        let reading = Reading::appended(fence, filter, receipt);
        self.readings.insert((group.id, topic.id), Some(reading));
    }

    fn begin(&mut self, group: &Group, topic: &Topic, start: &Start) {
        // Those that are not void can be read again.
        if let Some(before) = &start.retries
            && let Some(leases) = self.queues.get_mut(&seat(group, &before.retries, 0))
        {
            leases.drop_leases();
        }
        for (queue, &offset) in (0..).zip(&start.queues) {
            let seat = seat(group, topic, queue);
            match offset {
                Some(offset) => {
                    let resets = start.retries.as_ref().map(|before| {
                        let mut resets = self.look(group, seat, |_, there| there.resets().clone());
                        resets.push(Reset {
                            at: before.at,
                            start: offset,
                            retries_end: before.end,
                        });
                        resets
                    });
                    let progress = QueueProgress::starting_at(offset);
                    let progress = progress.with_resets(resets.unwrap_or_default());
                    let lanes = self.lanes.get_mut(&(group.id, topic.id));
                    for (seat, offset) in lanes.map_or(Vec::new(), |l| l.forget_queue(seat)) {
                        self.queue(group, seat).unpark(offset);
                    }
                    let mut leases = QueueLeases::starting_at(progress, self.tally.part());
                    if planted::is(Fault::FoldLagsBehindReset) {
                        leases.ahead_of_fold = None;
                    }
                    self.queues.insert(seat, leases);
                }
                None => {
                    if let Some(leases) = self.queues.get_mut(&seat) {
                        leases.drop_leases();
                    }
                }
            }
        }
    }

    /// How the group reads the topic; `None` when it has never begun with it.
    pub(super) fn reading(&mut self, group: &Group, topic_id: u32) -> &mut Option<Reading> {
        self.readings.entry((group.id, topic_id)).or_insert_with(|| {
            let folded = group.reading(topic_id)?;
            let fence = LeaseNumber(folded.fence);
            Some(Reading { fence, filter: folded.filter, receipt: None })
        })
    }

    /// Whether the handle with this number, of the topic or of its retries, is from before the last reset,
    /// or from a first receive that went with the power: an ack under that one would be folded before the
    /// record of the next.
    pub(super) fn is_fenced(&mut self, group: &Group, topic_id: u32, number: LeaseNumber) -> bool {
        if planted::is(Fault::NoFence) {
            return false;
        }
        self.reading(group, topic_id).as_ref().is_none_or(|reading| number < reading.fence)
    }

    /// Shows a queue's leases to `look`, together with the progress that counts for them.
    pub(super) fn look<T>(
        &mut self,
        group: &Group,
        seat: Seat,
        look: impl FnOnce(&mut QueueLeases, &QueueProgress) -> T,
    ) -> T {
        let fence = self.reading(group, seat.topic_id).as_ref().map(|reading| reading.fence.0);
        let queue = self.queue(group, seat);
        let ahead = queue.ahead_of_fold.take().filter(|_| {
            let folded = group.reading(seat.topic_id).map(|reading| reading.fence);
            folded < fence
        });
        match ahead {
            Some(progress) => {
                let seen = look(queue, &progress);
                queue.ahead_of_fold = Some(progress);
                seen
            }
            None => group.progress((seat.topic_id, seat.queue), |progress| look(queue, progress)),
        }
    }
}
