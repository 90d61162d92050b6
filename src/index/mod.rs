//! From the hash of a key to the places in the CommitLog that have it: many offsets a key, newest first.
//!
//! ```text
//!   insert ─> memtable ── full ──> frozen tables ── step ──> runs ── step ──> larger runs
//!                │                      │                      │
//!                └──────────── newest_first(key) ──────────────┘      offset < floor: forgotten
//!
//!   index/00000000000000000007     one run: header, pages of entries, fence, Bloom filter
//! ```
//!
//! It serves message keys, moved ids, timer keys and idempotency keys, and knows none of them: the caller
//! makes the hash and verifies each offset by reading the record. Two keys of one hash cost a read.
//!
//! What it promises:
//!
//! - [`Index::insert`] is in memory, never waits for the disk and never fails: it is called in the
//!   appender's turn and by the fold of a start. A look-up that begins after it finds it.
//! - What a key has is given newest first, each offset once, however often it was inserted.
//! - The newest offset costs one page, a hot key one more for each 255 offsets. A miss reads a page only
//!   where a Bloom filter errs, which is once in 900 runs asked: with twenty runs one miss in 45 reads
//!   a page, and one in half a million more than two.
//! - In memory are the entries not yet in a run, in at most six memtables of 64 Ki, some hundred bytes
//!   for each run, and a mebibyte for each merge under way, of which there is at most one a tier.
//!   Filter and fence are read through the page cache. On the disk an entry takes 18.2 bytes, and
//!   twice that for the time of a merge and until the checkpoint after it.
//! - A damaged page is an error of the look-up that meets it, never a miss; other keys have their
//!   answers, and the next start builds the index anew.
//!
//! Ground rules:
//!
//! - The CommitLog is the truth. A file is trusted only when a checkpoint lists it, and what a
//!   checkpoint lists holds only what was durable in the log: so a start removes all other files and
//!   inserts again what the log has from the checkpoint on. Anything missing, damaged or older is
//!   [`IndexError::Damaged`]: then begin with [`Index::empty`] and the whole log.
//! - A file is written once, by whoever holds the *worker* lock ([`Index::step`], [`Index::capture`]),
//!   and never changed. It is removed when nothing uses it and no checkpoint that a start may go by
//!   lists it.
//! - Threads: all calls from any. The lock of the tables is held for moments, never over a call of the
//!   disk. Order: worker, tables, memtable.

mod entry;
mod error;
mod files;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod lookup;
mod manifest;
mod memtable;
mod merge;
mod run;
mod stage;
mod work;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use timerlog::disk::{Directory, DiskError};

use self::entry::Entry;
pub use self::entry::KeyHash;
pub use self::error::{Damage, IndexError};
pub use self::lookup::NewestFirst;
use self::manifest::Manifest;
use self::memtable::Memtable;
use self::run::{Run, file_name};
pub use self::stage::IndexStage;
use self::work::Worker;
use crate::message::offset::Offset;
use crate::stage::Signal;
use crate::sync::{AtomicU64, Mutex, Ordering, RwLock};

/// Entries of a memtable that is full: about 2 MiB.
pub const MEMTABLE_ENTRIES: usize = 64 << 10;

/// Frozen tables that may wait to be written before producers are refused.
pub const FROZEN_TABLES_MAX: usize = 4;

/// Runs at which frozen tables wait for the merges.
pub const RUNS_MAX: usize = 64;

/// Entries of the largest run in tier 0.
pub const TIER_0_ENTRIES: u64 = 16 << 10;

/// Entries that a step takes a merge further: some ten milliseconds.
pub const MERGE_STEP_ENTRIES: usize = 64 << 10;

/// The bounds: by default those above, smaller where tests want to meet them often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub memtable_entries: usize,
    pub frozen_tables: usize,
    pub runs: usize,
    pub tier_0_entries: u64,
    pub merge_step_entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memtable_entries: MEMTABLE_ENTRIES,
            frozen_tables: FROZEN_TABLES_MAX,
            runs: RUNS_MAX,
            tier_0_entries: TIER_0_ENTRIES,
            merge_step_entries: MERGE_STEP_ENTRIES,
        }
    }
}

/// The index of one data directory.
#[derive(Debug)]
pub struct Index {
    directory: Arc<dyn Directory>,
    limits: Limits,
    tables: RwLock<Tables>,
    worker: Mutex<Worker>,
    page_reads: Arc<AtomicU64>,
    signal: Signal,
}

/// All that look-ups read.
#[derive(Debug, Default)]
struct Tables {
    active: Arc<Memtable>,
    /// Oldest first.
    frozen: VecDeque<Arc<Memtable>>,
    runs: Vec<Arc<Run>>,
    /// What is below is forgotten.
    floor: Offset,
}

impl Tables {
    fn freeze(&mut self) {
        self.frozen.push_back(std::mem::take(&mut self.active));
    }
}

/// How large the index is, and what its look-ups cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub memtable_entries: usize,
    pub frozen_tables: usize,
    pub runs: usize,
    /// Entries of all runs, doubles and forgotten ones included.
    pub run_entries: u64,
    /// Runs of which a page could not be read: the next start builds the index anew.
    pub condemned_runs: usize,
    /// Pages that look-ups have read since the start.
    pub page_reads: u64,
}

