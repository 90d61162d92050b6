//! Offsets reset: a group reads a topic from elsewhere, from now on. The one exception to "an acknowledged
//! message is never handed out again".
//!
//! What was given back before it, and waits to come again, is of one of two kinds:
//!
//! - Its message stands where its queue is read from now, or behind that. It comes in its queue, with
//!   attempts from 1, and its retry is void: it never comes twice. Until its moment a void retry counts in
//!   the lag.
//! - Its message stands before that, or in a queue that is not reset. Its consumer has asked for it again,
//!   and no queue brings it: it comes by its retry. A reset to the latest skips what was not read, not what
//!   was given back.
//!
//! Dead letters stay listed until they are redriven, also those whose message comes again.

use std::collections::BTreeMap;

use super::Consumers;
use super::reading::first_start;
use crate::clock::{Now, Timestamp};
use crate::commitlog::{AppendError, Receipt};
use crate::consumequeue::QueueError;
use crate::message::record::OffsetsReset;
use crate::store::{Group, Queue, Topic};

/// Where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResetTo {
    Earliest,
    /// With what is put, or fires, from now on.
    Latest,
    /// With what became readable at this moment or after it. A wall clock that stepped back meanwhile
    /// leaves times that do not grow along a queue; then this is near that moment.
    Time(Timestamp),
    /// These queues; the others stay where they are, but for their leases, which end. So do those of
    /// retries.
    Queues(BTreeMap<u16, u64>),
}

/// Why offsets were not reset.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ResetError {
    #[error("the topic has no queue {queue}")]
    UnknownQueue { queue: u16 },
    #[error("queue {queue} ends at offset {end}, before {offset}")]
    BeyondEnd { queue: u16, offset: u64, end: u64 },
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl Consumers {
    /// Makes the group read the topic from elsewhere, and answers where it now stands, queue by queue. What
    /// it had acknowledged from there on comes again, with attempts from 1; handles from before are void.
    /// Holds once the receipt is durable.
    ///
    /// # Errors
    ///
    /// [`ResetError`]; nothing has changed then.
    pub fn reset(
        &self,
        group: &Group,
        topic: &Topic,
        to: &ResetTo,
        now: Now,
    ) -> Result<(Vec<u64>, Receipt), ResetError> {
        if let ResetTo::Queues(offsets) = to
            && let Some((&queue, _)) = offsets.last_key_value()
            && topic.queue(queue).is_none()
        {
            return Err(ResetError::UnknownQueue { queue });
        }
        let by_time = match to {
            ResetTo::Time(time) => self.first_not_before(topic, *time)?,
            _ => Vec::new(),
        };
        let mut leases = self.leases.lock();
        let first = leases.reading(group, topic.id).is_none();
        let start_from = group.settings().start_from;
        let start = |number: u16, queue: &Queue| -> Result<Option<u64>, ResetError> {
            let end = queue.next_offset();
            let offset = match to {
                ResetTo::Earliest => Some(queue.units.first()),
                ResetTo::Latest => Some(end),
                ResetTo::Time(_) => by_time.get(usize::from(number)).copied(),
                ResetTo::Queues(offsets) => offsets.get(&number).copied(),
            };
            match offset {
                Some(offset) if offset > end => {
                    Err(ResetError::BeyondEnd { queue: number, offset, end })
                }
                // A queue that is not named, of a topic that was never read.
                None if first => Ok(Some(first_start(start_from, queue))),
                // What has expired does not come again.
                offset => Ok(offset.map(|offset| offset.max(queue.units.first()))),
            }
        };
        let fence = leases.numbers.next();
        let record = OffsetsReset {
            group_id: group.id,
            topic_id: topic.id,
            at: now.wall,
            fence: fence.0,
            queues: Vec::new(),
            filter: None,
            retries_end: 0,
        };
        let (start, receipt) = self.append_start(record, group, topic, start)?;
        leases.restart(group, topic, fence, &start, receipt.clone());
        let mut readable = 0;
        for source in self.sources(group, topic) {
            let floor = leases.look(group, source.seat, |_, progress| progress.floor());
            readable += source.units().committed().saturating_sub(floor);
        }
        let stands = (0..).zip(&topic.queues).map(|(number, _)| {
            let seat = super::seat(group, topic, number);
            leases.look(group, seat, |_, progress| progress.floor())
        });
        let stands = stands.collect();
        drop(leases);
        self.polls.wake(group.id, topic.id, readable);
        Ok((stands, receipt))
    }

    fn first_not_before(&self, topic: &Topic, time: Timestamp) -> Result<Vec<u64>, QueueError> {
        topic.queues.iter().map(|queue| queue.units.first_not_before(time)).collect()
    }
}
