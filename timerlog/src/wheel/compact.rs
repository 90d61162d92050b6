//! Giving back the far log's room when few old records hold much of it.
//!
//! Files are removed from the old end only, and a far slot can keep its oldest record for a hundred
//! years. So the slot that holds the oldest record is written again at the new end, without what was
//! cancelled or settled; then the floor can rise over the old records.
//!
//! The first record written again leads to none before it, as the first of an empty slot does.
//! Replay takes that as the beginning of the slot, whatever it had seen of it. The records go in as one
//! batch, between two checkpoints, so after a crash the slot is the old one or the new one.

use std::collections::HashSet;

use super::slot::SlotState;
use super::track::Placed;
use super::wheel::TimerWheel;
use crate::error::TimerError;
use crate::log::{Entry, EntryKind, record};

/// What came of an attempt to make the far log shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// Most of the log is in use, or a far slot is being re-filed.
    NotDue,
    /// The far slot that held the oldest record was written again. The room is given back by the
    /// next snapshot, checkpoint and [`TimerWheel::release`].
    Done { far_slot: u64, kept: usize, left_out: usize },
    /// That far slot has more records than the caller allows for.
    TooLong { far_slot: u64 },
}

/// The live entries of a far slot, and one that is not.
struct Sorted {
    kept: Vec<Entry>,
    left_out: usize,
    /// Stands for the slot when nothing is kept.
    relic: Option<Entry>,
}

impl TimerWheel {
    /// Writes the far slot that holds the oldest record again at the end of the far log, if less
    /// than half of the log, beyond two files, is pending. Leaves out what was cancelled and what
    /// `skip` is true for: what is settled, durably so before the next checkpoint is written. Call
    /// until it is [`Compaction::NotDue`] or [`Compaction::TooLong`].
    ///
    /// Takes memory for the records of one far slot, and refuses one of more than `records_max`.
    ///
    /// # Errors
    ///
    /// [`TimerError::NeedsRebuild`] when a record cannot be trusted; the disk's errors. Then the slot
    /// is as it was.
    pub fn compact(
        &mut self,
        records_max: usize,
        skip: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<Compaction, TimerError> {
        let used = self.far.log.length() - self.far.lowest_in_use();
        // A slot takes a record even when nothing in it is pending; so this comes to an end.
        let needed = self.far.ring.pending() + self.far.ring.iter().count() as u64;
        if used <= 2 * needed * record::STEP + 2 * self.config.segment_size {
            return Ok(Compaction::NotDue);
        }
        self.rewrite_oldest(records_max, skip)
    }

    pub(super) fn rewrite_oldest(
        &mut self,
        records_max: usize,
        skip: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<Compaction, TimerError> {
        let oldest = self.far.ring.iter().min_by_key(|(_, state)| state.first);
        let Some((far_slot, state)) = oldest.filter(|_| self.refiling.is_none()) else {
            return Ok(Compaction::NotDue);
        };
        let Some(sorted) = self.sort_out(far_slot, state, records_max, skip)? else {
            return Ok(Compaction::TooLong { far_slot });
        };
        let Sorted { kept, left_out, relic } = sorted;
        let add = |entry: &Entry| Placed { slot: far_slot, kind: EntryKind::Add, entry: *entry };
        let mut batch: Vec<_> = kept.iter().rev().map(add).collect();
        if let Some(entry) = relic.filter(|_| batch.is_empty()) {
            // An empty slot would leave no record, and replay would see the old ones.
            batch.push(Placed { slot: far_slot, kind: EntryKind::Cancel, entry });
        }
        self.touch();
        self.far.file_anew(far_slot, &batch)?;
        Ok(Compaction::Done { far_slot, kept: kept.len(), left_out })
    }

    /// Walks the slot and parts its entries, newest first. `None` when it is too long.
    fn sort_out(
        &self,
        far_slot: u64,
        state: SlotState,
        records_max: usize,
        skip: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<Option<Sorted>, TimerError> {
        let mut sorted = Sorted { kept: Vec::new(), left_out: 0, relic: None };
        let mut cancelled = HashSet::new();
        let chain = self.far.log.reader().chain(far_slot, state.last, None);
        for (count, step) in chain.enumerate() {
            if count >= records_max {
                return Ok(None);
            }
            let record = step?.1;
            let entry = record.entry;
            if record.kind == EntryKind::Cancel {
                cancelled.insert(entry.offset);
                sorted.relic = Some(entry);
            } else if cancelled.contains(&entry.offset) || skip(&entry) {
                sorted.left_out += 1;
                sorted.relic = Some(entry);
            } else {
                sorted.kept.push(entry);
            }
        }
        Ok(Some(sorted))
    }
}
