//! The flush: the only writer of the log's files.

use std::time::Duration;

use super::append::{Appender, Group};
use super::group::{GroupHeader, GroupKind};
use super::{Durability, FlushMode, Secrets, Watermarks};
use crate::clock::Now;
use crate::config::QueuedAppends;
use crate::message::offset::Offset;
use crate::sync::{Mutex, Ordering};
use timerlog::disk::Operation;
use timerlog::planted::{self, Fault};
use timerlog::segment::{Row, RowError};

/// What one flush did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// Nothing was waiting. In `async` mode, what is written may wait for its sync still.
    Nothing { sync_due_in_ms: Option<u64> },
    /// So many groups, records and bytes were written.
    Groups { groups: usize, records: u64, bytes: u64 },
}

#[derive(Debug)]
pub(super) struct Flusher {
    row: Row,
    secrets: Secrets,
    mode: FlushMode,
    incarnation: u64,
    next_number: u64,
    previous_hash: u128,
    /// Since when there is something written and not synced.
    unsynced_since: Option<Duration>,
    failed: Option<RowError>,
}

/// Where the chain of groups goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChainEnd {
    pub(super) next_number: u64,
    pub(super) previous_hash: u128,
    pub(super) incarnation: u64,
}

impl Flusher {
    pub(super) fn new(row: Row, secrets: Secrets, mode: FlushMode, chain: ChainEnd) -> Self {
        Self {
            row,
            secrets,
            mode,
            incarnation: chain.incarnation,
            next_number: chain.next_number,
            previous_hash: chain.previous_hash,
            unsynced_since: None,
            failed: None,
        }
    }

    /// Removes the files that lie before `begin`.
    pub(super) fn release(&mut self, begin: Offset) -> Result<(), RowError> {
        self.row.release(begin.get())
    }

