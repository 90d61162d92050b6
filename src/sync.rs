//! Locks, atomics and wake-ups: the one place they come from.
//!
//! As [`timerlog::sync`], which says what changes under the feature `shuttle`, and with what the async part of the
//! server waits on.

pub use timerlog::sync::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering,
    RwLock,
};

#[cfg(not(feature = "shuttle"))]
pub use tokio::sync::Notify;

#[cfg(feature = "shuttle")]
pub use self::scheduled::Notify;

/// Threads; only [`stage::runner`](crate::stage::runner) starts some.
pub mod thread {
    #[cfg(feature = "shuttle")]
    pub use shuttle::thread::{Builder, JoinHandle};
    #[cfg(not(feature = "shuttle"))]
    pub use std::thread::{Builder, JoinHandle};
}

#[cfg(feature = "shuttle")]
#[expect(clippy::disallowed_types, reason = "the room that puts it under the scheduler")]
mod scheduled {
    use tokio::sync::futures::Notified;

    use super::{AtomicBool, Ordering};

    /// Tokio's, whose every call is one step. The scheduler has its say before each.
    #[derive(Debug, Default)]
    pub struct Notify {
        notify: tokio::sync::Notify,
        step: AtomicBool,
    }

    impl Notify {
        pub const fn new() -> Self {
            Self { notify: tokio::sync::Notify::const_new(), step: AtomicBool::new(false) }
        }

        pub fn notified(&self) -> Notified<'_> {
            self.let_others_go_first();
            self.notify.notified()
        }

        pub fn notify_one(&self) {
            self.let_others_go_first();
            self.notify.notify_one();
        }

        pub fn notify_waiters(&self) {
            self.let_others_go_first();
            self.notify.notify_waiters();
        }

        /// Any access of an atomic is a point at which the scheduler may go on with another thread.
        fn let_others_go_first(&self) {
            self.step.load(Ordering::Relaxed);
        }
    }
}
