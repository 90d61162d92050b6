//! The log against plain lists of records, and against rot.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::record::STEP;
use super::*;
use crate::disk::sim::{Random, SimDisk};
use crate::error::{Damage, DamageKind, TimerError};
use crate::position::Position;

const SHAPE: Shape = Shape { segment_size: 12_288, slot_width_ms: 1000, lineage: 1 };

fn open(disk: &SimDisk, extent: Extent) -> Result<TimerLog, TimerError> {
    let root = disk.root();
    let directory = root.subdirectory("log").expect("make the directory");
    root.sync().expect("sync");
    TimerLog::open(directory, SHAPE, extent)
}

/// Files records by slot, as the wheel does.
#[derive(Default)]
struct Filer {
    lasts: BTreeMap<u64, Position>,
    all: BTreeMap<u64, Vec<(Position, Record)>>,
    next: u64,
}

impl Filer {
    fn file(&mut self, log: &mut TimerLog, slots: &[u64]) {
        let mut places = log.places();
        let batch: Vec<_> = slots
            .iter()
            .map(|slot| {
                self.next += 1;
                let (deadline, offset) = (slot * 1000, self.next);
                let entry = Entry { deadline, offset, length: 1, tag: 2 };
                let position = places.take();
                let previous = self.lasts.insert(*slot, position);
                let record = Record { kind: EntryKind::Add, slot: *slot, previous, entry };
                self.all.entry(*slot).or_default().push((position, record));
                (position, record)
            })
            .collect();
        log.append(&batch).expect("append");
    }
}

fn flushed(log: &mut TimerLog) -> Extent {
    log.start_flush().wait().expect("flush");
    Extent { floor: log.floor(), length: log.length() }
}

fn walk(log: &TimerLog, slot: u64, last: Position) -> Result<Vec<(Position, Record)>, ChainError> {
    log.reader().chain(slot, last, None).collect()
}

#[test]
fn no_record_is_at_the_start_of_a_file() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
    let mut filer = Filer::default();
    filer.file(&mut log, &[1; 600]);
    let positions: Vec<_> = filer.all[&1].iter().map(|(position, _)| position.get()).collect();
    assert_eq!(positions[..2], [48, 96]);
    assert!(positions.iter().all(|position| position % SHAPE.segment_size != 0));
    assert_eq!(log.length(), 12_288 * 2 + 48 * (600 - 255 * 2 + 1));
}

#[test]
fn a_batch_costs_one_write_for_each_file_it_touches() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
    let mut filer = Filer::default();
    filer.file(&mut log, &[1, 2, 3]);
    assert_eq!(disk.counters().writes, 1);
    filer.file(&mut log, &[1; 300]);
    assert_eq!(disk.counters().writes, 3);
}

#[test]
fn a_walk_can_stop_where_an_earlier_one_began() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
    let mut filer = Filer::default();
    filer.file(&mut log, &[5, 6, 5, 5, 6, 5]);
    let all = filer.all[&5].clone();
    let chain = log.reader().chain(5, all[3].0, Some(all[1].0));
    let seen: Vec<_> = chain.map(|step| step.expect("sound").0).collect();
    assert_eq!(seen, [all[3].0, all[2].0]);
    let mut none = log.reader().chain(5, all[3].0, Some(all[3].0));
    assert!(none.next().is_none(), "nothing came after");
}

#[test]
fn a_walk_that_misses_where_it_must_stop_is_an_error() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
    let mut filer = Filer::default();
    filer.file(&mut log, &[5, 6, 5]);
    let stop = filer.all[&6][0].0;
    let chain = log.reader().chain(5, filer.all[&5][1].0, Some(stop));
    let steps: Vec<_> = chain.collect();
    assert!(matches!(
        &steps[..],
        [Err(ChainError::Damaged(Damage { kind: DamageKind::ShortChain { until: 96 }, .. }))]
    ));
}

#[test]
fn a_record_of_another_slot_is_an_error_with_its_place() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
    let mut filer = Filer::default();
    filer.file(&mut log, &[5]);
    let error = walk(&log, 6, filer.all[&5][0].0).expect_err("it is in slot 5");
    assert_eq!(
        error.to_string(),
        "log/00000000000000000000 at byte 48: a record of slot 5 in the chain of slot 6"
    );
}

