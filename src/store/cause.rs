//! From a cause to the message that it speaks for.

use super::Store;
use crate::clock::Timestamp;
use crate::commitlog::ReadError;
use crate::message::offset::Offset;
use crate::message::record::{
    Commit, DeadLetter, HEADER_LENGTH, Header, Kind, Message, Nack, Origin, Record, RecordError,
    Reschedule,
};

/// A message, read by way of the record that gave it its moment.
#[derive(Clone, Debug)]
pub struct Caused<'a> {
    /// Where the message's own record stands: what its id is made of.
    pub offset: Offset,
    pub record: Record<'a>,
    pub message: Message,
    /// The moment that the cause gave it; `None` when it was ready at once.
    pub deadline: Option<Timestamp>,
    /// Where it first stood, when it comes again.
    pub origin: Option<Origin>,
    /// What the cause is.
    pub kind: Kind,
}

/// Whether the body is read and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    Whole,
    HeadOnly,
}

impl Store {
    /// Reads the message that the cause at `offset`, `length` bytes long, speaks for.
    ///
    /// # Errors
    ///
    /// [`ReadError::Record`] when one of the records it takes is damaged.
    pub fn caused<'a>(
        &self,
        offset: Offset,
        length: u32,
        read: Read,
        bytes: &'a mut Vec<u8>,
    ) -> Result<Caused<'a>, ReadError> {
        let bad =
            |at: Offset| move |cause: RecordError| ReadError::Record { offset: at.get(), cause };
        // Each record is read once; what is at hand is looked at again where the borrow of it has ended.
        let mut offset = offset;
        let mut header = self.read(offset, length, read, bytes)?.header;
        let kind = header.kind;
        let origin = match kind {
            Kind::Nack => {
                Some(Nack::decode(&at_hand(header, read, bytes)).map_err(bad(offset))?.origin)
            }
            Kind::DeadLetter => {
                Some(DeadLetter::decode(&at_hand(header, read, bytes)).map_err(bad(offset))?.origin)
            }
            _ => None,
        };
        if let Some(origin) = &origin {
            offset = origin.cause;
            header = self.read(offset, origin.length, read, bytes)?.header;
        }
        let mut given = None;
        if matches!(header.kind, Kind::Reschedule | Kind::Commit) {
            let cause = at_hand(header, read, bytes);
            let (of, length, deadline) = pointed_at(&cause).map_err(bad(offset))?;
            given = Some(deadline);
            offset = of;
            header = self.read(offset, length, read, bytes)?.header;
        }
        let record = at_hand(header, read, bytes);
        let message = Message::decode(&record).map_err(bad(offset))?;
        let deadline = given.unwrap_or_else(|| message.placement.deadline());
        Ok(Caused { offset, record, message, deadline, origin, kind })
    }

    fn read<'a>(
        &self,
        offset: Offset,
        length: u32,
        read: Read,
        bytes: &'a mut Vec<u8>,
    ) -> Result<Record<'a>, ReadError> {
        match read {
            Read::Whole => self.log.reader().record(offset, Some(length), bytes),
            Read::HeadOnly => self.log.reader().head(offset, bytes),
        }
    }
}

/// The record with this header, which `bytes` begin with.
fn at_hand(header: Header, read: Read, bytes: &[u8]) -> Record<'_> {
    let body = match read {
        Read::Whole => &bytes[header.head_end()..header.length()],
        Read::HeadOnly => &[],
    };
    Record { header, head: &bytes[HEADER_LENGTH..header.head_end()], body }
}

/// The message that a reschedule or a commit is about, its length, and the moment that it is given.
fn pointed_at(cause: &Record<'_>) -> Result<(Offset, u32, Option<Timestamp>), RecordError> {
    if cause.header.kind == Kind::Commit {
        let commit = Commit::decode(cause)?;
        return Ok((commit.message, commit.message_length, commit.placement.deadline()));
    }
    let moved = Reschedule::decode(cause)?;
    Ok((moved.message, moved.message_length, Some(moved.deadline)))
}
