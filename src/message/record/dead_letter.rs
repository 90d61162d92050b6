//! A message that was handed out as often as its group allows (kind 23).
//!
//! ```text
//! head   0       4          8       16      32       80             88        92       93     96
//!        +-------+----------+-------+-------+--------+--------------+---------+--------+------+
//!        | group | attempts | at ms | place | origin | queue offset | dead    | reason | zero |
//!        | id    |          |       | 16    | 48     |              | letters |        |      |
//!        +-------+----------+-------+-------+--------+--------------+---------+--------+------+
//! ```
//!
//! The place (as in a nack) is acknowledged, and this record is unit *queue offset* of the one queue of
//! *dead letters*, a topic of the system, in one step: readable there at once.

use super::origin::{self, Origin};
use super::{Acked, Encoded, Kind, Record, RecordError, read_u32, read_u64};
use crate::clock::Timestamp;

const PLACE: usize = 16;
const ORIGIN: usize = PLACE + super::ack::ENTRY;
const QUEUE_OFFSET: usize = ORIGIN + origin::LENGTH;
const DEAD_LETTERS: usize = QUEUE_OFFSET + 8;
const REASON: usize = DEAD_LETTERS + 4;
const HEAD: usize = REASON + 4;
const _: () = assert!(HEAD == 96);

/// How the last attempt ended. Persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DeathReason {
    Nacked = 1,
    LeaseExpired = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub group_id: u32,
    pub attempts: u32,
    pub at: Timestamp,
    pub place: Acked,
    pub origin: Origin,
    pub queue_offset: u64,
    pub dead_letters: u32,
    pub reason: DeathReason,
}

impl DeadLetter {
    /// What one takes in the log.
    pub const ENCODED_LENGTH: usize = super::round_up(super::HEADER_LENGTH + HEAD);

    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::DeadLetter, HEAD, 0);
        record.head(&self.group_id.to_le_bytes());
        record.head(&self.attempts.to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.place.encode());
        record.head(&self.origin.encode());
        record.head(&self.queue_offset.to_le_bytes());
        record.head(&self.dead_letters.to_le_bytes());
        record.head(&[self.reason as u8, 0, 0, 0]);
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::DeadLetter)?;
        let head = record.head;
        if head.len() != HEAD || record.header.body_length() != 0 {
            return Err(RecordError::Head("a dead letter has a head of 96 bytes and no body"));
        }
        if head[REASON + 1..] != [0; 3] {
            return Err(RecordError::NotZero);
        }
        let reason = match head[REASON] {
            1 => DeathReason::Nacked,
            2 => DeathReason::LeaseExpired,
            _ => return Err(RecordError::Head("a dead letter's reason is not known")),
        };
        Ok(Self {
            group_id: read_u32(head, 0),
            attempts: read_u32(head, 4),
            at: Timestamp::from_millis(read_u64(head, 8)),
            place: Acked::decode(&head[PLACE..ORIGIN])?,
            origin: Origin::decode(&head[ORIGIN..QUEUE_OFFSET])?,
            queue_offset: read_u64(head, QUEUE_OFFSET),
            dead_letters: read_u32(head, DEAD_LETTERS),
            reason,
        })
    }
}
