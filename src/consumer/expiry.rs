//! Leases that run out: each is a record, then readable again.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

use super::receive::add;
use super::{Consumers, End};
use crate::clock::{Now, Timestamp};
use crate::commitlog::{AppendError, Durability, Receipt};
use crate::message::record::{Acked, LeaseExpired};
use crate::stage::{Progress, Signal, Stage, StageError};

/// Leases ended in one turn, at most.
const BATCH: usize = 256;

/// The stage that ends leases.
#[derive(Debug)]
pub struct ExpiryStage {
    consumers: Arc<Consumers>,
    /// Ended, and waiting for the record of it to be durable.
    expiring: VecDeque<(End, Receipt)>,
}

impl ExpiryStage {
    pub fn new(consumers: Arc<Consumers>) -> Self {
        Self { consumers, expiring: VecDeque::new() }
    }

    /// Appends the records of leases that are over. `true` when any was, or there may be more.
    fn expire(&mut self, now: Now) -> Result<bool, AppendError> {
        let mut any = false;
        let mut guard = self.consumers.leases.lock();
        let leases = &mut *guard;
        for _ in 0..BATCH {
            let Some(&Reverse(end)) = leases.ends.peek() else { return Ok(any) };
            if end.until > now.monotonic {
                return Ok(any);
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
                let mut turn = self.consumers.store.log().turn(record.len())?;
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
            self.consumers.polls.wake(end.seat.group_id, end.seat.topic_id, 1);
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
        let Reverse(end) = leases.ends.peek()?;
        Some(add(now.wall, end.until.saturating_sub(now.monotonic)))
    }
}

impl Stage for ExpiryStage {
    fn name(&self) -> &'static str {
        "lease_expiry"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        let handed_back = self.hand_back();
        match self.expire(now) {
            Ok(more) if more || handed_back => return Ok(Progress::Worked),
            Ok(_) => {}
            // Leases end late rather than never: the log has no room right now.
            Err(AppendError::Overloaded { .. } | AppendError::StorageFull) => {
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
