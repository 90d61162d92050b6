//! The walk: from a place on, record by record, to what is pending and wanted.

use std::collections::VecDeque;
use std::ops::Range;

use timerlog::planted::{self, Fault};
use timerlog::{Chain, ChainError, Entry, EntryKind, Position, Record};

use super::legs::{Leg, Refiling, legs};
use super::place::{NextRecord, Ring, Seen};
use super::{Budget, Pending, Place};
use crate::clock::Timestamp;
use crate::commitlog::ReadError;
use crate::commitlog::settled::SettledError;
use crate::consumequeue::QueueError;
use crate::message::offset::Offset;
use crate::message::timer_tag::{TimedKind, TimerTag};

/// What an entry must be, as far as it can be told without reading its message.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub topic_id: Option<u32>,
    pub tag_hash: Option<u16>,
    pub deadlines: Range<Timestamp>,
}

impl Wanted {
    pub(super) fn takes(&self, entry: &Entry) -> bool {
        let tag = TimerTag(entry.tag);
        matches!(tag.kind(), Some(TimedKind::Message | TimedKind::Level))
            && self.may_take(Timestamp::from_millis(entry.deadline), tag.tag_hash())
            && self.topic_id.is_none_or(|id| id == tag.topic_id())
    }

    /// The same, of a message whose topic is not known.
    pub(super) fn may_take(&self, deadline: Timestamp, tag_hash: u16) -> bool {
        self.deadlines.contains(&deadline) && self.tag_hash.is_none_or(|hash| hash == tag_hash)
    }
}

/// What came of one step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is pending, and wanted.
    Entry(Entry),
    /// The budget is spent; there may be more.
    Paused,
    /// There is no more.
    End,
}

/// Why a walk cannot go on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WalkError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Settled(#[from] SettledError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A walk over what is pending. It knows at each moment where it stands, and can be taken up there by
/// another walk.
#[derive(Debug)]
pub struct Walk<'a> {
    pub(super) pending: &'a Pending,
    pub(super) wanted: Wanted,
    /// The last near slot to look at.
    last: u64,
    pub(super) place: Place,
    legs: VecDeque<Leg>,
    current: Option<(Leg, Chain)>,
}

impl Pending {
    /// A walk over what is `wanted`, from `place` on or, with `None`, from the beginning.
    pub fn walk(&self, wanted: Wanted, place: Option<Place>) -> Walk<'_> {
        let last = self.slot_of(wanted.deadlines.end.as_millis().saturating_sub(1));
        // What came too late for its own slot joined the one that was open then.
        self.walk_slots(wanted, place.unwrap_or(Place::level(0)), last.max(self.opened()))
    }

    pub(super) fn walk_slots(&self, wanted: Wanted, place: Place, last: u64) -> Walk<'_> {
        Walk { pending: self, wanted, last, place, legs: VecDeque::new(), current: None }
    }
}

