//! A durable timer index: at this time, this (offset, length, tag) is due.
//!
//! It keeps any number of timers on disk and finds those of one second without looking at the
//! others. It never sees what is due, only where its owner keeps it. It has no clock, no thread and no
//! async function; every call that needs the time takes it.
//!
//! ```
//! use timerlog::{Entry, Timers};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let now = 1_700_000_000_000; // milliseconds since 1970
//!
//! let mut timers = Timers::open(folder.path().join("timers"), now)?;
//! timers.schedule(Entry { deadline: now + 1_500, offset: 1, length: 120, tag: 7 })?;
//! timers.schedule(Entry { deadline: now + 250, offset: 2, length: 80, tag: 7 })?;
//! timers.flush()?; // both survive a crash from here on
//!
//! assert!(timers.due(now + 249)?.is_empty());
//! assert_eq!(timers.due(now + 250)?[0].offset, 2);
//! timers.close()?;
//!
//! let mut timers = Timers::open(folder.path().join("timers"), now)?;
//! let due: Vec<u64> = timers.due(now + 60_000)?.iter().map(|entry| entry.offset).collect();
//! assert_eq!(due, [2, 1]); // 2 again: it is in the second that was open at the close
//! # Ok(())
//! # }
//! ```
//!
//! # The files
//!
//! ```text
//!   checkpoint-a, checkpoint-b     where everything stood; the newest whole one counts
//!   lock                           who has the folder
//!   snapshot-<revision>            the slots of both rings at one moment
//!   near/<position>, ...           TimerLog of the near ring: slots of a second
//!   far/<position>, ...            TimerLog of the far ring: slots of three days
//! ```
//!
//! A log record is 48 bytes and leads to the record before it in the same slot. A slot, in memory,
//! knows its first and its last record:
//!
//! ```text
//!   ring    | ... | slot 41 | slot 42 | slot 43 | ...
//!                      first |  | last
//!                     +------+  +--------+
//!                     v                  v
//!   log     | . | . | 42 | . | . | 42 | 42 | .
//!                     ^------<-----+ ^-+
//! ```
//!
//! # What holds, always
//!
//! - Nothing past a checkpointed length is read after a crash, and nothing below it is lost.
//! - A slot is walked whole, or the walk is an error that names file and place.
//! - The read time moves over a slot only when its newest record is the newest that was walked.
//! - An entry is never in a slot that ends before its deadline.
//! - Every file but the checkpoint can be checked against it: one that is missing or wrong is
//!   [`TimerError::NeedsRebuild`], or a snapshot that is passed over.
//!
//! # Two ways to use it
//!
//! [`Timers`] is the whole thing in a folder, for one thread. [`TimerWheel`] is the part beneath it
//! for an owner with a log of its own: it leaves to that owner the checkpoint, the order of what is
//! due, and who walks when. [`segment`] and [`checkpoint`] are the file kit under both, [`disk`] the
//! door to the operating system, with a simulated disk behind the same door.

#![cfg_attr(
    not(feature = "shuttle"),
    expect(clippy::disallowed_types, reason = "without the scheduler the room hands out these")
)]

mod bytes;
pub mod checkpoint;
#[doc(hidden)]
pub mod decoder;
pub mod disk;
mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod log;
#[doc(hidden)]
pub mod planted;
mod position;
pub mod segment;
#[doc(hidden)]
pub mod sync;
mod timers;
mod wheel;

pub use error::{Damage, DamageKind, TimerError};
pub use log::{Chain, ChainError, ChainReader, Entry, EntryKind, Record};
pub use position::Position;

/// Bytes of a TimerLog record.
pub const RECORD_LENGTH: u64 = log::RECORD_LENGTH;
pub use timers::{OpenError, Timers};
pub use wheel::{
    Advance, Checked, Compaction, Config, FileError, Filing, Origin, Recovery, Refile, Refiled,
    SlotState, Snapshot, TimerCheckpoint, TimerWheel, WheelFlush, WheelReader, check,
};
