//! Readings of the clock, and the two clocks they come from.
//!
//! Only `main.rs` names a clock. Everyone else takes a [`Now`] as an argument, so that a test steps
//! time by hand and a day costs nothing.

use std::fmt;
use std::time::Duration;

use crate::sync::Mutex;

/// A moment on the wall clock, in whole milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The moment `millis` later, or `None` when it cannot be written down.
    pub const fn checked_add(self, millis: u64) -> Option<Self> {
        match self.0.checked_add(millis) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Milliseconds from `earlier` to `self`, zero when `earlier` is the later one.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}ms", self.0)
    }
}

/// RFC 3339 in UTC with milliseconds, as the API writes times.
impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment =
            i64::try_from(self.0).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        match moment {
            Some(moment) => write!(formatter, "{moment:.3}"),
            None => write!(formatter, "{}ms", self.0),
        }
    }
}

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Decides what is due. May step either way.
    pub wall: Timestamp,
    /// Since some fixed moment of this process. Never steps back; measures leases and jumps.
    pub monotonic: Duration,
}

/// Where readings come from.
pub trait Clock: fmt::Debug + Send + Sync {
    fn now(&self) -> Now;
}

/// The clocks of the operating system.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clocks")]
impl SystemClock {
    #[expect(clippy::new_without_default, reason = "a clock is started, not defaulted")]
    pub fn new() -> Self {
        Self { start: std::time::Instant::now() }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clocks")]
impl Clock for SystemClock {
    fn now(&self) -> Now {
        let wall = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            // A clock set before 1970 reads as 1970: nothing is due, so nothing fires early.
            .unwrap_or(Duration::ZERO);
        Now {
            wall: Timestamp(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)),
            monotonic: self.start.elapsed(),
        }
    }
}

/// A clock that moves only when it is told to.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<Now>,
}

impl ManualClock {
    pub fn new(wall: Timestamp) -> Self {
        Self { now: Mutex::new(Now { wall, monotonic: Duration::ZERO }) }
    }

    /// Lets time pass on both clocks.
    pub fn advance(&self, millis: u64) {
        let mut now = self.now.lock();
        now.wall = Timestamp(now.wall.0.saturating_add(millis));
        now.monotonic += Duration::from_millis(millis);
    }

    /// Sets the wall clock, as an operator or NTP would: the monotonic clock does not notice.
    pub fn step_wall(&self, wall: Timestamp) {
        self.now.lock().wall = wall;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        *self.now.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339_in_utc_with_milliseconds() {
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            Timestamp::from_millis(1_790_000_000_007).to_string(),
            "2026-09-21T14:13:20.007Z"
        );
    }

    #[test]
    fn a_step_of_the_wall_clock_leaves_the_monotonic_clock_alone() {
        let clock = ManualClock::new(Timestamp::from_millis(10_000));
        clock.advance(500);
        clock.step_wall(Timestamp::from_millis(3_000));
        assert_eq!(clock.now().wall, Timestamp::from_millis(3_000));
        assert_eq!(clock.now().monotonic, Duration::from_millis(500));
    }
}
