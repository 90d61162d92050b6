//! Opening a log: find its end, tell a torn tail from rot, and hand every whole record to the fold.
//!
//! ```text
//!   group ─ group ─ group ─ ✗✗✗ ─ group ─ group ─ ✗ ........
//!                           rot: a later group was    └ torn tail: no later group says that it was
//!                           written when this was       durable. Cut: nobody was told it was there.
//!                           durable
//! ```
//!
//! - A group is whole when its header, each of its records and the hash over them are right, and it
//!   follows the chain.
//! - At the first place that is not a whole group, later groups are looked for on 32-byte steps: secret
//!   magic, right self-offset, crc, higher number. If one of them was written when the log was durable
//!   past this place, the place is *rot*: its records that are whole are served, the rest is reported as
//!   [`Damage`]. Otherwise it is the end.
//! - What an earlier recovery cut may stand on the disk still: behind the end, and behind the header that
//!   ends a segment. Lower incarnations and repeated numbers tell it; nothing of it is served.
//! - What is right by all its crcs and cannot be understood was written by a newer version. It is no torn
//!   tail: the log is refused, and not touched.
//! - What may not be on the disk although it can be read (the process died, the page cache did not) is
//!   everything past the last group's `durable upto`: it is written again, same bytes, and synced,
//!   before anybody is shown any of it.

use std::sync::Arc;

use timerlog::disk::Directory;
use timerlog::segment::{Row, RowError, RowReader};

use super::append::Appender;
use super::flush::{ChainEnd, Flusher, Room, prepare_next};
use super::group::{GROUP_HEADER, GroupError, GroupHeader, GroupKind, MAX_GROUP, RecordsHash};
use super::settled::Settled;
use super::{CommitLog, FlushMode, LogReader, ReadError, Secrets, Watermarks};
use crate::message::offset::{Offset, STEP};
use crate::message::record::{HEADER_LENGTH, Header, Record, RecordError};
use crate::stage::Signal;
use crate::sync::{AtomicU64, Mutex};

/// How much is read at a time while later groups are looked for.
const SEARCH_BLOCK: usize = 1 << 20;

/// From where a log is read: a group's place and what the chain was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanFrom {
    pub offset: Offset,
    pub next_number: u64,
    pub previous_hash: u128,
    pub incarnation: u64,
}

/// A stretch of durable log that cannot be read any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    pub from: Offset,
    pub length: u64,
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError<E> {
    #[error(transparent)]
    Row(#[from] RowError),
    #[error("the log ends at {end}, but a checkpoint says that it was durable up to {durable}")]
    Shorter { end: u64, durable: u64 },
    #[error("a newer version of this program has written the log: {0}")]
    Newer(ReadError),
    #[error(transparent)]
    Fold(E),
}

impl<E> From<ReadError> for RecoverError<E> {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Row(error) => Self::Row(error),
            error => Self::Newer(error),
        }
    }
}

/// A log that was read to its end.
#[derive(Debug)]
pub struct Recovered {
    row: Row,
    secrets: Secrets,
    segment_size: u64,
    pub damage: Vec<Damage>,
    /// Where the log ends and the next group goes. Its incarnation is the highest that has left a group,
    /// even one that was cut.
    pub tail: ScanFrom,
    room: Room,
}

/// Reads the log from `from` to its end, giving each whole record to `fold`, in order, and makes sure
/// that all of it is on the disk. `durable` is how far a checkpoint knows it to have been flushed.
///
/// # Errors
///
/// The disk's, the fold's, [`RecoverError::Newer`], and [`RecoverError::Shorter`] when the log lost what a
/// checkpoint had seen: then it is not this checkpoint's log, or its disk has lost durable bytes. A file
/// that the checkpoint knows and that is missing or cut short is [`RecoverError::Row`] and named. Nothing is
/// touched then.
pub fn recover<E>(
    directory: Arc<dyn Directory>,
    segment_size: u64,
    secrets: Secrets,
    from: ScanFrom,
    durable: Offset,
    fold: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
) -> Result<Recovered, RecoverError<E>> {
    let row = Row::open(directory, segment_size, from.offset.max(durable).get())?;
    let mut scan = Scan::new(&row, secrets, from);
    scan.run(fold)?;
    let tail = ScanFrom { incarnation: scan.newest_incarnation, ..scan.at };
    let (known_durable, damage) = (scan.durable_upto, scan.damage);
    if tail.offset < durable {
        let (end, durable) = (tail.offset.get(), durable.get());
        return Err(RecoverError::Shorter { end, durable });
    }
    let room = Room::Enough;
    let mut recovered = Recovered { row, secrets, segment_size, damage, tail, room };
    recovered.rewrite(known_durable)?;
    Ok(recovered)
}

