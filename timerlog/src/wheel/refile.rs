//! Moving the entries of a far slot into the near ring, once, when its time comes near.
//!
//! The chain is walked newest first, in steps, so that filing can go on in between. A cancel comes
//! before its add on that way, so the offsets of cancels are kept until their adds come, and adds that
//! find theirs are left behind.
//!
//! **Many cancels.** The kept offsets are bounded. When the bound is reached the pass is split in two
//! by one more bit of a hash of the offset: this pass goes on with one half of the offsets, and another
//! pass over the chain takes the other half later, from the place of the split on. Memory stays
//! bounded; the chain is read once more for each split.
//!
//! **Crashes.** Until the whole slot is done the far boundary stays and the checkpoint is the one from
//! before the beginning, so a crash does it all again, with the near log cut to where it was.

use std::collections::HashSet;

use super::checkpoint::TimerCheckpoint;
use super::track::Placed;
use super::wheel::TimerWheel;
use crate::error::TimerError;
use crate::log::{ChainReader, Entry, EntryKind};
use crate::position::Position;

/// How far the re-filing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refile {
    /// No far slot has come near enough.
    NotDue,
    /// Part of the far slot was dealt with; call again.
    Going(Refiled),
    /// The far slot is done, and the far boundary has moved over it. The next may be due already.
    Done(Refiled),
}

/// What one call has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refiled {
    /// The number of the far slot.
    pub far_slot: u64,
    /// Entries filed near.
    pub moved: usize,
    /// Entries left behind, because they were cancelled or the caller said so.
    pub left_out: usize,
}

/// The far slot that is being re-filed.
#[derive(Debug)]
pub(super) struct Refiling {
    before: TimerCheckpoint,
    far_slot: u64,
    last: Position,
    current: Pass,
    waiting: Vec<Pass>,
}

impl Refiling {
    pub(super) fn before(&self) -> TimerCheckpoint {
        self.before
    }

    /// Splits the current pass until what it keeps is within the bound.
    fn keep_within(&mut self, cancels_max: usize) {
        while self.current.cancelled.len() > cancels_max {
            let other = self.current.split(self.last);
            self.waiting.push(other);
        }
    }
}

/// A walk over the chain for those offsets whose hash ends in `bits`.
#[derive(Debug)]
struct Pass {
    bits: u64,
    bit_count: u32,
    /// Adds newer than this were dealt with before this pass was split off.
    adds_from: Option<Position>,
    next: Option<Position>,
    cancelled: HashSet<u64>,
}

impl Pass {
    fn over_all(last: Position) -> Self {
        Self { bits: 0, bit_count: 0, adds_from: None, next: Some(last), cancelled: HashSet::new() }
    }

    fn takes(&self, offset: u64) -> bool {
        let beyond = u64::MAX.checked_shl(self.bit_count).unwrap_or(0);
        hash(offset) & !beyond == self.bits
    }

    fn moves(&self, position: Position) -> bool {
        self.adds_from.is_none_or(|newest| position <= newest)
    }

    /// Halves the offsets this pass takes, and returns the pass for the other half. That one sees
    /// all cancels again, but no add that was seen until now.
    fn split(&mut self, last: Position) -> Self {
        let seen_until = [self.next, self.adds_from].into_iter().flatten().min();
        let other = Self {
            bits: self.bits | 1 << self.bit_count,
            bit_count: self.bit_count + 1,
            adds_from: seen_until,
            ..Self::over_all(last)
        };
        self.bit_count += 1;
        let kept = std::mem::take(&mut self.cancelled);
        self.cancelled = kept.into_iter().filter(|offset| self.takes(*offset)).collect();
        other
    }
}

/// A hash under which different offsets stay different, so that splitting always ends. Offsets are
/// multiples of something; the product with an odd number spreads them over its high bits.
fn hash(offset: u64) -> u64 {
    offset.wrapping_mul(0x9E37_79B9_7F4A_7C15).reverse_bits()
}

/// What a step of a pass has read.
#[derive(Default)]
struct Step {
    moving: Vec<Entry>,
    left_out: usize,
    next: Option<Position>,
}