#[test]
fn every_flipped_bit_of_a_chain_is_an_error_and_never_a_short_chain() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
    let mut filer = Filer::default();
    filer.file(&mut log, &[5, 5, 5]);
    let last = filer.all[&5][2].0;
    let file = "log/00000000000000000000";
    for offset in STEP..4 * STEP {
        for bit in 0..8 {
            disk.flip_bit(file, offset, bit);
            assert!(walk(&log, 5, last).is_err(), "bit {bit} of byte {offset}");
            disk.flip_bit(file, offset, bit);
        }
    }
    assert_eq!(walk(&log, 5, last).expect("whole again").len(), 3);
}

#[test]
fn swapped_records_of_one_slot_are_noticed() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
    let mut filer = Filer::default();
    filer.file(&mut log, &[5, 5, 5]);
    disk.edit("log/00000000000000000000", |bytes| {
        let (first, rest) = bytes[48..].split_at_mut(48);
        first.swap_with_slice(&mut rest[..48]);
    });
    assert!(walk(&log, 5, filer.all[&5][2].0).is_err());
}

#[test]
fn a_damaged_header_keeps_the_log_from_opening() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
    Filer::default().file(&mut log, &[5; 300]);
    let extent = flushed(&mut log);
    disk.flip_bit("log/00000000000000012288", 17, 0);
    let Err(TimerError::NeedsRebuild(damage)) = open(&disk, extent) else { panic!("it opened") };
    assert_eq!(damage.file, "log/00000000000000012288");
}

#[test]
fn a_file_that_was_not_released_must_be_there() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
    Filer::default().file(&mut log, &[5; 600]);
    let extent = flushed(&mut log);
    disk.remove_tree("log/00000000000000000000");
    let Err(TimerError::NeedsRebuild(damage)) = open(&disk, extent) else { panic!("it opened") };
    assert_eq!(
        (damage.file.as_str(), &damage.kind),
        ("log/00000000000000000000", &DamageKind::Missing)
    );
    let settled = Extent { floor: 12_288, ..extent };
    assert_eq!(open(&disk, settled).expect("released, then").begin(), 12_288);
}

#[test]
fn a_chain_ends_at_the_floor_and_a_walk_below_it_says_why_it_cannot() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
    let mut filer = Filer::default();
    filer.file(&mut log, &[5; 300]);
    let reader = log.reader();
    let last = filer.lasts[&5];
    log.release(12_288).expect("release");
    assert_eq!(walk(&log, 5, last).expect("what is left").len(), 45);
    let mut below = reader.chain(5, filer.all[&5][0].0, None);
    assert!(matches!(below.next(), Some(Err(ChainError::Released { position: 48 }))));
}

#[test]
fn a_failed_append_leaves_no_part_of_the_batch() {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
    let mut filer = Filer::default();
    filer.file(&mut log, &[5; 100]);
    let before = log.length();
    disk.set_capacity(Some(12_288));
    let mut places = log.places();
    let record = filer.all[&5][0].1;
    let batch: Vec<_> = (0..300).map(|_| (places.take(), record)).collect();
    assert!(log.append(&batch).is_err(), "the second file does not fit");
    assert_eq!(log.length(), before);
}

proptest! {
    #[test]
    fn chains_and_replay_give_back_what_was_filed(
        batches in prop::collection::vec(prop::collection::vec(0_u64..6, 1..200), 1..12),
        seed in any::<u64>(),
    ) {
        let disk = SimDisk::new(1);
        let mut log = open(&disk, Extent { floor: 0, length: 0 }).expect("open");
        let mut filer = Filer::default();
        for batch in &batches {
            filer.file(&mut log, batch);
        }
        let extent = flushed(&mut log);
        disk.crash(&mut Random::new(seed));
        let log = open(&disk, extent).expect("open");
        for (slot, records) in &filer.all {
            let mut seen = walk(&log, *slot, filer.lasts[slot]).expect("sound");
            seen.reverse();
            prop_assert_eq!(&seen, records);
        }
        let mut all: Vec<_> = filer.all.into_values().flatten().collect();
        all.sort_by_key(|(position, _)| *position);
        let from = all[all.len() / 2].0;
        let mut replayed = Vec::new();
        log.replay(from.get(), |position, record| {
            replayed.push((position, *record));
            Ok(())
        }).expect("sound");
        prop_assert_eq!(&replayed, &all[all.len() / 2..]);
    }
}

#[test]
fn readers_and_the_writer_may_be_on_different_threads() {
    fn sendable<T: Send + Sync>(_: &T) {}
    let log = open(&SimDisk::new(1), Extent { floor: 0, length: 0 }).expect("open");
    sendable(&log.reader());
    sendable(&Arc::new(log));
}
