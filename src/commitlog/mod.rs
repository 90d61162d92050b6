//! The truth: one append-only log of everything that happened, in groups.
//!
//! ```text
//!   turn ── settle, append ──> open group ─┐                       ┌─> Receipt: the writers' answers
//!   turn ── settle, append ──> open group ─┴─> flush: one pwrite + ┤
//!                                              one fdatasync       └─> written / durable watermarks ──> dispatch
//!   settled bits (derived): which causes have a fact
//! ```
//!
//! What the room promises:
//!
//! - What a [`Receipt`] calls durable is there after a power cut, whole and in its place.
//! - A cause is settled once: [`Turn::settle`] and the append of the fact are one step of one appender.
//!   Every race (cancel against fire, and all others) is decided there and nowhere else.
//! - After a failed write or flush the log is *failed*: it refuses everything, and a sync is never tried
//!   again, since the kernel may have dropped what it could not write.
//!
//! Ground rules: the appender's lock is the only lock taken while another (the settled pages') is taken
//! inside. The flush is the only writer of the files, recovery aside, which runs before it. Readers go
//! by the watermarks: *durable* bounds what a checkpoint may say, *visible* what readers may see; they
//! are the same unless the flush mode is `async`.

mod append;
mod completion;
mod flush;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
pub mod group;
mod read;
mod recovery;
pub mod settled;

pub use append::{AppendError, NewWork, SettleError, Turn};
pub use completion::{Durability, Receipt};
pub use flush::Flushed;
pub use read::{LogReader, Next, ReadError, records};
pub use recovery::{Damage, RecoverError, Recovered, ScanFrom, WholeLog, read_all, recover};
pub use settled::Outcome;

use std::sync::Arc;

use self::append::{Appender, Work};
use self::flush::Flusher;
use self::group::GroupMagic;
use self::settled::{Settled, SettledError};
use crate::clock::Now;
use crate::config::QueuedAppends;
use crate::message::offset::Offset;
use crate::message::record::Magic;
use crate::stage::Signal;
use crate::sync::{AtomicU64, Mutex, Ordering};
use timerlog::segment::RowError;

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushMode {
    /// After `fdatasync`: it survives a power cut.
    Sync,
    /// After the write to the operating system: it survives the end of the process, but a power cut may
    /// cost up to `interval_ms` of writes.
    Async { interval_ms: u64 },
}

/// What marks this data directory's records and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secrets {
    pub record: Magic,
    pub group: GroupMagic,
}

