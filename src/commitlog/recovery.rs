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
//! - What may not be on the disk although it can be read (the process died, the page cache did not) is
//!   everything past the last group's `durable upto`: it is written again, same bytes, and synced,
//!   before anybody is shown any of it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use timerlog::disk::Directory;
use timerlog::segment::{Row, RowError, RowReader};

use super::append::Appender;
use super::flush::{ChainEnd, Flusher, Room, prepare_next};
use super::group::{GROUP_HEADER, GroupHeader, GroupKind, MAX_GROUP, RecordsHash};
use super::settled::Settled;
use super::{CommitLog, FlushMode, LogReader, Secrets, Watermarks};
use crate::message::offset::{Offset, STEP};
use crate::message::record::{HEADER_LENGTH, Header, Record};
use crate::stage::Signal;

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
    #[error(transparent)]
    Fold(E),
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
/// The disk's, the fold's, and [`RecoverError::Shorter`] when the log lost what a checkpoint had seen:
/// then it is not this checkpoint's log, or its disk has lost durable bytes, and nothing is touched.
pub fn recover<E>(
    directory: Arc<dyn Directory>,
    segment_size: u64,
    secrets: Secrets,
    from: ScanFrom,
    durable: Offset,
    fold: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
) -> Result<Recovered, RecoverError<E>> {
    let row = Row::open(directory, segment_size, from.offset.get())?;
    let shorter = |end| RecoverError::Shorter { end, durable: durable.get() };
    if row.allocated() < durable.get() {
        return Err(shorter(row.allocated()));
    }
    let mut scan = Scan {
        reader: row.reader(),
        allocated: row.allocated(),
        segment_size,
        secrets,
        at: from,
        durable_upto: from.offset,
        newest_incarnation: from.incarnation,
        damage: Vec::new(),
        bytes: Vec::new(),
    };
    scan.run(fold)?;
    let tail = ScanFrom { incarnation: scan.newest_incarnation, ..scan.at };
    let (known_durable, damage) = (scan.durable_upto, scan.damage);
    if tail.offset < durable {
        return Err(shorter(tail.offset.get()));
    }
    let room = Room::Enough;
    let mut recovered = Recovered { row, secrets, segment_size, damage, tail, room };
    recovered.rewrite(known_durable)?;
    Ok(recovered)
}

struct Scan {
    reader: RowReader,
    allocated: u64,
    segment_size: u64,
    secrets: Secrets,
    at: ScanFrom,
    durable_upto: Offset,
    newest_incarnation: u64,
    damage: Vec<Damage>,
    bytes: Vec<u8>,
}

/// What stands at a place.
enum Found {
    Group(GroupHeader),
    NoGroup,
}

impl Scan {
    fn run<E>(
        &mut self,
        fold: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), RecoverError<E>> {
        loop {
            match self.group_here()? {
                Found::Group(header) => {
                    self.fold_group(&header, fold)?;
                    self.follow(&header);
                }
                Found::NoGroup => {
                    let Some(next) = self.find_later_group()? else { return Ok(()) };
                    self.salvage(next, fold)?;
                }
            }
        }
    }

    fn follow(&mut self, header: &GroupHeader) {
        self.durable_upto = self.durable_upto.max(header.durable_upto);
        self.newest_incarnation = self.newest_incarnation.max(header.incarnation);
        self.at = ScanFrom {
            offset: header.end(),
            next_number: header.number + 1,
            previous_hash: header.hash(self.secrets.group),
            incarnation: header.incarnation,
        };
    }

    /// Reads the group at the present place into `self.bytes`, if there is a whole one that follows the
    /// chain.
    fn group_here(&mut self) -> Result<Found, RowError> {
        let Some(header) = self.header_at(self.at.offset)? else { return Ok(Found::NoGroup) };
        let follows = header.number == self.at.next_number
            && header.previous_hash == self.at.previous_hash
            && header.incarnation >= self.at.incarnation;
        if follows && self.read_whole(&header)? {
            return Ok(Found::Group(header));
        }
        Ok(Found::NoGroup)
    }

    fn header_at(&self, offset: Offset) -> Result<Option<GroupHeader>, RowError> {
        if offset.get() + GROUP_HEADER as u64 > self.allocated {
            return Ok(None);
        }
        let mut bytes = [0; GROUP_HEADER];
        self.reader.read_exact_from_disk(offset.get(), &mut bytes)?;
        Ok(GroupHeader::decode(&bytes, offset, self.secrets.group).ok())
    }

