//! A look-up: the offsets of one key from all that holds them, newest first.
//!
//! ```text
//!   memtables ──────────────┐
//!   run, highest offset 900 ─┼─> the largest below the last one given
//!   run, highest offset 500 ┘    (not opened before something below 500 is wanted)
//! ```
//!
//! It owns what it reads: memtables that are frozen and runs that are merged or removed meanwhile live
//! on until it is dropped. It gives what was inserted before it began, and may give what came after.

use std::sync::Arc;

use super::entry::KeyHash;
use super::error::IndexError;
use super::memtable::Memtable;
use super::run::{Run, RunCursor};
use crate::message::offset::Offset;

/// The offsets of a key, newest first, each once. Ends after an error.
#[derive(Debug)]
#[must_use = "nothing is read before it is asked for"]
pub struct NewestFirst {
    key: KeyHash,
    /// What was given last, or the caller's bound.
    below: Option<Offset>,
    floor: Offset,
    memtables: Vec<Arc<Memtable>>,
    /// The highest offsets first.
    runs: Vec<RunCursor>,
    is_over: bool,
}

impl NewestFirst {
    pub(super) fn new(
        key: KeyHash,
        below: Option<Offset>,
        floor: Offset,
        memtables: Vec<Arc<Memtable>>,
        runs: &[Arc<Run>],
    ) -> Self {
        let may_have = |run: &&Arc<Run>| {
            run.highest() >= floor && below.is_none_or(|below| run.lowest() < below)
        };
        let mut runs: Vec<_> = runs.iter().filter(may_have).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.highest()));
        let runs = runs.into_iter().map(|run| RunCursor::new(Arc::clone(run), key)).collect();
        Self { key, below, floor, memtables, runs, is_over: false }
    }

    fn newest(&mut self) -> Result<Option<Offset>, IndexError> {
        let in_memory =
            self.memtables.iter().filter_map(|table| table.newest(self.key, self.below));
        let mut newest = in_memory.max();
        for run in &mut self.runs {
            let ceiling = run.ceiling();
            if ceiling > newest && ceiling >= Some(self.floor) {
                newest = newest.max(run.newest(self.below)?);
            }
        }
        Ok(newest.filter(|&offset| offset >= self.floor))
    }
}

impl Iterator for NewestFirst {
    type Item = Result<Offset, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let newest = self.newest();
        match newest {
            Ok(Some(offset)) => self.below = Some(offset),
            Ok(None) | Err(_) => self.is_over = true,
        }
        newest.transpose()
    }
}

impl std::iter::FusedIterator for NewestFirst {}
