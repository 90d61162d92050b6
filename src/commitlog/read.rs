//! Reading the log: groups for dispatch, single records for everyone else.

use timerlog::segment::{RowError, RowReader};

use super::Secrets;
use super::group::{GROUP_HEADER, GroupError, GroupHeader, GroupKind};
use crate::message::offset::{Offset, STEP};
use crate::message::record::{HEADER_LENGTH, Header, Record, RecordError};

/// What is read first of a record whose length is not known: enough for most, one read.
const FIRST_READ: usize = 2048;

/// Why something cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Row(#[from] RowError),
    #[error("the log ends at {end}, before offset {offset}")]
    PastTheEnd { offset: u64, end: u64 },
    #[error("no group at offset {offset}: {cause}")]
    Group { offset: u64, cause: GroupError },
    #[error("no record at offset {offset}: {cause}")]
    Record { offset: u64, cause: RecordError },
}

/// What stands at a place of the log.
#[derive(Clone, Copy, Debug)]
pub enum Next<'a> {
    /// A record; its body was not looked at.
    Record(Record<'a>),
    /// The header of a group, or damage: look on there.
    Other { next: Offset },
}

/// Reads what is written. Who shows it to others goes by the visible watermark; ids and pointers are
/// handed out only for what is below it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LogReader {
    row: RowReader,
    secrets: Secrets,
    segment_size: u64,
}

impl LogReader {
    pub(super) fn new(row: RowReader, secrets: Secrets, segment_size: u64) -> Self {
        Self { row, secrets, segment_size }
    }

    /// Reads the group at `offset` into `bytes`, which then begin with its header.
    ///
    /// # Errors
    ///
    /// When there is none below the end, or the disk fails.
    pub fn group(&self, offset: Offset, bytes: &mut Vec<u8>) -> Result<GroupHeader, ReadError> {
        bytes.resize(GROUP_HEADER, 0);
        self.row.read(offset.get(), bytes)?;
        let header = GroupHeader::decode(bytes, offset, self.secrets.group)
            .map_err(|cause| ReadError::Group { offset: offset.get(), cause })?;
        if header.kind == GroupKind::Records {
            bytes.resize(header.length as usize, 0);
            let rest = offset.get() + GROUP_HEADER as u64;
            self.row.read(rest, &mut bytes[GROUP_HEADER..])?;
        }
        Ok(header)
    }

