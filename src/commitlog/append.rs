//! The appender: the one place where the log grows, and so the referee of every race.
//!
//! ```text
//!   turn ── lock ── settle? ── place ── copy into the open group ── unlock
//!                                             │ flush takes it
//!                          closed groups ─────┴──> one write, one fdatasync, one wake-up
//! ```
//!
//! A [`Turn`] is the lock. What one turn appends stands in one group: it is there whole after a crash
//! or not at all. Offsets are given here, so the order of turns is the order of the log.

use std::collections::VecDeque;
use std::sync::Arc;

use super::CommitLog;
use super::completion::{Completion, Receipt};
use super::group::{GROUP_HEADER, GroupKind, MAX_GROUP, RecordsHash};
use super::settled::Outcome;
use crate::config::QueuedAppends;
use crate::message::offset::Offset;
use crate::message::record::{Encoded, Magic, sealed_crcs};
use crate::sync::MutexGuard;
use timerlog::disk::{DiskError, Operation};
use timerlog::planted::{self, Fault};
use timerlog::segment::RowError;

/// What may wait beyond the bound when it is of work that was accepted before: deliveries, acks, cancels.
/// Without it, new messages that keep the log at its bound would keep old ones from being delivered.
const ACCEPTED_BYTES: u64 = 16 * 1024 * 1024;
const ACCEPTED_RECORDS: u64 = 25_000;

/// Buffers kept for reuse, and the largest that is kept.
const SPARE_BUFFERS: usize = 2;
const SPARE_BUFFER_LENGTH: usize = 2 * 1024 * 1024;

/// Why nothing was appended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AppendError {
    /// The flush is behind: too much waits for it.
    #[error("{records} records of {bytes} bytes already wait for the disk")]
    Overloaded { records: u64, bytes: u64 },
    /// The index is behind: too many of its entries wait for the disk.
    #[error("the index is behind: too many of its entries wait for the disk")]
    IndexBehind,
    /// What room there is left is for what was accepted before, or there is none for another segment.
    #[error("the disk is full, or so nearly that nothing new is taken")]
    StorageFull,
    /// More than fits one group. A bug of the caller: the limits at the door are lower.
    #[error("{length} bytes do not fit one append group of {limit}")]
    TooLong { length: usize, limit: u64 },
    #[error("the log failed earlier: {0}")]
    Failed(RowError),
}

/// What a turn is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    New,
    /// It follows from what was accepted before.
    Accepted,
}

/// Whether the log takes what is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewWork {
    Taken,
    /// The room that is left is for what was accepted before.
    Refused,
}

/// A group on its way to the disk.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) base: Offset,
    /// The header's place, still zero, and the records.
    pub(super) bytes: Vec<u8>,
    pub(super) count: u32,
    pub(super) hash: RecordsHash,
    pub(super) kind: GroupKind,
    /// From `base` to the next group's base.
    pub(super) length: u64,
    pub(super) completion: Arc<Completion>,
}

/// What the lock guards.
#[derive(Debug)]
pub(super) struct Appender {
    open: Group,
    closed: VecDeque<Group>,
    /// What is closed or open or being flushed, not yet durable.
    waiting: QueuedAppends,
    bounds: QueuedAppends,
    segment_size: u64,
    /// Segments are allocated up to here.
    prepared: u64,
    /// The disk refused the segment after that.
    full: bool,
    new_work: NewWork,
    failed: Option<RowError>,
    /// The group that holds the latest decision.
    latest: Arc<Completion>,
    magic: Magic,
    spare: Vec<Vec<u8>>,
}

impl Appender {
    pub(super) fn new(tail: Offset, prepared: u64, segment_size: u64, magic: Magic) -> Self {
        let latest = Arc::new(Completion::default());
        latest.finish(super::Durability::Durable);
        Self {
            open: Group::at(tail, Vec::new()),
            closed: VecDeque::new(),
            waiting: QueuedAppends { records: 0, bytes: 0 },
            bounds: QueuedAppends::default(),
            segment_size,
            prepared,
            full: false,
            new_work: NewWork::Taken,
            failed: None,
            latest,
            magic,
            spare: Vec::new(),
        }
    }

    /// Where the next record would be placed, at the least.
    pub(super) fn end(&self) -> Offset {
        self.open.base.plus(if self.open.count == 0 { 0 } else { self.open.length })
    }

