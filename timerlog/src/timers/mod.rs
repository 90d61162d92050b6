//! The index on its own: a folder in which things are due.
//!
//! This is what the crate offers to whoever has no log of their own to rebuild from. It drives a
//! [`TimerWheel`] from one thread and hands out what is due, in order. Its files are the wheel's, and
//! `checkpoint-a`, `checkpoint-b` and `lock` beside them.

mod open_slot;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use self::open_slot::OpenSlot;
use crate::checkpoint::{self, CheckpointError, Copies, Format};
use crate::disk::{Directory, DiskError, Lock, OsDirectory};
use crate::error::{Damage, DamageKind, TimerError};
use crate::log::Entry;
use crate::wheel::{
    Advance, Compaction, Config, FileError, Filing, Origin, Refile, TimerCheckpoint, TimerWheel,
};

const FORMAT: Format = Format { magic: *b"HoroTimr", version: 1 };
/// How many entries are handed out at once, but for the last slot among them.
const BATCH: usize = 65_536;
/// Far entries that are moved near at once.
const REFILE_BATCH: usize = 16_384;
/// Records of a far slot that may be held in memory to be written again: 3 MiB.
const COMPACT_MAX: usize = 65_536;

/// A folder that remembers what is due when.
///
/// All times are milliseconds since 1970 and are given by the caller: nothing here reads a clock.
///
/// **After a crash**, what was scheduled since the last [`Timers::flush`] is gone, and what was handed
/// out since then is handed out again. After any reopening, a clean one too, entries of the open
/// slot (the second that `now` was in) may be handed out again, though they were before: a slot is
/// settled as a whole. So an entry is handed out at least once; tell repetitions by its offset.
#[derive(Debug)]
pub struct Timers {
    directory: Arc<dyn Directory>,
    wheel: TimerWheel,
    open: OpenSlot,
    generation: u64,
    previous: TimerCheckpoint,
    /// The bytes in the logs at the last snapshot; the next is taken one file later.
    snapshot_at: u64,
    segment_size: u64,
    damaged: Vec<Damage>,
    _lock: Box<dyn Lock>,
}

/// A folder that cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder cannot be used, or another process has it
    /// ([`DiskError::is_locked`](crate::disk::DiskError::is_locked)).
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file of the folder is missing or damaged. There is nothing to rebuild it from.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The folder was written by a newer version of this program.
    #[error("{file} has format version {found}, and this program knows {known}")]
    NewerVersion { file: String, found: u32, known: u32 },
}

impl From<TimerError> for OpenError {
    fn from(error: TimerError) -> Self {
        match error {
            TimerError::Disk(error) => Self::Disk(error),
            TimerError::NeedsRebuild(damage) => Self::Damaged(damage),
        }
    }
}

impl From<CheckpointError> for OpenError {
    fn from(error: CheckpointError) -> Self {
        match error {
            CheckpointError::Disk(error) => Self::Disk(error),
            CheckpointError::NewerVersion { file, found, known } => {
                Self::NewerVersion { file, found, known }
            }
        }
    }
}

impl Timers {
    /// Opens the folder `path` of the operating system, making it when it is missing (the folder
    /// above it must be there). `now` is used only for a new one: what is due before it is due at
    /// once.
    ///
    /// Takes 32 MiB of memory for the slots, and files of 48 MiB as needed.
    ///
    /// # Errors
    ///
    /// When the folder is not accessible, in use, damaged, or of a newer version.
    pub fn open(path: impl Into<PathBuf>, now: u64) -> Result<Self, OpenError> {
        Self::open_in(Arc::new(OsDirectory::open(path)?), Config::default(), now)
    }

    /// Opens `directory`, on any disk and with any measures.
    ///
    /// # Errors
    ///
    /// As [`Timers::open`]; a folder that was made with other measures counts as damaged.
    pub fn open_in(
        directory: Arc<dyn Directory>,
        config: Config,
        now: u64,
    ) -> Result<Self, OpenError> {
        let lock = directory.lock("lock", &format!("process {}", std::process::id()))?;
        let Copies { newest, damaged } = checkpoint::read(&*directory, FORMAT)?;
        let Some(stored) = newest else {
            refuse_leftovers(&*directory, damaged)?;
            let read_time = now / u64::from(config.precision_ms.max(1));
            let origin = Origin { read_time, lineage: now };
            let wheel = TimerWheel::create(Arc::clone(&directory), config, origin)?;
            let mut timers = Self::over(directory, lock, wheel, config.segment_size);
            // Before the logs have any file: so logs without a checkpoint have lost it.
            timers.flush()?;
            return Ok(timers);
        };
        let checkpoint = decode(&*directory, &stored.payload)?;
        let wheel = TimerWheel::open(Arc::clone(&directory), config, &checkpoint)?;
        let mut timers = Self::over(directory, lock, wheel, config.segment_size);
        timers.generation = stored.generation;
        timers.damaged = damaged;
        timers.damaged.extend_from_slice(&timers.wheel.recovery().damaged);
        Ok(timers)
    }

    /// Files that were found damaged when the folder was opened, and could be done without.
    pub fn damaged(&self) -> &[Damage] {
        &self.damaged
    }

