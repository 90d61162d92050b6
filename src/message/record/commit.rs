//! How a transaction ends: a commit, kind 6, or a rollback, kind 7.
//!
//! ```text
//! head   0       8         16                24      32    40               44      48     56
//! of a   +-------+---------+-----------------+-------+-----+----------------+-------+------+
//! commit | cause | message | deadline ms or  | at ms | tag | message length | flags | home |
//!        |       |         | queue offset    |       |     |                |       |      |
//!        +-------+---------+-----------------+-------+-----+----------------+-------+------+
//! of a   0       8         16      24    32
//! roll-  +-------+---------+-------+-----+
//! back   | cause | message | at ms | tag |
//!        +-------+---------+-------+-----+
//! ```
//!
//! Both settle *cause*, the record that spoke for the open transaction; *message* is its half message, read at *home*,
//! there or where it was moved to, where its unpadded bytes are *message length*. *tag* is that of an entry in the wheel for the message: topic, queue
//! and tag hash. *flags* bit 0: the message has a moment, its *deadline*; then the commit is what gives it that,
//! a cause in its turn. Otherwise the message is readable from here on, at *queue offset*: a delivery of one
//! pointer.
//!
//! A commit takes 96 bytes, three steps of settled bits. A rollback is no cause.

use super::super::offset::{Offset, round_up};
use super::{Encoded, HEADER_LENGTH, Kind, Placement, Record, RecordError, read_u32, read_u64};
use crate::clock::Timestamp;

const COMMIT_HEAD: usize = 56;
const ROLLBACK_HEAD: usize = 32;
const _: () = assert!(round_up(HEADER_LENGTH + COMMIT_HEAD) >= 96);

const TIMED: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    pub cause: Offset,
    pub message: Offset,
    /// Where the message is read.
    pub home: Offset,
    pub placement: Placement,
    pub at: Timestamp,
    pub tag: u64,
    pub message_length: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rollback {
    pub cause: Offset,
    pub message: Offset,
    pub at: Timestamp,
    pub tag: u64,
}

impl Commit {
    /// The unpadded length of the record: what pointers to it say.
    #[expect(clippy::cast_possible_truncation, reason = "it is 88")]
    pub const LENGTH: u32 = (HEADER_LENGTH + COMMIT_HEAD) as u32;

    pub fn encode(&self) -> Encoded {
        let (place, flags) = match self.placement {
            // A half message waits in no level: its moment, however it was said, is filed in the wheel.
            Placement::Timed { deadline } | Placement::Level { deadline, .. } => {
                (deadline.as_millis(), TIMED)
            }
            Placement::Ready { queue_offset } => (queue_offset, 0),
        };
        let mut record = Encoded::start(Kind::Commit, COMMIT_HEAD, 0);
        record.head(&self.cause.get().to_le_bytes());
        record.head(&self.message.get().to_le_bytes());
        record.head(&place.to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.tag.to_le_bytes());
        record.head(&self.message_length.to_le_bytes());
        record.head(&flags.to_le_bytes());
        record.head(&self.home.get().to_le_bytes());
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::Commit)?;
        if record.head.len() != COMMIT_HEAD || !record.body.is_empty() {
            return Err(RecordError::Head("a commit has a head of 56 bytes and no body"));
        }
        let place = read_u64(record.head, 16);
        let placement = match read_u32(record.head, 44) {
            0 => Placement::Ready { queue_offset: place },
            TIMED => Placement::Timed { deadline: Timestamp::from_millis(place) },
            _ => return Err(RecordError::NotZero),
        };
        Ok(Self {
            cause: Offset::new(read_u64(record.head, 0)),
            message: Offset::new(read_u64(record.head, 8)),
            home: Offset::new(read_u64(record.head, 48)),
            placement,
            at: Timestamp::from_millis(read_u64(record.head, 24)),
            tag: read_u64(record.head, 32),
            message_length: read_u32(record.head, 40),
        })
    }
}

impl Rollback {
    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::Rollback, ROLLBACK_HEAD, 0);
        record.head(&self.cause.get().to_le_bytes());
        record.head(&self.message.get().to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.tag.to_le_bytes());
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::Rollback)?;
        if record.head.len() != ROLLBACK_HEAD || !record.body.is_empty() {
            return Err(RecordError::Head("a rollback has a head of 32 bytes and no body"));
        }
        Ok(Self {
            cause: Offset::new(read_u64(record.head, 0)),
            message: Offset::new(read_u64(record.head, 8)),
            at: Timestamp::from_millis(read_u64(record.head, 16)),
            tag: read_u64(record.head, 24),
        })
    }
}