    /// Reads the record at `offset` into `bytes` and checks all of it. `length` is its unpadded
    /// length, when a pointer said so.
    ///
    /// This goes to the disk by a read call, not through a mapping: a bad sector is then an error for
    /// one message.
    ///
    /// # Errors
    ///
    /// [`ReadError::Record`] when no whole record stands there.
    pub fn record<'a>(
        &self,
        offset: Offset,
        length: Option<u32>,
        bytes: &'a mut Vec<u8>,
    ) -> Result<Record<'a>, ReadError> {
        let header = self.header(offset, length.map_or(FIRST_READ, |l| l as usize), bytes)?;
        let here = bytes.len();
        if here < header.length() {
            self.check_end(offset, header.length())?;
            bytes.resize(header.length(), 0);
            self.read(offset.plus(here as u64), &mut bytes[here..])?;
        }
        Record::check_body(bytes, header)
            .map_err(|cause| ReadError::Record { offset: offset.get(), cause })
    }

    /// Reads the header and head of the record at `offset`; its body is not looked at.
    ///
    /// # Errors
    ///
    /// As [`LogReader::record`].
    pub fn head<'a>(
        &self,
        offset: Offset,
        bytes: &'a mut Vec<u8>,
    ) -> Result<Record<'a>, ReadError> {
        let header = self.header(offset, 256, bytes)?;
        Ok(Record { header, head: &bytes[HEADER_LENGTH..header.head_end()], body: &[] })
    }

    /// What stands at `at`: a record, by its head, or something else, and where to look next. What is damaged is
    /// stepped over. To be called below the end, from the begin of a group or from where it said.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn next<'a>(&self, at: Offset, bytes: &'a mut Vec<u8>) -> Result<Next<'a>, ReadError> {
        let segment_end = Offset::new((at.get() / self.segment_size + 1) * self.segment_size);
        let mut group = [0; GROUP_HEADER];
        if at.plus(GROUP_HEADER as u64) <= segment_end {
            self.read(at, &mut group)?;
            if let Ok(header) = GroupHeader::decode(&group, at, self.secrets.group) {
                let next = match header.kind {
                    GroupKind::Records => at.plus(GROUP_HEADER as u64),
                    GroupKind::EndOfSegment => segment_end,
                };
                return Ok(Next::Other { next });
            }
        }
        match self.header(at, 256, bytes) {
            Ok(header) => {
                let head = &bytes[HEADER_LENGTH..header.head_end()];
                Ok(Next::Record(Record { header, head, body: &[] }))
            }
            Err(ReadError::Record { .. } | ReadError::PastTheEnd { .. }) => {
                Ok(Next::Other { next: at.plus(STEP) })
            }
            Err(error) => Err(error),
        }
    }

    fn header(
        &self,
        offset: Offset,
        first_read: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<Header, ReadError> {
        let bad = |cause| ReadError::Record { offset: offset.get(), cause };
        self.check_end(offset, HEADER_LENGTH)?;
        let segment_left = self.segment_size - offset.get() % self.segment_size;
        let left = segment_left.min(self.row.committed() - offset.get());
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        bytes.resize(first_read.max(HEADER_LENGTH).min(left), 0);
        self.read(offset, bytes)?;
        let needed = Header::needed(bytes).map_err(bad)?;
        let here = bytes.len();
        if here < needed {
            self.check_end(offset, needed)?;
            bytes.resize(needed, 0);
            self.read(offset.plus(here as u64), &mut bytes[here..])?;
        }
        Header::check(bytes, offset, self.secrets.record).map_err(bad)
    }

    fn read(&self, offset: Offset, bytes: &mut [u8]) -> Result<(), ReadError> {
        match self.row.read_exact_from_disk(offset.get(), bytes) {
            Err(RowError::OutOfReach { begin, .. }) if offset.get() < begin => {
                let cause = RecordError::LetGo { begin };
                Err(ReadError::Record { offset: offset.get(), cause })
            }
            read => Ok(read?),
        }
    }

    pub(super) fn extent(&self) -> (Offset, Offset) {
        (Offset::new(self.row.begin()), Offset::new(self.row.committed()))
    }

    pub(super) fn segment_size(&self) -> u64 {
        self.segment_size
    }

    /// A record lies in one segment and below the end, so one that claims otherwise is none.
    fn check_end(&self, offset: Offset, length: usize) -> Result<(), ReadError> {
        let end = self.row.committed();
        let segment_left = self.segment_size - offset.get() % self.segment_size;
        let past = offset.get().saturating_add(length as u64);
        if past > end || length as u64 > segment_left {
            return Err(ReadError::PastTheEnd { offset: offset.get(), end });
        }
        Ok(())
    }

    pub fn secrets(&self) -> Secrets {
        self.secrets
    }
}

/// The records of a group that was read whole, headers checked, bodies not: its bytes come from below
/// the durable watermark of this very process.
pub fn records<'a>(
    header: &GroupHeader,
    bytes: &'a [u8],
    secrets: Secrets,
) -> impl Iterator<Item = Result<Record<'a>, ReadError>> {
    let base = header.offset;
    let mut at = GROUP_HEADER;
    let end = match header.kind {
        GroupKind::Records => bytes.len(),
        GroupKind::EndOfSegment => at,
    };
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let offset = base.plus(at as u64);
        let rest = &bytes[at..];
        match Header::check(rest, offset, secrets.record) {
            Ok(header) if header.length() <= rest.len() => {
                at += header.padded_length();
                let (head, body) = (header.head_end(), header.length());
                Some(Ok(Record {
                    header,
                    head: &rest[HEADER_LENGTH..head],
                    body: &rest[head..body],
                }))
            }
            Ok(header) => {
                at = end;
                let cause = RecordError::Short { needed: header.length(), got: rest.len() };
                Some(Err(ReadError::Record { offset: offset.get(), cause }))
            }
            Err(cause) => {
                at = end;
                Some(Err(ReadError::Record { offset: offset.get(), cause }))
            }
        }
    })
}
