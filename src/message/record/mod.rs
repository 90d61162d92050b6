//! The record: the unit of truth in the CommitLog. This page is the format of its header; the
//! files beside it are the format pages of the kinds.
//!
//! ```text
//! byte   0         4         8                 16        20        24   25   26     28        32
//!        +---------+---------+-----------------+---------+---------+----+----+------+---------+ - - - - +- - - - +- - -+
//!        | header  | body    | own offset      | head    | body    |kind|ver-| zero | magic   | head    | body   | zero|
//!        | crc     | crc     |                 | length  | length  |    |sion|      |         |         |        | pad |
//!        +---------+---------+-----------------+---------+---------+----+----+------+---------+ - - - - +- - - - +- - -+
//! ```
//!
//! - Little-endian throughout. A record begins at a multiple of 32 bytes and is padded with zeros
//!   to the next one.
//! - *header crc*: CRC-32C of bytes 4 up to the end of the head. *body crc*: CRC-32C of the body.
//!   So the head can be believed without reading the body, and a damaged body costs the body only.
//! - *own offset*: a record that is found elsewhere (an earlier life of a recycled file) is no record.
//! - *magic*: secret to the data directory, so that no body can pass for a record when a damaged
//!   stretch is searched for the next one.
//! - Written by the appender alone. A reader may trust it below the durable watermark, once the
//!   crc, the offset and the magic are right.

mod ack;
mod attributes;
mod cancel;
mod check;
mod commit;
mod dead_letter;
mod delivery;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod group_settings;
mod idempotency;
mod message;
mod moved;
mod nack;
mod offsets_reset;
mod opened;
mod origin;
mod quarantine;
mod redrive;
mod reschedule;
mod settings;
mod state;
mod tags;

pub use ack::{Ack, Acked, AckedRun, LeaseExpired};
pub use attributes::AttributesError;
pub use cancel::Cancel;
pub use check::{Round, RoundKind};
pub use commit::{Commit, Rollback};
pub use dead_letter::{DeadLetter, DeathReason};
pub use delivery::{Delivery, DeliveryReason, Fired};
pub use group_settings::{decode as decode_settings, encode as encode_settings};
pub use idempotency::{Bound, IdempotencyKey, ItemOutcome};
pub use message::{
    CheckUrl, Clockwork, KeyedTimer, Message, MessageHead, Placement, Replaced, Terms, tag_hash,
};
pub use moved::Moved;
pub use nack::Nack;
pub use offsets_reset::OffsetsReset;
pub use opened::Opened;
pub use origin::Origin;
pub use quarantine::{DamageReason, Quarantine};
pub use redrive::{Redrive, Redriven};
pub use reschedule::Reschedule;
pub use settings::{GroupSet, TopicDeleted, TopicSet, topic_type_number, topic_type_of};
pub use state::{STATE_PART, StateEnd, StatePart};

use super::offset::{Offset, round_up};

/// What a record says. The numbers are persisted: never reuse or renumber one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A message, ready at once or at a moment.
    Message = 1,
    /// A message that waits for its transaction to be decided.
    HalfMessage = 2,
    Reschedule = 3,
    Cancel = 4,
    /// A run of messages that became readable on one queue.
    Delivery = 5,
    Commit = 6,
    Rollback = 7,
    Ack = 8,
    Nack = 9,
    LeaseExpired = 10,
    /// A message appended again with its body, so that its old segment can go.
    Move = 11,
    /// A pending message that will not be delivered, and why.
    Drop = 12,
    /// A damaged stretch of the log, set aside.
    Quarantine = 13,
    IdempotencyKey = 14,
    TopicSet = 15,
    TopicDeleted = 16,
    GroupSet = 17,
    GroupDeleted = 18,
    OffsetsReset = 19,
    /// A check-back that was handed to a producer.
    Check = 20,
    Resume = 21,
    Abandon = 22,
    DeadLetter = 23,
    Redrive = 24,
    /// The settled bits of an older segment, before the records that set them go.
    Settled = 25,
    /// A part of the whole state, valid only when its end is there.
    State = 26,
    StateEnd = 27,
    SubscriptionSet = 28,
    SubscriptionDeleted = 29,
    /// The server started: a new incarnation writes from here.
    Opened = 30,
}

