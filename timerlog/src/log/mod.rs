//! The TimerLog: an append-only log of timer records, chained by slot.
//!
//! ```text
//!   position   48      96      144     192     240
//!            +-------+-------+-------+-------+-------+
//!   header   | s=7   | s=9   | s=7   | s=7   | s=9   |
//!            +-------+-------+-------+-------+-------+
//!   slot 7:      ^------<------+  ^--<---+ last
//!   slot 9:              ^--------<--------------+ last
//! ```
//!
//! Records of one slot lie scattered over the log; each carries the position of the one before it
//! in its slot, so that a slot needs to remember only its newest to find them all, newest first.
//!
//! Ground rules:
//!
//! - One writer (the wheel). It appends the records first and lets its slots point at them after, so
//!   no reader is led to bytes that are not there yet.
//! - A chain is walked whole or the walk fails: a record that cannot be trusted, or that does not
//!   belong to the slot, is an error with its file and place, never the end of the chain.
//! - **The floor**: every entry in a record below it is settled. The files below it may be gone, and
//!   a chain that leads below it ends there. It is part of the checkpoint, so a file that is missing
//!   without having been released is noticed.

mod chain;
mod error;
#[cfg(any(test, fuzzing))]
mod fuzzing;
mod header;
mod log;
pub(crate) mod record;
#[cfg(test)]
mod tests;

pub use chain::{Chain, ChainReader};
pub use error::ChainError;
#[cfg(any(test, fuzzing))]
pub(crate) use fuzzing::decoders;
pub(crate) const RECORD_LENGTH: u64 = record::SIZE as u64;

pub(crate) use log::{Extent, Shape, TimerLog};
pub use record::{Entry, EntryKind, Record};
