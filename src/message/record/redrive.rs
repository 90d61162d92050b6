//! Dead letters that their group reads again (kind 24).
//!
//! ```text
//! head   0       4       8       16        20      24             32
//!        +-------+-------+-------+---------+-------+--------------+
//!        | group | count | at ms | dead    | retry | first queue  |
//!        | id    |       |       | letters | topic | offset       |
//!        +-------+-------+-------+---------+-------+--------------+
//! entry  0              8             16       20     24        32     (the body)
//!        +--------------+-------------+--------+------+---------+
//!        | queue offset | dead letter | length | zero | message |
//!        +--------------+-------------+--------+------+---------+
//! ```
//!
//! Each entry takes the unit at *queue offset* out of the *dead letters* and is, in order, a unit of the
//! retry topic's queue from *first queue offset* on; it points at the record of the *dead letter*, and
//! *message* is the own record of the message that it is about. Attempts
//! begin again from 1.

use super::{Encoded, Kind, Record, RecordError, length_u32, read_u32, read_u64};
use crate::clock::Timestamp;
use crate::message::offset::Offset;

const HEAD: usize = 32;
const ENTRY: usize = 32;

/// One dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redriven {
    pub queue_offset: u64,
    pub record: Offset,
    pub length: u32,
    pub message: Offset,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redrive {
    pub group_id: u32,
    pub at: Timestamp,
    pub dead_letters: u32,
    pub retry_topic: u32,
    pub first_queue_offset: u64,
    pub redriven: Vec<Redriven>,
}

impl Redrive {
    /// What a redrive of `count` takes in the log.
    pub fn encoded_length(count: usize) -> usize {
        super::round_up(super::HEADER_LENGTH + HEAD + count * ENTRY)
    }

    pub fn encode(&self) -> Encoded {
        let mut body = Vec::with_capacity(self.redriven.len() * ENTRY);
        for one in &self.redriven {
            body.extend_from_slice(&one.queue_offset.to_le_bytes());
            body.extend_from_slice(&one.record.get().to_le_bytes());
            body.extend_from_slice(&one.length.to_le_bytes());
            body.extend_from_slice(&[0; 4]);
            body.extend_from_slice(&one.message.get().to_le_bytes());
        }
        let mut record = Encoded::start(Kind::Redrive, HEAD, body.len());
        record.head(&self.group_id.to_le_bytes());
        record.head(&length_u32(self.redriven.len()).to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.dead_letters.to_le_bytes());
        record.head(&self.retry_topic.to_le_bytes());
        record.head(&self.first_queue_offset.to_le_bytes());
        record.finish(&body)
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::Redrive)?;
        let head = record.head;
        if head.len() != HEAD || record.body.len() != read_u32(head, 4) as usize * ENTRY {
            return Err(RecordError::Head("a redrive's count and body disagree"));
        }
        let entries = record.body.chunks_exact(ENTRY).map(|entry| {
            if read_u32(entry, 20) != 0 {
                return Err(RecordError::NotZero);
            }
            let (queue_offset, record) = (read_u64(entry, 0), Offset::new(read_u64(entry, 8)));
            let (length, message) = (read_u32(entry, 16), Offset::new(read_u64(entry, 24)));
            Ok(Redriven { queue_offset, record, length, message })
        });
        Ok(Self {
            group_id: read_u32(head, 0),
            at: Timestamp::from_millis(read_u64(head, 8)),
            dead_letters: read_u32(head, 16),
            retry_topic: read_u32(head, 20),
            first_queue_offset: read_u64(head, 24),
            redriven: entries.collect::<Result<_, _>>()?,
        })
    }
}
