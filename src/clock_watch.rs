//! Watching the wall clock against the monotonic one, for whoever fires by it: the timer and the delay levels.

use std::time::Duration;

use crate::clock::Now;

/// Differences up to this are slewing and scheduling, not steps.
const TOLERANCE_MS: u64 = 100;

/// The wall clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStep {
    Forward { ms: u64 },
    Back { ms: u64 },
}

/// Notices steps, and holds firing after a jump forward: a clock that is wrong by an hour fires what
/// cannot be called back, so an operator (or NTP) gets a while to put it right.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    jump_ms: u64,
    hold: Duration,
    last: Option<Now>,
    held_until: Option<Duration>,
}

impl ClockWatch {
    pub(crate) fn new(jump_ms: u64, hold_ms: u64) -> Self {
        Self { jump_ms, hold: Duration::from_millis(hold_ms), last: None, held_until: None }
    }

    /// Looks at a reading; answers a step, if there was one since the last reading.
    pub(crate) fn look(&mut self, now: Now) -> Option<ClockStep> {
        let step = self.last.replace(now).and_then(|last| step(last, now));
        if let Some(ClockStep::Forward { ms }) = step
            && ms > self.jump_ms
        {
            self.held_until = Some(now.monotonic + self.hold);
        }
        if self.held_until.is_some_and(|until| now.monotonic >= until) {
            self.held_until = None;
        }
        step
    }

    /// How long firing is held still.
    pub(crate) fn held_for(&self, now: Now) -> Option<Duration> {
        self.held_until.map(|until| until.saturating_sub(now.monotonic))
    }
}

fn step(last: Now, now: Now) -> Option<ClockStep> {
    let passed = now.monotonic.saturating_sub(last.monotonic).as_millis();
    let passed = u64::try_from(passed).unwrap_or(u64::MAX);
    let expected = last.wall.checked_add(passed)?;
    let (forward, back) = (now.wall.since(expected), expected.since(now.wall));
    if forward > TOLERANCE_MS {
        Some(ClockStep::Forward { ms: forward })
    } else if back > TOLERANCE_MS {
        Some(ClockStep::Back { ms: back })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    const HOUR: u64 = 60 * 60 * 1000;

    fn at(wall: u64, monotonic: u64) -> Now {
        Now {
            wall: Timestamp::from_millis(HOUR * 1000 + wall),
            monotonic: Duration::from_millis(monotonic),
        }
    }

    #[test]
    fn time_that_passes_is_no_step_however_long() {
        let mut watch = ClockWatch::new(HOUR, 60_000);
        assert_eq!(watch.look(at(0, 0)), None);
        assert_eq!(watch.look(at(10 * HOUR + 99, 10 * HOUR)), None);
        assert_eq!(watch.held_for(at(10 * HOUR, 10 * HOUR)), None);
    }

    #[test]
    fn a_jump_forward_holds_firing_for_a_while_and_a_small_step_does_not() {
        let mut watch = ClockWatch::new(HOUR, 60_000);
        watch.look(at(0, 0));
        assert_eq!(watch.look(at(5000, 10)), Some(ClockStep::Forward { ms: 4990 }));
        assert_eq!(watch.held_for(at(5000, 10)), None);
        assert_eq!(watch.look(at(2 * HOUR, 20)), Some(ClockStep::Forward { ms: 2 * HOUR - 5010 }));
        assert_eq!(watch.held_for(at(2 * HOUR, 20)), Some(Duration::from_secs(60)));
        watch.look(at(2 * HOUR + 60_000, 60_020));
        assert_eq!(watch.held_for(at(2 * HOUR + 60_000, 60_020)), None);
    }

    #[test]
    fn a_step_back_is_told() {
        let mut watch = ClockWatch::new(HOUR, 60_000);
        watch.look(at(5000, 0));
        assert_eq!(watch.look(at(2000, 0)), Some(ClockStep::Back { ms: 3000 }));
    }
}
