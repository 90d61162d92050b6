//! Merges runs into one, a bounded number of entries a step.
//!
//! ```text
//!   tier 0: up to 16 Ki entries   ▯▯▯▯ ─┐
//!   tier 1: up to 64 Ki               ▯▯▯▯ ─┐      four of a tier make one of the next
//!   tier 2: up to 256 Ki                  ▯▯▯▯ ...
//! ```
//!
//! So an entry is written once a tier, and 100 million entries are in some twenty runs. Tier 0 takes in
//! however small runs: those of checkpoints, which may come every second; to write 16 Ki entries again
//! costs next to nothing.
//!
//! A merge of a low tier goes before one of a higher tier that is under way. So those of low tiers never wait
//! for the long ones, and there is at most one a tier.
//!
//! Entries below the floor are left out; when that may be many, they are counted first, so that the
//! file gets the length it needs. A run that is half forgotten by its offsets is merged alone.

use std::sync::Arc;

use timerlog::disk::{Directory, DiskError};

use super::entry::Entry;
use super::error::IndexError;
use super::run::{Run, RunStream, RunWriter};
use crate::message::offset::Offset;
use crate::sync::AtomicU64;

/// Runs of a tier that are merged into one of the next.
pub(super) const FAN_IN: usize = 4;

/// The tier of a run of `entries` entries, when those of tier 0 have up to `tier_0_entries`.
pub(super) fn tier_of(entries: u64, tier_0_entries: u64) -> u32 {
    let (mut tier, mut bound) = (0, tier_0_entries);
    while entries > bound {
        tier += 1;
        bound *= FAN_IN as u64;
    }
    tier
}

/// What to merge next.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) tier: u32,
    pub(super) inputs: Vec<Arc<Run>>,
}

impl Plan {
    /// The lowest tier's work among `free` runs, those that no merge reads.
    pub(super) fn over(
        mut free: Vec<Arc<Run>>,
        floor: Offset,
        tier_0_entries: u64,
    ) -> Option<Self> {
        let tier = |run: &Arc<Run>| tier_of(run.entries(), tier_0_entries);
        // Neighbours in age are merged: so old offsets stay together, and are forgotten together.
        free.sort_by_key(|run| (tier(run), run.highest()));
        free.chunk_by(|one, other| tier(one) == tier(other)).find_map(|runs| {
            let inputs = match runs.first_chunk::<FAN_IN>() {
                Some(oldest) => oldest.to_vec(),
                None => vec![Arc::clone(runs.iter().find(|run| is_half_forgotten(run, floor))?)],
            };
            Some(Self { tier: tier(&inputs[0]), inputs })
        })
    }
}

fn is_half_forgotten(run: &Run, floor: Offset) -> bool {
    let (lowest, highest) = (run.lowest().get(), run.highest().get());
    lowest < floor.get() && lowest + (highest - lowest) / 2 < floor.get()
}

/// Why a merge cannot go on.
#[derive(Clone, Debug)]
pub(super) enum MergeError {
    /// A run cannot be read; it is condemned.
    Input(IndexError),
    Output(DiskError),
}

/// What a step came to.
#[derive(Debug)]
pub(super) enum Merged {
    More,
    /// All is in the run, unless all was forgotten.
    Done(Option<Run>),
}

/// A merge under way.
#[derive(Debug)]
pub(super) struct Merge {
    tier: u32,
    number: u64,
    inputs: Vec<Arc<Run>>,
    union: Union,
    counted: u64,
    /// None while entries are counted.
    writer: Option<RunWriter>,
}

impl Merge {
    /// Begins to carry out `plan`; nothing is read or written yet. The output will be run `number`.
    pub(super) fn new(plan: Plan, number: u64, floor: Offset) -> Self {
        let Plan { tier, inputs } = plan;
        let union = Union::of(&inputs, floor);
        Self { tier, number, inputs, union, counted: 0, writer: None }
    }

