//! How the read time moves: forth over what is settled, back with the wall clock.

use super::durable::SnapshotDue;
use super::slot::SlotState;
use super::wheel::TimerWheel;
use crate::planted::{self, Fault};
use crate::position::Position;

/// What came of an attempt to move the read time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the read time may not have moved"]
pub enum Advance {
    /// The slot is settled and emptied; the next one is open.
    Moved,
    /// More was filed in the slot since it was walked. Walk from `last` to where the walk before
    /// began, and try again.
    Joined { last: Position },
    /// Another slot is open.
    NotOpen { read_time: u64 },
    /// The next far slot has to be re-filed first: see [`TimerWheel::refile`].
    FarSlotDue,
}

impl TimerWheel {
    /// Settles the open slot `slot`, whose records up to `walked` were seen (`None`: it was empty),
    /// and opens the next.
    pub fn advance(&mut self, slot: u64, walked: Option<Position>) -> Advance {
        if slot != self.read_time {
            return Advance::NotOpen { read_time: self.read_time };
        }
        if slot >= self.boundary {
            return Advance::FarSlotDue;
        }
        match self.slot(slot) {
            Some(SlotState { last, .. })
                if Some(last) != walked && !planted::is(Fault::AdvanceWithoutJoin) =>
            {
                Advance::Joined { last }
            }
            _ => {
                self.near.ring.clear(slot);
                self.read_time += 1;
                self.touch();
                Advance::Moved
            }
        }
    }

    /// Moves the read time over empty slots: to the first that is not, to `upto`, or to the far
    /// boundary, whichever comes first. Returns where it is now. Never moves it back.
    pub fn skip_empty(&mut self, upto: u64) -> u64 {
        let end = upto.min(self.boundary);
        if self.read_time < end {
            // The boundary is never more than one turn ahead.
            self.read_time = self.near.ring.first_in(self.read_time..end).unwrap_or(end);
            self.touch();
        }
        self.read_time
    }

    /// Moves the read time back to `to`, for a wall clock that was set back, or as near to it as the
    /// slots in use allow: each must still have its own place in the ring. What is due before the
    /// read time then joins the open slot. Returns where the read time is now.
    ///
    /// Take a snapshot before the next checkpoint; [`TimerWheel::flush`] does.
    pub fn step_back(&mut self, to: u64) -> u64 {
        if to >= self.read_time {
            return self.read_time;
        }
        let end = self.end_in_use();
        let limit = match planted::is(Fault::UnclampedStepBack) {
            true => 0,
            false => self.window.step_back_limit(end),
        };
        let read_time = to.max(limit).min(self.read_time);
        if read_time < self.read_time {
            self.read_time = read_time;
            let lower = self.window.boundary_for(read_time).max(end);
            self.boundary = self.boundary.min(lower);
            self.snapshot_due = SnapshotDue::SteppedBack;
            self.touch();
        }
        self.read_time
    }

    /// A boundary that leaves every slot in use on the side where it is, and every far slot its own
    /// place in the ring.
    fn end_in_use(&self) -> u64 {
        if self.refiling.is_some() {
            return self.boundary + self.window.far_width();
        }
        let near_end = self.near.ring.highest().map_or(0, |slot| slot + 1);
        let far_end = self.far.ring.highest().map_or(0, |slot| slot + 1);
        let far_begin = far_end.saturating_sub(self.window.far_slots) * self.window.far_width();
        self.window.boundary_over(near_end).max(far_begin)
    }
}
