//! A cancel: kind 4. It settles its cause; it is appended only when it did.
//!
//! ```text
//! head   0        8          16     24      32
//!        +--------+----------+------+-------+
//!        | cause  | deadline | tag  | at ms |
//!        +--------+----------+------+-------+
//! ```
//!
//! *deadline* and *tag* are those of the cause's entry in the wheel, so that the cancel finds the
//! same slot without reading the cause.

use super::super::offset::Offset;
use super::{Encoded, Kind, Record, RecordError, read_u64};
use crate::clock::Timestamp;

const HEAD: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancel {
    pub cause: Offset,
    pub deadline: Timestamp,
    pub tag: u64,
    pub at: Timestamp,
}

impl Cancel {
    pub fn encode(&self) -> Encoded {
        let mut record = Encoded::start(Kind::Cancel, HEAD, 0);
        record.head(&self.cause.get().to_le_bytes());
        record.head(&self.deadline.as_millis().to_le_bytes());
        record.head(&self.tag.to_le_bytes());
        record.head(&self.at.as_millis().to_le_bytes());
        record.finish(&[])
    }

    /// # Errors
    ///
    /// [`RecordError`] when it is another kind or does not follow the format.
    pub fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        record.expect(Kind::Cancel)?;
        if record.head.len() != HEAD || !record.body.is_empty() {
            return Err(RecordError::Head("a cancel has a head of 32 bytes and no body"));
        }
        Ok(Self {
            cause: Offset::new(read_u64(record.head, 0)),
            deadline: Timestamp::from_millis(read_u64(record.head, 8)),
            tag: read_u64(record.head, 16),
            at: Timestamp::from_millis(read_u64(record.head, 24)),
        })
    }
}
