//! The leases of one queue to one group: what is out, what is readable again, and how far the cursor is.
//!
//! ```text
//!         floor                          cursor                        committed
//!   acked   │ out, ready again, left out   │ not looked at in this life  │
//!   ────────┴──────────────────────────────┴─────────────────────────────┴──> queue offset
//! ```
//!
//! Memory only: a restart makes what was out readable again. What must survive (acks, attempts, what the
//! filter left out) is in the group's progress, folded from the log.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::bounds::Part;
use crate::clock::{Now, Timestamp};
use crate::store::QueueProgress;
use timerlog::planted::{self, Fault};

/// Names a lease: the incarnation in the upper 24 bits, a counter below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LeaseNumber(pub(super) u64);

impl LeaseNumber {
    const COUNTER_BITS: u32 = 40;

    pub(super) fn first_of(incarnation: u64) -> Self {
        Self(incarnation << Self::COUNTER_BITS)
    }

    pub(super) fn next(&mut self) -> Self {
        self.0 += 1;
        *self
    }

    pub(super) fn is_of(self, incarnation: u64) -> bool {
        self.0 >> Self::COUNTER_BITS == incarnation & (u64::MAX >> Self::COUNTER_BITS)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) number: LeaseNumber,
    pub(super) attempt: u32,
    /// On the monotonic clock: a step of the wall clock shortens no lease.
    pub(super) until: Duration,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Held,
    /// Its ack is appended; the fold will say that it is acknowledged.
    Acking,
    /// It ran out; its record is on the way to the disk.
    Expiring,
    /// Given back, and waiting in its place until the lease's end.
    Delayed,
}

/// What a handle is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The message is out under this handle.
    Held,
    /// It is acknowledged, or about to be, under this handle.
    Acked,
    /// It was given back under this handle.
    Nacked,
    Void,
}

#[derive(Debug)]
pub(super) struct QueueLeases {
    cursor: u64,
    out: BTreeMap<u64, Lease>,
    /// Readable again, with the attempts that were made.
    ready: BTreeMap<u64, u32>,
    acking: VecDeque<u64>,
    /// Passed by the cursor because the filter leaves them out, and not recorded yet.
    excluded: Vec<Stretch>,
    /// What is out or waits to be handed out again, which has a bound: then the queue waits for acks. What
    /// the filter leaves out does not count.
    part: Part,
    /// The queue waits for acks.
    full: bool,
    /// What counts instead of the folded progress until dispatch has come to the record that says where
    /// the group starts: what is folded is still that of before.
    pub(super) ahead_of_fold: Option<QueueProgress>,
}

/// Offsets from `first` up to but without `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) first: u64,
    pub(super) end: u64,
}

/// What is to be done with the next unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    HandOut,
    /// As above; so many attempts were made of it before.
    HandOutAgain(u32),
    /// It is left for later, by whoever judges: the queue goes on behind it.
    Pass,
    /// The filter leaves it out.
    Exclude,
    /// This turn has looked at enough.
    EndOfTurn,
}

/// What is out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    None,
    /// Of each message group one.
    ByMessageGroup,
}

/// A message about to be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) queue_offset: u64,
    pub(super) attempt: u32,
    pub(super) number: LeaseNumber,
}

/// The terms of new leases.
pub(super) struct Terms<'a> {
    pub(super) numbers: &'a mut LeaseNumber,
    pub(super) now: Now,
    pub(super) until: Duration,
    pub(super) order: Order,
    /// What waits in its place by a record of an earlier life: until when.
    pub(super) delayed: Vec<(u64, LeaseNumber, Duration)>,
    /// Judges units that were not handed out before.
    pub(super) judge: &'a mut dyn FnMut(u64) -> Verdict,
}

impl QueueLeases {
    pub(super) fn new(floor: u64, part: Part) -> Self {
        Self {
            cursor: floor,
            out: BTreeMap::new(),
            ready: BTreeMap::new(),
            acking: VecDeque::new(),
            excluded: Vec::new(),
            part,
            full: false,
            ahead_of_fold: None,
        }
    }

