//! How far something has come, and a wait for it to come further.

use std::time::Duration;

use timerlog::planted::{self, Fault};

use crate::sync::{Condvar, Mutex};

/// A number that only grows. Raised by one, waited for by any number of others.
#[derive(Debug, Default)]
pub struct Watermark {
    reached: Mutex<u64>,
    raised: Condvar,
}

impl Watermark {
    pub fn new(reached: u64) -> Self {
        Self { reached: Mutex::new(reached), raised: Condvar::new() }
    }

    /// How far it has come.
    pub fn get(&self) -> u64 {
        *self.reached.lock()
    }

    /// It has come to `to`, if it was not further already.
    pub fn raise(&self, to: u64) {
        let mut reached = self.reached.lock();
        if to > *reached {
            *reached = to;
            self.raised.notify_all();
        }
    }

    /// Blocks until it has come to `target`, or `timeout` has passed; `true` when it has come there.
    pub fn wait_for(&self, target: u64, timeout: Duration) -> bool {
        let mut reached = self.reached.lock();
        if planted::is(Fault::LookThenWait) && *reached < target {
            drop(reached);
            reached = self.reached.lock();
            self.raised.wait_for(&mut reached, timeout);
        }
        !self.raised.wait_while_for(&mut reached, |reached| *reached < target, timeout).timed_out()
            || *reached >= target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "somebody waits while another raises")]
    fn a_wait_ends_when_the_target_is_reached_and_not_before() {
        let mark = Watermark::new(3);
        mark.raise(2);
        assert!(mark.wait_for(3, Duration::ZERO), "it was there already, and goes not back");
        assert!(!mark.wait_for(4, Duration::ZERO));
        let waited = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| mark.wait_for(5, Duration::from_secs(3600)));
            mark.raise(4);
            mark.raise(5);
            waiting.join().expect("no panic")
        });
        assert!(waited);
    }
}
