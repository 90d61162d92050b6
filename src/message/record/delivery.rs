//! A delivery: kind 5. A run of messages that became readable on one queue, as pointers.
//!
//! ```text
//! head   0          8                    16        20      22       23     24      28     32
//!        +----------+--------------------+---------+-------+--------+------+-------+------+
//!        | fired at | first queue offset | topic   | queue | reason | zero | count | zero |
//!        | ms       |                    | id      |       |        |      |       |      |
//!        +----------+--------------------+---------+-------+--------+------+-------+------+
//! body   chunks of at most 256 entries, each chunk followed by the CRC-32C of its entries
//! entry  0              6          10         12
//!        +--------------+----------+----------+
//!        | cause / 32   | length   | tag hash |
//!        +--------------+----------+----------+
//! ```
//!
//! Entry `i` of the run is the queue's unit `first queue offset + i`. *cause* is the record that gave
//! the message its moment, *length* that record's unpadded bytes. A run has one *fired at*: it is the
//! reading of the clock with which it was appended, and not before any of its deadlines. The *tag hash*
//! comes from the wheel's entry and goes into the unit: neither firing nor dispatch reads the message. The crc of a
//! chunk lets 256 neighbours survive a damaged body.

use super::super::offset::{Offset, STEP};
use super::{Encoded, Kind, Record, RecordError, read_u16, read_u32, read_u64};
use crate::clock::Timestamp;

const HEAD: usize = 32;
const ENTRY: usize = 12;
const CHUNK: usize = 256;
const CRC: usize = 4;

/// What made the messages readable. Persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DeliveryReason {
    /// Their moment came.
    Deadline = 1,
    /// They were committed, with no moment of their own.
    Commit = 2,
    /// Their delay level released them.
    Level = 3,
    /// Their retry is due.
    Retry = 4,
    /// Somebody asked for them to fire now.
    Asked = 5,
    Redrive = 6,
}

impl DeliveryReason {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Deadline, Self::Commit, Self::Level, Self::Retry, Self::Asked, Self::Redrive]
            .into_iter()
            .find(|reason| *reason as u8 == number)
    }
}

/// One message of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fired {
    pub cause: Offset,
    pub length: u32,
    pub tag_hash: u16,
}

/// A run, borrowed from the record or from the stage that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub fired_at: Timestamp,
    pub first_queue_offset: u64,
    pub topic_id: u32,
    pub queue: u16,
    pub reason: DeliveryReason,
    pub fired: Vec<Fired>,
}

impl Delivery {
    /// What a run of `count` takes in the log.
    pub fn encoded_length(count: usize) -> usize {
        super::round_up(super::HEADER_LENGTH + HEAD + body_length(count))
    }

    pub fn encode(&self) -> Encoded {
        let mut body = Vec::with_capacity(body_length(self.fired.len()));
        for chunk in self.fired.chunks(CHUNK) {
            let start = body.len();
            for fired in chunk {
                let step = (fired.cause.get() / STEP).to_le_bytes();
                body.extend_from_slice(&step[..6]);
                body.extend_from_slice(&fired.length.to_le_bytes());
                body.extend_from_slice(&fired.tag_hash.to_le_bytes());
            }
            let crc = crc32c::crc32c(&body[start..]);
            body.extend_from_slice(&crc.to_le_bytes());
        }
        let mut record = Encoded::start(Kind::Delivery, HEAD, body.len());
        record.head(&self.fired_at.as_millis().to_le_bytes());
        record.head(&self.first_queue_offset.to_le_bytes());
        record.head(&self.topic_id.to_le_bytes());
        record.head(&self.queue.to_le_bytes());
        record.head(&[self.reason as u8, 0]);
        record.head(&super::length_u32(self.fired.len()).to_le_bytes());
        record.head(&[0; 4]);
        record.finish(&body)
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::Delivery)?;
        let head = record.head;
        if head.len() != HEAD {
            return Err(RecordError::Head("a delivery has a head of 32 bytes"));
        }
        let count = read_u32(head, 24) as usize;
        if count == 0 || record.body.len() != body_length(count) {
            return Err(RecordError::Head("a delivery's count and body disagree"));
        }
        if head[23] != 0 || read_u32(head, 28) != 0 {
            return Err(RecordError::NotZero);
        }
        let reason = DeliveryReason::from_number(head[22])
            .ok_or(RecordError::Head("a delivery's reason is not known"))?;
        let mut fired = Vec::with_capacity(count);
        for chunk in record.body.chunks(CHUNK * ENTRY + CRC) {
            decode_chunk(chunk, &mut fired)?;
        }
        Ok(Self {
            fired_at: Timestamp::from_millis(read_u64(head, 0)),
            first_queue_offset: read_u64(head, 8),
            topic_id: read_u32(head, 16),
            queue: read_u16(head, 20),
            reason,
            fired,
        })
    }
}

fn decode_chunk(chunk: &[u8], fired: &mut Vec<Fired>) -> Result<(), RecordError> {
    let (entries, crc) = chunk.split_at(chunk.len() - CRC);
    let (got, expected) = (read_u32(crc, 0), crc32c::crc32c(entries));
    if got != expected {
        return Err(RecordError::BodyCrc { got, expected });
    }
    for entry in entries.chunks_exact(ENTRY) {
        let mut step = [0; 8];
        step[..6].copy_from_slice(&entry[..6]);
        fired.push(Fired {
            cause: Offset::new(u64::from_le_bytes(step) * STEP),
            length: read_u32(entry, 6),
            tag_hash: read_u16(entry, 10),
        });
    }
    Ok(())
}

fn body_length(count: usize) -> usize {
    count * ENTRY + count.div_ceil(CHUNK) * CRC
}
