//! Topics (kind 15) and groups (kind 17) with their settings.
//!
//! ```text
//! topic set  head   0          4         6       7      8         16
//!                   +----------+---------+-------+------+---------+- - - +
//!                   | topic id | queues  | type  | zero | at ms   | name |
//!                   +----------+---------+-------+------+---------+- - - +
//! group set  head   0          4       8         16                24
//!                   +----------+-------+---------+-----------------+- - - +
//!                   | group id | epoch | at ms   | invisible for   | name |
//!                   |          |       |         | ms              |      |
//!                   +----------+-------+---------+-----------------+- - - +
//! ```
//!
//! Ids count creations from 1 up and are never used again, so that a name made anew starts empty. A group
//! that is set again keeps its id and epoch. The other settings of a group are its body, whose format page
//! is `group_settings.rs`; that of a topic is empty today.

use super::{Encoded, Kind, Record, RecordError, group_settings, read_u16, read_u32, read_u64};
use crate::clock::Timestamp;
use crate::message::GroupSettings;

const TOPIC_HEAD: usize = 16;
const GROUP_HEAD: usize = 24;

/// What a topic takes. Persisted; today every topic is mixed.
const MIXED: u8 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSet {
    pub topic_id: u32,
    pub queues: u16,
    pub at: Timestamp,
    pub name: String,
}

impl TopicSet {
    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::TopicSet, TOPIC_HEAD + self.name.len(), 0);
        record.head(&self.topic_id.to_le_bytes());
        record.head(&self.queues.to_le_bytes());
        record.head(&[MIXED, 0]);
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(self.name.as_bytes());
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::TopicSet)?;
        let (head, name) = split_name(record, TOPIC_HEAD)?;
        if head[6] != MIXED || head[7] != 0 {
            return Err(RecordError::Head("a topic's type is not known"));
        }
        let queues = read_u16(head, 4);
        if queues == 0 {
            return Err(RecordError::Head("a topic has at least one queue"));
        }
        Ok(Self {
            topic_id: read_u32(head, 0),
            queues,
            at: Timestamp::from_millis(read_u64(head, 8)),
            name,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSet {
    pub group_id: u32,
    /// The incarnation that made the group: receipt handles of another epoch are void.
    pub epoch: u32,
    pub at: Timestamp,
    pub name: String,
    pub settings: GroupSettings,
}

impl GroupSet {
    pub fn encode(&self) -> Encoded {
        let body = group_settings::encode(&self.settings);
        let mut record = Encoded::start(Kind::GroupSet, GROUP_HEAD + self.name.len(), body.len());
        record.head(&self.group_id.to_le_bytes());
        record.head(&self.epoch.to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.settings.invisible_for_ms.to_le_bytes());
        record.head(self.name.as_bytes());
        record.finish(&body)
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::GroupSet)?;
        let (head, name) = split_name(record, GROUP_HEAD)?;
        Ok(Self {
            group_id: read_u32(head, 0),
            epoch: read_u32(head, 4),
            at: Timestamp::from_millis(read_u64(head, 8)),
            name,
            settings: GroupSettings {
                invisible_for_ms: read_u64(head, 16),
                ..group_settings::decode(record.body)?
            },
        })
    }
}

fn split_name<'a>(record: &Record<'a>, fixed: usize) -> Result<(&'a [u8], String), RecordError> {
    if record.head.len() <= fixed {
        return Err(RecordError::Short { needed: fixed + 1, got: record.head.len() });
    }
    let (head, name) = record.head.split_at(fixed);
    match std::str::from_utf8(name) {
        Ok(name) => Ok((head, name.to_owned())),
        Err(_) => Err(RecordError::Head("a name is not UTF-8")),
    }
}
