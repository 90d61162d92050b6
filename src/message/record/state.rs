//! The whole state at a place in the log: parts, kind 26, and their end, kind 27.
//!
//! ```text
//! head of  0    8      12
//! a part   +----+------+
//!          | at | part |     body: so many bytes of the state
//!          +----+------+
//! of the   0    8       16     24      28       32
//! end      +----+-------+------+-------+--------+
//!          | at | hash  | lets | parts | zero   |
//!          |    |       | go   |       |        |
//!          +----+-------+------+-------+--------+
//! ```
//!
//! *at* is a place where a segment begins: the state is the fold of everything before it, in the bytes that a
//! checkpoint has, too. The parts stand one after the other in the log, in order from 0, with whatever else is appended
//! in between; they are one state only when their end is there, whose *hash* is XXH3-64 over all their bytes. A log that
//! begins at *at* is read from there on, beginning with this state.
//!
//! *lets go* is 1 when the segments before *at* may be gone from here on: then a log that begins earlier may begin there,
//! too. Otherwise it is 0.

use super::super::offset::Offset;
use super::{Encoded, Kind, Record, RecordError, read_u32, read_u64};

const PART_HEAD: usize = 12;
const END_HEAD: usize = 32;

/// Bytes of the state in one part.
pub const STATE_PART: usize = 16 * 1024;

/// A part of a state, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatePart<'a> {
    pub at: Offset,
    pub part: u32,
    pub bytes: &'a [u8],
}

/// What makes the parts before it one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateEnd {
    pub at: Offset,
    pub hash: u64,
    pub lets_go: bool,
    pub parts: u32,
}

impl<'a> StatePart<'a> {
    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::State, PART_HEAD, self.bytes.len());
        record.head(&self.at.get().to_le_bytes());
        record.head(&self.part.to_le_bytes());
        record.finish(self.bytes)
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'a>) -> Result<Self, RecordError> {
        record.expect(Kind::State)?;
        if record.head.len() != PART_HEAD {
            return Err(RecordError::Head("a part of a state has a head of 12 bytes"));
        }
        let at = Offset::new(read_u64(record.head, 0));
        Ok(Self { at, part: read_u32(record.head, 8), bytes: record.body })
    }
}

impl StateEnd {
    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::StateEnd, END_HEAD, 0);
        record.head(&self.at.get().to_le_bytes());
        record.head(&self.hash.to_le_bytes());
        record.head(&u64::from(self.lets_go).to_le_bytes());
        record.head(&self.parts.to_le_bytes());
        record.head(&[0; 4]);
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::StateEnd)?;
        if record.head.len() != END_HEAD || record.header.body_length() != 0 {
            return Err(RecordError::Head("a state's end has a head of 32 bytes and no body"));
        }
        let lets_go = match read_u64(record.head, 16) {
            0 => false,
            1 => true,
            _ => return Err(RecordError::NotZero),
        };
        if read_u32(record.head, 28) != 0 {
            return Err(RecordError::NotZero);
        }
        let at = Offset::new(read_u64(record.head, 0));
        let (hash, parts) = (read_u64(record.head, 8), read_u32(record.head, 24));
        Ok(Self { at, hash, lets_go, parts })
    }
}