    /// Starts at the progress, by a record that dispatch has not come to yet.
    pub(super) fn starting_at(progress: QueueProgress, part: Part) -> Self {
        let floor = progress.floor();
        Self { ahead_of_fold: Some(progress), ..Self::new(floor, part) }
    }

    /// All handles are void: what is out can be read again, as after a restart.
    pub(super) fn drop_leases(&mut self) {
        for (&offset, lease) in &self.out {
            if !matches!(lease.phase, Phase::Acking | Phase::Delayed) {
                self.ready.insert(offset, lease.attempt - 1);
            }
        }
        self.out.retain(|_, lease| matches!(lease.phase, Phase::Acking | Phase::Delayed));
        self.recount();
    }

    /// How many messages are out.
    pub(super) fn in_flight(&self) -> u64 {
        (self.out.len() - self.acking.len()) as u64
    }

    /// What was left out since it was last asked for.
    pub(super) fn excluded(&self) -> &[Stretch] {
        &self.excluded
    }

    pub(super) fn excluded_is_recorded(&mut self) {
        self.excluded.clear();
    }

    /// Whether the queue has waited for an ack, and one has come.
    pub(super) fn has_room_again(&mut self) -> bool {
        let room = self.full && !self.part.is_full();
        self.full &= !room;
        room
    }

    /// Whether there are messages that cannot be handed out because too many are out.
    pub(super) fn is_held_back(&self, committed: u64) -> bool {
        self.ready.is_empty() && self.cursor < committed && self.is_full()
    }

    /// Whether as many messages of this queue as may be are out, or wait to be handed out again.
    pub(super) fn is_at_bound(&self) -> bool {
        self.part.is_full()
    }

    fn is_full(&self) -> bool {
        self.part.is_full() || self.part.all_are_full()
    }

    /// To be called whenever what is kept has changed.
    fn recount(&mut self) {
        self.part.set(self.out.len() - self.acking.len() + self.ready.len());
    }

    /// Whether the lease lasts until just then.
    pub(super) fn lasts_until(
        &self,
        queue_offset: u64,
        number: LeaseNumber,
        until: Duration,
    ) -> bool {
        self.out.get(&queue_offset).is_some_and(|lease| {
            (lease.number, lease.until) == (number, until) && lease.phase != Phase::Acking
        })
    }

    /// Whether what is appended to end the lease is not folded yet.
    pub(super) fn is_acking(&self, queue_offset: u64, number: LeaseNumber) -> bool {
        let lease = self.out.get(&queue_offset);
        lease.is_some_and(|lease| lease.number == number && lease.phase == Phase::Acking)
    }

    /// Leases up to `max` messages: those that came back first, then new ones below `committed`.
    pub(super) fn grant(
        &mut self,
        max: usize,
        committed: u64,
        progress: &QueueProgress,
        terms: &mut Terms<'_>,
        granted: &mut Vec<Granted>,
    ) {
        self.forget_acked(progress);
        let wanted = granted.len() + max;
        while granted.len() < wanted {
            let next = self.next(committed, progress, terms);
            let Some((queue_offset, attempts)) = next else { return };
            let made = attempts.max(progress.attempts(queue_offset));
            let attempt = made.saturating_add(1);
            let number = terms.numbers.next();
            let lease = Lease { number, attempt, until: terms.until, phase: Phase::Held };
            self.out.insert(queue_offset, lease);
            self.recount();
            granted.push(Granted { queue_offset, attempt, number });
        }
    }

    pub(super) fn may_have(&self, committed: u64) -> bool {
        !self.ready.is_empty() || self.cursor < committed && !self.is_full()
    }