    fn over(
        directory: Arc<dyn Directory>,
        lock: Box<dyn Lock>,
        wheel: TimerWheel,
        segment_size: u64,
    ) -> Self {
        let previous = wheel.checkpoint();
        Self {
            directory,
            wheel,
            open: OpenSlot::default(),
            generation: 0,
            previous,
            snapshot_at: 0,
            segment_size,
            damaged: Vec::new(),
            _lock: lock,
        }
    }

    /// Notes that `entry` is due at its deadline; at once, if that has passed. Survives a crash once
    /// [`Timers::flush`] has returned.
    ///
    /// # Errors
    ///
    /// [`FileError::BeyondRange`] for a deadline more than about 136 years ahead.
    pub fn schedule(&mut self, entry: Entry) -> Result<(), FileError> {
        self.wheel.file(&[Filing::add(entry)])
    }

    /// As [`Timers::schedule`] for many entries, at the cost of one write.
    ///
    /// # Errors
    ///
    /// As [`Timers::schedule`], and then none of them is scheduled.
    pub fn schedule_all(&mut self, entries: &[Entry]) -> Result<(), FileError> {
        let filings: Vec<_> = entries.iter().copied().map(Filing::add).collect();
        self.wheel.file(&filings)
    }

    /// Takes back an entry that was scheduled: it will not be handed out any more. It must have the
    /// deadline and offset it was scheduled with. Too late when its deadline has passed: then it is
    /// handed out all the same, or was.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn cancel(&mut self, entry: Entry) -> Result<(), FileError> {
        self.wheel.file(&[Filing::cancel(entry)])
    }

    /// Hands out what is due at `now` and was not handed out since the folder was opened, by
    /// deadline and, where those are equal, by offset. Never an entry before its deadline.
    ///
    /// There may be more: call until it gives nothing. A clock that goes back only delays.
    ///
    /// # Errors
    ///
    /// [`TimerError::NeedsRebuild`] when a record cannot be trusted.
    pub fn due(&mut self, now: u64) -> Result<Vec<Entry>, TimerError> {
        let open_now = self.wheel.slot_of(now);
        let mut due = Vec::new();
        while due.len() < BATCH {
            while self.wheel.refile(REFILE_BATCH, &mut |_| false)? != Refile::NotDue {}
            let slot = self.wheel.read_time();
            self.open.join(slot, self.wheel.slot(slot), &self.wheel.reader())?;
            self.open.take_due(now, &mut due);
            if slot >= open_now {
                break;
            }
            let advance = self.wheel.advance(slot, self.open.walked());
            assert_eq!(advance, Advance::Moved, "nobody else changes the wheel");
            self.open = OpenSlot::default();
            self.wheel.skip_empty(open_now);
        }
        due.sort_unstable();
        Ok(due)
    }

    /// Returns once everything scheduled, cancelled and handed out before the call is on the disk.
    ///
    /// # Errors
    ///
    /// When the disk fails. A failed sync is not tried again: everything after it fails too, until
    /// the folder is opened again.
    pub fn flush(&mut self) -> Result<(), TimerError> {
        if self.wheel.log_bytes() >= self.snapshot_at.saturating_add(self.segment_size) {
            while let Compaction::Done { .. } = self.wheel.compact(COMPACT_MAX, &mut |_| false)? {}
            self.wheel.snapshot()?;
            self.snapshot_at = self.wheel.log_bytes();
        }
        self.wheel.flush()?;
        let checkpoint = self.wheel.checkpoint();
        checkpoint::write(&*self.directory, FORMAT, self.generation + 1, &checkpoint.encode())?;
        self.generation += 1;
        // The older of the two that are kept: falling back to it must find all its files.
        self.wheel.release(&self.previous)?;
        self.snapshot_at = self.snapshot_at.min(self.wheel.log_bytes());
        self.previous = checkpoint;
        Ok(())
    }

    /// Flushes, leaves a snapshot so that the next opening is quick, and lets the folder go.
    ///
    /// # Errors
    ///
    /// As [`Timers::flush`].
    pub fn close(mut self) -> Result<(), TimerError> {
        self.wheel.snapshot()?;
        self.flush()
    }
}

fn decode(directory: &dyn Directory, payload: &[u8]) -> Result<TimerCheckpoint, Damage> {
    let length = DamageKind::WrongLength {
        expected: TimerCheckpoint::SIZE as u64,
        found: payload.len() as u64,
    };
    let bytes = payload.try_into().map_err(|_| length);
    let path = || format!("{}/checkpoint", directory.path());
    bytes.and_then(TimerCheckpoint::decode).map_err(|kind| Damage::of(path(), kind))
}

/// Fails when there is no checkpoint though there must be one. To go on with an empty wheel would
/// remove what is left.
fn refuse_leftovers(directory: &dyn Directory, damaged: Vec<Damage>) -> Result<(), OpenError> {
    if let Some(damage) = damaged.into_iter().next() {
        return Err(damage.into());
    }
    for name in directory.subdirectories()? {
        if !directory.subdirectory(&name)?.list()?.is_empty() {
            let path = format!("{}/checkpoint-a", directory.path());
            return Err(Damage::of(path, DamageKind::Missing).into());
        }
    }
    Ok(())
}