impl Kind {
    const ALL: [Self; 30] = [
        Self::Message,
        Self::HalfMessage,
        Self::Reschedule,
        Self::Cancel,
        Self::Delivery,
        Self::Commit,
        Self::Rollback,
        Self::Ack,
        Self::Nack,
        Self::LeaseExpired,
        Self::Move,
        Self::Drop,
        Self::Quarantine,
        Self::IdempotencyKey,
        Self::TopicSet,
        Self::TopicDeleted,
        Self::GroupSet,
        Self::GroupDeleted,
        Self::OffsetsReset,
        Self::Check,
        Self::Resume,
        Self::Abandon,
        Self::DeadLetter,
        Self::Redrive,
        Self::Settled,
        Self::State,
        Self::StateEnd,
        Self::SubscriptionSet,
        Self::SubscriptionDeleted,
        Self::Opened,
    ];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// Secret to one data directory; see the page above.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Magic(pub u32);

impl std::fmt::Debug for Magic {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Magic(secret)")
    }
}

/// The version that this program writes, for every kind.
pub const VERSION: u8 = 1;

const HEADER_CRC: usize = 0;
const BODY_CRC: usize = HEADER_CRC + 4;
const OWN_OFFSET: usize = BODY_CRC + 4;
const HEAD_LENGTH: usize = OWN_OFFSET + 8;
const BODY_LENGTH: usize = HEAD_LENGTH + 4;
const KIND: usize = BODY_LENGTH + 4;
const VERSION_AT: usize = KIND + 1;
const RESERVED: usize = VERSION_AT + 1;
const MAGIC: usize = RESERVED + 2;
/// The fixed part of every record, in bytes.
pub const HEADER_LENGTH: usize = MAGIC + 4;
const _: () = assert!(HEADER_LENGTH == 32);

/// The longest head: properties of 32 KiB, names, tracing fields and room to grow.
pub const MAX_HEAD_LENGTH: usize = 256 * 1024;

/// Why bytes are not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("{needed} bytes needed, {got} there")]
    Short { needed: usize, got: usize },
    #[error("header crc is {got:08x}, computed {expected:08x}")]
    HeaderCrc { got: u32, expected: u32 },
    #[error("body crc is {got:08x}, computed {expected:08x}")]
    BodyCrc { got: u32, expected: u32 },
    #[error("it names offset {got} as its own, but stands at {expected}")]
    Offset { got: u64, expected: u64 },
    #[error("it has another data directory's magic")]
    Magic,
    #[error("its head of {got} bytes is longer than {MAX_HEAD_LENGTH}")]
    HeadTooLong { got: usize },
    #[error("record kind {number} is not known")]
    UnknownKind { number: u8 },
    #[error("record version {got} is newer than {VERSION}, the newest this program reads")]
    Version { got: u8 },
    #[error("bytes that must be zero are not")]
    NotZero,
    #[error("its head does not follow the format: {0}")]
    Head(&'static str),
    #[error(transparent)]
    Attributes(#[from] AttributesError),
    /// Its segment was let go: what it said is settled, or has expired.
    #[error("the log begins at {begin} now")]
    LetGo { begin: u64 },
    #[error("it is a {got:?} where a {expected:?} was looked for")]
    Kind { got: Kind, expected: Kind },
}

/// A record in the making: everything but its place, which the appender gives it by [`seal`].
///
/// [`seal`]: Encoded::seal
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    bytes: Vec<u8>,
}

impl Encoded {
    /// Starts a record of `kind`, with room for `head` and `body` bytes.
    fn start(kind: Kind, head: usize, body: usize) -> Self {
        let mut bytes = Vec::with_capacity(round_up(HEADER_LENGTH + head + body));
        bytes.resize(HEADER_LENGTH, 0);
        bytes[KIND] = kind as u8;
        bytes[VERSION_AT] = VERSION;
        Self { bytes }
    }

