//! Leases that run out: each is a record, then readable again, or a dead letter when it was the last
//! attempt. What waits in its place for its retry ends here, too.

use std::collections::VecDeque;
use std::sync::Arc;

use super::dead_letters::NoOrigin;
use super::nack::{needed, place_of};
use super::receive::add;
use super::{Consumers, End, Leases};
use crate::clock::{Now, Timestamp};
use crate::commitlog::{AppendError, Durability, Receipt};
use crate::message::record::{Acked, DeadLetter, DeathReason, LeaseExpired};
use crate::stage::{Progress, Signal, Stage, StageError};
use crate::store::{Group, Holds, MakeError};

/// Leases ended in one turn, at most.
const BATCH: usize = 256;

/// The stage that ends leases.
#[derive(Debug)]
pub struct ExpiryStage {
    consumers: Arc<Consumers>,
    /// Ended, and waiting for the record of it to be durable.
    expiring: VecDeque<(End, Receipt)>,
}

/// Why leases cannot be ended now.
#[derive(Debug, thiserror::Error)]
enum ExpiryError {
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Make(MakeError),
    #[error(transparent)]
    Origin(NoOrigin),
}

impl From<MakeError> for ExpiryError {
    fn from(error: MakeError) -> Self {
        match error {
            MakeError::Append(error) => Self::Append(error),
            error => Self::Make(error),
        }
    }
}

/// Whether a lease that ended was the last one of its message.
enum Last {
    NotYet,
    /// It is a dead letter now.
    Dead,
    /// There is no topic yet for the group's dead letters.
    MakeFirst {
        group: Arc<Group>,
        topic_id: u32,
    },
}

impl Consumers {
    fn last_attempt(&self, leases: &mut Leases, end: &End, now: Now) -> Result<Last, ExpiryError> {
        let held = leases.queues.get(&end.seat);
        let held = held.and_then(|queue| queue.held(end.queue_offset, end.number));
        let Some(lease) = held.filter(|lease| lease.until == end.until) else {
            return Ok(Last::NotYet);
        };
        let group = self.store.group_by_id(end.seat.group_id);
        let last = |group: &Arc<Group>| lease.attempt >= group.settings().max_attempts;
        let Some(group) = group.filter(last) else {
            return Ok(Last::NotYet);
        };
        let origin = match self.origin(end.seat, end.queue_offset) {
            Ok(origin) => origin,
            // Whoever receives it next finds it damaged, and sets it aside.
            Err(NoOrigin::Damaged(_)) => return Ok(Last::NotYet),
            Err(error) => return Err(ExpiryError::Origin(error)),
        };
        let topic_id = origin.topic_id;
        let there = self.store.topic_by_id(topic_id).filter(|topic| !topic.is_deleted());
        let Some(topic) = there else { return Ok(Last::NotYet) };
        let Some(letters) = self.store.system_topic(Holds::DeadLetters, &group, topic_id) else {
            return Ok(Last::MakeFirst { group, topic_id });
        };
        let mut turn = self.store.log().turn_for_accepted(DeadLetter::ENCODED_LENGTH)?;
        if topic.is_deleted() || needed(&origin).any(|at| turn.is_closed(at)) {
            return Ok(Last::NotYet);
        }
        let queue = letters.queue(0).expect("a system topic has a queue");
        let record = DeadLetter {
            group_id: group.id,
            attempts: lease.attempt,
            at: now.wall,
            place: place_of(end.seat, end.queue_offset),
            origin,
            queue_offset: queue.take_offsets(1),
            dead_letters: letters.id,
            reason: DeathReason::LeaseExpired,
        };
        topic.appended(turn.append(record.encode()));
        drop(turn);
        leases.dead(&group, end.seat, topic_id, end.queue_offset);
        Ok(Last::Dead)
    }
}

impl ExpiryStage {
    pub fn new(consumers: Arc<Consumers>) -> Self {
        Self { consumers, expiring: VecDeque::new() }
    }

