//! A message appended again with its body, so that its old segment can go: kind 11.
//!
//! ```text
//! head   0         8       16            24      32
//!        +---------+-------+-------------+-------+- - - - - - - - - - - - -
//!        | message | at ms | deadline ms | flags | the head of its record
//!        +---------+-------+-------------+-------+- - - - - - - - - - - - -
//! body   the message's
//! ```
//!
//! *message* is where the message first stood: what its id is made of, and its name in every other record. From
//! here on it is read here. The move settles nothing and gives no moment: what does (a reschedule to the same
//! moment, a dead letter in the place of another) is appended beside it, where the record that did so goes with the
//! segment, too. *deadline* is the moment the message had when it was moved, 0 for none: the reschedule that gave it
//! may be gone. *flags* bit 0: it waits, so that it is what its timer key stands for.

use super::super::offset::Offset;
use super::{Encoded, Kind, Message, Record, RecordError, read_u64};
use crate::clock::Timestamp;

const MESSAGE_HEAD: usize = 32;

const WAITS: u64 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub message: Offset,
    pub at: Timestamp,
    pub deadline: Option<Timestamp>,
    /// Whether it waits: for its moment, or for its transaction to be decided.
    pub waits: bool,
    /// As its first record has it.
    pub of: Message,
}

impl Moved {
    pub fn encode(&self, body: &[u8]) -> Encoded {
        let length = MESSAGE_HEAD + self.of.head_length();
        let mut record = Encoded::start(Kind::Move, length, body.len());
        record.head(&self.message.get().to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.deadline.map_or(0, Timestamp::as_millis).to_le_bytes());
        record.head(&(u64::from(self.waits) * WAITS).to_le_bytes());
        self.of.encode_head(&mut record);
        record.finish(body)
    }

    /// Reads the head of a move; the body need not be at hand.
    ///
    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::Move)?;
        let Some((fixed, head)) = record.head.split_at_checked(MESSAGE_HEAD) else {
            return Err(RecordError::Short { needed: MESSAGE_HEAD, got: record.head.len() });
        };
        let waits = match read_u64(fixed, 24) {
            0 => false,
            WAITS => true,
            _ => return Err(RecordError::NotZero),
        };
        Ok(Self {
            message: Offset::new(read_u64(fixed, 0)),
            at: Timestamp::from_millis(read_u64(fixed, 8)),
            deadline: Some(read_u64(fixed, 16)).filter(|&at| at > 0).map(Timestamp::from_millis),
            waits,
            of: Message::decode_head(head)?,
        })
    }
}