    pub(super) fn flush(
        &mut self,
        appender: &Mutex<Appender>,
        watermarks: &Watermarks,
        now: Now,
    ) -> Result<Flushed, RowError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let taken = appender.lock().take_unless_failed();
        let mut groups = taken.inspect_err(|error| self.failed = Some(error.clone()))?;
        if groups.is_empty() {
            return self.flush_nothing(appender, watermarks, now);
        }
        let end = groups.back().map_or(0, |group| group.end().get());
        if planted::is(Fault::ToldBeforeFlush) {
            self.publish(watermarks, end, now);
        }
        let written = self.write_all(groups.make_contiguous(), watermarks, now);
        let outcome = written.and_then(|()| match self.mode {
            FlushMode::Sync => self.row.flush(),
            FlushMode::Async { .. } => Ok(()),
        });
        if let Err(error) = outcome {
            groups.iter().for_each(|group| group.completion.finish(Durability::Failed));
            return Err(self.fail(appender, error));
        }
        self.publish(watermarks, end, now);
        let records = groups.iter().map(|group| u64::from(group.count)).sum();
        let bytes = groups.iter().map(|group| group.bytes.len() as u64).sum();
        let count = groups.len();
        let done = QueuedAppends { records, bytes };
        let buffers = groups.iter_mut().map(|group| std::mem::take(&mut group.bytes));
        // First the room, then the word: whoever is told finds the room given back.
        appender.lock().give_back(done, buffers);
        for group in &groups {
            group.completion.finish(Durability::Durable);
        }
        self.sync_if_due(appender, watermarks, now)?;
        self.prepare(appender, end)?;
        Ok(Flushed::Groups { groups: count, records, bytes })
    }

    /// Syncs what `async` mode has written.
    pub(super) fn sync(
        &mut self,
        appender: &Mutex<Appender>,
        watermarks: &Watermarks,
        _now: Now,
    ) -> Result<(), RowError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.unsynced_since.take().is_some() {
            if let Err(error) = self.row.flush() {
                return Err(self.fail(appender, error));
            }
            watermarks.durable.store(self.row.length(), Ordering::Release);
        }
        Ok(())
    }

    fn flush_nothing(
        &mut self,
        appender: &Mutex<Appender>,
        watermarks: &Watermarks,
        now: Now,
    ) -> Result<Flushed, RowError> {
        let sync_due_in_ms = self.sync_if_due(appender, watermarks, now)?;
        let end = self.row.length();
        self.prepare(appender, end)?;
        Ok(Flushed::Nothing { sync_due_in_ms })
    }

    /// In `async` mode, syncs once the oldest write has waited for the interval; says how long it may
    /// wait still.
    fn sync_if_due(
        &mut self,
        appender: &Mutex<Appender>,
        watermarks: &Watermarks,
        now: Now,
    ) -> Result<Option<u64>, RowError> {
        let (Some(since), FlushMode::Async { interval_ms }) = (self.unsynced_since, self.mode)
        else {
            return Ok(None);
        };
        let waited = now.monotonic.saturating_sub(since).as_millis();
        match u128::from(interval_ms).checked_sub(waited) {
            Some(left) if left > 0 => Ok(u64::try_from(left).ok()),
            _ => self.sync(appender, watermarks, now).map(|()| None),
        }
    }

    fn publish(&mut self, watermarks: &Watermarks, end: u64, now: Now) {
        if self.mode == FlushMode::Sync {
            watermarks.durable.store(end, Ordering::Release);
        } else {
            self.unsynced_since.get_or_insert(now.monotonic);
        }
        watermarks.visible.store(end, Ordering::Release);
    }

    fn write_all(
        &mut self,
        groups: &mut [Group],
        watermarks: &Watermarks,
        now: Now,
    ) -> Result<(), RowError> {
        for group in groups {
            assert_eq!(group.base.get(), self.row.length(), "groups follow each other");
            self.finish(group, watermarks, now);
            self.row.append(&group.bytes)?;
            if group.kind == GroupKind::EndOfSegment {
                self.row.skip_to_next_segment();
            }
        }
        Ok(())
    }

    /// Fills in the group's header.
    fn finish(&mut self, group: &mut Group, watermarks: &Watermarks, now: Now) {
        let header = GroupHeader {
            offset: group.base,
            number: self.next_number,
            incarnation: self.incarnation,
            durable_upto: Offset::new(watermarks.durable.load(Ordering::Acquire)),
            previous_hash: self.previous_hash,
            length: u32::try_from(group.length).expect("a segment is smaller than 4 GiB"),
            count: group.count,
            closed_at: now.wall,
            kind: group.kind,
            records_hash: group.hash.finish(),
        };
        let bytes = header.encode(self.secrets.group);
        group.bytes[..bytes.len()].copy_from_slice(&bytes);
        self.next_number += 1;
        self.previous_hash = header.hash(self.secrets.group);
    }

    /// Keeps the segment after the current one ready before it is needed.
    fn prepare(&mut self, appender: &Mutex<Appender>, end: u64) -> Result<(), RowError> {
        let allocated = self.row.allocated();
        match prepare_next(&mut self.row, end) {
            Ok(Room::Enough) if self.row.allocated() == allocated => Ok(()),
            Ok(Room::Enough) => {
                appender.lock().set_prepared(self.row.allocated());
                Ok(())
            }
            Ok(Room::Full) => {
                appender.lock().set_full();
                Ok(())
            }
            Err(error) => Err(self.fail(appender, error)),
        }
    }

    fn fail(&mut self, appender: &Mutex<Appender>, error: RowError) -> RowError {
        self.failed = Some(error.clone());
        appender.lock().fail(error.clone());
        error
    }
}

/// Whether the disk has room for the segments to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Enough,
    Full,
}

/// Makes the segment that holds `end`, and when that is half used, the one after it.
///
/// A disk is full when it cannot create. One that has no room when it syncs has failed: nobody knows what
/// it has kept.
pub(super) fn prepare_next(row: &mut Row, end: u64) -> Result<Room, RowError> {
    let half_used = end % row.segment_size() > row.segment_size() / 2;
    let wanted = if half_used { end + row.segment_size() } else { end };
    match row.prepare(wanted) {
        Ok(()) => Ok(Room::Enough),
        Err(RowError::Disk(error)) if error.is_full() && error.operation == Operation::Create => {
            Ok(Room::Full)
        }
        Err(error) => Err(error),
    }
}
