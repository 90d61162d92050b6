//! A message in the log: kind 1; one that waits for its transaction to be decided, a half message: kind 2.
//!
//! ```text
//! head   0        8        16         24             32        36      38         40      42      44
//!        +--------+--------+----------+--------------+---------+-------+----------+-------+-------+- - - - - -
//!        | nonce  | born   | deadline | queue offset | topic   | queue | tag hash | flags | level | attributes
//!        |        | at ms  | ms       |              | id      |       |          |       | queue |
//!        +--------+--------+----------+--------------+---------+-------+----------+-------+-------+- - - - - -
//! ```
//!
//! - *nonce*: random; with the offset it is what the message id's MAC covers.
//! - *flags* bit 0: the message has a moment. Then *deadline* is it and *queue offset* is zero (a
//!   delivery record will give it one); otherwise *deadline* is zero and *queue offset* is its place
//!   in its queue. Bit 1: the index has entries for it. Bit 2: it replaces a timer of its key, and so is
//!   the fact that settles that one. Both are told by the attributes; the bits save reading them.
//! - *queue* is chosen when it is put, for both.
//! - *level queue*: 0, or 1 + the queue of the level topic in which it waits. Then flags bit 0 is set, and
//!   *deadline* - *born at* is what that queue delays by.
//!
//! A half message has the *terms* of its transaction among its attributes, and a message has none. It is read
//! by nobody before its commit, which gives it its place: without a moment its *queue offset* is zero. Its
//! *deadline* is the moment that it is to have once it is committed.
//!
//! A message takes at least 96 bytes, three steps: the outcome of a cause needs three settled bits.

use std::fmt;

use super::super::Attributes;
use super::super::offset::Offset;
use super::{
    Encoded, HEADER_LENGTH, Kind, Record, RecordError, attributes, read_u16, read_u32, read_u64,
};
use crate::clock::Timestamp;

const NONCE: usize = 0;
const BORN_AT: usize = NONCE + 8;
const DEADLINE: usize = BORN_AT + 8;
const QUEUE_OFFSET: usize = DEADLINE + 8;
const TOPIC_ID: usize = QUEUE_OFFSET + 8;
const QUEUE: usize = TOPIC_ID + 4;
const TAG_HASH: usize = QUEUE + 2;
const FLAGS: usize = TAG_HASH + 2;
const LEVEL_QUEUE: usize = FLAGS + 2;
const ATTRIBUTES: usize = LEVEL_QUEUE + 2;
// Header and fixed head alone fill the third step, whatever the attributes.
const _: () = assert!(super::super::offset::round_up(HEADER_LENGTH + ATTRIBUTES) >= 96);

const TIMED: u16 = 1;
const INDEXED: u16 = 1 << 1;
const REPLACES: u16 = 1 << 2;

/// Where a message belongs in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Readable at once, at this place in its queue.
    Ready { queue_offset: u64 },
    /// Waits in the wheel.
    Timed { deadline: Timestamp },
    /// Waits in this queue of the level topic; the last number is not used.
    Level { deadline: Timestamp, queue: u16 },
}

impl Placement {
    /// The moment for which it waits, if it does.
    pub const fn deadline(self) -> Option<Timestamp> {
        match self {
            Self::Ready { .. } => None,
            Self::Timed { deadline } | Self::Level { deadline, .. } => Some(deadline),
        }
    }
}

/// A message put under a key of its topic, of which at most one waits at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedTimer {
    pub key: String,
    /// The one that waited under the key before. This record settles it.
    pub replaces: Option<Replaced>,
}

/// What is needed of a cause to settle it and to find its entry in the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    pub cause: Offset,
    pub deadline: Timestamp,
    pub tag: u64,
}

/// When the producer of a half message is asked what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Whoever asks for the checks of this group may answer.
    pub producer_group: String,
    pub check_after_ms: u64,
    pub check_interval_ms: u64,
    pub max_checks: u32,
    pub abandon_after_ms: u64,
    /// Where its producer is asked; without it, whoever of the group asks for checks is.
    pub check_url: Option<CheckUrl>,
}

/// Where we ask what became of a transaction.
#[derive(Clone, PartialEq, Eq)]
pub struct CheckUrl {
    pub url: String,
    /// What the questions are signed with, as it was given.
    pub secret: Option<String>,
}

impl CheckUrl {
    /// Host and port as they stand in the URL: whose turn it is when many are to be asked.
    pub fn authority(&self) -> &str {
        let rest = self.url.split_once("://").map_or(&*self.url, |(_, rest)| rest);
        rest.split(['/', '?', '#']).next().unwrap_or(rest)
    }
}

