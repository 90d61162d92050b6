//! From a cause to the message that it speaks for.

use super::Store;
use crate::clock::Timestamp;
use crate::commitlog::ReadError;
use crate::message::offset::Offset;
use crate::message::record::{
    Commit, HEADER_LENGTH, Kind, Message, Placement, Record, RecordError, Reschedule,
};

/// A message, read by way of the record that gave it its moment.
#[derive(Clone, Debug)]
pub struct Caused<'a> {
    /// Where the message's own record stands: what its id is made of.
    pub offset: Offset,
    pub record: Record<'a>,
    pub message: Message,
    /// The moment that the cause gave it; `None` when it was put for now.
    pub deadline: Option<Timestamp>,
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
        let cause = self.read(offset, length, read, bytes)?;
        if !matches!(cause.header.kind, Kind::Reschedule | Kind::Commit) {
            // The same record again, from the bytes at hand: the borrow above ends here.
            let (header, whole) = (cause.header, read == Read::Whole);
            let body = if whole { &bytes[header.head_end()..header.length()] } else { &[] };
            let record = Record { header, head: &bytes[HEADER_LENGTH..header.head_end()], body };
            let message = Message::decode(&record).map_err(bad(offset))?;
            let deadline = match message.placement {
                Placement::Timed { deadline } => Some(deadline),
                Placement::Ready { .. } => None,
            };
            return Ok(Caused { offset, record, message, deadline });
        }
        let (of, length, deadline) = pointed_at(&cause).map_err(bad(offset))?;
        let record = self.read(of, length, read, bytes)?;
        let message = Message::decode(&record).map_err(bad(of))?;
        Ok(Caused { offset: of, record, message, deadline })
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

/// The message that a reschedule or a commit is about, its length, and the moment that it is given.
fn pointed_at(cause: &Record<'_>) -> Result<(Offset, u32, Option<Timestamp>), RecordError> {
    if cause.header.kind == Kind::Commit {
        let commit = Commit::decode(cause)?;
        let deadline = match commit.placement {
            Placement::Timed { deadline } => Some(deadline),
            Placement::Ready { .. } => None,
        };
        return Ok((commit.message, commit.message_length, deadline));
    }
    let moved = Reschedule::decode(cause)?;
    Ok((moved.message, moved.message_length, Some(moved.deadline)))
}
