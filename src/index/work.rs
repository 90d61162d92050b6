//! What is done behind the look-ups: frozen tables become runs, runs are merged and removed, and a
//! checkpoint learns which runs there are.
//!
//! One lock, the *worker*, is held by whoever works; the lock of the tables is taken only for the moment
//! in which a run takes the place of what it was made from.

use std::collections::BTreeSet;
use std::sync::Arc;

use timerlog::disk::DiskError;

use super::Index;
use super::entry::Entry;
use super::error::IndexError;
use super::files::Files;
use super::manifest::Manifest;
use super::merge::{Merge, MergeError, Merged, Plan};
use super::run::{Run, RunWriter, file_name};

/// The state of whoever works.
#[derive(Debug, Default)]
pub(super) struct Worker {
    next_number: u64,
    files: Files,
    /// Under way, the lowest tier last.
    merges: Vec<Merge>,
    /// Runs that must be missing at the next start.
    condemned: BTreeSet<u64>,
    /// What a failing disk said first: from then on nothing is written any more.
    failed: Option<IndexError>,
}

impl Worker {
    /// Begins after a start that trusts the runs numbered `listed`.
    pub(super) fn opened(listed: BTreeSet<u64>) -> Self {
        Self {
            next_number: listed.last().map_or(0, |last| last + 1),
            files: Files::opened(listed),
            ..Self::default()
        }
    }

    fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Runs `work` unless something has failed before, and remembers if it fails for good.
    fn latched<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let done = work(self);
        if let Err(error) = &done
            && error.is_fatal()
        {
            self.failed = Some(error.clone());
        }
        done
    }
}

impl Index {
    /// Does a bounded amount of work: removes a file, writes the oldest frozen table as a run, or takes a
    /// merge some entries further. `false` when there is nothing to do.
    ///
    /// # Errors
    ///
    /// When the disk is full ([`IndexError::is_full`]): nothing is lost, and a later step tries again.
    /// When a run cannot be read for a merge: it is told once, and the work goes on without that run,
    /// whose file is removed so that the next start builds the index anew. Any other failure is final
    /// ([`IndexError::is_fatal`]): every later step and capture answers it, and the server must end.
    pub fn step(&self) -> Result<bool, IndexError> {
        self.worker.lock().latched(|worker| self.work(worker))
    }

    /// Writes all that was inserted before the call, and answers what a checkpoint must keep for
    /// [`Index::open`]. The log must be durable up to every inserted offset before that checkpoint is
    /// written. When it is durable, say so by [`Index::checkpointed`]; until then every file that it or
    /// the one before lists stays.
    ///
    /// # Errors
    ///
    /// As [`Index::step`]. After a full disk, call it again.
    pub fn capture(&self) -> Result<Vec<u8>, IndexError> {
        self.worker.lock().latched(|worker| {
            self.drop_forgotten(worker);
            for _ in 0..self.freeze() {
                self.write_oldest_frozen(worker)?;
            }
            self.directory.sync()?;
            let manifest = self.manifest();
            worker.files.capture(manifest.runs.iter().map(|run| run.number).collect());
            self.signal.raise();
            Ok(manifest.encode())
        })
    }

    /// The checkpoint with the last [`Index::capture`] is durable: what only older ones list may go.
    pub fn checkpointed(&self) {
        self.worker.lock().files.confirm();
        self.signal.raise();
    }

    fn work(&self, worker: &mut Worker) -> Result<bool, IndexError> {
        self.drop_forgotten(worker);
        if let Some(number) = self.newly_condemned(worker) {
            self.remove_file(number)?;
            self.directory.sync()?;
            worker.condemned.insert(number);
            return Ok(true);
        }
        if let Some(number) = worker.files.removable() {
            self.remove_file(number)?;
            worker.files.removed(number);
            return Ok(true);
        }
        let (frozen, runs) = {
            let tables = self.tables.read();
            (tables.frozen.len(), tables.runs.len())
        };
        // With too many runs the frozen tables wait, and soon the producers too.
        if frozen > 0 && runs < self.limits.runs {
            self.write_oldest_frozen(worker)?;
            return Ok(true);
        }
        self.merge_some(worker)
    }

    /// Freezes the active memtable unless it is empty, and answers how many are frozen.
    fn freeze(&self) -> usize {
        let mut tables = self.tables.write();
        if tables.active.len() > 0 {
            tables.freeze();
        }
        tables.frozen.len()
    }