    fn head(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
    }

    /// Ends the head, appends the body and pads: after this only the place is missing.
    fn finish(mut self, body: &[u8]) -> Self {
        let head = self.bytes.len() - HEADER_LENGTH;
        assert!(head <= MAX_HEAD_LENGTH, "a head is at most {MAX_HEAD_LENGTH} bytes, not {head}");
        self.put_u32(HEAD_LENGTH, length_u32(head));
        self.put_u32(BODY_LENGTH, length_u32(body.len()));
        self.put_u32(BODY_CRC, crc32c::crc32c(body));
        self.bytes.extend_from_slice(body);
        self.bytes.resize(round_up(self.bytes.len()), 0);
        self
    }

    fn put_u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// How many bytes it takes in the log, padding included: a multiple of 32.
    #[expect(clippy::len_without_is_empty, reason = "a record is never empty")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Header, head and body in bytes: the *length* of pointers to it.
    pub fn unpadded_length(&self) -> usize {
        let (head, body) = (read_u32(&self.bytes, HEAD_LENGTH), read_u32(&self.bytes, BODY_LENGTH));
        HEADER_LENGTH + head as usize + body as usize
    }

    /// Gives the record its place.
    pub fn seal(&mut self, offset: Offset, magic: Magic) -> &[u8] {
        self.put_u64(OWN_OFFSET, offset.get());
        self.put_u32(MAGIC, magic.0);
        let head_end = HEADER_LENGTH + read_u32(&self.bytes, HEAD_LENGTH) as usize;
        let crc = crc32c::crc32c(&self.bytes[BODY_CRC..head_end]);
        self.put_u32(HEADER_CRC, crc);
        &self.bytes
    }
}

/// The crcs of a record that was sealed just now: what [`Header::crcs`] will read.
pub fn sealed_crcs(bytes: &[u8]) -> [u8; 8] {
    let mut both = [0; 8];
    both.copy_from_slice(&bytes[HEADER_CRC..OWN_OFFSET]);
    both
}

/// A record's header, checked with its head against the header crc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub offset: Offset,
    pub kind: Kind,
    head_length: usize,
    body_length: usize,
    body_crc: u32,
    header_crc: u32,
}

impl Header {
    /// How many bytes must be at hand to check the header of the record that begins with `bytes`,
    /// as its first [`HEADER_LENGTH`] bytes claim.
    ///
    /// # Errors
    ///
    /// When the claim cannot be true.
    pub fn needed(bytes: &[u8]) -> Result<usize, RecordError> {
        need(bytes, HEADER_LENGTH)?;
        let head = read_u32(bytes, HEAD_LENGTH) as usize;
        if head > MAX_HEAD_LENGTH {
            return Err(RecordError::HeadTooLong { got: head });
        }
        Ok(HEADER_LENGTH + head)
    }

    /// Whether `bytes` name this data directory and this place as theirs: what a search for records looks
    /// at before it reads a head that anybody may have made up.
    pub fn claims(bytes: &[u8], offset: Offset, magic: Magic) -> bool {
        bytes.len() >= HEADER_LENGTH
            && read_u32(bytes, MAGIC) == magic.0
            && read_u64(bytes, OWN_OFFSET) == offset.get()
    }

