//! Walking slots outside the mutex that guards the wheel.

use crate::log::{ChainError, ChainReader, Record};
use crate::position::Position;

/// Walks the chains of both rings while the wheel goes on. Clones read the same wheel.
#[derive(Clone, Debug)]
pub struct WheelReader {
    pub(super) near: ChainReader,
    pub(super) far: ChainReader,
}

impl WheelReader {
    /// The chains of the near ring, whose slots are numbered in slots of the precision.
    pub fn near(&self) -> &ChainReader {
        &self.near
    }

    /// The chains of the far ring, whose slots are numbered in far slots.
    pub fn far(&self) -> &ChainReader {
        &self.far
    }

    /// Calls `visit` with each record of the near slot `slot`, newest first: from `last`, as
    /// [`TimerWheel::slot`](super::TimerWheel::slot) gave it, back to the one after `until`, where an
    /// earlier walk began; with `None`, to the first. Both kinds of records are visited: a cancel
    /// comes before the add that it cancels, unless that add was re-filed later.
    ///
    /// # Errors
    ///
    /// When a record cannot be read or trusted. What was visited before it is sound, but the chain
    /// is not whole.
    pub fn walk(
        &self,
        last: Position,
        until: Option<Position>,
        slot: u64,
        mut visit: impl FnMut(&Record),
    ) -> Result<(), ChainError> {
        for step in self.near.chain(slot, last, until) {
            visit(&step?.1);
        }
        Ok(())
    }
}
