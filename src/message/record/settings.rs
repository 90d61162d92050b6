//! Topics (kinds 15, 16) and groups (kind 17) with their settings.
//!
//! ```text
//! topic set  head   0          4         6       7      8         16           24
//!                   +----------+---------+-------+------+---------+------------+- - - +
//!                   | topic id | queues  | type  | zero | at ms   | retention  | name |
//!                   |          |         |       |      |         | ms         |      |
//!                   +----------+---------+-------+------+---------+------------+- - - +
//!            body   of the level topic: for each queue what it delays by in ms, 8; of others none
//! topic      head   0          4      8       16
//! deleted           +----------+------+-------+
//!                   | topic id | zero | at ms |
//!                   +----------+------+-------+
//! group set  head   0          4       8         16                24
//!                   +----------+-------+---------+-----------------+- - - +
//!                   | group id | epoch | at ms   | invisible for   | name |
//!                   |          |       |         | ms              |      |
//!                   +----------+-------+---------+-----------------+- - - +
//! ```
//!
//! Ids count creations from 1 up and are never used again, so that a name made anew starts empty. A set
//! record of an id that is there changes its settings; a group keeps its epoch. *Retention* 0 is the
//! server's own. The other settings of a group are its body, whose format page is `group_settings.rs`. The
//! level topic's records name all its queues, so the newest one alone says all.

use super::super::{TopicSettings, TopicType};
use super::{Encoded, Kind, Record, RecordError, group_settings, read_u16, read_u32, read_u64};
use crate::clock::Timestamp;
use crate::message::GroupSettings;

const TOPIC_HEAD: usize = 24;
const DELETED_HEAD: usize = 16;
const GROUP_HEAD: usize = 24;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSet {
    pub topic_id: u32,
    pub settings: TopicSettings,
    pub at: Timestamp,
    pub name: String,
    /// What each queue delays by: of the level topic only, else empty.
    pub delays_ms: Vec<u64>,
}

/// From this record on nothing of the topic is delivered, whatever waits in the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicDeleted {
    pub topic_id: u32,
    pub at: Timestamp,
}

/// The number of a topic type on the disk.
pub fn topic_type_number(of: TopicType) -> u8 {
    match of {
        TopicType::Mixed => 1,
        TopicType::Normal => 2,
        TopicType::Delay => 3,
        TopicType::Fifo => 4,
        TopicType::Transaction => 5,
    }
}

/// The topic type that `number` stands for on the disk.
pub fn topic_type_of(number: u8) -> Option<TopicType> {
    TopicType::ALL.into_iter().find(|&of| topic_type_number(of) == number)
}

impl TopicSet {
    pub fn encode(&self) -> Encoded {
        let delays = self.delays_ms.iter().flat_map(|delay| delay.to_le_bytes());
        let body: Vec<u8> = delays.collect();
        let head = TOPIC_HEAD + self.name.len();
        let mut record = Encoded::start(Kind::TopicSet, head, body.len());
        record.head(&self.topic_id.to_le_bytes());
        record.head(&self.settings.queues.to_le_bytes());
        record.head(&[topic_type_number(self.settings.of), 0]);
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.settings.retention_ms.unwrap_or(0).to_le_bytes());
        record.head(self.name.as_bytes());
        record.finish(&body)
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::TopicSet)?;
        let (head, name) = split_name(record, TOPIC_HEAD)?;
        if head[7] != 0 {
            return Err(RecordError::NotZero);
        }
        let of = topic_type_of(head[6]).ok_or(RecordError::Head("a topic's type is not known"))?;
        let queues = read_u16(head, 4);
        if queues == 0 {
            return Err(RecordError::Head("a topic has at least one queue"));
        }
        let retention_ms = Some(read_u64(head, 16)).filter(|&retention| retention > 0);
        let body = record.body;
        if !body.is_empty() && body.len() != 8 * usize::from(queues) {
            return Err(RecordError::Head("a topic's queues and delays disagree"));
        }
        Ok(Self {
            topic_id: read_u32(head, 0),
            settings: TopicSettings { of, queues, retention_ms },
            at: Timestamp::from_millis(read_u64(head, 8)),
            name,
            delays_ms: body.chunks_exact(8).map(|delay| read_u64(delay, 0)).collect(),
        })
    }
}

impl TopicDeleted {
    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::TopicDeleted, DELETED_HEAD, 0);
        record.head(&self.topic_id.to_le_bytes());
        record.head(&[0; 4]);
        record.head(&self.at.as_millis().to_le_bytes());
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::TopicDeleted)?;
        if record.head.len() != DELETED_HEAD || !record.body.is_empty() {
            return Err(RecordError::Head("a topic's deletion has a head of 16 bytes and no body"));
        }
        if read_u32(record.head, 4) != 0 {
            return Err(RecordError::NotZero);
        }
        let (topic_id, at) = (read_u32(record.head, 0), read_u64(record.head, 8));
        Ok(Self { topic_id, at: Timestamp::from_millis(at) })
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
