//! Receive: lease what can be read, then read it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::filter::{Grants, Look};
use super::lease::{Granted, LeaseNumber, Order, Terms};
use super::retry::Source;
use super::{Consumers, End, Seat};
use crate::clock::{Now, Timestamp};
use crate::commitlog::{AppendError, ReadError};
use crate::consumequeue::{QueueError, Unit};
use crate::message::id::Handle;
use crate::message::record::RecordError;
use crate::message::{Attributes, TagFilter};
use crate::store::{CauseError, Caused, Group, Read, Topic};
use timerlog::planted::{self, Fault};

/// Bodies in one answer, in bytes: with the last one it may be more, by less than a body. What does
/// not fit stays where it is, for the next receive.
const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// Why nothing could be received.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Read(#[from] CauseError),
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
    /// `None` for a message that was ready at once.
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
    more: More,
}

/// Whether another receive may find something at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// This turn has looked at as many units as a turn may, or what it found was not to be handed out.
    Perhaps,
    /// All that there is was looked at.
    No,
}

impl Leased {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Counts only when nothing is leased.
    pub fn more(&self) -> More {
        self.more
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
    /// A retry from before a reset by which its message comes in its own queue.
    Void,
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
        let sources = self.sources(group, topic);
        let mut leases = self.leases.lock();
        sources
            .iter()
            .any(|source| leases.queue(group, source.seat).may_have(source.units().committed()))
    }

    /// Whether there are messages that are not handed out only because too many are out already.
    pub fn is_held_back(&self, group: &Group, topic: &Topic) -> bool {
        let sources = self.sources(group, topic);
        let mut leases = self.leases.lock();
        sources
            .iter()
            .any(|source| leases.queue(group, source.seat).is_held_back(source.units().committed()))
    }

    /// Nothing, leased.
    pub fn nothing(self: &Arc<Self>) -> Leased {
        let (messages, held, more) = (Vec::new(), Vec::new(), More::No);
        Leased { consumers: Arc::clone(self), messages, held, more }
    }