impl TimerWheel {
    /// Moves up to `budget` entries of the far slot that is due into the near ring, in the order of
    /// their deadlines within the call. Entries that were cancelled are left behind, and so are
    /// those for which `skip` is true: those that are settled, durably so before the next checkpoint
    /// is written.
    ///
    /// A far slot is due when the read time comes within two far slots of it. Call until
    /// [`Refile::NotDue`]; the read time cannot pass the far boundary meanwhile.
    ///
    /// # Errors
    ///
    /// [`TimerError::NeedsRebuild`] when a record of the far slot cannot be trusted. After an error
    /// of the disk the call may be repeated, unless it was of a sync.
    ///
    /// # Panics
    ///
    /// When `budget` is zero.
    pub fn refile(
        &mut self,
        budget: usize,
        skip: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<Refile, TimerError> {
        assert!(budget > 0, "nothing can be done with nothing");
        let mut refiling = match self.refiling.take() {
            Some(refiling) => refiling,
            None => match self.begin_refiling()? {
                Some(refiling) => refiling,
                None => return Ok(Refile::NotDue),
            },
        };
        let result = self.continue_refiling(&mut refiling, budget, skip);
        if let Ok(Refile::Done(_)) = result {
            self.far.ring.clear(refiling.far_slot);
            self.boundary += self.window.far_width();
        } else {
            self.refiling = Some(refiling);
        }
        result
    }

    /// Passes over far slots that are due and empty, and begins with the first that is not.
    fn begin_refiling(&mut self) -> Result<Option<Refiling>, TimerError> {
        while self.boundary < self.window.boundary_for(self.read_time) {
            let far_slot = self.window.far_slot_of(self.boundary);
            if let Some(state) = self.far_slot(far_slot) {
                // The checkpoint will be the one from now for a while; a snapshot that is taken
                // later would be of no use to it.
                self.take_due_snapshot()?;
                return Ok(Some(Refiling {
                    before: self.present(),
                    far_slot,
                    last: state.last,
                    current: Pass::over_all(state.last),
                    waiting: Vec::new(),
                }));
            }
            self.boundary += self.window.far_width();
            self.touch();
        }
        Ok(None)
    }

    fn continue_refiling(
        &mut self,
        refiling: &mut Refiling,
        budget: usize,
        skip: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<Refile, TimerError> {
        let cancels_max = self.config.cancels_max;
        let limits = Limits { budget, cancels_max };
        let reader = self.far.log.reader();
        let Refiling { far_slot, current, .. } = refiling;
        let mut step = read_step(&reader, *far_slot, current, limits, skip)?;

        step.moving.sort_unstable();
        self.touch();
        let placed: Vec<_> = step.moving.iter().map(|entry| self.placed_near(*entry)).collect();
        if !placed.is_empty() {
            self.near.file(&placed)?;
        }
        let done = Refiled { far_slot: *far_slot, moved: placed.len(), left_out: step.left_out };
        current.next = step.next;
        if refiling.current.next.is_some() {
            refiling.keep_within(cancels_max);
            return Ok(Refile::Going(done));
        }
        match refiling.waiting.pop() {
            Some(pass) => {
                refiling.current = pass;
                Ok(Refile::Going(done))
            }
            None => Ok(Refile::Done(done)),
        }
    }

    fn placed_near(&self, entry: Entry) -> Placed {
        let slot = self.window.slot_of(entry.deadline).max(self.read_time);
        Placed { slot, kind: EntryKind::Add, entry }
    }
}

#[derive(Clone, Copy)]
struct Limits {
    budget: usize,
    cancels_max: usize,
}

/// Reads on in the chain of `far_slot`, until the budget is spent or the pass has to be split. Only
/// the cancels are noted in `pass`, which to read again does no harm.
fn read_step(
    reader: &ChainReader,
    far_slot: u64,
    pass: &mut Pass,
    limits: Limits,
    skip: &mut dyn FnMut(&Entry) -> bool,
) -> Result<Step, TimerError> {
    let mut step = Step { next: pass.next, ..Step::default() };
    let Some(next) = pass.next else { return Ok(step) };
    let mut chain = reader.chain(far_slot, next, None);
    for _ in 0..limits.budget {
        let Some(record) = chain.next() else { break };
        let (position, record) = record?;
        let entry = record.entry;
        step.next = chain.next_position();
        if !pass.takes(entry.offset) {
            continue;
        }
        match record.kind {
            EntryKind::Cancel => {
                pass.cancelled.insert(entry.offset);
                if pass.cancelled.len() > limits.cancels_max {
                    break;
                }
            }
            // No note is filed far.
            EntryKind::Note => {}
            EntryKind::Add if !pass.moves(position) => {}
            EntryKind::Add if pass.cancelled.contains(&entry.offset) || skip(&entry) => {
                step.left_out += 1;
            }
            EntryKind::Add => step.moving.push(entry),
        }
    }
    Ok(step)
}