    pub(super) fn tier(&self) -> u32 {
        self.tier
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn reads(&self, number: u64) -> bool {
        self.inputs.iter().any(|run| run.number() == number)
    }

    /// Takes up to `budget` entries further. After an error, drop the merge.
    pub(super) fn step(
        &mut self,
        directory: &dyn Directory,
        budget: usize,
        page_reads: &Arc<AtomicU64>,
    ) -> Result<Merged, MergeError> {
        match self.writer.take() {
            Some(writer) => self.write(writer, budget, page_reads),
            None if self.union.leaves_out_some() => self.count(directory, budget),
            None => {
                let entries = self.inputs.iter().map(|run| run.entries()).sum();
                self.begin_to_write(directory, entries)
            }
        }
    }

    fn count(&mut self, directory: &dyn Directory, budget: usize) -> Result<Merged, MergeError> {
        for _ in 0..budget {
            let Some(pulled) = self.union.pull()? else {
                return self.begin_to_write(directory, self.counted);
            };
            self.counted += u64::from(pulled.is_kept);
        }
        Ok(Merged::More)
    }

    fn begin_to_write(
        &mut self,
        directory: &dyn Directory,
        entries: u64,
    ) -> Result<Merged, MergeError> {
        if entries == 0 {
            return Ok(Merged::Done(None));
        }
        let writer = RunWriter::create(directory, self.number, entries);
        self.writer = Some(writer.map_err(MergeError::Output)?);
        self.union = Union::of(&self.inputs, self.union.floor);
        Ok(Merged::More)
    }

    fn write(
        &mut self,
        mut writer: RunWriter,
        budget: usize,
        page_reads: &Arc<AtomicU64>,
    ) -> Result<Merged, MergeError> {
        for _ in 0..budget {
            let Some(pulled) = self.union.pull()? else {
                let run = writer.finish(Arc::clone(page_reads)).map_err(MergeError::Output)?;
                return Ok(Merged::Done(Some(run)));
            };
            if pulled.is_kept {
                writer.push(pulled.entry).map_err(MergeError::Output)?;
            }
        }
        self.writer = Some(writer);
        Ok(Merged::More)
    }
}

/// All entries of some runs in order.
#[derive(Debug)]
struct Union {
    streams: Vec<RunStream>,
    /// What each stream gives next, once the first was pulled.
    heads: Option<Vec<Option<Entry>>>,
    floor: Offset,
    last: Option<Entry>,
}

/// One entry of the union.
#[derive(Clone, Copy, Debug)]
struct Pulled {
    entry: Entry,
    /// Neither below the floor nor the same as the one before.
    is_kept: bool,
}

impl Union {
    fn of(runs: &[Arc<Run>], floor: Offset) -> Self {
        let streams = runs.iter().map(|run| RunStream::new(Arc::clone(run))).collect();
        Self { streams, heads: None, floor, last: None }
    }

    /// Whether some entries are below the floor.
    fn leaves_out_some(&self) -> bool {
        self.streams.iter().any(|stream| stream.run().lowest() < self.floor)
    }

    fn pull(&mut self) -> Result<Option<Pulled>, MergeError> {
        let heads = match &mut self.heads {
            Some(heads) => heads,
            None => {
                let heads: Result<_, _> = self.streams.iter_mut().map(next_of).collect();
                self.heads.insert(heads?)
            }
        };
        let present = heads.iter().enumerate().filter_map(|(index, head)| Some((index, (*head)?)));
        let Some((index, entry)) = present.min_by_key(|&(_, entry)| entry) else {
            return Ok(None);
        };
        heads[index] = next_of(&mut self.streams[index])?;
        let is_kept = entry.offset >= self.floor && self.last != Some(entry);
        self.last = Some(entry);
        Ok(Some(Pulled { entry, is_kept }))
    }
}

fn next_of(stream: &mut RunStream) -> Result<Option<Entry>, MergeError> {
    let next = stream.next();
    next.map_err(|error| {
        stream.run().condemn();
        MergeError::Input(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_runs_of_a_tier_make_one_of_the_next() {
        let tier = |entries| tier_of(entries, 16);
        assert_eq!([1, 16, 17, 64, 65, 256, 257].map(tier), [0, 0, 1, 1, 2, 2, 3]);
        for entries in 17..2000 {
            assert_eq!(tier(entries * FAN_IN as u64), tier(entries) + 1, "{entries}");
        }
        assert_eq!(tier_of(100_000_000, crate::index::TIER_0_ENTRIES), 7);
    }
}