impl Index {
    /// Opens what the last checkpoint lists, and removes all else in `directory`. `manifest` is what
    /// [`Index::capture`] answered for it; with none, the index is empty. Then insert what the log has
    /// from that checkpoint on; what is there already does no harm.
    ///
    /// Reads the filters, about an eighth of the files, and no entries.
    ///
    /// # Errors
    ///
    /// [`IndexError::Damaged`] when a listed run is not there whole: then begin with [`Index::empty`] and
    /// insert what the whole log has.
    pub fn open(
        directory: Arc<dyn Directory>,
        manifest: Option<&[u8]>,
    ) -> Result<Self, IndexError> {
        Self::open_within(directory, manifest, Limits::default())
    }

    /// Begins with nothing, removing what is in `directory`.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn empty(directory: Arc<dyn Directory>) -> Result<Self, IndexError> {
        Self::open(directory, None)
    }

    /// As [`Index::open`], within other bounds.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn open_within(
        directory: Arc<dyn Directory>,
        manifest: Option<&[u8]>,
        limits: Limits,
    ) -> Result<Self, IndexError> {
        let manifest = match manifest {
            None => Manifest::default(),
            Some(bytes) => Manifest::decode(bytes).map_err(|damage| {
                IndexError::damaged(format!("the manifest of {}", directory.path()), damage)
            })?,
        };
        let page_reads = Arc::default();
        let mut runs = Vec::with_capacity(manifest.runs.len());
        for &listed in &manifest.runs {
            let run = Run::open(&*directory, listed, Arc::clone(&page_reads));
            runs.push(Arc::new(run.map_err(IndexError::or_unreadable)?));
        }
        let listed: BTreeSet<_> = manifest.runs.iter().map(|run| run.number).collect();
        remove_all_but(&*directory, &listed)?;
        Ok(Self {
            directory,
            limits,
            tables: RwLock::new(Tables { runs, floor: manifest.floor, ..Tables::default() }),
            worker: Mutex::new(Worker::opened(listed)),
            page_reads,
            signal: Signal::default(),
        })
    }

    /// Remembers that the record at `offset` has `key`. In memory; the same may be inserted again.
    ///
    /// # Panics
    ///
    /// When `offset` is not a multiple of 32, or 8 PiB or more.
    pub fn insert(&self, key: KeyHash, offset: Offset) {
        let entry = Entry::new(key, offset);
        let entries = self.tables.read().active.insert(entry);
        if entries >= self.limits.memtable_entries {
            self.freeze_if_full();
        }
    }

    /// Whether inserts may go on. When not, the disk does not keep up: answer *overloaded*, and insert
    /// only what is on its way already. A start that inserts much calls [`Index::step`] then.
    pub fn has_room(&self) -> bool {
        self.tables.read().frozen.len() < self.limits.frozen_tables
    }

    /// The offsets of `key`, below `below` if that is given, newest first. Lazy: pages are read as
    /// offsets are taken. Never waits for the work behind it.
    pub fn newest_first(&self, key: KeyHash, below: Option<Offset>) -> NewestFirst {
        let tables = self.tables.read();
        let memtables = tables.frozen.iter().chain([&tables.active]).cloned().collect();
        NewestFirst::new(key, below, tables.floor, memtables, &tables.runs)
    }

    /// The newest offset of `key`.
    ///
    /// # Errors
    ///
    /// When a page cannot be read or is damaged.
    pub fn newest(&self, key: KeyHash) -> Result<Option<Offset>, IndexError> {
        self.newest_first(key, None).next().transpose()
    }

    /// The log begins at `floor` now: look-ups give nothing below it any more, and steps give the room
    /// of runs back that are half forgotten. A floor never goes down.
    pub fn forget_below(&self, floor: Offset) {
        let mut tables = self.tables.write();
        tables.floor = tables.floor.max(floor);
        drop(tables);
        self.signal.raise();
    }

    /// Raised when there is work for [`Index::step`].
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    pub fn figures(&self) -> Figures {
        let tables = self.tables.read();
        let frozen = tables.frozen.iter().map(|table| table.len());
        Figures {
            memtable_entries: tables.active.len() + frozen.sum::<usize>(),
            frozen_tables: tables.frozen.len(),
            runs: tables.runs.len(),
            run_entries: tables.runs.iter().map(|run| run.entries()).sum(),
            condemned_runs: tables.runs.iter().filter(|run| run.is_condemned()).count(),
            page_reads: self.page_reads.load(Ordering::Relaxed),
        }
    }

    fn freeze_if_full(&self) {
        let mut tables = self.tables.write();
        let is_full = tables.active.len() >= self.limits.memtable_entries;
        if is_full && tables.frozen.len() < self.limits.frozen_tables {
            tables.freeze();
        }
        drop(tables);
        self.signal.raise();
    }
}

/// Reads the runs that `manifest` lists, page by page, and changes nothing: how many pages are whole.
///
/// # Errors
///
/// [`IndexError::Damaged`] for the first that is not.
pub fn check_files(directory: &dyn Directory, manifest: &[u8]) -> Result<u64, IndexError> {
    let manifest = Manifest::decode(manifest).map_err(|damage| {
        IndexError::damaged(format!("the manifest of {}", directory.path()), damage)
    })?;
    let mut pages = 0;
    for &listed in &manifest.runs {
        let run = Run::open(directory, listed, Arc::default());
        pages += run.and_then(|run| run.check_pages()).map_err(IndexError::or_unreadable)?;
    }
    Ok(pages)
}

fn remove_all_but(directory: &dyn Directory, listed: &BTreeSet<u64>) -> Result<(), DiskError> {
    let kept: BTreeSet<_> = listed.iter().map(|&number| file_name(number)).collect();
    for name in directory.list()?.into_iter().filter(|name| !kept.contains(name)) {
        directory.remove(&name)?;
    }
    directory.sync()
}

#[cfg(test)]
mod tests;
