//! Order: in an ordered group one message of a message group is out at a time.
//!
//! ```text
//!   units   a1  b1  a2  a3  c1  b2          out: a1, b1, c1
//!           │   │   └─┬─┘   │   │
//!          out out  parked out parked       a1 acknowledged (folded) ──> a2 is handed out next
//! ```
//!
//! Ground rules:
//!
//! - A message group is *owned* by the first of its messages that is not done: out, ended and to come again,
//!   or waiting in its place for its retry. The others are *parked* as the cursor passes them, and other
//!   message groups go on behind them.
//! - The owner is done when dispatch has folded its ack (or that it is a dead letter), not when that is
//!   appended: after a power cut in between the next one would have been out before it.
//! - Ownership is memory. After a restart the cursor begins at the floor, so the first that is not done
//!   owns its message group again; attempts and the time it waits for are in the progress.
//! - Which message group a unit has is read from the head of its message, once, ahead of the grant and
//!   outside of the lock, and kept as 64 bits of XXH3. Two message groups with the same hash wait for each
//!   other: that costs time, never order.
//! - Of one queue at most [`MAX_PARKED`] messages are parked; then that queue waits.
//! - What is redriven stands in the retry queue: it takes its turn in its message group with those that are
//!   parked, after those of the topic's own queues.
//! - Messages without a message group have no order.

use std::collections::{BTreeSet, HashMap};

use timerlog::planted::{self, Fault};

use super::Seat;
use super::lease::Verdict;

/// Messages of one queue that may wait for others of their message groups.
pub const MAX_PARKED: usize = 16_384;

/// One unit of one queue.
pub(super) type Place = (Seat, u64);

/// The message groups of one topic, for one ordered group.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// By the hash of the message group.
    owners: HashMap<u64, Place>,
    parked: HashMap<u64, BTreeSet<Place>>,
    /// The message group of what owns or is parked.
    of: HashMap<Place, u64>,
    waiting: HashMap<Seat, usize>,
    /// Read ahead of the cursor; `None` has no message group.
    heads: HashMap<Place, Option<u64>>,
}

/// What is known of a unit at the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    As(Verdict),
    /// Its head is to be read first.
    Unread,
    /// As many are parked as may be.
    Full,
}

impl Lanes {
    /// The message's group, read ahead.
    pub(super) fn read(&mut self, place: Place, message_group: Option<u64>) {
        self.heads.insert(place, message_group);
    }

    pub(super) fn is_read(&self, place: Place) -> bool {
        self.heads.contains_key(&place)
    }

    /// What to do with the unit at the cursor.
    pub(super) fn judge(&mut self, place: Place) -> Judged {
        let Some(&head) = self.heads.get(&place) else { return Judged::Unread };
        let Some(hash) = head.filter(|_| !planted::is(Fault::NoMessageGroups)) else {
            self.heads.remove(&place);
            return Judged::As(Verdict::HandOut);
        };
        if let Some(owner) = self.owners.get(&hash)
            && *owner != place
        {
            let waiting = self.waiting.entry(place.0).or_default();
            if *waiting >= MAX_PARKED {
                return Judged::Full;
            }
            *waiting += 1;
            self.parked.entry(hash).or_default().insert(place);
            self.of.insert(place, hash);
            self.heads.remove(&place);
            return Judged::As(Verdict::Pass);
        }
        self.owners.insert(hash, place);
        self.of.insert(place, hash);
        self.heads.remove(&place);
        Judged::As(Verdict::HandOut)
    }

    /// The filter leaves the unit out: nothing need be known of it.
    pub(super) fn forget_head(&mut self, place: Place) {
        self.heads.remove(&place);
    }

    /// The message is done; answers which one of its message group may be handed out next.
    pub(super) fn release(&mut self, place: Place) -> Option<Place> {
        let hash = *self.of.get(&place)?;
        if self.owners.get(&hash) != Some(&place) {
            return None;
        }
        self.of.remove(&place);
        self.owners.remove(&hash);
        let parked = self.parked.get_mut(&hash)?;
        let next = parked.pop_first();
        if parked.is_empty() {
            self.parked.remove(&hash);
        }
        let next = next?;
        self.unpark(next.0);
        self.owners.insert(hash, next);
        Some(next)
    }

