//! Places in the CommitLog.

use std::fmt;

/// Records and groups begin at multiples of this many bytes; it is also the grain of the settled
/// bits.
pub const STEP: u64 = 32;

/// A place in the CommitLog, counted in bytes from its first record ever written.
///
/// The offset of a record never changes, and it is the record's name everywhere else.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(u64);

impl Offset {
    pub const ZERO: Self = Self(0);

    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    /// The place `bytes` further on.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }

    /// Whether a record can begin here.
    pub const fn is_on_step(self) -> bool {
        self.0.is_multiple_of(STEP)
    }
}

impl fmt::Debug for Offset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "@{}", self.0)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// `length` rounded up to the next step.
pub const fn round_up(length: usize) -> usize {
    length.next_multiple_of(STEP as usize)
}