    pub(super) fn latest_receipt(&self) -> Receipt {
        Receipt(Arc::clone(&self.latest))
    }

    /// Hands everything appended so far to the flush.
    pub(super) fn take(&mut self) -> VecDeque<Group> {
        if self.open.count > 0 {
            self.close();
        }
        std::mem::take(&mut self.closed)
    }

    /// As [`Appender::take`]; an appender that failed of itself fails the flush, too.
    pub(super) fn take_unless_failed(&mut self) -> Result<VecDeque<Group>, RowError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(self.take()),
        }
    }

    pub(super) fn set_bounds(&mut self, bounds: QueuedAppends) {
        self.bounds = bounds;
    }

    /// What is not durable yet.
    pub(super) fn waiting(&self) -> QueuedAppends {
        self.waiting
    }

    /// The flush is done with so much.
    pub(super) fn give_back(
        &mut self,
        done: QueuedAppends,
        buffers: impl Iterator<Item = Vec<u8>>,
    ) {
        self.waiting.records -= done.records;
        self.waiting.bytes -= done.bytes;
        for mut buffer in buffers {
            if self.spare.len() < SPARE_BUFFERS && buffer.capacity() <= SPARE_BUFFER_LENGTH {
                buffer.clear();
                self.spare.push(buffer);
            }
        }
    }

    pub(super) fn set_prepared(&mut self, prepared: u64) {
        self.prepared = prepared;
        self.full = false;
    }

    pub(super) fn set_full(&mut self) {
        self.full = true;
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn set_new_work(&mut self, new_work: NewWork) {
        self.new_work = new_work;
    }

    /// Nothing is appended any more; whoever waits is told.
    pub(super) fn fail(&mut self, error: RowError) {
        for group in self.take() {
            group.completion.finish(super::Durability::Failed);
        }
        self.failed = Some(error);
    }

    fn close(&mut self) {
        let next = Group::at(self.open.end(), self.spare.pop().unwrap_or_default());
        self.closed.push_back(std::mem::replace(&mut self.open, next));
    }

    /// Makes the open group one that has room for `length` bytes of records.
    fn make_room(&mut self, length: usize, work: Work) -> Result<(), AppendError> {
        if let Some(error) = &self.failed {
            return Err(AppendError::Failed(error.clone()));
        }
        if (work, self.new_work) == (Work::New, NewWork::Refused) {
            return Err(AppendError::StorageFull);
        }
        let (more_records, more_bytes) = match work {
            Work::New => (0, 0),
            Work::Accepted => (ACCEPTED_RECORDS, ACCEPTED_BYTES),
        };
        if self.waiting.records >= self.bounds.records.saturating_add(more_records)
            || self.waiting.bytes >= self.bounds.bytes.saturating_add(more_bytes)
        {
            return Err(self.overloaded());
        }
        let needed = length as u64;
        let limit =
            (MAX_GROUP as u64).min(self.segment_size - GROUP_HEADER as u64) - GROUP_HEADER as u64;
        if needed > limit {
            return Err(AppendError::TooLong { length, limit });
        }
        // Every segment keeps room for the header that ends it.
        let segment_end = (self.open.base.get() / self.segment_size + 1) * self.segment_size;
        let last = segment_end - GROUP_HEADER as u64;
        let fits = |base: u64, used: u64| {
            used + needed <= MAX_GROUP as u64 && base + used + needed <= last
        };
        if fits(self.open.base.get(), self.open.length) {
            return self.require(self.open.end().get() + needed);
        }
        let next = if self.open.count == 0 { self.open.base } else { self.open.end() };
        if fits(next.get(), GROUP_HEADER as u64) {
            self.require(next.get() + GROUP_HEADER as u64 + needed)?;
            self.close();
            return Ok(());
        }
        self.require(segment_end + GROUP_HEADER as u64 + needed)?;
        if self.open.count > 0 {
            self.close();
        }
        self.end_segment(segment_end);
        Ok(())
    }

    fn require(&self, upto: u64) -> Result<(), AppendError> {
        if upto <= self.prepared {
            Ok(())
        } else if self.full {
            Err(AppendError::StorageFull)
        } else {
            Err(self.overloaded())
        }
    }

    fn overloaded(&self) -> AppendError {
        let QueuedAppends { records, bytes } = self.waiting;
        AppendError::Overloaded { records, bytes }
    }

    fn end_segment(&mut self, segment_end: u64) {
        debug_assert!(self.open.count == 0);
        self.open.kind = GroupKind::EndOfSegment;
        self.open.length = segment_end - self.open.base.get();
        self.waiting.bytes += GROUP_HEADER as u64;
        self.close();
    }
}

