//! Being alone with a key, from look-up to append.

use crate::index::KeyHash;
use crate::sync::{Mutex, MutexGuard};

const STRIPES: usize = 256;

/// Locks that keys share: two writers of one key exclude each other, two of different keys seldom do.
///
/// Order: a request's, then a timer's, then the appender. Nobody holds two of a kind.
pub struct Stripes {
    requests: [Mutex<()>; STRIPES],
    timers: [Mutex<()>; STRIPES],
}

impl std::fmt::Debug for Stripes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Stripes({STRIPES})")
    }
}

impl Default for Stripes {
    fn default() -> Self {
        let stripes = || [const { Mutex::new(()) }; STRIPES];
        Self { requests: stripes(), timers: stripes() }
    }
}

impl Stripes {
    /// Alone with an idempotency key.
    pub fn request(&self, key: KeyHash) -> MutexGuard<'_, ()> {
        of(&self.requests, key)
    }

    /// Alone with a timer's key.
    pub fn timer(&self, key: KeyHash) -> MutexGuard<'_, ()> {
        of(&self.timers, key)
    }
}

fn of(stripes: &[Mutex<()>; STRIPES], key: KeyHash) -> MutexGuard<'_, ()> {
    let stripe = usize::try_from(key.get() % STRIPES as u64).expect("a small remainder");
    stripes[stripe].lock()
}
