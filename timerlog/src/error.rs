//! What a damaged file looks like: which, where, and how it shows.

use std::fmt;

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
    /// The file has a name that nothing of ours has.
    ForeignName,
    WrongLength {
        expected: u64,
        found: u64,
    },
}

impl fmt::Display for DamageKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => formatter.write_str("the file is missing"),
            Self::ForeignName => formatter.write_str("no file of ours has such a name"),
            Self::WrongLength { expected, found } => {
                write!(formatter, "it is {found} bytes long and must be {expected}")
            }
        }
    }
}
