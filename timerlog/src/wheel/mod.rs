//! The TimerWheel: two rings of slots over two TimerLogs.
//!
//! ```text
//!             file                                      walk, advance
//!               |                                            ^
//!      slot < F | slot >= F                                  |
//!        +------+--------------------+                       |
//!        v                           v                       |
//!   +----------+   re-file once   +----------+               |
//!   | near     | <--------------- | far      |               |
//!   | ring+log |  when F comes    | ring+log |               |
//!   +----------+                  +----------+               |
//!        |  slot R, the read time                            |
//!        +---------------------------------------------------+
//! ```
//!
//! Invariants, with `n` near slots and `W = n / 4` of them in a far slot:
//!
//! - Every entry that was filed and is not settled is in slot R or later of the near ring, or in a far
//!   slot at F or later, or in the far slot that is being re-filed.
//! - `R <= F`, and all near slots in use lie within `R .. R + n`. F is a multiple of W.
//! - A slot before R is empty, and a far slot before F is: they were settled, or re-filed.
//! - A slot leads to records that are in the log, whole; never the other way round.
//!
//! What may happen at the same time: the wheel itself is changed by one owner (`&mut self`, a mutex
//! elsewhere). A [`WheelReader`] walks chains outside that mutex. The race is between a walk of
//! the open slot and an entry that joins it; [`TimerWheel::advance`] resolves it by comparing the
//! slot's newest record with the newest that was walked.
//!
//! The wheel is a hint: it may hold an entry twice, or one that is settled. It never misses one that
//! is not.

mod check;
mod checkpoint;
mod compact;
mod config;
mod durable;
mod error;
mod filing;
#[cfg(any(test, fuzzing))]
mod fuzzing;
mod reader;
mod recovery;
mod refile;
mod ring;
mod slot;
mod snapshot;
#[cfg(test)]
mod tests;
mod time;
mod track;
mod wheel;
mod window;

pub use check::{Checked, check};
pub use checkpoint::TimerCheckpoint;
pub use compact::Compaction;
pub use config::Config;
pub use durable::WheelFlush;
pub use error::FileError;
pub use filing::Filing;
#[cfg(any(test, fuzzing))]
pub(crate) use fuzzing::decoders;
pub use reader::WheelReader;
pub use recovery::{Origin, Recovery};
pub use refile::{Refile, Refiled};
pub use slot::SlotState;
pub use snapshot::Snapshot;
pub use time::Advance;
pub use wheel::TimerWheel;
