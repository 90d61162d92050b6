//! From a place to the chains that come next, under the wheel's lock.

use std::collections::VecDeque;

use timerlog::planted::{self, Fault};
use timerlog::{SlotState, TimerWheel};

use super::place::{Place, Ring};

/// Slots whose states are copied at once.
const LEGS: usize = 256;

/// One chain to be walked, as the wheel had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leg {
    pub(super) ring: Ring,
    pub(super) slot: u64,
    pub(super) state: SlotState,
    pub(super) refiling: Refiling,
}

/// Whether the slot was being re-filed when its state was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refiling {
    Yes,
    No,
}

/// The chains that come next at `place` or after it, in the near slots up to `last` and in the far slots
/// that hold those; none when the walk is over. Brings `place` to the ring where they are.
pub(super) fn legs(wheel: &TimerWheel, place: &mut Place, last: u64) -> VecDeque<Leg> {
    let (boundary, width) = (wheel.far_boundary(), wheel.far_width());
    let first_far = boundary / width;
    let refiling = wheel.is_refiling();
    loop {
        match place.ring {
            // They have no chains.
            None => return VecDeque::new(),
            Some(Ring::Near) => {
                let start = place.slot.max(wheel.read_time());
                // While a far slot is re-filed, the near slots of its time hold what the far chain holds,
                // too, and what was filed since. They come after the chain, and without what it held.
                let after_chain = refiling && place.seen.is_some_and(|s| s.is_all_of(first_far));
                let near_end = if after_chain { boundary + width } else { boundary };
                let slots = wheel.first_slots_in(start..near_end.min(last.saturating_add(1)), LEGS);
                if !slots.is_empty() {
                    return of_near(&slots);
                }
                if near_end > last {
                    return VecDeque::new();
                }
                *place = Place::far(start.max(near_end) / width, place.seen);
            }
            Some(Ring::Far) if place.slot < first_far && !planted::is(Fault::PassOverRefiled) => {
                // It was re-filed while the walk rested.
                *place = Place::near(place.slot * width, place.seen);
            }
            Some(Ring::Far) => {
                let end = (last / width).saturating_add(1);
                let slots = wheel.first_far_slots_in(place.slot.max(first_far)..end, LEGS);
                return of_far(&slots, refiling.then_some(first_far));
            }
        }
    }
}

fn of_near(slots: &[(u64, SlotState)]) -> VecDeque<Leg> {
    let leg = |&(slot, state)| Leg { ring: Ring::Near, slot, state, refiling: Refiling::No };
    slots.iter().map(leg).collect()
}

fn of_far(slots: &[(u64, SlotState)], refiled: Option<u64>) -> VecDeque<Leg> {
    let leg = |&(slot, state)| {
        let refiling = if refiled == Some(slot) { Refiling::Yes } else { Refiling::No };
        Leg { ring: Ring::Far, slot, state, refiling }
    };
    slots.iter().map(leg).collect()
}