impl Walk<'_> {
    /// Where the walk stands: after what the last step gave.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Goes on to what is pending and wanted next.
    ///
    /// # Errors
    ///
    /// [`WalkError`]; the walk stands before what could not be read.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step, WalkError> {
        loop {
            if budget.is_spent() {
                return Ok(Step::Paused);
            }
            if self.place.ring.is_none() {
                budget.spend(1);
                match self.step_level(budget)? {
                    Some(entry) => return Ok(Step::Entry(entry)),
                    None => continue,
                }
            }
            let Some((leg, mut chain)) = self.current.take() else {
                if !self.next_leg() {
                    return Ok(Step::End);
                }
                continue;
            };
            budget.spend(1);
            match chain.next() {
                Some(Ok((position, record))) => {
                    let wanted = self.passes(&leg, &record)?;
                    self.move_on(leg, chain, position);
                    if wanted {
                        return Ok(Step::Entry(record.entry));
                    }
                }
                None | Some(Err(ChainError::Released { .. })) => self.look_again(leg),
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }

    /// Makes the next chain the current one. `false` when there is none.
    fn next_leg(&mut self) -> bool {
        if self.legs.is_empty() {
            let wheel = self.pending.shared.wheel.lock();
            self.legs = legs(&wheel, &mut self.place, self.last);
        }
        let Some(leg) = self.legs.pop_front() else { return false };
        let start = self.start_of(&leg);
        if (self.place.ring, self.place.slot) != (Some(leg.ring), leg.slot) {
            let seen = self.place.seen;
            self.place = match leg.ring {
                Ring::Near => Place::near(leg.slot, seen),
                Ring::Far => Place::far(leg.slot, seen),
            };
        }
        let reader = match leg.ring {
            Ring::Near => self.pending.reader.near(),
            Ring::Far => self.pending.reader.far(),
        };
        self.current = Some((leg, reader.chain(leg.slot, start, None)));
        true
    }

    /// The record to begin with: where the walk stands, if that still is in the chain.
    fn start_of(&self, leg: &Leg) -> Position {
        let here = (self.place.ring, self.place.slot) == (Some(leg.ring), leg.slot);
        let next = self.place.next.filter(|_| here);
        let next = next.filter(|next| next.incarnation == self.pending.store.incarnation());
        next.and_then(|next| Position::new(next.position))
            .filter(|position| (leg.state.first..=leg.state.last).contains(position))
            .unwrap_or(leg.state.last)
    }

    /// Whether the record is an entry that is to be given out.
    fn passes(&mut self, leg: &Leg, record: &Record) -> Result<bool, WalkError> {
        let entry = &record.entry;
        if record.kind != EntryKind::Add || self.was_seen(leg, entry.offset) {
            return Ok(false);
        }
        if !self.wanted.takes(entry) {
            return Ok(false);
        }
        Ok(self.has_topic(entry.tag) && !self.is_settled(Offset::new(entry.offset))?)
    }

    /// A topic that was deleted takes what waited in it along.
    pub(super) fn has_topic(&self, tag: u64) -> bool {
        let topic = self.pending.store.topic_by_id(TimerTag(tag).topic_id());
        topic.is_some_and(|topic| !topic.is_deleted())
    }

    pub(super) fn is_settled(&self, cause: Offset) -> Result<bool, SettledError> {
        let settled = self.pending.store.log().settled().get(cause)?;
        Ok(settled.is_some() && !planted::is(Fault::ListSettled))
    }

    /// Whether the entry was seen in a far slot that is, or was, re-filed; notes it if the slot is far.
    fn was_seen(&mut self, leg: &Leg, offset: u64) -> bool {
        let far_slot = match leg.ring {
            Ring::Near => leg.slot / self.pending.far_width,
            Ring::Far => leg.slot,
        };
        let seen = self.place.seen.filter(|seen| seen.far_slot == far_slot);
        if seen.is_some_and(|seen| seen.covers(far_slot, offset)) {
            return true;
        }
        if leg.ring == Ring::Far {
            let (low, high) = seen.map_or((offset, offset), |seen| (seen.low, seen.high));
            let (low, high) = (low.min(offset), high.max(offset));
            self.place.seen = Some(Seen { far_slot, low, high });
        }
        false
    }

    /// The record at `position` is done with.
    fn move_on(&mut self, leg: Leg, chain: Chain, position: Position) {
        if let Some(next) = chain.next_position() {
            let incarnation = self.pending.store.incarnation();
            self.place.next = Some(NextRecord { position: next.get(), incarnation });
            self.current = Some((leg, chain));
            return;
        }
        if position > leg.state.first {
            self.look_again(leg);
        } else {
            self.finish(leg);
        }
    }

    /// The chain was seen to its end.
    fn finish(&mut self, leg: Leg) {
        self.place = match (leg.ring, leg.refiling) {
            (Ring::Near, _) => Place::near(leg.slot + 1, self.place.seen),
            (Ring::Far, Refiling::No) => Place::far(leg.slot + 1, None),
            (Ring::Far, Refiling::Yes) => {
                let start = leg.slot * self.pending.far_width;
                // What is left of the batch lies behind the near slots of this one's time.
                self.legs.clear();
                Place::near(start, Some(Seen::all_of(leg.slot, self.place.seen)))
            }
        };
    }

    /// The rest of the chain is gone. If the slot is as it was, what is missing lies below the floor of the
    /// log, where everything is settled; so it is after a clock was set back, for a slot that lies ahead
    /// again. Otherwise the slot was done, or written again, since its state was copied: the wheel is asked
    /// anew where to go on.
    fn look_again(&mut self, leg: Leg) {
        let wheel = self.pending.shared.wheel.lock();
        let state = match leg.ring {
            Ring::Near => wheel.slot(leg.slot),
            Ring::Far => wheel.far_slot(leg.slot),
        };
        drop(wheel);
        if state.is_some_and(|state| state.first == leg.state.first) {
            return self.finish(leg);
        }
        self.legs.clear();
        self.place.next = None;
    }
}
