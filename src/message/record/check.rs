//! What happens to an open transaction: a check (kind 20), a resume (21), an abandon (22). One layout.
//!
//! ```text
//! head   0       8         16      24            32             40    48               52      56
//!        +-------+---------+-------+-------------+--------------+-----+----------------+-------+
//!        | cause | message | at ms | next check  | abandoned    | tag | message length | count |
//!        |       |         |       | at ms       | at ms        |     |                |       |
//!        +-------+---------+-------+-------------+--------------+-----+----------------+-------+
//! ```
//!
//! Each settles *cause*, the record that spoke for the transaction until now (its half message, or the last of
//! these), and speaks for it from here on. *message* is the half message, whose unpadded bytes are *message
//! length*. *count* checks were handed out so far, this one included; when a caller went away before it was
//! given its check, the next record has one less. *next check at* is zero when there is none, as for an
//! abandon; *abandoned at* is when the transaction ends of itself, zero for an abandon. *tag* is that of the
//! entry in the wheel.
//!
//! Like every cause it takes at least 96 bytes, three steps of settled bits.

use super::super::offset::{Offset, round_up};
use super::{Clockwork, Encoded, HEADER_LENGTH, Kind, Record, RecordError, read_u32, read_u64};
use crate::clock::Timestamp;

const HEAD: usize = 56;
const _: () = assert!(round_up(HEADER_LENGTH + HEAD) >= 96);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundKind {
    /// A check was handed out, or given back.
    Check,
    Resume,
    Abandon,
}

impl RoundKind {
    const fn kind(self) -> Kind {
        match self {
            Self::Check => Kind::Check,
            Self::Resume => Kind::Resume,
            Self::Abandon => Kind::Abandon,
        }
    }
}

/// One step in the life of an open transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    pub kind: RoundKind,
    pub cause: Offset,
    pub message: Offset,
    pub at: Timestamp,
    pub next_check_at: Option<Timestamp>,
    pub abandoned_at: Timestamp,
    pub tag: u64,
    pub message_length: u32,
    pub count: u32,
}

impl Round {
    /// The unpadded length of the record: what pointers to it say.
    #[expect(clippy::cast_possible_truncation, reason = "it is 88")]
    pub const LENGTH: u32 = (HEADER_LENGTH + HEAD) as u32;

    /// How far the transaction is after it.
    pub const fn clockwork(&self) -> Clockwork {
        let Self { count, next_check_at, abandoned_at, .. } = *self;
        Clockwork { count, next_check_at, abandoned_at }
    }

    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(self.kind.kind(), HEAD, 0);
        let next = self.next_check_at.map_or(0, Timestamp::as_millis);
        record.head(&self.cause.get().to_le_bytes());
        record.head(&self.message.get().to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&next.to_le_bytes());
        record.head(&self.abandoned_at.as_millis().to_le_bytes());
        record.head(&self.tag.to_le_bytes());
        record.head(&self.message_length.to_le_bytes());
        record.head(&self.count.to_le_bytes());
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        let kind = match record.header.kind {
            Kind::Resume => RoundKind::Resume,
            Kind::Abandon => RoundKind::Abandon,
            _ => RoundKind::Check,
        };
        record.expect(kind.kind())?;
        if record.head.len() != HEAD || !record.body.is_empty() {
            return Err(RecordError::Head(
                "a check, resume or abandon has a head of 56 bytes and no body",
            ));
        }
        let next = Some(read_u64(record.head, 24)).filter(|&at| at > 0);
        Ok(Self {
            kind,
            cause: Offset::new(read_u64(record.head, 0)),
            message: Offset::new(read_u64(record.head, 8)),
            at: Timestamp::from_millis(read_u64(record.head, 16)),
            next_check_at: next.map(Timestamp::from_millis),
            abandoned_at: Timestamp::from_millis(read_u64(record.head, 32)),
            tag: read_u64(record.head, 40),
            message_length: read_u32(record.head, 48),
            count: read_u32(record.head, 52),
        })
    }
}