impl fmt::Debug for CheckUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signed = if self.secret.is_some() { "signed" } else { "unsigned" };
        write!(formatter, "CheckUrl({}, {signed})", self.url)
    }
}

/// How far a transaction is that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clockwork {
    /// Checks handed out so far.
    pub count: u32,
    /// `None` when there is none to come.
    pub next_check_at: Option<Timestamp>,
    pub abandoned_at: Timestamp,
}

impl Clockwork {
    /// When something is to be done about it: a check, or its end.
    pub fn wakes_at(&self) -> Timestamp {
        self.next_check_at.map_or(self.abandoned_at, |next| next.min(self.abandoned_at))
    }
}

impl Terms {
    /// Of a transaction that was prepared at `born_at`, and never checked.
    pub fn opened(&self, born_at: Timestamp) -> Clockwork {
        self.clockwork(0, born_at, self.check_after_ms, later(born_at, self.abandon_after_ms))
    }

    /// Of one that was resumed at `at`: the first check is at once.
    pub fn resumed(&self, at: Timestamp) -> Clockwork {
        self.clockwork(0, at, 0, later(at, self.abandon_after_ms))
    }

    /// After check `count` was handed out at `at`. Without one to come it ends one interval later.
    pub fn checked(&self, count: u32, at: Timestamp, abandoned_at: Timestamp) -> Clockwork {
        self.clockwork(count, at, self.check_interval_ms, abandoned_at)
    }

    fn clockwork(&self, count: u32, from: Timestamp, in_ms: u64, ends: Timestamp) -> Clockwork {
        let next = later(from, in_ms);
        if count < self.max_checks {
            return Clockwork { count, next_check_at: Some(next), abandoned_at: ends };
        }
        let ends = ends.min(later(from, self.check_interval_ms));
        Clockwork { count, next_check_at: None, abandoned_at: ends }
    }
}

fn later(at: Timestamp, by_ms: u64) -> Timestamp {
    at.checked_add(by_ms).unwrap_or(Timestamp::from_millis(u64::MAX))
}

/// A message as its record has it, without the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub nonce: u64,
    pub born_at: Timestamp,
    pub placement: Placement,
    pub topic_id: u32,
    pub queue: u16,
    pub tag_hash: u16,
    pub topic: String,
    pub attributes: Attributes,
    pub timer: Option<KeyedTimer>,
    /// A half message has them.
    pub terms: Option<Terms>,
}

impl Message {
    pub fn encode(&self, body: &[u8]) -> Encoded {
        let mut record = Encoded::start(self.kind(), self.head_length(), body.len());
        self.encode_head(&mut record);
        record.finish(body)
    }

    /// Bytes that [`Message::encode_head`] adds.
    pub(super) fn head_length(&self) -> usize {
        let (timer, terms) = (self.timer.as_ref(), self.terms.as_ref());
        ATTRIBUTES + attributes::encoded_length(&self.topic, &self.attributes, timer, terms)
    }

    /// The head of a message's record; that of a move ends with one.
    pub(super) fn encode_head(&self, record: &mut Encoded) {
        let (timed, deadline, queue_offset) = match self.placement {
            Placement::Ready { queue_offset } => (0, 0, queue_offset),
            Placement::Timed { deadline } | Placement::Level { deadline, .. } => {
                (TIMED, deadline.as_millis(), 0)
            }
        };
        let level_queue = match self.placement {
            Placement::Level { queue, .. } => {
                queue.checked_add(1).expect("the level topic has fewer queues than that")
            }
            Placement::Ready { .. } | Placement::Timed { .. } => 0,
        };
        let flags = timed | self.flags();
        let (timer, terms) = (self.timer.as_ref(), self.terms.as_ref());
        record.head(&self.nonce.to_le_bytes());
        record.head(&self.born_at.as_millis().to_le_bytes());
        record.head(&deadline.to_le_bytes());
        record.head(&queue_offset.to_le_bytes());
        record.head(&self.topic_id.to_le_bytes());
        record.head(&self.queue.to_le_bytes());
        record.head(&self.tag_hash.to_le_bytes());
        record.head(&flags.to_le_bytes());
        record.head(&level_queue.to_le_bytes());
        attributes::encode(&self.topic, &self.attributes, timer, terms, &mut record.bytes);
    }

    fn kind(&self) -> Kind {
        match self.terms {
            None => Kind::Message,
            Some(_) => Kind::HalfMessage,
        }
    }

