//! Receive: lease what can be read, then read it.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::lease::{Granted, LeaseNumber, Terms};
use super::{Consumers, End, Seat, seat};
use crate::clock::{Now, Timestamp};
use crate::commitlog::{AppendError, ReadError};
use crate::consumequeue::{QueueError, Unit};
use crate::message::Attributes;
use crate::message::id::Handle;
use crate::message::record::{Ack, Acked, DamageReason, Quarantine, RecordError};
use crate::store::{Caused, Group, Read, Topic};

/// Bodies in one answer, in bytes: with the last one it may be more, by less than a body. What does
/// not fit stays where it is, for the next receive.
const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// Why nothing could be received.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// A message on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub message_id: String,
    pub topic: String,
    pub queue: u16,
    pub queue_offset: u64,
    pub attributes: Attributes,
    pub body: Bytes,
    pub born_at: Timestamp,
    pub deliver_at: Timestamp,
    /// `None` for a message that was put for now.
    pub fired_at: Option<Timestamp>,
    pub attempt: u32,
    pub receipt_handle: String,
    pub invisible_until: Timestamp,
}

/// Messages that are leased. Until [`Leased::take`] they go back when this is dropped, as if they had
/// never been out: a caller that went away costs nobody an attempt.
#[derive(Debug)]
pub struct Leased {
    consumers: Arc<Consumers>,
    messages: Vec<Received>,
    held: Vec<(Seat, u64, LeaseNumber)>,
}

impl Leased {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The messages; from here on their leases count.
    pub fn take(mut self) -> Vec<Received> {
        self.held.clear();
        std::mem::take(&mut self.messages)
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        self.consumers.give_back(&self.held);
    }
}

/// What came of reading one leased message.
enum Body {
    Whole(Box<Received>),
    /// The record cannot be read any more.
    Damaged(RecordError),
    /// The log lost it long ago.
    Hole,
}

impl Consumers {
    /// What nobody took is readable again, as if it had never been out.
    fn give_back(&self, held: &[(Seat, u64, LeaseNumber)]) {
        let Some((first, ..)) = held.first() else { return };
        let mut leases = self.leases.lock();
        for &(seat, queue_offset, number) in held {
            if let Some(queue) = leases.queues.get_mut(&seat) {
                queue.give_back(queue_offset, number);
            }
        }
        drop(leases);
        self.polls.wake(first.group_id, first.topic_id, held.len() as u64);
    }

    /// Whether a receive may find something: a look at memory alone, for callers about to wait.
    pub fn may_have(&self, group: &Group, topic: &Topic) -> bool {
        let mut leases = self.leases.lock();
        (0..).zip(&topic.queues).any(|(queue, units)| {
            let seat = seat(group, topic, queue);
            leases.queue(group, seat).may_have(units.units.committed())
        })
    }

    /// Nothing, leased.
    pub fn nothing(self: &Arc<Self>) -> Leased {
        Leased { consumers: Arc::clone(self), messages: Vec::new(), held: Vec::new() }
    }

    /// Leases up to `max` messages of the topic to the group for `invisible_for`, and reads them.
    ///
    /// # Errors
    ///
    /// When queues or log cannot be read; nothing is leased then.
    pub fn receive(
        self: &Arc<Self>,
        group: &Group,
        topic: &Topic,
        max: usize,
        invisible_for: Duration,
        now: Now,
    ) -> Result<Leased, ReceiveError> {
        let granted = self.grant(group, topic, max, invisible_for, now);
        let held =
            granted.iter().map(|(seat, granted)| (*seat, granted.queue_offset, granted.number));
        let mut leased = Leased {
            consumers: Arc::clone(self),
            messages: Vec::with_capacity(granted.len()),
            held: held.collect(),
        };
        let until = add(now.wall, invisible_for);
        let mut bytes = Vec::new();
        let mut lost = Vec::new();
        let mut unread = Vec::new();
        let mut budget = MAX_ANSWER;
        for (seat, granted) in granted {
            if budget == 0 {
                unread.push((seat, granted.queue_offset, granted.number));
                continue;
            }
            let queue =
                topic.queue(seat.queue).expect("the lease was granted on this topic's queue");
            let unit = queue.units.unit(granted.queue_offset)?;
            match self.read(group, topic, seat, granted, unit, until, &mut bytes)? {
                Body::Whole(received) => {
                    budget = budget.saturating_sub(received.body.len());
                    leased.messages.push(*received);
                }
                Body::Damaged(error) => {
                    tracing::error!(offset = unit.offset.get(), %error, "a message is damaged");
                    lost.push((seat, granted, Some(unit)));
                }
                Body::Hole => lost.push((seat, granted, None)),
            }
        }
        if !unread.is_empty() {
            leased.held.retain(|held| !unread.contains(held));
            self.give_back(&unread);
        }
        if !lost.is_empty() {
            self.set_aside(group, &lost, now)?;
            leased.held.retain(|(seat, offset, _)| {
                !lost.iter().any(|(s, granted, _)| s == seat && granted.queue_offset == *offset)
            });
        }
        Ok(leased)
    }

