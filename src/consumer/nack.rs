//! Nack: a consumer gives a message back before its lease ends, to have it again later.
//!
//! ```text
//!   nack ─┬─ attempts left ─┬─> Nack, with a tag ──> the wheel ──> retry queue ──> receive
//!         │                 └─> Nack, in place (ordered groups) ──> progress, lease heap
//!         └─ none left ─────────> DeadLetter ──> dead letters
//! ```
//!
//! One record a message: it ends the place that the message was handed out of, and is the cause of its
//! retry, in one step. So after a crash the message is either out as before or waits for its retry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::ack::AckOutcome;
use super::dead_letters::NoOrigin;
use super::lease::{LeaseNumber, Standing, within_first_lease};
use super::receive::add;
use super::{Consumers, End, Seat};
use crate::clock::Now;
use crate::commitlog::{AppendError, Receipt};
use crate::message::id::Handle;
use crate::message::offset::Offset;
use crate::message::record::{Acked, DeadLetter, DeathReason, Nack, Origin};
use crate::message::timer_tag::TimerTag;
use crate::store::{Group, Holds, MakeError, Topic};
use timerlog::planted::{self, Fault};

/// Why nothing was given back.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NackError {
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Make(#[from] MakeError),
    #[error(transparent)]
    Origin(#[from] NoOrigin),
}

/// What is known of a handle before the lock is taken.
struct Given {
    handle: Handle,
    /// That ended: the handle's, or a later one that a restart has made void.
    attempt: u32,
    seat: Seat,
    origin: Origin,
    topic: Arc<Topic>,
    next: Next,
}

/// Where the message goes.
enum Next {
    Retries(Arc<Topic>),
    StaysInPlace,
    DeadLetters(Arc<Topic>),
}

impl Consumers {
    /// Gives back what the handles stand for: each message comes again after `delay`, or by the group's
    /// backoff for its attempt, or is a dead letter when it was the last attempt. One outcome a handle, in
    /// order. They hold once the receipt is durable.
    ///
    /// # Errors
    ///
    /// [`NackError`]; nothing is given back then.
    pub fn nack(
        &self,
        group: &Group,
        handles: &[String],
        delay: Option<Duration>,
        now: Now,
    ) -> Result<(Vec<AckOutcome>, Receipt), NackError> {
        let given = handles.iter().map(|text| self.given(group, text, now));
        let given = given.collect::<Result<Vec<_>, _>>()?;
        let mut leases = self.leases.lock();
        let room = Nack::ENCODED_LENGTH.max(DeadLetter::ENCODED_LENGTH) * given.len();
        let mut outcomes = Vec::with_capacity(given.len());
        let mut held: BTreeMap<(Seat, u64), Given> = BTreeMap::new();
        for given in given {
            let Some(given) = given else {
                outcomes.push(AckOutcome::InvalidReceiptHandle);
                continue;
            };
            let standing = self.standing(&mut leases, group, &given.handle, given.seat, now);
            let repeated = within_first_lease(given.handle.until, now.wall);
            outcomes.push(match standing {
                Standing::Held => AckOutcome::Ok,
                Standing::Nacked if repeated => AckOutcome::Ok,
                _ => AckOutcome::InvalidReceiptHandle,
            });
            if standing == Standing::Held {
                held.insert((given.seat, given.handle.queue_offset), given);
            }
        }
        if held.is_empty() {
            return Ok((outcomes, self.store.log().latest_receipt()));
        }
        let settings = group.settings();
        let mut turn = self.store.log().turn_for_accepted(room)?;
        let closed = |given: &Given| needed(&given.origin).any(|at| turn.is_closed(at));
        if held.values().any(closed) {
            // Their time to be read ended just now: they are told so.
            drop(turn);
            drop(leases);
            return self.nack(group, handles, delay, now);
        }
        for given in held.values() {
            // Deleted meanwhile: nothing of it comes again.
            if given.topic.is_deleted() {
                continue;
            }
            let (group_id, attempt, origin) = (group.id, given.attempt, given.origin);
            let (at, place) = (now.wall, place_of(given.seat, given.handle.queue_offset));
            let comes_at = add(now.wall, delay.unwrap_or_else(|| settings.backoff(attempt)));
            let tag = match &given.next {
                Next::DeadLetters(letters) => {
                    let queue = letters.queue(0).expect("a system topic has a queue");
                    let record = DeadLetter {
                        group_id,
                        attempts: attempt,
                        at,
                        place,
                        origin,
                        queue_offset: queue.take_offsets(1),
                        dead_letters: letters.id,
                        reason: DeathReason::Nacked,
                    };
                    given.topic.appended(turn.append(record.encode()));
                    continue;
                }
                Next::StaysInPlace => None,
                Next::Retries(retries) => {
                    let made = match planted::is(Fault::RetryForgetsAttempts) {
                        true => 0,
                        false => u16::try_from(attempt).unwrap_or(u16::MAX),
                    };
                    Some(TimerTag::retry(retries.id, made).0)
                }
            };
            let record = Nack { group_id, attempt, at, place, origin, comes_at, tag };
            given.topic.appended(turn.append(record.encode()));
        }
        let receipt = turn.receipt();
        drop(turn);
        let mut room = BTreeMap::new();
        for ((seat, queue_offset), given) in held {
            let number = LeaseNumber(given.handle.lease);
            let queue = leases.queue(group, seat);
            if let Next::StaysInPlace = given.next {
                let wait = delay.unwrap_or_else(|| settings.backoff(given.attempt));
                let until = now.monotonic + wait;
                queue.delay(queue_offset, number, given.attempt, until);
                leases.add_end(End { until, seat, queue_offset, number });
                continue;
            }
            queue.acking(queue_offset, number);
            if queue.has_room_again() {
                *room.entry(given.origin.topic_id).or_default() += 1;
            }
            leases.nacked.insert((seat, queue_offset), number);
            leases.done(group, seat, given.origin.topic_id, queue_offset);
        }
        drop(leases);
        for (topic_id, count) in room {
            self.polls.wake(group.id, topic_id, count);
        }
        self.expiry_signal.raise();
        Ok((outcomes, receipt))
    }

    /// What the handle stands for, with the system topic that the message may go to; `None` when it is not
    /// good whatever its lease says.
    fn given(&self, group: &Group, text: &str, now: Now) -> Result<Option<Given>, NackError> {
        let Some((handle, seat)) = self.read_handle(group, text) else { return Ok(None) };
        let origin = match self.origin(seat, handle.queue_offset) {
            Ok(origin) => origin,
            Err(NoOrigin::Damaged(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if needed(&origin).any(|at| self.store.log().is_closed(at)) {
            return Ok(None);
        }
        let Some(topic) = self.store.topic_by_id(origin.topic_id) else { return Ok(None) };
        let settings = group.settings();
        let make = |holds| self.store.system_topic_or_make(holds, group, topic.id, now.wall);
        let key = (seat.topic_id, seat.queue);
        let ended = group.progress(key, |progress| progress.attempts(handle.queue_offset));
        let attempt = ended.max(handle.attempt);
        let next = if attempt >= settings.max_attempts {
            make(Holds::DeadLetters)?.map(Next::DeadLetters)
        } else if settings.ordered {
            Some(Next::StaysInPlace)
        } else {
            make(Holds::Retries)?.map(Next::Retries)
        };
        Ok(next.map(|next| Given { handle, attempt, seat, origin, topic, next }))
    }
}

/// What a message needs to come again.
pub(super) fn needed(origin: &Origin) -> impl Iterator<Item = Offset> {
    [origin.cause, origin.message].into_iter()
}

pub(super) fn place_of(seat: Seat, queue_offset: u64) -> Acked {
    Acked { topic_id: seat.topic_id, queue: seat.queue, queue_offset }
}
