//! A wake-up that cannot be lost.

use std::sync::Arc;
use std::time::Duration;

use timerlog::planted::{self, Fault};

use crate::sync::{Condvar, Mutex};

/// Wakes one waiting stage; raised while nobody waits, the next wait returns at once.
#[derive(Clone, Debug, Default)]
pub struct Signal(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    raised: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    pub fn raise(&self) {
        let mut raised = self.0.raised.lock();
        if !*raised {
            *raised = !planted::is(Fault::SignalNotKept);
            self.0.changed.notify_one();
        }
    }

    /// Returns when the signal is raised or `timeout` has passed, and lowers it.
    pub fn wait(&self, timeout: Duration) {
        let mut raised = self.0.raised.lock();
        if !*raised {
            self.0.changed.wait_for(&mut raised, timeout);
        }
        *raised = false;
    }
}
