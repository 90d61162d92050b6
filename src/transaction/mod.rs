//! Check-back: the producers of open transactions are asked what became of them.
//!
//! ```text
//!   wheel ── a note is due ──> Checks ── its time is over ──> abandon (a record)
//!     ^                          │
//!     │ again later              └── a check is due ──> parked, by producer group
//!     └──────────────────────────────────┘    or host       │ somebody of the group asks, or the host's turn
//!                                                           ▼
//!                                              hand out (a record, durable) ──> the caller, or its URL
//!                                                           └── went away, not reached: give back (a record)
//! ```
//!
//! What is decided about a transaction is decided by [`producer`](crate::producer). Ground rules:
//!
//! - **What is parked is memory, and the wheel holds it too.** A note of a parked check is filed again at the
//!   latest after [`LOOK_AGAIN_MS`](check::LOOK_AGAIN_MS), so a start finds everything again, and what is over
//!   ends though nobody asks. Nothing is written to the CommitLog for it.
//! - **Parking has bounds**, for all together, for each group and each host: beyond them a check waits in the wheel alone.
//! - A check costs two reads at most (the record that speaks for its transaction, the half message), however
//!   many are open. One that is damaged is lost alone.
//! - Of two who ask one is given the check: it is taken out of its row before anything else, and the referee
//!   has the last word.

mod check;
mod parked;

pub use check::{Check, Checks, LOOK_AGAIN_MS, Taken};
pub use parked::{Asked, PARKED_MAX, PARKED_OF_ROW_MAX};
