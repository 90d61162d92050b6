//! From a cause to the message that it speaks for, wherever that is read now.
//!
//! ```text
//!   unit ──> nack, dead letter ──> cause ──> reschedule, commit ──> message ──> (its segment was let go) move
//! ```
//!
//! A message's first offset is its name in every record that is about it. Where it is read now is its *home*: there, or
//! in the last record that moved it, which the index knows.

use super::Store;
use crate::clock::Timestamp;
use crate::commitlog::ReadError;
use crate::index::IndexError;
use crate::message::offset::Offset;
use crate::message::record::{
    Commit, DeadLetter, HEADER_LENGTH, Header, Kind, Message, Moved, Nack, Origin, Record,
    RecordError, Reschedule,
};

/// A message, read by way of the record that gave it its moment.
#[derive(Clone, Debug)]
pub struct Caused<'a> {
    /// Where the message first stood: what its id is made of.
    pub offset: Offset,
    /// Where it is read now.
    pub home: Offset,
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

/// Why the message of a cause cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CauseError {
    /// [`ReadError::Record`] when one of the records it takes is damaged: the message is lost alone.
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// Pointers are no longer than this: of a cause that is longer, the message is the cause itself.
const LONGEST_POINTER: u32 =
    if Reschedule::LENGTH > Commit::LENGTH { Reschedule::LENGTH } else { Commit::LENGTH };

impl Store {
    /// Reads the message that the cause at `offset`, `length` bytes long, speaks for.
    ///
    /// # Errors
    ///
    /// [`CauseError`].
    pub fn caused<'a>(
        &self,
        offset: Offset,
        length: u32,
        read: Read,
        bytes: &'a mut Vec<u8>,
    ) -> Result<Caused<'a>, CauseError> {
        let bad =
            |at: Offset| move |cause: RecordError| ReadError::Record { offset: at.get(), cause };
        // Each record is read once; what is at hand is looked at again where the borrow of it has ended.
        let mut home = offset;
        let mut header = self.read(home, length, read, bytes)?.header;
        let kind = header.kind;
        let origin = match kind {
            Kind::Nack => {
                Some(Nack::decode(&at_hand(header, read, bytes)).map_err(bad(home))?.origin)
            }
            Kind::DeadLetter => {
                Some(DeadLetter::decode(&at_hand(header, read, bytes)).map_err(bad(home))?.origin)
            }
            _ => None,
        };
        if let Some(origin) = &origin {
            home = origin.cause;
            header = self.read(home, origin.length, read, bytes)?.header;
        }
        let (mut name, mut given) = (home, None);
        if matches!(header.kind, Kind::Reschedule | Kind::Commit) {
            let cause = at_hand(header, read, bytes);
            let (of, length, deadline) = pointed_at(&cause).map_err(bad(home))?;
            (name, given) = (of, Some(deadline));
            home = self.home(of)?;
            header = self.read(home, length, read, bytes)?.header;
        }
        let record = at_hand(header, read, bytes);
        let message = if header.kind == Kind::Move {
            let moved = Moved::decode(&record).map_err(bad(home))?;
            name = moved.message;
            given = given.or(moved.deadline.map(Some));
            moved.of
        } else {
            Message::decode(&record).map_err(bad(home))?
        };
        let deadline = given.unwrap_or_else(|| message.placement.deadline());
        Ok(Caused { offset: name, home, record, message, deadline, origin, kind })
    }

    /// Where the message is read that first stood at `message`: there, or where it was moved last. The record
    /// there may be damaged, or be gone for good.
    ///
    /// # Errors
    ///
    /// [`CauseError`].
    pub fn home(&self, message: Offset) -> Result<Offset, CauseError> {
        if message >= self.log.begin() {
            return Ok(message);
        }
        Ok(self.last_move(message)?.unwrap_or(message))
    }

    /// Where the message was moved last, if it was.
    ///
    /// # Errors
    ///
    /// [`CauseError`].
    pub fn last_move(&self, message: Offset) -> Result<Option<Offset>, CauseError> {
        let mut bytes = Vec::new();
        for offset in self.index.newest_first(self.keys.home(message), None) {
            let offset = offset?;
            let moved = match self.log.reader().head(offset, &mut bytes) {
                Ok(record) => Moved::decode(&record).ok(),
                // A damaged one is none: the message is lost alone. And one that is not written yet has let go
                // of nothing: the message is where it was.
                Err(ReadError::Record { .. } | ReadError::PastTheEnd { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            if moved.is_some_and(|moved| moved.message == message) {
                return Ok(Some(offset));
            }
        }
        Ok(None)
    }

    /// Where the message is read that the cause at `offset`, `length` bytes long, speaks for: read only where
    /// the cause may be a pointer.
    ///
    /// # Errors
    ///
    /// [`CauseError`].
    pub fn home_of_cause(&self, offset: Offset, length: u32) -> Result<Offset, CauseError> {
        if length > LONGEST_POINTER {
            return Ok(offset);
        }
        Ok(self.caused(offset, length, Read::HeadOnly, &mut Vec::new())?.home)
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