    /// How many queues wait since as many of their messages as may be are parked.
    pub(super) fn queues_at_bound(&self) -> usize {
        self.waiting.values().filter(|&&waiting| waiting >= MAX_PARKED).count()
    }

    fn unpark(&mut self, seat: Seat) {
        if let Some(waiting) = self.waiting.get_mut(&seat) {
            *waiting -= 1;
        }
    }

    /// The queue is read from elsewhere: nothing of it owns or waits. Answers what may be handed out of
    /// other queues.
    pub(super) fn forget_queue(&mut self, seat: Seat) -> Vec<Place> {
        self.heads.retain(|place, _| place.0 != seat);
        self.waiting.remove(&seat);
        let of = &mut self.of;
        self.parked.retain(|_, parked| {
            parked.retain(|place| {
                let stays = place.0 != seat;
                if !stays {
                    of.remove(place);
                }
                stays
            });
            !parked.is_empty()
        });
        let mut gone: Vec<_> =
            self.owners.values().filter(|place| place.0 == seat).copied().collect();
        gone.sort_unstable();
        gone.into_iter().filter_map(|place| self.release(place)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(queue: u16, offset: u64) -> Place {
        (Seat { group_id: 1, topic_id: 2, queue }, offset)
    }

    fn judge(lanes: &mut Lanes, place: Place, message_group: Option<u64>) -> Judged {
        lanes.read(place, message_group);
        lanes.judge(place)
    }

    const OUT: Judged = Judged::As(Verdict::HandOut);
    const PARKED: Judged = Judged::As(Verdict::Pass);

    #[test]
    fn of_a_message_group_one_is_out_and_the_next_comes_in_order() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.judge(place(0, 0)), Judged::Unread);
        assert_eq!(judge(&mut lanes, place(0, 0), Some(7)), OUT);
        assert_eq!(judge(&mut lanes, place(0, 1), Some(8)), OUT);
        assert_eq!(judge(&mut lanes, place(0, 2), Some(7)), PARKED);
        assert_eq!(judge(&mut lanes, place(0, 3), None), OUT);
        assert_eq!(judge(&mut lanes, place(0, 4), Some(7)), PARKED);
        assert_eq!(lanes.release(place(0, 4)), None, "it was not out");
        assert_eq!(lanes.release(place(0, 0)), Some(place(0, 2)));
        assert_eq!(lanes.release(place(0, 0)), None, "once");
        assert_eq!(judge(&mut lanes, place(0, 5), Some(7)), PARKED);
        assert_eq!(lanes.release(place(0, 2)), Some(place(0, 4)));
        assert_eq!(lanes.release(place(0, 4)), Some(place(0, 5)));
        assert_eq!(lanes.release(place(0, 5)), None);
        assert_eq!(judge(&mut lanes, place(0, 6), Some(7)), OUT);
    }

    #[test]
    fn at_the_bound_a_queue_waits_and_another_does_not() {
        let mut lanes = Lanes::default();
        let bound = MAX_PARKED as u64;
        assert_eq!(judge(&mut lanes, place(0, 0), Some(7)), OUT);
        for offset in 1..=bound {
            assert_eq!(judge(&mut lanes, place(0, offset), Some(7)), PARKED);
        }
        assert_eq!(judge(&mut lanes, place(0, bound + 1), Some(7)), Judged::Full);
        assert_eq!(lanes.queues_at_bound(), 1);
        assert_eq!(judge(&mut lanes, place(1, 0), Some(7)), PARKED);
        assert_eq!(lanes.release(place(0, 0)), Some(place(0, 1)));
        assert_eq!(lanes.queues_at_bound(), 0);
        assert_eq!(lanes.judge(place(0, bound + 1)), PARKED, "it was read before");
    }

    #[test]
    fn a_queue_that_is_forgotten_leaves_its_message_groups_to_others() {
        let mut lanes = Lanes::default();
        assert_eq!(judge(&mut lanes, place(0, 0), Some(7)), OUT);
        assert_eq!(judge(&mut lanes, place(0, 1), Some(7)), PARKED);
        assert_eq!(judge(&mut lanes, place(1, 9), Some(7)), PARKED);
        assert_eq!(lanes.forget_queue(place(0, 0).0), [place(1, 9)]);
        assert_eq!(judge(&mut lanes, place(0, 0), Some(7)), PARKED);
        assert_eq!(lanes.release(place(1, 9)), Some(place(0, 0)));
    }
}
