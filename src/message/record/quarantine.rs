//! A damaged stretch of the log, set aside: kind 13.
//!
//! ```text
//! head   0        8        16      17      24
//!        +--------+--------+--------+------+
//!        | from   | length | reason | zero |
//!        +--------+--------+--------+------+
//! ```
//!
//! Everything from *from* on, *length* bytes, is not believed any more, even if a later read finds
//! it whole: what was decided without it stays decided.

use super::super::offset::Offset;
use super::{Encoded, Kind, Record, RecordError, read_u64};

const HEAD: usize = 24;

/// What is wrong with the stretch. Persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DamageReason {
    /// Not even headers can be made out.
    Unreadable = 1,
    /// The head is whole and the body is not.
    Body = 2,
}

impl DamageReason {
    /// The reason that `number` is written for.
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Unreadable),
            2 => Some(Self::Body),
            _ => None,
        }
    }
}

impl std::fmt::Display for DamageReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Unreadable => "unreadable",
            Self::Body => "the body is damaged",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quarantine {
    pub from: Offset,
    pub length: u64,
    pub reason: DamageReason,
}

impl Quarantine {
    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::Quarantine, HEAD, 0);
        record.head(&self.from.get().to_le_bytes());
        record.head(&self.length.to_le_bytes());
        record.head(&[self.reason as u8, 0, 0, 0, 0, 0, 0, 0]);
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::Quarantine)?;
        if record.head.len() != HEAD || !record.body.is_empty() {
            return Err(RecordError::Head("a quarantine has a head of 24 bytes and no body"));
        }
        let reason = DamageReason::of(record.head[16]);
        let reason = reason.ok_or(RecordError::Head("a quarantine's reason is not known"))?;
        if record.head[17..] != [0; 7] {
            return Err(RecordError::NotZero);
        }
        Ok(Self {
            from: Offset::new(read_u64(record.head, 0)),
            length: read_u64(record.head, 8),
            reason,
        })
    }
}