    /// Appends the records of leases that are over. `true` when any was, or there may be more.
    fn expire(&mut self, now: Now) -> Result<bool, ExpiryError> {
        let mut any = false;
        let consumers = Arc::clone(&self.consumers);
        let mut guard = consumers.leases.lock();
        for _ in 0..BATCH {
            let leases = &mut *guard;
            let Some(end) = leases.ends.first() else { return Ok(any) };
            if end.until > now.monotonic {
                return Ok(any);
            }
            let (place, number) = ((end.seat, end.queue_offset), end.number);
            if leases.nacked.get(&place) == Some(&number) {
                leases.nacked.remove(&place);
            }
            let queue = leases.queues.get_mut(&end.seat);
            if queue.is_some_and(|queue| queue.delay_ends(end.queue_offset, number, end.until)) {
                let receipt = consumers.store.log().latest_receipt();
                self.expiring.push_back((end, receipt));
                any = true;
            }
            match consumers.last_attempt(leases, &end, now) {
                Ok(Last::NotYet) => {}
                Ok(Last::Dead) => {
                    any = true;
                    leases.ends.pop();
                    continue;
                }
                // It is made with no lock held; then the end is looked at again.
                Ok(Last::MakeFirst { group, topic_id }) => {
                    drop(guard);
                    let holds = Holds::DeadLetters;
                    consumers.store.system_topic_or_make(holds, &group, topic_id, now.wall)?;
                    guard = consumers.leases.lock();
                    any = true;
                    continue;
                }
                Err(error) => return Err(error),
            }
            let held = leases.queues.get_mut(&end.seat).and_then(|queue| {
                let lease = queue.held(end.queue_offset, end.number)?;
                (lease.until == end.until).then_some((queue, lease))
            });
            if let Some((queue, lease)) = held {
                let record = LeaseExpired {
                    group_id: end.seat.group_id,
                    at: now.wall,
                    message: Acked {
                        topic_id: end.seat.topic_id,
                        queue: end.seat.queue,
                        queue_offset: end.queue_offset,
                    },
                    attempt: lease.attempt,
                };
                let record = record.encode();
                let mut turn = self.consumers.store.log().turn_for_accepted(record.len())?;
                turn.append(record);
                let receipt = turn.receipt();
                drop(turn);
                queue.expiring(end.queue_offset);
                self.expiring.push_back((end, receipt));
                any = true;
            }
            leases.ends.pop();
        }
        Ok(true)
    }

    /// Makes readable again what is durably over. `true` when something was.
    fn hand_back(&mut self) -> bool {
        let mut any = false;
        while let Some((end, receipt)) = self.expiring.front() {
            if receipt.outcome() != Some(Durability::Durable) {
                break;
            }
            let mut leases = self.consumers.leases.lock();
            if let Some(queue) = leases.queues.get_mut(&end.seat) {
                queue.expired(end.queue_offset, end.number);
            }
            drop(leases);
            let topic_id = self.consumers.topic_of(end.seat);
            self.consumers.polls.wake(end.seat.group_id, topic_id, 1);
            self.expiring.pop_front();
            any = true;
        }
        any
    }

    fn next_wake(&self, now: Now) -> Option<Timestamp> {
        if !self.expiring.is_empty() {
            return now.wall.checked_add(1);
        }
        let leases = self.consumers.leases.lock();
        if !leases.releases.is_empty() {
            return now.wall.checked_add(1);
        }
        let end = leases.ends.first()?;
        Some(add(now.wall, end.until.saturating_sub(now.monotonic)))
    }
}

impl Stage for ExpiryStage {
    fn name(&self) -> &'static str {
        "lease_expiry"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        let handed_back = self.hand_back() | self.consumers.release();
        match self.expire(now) {
            Ok(more) if more || handed_back => return Ok(Progress::Worked),
            Ok(_) => {}
            // Leases end late rather than never: the log has no room right now.
            Err(ExpiryError::Append(AppendError::Overloaded { .. } | AppendError::StorageFull)) => {
                return Ok(now.wall.checked_add(10).map_or(Progress::Idle, Progress::IdleUntil));
            }
            Err(error) => return Err(StageError::new(self.name(), error)),
        }
        Ok(self.next_wake(now).map_or(Progress::Idle, Progress::IdleUntil))
    }

    fn signal(&self) -> &Signal {
        &self.consumers.expiry_signal
    }
}
