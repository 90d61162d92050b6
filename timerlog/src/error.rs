//! What a damaged file looks like: which, where, and how it shows.

use std::fmt;

use crate::disk::DiskError;

/// A failed call on the timer index.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TimerError {
    /// The disk failed. What was made durable before still is; after a failed sync the index refuses
    /// everything with that first error.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The files are not what a checkpoint of them says. Nothing in them is to be trusted: make the
    /// index anew, and file what is pending again from its source.
    #[error("the timer index has to be rebuilt: {0}")]
    NeedsRebuild(#[from] Damage),
}

impl TimerError {
    /// The disk had no room, and nothing has happened: see [`DiskError::wants_room`].
    pub fn wants_room(&self) -> bool {
        matches!(self, Self::Disk(error) if error.wants_room())
    }
}

/// A file of ours that does not hold what it must hold.
///
/// This is not an error of the disk, which answered, but of what it answered. Files of the timer
/// index are derived: who meets one damaged makes the index anew from its source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {kind}", .offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default())]
pub struct Damage {
    /// The path of the file.
    pub file: String,
    /// Where in the file, in bytes, when it is one place.
    pub offset: Option<u64>,
    pub kind: DamageKind,
}

impl Damage {
    pub(crate) fn of(file: impl Into<String>, kind: DamageKind) -> Self {
        Self { file: file.into(), offset: None, kind }
    }
}

/// How the damage shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The file must be there and is not.
    Missing,
    /// The file is there, and says that one beside it was found damaged while running.
    Condemned,
    /// The disk does not give the file out.
    Unreadable {
        cause: String,
    },
    /// The file has a name that nothing of ours has.
    ForeignName,
    WrongLength {
        expected: u64,
        found: u64,
    },
    Checksum {
        expected: u32,
        found: u32,
    },
    UnknownVersion {
        known: u32,
        found: u32,
    },
    /// A sound header that belongs to another file.
    Misplaced,
    /// Bytes without a meaning that are not zero.
    NotZero,
    /// A record of a kind that this version does not know.
    UnknownKind {
        found: u8,
    },
    /// A record whose predecessor would not be before it.
    LeadsForward {
        previous: u64,
    },
    WrongSlot {
        expected: u64,
        found: u64,
    },
    /// A chain that passes by the record it must come to.
    ShortChain {
        until: u64,
    },
    /// A record whose predecessor is not the last one of its slot.
    BrokenChain {
        previous: u64,
    },
    /// A slot that cannot be in use together with the others.
    OutsideWindow {
        slot: u64,
    },
    /// A snapshot of more than the checkpoint knows of.
    BeyondCheckpoint,
    /// Files of a wheel with other measures.
    OtherMeasures,
    /// A place past the end of the log.
    PastEnd {
        end: u64,
    },
}

impl fmt::Display for DamageKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => formatter.write_str("the file is missing"),
            Self::Condemned => formatter.write_str("tells of damage that was found while running"),
            Self::Unreadable { cause } => formatter.write_str(cause),
            Self::ForeignName => formatter.write_str("no file of ours has such a name"),
            Self::WrongLength { expected, found } => {
                write!(formatter, "it is {found} bytes long and must be {expected}")
            }
            Self::Checksum { expected, found } => {
                write!(formatter, "checksum {found:08x}, and {expected:08x} was written")
            }
            Self::UnknownVersion { known, found } => {
                write!(formatter, "format version {found}, and this program knows {known}")
            }
            Self::NotZero => formatter.write_str("bytes that must be zero are not"),
            Self::Misplaced => formatter.write_str("the header belongs to another file"),
            Self::UnknownKind { found } => write!(formatter, "no record is of kind {found}"),
            Self::LeadsForward { previous } => {
                write!(formatter, "the record before it would be at {previous}, not before it")
            }
            Self::WrongSlot { expected, found } => {
                write!(formatter, "a record of slot {found} in the chain of slot {expected}")
            }
            Self::ShortChain { until } => {
                write!(formatter, "the chain does not lead to position {until}")
            }
            Self::BrokenChain { previous } => {
                write!(
                    formatter,
                    "the record before it, at {previous}, is not the last of its slot"
                )
            }
            Self::OutsideWindow { slot } => {
                write!(formatter, "slot {slot} cannot be in use together with the others")
            }
            Self::BeyondCheckpoint => formatter.write_str("it knows more than the checkpoint"),
            Self::OtherMeasures => formatter.write_str("it was made with other slots or files"),
            Self::PastEnd { end } => write!(formatter, "past the end of the log at {end}"),
        }
    }
}
