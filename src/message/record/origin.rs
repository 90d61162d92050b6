//! Where a message stood when it first became readable, inside the records that carry it on: a retry or a
//! dead letter points here and copies no body.
//!
//! ```text
//! byte   0          4       6      8              16      24       28     32            40        48
//!        +----------+-------+------+--------------+-------+--------+------+-------------+---------+
//!        | topic id | queue | zero | queue offset | cause | length | zero | readable at | message |
//!        |          |       |      |              |       |        |      | ms          |         |
//!        +----------+-------+------+--------------+-------+--------+------+-------------+---------+
//! ```
//!
//! *cause* is the record that the unit of that place points at, *length* that record's, *message* the
//! message's own record: the same, unless it was moved or committed. They are those of the first time, however
//! often the message has come again: no chain grows.

use super::{RecordError, read_u16, read_u32, read_u64};
use crate::clock::Timestamp;
use crate::message::offset::Offset;

pub(super) const LENGTH: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub topic_id: u32,
    pub queue: u16,
    pub queue_offset: u64,
    pub cause: Offset,
    pub length: u32,
    pub readable_at: Timestamp,
    pub message: Offset,
}

impl Origin {
    pub(super) fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&self.topic_id.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.queue.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.queue_offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.cause.get().to_le_bytes());
        bytes[24..28].copy_from_slice(&self.length.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.readable_at.as_millis().to_le_bytes());
        bytes[40..].copy_from_slice(&self.message.get().to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        if read_u16(bytes, 6) != 0 || read_u32(bytes, 28) != 0 {
            return Err(RecordError::NotZero);
        }
        Ok(Self {
            topic_id: read_u32(bytes, 0),
            queue: read_u16(bytes, 4),
            queue_offset: read_u64(bytes, 8),
            cause: Offset::new(read_u64(bytes, 16)),
            length: read_u32(bytes, 24),
            readable_at: Timestamp::from_millis(read_u64(bytes, 32)),
            message: Offset::new(read_u64(bytes, 40)),
        })
    }
}
