//! Walking a slot, newest record first.

use std::iter::FusedIterator;
use std::sync::Arc;

use super::error::{ChainError, damage};
use super::record::{self, Record};
use crate::error::DamageKind;
use crate::position::Position;
use crate::segment::RowReader;
use crate::sync::{AtomicU64, Ordering};

/// How much is copied at once where records of a slot lie close together.
const BLOCK_SIZE: u64 = 340 * record::STEP;

/// Reads the chains of one TimerLog, while its writer appends. Clones read the same log.
#[derive(Clone, Debug)]
pub struct ChainReader {
    pub(super) row: RowReader,
    pub(super) floor: Arc<AtomicU64>,
}

impl ChainReader {
    /// The records of `slot` from `last` back to the one after `until`; with `None`, to the first.
    pub fn chain(&self, slot: u64, last: Position, until: Option<Position>) -> Chain {
        Chain {
            floor: self.floor.load(Ordering::Acquire),
            reader: self.row.clone(),
            slot,
            until,
            next: Some(last).filter(|last| Some(*last) != until),
            block: Vec::new(),
            block_start: 0,
            close: false,
        }
    }
}

/// A walk along one chain, from newest to oldest.
///
/// It ends (`None`) when all records were seen. An error is the last item: what came before it is
/// sound, but it is not the whole chain.
#[derive(Debug)]
pub struct Chain {
    reader: RowReader,
    slot: u64,
    until: Option<Position>,
    floor: u64,
    next: Option<Position>,
    /// A copy of the log from `block_start` on, in which the next record may lie.
    block: Vec<u8>,
    block_start: u64,
    /// Whether the last step was so short that a block is likely to hold the next records too.
    close: bool,
}

impl Chain {
    /// Where the walk goes on: the position of the record that comes next.
    pub fn next_position(&self) -> Option<Position> {
        self.next
    }

    /// Reads the record at `position` and finds the step to the one before it.
    fn step(&mut self, position: Position) -> Result<Record, ChainError> {
        let record = self.load(position)?;
        if record.slot != self.slot {
            let kind = DamageKind::WrongSlot { expected: self.slot, found: record.slot };
            return Err(damage(&self.reader, position.get(), kind).into());
        }
        self.next = self.before(position, &record)?;
        if let Some(next) = self.next {
            self.close = position.get() - next.get() < BLOCK_SIZE;
        }
        Ok(record)
    }

    /// The record before this one in the chain, if the walk goes that far.
    fn before(&self, position: Position, record: &Record) -> Result<Option<Position>, ChainError> {
        let previous = record.previous.filter(|previous| previous.get() >= self.floor);
        match self.until {
            None => Ok(previous),
            Some(_) if previous == self.until => Ok(None),
            Some(until) if previous > Some(until) => Ok(previous),
            Some(until) => {
                let kind = DamageKind::ShortChain { until: until.get() };
                Err(damage(&self.reader, position.get(), kind).into())
            }
        }
    }

    fn load(&mut self, position: Position) -> Result<Record, ChainError> {
        let within = position.get().checked_sub(self.block_start);
        let held = within.is_some_and(|at| at + record::STEP <= self.block.len() as u64);
        if !held {
            self.fill(position.get())?;
        }
        let at = usize::try_from(position.get() - self.block_start).expect("within the block");
        Record::decode(&self.block[at..at + record::SIZE], position)
            .map_err(|kind| damage(&self.reader, position.get(), kind).into())
    }

    /// Copies the record at `position`, and what lies before it in the same file if its
    /// neighbours are likely to be wanted.
    fn fill(&mut self, position: u64) -> Result<(), ChainError> {
        let ahead = if self.close { BLOCK_SIZE - record::STEP } else { 0 };
        let within_file = position % self.reader.segment_size();
        self.block_start = position - ahead.min(within_file);
        let length = position - self.block_start + record::STEP;
        self.block.resize(usize::try_from(length).expect("a block is small"), 0);
        self.reader.read(self.block_start, &mut self.block).map_err(|error| {
            self.block.clear();
            ChainError::of(error, &self.reader)
        })
    }
}

impl Iterator for Chain {
    type Item = Result<(Position, Record), ChainError>;

    fn next(&mut self) -> Option<Self::Item> {
        let position = self.next.take()?;
        Some(self.step(position).map(|record| (position, record)))
    }
}

impl FusedIterator for Chain {}
