//! Which slot a deadline belongs to, and in which ring: arithmetic only.
//!
//! ```text
//!        R                      F
//!   -----|----------|-----------|----------|----------|---- - - slots of time
//!        |<------- near ------->|<----------- far ------------ - -
//!        |                      a multiple of W
//!        the read time
//! ```
//!
//! With `n` slots in the near ring, `W = n / 4` of them make one far slot, and the boundary F is kept
//! at `(R / W + 2) * W` at most when it is moved. So it lies between `R + W` and `R + 2W`, what is
//! filed near lies within half a ring of R, and there is a whole far slot's time to re-file the next
//! far slot before R runs into it.

/// Slots as numbers since 1970, for one choice of measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) precision_ms: u64,
    pub(super) near_slots: u64,
    pub(super) far_slots: u64,
}

impl Window {
    /// Near slots in one far slot.
    pub(super) const fn far_width(self) -> u64 {
        self.near_slots / 4
    }

    pub(super) const fn slot_of(self, deadline_ms: u64) -> u64 {
        deadline_ms / self.precision_ms
    }

    pub(super) const fn far_slot_of(self, slot: u64) -> u64 {
        slot / self.far_width()
    }

    /// Where the boundary may go, at most, with the read time at `read_time`.
    pub(super) const fn boundary_for(self, read_time: u64) -> u64 {
        (self.far_slot_of(read_time) + 2) * self.far_width()
    }

    /// The first slot that is beyond the far ring.
    pub(super) const fn end(self, boundary: u64) -> u64 {
        boundary.saturating_add(self.far_slots * self.far_width())
    }

    /// How far the read time may step back when no near slot at or after `end` is occupied, so that
    /// all of them, and all that lie between, still have a place of their own in the ring.
    pub(super) const fn step_back_limit(self, end: u64) -> u64 {
        end.saturating_sub(self.near_slots)
    }

    /// The boundary that keeps the slots before `end` near: `end`, rounded up to a far slot.
    pub(super) const fn boundary_over(self, end: u64) -> u64 {
        end.div_ceil(self.far_width()) * self.far_width()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: Window = Window { precision_ms: 10, near_slots: 16, far_slots: 8 };
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;

    fn default() -> Window {
        let config = super::super::Config::default();
        Window {
            precision_ms: u64::from(config.precision_ms),
            near_slots: config.near_slots,
            far_slots: config.far_slots,
        }
    }

    #[test]
    fn a_deadline_belongs_to_the_slot_it_lies_in() {
        for deadline in 0..1000 {
            let slot = SMALL.slot_of(deadline);
            assert!((slot * 10..slot * 10 + 10).contains(&deadline));
        }
    }

    #[test]
    fn the_boundary_is_a_multiple_and_between_one_and_two_far_slots_ahead() {
        for read_time in 0..500 {
            let boundary = SMALL.boundary_for(read_time);
            assert_eq!(boundary % SMALL.far_width(), 0);
            assert!(boundary > read_time + SMALL.far_width());
            assert!(boundary <= read_time + SMALL.near_slots / 2, "within half a ring");
        }
    }

    #[test]
    fn a_hundred_years_are_within_the_far_ring() {
        let window = default();
        let now = window.slot_of(2_000_000_000_000);
        let century = window.slot_of(2_000_000_000_000 + 100 * 366 * DAY_MS);
        assert!(century < window.end(window.boundary_for(now)));
        assert_eq!(window.far_width() * 1000 / DAY_MS, 3, "a far slot is three days");
    }

    #[test]
    fn nothing_overflows_at_the_end_of_time() {
        let window = default();
        let last = window.slot_of(u64::MAX);
        assert!(window.boundary_for(last) > last);
        assert_eq!(window.end(u64::MAX - 1), u64::MAX);
    }

    proptest! {
        #[test]
        fn after_a_step_back_every_near_slot_has_its_own_index(end in 0_u64..10_000, to in 0_u64..10_000) {
            let end = SMALL.boundary_over(end);
            let read_time = to.max(SMALL.step_back_limit(end));
            prop_assert!(end <= read_time + SMALL.near_slots);
            prop_assert!(SMALL.boundary_for(read_time) <= read_time + SMALL.near_slots);
        }

        #[test]
        fn far_slots_tile_the_time(slot in any::<u64>()) {
            let far = default().far_slot_of(slot);
            let start = far * default().far_width();
            prop_assert!(slot >= start && slot - start < default().far_width());
        }
    }
}
