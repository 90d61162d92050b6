//! A place in a TimerLog.

use std::fmt;
use std::num::NonZeroU64;

/// The position of one record of a TimerLog: its distance from the start of the log in bytes,
/// counted as if no file had ever been released. Later records have higher positions.
///
/// No record is at position 0, where the header of the first file is. So on disk, and only there, 0
/// stands for "none"; in memory an `Option<Position>` is as small as a position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(NonZeroU64);

impl Position {
    /// The position `bytes` from the start of the log; `None` for the start itself.
    pub fn new(bytes: u64) -> Option<Self> {
        NonZeroU64::new(bytes).map(Self)
    }

    pub fn get(self) -> u64 {
        self.0.get()
    }

    /// What stands for `position` in a file.
    pub(crate) fn encode(position: Option<Self>) -> u64 {
        position.map_or(0, Self::get)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Position({})", self.0)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_takes_no_room_and_is_zero_on_disk() {
        assert_eq!(size_of::<Option<Position>>(), 8);
        assert_eq!(Position::new(0), None);
        assert_eq!(Position::encode(None), 0);
        assert_eq!(Position::new(48).map(Position::get), Some(48));
        assert!(Position::new(48) < Position::new(96));
    }
}
