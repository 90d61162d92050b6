//! An idempotency key: kind 14. A request under the key was accepted, and what it came to.
//!
//! ```text
//! head   0       8            24               40      44     48
//!        +-------+------------+----------------+-------+------+
//!        | at ms | key        | request        | count | zero |
//!        |       | digest     | digest         |       |      |
//!        +-------+------------+----------------+-------+------+
//! body   one entry an item of the request, in order
//! entry  0         1       2      4          8       16              24
//!        +---------+-------+------+----------+-------+---------------+
//!        | outcome | state | zero | distance | nonce | deliver at ms |
//!        +---------+-------+------+----------+-------+---------------+
//! ```
//!
//! It stands in the same append group as the messages it speaks of, after them: *distance* says how many
//! bytes before this record an accepted message begins. So a request and its key are there together after
//! a crash, or neither is. An item that was refused has only its outcome. The digests are SHA-256,
//! cut to 16 bytes, of path and key, and of the whole request.

use super::super::offset::{Offset, STEP};
use super::{Encoded, Kind, Record, RecordError, length_u32, read_u16, read_u32, read_u64};
use crate::clock::Timestamp;

const HEAD: usize = 48;
const ENTRY: usize = 24;

const ACCEPTED: u8 = 0;
const MALFORMED: u8 = 1;
const TOO_FAR_AHEAD: u8 = 2;
const TYPE_MISMATCH: u8 = 3;

/// What the request of a key came to, item by item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub at: Timestamp,
    pub bound: Bound,
    pub items: Vec<ItemOutcome>,
}

/// Which key, and for which request: digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    pub key: [u8; 16],
    pub request: [u8; 16],
}

/// One item. The numbers of refusals are persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemOutcome {
    Accepted {
        /// Bytes from the message's begin to this record's.
        distance: u32,
        nonce: u64,
        /// It has a moment; otherwise it was ready at once.
        timed: bool,
        deliver_at: Timestamp,
    },
    /// The request itself says why: it is malformed.
    Malformed,
    TooFarAhead,
    TypeMismatch,
}

impl IdempotencyKey {
    /// What a key with `count` items takes in the log.
    pub fn encoded_length(count: usize) -> usize {
        super::round_up(super::HEADER_LENGTH + HEAD + count * ENTRY)
    }

    pub fn encode(&self) -> Encoded {
        let mut body = Vec::with_capacity(self.items.len() * ENTRY);
        self.items.iter().for_each(|item| item.encode(&mut body));
        let mut record = Encoded::start(Kind::IdempotencyKey, HEAD, body.len());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.bound.key);
        record.head(&self.bound.request);
        record.head(&length_u32(self.items.len()).to_le_bytes());
        record.head(&[0; 4]);
        record.finish(&body)
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        let (at, bound) = Self::decode_fixed(record)?;
        let count = read_u32(record.head, 40) as usize;
        if count.checked_mul(ENTRY) != Some(record.body.len()) {
            return Err(RecordError::Head("an idempotency key's count and body disagree"));
        }
        let items = record.body.chunks_exact(ENTRY).map(ItemOutcome::decode);
        Ok(Self { at, bound, items: items.collect::<Result<_, _>>()? })
    }

    /// The head alone: when the key was used, and for what.
    ///
    /// # Errors
    ///
    /// As [`IdempotencyKey::decode`].
    pub fn decode_fixed(record: &Record<'_>) -> Result<(Timestamp, Bound), RecordError> {
        record.expect(Kind::IdempotencyKey)?;
        if record.head.len() != HEAD {
            return Err(RecordError::Head("an idempotency key has a head of 48 bytes"));
        }
        if read_u32(record.head, 44) != 0 {
            return Err(RecordError::NotZero);
        }
        let digest = |at: usize| {
            let mut digest = [0; 16];
            digest.copy_from_slice(&record.head[at..at + 16]);
            digest
        };
        let bound = Bound { key: digest(8), request: digest(24) };
        Ok((Timestamp::from_millis(read_u64(record.head, 0)), bound))
    }
}

impl ItemOutcome {
    /// Where the accepted message of this item begins, for a key whose record stands at `own`.
    pub fn offset(distance: u32, own: Offset) -> Option<Offset> {
        let offset = own.get().checked_sub(u64::from(distance))?;
        offset.is_multiple_of(STEP).then(|| Offset::new(offset))
    }

    fn encode(&self, body: &mut Vec<u8>) {
        let (outcome, timed, distance, nonce, deliver_at) = match *self {
            Self::Accepted { distance, nonce, timed, deliver_at } => {
                (ACCEPTED, timed, distance, nonce, deliver_at.as_millis())
            }
            Self::Malformed => (MALFORMED, false, 0, 0, 0),
            Self::TooFarAhead => (TOO_FAR_AHEAD, false, 0, 0, 0),
            Self::TypeMismatch => (TYPE_MISMATCH, false, 0, 0, 0),
        };
        body.extend_from_slice(&[outcome, u8::from(timed), 0, 0]);
        body.extend_from_slice(&distance.to_le_bytes());
        body.extend_from_slice(&nonce.to_le_bytes());
        body.extend_from_slice(&deliver_at.to_le_bytes());
    }

    fn decode(entry: &[u8]) -> Result<Self, RecordError> {
        if read_u16(entry, 2) != 0 {
            return Err(RecordError::NotZero);
        }
        let (distance, nonce, deliver_at) =
            (read_u32(entry, 4), read_u64(entry, 8), read_u64(entry, 16));
        let nothing_more = entry[1..].iter().all(|&byte| byte == 0);
        match (entry[0], entry[1]) {
            (ACCEPTED, timed @ 0..=1) => Ok(Self::Accepted {
                distance,
                nonce,
                timed: timed == 1,
                deliver_at: Timestamp::from_millis(deliver_at),
            }),
            (MALFORMED, _) if nothing_more => Ok(Self::Malformed),
            (TOO_FAR_AHEAD, _) if nothing_more => Ok(Self::TooFarAhead),
            (TYPE_MISMATCH, _) if nothing_more => Ok(Self::TypeMismatch),
            _ => Err(RecordError::Head("an item's outcome is not known")),
        }
    }
}
