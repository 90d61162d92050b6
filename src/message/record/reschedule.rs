//! A reschedule: kind 3. A message that waits is given another moment.
//!
//! ```text
//! head   0       8         16              24         32     40      48               52     56
//!        +-------+---------+---------------+----------+------+-------+----------------+------+
//!        | cause | message | was due at ms | deadline | tag  | at ms | message length | zero |
//!        +-------+---------+---------------+----------+------+-------+----------------+------+
//! ```
//!
//! It is a fact and a cause at once: it settles *cause*, the record that gave the message its moment until
//! now, and is what gives it one from here on. *message* is the message's own record, whose unpadded bytes
//! are *message length*: a message that was moved is read by way of its last reschedule. *was due at* and
//! *tag* are those of the old entry in the wheel; the new entry has the same tag. A *tag* of kind 4 says that
//! there is no old entry: the message waited in a delay level. From here on it waits in the wheel, by the
//! same tag of kind 1.
//!
//! Like every cause it takes at least 96 bytes, three steps of settled bits.

use super::super::offset::{Offset, round_up};
use super::{Encoded, HEADER_LENGTH, Kind, Record, RecordError, read_u32, read_u64};
use crate::clock::Timestamp;

const HEAD: usize = 56;
const _: () = assert!(round_up(HEADER_LENGTH + HEAD) >= 96);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reschedule {
    pub cause: Offset,
    pub message: Offset,
    pub was_due_at: Timestamp,
    pub deadline: Timestamp,
    pub tag: u64,
    pub at: Timestamp,
    pub message_length: u32,
}

impl Reschedule {
    /// The unpadded length of the record: what pointers to it say.
    #[expect(clippy::cast_possible_truncation, reason = "it is 88")]
    pub const LENGTH: u32 = (HEADER_LENGTH + HEAD) as u32;

    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::Reschedule, HEAD, 0);
        record.head(&self.cause.get().to_le_bytes());
        record.head(&self.message.get().to_le_bytes());
        record.head(&self.was_due_at.as_millis().to_le_bytes());
        record.head(&self.deadline.as_millis().to_le_bytes());
        record.head(&self.tag.to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.message_length.to_le_bytes());
        record.head(&[0; 4]);
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::Reschedule)?;
        if record.head.len() != HEAD || !record.body.is_empty() {
            return Err(RecordError::Head("a reschedule has a head of 56 bytes and no body"));
        }
        if read_u32(record.head, 52) != 0 {
            return Err(RecordError::NotZero);
        }
        Ok(Self {
            cause: Offset::new(read_u64(record.head, 0)),
            message: Offset::new(read_u64(record.head, 8)),
            was_due_at: Timestamp::from_millis(read_u64(record.head, 16)),
            deadline: Timestamp::from_millis(read_u64(record.head, 24)),
            tag: read_u64(record.head, 32),
            at: Timestamp::from_millis(read_u64(record.head, 40)),
            message_length: read_u32(record.head, 48),
        })
    }
}