/// A log that was only read.
#[derive(Clone, Debug)]
pub struct WholeLog {
    pub damage: Vec<Damage>,
    pub end: Offset,
}

/// Shows the whole records of a log that begins at `begin` to `see`, until that says that it has seen enough. What
/// the chain was there is not known: the first whole group tells. Nothing is touched.
///
/// # Errors
///
/// The disk's, and [`ReadError`] for what a newer version has written.
pub fn read_all(
    directory: Arc<dyn Directory>,
    segment_size: u64,
    secrets: Secrets,
    begin: Offset,
    see: &mut dyn FnMut(&Record<'_>) -> bool,
) -> Result<WholeLog, ReadError> {
    let row = Row::open(directory, segment_size, begin.get())?;
    let from = ScanFrom { offset: begin, ..ScanFrom::default() };
    let mut scan = Scan::new(&row, secrets, from);
    if let Some(first) = scan.header_at(begin)? {
        scan.take_up(&first);
    }
    let seen = scan.run(&mut |record| if see(&record) { Err(Enough) } else { Ok(()) });
    match seen {
        Ok(()) | Err(RecoverError::Fold(Enough)) => {
            Ok(WholeLog { damage: scan.damage, end: scan.at.offset })
        }
        Err(RecoverError::Row(error)) => Err(error.into()),
        Err(RecoverError::Newer(error)) => Err(error),
        Err(RecoverError::Shorter { .. }) => {
            unreachable!("only a recovery compares with a checkpoint")
        }
    }
}

/// What was looked for is found.
struct Enough;

struct Scan {
    reader: RowReader,
    allocated: u64,
    segment_size: u64,
    secrets: Secrets,
    at: ScanFrom,
    /// Where the group before the present place begins, if it was read.
    before: Option<Offset>,
    durable_upto: Offset,
    newest_incarnation: u64,
    damage: Vec<Damage>,
    bytes: Vec<u8>,
}

impl Scan {
    fn new(row: &Row, secrets: Secrets, from: ScanFrom) -> Self {
        Self {
            reader: row.reader(),
            allocated: row.allocated(),
            segment_size: row.segment_size(),
            secrets,
            at: from,
            before: None,
            durable_upto: from.offset,
            newest_incarnation: from.incarnation,
            damage: Vec::new(),
            bytes: Vec::new(),
        }
    }

    fn run<E>(
        &mut self,
        fold: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), RecoverError<E>> {
        loop {
            let here = self.header_at(self.at.offset)?;
            if let Some(header) = here.filter(|header| self.follows(header))
                && self.read_whole(&header)?
            {
                self.fold_group(&header, fold)?;
                self.follow(&header);
                continue;
            }
            let Some(next) = self.find_later_group()? else { return Ok(()) };
            self.salvage(here, &next, fold)?;
        }
    }

    fn follows(&self, header: &GroupHeader) -> bool {
        header.number == self.at.next_number
            && header.previous_hash == self.at.previous_hash
            && header.incarnation >= self.at.incarnation
    }

    fn follow(&mut self, header: &GroupHeader) {
        self.durable_upto = self.durable_upto.max(header.durable_upto);
        self.newest_incarnation = self.newest_incarnation.max(header.incarnation);
        self.before = Some(header.offset);
        self.at = ScanFrom {
            offset: header.end(),
            next_number: header.number + 1,
            previous_hash: header.hash(self.secrets.group),
            incarnation: header.incarnation,
        };
    }

    /// Goes on with `header`, whatever came before it.
    fn take_up(&mut self, header: &GroupHeader) {
        self.before = None;
        self.at = ScanFrom {
            offset: header.offset,
            next_number: header.number,
            previous_hash: header.previous_hash,
            incarnation: header.incarnation,
        };
    }

    fn header_at(&self, offset: Offset) -> Result<Option<GroupHeader>, ReadError> {
        if offset.get() + GROUP_HEADER as u64 > self.allocated {
            return Ok(None);
        }
        let mut bytes = [0; GROUP_HEADER];
        self.reader.read_exact_from_disk(offset.get(), &mut bytes)?;
        self.decode(&bytes, offset)
    }

    fn decode(&self, bytes: &[u8], offset: Offset) -> Result<Option<GroupHeader>, ReadError> {
        match GroupHeader::decode(bytes, offset, self.secrets.group) {
            Ok(header) => Ok(Some(header)),
            Err(cause @ (GroupError::Version { .. } | GroupError::Head(_))) => {
                Err(ReadError::Group { offset: offset.get(), cause })
            }
            Err(_) => Ok(None),
        }
    }

    /// Reads the group into `self.bytes` and says whether it is whole.
    fn read_whole(&mut self, header: &GroupHeader) -> Result<bool, ReadError> {
        let segment_end = (header.offset.get() / self.segment_size + 1) * self.segment_size;
        if header.kind == GroupKind::EndOfSegment {
            return Ok(header.end().get() == segment_end && header.count == 0);
        }
        if header.end().get() > segment_end {
            return Ok(false);
        }
        self.bytes.resize(header.length as usize, 0);
        self.reader.read_exact_from_disk(header.offset.get(), &mut self.bytes)?;
        let (mut at, mut count, mut hash) = (GROUP_HEADER, 0, RecordsHash::default());
        while at < self.bytes.len() {
            let offset = header.offset.plus(at as u64);
            match Record::check(&self.bytes[at..], offset, self.secrets.record) {
                Ok(record) => {
                    hash.add(record.header.crcs());
                    at += record.header.padded_length();
                    count += 1;
                }
                Err(cause) => return refuse_newer(offset, cause).map(|()| false),
            }
        }
        Ok(count == header.count && hash.finish() == header.records_hash)
    }

    fn fold_group<E>(
        &self,
        header: &GroupHeader,
        fold: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), RecoverError<E>> {
        if header.kind == GroupKind::EndOfSegment {
            return Ok(());
        }
        let mut at = GROUP_HEADER;
        while at < self.bytes.len() {
            let offset = header.offset.plus(at as u64);
            let record = Record::check(&self.bytes[at..], offset, self.secrets.record)
                .expect("the group was found whole");
            at += record.header.padded_length();
            fold(record).map_err(RecoverError::Fold)?;
        }
        Ok(())
    }

    /// The first later group, if any later group proves that the present place was durable.
    fn find_later_group(&mut self) -> Result<Option<GroupHeader>, ReadError> {
        let mut first: Option<GroupHeader> = None;
        let mut at = self.at.offset.plus(STEP);
        let mut block = vec![0; SEARCH_BLOCK + GROUP_HEADER];
        while let Some(data) = self.reader.next_data(at.get())? {
            // Groups begin on steps; data may begin anywhere.
            at = at.max(Offset::new(data / STEP * STEP));
            let segment_end = (at.get() / self.segment_size + 1) * self.segment_size;
            let left = usize::try_from(segment_end - at.get()).unwrap_or(usize::MAX);
            let length = block.len().min(left);
            self.reader.read_exact_from_disk(at.get(), &mut block[..length])?;
            let mut within = 0;
            while within + GROUP_HEADER <= length {
                let offset = at.plus(within as u64);
                if let Some(header) = self.later_group(&block[within..length], offset)? {
                    if first.is_none_or(|first| was_cut(&first, &header)) {
                        first = Some(header);
                    }
                    if header.durable_upto > self.at.offset {
                        return Ok(first);
                    }
                }
                within += STEP as usize;
            }
            at = if length == left { Offset::new(segment_end) } else { at.plus(within as u64) };
        }
        Ok(None)
    }

    fn later_group(
        &mut self,
        bytes: &[u8],
        offset: Offset,
    ) -> Result<Option<GroupHeader>, ReadError> {
        let Some(header) = self.decode(bytes, offset)? else { return Ok(None) };
        self.newest_incarnation = self.newest_incarnation.max(header.incarnation);
        let later =
            header.number > self.at.next_number && header.incarnation >= self.at.incarnation;
        Ok(later.then_some(header))
    }

    /// Serves what is whole at the present place, reports the rest, and goes on behind it. `here` is the
    /// header that stands there, if a whole one does, and `next` the first group after it.
    fn salvage<E>(
        &mut self,
        here: Option<GroupHeader>,
        next: &GroupHeader,
        fold: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), RecoverError<E>> {
        let at = self.at.offset;
        match here {
            Some(header) if self.follows(&header) && header.kind == GroupKind::Records => {
                // The header tells how far the group reaches; its records are in doubt.
                let reported = self.damage_length();
                self.salvage_records(at.plus(GROUP_HEADER as u64), header.end(), fold)?;
                if self.damage_length() == reported {
                    // Each record is right and they are not the ones that the header was made for:
                    // nobody knows which of them stands in the place of another.
                    self.report(at, header.end());
                }
                self.follow(&header);
            }
            Some(header) if !self.follows(&header) && self.leads_to(&header, next) => {
                // This one is in its place, so the one before it was not: that passed for a group of
                // ours until now.
                let behind_header = at.plus(GROUP_HEADER as u64);
                let (from, to) = self.before.map_or((at, behind_header), |before| (before, at));
                self.report(from, to);
                self.take_up(&header);
            }
            None if !self.is_end_of_segment(next) => {
                self.salvage_records(at, next.offset, fold)?;
                self.take_up(next);
            }
            // A group of another history, or space that was never written in this one.
            Some(_) | None => {
                self.report(at, next.offset);
                self.take_up(next);
            }
        }
        Ok(())
    }

    /// Whether `next` was written after `header`.
    fn leads_to(&self, header: &GroupHeader, next: &GroupHeader) -> bool {
        next.offset == header.end()
            && next.number == header.number + 1
            && next.previous_hash == header.hash(self.secrets.group)
    }

    /// Whether the one group between the present place and `next` is the end of a segment. No record of
    /// this log stands behind its header, but ones that were cut may.
    fn is_end_of_segment(&self, next: &GroupHeader) -> bool {
        next.number == self.at.next_number + 1
            && next.offset.get().is_multiple_of(self.segment_size)
    }

    /// Serves the whole records between `from` and `to` and reports the rest.
    fn salvage_records<E>(
        &mut self,
        from: Offset,
        to: Offset,
        fold: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), RecoverError<E>> {
        let mut bytes = Vec::new();
        let mut at = from;
        while at < to {
            match self.record_at(at, to, &mut bytes)? {
                Some(header) => {
                    let record = Record::check_body(&bytes, header).expect("checked when read");
                    at = at.plus(header.padded_length() as u64);
                    fold(record).map_err(RecoverError::Fold)?;
                }
                None => {
                    self.report(at, at.plus(STEP));
                    at = at.plus(STEP);
                }
            }
        }
        Ok(())
    }

    fn damage_length(&self) -> u64 {
        self.damage.iter().map(|damage| damage.length).sum()
    }

    /// Neighbours are one stretch.
    fn report(&mut self, from: Offset, to: Offset) {
        let length = to.get() - from.get();
        match self.damage.last_mut() {
            Some(last) if last.from.plus(last.length) == from => last.length += length,
            _ => self.damage.push(Damage { from, length }),
        }
    }

    /// Reads the record at `at` into `bytes`, if a whole one stands there and ends before `limit`.
    fn record_at(
        &self,
        at: Offset,
        limit: Offset,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<Header>, ReadError> {
        let segment_end = (at.get() / self.segment_size + 1) * self.segment_size;
        let left = usize::try_from(limit.get().min(segment_end) - at.get()).unwrap_or(usize::MAX);
        if left < HEADER_LENGTH {
            return Ok(None);
        }
        bytes.resize(HEADER_LENGTH, 0);
        self.reader.read_exact_from_disk(at.get(), bytes)?;
        if !Header::claims(bytes, at, self.secrets.record) {
            return Ok(None);
        }
        let Ok(needed) = Header::needed(bytes) else { return Ok(None) };
        if needed > left {
            return Ok(None);
        }
        bytes.resize(needed, 0);
        self.reader.read_exact_from_disk(at.get(), bytes)?;
        let header = match Header::check(bytes, at, self.secrets.record) {
            Ok(header) => header,
            Err(cause) => return refuse_newer(at, cause).map(|()| None),
        };
        if header.padded_length() > left || header.padded_length() > MAX_GROUP {
            return Ok(None);
        }
        bytes.resize(header.padded_length(), 0);
        self.reader.read_exact_from_disk(at.get(), bytes)?;
        Ok(Record::check_body(bytes, header).is_ok().then_some(header))
    }
}

/// Whether an earlier recovery cut `first`, since `later` stands further on: numbers and incarnations grow
/// along the log.
fn was_cut(first: &GroupHeader, later: &GroupHeader) -> bool {
    later.number <= first.number && later.incarnation >= first.incarnation
}

/// A record that is right by its crc and cannot be understood is not to be lost by one who cannot.
fn refuse_newer(offset: Offset, cause: RecordError) -> Result<(), ReadError> {
    match cause {
        RecordError::Version { .. } | RecordError::UnknownKind { .. } => {
            Err(ReadError::Record { offset: offset.get(), cause })
        }
        _ => Ok(()),
    }
}

impl Recovered {
    /// Writes again what may be in the page cache only, and makes the room that the first turn needs.
    fn rewrite(&mut self, durable: Offset) -> Result<(), RowError> {
        let tail = self.tail.offset.get();
        self.row.reset_length(tail);
        let reader = self.row.reader();
        let mut at = durable.get().min(tail);
        let mut block = vec![0; SEARCH_BLOCK];
        while at < tail {
            let segment_end = (at / self.segment_size + 1) * self.segment_size;
            let left = usize::try_from(tail.min(segment_end) - at).unwrap_or(usize::MAX);
            let length = block.len().min(left);
            reader.read_exact_from_disk(at, &mut block[..length])?;
            self.row.write_at(at, &block[..length])?;
            at += length as u64;
        }
        self.row.prepare(tail)?;
        self.room = prepare_next(&mut self.row, tail)?;
        self.row.flush()
    }

    /// The log, ready to grow; nobody needs what is before `begin`. `incarnation` must be higher than any
    /// before.
    pub fn open(
        self,
        settled: Settled,
        mode: FlushMode,
        incarnation: u64,
        begin: Offset,
    ) -> CommitLog {
        let Self { row, secrets, segment_size, tail, room, .. } = self;
        let end = tail.offset;
        let reader = LogReader::new(row.reader(), secrets, segment_size);
        let mut appender = Appender::new(end, row.allocated(), segment_size, secrets.record);
        if room == Room::Full {
            appender.set_full();
        }
        let chain = ChainEnd {
            next_number: tail.next_number,
            previous_hash: tail.previous_hash,
            incarnation,
        };
        CommitLog {
            appender: Mutex::new(appender),
            flusher: Mutex::new(Flusher::new(row, secrets, mode, chain)),
            settled,
            watermarks: Arc::new(Watermarks {
                begin: AtomicU64::new(begin.get()),
                closed: AtomicU64::new(0),
                visible: AtomicU64::new(end.get()),
                durable: AtomicU64::new(end.get()),
            }),
            reader,
            flush_signal: Signal::default(),
        }
    }
}
