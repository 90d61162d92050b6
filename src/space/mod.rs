//! Space: the free room of the disk is watched, and what is left of it is kept for what was accepted.
//!
//! ```text
//!   free   │  new work is taken
//!          ├─ refuse below ─────────────  new messages get 507, everything else goes on
//!          ├─ give up below ────────────  the ballast is removed, its room is for everything else
//!        0 ┴
//! ```
//!
//! What the room promises:
//!
//! - New work is refused before what was accepted has no room: deliveries, receives, acks, cancels, commits, checks,
//!   moves and checkpoints go on.
//! - Whoever finds the disk full all the same ([`Room::want`](crate::store::Room::want)) keeps what it was about to
//!   write and tries again; the ballast is given up at once.
//! - When there is room again, nothing has to be started again: the ballast is made anew, and new work is taken.
//!
//! Ground rules: nobody but this stage makes or removes the ballast, a start aside. It also notices when the data
//! directory is taken away from under the server, and ends it.

mod marks;
mod stage;

pub use marks::{Marks, Pressure};
pub use stage::{SpaceError, SpaceStage, Watch};
