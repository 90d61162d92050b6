//! What consumers are done with: acks (kind 8), and leases that ran out (kind 10).
//!
//! ```text
//! ack            head   0       4       8       16
//!                       +-------+-------+-------+
//!                       | group | count | at ms |
//!                       +-------+-------+-------+
//! lease expired  head   the same, then one entry and the attempt that ran out (4), zero (4)
//! entry                 0        4       6      8             16
//!                       +--------+-------+------+-------------+
//!                       | topic  | queue | more | queue       |
//!                       | id     |       |      | offset      |
//!                       +--------+-------+------+-------------+
//! ```
//!
//! The entries of an ack are its body. An entry stands for the message at *queue offset* and the *more*
//! messages right behind it: what a tag filter leaves out comes in long runs. A lease that ran out is one
//! message, its *more* is zero.

use super::{Encoded, Kind, Record, RecordError, length_u32, read_u16, read_u32, read_u64};
use crate::clock::Timestamp;

const HEAD: usize = 16;
pub(super) const ENTRY: usize = 16;
const EXPIRED_HEAD: usize = HEAD + ENTRY + 8;

/// One message that a group is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Acked {
    pub topic_id: u32,
    pub queue: u16,
    pub queue_offset: u64,
}

/// A message that a group is done with, and so many right behind it in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AckedRun {
    pub first: Acked,
    pub more: u16,
}

impl AckedRun {
    /// The most messages of one run.
    pub const MAX: u64 = 1 << 16;

    pub fn count(&self) -> u64 {
        u64::from(self.more) + 1
    }

    fn encode(&self) -> [u8; ENTRY] {
        let mut entry = self.first.encode();
        entry[6..8].copy_from_slice(&self.more.to_le_bytes());
        entry
    }

    fn decode(entry: &[u8]) -> Result<Self, RecordError> {
        let more = read_u16(entry, 6);
        let first = Acked {
            topic_id: read_u32(entry, 0),
            queue: read_u16(entry, 4),
            queue_offset: read_u64(entry, 8),
        };
        if first.queue_offset.checked_add(u64::from(more)).is_none() {
            return Err(RecordError::Head("a run of acks ends beyond every queue"));
        }
        Ok(Self { first, more })
    }
}

impl From<Acked> for AckedRun {
    fn from(first: Acked) -> Self {
        Self { first, more: 0 }
    }
}

impl Acked {
    pub(super) fn encode(&self) -> [u8; ENTRY] {
        let mut entry = [0; ENTRY];
        entry[..4].copy_from_slice(&self.topic_id.to_le_bytes());
        entry[4..6].copy_from_slice(&self.queue.to_le_bytes());
        entry[8..].copy_from_slice(&self.queue_offset.to_le_bytes());
        entry
    }

    pub(super) fn decode(entry: &[u8]) -> Result<Self, RecordError> {
        match AckedRun::decode(entry)? {
            AckedRun { first, more: 0 } => Ok(first),
            AckedRun { .. } => Err(RecordError::NotZero),
        }
    }
}

/// A group's acks, as many as came in one request, or what its filter left out in one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    pub group_id: u32,
    pub at: Timestamp,
    pub acked: Vec<AckedRun>,
}

impl Ack {
    pub fn encode(&self) -> Encoded {
        let mut body = Vec::with_capacity(self.acked.len() * ENTRY);
        for acked in &self.acked {
            body.extend_from_slice(&acked.encode());
        }
        let mut record = Encoded::start(Kind::Ack, HEAD, body.len());
        record.head(&self.group_id.to_le_bytes());
        record.head(&length_u32(self.acked.len()).to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.finish(&body)
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::Ack)?;
        let head = record.head;
        if head.len() != HEAD || record.body.len() != read_u32(head, 4) as usize * ENTRY {
            return Err(RecordError::Head("an ack's count and body disagree"));
        }
        Ok(Self {
            group_id: read_u32(head, 0),
            at: Timestamp::from_millis(read_u64(head, 8)),
            acked: record
                .body
                .chunks_exact(ENTRY)
                .map(AckedRun::decode)
                .collect::<Result<_, _>>()?,
        })
    }
}

/// A lease that ended without an ack: the attempt counts, also across a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseExpired {
    pub group_id: u32,
    pub at: Timestamp,
    pub message: Acked,
    /// The attempt that ran out, from 1.
    pub attempt: u32,
}

impl LeaseExpired {
    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::LeaseExpired, EXPIRED_HEAD, 0);
        record.head(&self.group_id.to_le_bytes());
        record.head(&1_u32.to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.message.encode());
        record.head(&self.attempt.to_le_bytes());
        record.head(&[0; 4]);
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::LeaseExpired)?;
        let head = record.head;
        if head.len() != EXPIRED_HEAD || !record.body.is_empty() || read_u32(head, 4) != 1 {
            return Err(RecordError::Head("an expired lease has one entry and no body"));
        }
        if read_u32(head, EXPIRED_HEAD - 4) != 0 {
            return Err(RecordError::NotZero);
        }
        Ok(Self {
            group_id: read_u32(head, 0),
            at: Timestamp::from_millis(read_u64(head, 8)),
            message: Acked::decode(&head[HEAD..HEAD + ENTRY])?,
            attempt: read_u32(head, HEAD + ENTRY),
        })
    }
}