/// Why files of segments that were let go could not be removed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReleaseError {
    #[error(transparent)]
    Row(#[from] RowError),
    #[error(transparent)]
    Settled(#[from] SettledError),
}

/// How far the log is, as seen by those who do not append.
#[derive(Debug)]
struct Watermarks {
    begin: AtomicU64,
    /// Nothing is appended any more that needs what is before.
    closed: AtomicU64,
    visible: AtomicU64,
    durable: AtomicU64,
}

/// The log. Shared by reference; see the page above for who may do what.
#[derive(Debug)]
pub struct CommitLog {
    appender: Mutex<Appender>,
    flusher: Mutex<Flusher>,
    settled: Settled,
    watermarks: Arc<Watermarks>,
    reader: LogReader,
    flush_signal: Signal,
}

impl CommitLog {
    /// The appender, with room for `length` bytes of records (the sum of [`Encoded::len`]) in one
    /// group.
    ///
    /// # Errors
    ///
    /// [`AppendError`]; nothing is changed then.
    ///
    /// [`Encoded::len`]: crate::message::record::Encoded::len
    pub fn turn(&self, length: usize) -> Result<Turn<'_>, AppendError> {
        self.turn_of(length, Work::New)
    }

    /// As [`CommitLog::turn`], for what follows from work that was accepted before: it still has room
    /// when new work is refused.
    ///
    /// # Errors
    ///
    /// As [`CommitLog::turn`].
    pub fn turn_for_accepted(&self, length: usize) -> Result<Turn<'_>, AppendError> {
        self.turn_of(length, Work::Accepted)
    }

    fn turn_of(&self, length: usize, work: Work) -> Result<Turn<'_>, AppendError> {
        Turn::begin(self.appender.lock(), self, length, work)
    }

    /// The same log, with other bounds of what may wait for the disk.
    #[must_use]
    pub fn bounded(mut self, bounds: QueuedAppends) -> Self {
        self.appender.get_mut().set_bounds(bounds);
        self
    }

    /// Takes new work from here on, or refuses it.
    pub fn set_new_work(&self, new_work: NewWork) {
        self.appender.lock().set_new_work(new_work);
    }

    /// Whether the disk had no room for the next segment, when it was last asked.
    pub fn is_full(&self) -> bool {
        self.appender.lock().is_full()
    }

    /// What was appended and is not durable yet.
    pub fn waiting(&self) -> QueuedAppends {
        self.appender.lock().waiting()
    }

    /// Writes and syncs what was appended; see [`Flushed`].
    ///
    /// # Errors
    ///
    /// The disk's; the log has failed then, for good.
    pub fn flush(&self, now: Now) -> Result<Flushed, RowError> {
        self.flusher.lock().flush(&self.appender, &self.watermarks, now)
    }

    /// Flushes, to the disk in every mode, and says how far: at least to what was appended when it
    /// was called.
    ///
    /// # Errors
    ///
    /// As [`CommitLog::flush`].
    pub fn flush_to_disk(&self, now: Now) -> Result<Offset, RowError> {
        let mut flusher = self.flusher.lock();
        flusher.flush(&self.appender, &self.watermarks, now)?;
        flusher.sync(&self.appender, &self.watermarks, now)?;
        Ok(self.durable())
    }

    /// The claim of everything decided so far: for an answer that only looked.
    pub fn latest_receipt(&self) -> Receipt {
        self.appender.lock().latest_receipt()
    }

    /// Raised when there is something to flush.
    pub fn flush_signal(&self) -> &Signal {
        &self.flush_signal
    }

    /// The settled bits.
    pub fn settled(&self) -> &Settled {
        &self.settled
    }

    pub fn reader(&self) -> &LogReader {
        &self.reader
    }

    /// Readers may see what is below.
    pub fn visible(&self) -> Offset {
        Offset::new(self.watermarks.visible.load(Ordering::Acquire))
    }

    /// What is below survives a power cut.
    pub fn durable(&self) -> Offset {
        Offset::new(self.watermarks.durable.load(Ordering::Acquire))
    }

    /// Nobody needs what is before: it may be gone.
    pub fn begin(&self) -> Offset {
        Offset::new(self.watermarks.begin.load(Ordering::Acquire))
    }

    /// From here on nothing is appended that needs what is before `at`: a turn asks [`Turn::is_closed`]. Says where
    /// the log ends: what was appended before it may need that still.
    pub fn close(&self, at: Offset) -> Offset {
        let appender = self.appender.lock();
        self.watermarks.closed.store(at.get(), Ordering::Release);
        appender.end()
    }

    /// Whether what stands at `at` is let go, or about to be. Holds on where it is asked in a turn ([`Turn::is_closed`]).
    pub fn is_closed(&self, at: Offset) -> bool {
        let closed = self.watermarks.closed.load(Ordering::Acquire);
        at < self.begin() || at.get() < closed
    }

    /// What was closed is needed still.
    pub fn reopen(&self) {
        let _alone = self.appender.lock();
        self.watermarks.closed.store(0, Ordering::Release);
    }

    /// Nobody needs what is before `begin` any more: its causes count as settled. The files stay.
    pub fn let_go(&self, begin: Offset) {
        self.watermarks.begin.fetch_max(begin.get(), Ordering::AcqRel);
        self.settled.forget_below(begin);
    }

    /// Removes the files that lie before `begin`, which was let go.
    ///
    /// # Errors
    ///
    /// When a file cannot be removed; those before it are gone.
    pub fn release(&self, begin: Offset) -> Result<(), ReleaseError> {
        debug_assert!(begin <= self.begin());
        self.flusher.lock().release(begin)?;
        Ok(self.settled.release(begin)?)
    }

    /// Where the oldest file begins, and up to where there are files.
    pub fn extent(&self) -> (Offset, Offset) {
        self.reader.extent()
    }

    pub fn segment_size(&self) -> u64 {
        self.reader.segment_size()
    }

    /// Where the next group begins, at the least: everything decided so far lies before it.
    pub fn end(&self) -> Offset {
        self.appender.lock().end()
    }
}

#[cfg(test)]
mod tests;