    fn next(
        &mut self,
        committed: u64,
        progress: &QueueProgress,
        terms: &mut Terms<'_>,
    ) -> Option<(u64, u32)> {
        while let Some((offset, attempts)) = self.ready.pop_first() {
            if attempts > 0 || !self.waits(offset, progress, terms) {
                return Some((offset, attempts));
            }
        }
        // Those that wait in their place were readable a moment ago.
        self.recount();
        if self.is_full() {
            self.full = self.part.is_full();
            return None;
        }
        loop {
            // Acked in an earlier life, or left out in one.
            self.cursor = progress.next_unacked(self.cursor);
            let offset = self.cursor;
            if offset >= committed {
                return None;
            }
            // Held, or done with, under a handle of an earlier life. In an ordered group it owns its message
            // group all the same.
            if self.out.contains_key(&offset) {
                if terms.order == Order::ByMessageGroup
                    && (terms.judge)(offset) == Verdict::EndOfTurn
                {
                    return None;
                }
                self.cursor += 1;
                continue;
            }
            let attempts = match (terms.judge)(offset) {
                Verdict::EndOfTurn => return None,
                Verdict::HandOut => 0,
                Verdict::HandOutAgain(attempts) => attempts,
                Verdict::Pass => {
                    self.cursor += 1;
                    continue;
                }
                Verdict::Exclude => {
                    self.cursor += 1;
                    self.exclude(offset);
                    continue;
                }
            };
            self.cursor += 1;
            if !self.waits(offset, progress, terms) {
                return Some((offset, attempts));
            }
        }
    }

    /// Whether the message was given back in an earlier life and waits in its place; then it does.
    fn waits(&mut self, offset: u64, progress: &QueueProgress, terms: &mut Terms<'_>) -> bool {
        let Some(until) = progress.delayed_until(offset) else { return false };
        if until <= terms.now.wall {
            return false;
        }
        let number = terms.numbers.next();
        let until = terms.now.monotonic + Duration::from_millis(until.since(terms.now.wall));
        let attempt = progress.attempts(offset);
        self.out.insert(offset, Lease { number, attempt, until, phase: Phase::Delayed });
        terms.delayed.push((offset, number, until));
        true
    }

    fn exclude(&mut self, offset: u64) {
        match self.excluded.last_mut() {
            Some(last) if last.end == offset => last.end += 1,
            _ => self.excluded.push(Stretch { first: offset, end: offset + 1 }),
        }
    }

    /// What the handle with this number is worth. `earlier_life` says that it was given before the last
    /// start: it is good until its message is handed out again, unless its `attempt` is recorded as ended.
    pub(super) fn standing(
        &mut self,
        queue_offset: u64,
        number: LeaseNumber,
        attempt: u32,
        earlier_life: bool,
        progress: &QueueProgress,
        now: Duration,
    ) -> Standing {
        self.forget_acked(progress);
        if let Some(lease) = self.out.get(&queue_offset) {
            return match lease.phase {
                _ if lease.number != number => Standing::Void,
                Phase::Acking => Standing::Acked,
                Phase::Delayed => Standing::Nacked,
                Phase::Held if now < lease.until => Standing::Held,
                Phase::Held | Phase::Expiring => Standing::Void,
            };
        }
        if progress.is_acked(queue_offset) {
            // Another handle may have given it back, in an earlier life, too.
            let went_on =
                progress.is_returned(queue_offset) && !planted::is(Fault::ReturnedIsAcked);
            return if went_on { Standing::Nacked } else { Standing::Acked };
        }
        // A lease of an earlier life that was extended in this one, and ran out, is readable again.
        let came_back = self.ready.contains_key(&queue_offset);
        let ended = attempt <= progress.attempts(queue_offset);
        if earlier_life && queue_offset >= self.cursor && !came_back && !ended {
            return Standing::Held;
        }
        Standing::Void
    }

    /// The message's ack is appended.
    pub(super) fn acking(&mut self, queue_offset: u64, number: LeaseNumber) {
        let lease = Lease { number, attempt: 0, until: Duration::MAX, phase: Phase::Acking };
        self.out.insert(queue_offset, lease);
        self.acking.push_back(queue_offset);
        self.recount();
    }