    fn flags(&self) -> u16 {
        let indexed = !self.attributes.keys.is_empty() || self.timer.is_some();
        let replaces = self.timer.as_ref().is_some_and(|timer| timer.replaces.is_some());
        u16::from(indexed) * INDEXED + u16::from(replaces) * REPLACES
    }

    /// Gives an encoded ready message its place in its queue, which only the appender knows.
    pub fn set_queue_offset(record: &mut Encoded, queue_offset: u64) {
        record.put_u64(HEADER_LENGTH + QUEUE_OFFSET, queue_offset);
    }

    /// Reads the head of a message record; the body need not be at hand.
    ///
    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        expect_message(record)?;
        let message = Self::decode_head(record.head)?;
        if message.kind() != record.header.kind {
            return Err(RecordError::Head("only a half message has terms"));
        }
        Ok(message)
    }

    /// Reads what [`Message::encode_head`] wrote.
    pub(super) fn decode_head(head: &[u8]) -> Result<Self, RecordError> {
        let fixed = MessageHead::decode(head)?;
        let fields = attributes::decode(&head[ATTRIBUTES..])?;
        let message = Self {
            nonce: fixed.nonce,
            born_at: fixed.born_at,
            placement: fixed.placement,
            topic_id: fixed.topic_id,
            queue: fixed.queue,
            tag_hash: fixed.tag_hash,
            topic: fields.topic,
            attributes: fields.attributes,
            timer: fields.timer,
            terms: fields.terms,
        };
        if message.flags() != read_u16(head, FLAGS) & !TIMED {
            return Err(RecordError::Head("flags and attributes disagree"));
        }
        Ok(message)
    }

    /// The fixed part alone: all that dispatch and the timer need, with nothing allocated.
    ///
    /// # Errors
    ///
    /// As [`Message::decode`].
    pub fn decode_fixed(record: &Record<'_>) -> Result<MessageHead, RecordError> {
        expect_message(record)?;
        MessageHead::decode(record.head)
    }
}

fn expect_message(record: &Record<'_>) -> Result<(), RecordError> {
    match record.header.kind {
        Kind::HalfMessage => Ok(()),
        _ => record.expect(Kind::Message),
    }
}

/// The fixed part of a message's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHead {
    pub nonce: u64,
    pub born_at: Timestamp,
    pub placement: Placement,
    pub topic_id: u32,
    pub queue: u16,
    pub tag_hash: u16,
    /// The index has entries for it: it has keys.
    pub indexed: bool,
    /// It settles the timer that waited under its key.
    pub replaces: bool,
}

impl MessageHead {
    fn decode(head: &[u8]) -> Result<Self, RecordError> {
        if head.len() < ATTRIBUTES {
            return Err(RecordError::Short { needed: ATTRIBUTES, got: head.len() });
        }
        let deadline = read_u64(head, DEADLINE);
        let queue_offset = read_u64(head, QUEUE_OFFSET);
        let flags = read_u16(head, FLAGS);
        if flags & !(TIMED | INDEXED | REPLACES) != 0 {
            return Err(RecordError::NotZero);
        }
        let level_queue = read_u16(head, LEVEL_QUEUE).checked_sub(1);
        let placement = match (flags & TIMED, deadline, queue_offset, level_queue) {
            (0, 0, queue_offset, None) => Placement::Ready { queue_offset },
            (TIMED, deadline, 0, None) => {
                Placement::Timed { deadline: Timestamp::from_millis(deadline) }
            }
            (TIMED, deadline, 0, Some(queue)) => {
                Placement::Level { deadline: Timestamp::from_millis(deadline), queue }
            }
            _ => return Err(RecordError::Head("flags, deadline, queue offset and level disagree")),
        };
        Ok(Self {
            nonce: read_u64(head, NONCE),
            born_at: Timestamp::from_millis(read_u64(head, BORN_AT)),
            placement,
            topic_id: read_u32(head, TOPIC_ID),
            queue: read_u16(head, QUEUE),
            tag_hash: read_u16(head, TAG_HASH),
            indexed: flags & INDEXED != 0,
            replaces: flags & REPLACES != 0,
        })
    }
}

/// Hashes a tag to the 16 bits that pointers carry, so that a filter reads no message it can leave
/// out. No tag is 0; a tag is never 0.
pub fn tag_hash(tag: Option<&str>) -> u16 {
    match tag {
        None => 0,
        Some(tag) => {
            let hash = xxhash_rust::xxh3::xxh3_64(tag.as_bytes());
            u16::try_from(hash % 65_535 + 1).expect("at most 65535")
        }
    }
}