    /// Reads the group into `self.bytes` and says whether it is whole.
    fn read_whole(&mut self, header: &GroupHeader) -> Result<bool, RowError> {
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
                Err(_) => return Ok(false),
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
    fn find_later_group(&mut self) -> Result<Option<GroupHeader>, RowError> {
        let mut first = None;
        let mut at = self.at.offset.plus(STEP);
        let mut block = vec![0; SEARCH_BLOCK + GROUP_HEADER];
        while at.get() + GROUP_HEADER as u64 <= self.allocated {
            let segment_end = (at.get() / self.segment_size + 1) * self.segment_size;
            let left = usize::try_from(segment_end - at.get()).unwrap_or(usize::MAX);
            let length = block.len().min(left);
            self.reader.read_exact_from_disk(at.get(), &mut block[..length])?;
            let mut within = 0;
            while within + GROUP_HEADER <= length {
                let offset = at.plus(within as u64);
                if let Some(header) = self.later_group(&block[within..length], offset) {
                    let proof = header.durable_upto > self.at.offset;
                    let candidate = *first.get_or_insert(header);
                    if proof {
                        return Ok(Some(candidate));
                    }
                }
                within += STEP as usize;
            }
            at = if length == left { Offset::new(segment_end) } else { at.plus(within as u64) };
        }
        Ok(None)
    }

    fn later_group(&mut self, bytes: &[u8], offset: Offset) -> Option<GroupHeader> {
        let header = GroupHeader::decode(bytes, offset, self.secrets.group).ok()?;
        self.newest_incarnation = self.newest_incarnation.max(header.incarnation);
        let later =
            header.number >= self.at.next_number && header.incarnation >= self.at.incarnation;
        later.then_some(header)
    }

    /// Serves what is whole between the present place and `next`, reports the rest, and goes on there.
    fn salvage<E>(
        &mut self,
        next: GroupHeader,
        fold: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), RecoverError<E>> {
        let mut at = self.at.offset;
        let mut damaged_from = None;
        let mut bytes = Vec::new();
        while at < next.offset {
            match self.record_at(at, next.offset, &mut bytes)? {
                Some(header) => {
                    self.report(damaged_from.take(), at);
                    let record = Record::check_body(&bytes, header).expect("checked when read");
                    at = at.plus(header.padded_length() as u64);
                    fold(record).map_err(RecoverError::Fold)?;
                }
                None => {
                    damaged_from.get_or_insert(at);
                    at = at.plus(STEP);
                }
            }
        }
        self.report(damaged_from, next.offset);
        self.at = ScanFrom {
            offset: next.offset,
            next_number: next.number,
            previous_hash: next.previous_hash,
            incarnation: next.incarnation,
        };
        Ok(())
    }

    fn report(&mut self, from: Option<Offset>, to: Offset) {
        if let Some(from) = from {
            self.damage.push(Damage { from, length: to.get() - from.get() });
        }
    }

    /// Reads the record at `at` into `bytes`, if a whole one stands there and ends before `limit`.
    fn record_at(
        &self,
        at: Offset,
        limit: Offset,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<Header>, RowError> {
        let segment_end = (at.get() / self.segment_size + 1) * self.segment_size;
        let left = usize::try_from(limit.get().min(segment_end) - at.get()).unwrap_or(usize::MAX);
        if left < HEADER_LENGTH {
            return Ok(None);
        }
        bytes.resize(HEADER_LENGTH, 0);
        self.reader.read_exact_from_disk(at.get(), bytes)?;
        let Ok(needed) = Header::needed(bytes) else { return Ok(None) };
        if needed > left {
            return Ok(None);
        }
        bytes.resize(needed, 0);
        self.reader.read_exact_from_disk(at.get(), bytes)?;
        let Ok(header) = Header::check(bytes, at, self.secrets.record) else { return Ok(None) };
        if header.padded_length() > left || header.padded_length() > MAX_GROUP {
            return Ok(None);
        }
        bytes.resize(header.padded_length(), 0);
        self.reader.read_exact_from_disk(at.get(), bytes)?;
        Ok(Record::check_body(bytes, header).is_ok().then_some(header))
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

    /// The log, ready to grow. `incarnation` must be higher than any before.
    pub fn open(self, settled: Settled, mode: FlushMode, incarnation: u64) -> CommitLog {
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
                visible: AtomicU64::new(end.get()),
                durable: AtomicU64::new(end.get()),
            }),
            reader,
            flush_signal: Signal::default(),
        }
    }
}
