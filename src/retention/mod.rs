//! Retention: the log begins later, as soon as nobody needs what stands at its begin.
//!
//! ```text
//!   begin                          end of what may go                               tail
//!     │ segment │ segment │ segment │ segment ...                                     │
//!     └── read, record by record ───┘                                                 │
//!           what still waits is carried on ───────────────────────────────────────────┤
//!                                    the state at the new begin, once more ───────────┤
//!     └─ durable, dispatched: let go, then removed by the checkpoints ─┘
//! ```
//!
//! What may go, by the counts of the fold ([`SegmentKeep`]): everything put there is older than 24 hours, everything
//! delivered from there has waited for its readers for its topic's retention, and what still waits for its moment is so
//! little of it that it is worth while to carry it on. By reading the segments it is made sure that nothing else is
//! needed there.
//!
//! Only what lies at the begin goes, segment by segment. So a fact never goes before the cause that it settles, and
//! what was cancelled years ago stays cancelled when everything derived is built again. The price: what waits long is
//! appended again each time the log has come round. That is put off until as much of the log is idle as is needed, so the
//! log is at most about twice as large as what is needed, and each byte that arrives moves at most one.
//!
//! Ground rules:
//!
//! - It needs no switch and no pause: each step is a turn of the appender like anybody's, and can be the last one before
//!   a crash.
//! - It goes by what the timer has fired: nothing is let go while the timer is behind.

mod plan;
mod stage;

pub use plan::{Plan, plan};
pub use stage::{RetentionObserver, RetentionStage};

#[cfg(doc)]
use crate::store::SegmentKeep;
