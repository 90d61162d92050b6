//! A consumer gives a message back (kind 9): the end of an attempt, and the cause of the next one.
//!
//! ```text
//! head   0       4         8       16      32       80        88      96
//!        +-------+---------+-------+-------+--------+---------+-------+
//!        | group | attempt | at ms | place | origin | comes at| tag   |
//!        | id    |         |       | 16    | 48     | ms      |       |
//!        +-------+---------+-------+-------+--------+---------+-------+
//! ```
//!
//! - *place* is what was handed out, an entry as in an ack with no run; *attempt* is the one that ended,
//!   from 1; *origin* is where the message first stood (see `origin.rs`).
//! - With a *tag* the place is acknowledged by this record, which is a cause: at *comes at* it is delivered
//!   to the retry queue that the tag names, in whose units the tag hash is the attempts made.
//! - With a tag of 0 the message stays in its place, not before *comes at*: so in an ordered group.

use super::origin::{self, Origin};
use super::{Acked, Encoded, Kind, Record, RecordError, read_u32, read_u64};
use crate::clock::Timestamp;

const PLACE: usize = 16;
const ORIGIN: usize = PLACE + super::ack::ENTRY;
const COMES_AT: usize = ORIGIN + origin::LENGTH;
const TAG: usize = COMES_AT + 8;
const HEAD: usize = TAG + 8;
const _: () = assert!(HEAD == 96);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    pub group_id: u32,
    pub attempt: u32,
    pub at: Timestamp,
    pub place: Acked,
    pub origin: Origin,
    pub comes_at: Timestamp,
    /// The retry queue, as the timer's tag; `None`: it stays in its place.
    pub tag: Option<u64>,
}

impl Nack {
    /// What one takes in the log.
    pub const ENCODED_LENGTH: usize = super::round_up(super::HEADER_LENGTH + HEAD);

    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::Nack, HEAD, 0);
        record.head(&self.group_id.to_le_bytes());
        record.head(&self.attempt.to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.place.encode());
        record.head(&self.origin.encode());
        record.head(&self.comes_at.as_millis().to_le_bytes());
        record.head(&self.tag.unwrap_or(0).to_le_bytes());
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::Nack)?;
        let head = record.head;
        if head.len() != HEAD || record.header.body_length() != 0 {
            return Err(RecordError::Head("a nack has a head of 96 bytes and no body"));
        }
        Ok(Self {
            group_id: read_u32(head, 0),
            attempt: read_u32(head, 4),
            at: Timestamp::from_millis(read_u64(head, 8)),
            place: Acked::decode(&head[PLACE..ORIGIN])?,
            origin: Origin::decode(&head[ORIGIN..COMES_AT])?,
            comes_at: Timestamp::from_millis(read_u64(head, COMES_AT)),
            tag: Some(read_u64(head, TAG)).filter(|&tag| tag != 0),
        })
    }
}