    fn grant(
        &self,
        group: &Group,
        topic: &Topic,
        max: usize,
        invisible_for: Duration,
        now: Now,
    ) -> Vec<(Seat, Granted)> {
        let until = now.monotonic + invisible_for;
        let mut all = Vec::new();
        let mut granted = Vec::new();
        let mut guard = self.leases.lock();
        let leases = &mut *guard;
        let queues = topic.queues.len();
        let turn = leases.turns.entry((group.id, topic.id)).or_default();
        *turn = (*turn + 1) % queues;
        let first = *turn;
        for queue in (first..queues).chain(0..first) {
            let left = max - all.len();
            if left == 0 {
                break;
            }
            let committed = topic.queues[queue].units.committed();
            let queue = u16::try_from(queue).expect("a topic has at most 65535 queues");
            let seat = seat(group, topic, queue);
            let mut numbers = leases.numbers;
            let mut terms = Terms { numbers: &mut numbers, until };
            granted.clear();
            let state = leases.queue(group, seat);
            group.progress((topic.id, queue), |progress| {
                state.grant(left, committed, progress, &mut terms, &mut granted);
            });
            leases.numbers = numbers;
            for &granted in &granted {
                let (queue_offset, number) = (granted.queue_offset, granted.number);
                leases.ends.push(Reverse(End { until, seat, queue_offset, number }));
                all.push((seat, granted));
            }
        }
        drop(guard);
        if !all.is_empty() {
            self.expiry_signal.raise();
        }
        all
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "they are the facts of one message on its way out"
    )]
    fn read(
        &self,
        group: &Group,
        topic: &Topic,
        seat: Seat,
        granted: Granted,
        unit: Unit,
        until: Timestamp,
        bytes: &mut Vec<u8>,
    ) -> Result<Body, ReceiveError> {
        if unit.is_hole() {
            return Ok(Body::Hole);
        }
        let caused = match self.store.caused(unit.offset, unit.length, Read::Whole, bytes) {
            Ok(caused) => caused,
            Err(ReadError::Record { cause, .. }) => return Ok(Body::Damaged(cause)),
            Err(error) => return Err(error.into()),
        };
        let handle = Handle {
            group_id: group.id,
            topic_id: topic.id,
            queue: seat.queue,
            queue_offset: granted.queue_offset,
            attempt: granted.attempt,
            lease: granted.number.0,
            until,
            epoch: group.epoch,
        };
        let receipt_handle = self.store.ids().write_handle(&handle);
        Ok(Body::Whole(Box::new(self.compose(caused, unit, &handle, receipt_handle))))
    }

    fn compose(
        &self,
        caused: Caused<'_>,
        unit: Unit,
        handle: &Handle,
        receipt_handle: String,
    ) -> Received {
        let Caused { offset, record, message, deadline } = caused;
        let (deliver_at, fired_at) = match deadline {
            None => (message.born_at, None),
            Some(deadline) => (deadline, Some(unit.time)),
        };
        Received {
            message_id: self.store.ids().message_id(offset, message.nonce),
            topic: message.topic,
            queue: handle.queue,
            queue_offset: handle.queue_offset,
            attributes: message.attributes,
            body: Bytes::copy_from_slice(record.body),
            born_at: message.born_at,
            deliver_at,
            fired_at,
            attempt: handle.attempt,
            receipt_handle,
            invisible_until: handle.until,
        }
    }

    /// What cannot be read is quarantined and counts as consumed by the group: it is lost alone.
    fn set_aside(
        &self,
        group: &Group,
        lost: &[(Seat, Granted, Option<Unit>)],
        now: Now,
    ) -> Result<(), ReceiveError> {
        let acked = lost.iter().map(|(seat, granted, _)| Acked {
            topic_id: seat.topic_id,
            queue: seat.queue,
            queue_offset: granted.queue_offset,
        });
        let ack = Ack { group_id: group.id, at: now.wall, acked: acked.collect() }.encode();
        let damaged: Vec<_> = lost
            .iter()
            .filter_map(|(_, _, unit)| *unit)
            .map(|unit| {
                let (from, length) = (unit.offset, u64::from(unit.length));
                Quarantine { from, length, reason: DamageReason::Body }.encode()
            })
            .collect();
        let topics = self.topics_of(lost.iter().map(|(seat, ..)| seat.topic_id));
        let mut leases = self.leases.lock();
        let room =
            ack.len() + damaged.iter().map(crate::message::record::Encoded::len).sum::<usize>();
        let mut turn = self.store.log().turn(room)?;
        for record in damaged {
            turn.append(record);
        }
        let offset = turn.append(ack);
        topics.iter().for_each(|topic| topic.appended(offset));
        drop(turn);
        for (seat, granted, _) in lost {
            leases.queue(group, *seat).acking(granted.queue_offset, granted.number);
        }
        Ok(())
    }
}

pub(super) fn add(moment: Timestamp, duration: Duration) -> Timestamp {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    moment.checked_add(millis).unwrap_or(Timestamp::from_millis(u64::MAX))
}
