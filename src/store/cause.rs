//! From a cause to the message that it speaks for.

use super::Store;
use crate::clock::Timestamp;
use crate::commitlog::ReadError;
use crate::message::offset::Offset;
use crate::message::record::{
    DeadLetter, HEADER_LENGTH, Kind, Message, Nack, Origin, Record, RecordError, Reschedule,
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
    /// Where it first stood, when it comes again.
    pub origin: Option<Origin>,
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
        let origin = match cause.header.kind {
            Kind::Nack => Some(Nack::decode(&cause).map_err(bad(offset))?.origin),
            Kind::DeadLetter => Some(DeadLetter::decode(&cause).map_err(bad(offset))?.origin),
            _ => None,
        };
        if let Some(origin) = origin {
            let caused = self.first_caused(origin.cause, origin.length, read, bytes)?;
            return Ok(Caused { origin: Some(origin), ..caused });
        }
        self.first_caused(offset, length, read, bytes)
    }

    /// As above, for a record that is no retry.
    fn first_caused<'a>(
        &self,
        offset: Offset,
        length: u32,
        read: Read,
        bytes: &'a mut Vec<u8>,
    ) -> Result<Caused<'a>, ReadError> {
        let bad =
            |at: Offset| move |cause: RecordError| ReadError::Record { offset: at.get(), cause };
        let cause = self.read(offset, length, read, bytes)?;
        if cause.header.kind != Kind::Reschedule {
            // The same record again, from the bytes at hand: the borrow above ends here.
            let (header, whole) = (cause.header, read == Read::Whole);
            let body = if whole { &bytes[header.head_end()..header.length()] } else { &[] };
            let record = Record { header, head: &bytes[HEADER_LENGTH..header.head_end()], body };
            let message = Message::decode(&record).map_err(bad(offset))?;
            let deadline = message.placement.deadline();
            return Ok(Caused { offset, record, message, deadline, origin: None });
        }
        let moved = Reschedule::decode(&cause).map_err(bad(offset))?;
        let record = self.read(moved.message, moved.message_length, read, bytes)?;
        let message = Message::decode(&record).map_err(bad(moved.message))?;
        let (offset, deadline) = (moved.message, Some(moved.deadline));
        Ok(Caused { offset, record, message, deadline, origin: None })
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
