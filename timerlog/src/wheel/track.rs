//! A ring over its own TimerLog: the near one and the far one are each a track.

use std::collections::HashMap;
use std::ops::Range;

use super::ring::Ring;
use super::slot::SlotState;
use crate::error::{DamageKind, TimerError};
use crate::log::{Entry, EntryKind, Record, TimerLog};
use crate::position::Position;

#[derive(Debug)]
pub(super) struct Track {
    pub(super) log: TimerLog,
    pub(super) ring: Ring,
}

/// One entry on its way into a slot of a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) slot: u64,
    pub(super) kind: EntryKind,
    pub(super) entry: Entry,
}

impl Track {
    /// Appends a record for each of `batch` and then lets the slots lead to them. After an error
    /// neither has happened.
    pub(super) fn file(&mut self, batch: &[Placed]) -> Result<(), TimerError> {
        self.append(batch, |ring, slot| ring.get(slot))
    }

    /// The same for a batch of one slot, which then has these entries and no others.
    pub(super) fn file_anew(&mut self, slot: u64, batch: &[Placed]) -> Result<(), TimerError> {
        assert!(batch.iter().all(|placed| placed.slot == slot), "all are of slot {slot}");
        self.append(batch, |_, _| None)
    }

    /// Appends the records, each after the last of its slot in the batch, or after the one that
    /// `before` gives, and then changes the slots.
    fn append(
        &mut self,
        batch: &[Placed],
        before: impl Fn(&Ring, u64) -> Option<SlotState>,
    ) -> Result<(), TimerError> {
        let mut places = self.log.places();
        let mut touched: HashMap<u64, SlotState> = HashMap::new();
        let mut records = Vec::with_capacity(batch.len());
        for placed in batch {
            let slot = placed.slot;
            let position = places.take();
            let before = touched.get(&slot).copied().or_else(|| before(&self.ring, slot));
            let previous = before.map(|state| state.last);
            let record = Record { kind: placed.kind, slot, previous, entry: placed.entry };
            records.push((position, record));
            touched.insert(slot, SlotState::after(before, position, placed.kind));
        }
        self.log.append(&records)?;
        for (slot, state) in touched {
            self.ring.set(slot, state);
        }
        Ok(())
    }

    /// Brings the ring up to the end of the log by the records from `from` on, and returns how many
    /// of them there were. Slots before `window` are settled and stay empty.
    pub(super) fn replay(&mut self, from: u64, window: &Range<u64>) -> Result<u64, TimerError> {
        let Self { log, ring } = self;
        let floor = log.floor();
        let mut count = 0;
        log.replay(from.max(floor), |position, record| {
            count += 1;
            if record.slot < window.start {
                Ok(())
            } else {
                put_back(ring, window, floor, position, record)
            }
        })?;
        Ok(count)
    }

    /// The position below which no slot leads any more.
    pub(super) fn lowest_in_use(&self) -> u64 {
        self.ring.oldest().map_or(self.log.length(), Position::get)
    }
}

/// Files `record`, found in the log, in `ring` as it was filed when it was appended.
fn put_back(
    ring: &mut Ring,
    window: &Range<u64>,
    floor: u64,
    position: Position,
    record: &Record,
) -> Result<(), DamageKind> {
    if !window.contains(&record.slot) || !ring.has_place_for(record.slot) {
        return Err(DamageKind::OutsideWindow { slot: record.slot });
    }
    // Records below the floor are not read again: a chain that begins there begins here.
    let previous = record.previous.filter(|previous| previous.get() >= floor);
    let before = match previous {
        // The slot begins here. If it is not empty now, it was emptied since and opened anew by a
        // step back, or written again.
        None => None,
        Some(previous) => {
            let state = ring.get(record.slot).filter(|state| state.last == previous);
            Some(state.ok_or(DamageKind::BrokenChain { previous: previous.get() })?)
        }
    };
    ring.set(record.slot, SlotState::after(before, position, record.kind));
    Ok(())
}
