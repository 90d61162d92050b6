//! The server started: kind 30, the first record of each incarnation.
//!
//! ```text
//! head   0             8       16         24
//!        +-------------+-------+----------+
//!        | incarnation | at ms | tail cut |
//!        |             |       | from     |
//!        +-------------+-------+----------+
//! ```
//!
//! *tail cut from* is where the log ended when it was opened, after the torn tail was cut.

use super::super::offset::Offset;
use super::{Encoded, Kind, Record, RecordError, read_u64};
use crate::clock::Timestamp;

const HEAD: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Counts the starts, from 1.
    pub incarnation: u64,
    pub at: Timestamp,
    pub tail: Offset,
}

impl Opened {
    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::Opened, HEAD, 0);
        record.head(&self.incarnation.to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.head(&self.tail.get().to_le_bytes());
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::Opened)?;
        if record.head.len() != HEAD || !record.body.is_empty() {
            return Err(RecordError::Head("a start has a head of 24 bytes and no body"));
        }
        Ok(Self {
            incarnation: read_u64(record.head, 0),
            at: Timestamp::from_millis(read_u64(record.head, 8)),
            tail: Offset::new(read_u64(record.head, 16)),
        })
    }
}
