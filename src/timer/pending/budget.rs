//! How much one call may do.

use std::fmt;
use std::time::Duration;

use crate::clock::Clock;

/// What is spent between two looks at the clock.
const A_LOOK: u64 = 64;

/// Bounds a walk: by records, and by time as a clock shows it. At least one record is always allowed, so
/// that a walk that is resumed again and again comes to its end.
pub struct Budget<'a> {
    clock: &'a dyn Clock,
    until: Duration,
    left: u64,
    to_look: u64,
    spent: bool,
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Budget({} left)", self.left)
    }
}

impl<'a> Budget<'a> {
    /// A budget of `records` to be read within `time` from now.
    pub fn new(clock: &'a dyn Clock, time: Duration, records: u64) -> Self {
        let until = clock.now().monotonic.saturating_add(time);
        Self { clock, until, left: records.max(1), to_look: A_LOOK, spent: false }
    }

    /// Work worth `records` was done.
    pub fn spend(&mut self, records: u64) {
        self.left = self.left.saturating_sub(records);
        self.to_look = self.to_look.saturating_sub(records);
        if self.to_look == 0 {
            self.to_look = A_LOOK;
            self.spent |= self.clock.now().monotonic >= self.until;
        }
    }

    pub fn is_spent(&self) -> bool {
        self.spent || self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, Timestamp};

    #[test]
    fn a_budget_ends_by_records_or_by_time() {
        let clock = ManualClock::new(Timestamp::from_millis(0));
        let mut budget = Budget::new(&clock, Duration::from_millis(10), 3);
        budget.spend(2);
        assert!(!budget.is_spent());
        budget.spend(1);
        assert!(budget.is_spent());
        let mut budget = Budget::new(&clock, Duration::from_millis(10), 1 << 40);
        budget.spend(A_LOOK);
        assert!(!budget.is_spent());
        clock.advance(10);
        budget.spend(A_LOOK - 1);
        assert!(!budget.is_spent(), "the clock is not read for every record");
        budget.spend(1);
        assert!(budget.is_spent());
    }
}
