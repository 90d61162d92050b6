//! What every call on the simulated disk passes first: the faults, the counters, the power switch.

use std::collections::BTreeMap;
use std::io;

use super::Random;
use crate::disk::Operation;

/// How often each call was made, and how much went through it, since the disk was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub creates: u64,
    pub reads: u64,
    pub writes: u64,
    /// Calls of [`File::sync`](crate::disk::File::sync): the flushes.
    pub syncs: u64,
    pub directory_syncs: u64,
    pub renames: u64,
    pub removes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Ordered errors that have struck, and power cuts that were counted down to.
    pub faults: u64,
}

impl Counters {
    /// Calls that change what the disk holds: those that [`SimDisk::cut_after`](super::SimDisk::cut_after)
    /// counts.
    pub const fn changes(&self) -> u64 {
        self.creates + self.writes + self.syncs + self.directory_syncs + self.renames + self.removes
    }
}

/// An error that was ordered for a later call.
#[derive(Debug)]
struct Plan {
    operation: Operation,
    /// How many such calls to go, the failing one included.
    nth: u64,
    kind: io::ErrorKind,
}

#[derive(Debug)]
pub(super) struct Gate {
    /// Counts the crashes and kills; a handle of an earlier life is dead.
    pub(super) life: u64,
    pub(super) counters: Counters,
    pub(super) locks: BTreeMap<String, String>,
    pub(super) capacity: Option<u64>,
    pub(super) random: Random,
    plans: Vec<Plan>,
    changes_left: Option<u64>,
}

impl Gate {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            life: 0,
            counters: Counters::default(),
            locks: BTreeMap::new(),
            capacity: None,
            random: Random::new(seed),
            plans: Vec::new(),
            changes_left: None,
        }
    }

    pub(super) fn plan(&mut self, operation: Operation, nth: u64, kind: io::ErrorKind) {
        assert!(nth > 0, "the next call is the first one");
        self.plans.push(Plan { operation, nth, kind });
    }

    pub(super) fn cut_after(&mut self, changes: u64) {
        self.changes_left = Some(changes);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.changes_left == Some(0)
    }

    /// A new life begins: nothing of the old process is left, but the planned errors stay planned.
    pub(super) fn restart(&mut self) {
        self.life += 1;
        self.locks.clear();
        self.changes_left = None;
    }

    /// Whether a call of a handle of `life` may go on, and how it fails if not.
    pub(super) fn pass(&mut self, life: u64, operation: Operation) -> Result<(), Refusal> {
        if life != self.life {
            return Err(Refusal::Dead);
        }
        if self.is_cut() {
            return Err(Refusal::PowerOff);
        }
        self.count(operation);
        if changes_something(operation)
            && let Some(left) = &mut self.changes_left
        {
            *left -= 1;
            if *left == 0 {
                self.counters.faults += 1;
                return Err(Refusal::PowerOff);
            }
        }
        self.planned(operation).map_or(Ok(()), |kind| Err(Refusal::Planned(kind)))
    }

    fn planned(&mut self, operation: Operation) -> Option<io::ErrorKind> {
        for plan in self.plans.iter_mut().filter(|plan| plan.operation == operation) {
            plan.nth -= 1;
        }
        let due = self.plans.iter().position(|plan| plan.nth == 0)?;
        self.counters.faults += 1;
        Some(self.plans.remove(due).kind)
    }

    fn count(&mut self, operation: Operation) {
        let counters = &mut self.counters;
        match operation {
            Operation::Create => counters.creates += 1,
            Operation::Read => counters.reads += 1,
            Operation::Write => counters.writes += 1,
            Operation::Sync => counters.syncs += 1,
            Operation::SyncDirectory => counters.directory_syncs += 1,
            Operation::Rename => counters.renames += 1,
            Operation::Remove => counters.removes += 1,
            Operation::Open
            | Operation::List
            | Operation::Map
            | Operation::Lock
            | Operation::Measure => {}
        }
    }
}

/// Why a call did not go through.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    /// The process that had the handle is gone.
    Dead,
    PowerOff,
    Planned(io::ErrorKind),
}

impl Refusal {
    pub(super) fn cause(self) -> io::Error {
        match self {
            Self::Dead => io::Error::other("the process that had this handle has ended"),
            Self::PowerOff => io::Error::other("the power is off"),
            Self::Planned(kind) => io::Error::new(kind, format!("planned: {kind}")),
        }
    }
}

fn changes_something(operation: Operation) -> bool {
    match operation {
        Operation::Create
        | Operation::Rename
        | Operation::Remove
        | Operation::Write
        | Operation::Sync
        | Operation::SyncDirectory => true,
        Operation::Open
        | Operation::List
        | Operation::Read
        | Operation::Map
        | Operation::Lock
        | Operation::Measure => false,
    }
}
