//! The wheel by examples, by a model, and under faults.

mod compaction;
mod durability;
mod filing;
mod model;
mod refiling;
mod time;

use std::sync::Arc;

use super::*;
use crate::disk::Directory;
use crate::disk::sim::SimDisk;
use crate::log::{Entry, EntryKind};

/// A wheel small enough to go round: slots of 10 ms, four of them in a far slot.
const SMALL: Config = Config {
    precision_ms: 10,
    near_slots: 16,
    far_slots: 16,
    segment_size: 12_288,
    cancels_max: 4,
};

fn directory(disk: &SimDisk) -> Arc<dyn Directory> {
    let root = disk.root();
    let directory = root.subdirectory("wheel").expect("make the directory");
    root.sync().expect("sync");
    directory
}

fn origin(read_time: u64) -> Origin {
    Origin { read_time, lineage: 1 }
}

fn small(disk: &SimDisk, read_time: u64) -> TimerWheel {
    TimerWheel::create(directory(disk), SMALL, origin(read_time)).expect("create")
}

fn reopen(disk: &SimDisk, checkpoint: &TimerCheckpoint) -> TimerWheel {
    TimerWheel::open(directory(disk), SMALL, checkpoint).expect("open")
}

fn entry(deadline: u64, offset: u64) -> Entry {
    Entry { deadline, offset, length: 10, tag: 20 }
}

fn add(wheel: &mut TimerWheel, deadline: u64, offset: u64) {
    wheel.file(&[Filing::add(entry(deadline, offset))]).expect("file");
}

fn cancel(wheel: &mut TimerWheel, deadline: u64, offset: u64) {
    wheel.file(&[Filing::cancel(entry(deadline, offset))]).expect("file");
}

/// The offsets added in a near slot, oldest first.
fn near_adds(wheel: &TimerWheel, slot: u64) -> Vec<u64> {
    let Some(state) = wheel.slot(slot) else { return Vec::new() };
    let mut offsets = Vec::new();
    let visit = |record: &crate::Record| {
        if record.kind == EntryKind::Add {
            offsets.push(record.entry.offset);
        }
    };
    wheel.reader().walk(state.last, None, slot, visit).expect("walk");
    offsets.reverse();
    offsets
}

/// The offsets added in a far slot, oldest first.
fn far_adds(wheel: &TimerWheel, far_slot: u64) -> Vec<u64> {
    let Some(state) = wheel.far_slot(far_slot) else { return Vec::new() };
    let chain = wheel.reader().far().chain(far_slot, state.last, None);
    let records = chain.map(|step| step.expect("walk").1);
    let adds = records.filter(|record| record.kind == EntryKind::Add);
    let mut offsets: Vec<_> = adds.map(|record| record.entry.offset).collect();
    offsets.reverse();
    offsets
}

/// Settles the open slot, whatever is in it.
fn settle(wheel: &mut TimerWheel) {
    let slot = wheel.read_time();
    let walked = wheel.slot(slot).map(|state| state.last);
    assert_eq!(wheel.advance(slot, walked), Advance::Moved);
}

/// Re-files all that is due.
fn refile_all(wheel: &mut TimerWheel) {
    while wheel.refile(100, &mut |_| false).expect("refile") != Refile::NotDue {}
}

/// All there is to a wheel, for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Dump {
    read_time: u64,
    boundary: u64,
    near: Vec<(u64, SlotState)>,
    far: Vec<(u64, SlotState)>,
}

fn dump(wheel: &TimerWheel) -> Dump {
    Dump {
        read_time: wheel.read_time(),
        boundary: wheel.far_boundary(),
        near: wheel.slots_in(0..u64::MAX),
        far: wheel.far_slots_in(0..u64::MAX),
    }
}