    fn manifest(&self) -> Manifest {
        let tables = self.tables.read();
        let mut runs: Vec<_> = tables.runs.iter().map(|run| run.listed()).collect();
        runs.sort_by_key(|run| run.number);
        Manifest { floor: tables.floor, runs }
    }

    /// Retires the runs that hold nothing but what is forgotten.
    fn drop_forgotten(&self, worker: &mut Worker) {
        let is_forgotten = |run: &Arc<Run>, floor| run.highest() < floor;
        let tables = self.tables.read();
        if !tables.runs.iter().any(|run| is_forgotten(run, tables.floor)) {
            return;
        }
        drop(tables);
        let tables = &mut *self.tables.write();
        for run in tables.runs.extract_if(.., |run| is_forgotten(run, tables.floor)) {
            worker.files.retire(run.number());
        }
    }

    fn newly_condemned(&self, worker: &Worker) -> Option<u64> {
        let tables = self.tables.read();
        let condemned = tables.runs.iter().filter(|run| run.is_condemned());
        let mut numbers = condemned.map(|run| run.number());
        numbers.find(|number| !worker.condemned.contains(number))
    }

    fn remove_file(&self, number: u64) -> Result<(), DiskError> {
        match self.directory.remove(&file_name(number)) {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes what there is of run `number`, which could not be written: now, or by a later step.
    fn give_up(&self, worker: &mut Worker, number: u64) {
        if self.remove_file(number).is_err() {
            worker.files.retire(number);
        }
    }

    fn write_oldest_frozen(&self, worker: &mut Worker) -> Result<(), IndexError> {
        let (table, floor) = {
            let tables = self.tables.read();
            let Some(table) = tables.frozen.front() else { return Ok(()) };
            (Arc::clone(table), tables.floor)
        };
        let run = self.write_run(worker, &table.entries(floor))?;
        let mut tables = self.tables.write();
        let written = tables.frozen.pop_front();
        debug_assert!(written.is_some_and(|written| Arc::ptr_eq(&written, &table)));
        tables.runs.extend(run);
        Ok(())
    }

    fn write_run(
        &self,
        worker: &mut Worker,
        entries: &[Entry],
    ) -> Result<Option<Arc<Run>>, IndexError> {
        if entries.is_empty() {
            return Ok(None);
        }
        let number = worker.take_number();
        let write = || {
            let mut writer = RunWriter::create(&*self.directory, number, entries.len() as u64)?;
            entries.iter().try_for_each(|&entry| writer.push(entry))?;
            writer.finish(Arc::clone(&self.page_reads))
        };
        match write() {
            Ok(run) => Ok(Some(Arc::new(run))),
            Err(error) => {
                self.give_up(worker, number);
                Err(error.into())
            }
        }
    }

    fn merge_some(&self, worker: &mut Worker) -> Result<bool, IndexError> {
        self.begin_merge(worker);
        let Some(mut merge) = worker.merges.pop() else { return Ok(false) };
        match merge.step(&*self.directory, self.limits.merge_step_entries, &self.page_reads) {
            Ok(Merged::More) => worker.merges.push(merge),
            Ok(Merged::Done(run)) => self.install(worker, &merge, run.map(Arc::new)),
            Err(MergeError::Output(error)) => {
                self.give_up(worker, merge.number());
                return Err(error.into());
            }
            Err(MergeError::Input(error)) => {
                self.give_up(worker, merge.number());
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Begins the merge of the lowest tier, if it is lower than all that are under way.
    fn begin_merge(&self, worker: &mut Worker) {
        let (free, floor) = {
            let tables = self.tables.read();
            let is_read = |run: &Run| worker.merges.iter().any(|merge| merge.reads(run.number()));
            let is_free = |run: &&Arc<Run>| !run.is_condemned() && !is_read(run);
            (tables.runs.iter().filter(is_free).cloned().collect(), tables.floor)
        };
        let Some(plan) = Plan::over(free, floor, self.limits.tier_0_entries) else { return };
        if worker.merges.last().is_none_or(|merge| plan.tier < merge.tier()) {
            let number = worker.take_number();
            worker.merges.push(Merge::new(plan, number, floor));
        }
    }

    /// Puts what was merged in the place of what it was merged from.
    fn install(&self, worker: &mut Worker, merge: &Merge, run: Option<Arc<Run>>) {
        let mut tables = self.tables.write();
        for run in tables.runs.extract_if(.., |run| merge.reads(run.number())) {
            worker.files.retire(run.number());
        }
        tables.runs.extend(run);
    }
}