impl Group {
    fn at(base: Offset, mut bytes: Vec<u8>) -> Self {
        bytes.resize(GROUP_HEADER, 0);
        Self {
            base,
            bytes,
            count: 0,
            hash: RecordsHash::default(),
            kind: GroupKind::Records,
            length: GROUP_HEADER as u64,
            completion: Arc::default(),
        }
    }

    pub(super) fn end(&self) -> Offset {
        self.base.plus(self.length)
    }
}

/// The appender, held: everything decided and appended until it is dropped is one step.
#[derive(Debug)]
pub struct Turn<'a> {
    appender: MutexGuard<'a, Appender>,
    log: &'a CommitLog,
    left: usize,
    appended: usize,
}

impl<'a> Turn<'a> {
    pub(super) fn begin(
        mut appender: MutexGuard<'a, Appender>,
        log: &'a CommitLog,
        length: usize,
        work: Work,
    ) -> Result<Self, AppendError> {
        appender.make_room(length, work)?;
        Ok(Self { appender, log, left: length, appended: 0 })
    }

    /// Whether what stands at `at` is let go, or about to be: nothing that needs it may be appended in this turn.
    pub fn is_closed(&self, at: Offset) -> bool {
        self.log.is_closed(at)
    }

    /// Settles `cause`, or says how it was settled before. When it says `Ok`, the fact that settles
    /// it must be appended in this turn.
    ///
    /// # Errors
    ///
    /// [`SettleError::Before`] with what came first; [`SettleError::Disk`] when the cause's page
    /// cannot be read.
    pub fn settle(&mut self, cause: Offset, outcome: Outcome) -> Result<(), SettleError> {
        match self.log.settled.set(cause, outcome)? {
            None => Ok(()),
            Some(_) if planted::is(Fault::NoSettledCheck) && outcome == Outcome::Delivered => {
                Ok(())
            }
            Some(before) => Err(SettleError::Before(before)),
        }
    }

    /// Appends the record and says where it stands.
    ///
    /// # Panics
    ///
    /// When the turn appends more than it asked for.
    pub fn append(&mut self, mut record: Encoded) -> Offset {
        assert!(record.len() <= self.left, "a turn appends no more than it asked room for");
        self.left -= record.len();
        self.appended += record.len();
        let magic = self.appender.magic;
        let group = &mut self.appender.open;
        let offset = group.end();
        let bytes = record.seal(offset, magic);
        group.hash.add(sealed_crcs(bytes));
        group.bytes.extend_from_slice(bytes);
        group.length += bytes.len() as u64;
        group.count += 1;
        self.appender.waiting.records += 1;
        offset
    }

    /// The claim of everything decided so far, refusals too.
    pub fn receipt(&self) -> Receipt {
        if planted::is(Fault::AnswerBeforeFlush) {
            self.appender.open.completion.finish(super::Durability::Durable);
        }
        if self.appended > 0 {
            return Receipt(Arc::clone(&self.appender.open.completion));
        }
        self.appender.latest_receipt()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Perhaps a cause is settled and its fact is not appended, or a batch is half there: nothing of
            // this may reach the disk, and nothing more may be decided.
            let cause = std::io::Error::other("a turn of the appender panicked");
            let error = DiskError::new(Operation::Write, "commitlog", cause);
            self.appender.fail(error.into());
            return;
        }
        if self.appended == 0 {
            return;
        }
        let header = if self.appender.open.bytes.len() - GROUP_HEADER == self.appended {
            GROUP_HEADER
        } else {
            0
        };
        self.appender.waiting.bytes += (self.appended + header) as u64;
        self.appender.latest = Arc::clone(&self.appender.open.completion);
        self.log.flush_signal.raise();
    }
}

/// Why a cause was not settled now.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SettleError {
    #[error("it was settled before: {0:?}")]
    Before(Outcome),
    #[error(transparent)]
    Disk(#[from] super::settled::SettledError),
}