    /// Checks the header and head of the record that begins with `bytes` and stands at `offset`.
    ///
    /// # Errors
    ///
    /// [`RecordError`] says what is wrong; nothing of the record can be believed then.
    pub fn check(bytes: &[u8], offset: Offset, magic: Magic) -> Result<Self, RecordError> {
        let head_end = Self::needed(bytes)?;
        need(bytes, head_end)?;
        let got = read_u32(bytes, HEADER_CRC);
        let expected = crc32c::crc32c(&bytes[BODY_CRC..head_end]);
        if got != expected {
            return Err(RecordError::HeaderCrc { got, expected });
        }
        let own = read_u64(bytes, OWN_OFFSET);
        if own != offset.get() {
            return Err(RecordError::Offset { got: own, expected: offset.get() });
        }
        if read_u32(bytes, MAGIC) != magic.0 {
            return Err(RecordError::Magic);
        }
        if bytes[VERSION_AT] > VERSION {
            return Err(RecordError::Version { got: bytes[VERSION_AT] });
        }
        if bytes[VERSION_AT] == 0 {
            return Err(RecordError::Head("no record was ever written in version 0"));
        }
        if bytes[RESERVED..MAGIC] != [0; 2] {
            return Err(RecordError::NotZero);
        }
        let number = bytes[KIND];
        let kind = Kind::from_number(number).ok_or(RecordError::UnknownKind { number })?;
        Ok(Self {
            offset,
            kind,
            head_length: head_end - HEADER_LENGTH,
            body_length: read_u32(bytes, BODY_LENGTH) as usize,
            body_crc: read_u32(bytes, BODY_CRC),
            header_crc: got,
        })
    }

    /// Bytes from the record's begin to the end of its head.
    pub fn head_end(&self) -> usize {
        HEADER_LENGTH + self.head_length
    }

    pub fn body_length(&self) -> usize {
        self.body_length
    }

    /// Header, head and body in bytes, without the padding: the *length* of pointers to it.
    pub fn length(&self) -> usize {
        self.head_end() + self.body_length
    }

    /// What it takes in the log.
    pub fn padded_length(&self) -> usize {
        round_up(self.length())
    }

    /// Both crcs as they stand in the record: its part in its group's hash.
    pub fn crcs(&self) -> [u8; 8] {
        let mut both = [0; 8];
        both[..4].copy_from_slice(&self.header_crc.to_le_bytes());
        both[4..].copy_from_slice(&self.body_crc.to_le_bytes());
        both
    }
}

/// A record whose head and body were both checked.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub header: Header,
    pub head: &'a [u8],
    pub body: &'a [u8],
}

impl<'a> Record<'a> {
    /// Checks the whole record that begins with `bytes` and stands at `offset`.
    ///
    /// # Errors
    ///
    /// As [`Header::check`], and [`RecordError::BodyCrc`] when only the body is damaged.
    pub fn check(bytes: &'a [u8], offset: Offset, magic: Magic) -> Result<Self, RecordError> {
        let header = Header::check(bytes, offset, magic)?;
        Self::check_body(bytes, header)
    }

    /// Checks the body of a record whose header was checked before.
    ///
    /// # Errors
    ///
    /// [`RecordError::BodyCrc`] when the body, [`RecordError::NotZero`] when the padding is damaged.
    pub fn check_body(bytes: &'a [u8], header: Header) -> Result<Self, RecordError> {
        need(bytes, header.length())?;
        let body = &bytes[header.head_end()..header.length()];
        let expected = crc32c::crc32c(body);
        if header.body_crc != expected {
            return Err(RecordError::BodyCrc { got: header.body_crc, expected });
        }
        let padding = &bytes[header.length()..header.padded_length().min(bytes.len())];
        if padding.iter().any(|&byte| byte != 0) {
            return Err(RecordError::NotZero);
        }
        Ok(Self { header, head: &bytes[HEADER_LENGTH..header.head_end()], body })
    }

    fn expect(&self, expected: Kind) -> Result<(), RecordError> {
        let got = self.header.kind;
        if got == expected { Ok(()) } else { Err(RecordError::Kind { got, expected }) }
    }
}

fn need(bytes: &[u8], needed: usize) -> Result<(), RecordError> {
    if bytes.len() < needed {
        return Err(RecordError::Short { needed, got: bytes.len() });
    }
    Ok(())
}

fn length_u32(length: usize) -> u32 {
    u32::try_from(length).expect("limits at the door keep every part of a record far below 4 GiB")
}

pub(crate) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

pub(crate) fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}

#[cfg(test)]
mod tests;