    /// Leases up to `max` messages of the topic to the group for `invisible_for`, and reads them. One call
    /// is one turn: it looks at so many units and no more, so that a filter that leaves almost everything
    /// out keeps nobody else waiting. See [`Leased::more`].
    ///
    /// A group that has not [subscribed](Consumers::subscribe) does it here, by the filter of its settings.
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
        let sources = self.sources(group, topic);
        if group.settings().ordered {
            self.read_ahead(group, topic, &sources, max)?;
        }
        let Grants { granted, filter, more } =
            self.grant(group, topic, &sources, max, invisible_for, now)?;
        let held =
            granted.iter().map(|(seat, granted)| (*seat, granted.queue_offset, granted.number));
        let mut leased = Leased {
            consumers: Arc::clone(self),
            messages: Vec::with_capacity(granted.len()),
            held: held.collect(),
            more,
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
            let source = sources.iter().find(|source| source.seat == seat);
            let source = source.expect("the lease was granted on one of these");
            let unit = source.units().unit(granted.queue_offset)?;
            match self.read(group, seat, granted, unit, until, &mut bytes)? {
                // Another tag with the same hash.
                Body::Whole(received) if !wanted(&filter, &received) => {
                    lost.push((seat, granted, None));
                }
                Body::Whole(received) => {
                    budget = budget.saturating_sub(received.body.len());
                    leased.messages.push(*received);
                }
                Body::Damaged(error) => {
                    tracing::error!(offset = unit.offset.get(), %error, "a message is damaged");
                    lost.push((seat, granted, Some(unit)));
                }
                Body::Hole | Body::Void => lost.push((seat, granted, None)),
            }
        }
        if !unread.is_empty() {
            leased.held.retain(|held| !unread.contains(held));
            self.give_back(&unread);
        }
        if !lost.is_empty() {
            leased.more = More::Perhaps;
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
        sources: &[Source],
        max: usize,
        invisible_for: Duration,
        now: Now,
    ) -> Result<Grants, ReceiveError> {
        let until = now.monotonic + invisible_for;
        let mut all = Vec::new();
        let mut granted = Vec::new();
        let mut guard = self.leases.lock();
        let leases = &mut *guard;
        let filter = self.filter(leases, group, topic, now)?;
        let mut look = Look::new(&filter);
        let queues = sources.len();
        let turn = leases.turns.entry((group.id, topic.id)).or_default();
        *turn = (*turn + 1) % queues;
        let first = *turn;
        for queue in (first..queues).chain(0..first) {
            let left = max - all.len();
            if left == 0 {
                break;
            }
            let source = &sources[queue];
            let (seat, committed) = (source.seat, source.units().committed());
            let mut numbers = leases.numbers;
            let order = match group.settings().ordered {
                true => Order::ByMessageGroup,
                false => Order::None,
            };
            let mut lanes = leases.lanes.remove(&(group.id, topic.id));
            let judge = &mut |offset| source.judge(&mut look, lanes.as_mut(), offset);
            let delayed = Vec::new();
            let mut terms = Terms { numbers: &mut numbers, now, until, order, judge, delayed };
            granted.clear();
            leases.look(group, seat, |state, progress| {
                state.grant(left, committed, progress, &mut terms, &mut granted);
            });
            let delayed = terms.delayed;
            leases.numbers = numbers;
            if let Some(lanes) = lanes {
                leases.lanes.insert((group.id, topic.id), lanes);
            }
            for (queue_offset, number, until) in delayed {
                leases.add_end(End { until, seat, queue_offset, number });
            }
            for &granted in &granted {
                let (queue_offset, number) = (granted.queue_offset, granted.number);
                leases.add_end(End { until, seat, queue_offset, number });
                all.push((seat, granted));
            }
        }
        self.record_excluded(leases, group, topic, now);
        let ends = !leases.ends.is_empty();
        drop(guard);
        if ends {
            self.expiry_signal.raise();
        }
        let more = match (look.failed, look.left) {
            (Some(error), _) => {
                let held = all.iter().map(|(seat, g)| (*seat, g.queue_offset, g.number));
                self.give_back(&held.collect::<Vec<_>>());
                return Err(error.into());
            }
            (None, 0) => More::Perhaps,
            (None, _) if look.unread => More::Perhaps,
            (None, _) => More::No,
        };
        Ok(Grants { granted: all, filter, more })
    }

    fn read(
        &self,
        group: &Group,
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
            // It has expired since it was leased.
            Err(CauseError::Read(ReadError::Record {
                cause: RecordError::LetGo { .. }, ..
            })) => {
                return Ok(Body::Hole);
            }
            Err(CauseError::Read(ReadError::Record { cause, .. })) => {
                return Ok(Body::Damaged(cause));
            }
            Err(error) => return Err(error.into()),
        };
        if self.is_void(group, granted.queue_offset, unit, &caused) {
            return Ok(Body::Void);
        }
        let handle = Handle {
            group_id: group.id,
            topic_id: seat.topic_id,
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
        let Caused { offset, record, message, deadline, origin, .. } = caused;
        let readable_at = origin.map_or(unit.time, |origin| origin.readable_at);
        let place = (handle.queue, handle.queue_offset);
        let (queue, queue_offset) =
            origin.map_or(place, |origin| (origin.queue, origin.queue_offset));
        let (deliver_at, fired_at) = match deadline {
            None => (message.born_at, None),
            Some(deadline) => (deadline, Some(readable_at)),
        };
        Received {
            message_id: self.store.ids().message_id(offset, message.nonce),
            topic: message.topic,
            queue,
            queue_offset,
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
}

pub(super) fn add(moment: Timestamp, duration: Duration) -> Timestamp {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    moment.checked_add(millis).unwrap_or(Timestamp::from_millis(u64::MAX))
}

fn wanted(filter: &TagFilter, received: &Received) -> bool {
    filter.admits(received.attributes.tag.as_deref()) || planted::is(Fault::HashIsTag)
}
