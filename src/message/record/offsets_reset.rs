//! From where a group reads a topic, and what of it (kind 19).
//!
//! ```text
//! head   0          4          8         16      24       28       32            40
//!        +----------+----------+---------+-------+--------+--------+-------------+
//!        | group id | topic id | at ms   | fence | queues | filter | retries end |
//!        +----------+----------+---------+-------+--------+--------+-------------+
//! body   queue offset 8, for each queue; then, if there is a filter: count 2, each tag: length 2, bytes
//! ```
//!
//! - Written when a group first receives from a topic, and when its offsets are reset.
//! - *queue offset*: the group has nothing of the queue before it and everything from it on; what it had
//!   acknowledged is forgotten. All ones: the queue stays as it is.
//! - *fence*: a lease number. Receipt handles of the group and topic with a lower one are void. It grows
//!   from record to record, across restarts too.
//! - *retries end*: where the group's retry queue of the topic ended. Nacks before this record, and units
//!   before that end, of messages from their queue's offset on are void: those come in their queue.
//! - *filter*: 0 leaves the filter as it is, 1 sets it. No tags are no filter.

use super::tags::{self, Rest};
use super::{Encoded, Kind, Record, RecordError, length_u32, read_u32, read_u64};
use crate::clock::Timestamp;
use crate::message::TagFilter;

const HEAD: usize = 40;
const KEEP: u64 = u64::MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetsReset {
    pub group_id: u32,
    pub topic_id: u32,
    pub at: Timestamp,
    pub fence: u64,
    /// For each queue of the topic, from 0; `None` stays as it is.
    pub queues: Vec<Option<u64>>,
    /// `None` stays as it is.
    pub filter: Option<TagFilter>,
    pub retries_end: u64,
}

impl OffsetsReset {
    pub fn encode(&self) -> Encoded {
        let mut body = Vec::with_capacity(self.queues.len() * 8);
        for offset in &self.queues {
            body.extend_from_slice(&offset.unwrap_or(KEEP).to_le_bytes());
        }
        if let Some(filter) = &self.filter {
            tags::encode(filter, &mut body);
        }
        let mut record = Encoded::start(Kind::OffsetsReset, HEAD, body.len());
        record.head(&self.group_id.to_le_bytes());
        record.head(&self.topic_id.to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.fence.to_le_bytes());
        record.head(&length_u32(self.queues.len()).to_le_bytes());
        record.head(&u32::from(self.filter.is_some()).to_le_bytes());
        record.head(&self.retries_end.to_le_bytes());
        record.finish(&body)
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::OffsetsReset)?;
        let head = record.head;
        if head.len() != HEAD {
            return Err(RecordError::Short { needed: HEAD, got: head.len() });
        }
        let mut rest = Rest(record.body);
        let mut queues = Vec::new();
        for _ in 0..read_u32(head, 24) {
            queues.push(Some(rest.u64()?).filter(|&offset| offset != KEEP));
        }
        let filter = match read_u32(head, 28) {
            0 => None,
            1 => Some(rest.filter()?),
            _ => return Err(RecordError::Head("a reset has a filter or not")),
        };
        rest.end()?;
        Ok(Self {
            group_id: read_u32(head, 0),
            topic_id: read_u32(head, 4),
            at: Timestamp::from_millis(read_u64(head, 8)),
            fence: read_u64(head, 16),
            queues,
            filter,
            retries_end: read_u64(head, 32),
        })
    }
}
