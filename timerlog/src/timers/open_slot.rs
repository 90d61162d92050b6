//! The slot that is being handed out, millisecond by millisecond.

use std::collections::BTreeSet;

use crate::error::TimerError;
use crate::log::{Entry, EntryKind, Record};
use crate::position::Position;
use crate::wheel::{SlotState, WheelReader};

/// What was walked of the open slot and is not due yet.
#[derive(Debug, Default)]
pub(super) struct OpenSlot {
    walked: Option<Position>,
    /// In the order in which it is due.
    waiting: BTreeSet<Entry>,
}

impl OpenSlot {
    /// The newest record that was walked.
    pub(super) fn walked(&self) -> Option<Position> {
        self.walked
    }

    /// Walks what was filed in the slot since the last time.
    pub(super) fn join(
        &mut self,
        slot: u64,
        state: Option<SlotState>,
        reader: &WheelReader,
    ) -> Result<(), TimerError> {
        let Some(SlotState { last, .. }) = state else { return Ok(()) };
        let mut cancelled = Vec::new();
        let mut added = Vec::new();
        reader.walk(last, self.walked, slot, |record: &Record| match record.kind {
            EntryKind::Add | EntryKind::Note => added.push(record.entry),
            EntryKind::Cancel => cancelled.push(record.entry),
        })?;
        self.waiting.extend(added);
        for entry in cancelled {
            self.waiting.remove(&entry);
        }
        self.walked = Some(last);
        Ok(())
    }

    /// Moves what is due at `now` to `due`.
    pub(super) fn take_due(&mut self, now: u64, due: &mut Vec<Entry>) {
        while let Some(entry) = self.waiting.pop_first() {
            if entry.deadline > now {
                self.waiting.insert(entry);
                break;
            }
            due.push(entry);
        }
    }
}
