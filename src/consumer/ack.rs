//! Ack and extend: what a consumer says of a message that it holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::lease::{LeaseNumber, Standing, within_first_lease};
use super::receive::add;
use super::{Consumers, End, Leases, Seat};
use crate::clock::{Now, Timestamp};
use crate::commitlog::{AppendError, Receipt};
use crate::message::id::Handle;
use crate::message::record::{Ack, Acked};
use crate::store::{Group, Topic};

/// What became of one handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOutcome {
    Ok,
    InvalidReceiptHandle,
}

/// A lease that lasts longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    pub invisible_until: Timestamp,
}

/// Why nothing was acknowledged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AckError {
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl Consumers {
    /// Acknowledges what the handles stand for, in one record; one outcome a handle, in order. They
    /// hold once the receipt is durable.
    ///
    /// # Errors
    ///
    /// When the log takes nothing now; nothing is acknowledged then.
    pub fn ack(
        &self,
        group: &Group,
        handles: &[String],
        now: Now,
    ) -> Result<(Vec<AckOutcome>, Receipt), AckError> {
        let mut acked = Vec::with_capacity(handles.len());
        let mut leases = self.leases.lock();
        let outcomes: Vec<_> = handles
            .iter()
            .map(|text| self.judge(&mut leases, group, text, &mut acked, now))
            .collect();
        if acked.is_empty() {
            return Ok((outcomes, self.store.log().latest_receipt()));
        }
        let entries = acked.iter().map(|&(seat, queue_offset, _)| Acked {
            topic_id: seat.topic_id,
            queue: seat.queue,
            queue_offset,
        });
        let entries = entries.map(Into::into);
        let record = Ack { group_id: group.id, at: now.wall, acked: entries.collect() }.encode();
        let topics = self.topics_by_id(acked.iter().map(|(seat, ..)| seat.topic_id));
        let mut turn = self.store.log().turn_for_accepted(record.len())?;
        let offset = turn.append(record);
        topics.iter().for_each(|topic| topic.appended(offset));
        let receipt = turn.receipt();
        drop(turn);
        let mut room = BTreeMap::new();
        for (seat, queue_offset, number) in acked {
            let queue = leases.queue(group, seat);
            queue.acking(queue_offset, number);
            let has_room = queue.has_room_again();
            let topic_id = self.topic_of(seat);
            if has_room {
                *room.entry(topic_id).or_default() += 1;
            }
            leases.done(group, seat, topic_id, queue_offset);
        }
        let released = !leases.releases.is_empty();
        drop(leases);
        if released {
            self.expiry_signal.raise();
        }
        for (topic_id, count) in room {
            self.polls.wake(group.id, topic_id, count);
        }
        Ok((outcomes, receipt))
    }

    /// The topics of these ids, each once when they come together.
    pub(super) fn topics_by_id(&self, ids: impl Iterator<Item = u32>) -> Vec<Arc<Topic>> {
        let mut ids: Vec<_> = ids.collect();
        ids.dedup();
        ids.into_iter().filter_map(|id| self.store.topic_by_id(id)).collect()
    }

    /// What to answer for one handle; what is to be acknowledged is added to `acked`.
    fn judge(
        &self,
        leases: &mut Leases,
        group: &Group,
        text: &str,
        acked: &mut Vec<(Seat, u64, LeaseNumber)>,
        now: Now,
    ) -> AckOutcome {
        let Some((handle, seat)) = self.read_handle(group, text) else {
            return AckOutcome::InvalidReceiptHandle;
        };
        let number = LeaseNumber(handle.lease);
        match self.standing(leases, group, &handle, seat, now) {
            Standing::Held => {
                // Two handles of earlier lives may stand for the same message.
                let place = (seat, handle.queue_offset);
                if !acked.iter().any(|&(seat, offset, _)| (seat, offset) == place) {
                    acked.push((seat, handle.queue_offset, number));
                }
                AckOutcome::Ok
            }
            Standing::Acked if within_first_lease(handle.until, now.wall) => AckOutcome::Ok,
            Standing::Acked | Standing::Nacked | Standing::Void => AckOutcome::InvalidReceiptHandle,
        }
    }

    /// Makes the lease that the handle stands for last `invisible_for` from now.
    ///
    /// `None` when the handle is not, or no longer, good.
    pub fn extend(
        &self,
        group: &Group,
        text: &str,
        invisible_for: Duration,
        now: Now,
    ) -> Option<Extended> {
        let (handle, seat) = self.read_handle(group, text)?;
        let mut leases = self.leases.lock();
        if self.standing(&mut leases, group, &handle, seat, now) != Standing::Held {
            return None;
        }
        let (queue_offset, number) = (handle.queue_offset, LeaseNumber(handle.lease));
        let until = now.monotonic + invisible_for;
        leases.queue(group, seat).extend(queue_offset, number, handle.attempt, until);
        leases.add_end(End { until, seat, queue_offset, number });
        drop(leases);
        self.expiry_signal.raise();
        Some(Extended { invisible_until: add(now.wall, invisible_for) })
    }

    pub(super) fn read_handle(&self, group: &Group, text: &str) -> Option<(Handle, Seat)> {
        let handle = self.store.ids().read_handle(text)?;
        if handle.group_id != group.id || handle.epoch != group.epoch {
            return None;
        }
        let topic = self.store.topic_by_id(handle.topic_id)?;
        let queue = topic.queue(handle.queue)?;
        if handle.queue_offset >= queue.units.committed() {
            return None;
        }
        let (group_id, topic_id) = (handle.group_id, handle.topic_id);
        Some((handle, Seat { group_id, topic_id, queue: handle.queue }))
    }

    pub(super) fn standing(
        &self,
        leases: &mut Leases,
        group: &Group,
        handle: &Handle,
        seat: Seat,
        now: Now,
    ) -> Standing {
        let number = LeaseNumber(handle.lease);
        // In async mode a power cut may have taken back what the handle was given for, and another message
        // may stand in that place: then a handle ends with its life, and the message comes again.
        let earlier_life =
            self.store.keeps_what_was_seen() && !number.is_of(self.store.incarnation());
        if leases.is_fenced(group, self.topic_of(seat), number) {
            return Standing::Void;
        }
        let (queue_offset, attempt) = (handle.queue_offset, handle.attempt);
        let standing = leases.look(group, seat, |queue, progress| {
            queue.standing(queue_offset, number, attempt, earlier_life, progress, now.monotonic)
        });
        let nacked = leases.nacked.get(&(seat, handle.queue_offset)) == Some(&number);
        if standing == Standing::Acked && nacked { Standing::Nacked } else { standing }
    }
}

impl Consumers {
    /// The topic whose messages come to this seat.
    pub(super) fn topic_of(&self, seat: Seat) -> u32 {
        let topic = self.store.topic_by_id(seat.topic_id);
        topic.and_then(|topic| topic.belongs).map_or(seat.topic_id, |belongs| belongs.topic_id)
    }

    /// The group's own lease time.
    pub fn invisible_for(group: &Arc<Group>, asked_ms: Option<u64>) -> Duration {
        Duration::from_millis(asked_ms.unwrap_or_else(|| group.settings().invisible_for_ms))
    }
}
