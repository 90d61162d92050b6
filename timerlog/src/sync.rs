//! Locks and atomics: the one place they come from.
//!
//! They are parking_lot's and the standard library's. With the feature `shuttle` they are put under a scheduler
//! instead, which runs one thread at a time and decides before each lock, each unlock and each access of an
//! atomic which goes on: tests of races run the very code that ships in thousands of orders, and can run one of
//! them again. Nothing can be used outside such a test then.
//!
//! Two things that a scheduler of this kind does not show:
//!
//! - It runs every access of an atomic in one order that all threads see. That a store is released, and the load that
//!   sees it acquires, is for the reader to check.
//! - It has no time. A timed wait ends when it is notified, and never because time has passed: a wait that
//!   ended anyhow would hide that its wake-up was lost, and lost wake-ups are what is looked for. One that
//!   may not last at all (a timeout of zero) ends at once.

#[cfg(not(feature = "shuttle"))]
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
#[cfg(not(feature = "shuttle"))]
pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

#[cfg(feature = "shuttle")]
pub use self::scheduled::{Condvar, Mutex, MutexGuard, RwLock};
#[cfg(feature = "shuttle")]
pub use shuttle::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

pub use std::sync::atomic::Ordering;

#[cfg(feature = "shuttle")]
mod scheduled;