    /// The message was given back, and stays in its place until `until`.
    pub(super) fn delay(
        &mut self,
        queue_offset: u64,
        number: LeaseNumber,
        attempt: u32,
        until: Duration,
    ) {
        let lease = Lease { number, attempt, until, phase: Phase::Delayed };
        self.out.insert(queue_offset, lease);
        // It may be one of an earlier life that was not looked at in this one.
        self.ready.remove(&queue_offset);
        self.recount();
    }

    /// What waited in its place until `until` is about to be readable again. `false` when it does not.
    pub(super) fn delay_ends(
        &mut self,
        queue_offset: u64,
        number: LeaseNumber,
        until: Duration,
    ) -> bool {
        let lease = self.out.get_mut(&queue_offset);
        let waits = |lease: &&mut Lease| {
            (lease.number, lease.until, lease.phase) == (number, until, Phase::Delayed)
        };
        let Some(lease) = lease.filter(waits) else { return false };
        lease.phase = Phase::Expiring;
        true
    }

    /// What waited for another one of its message group may be handed out.
    pub(super) fn unpark(&mut self, queue_offset: u64) {
        // One that is out under a handle of an earlier life is not handed out once more.
        if !self.out.contains_key(&queue_offset) {
            self.ready.insert(queue_offset, 0);
        }
        self.recount();
    }

    /// Where new messages are looked for.
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// How many acks are appended and not folded yet.
    pub(super) fn acking_beyond(&self, progress: &QueueProgress) -> u64 {
        self.acking.iter().filter(|&&offset| !progress.is_acked(offset)).count() as u64
    }

    /// Whether an ack, or what counts as one, is appended or folded.
    pub(super) fn is_done(&self, queue_offset: u64, progress: &QueueProgress) -> bool {
        let lease = self.out.get(&queue_offset);
        lease.is_some_and(|lease| lease.phase == Phase::Acking) || progress.is_acked(queue_offset)
    }

    /// The lease now lasts until `until`.
    pub(super) fn extend(
        &mut self,
        queue_offset: u64,
        number: LeaseNumber,
        attempt: u32,
        until: Duration,
    ) {
        let lease = Lease { number, attempt, until, phase: Phase::Held };
        self.out.insert(queue_offset, lease);
        self.recount();
    }

    /// Nobody took the message: as if it had never been out.
    pub(super) fn give_back(&mut self, queue_offset: u64, number: LeaseNumber) {
        if let Some(lease) = self.held(queue_offset, number) {
            let attempts = lease.attempt - 1;
            self.out.remove(&queue_offset);
            self.ready.insert(queue_offset, attempts);
        }
        self.recount();
    }

    /// The lease, if it is still held under this number.
    pub(super) fn held(&self, queue_offset: u64, number: LeaseNumber) -> Option<Lease> {
        let lease = self.out.get(&queue_offset)?;
        (lease.number == number && lease.phase == Phase::Held).then_some(*lease)
    }

    pub(super) fn expiring(&mut self, queue_offset: u64) {
        if let Some(lease) = self.out.get_mut(&queue_offset) {
            lease.phase = Phase::Expiring;
        }
    }

    /// The record of the lease's end is durable: the message is readable again, unless the group's offsets
    /// were reset meanwhile.
    pub(super) fn expired(&mut self, queue_offset: u64, number: LeaseNumber) {
        let lease = self.out.get(&queue_offset).copied();
        if let Some(lease) = lease.filter(|lease| lease.number == number) {
            self.out.remove(&queue_offset);
            self.ready.insert(queue_offset, lease.attempt);
        }
        self.recount();
    }

    fn forget_acked(&mut self, progress: &QueueProgress) {
        while let Some(&offset) = self.acking.front() {
            if !progress.is_acked(offset) {
                break;
            }
            self.acking.pop_front();
            self.out.remove(&offset);
        }
        self.recount();
    }
}

/// When a handle's lease ended as it was first given: an ack under it is repeated until then.
pub(super) fn within_first_lease(until: Timestamp, now: Timestamp) -> bool {
    now < until
}

#[cfg(test)]
mod tests;
