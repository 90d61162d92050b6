//! The index as its callers see it.

mod faults;
mod files;
mod model;
mod reads;

use timerlog::disk::sim::{Random, SimDisk};

use super::*;

/// So small that a few hundred entries make runs of three tiers.
const SMALL: Limits = Limits {
    memtable_entries: 32,
    frozen_tables: 3,
    runs: 12,
    tier_0_entries: 64,
    merge_step_entries: 50,
};

fn open(disk: &SimDisk, manifest: Option<&[u8]>) -> Result<Index, IndexError> {
    Index::open_within(disk.root(), manifest, SMALL)
}

fn empty(disk: &SimDisk) -> Index {
    open(disk, None).expect("nothing to be damaged")
}

/// A hash for a small number, spread as those of real keys are.
fn key(number: u64) -> KeyHash {
    KeyHash::new(Random::new(number).next())
}

fn at(number: u64) -> Offset {
    Offset::new(number * 32)
}

fn listed(index: &Index, key: KeyHash) -> Vec<u64> {
    let offsets = index.newest_first(key, None);
    offsets.map(|offset| offset.expect("a whole disk").get() / 32).collect()
}

fn work_all(index: &Index) {
    while index.step().expect("a whole disk") {}
}

/// Inserts `(key(n), at(n))` for all of `numbers`, with the work behind it.
fn fill(index: &Index, numbers: std::ops::Range<u64>) {
    for number in numbers {
        while !index.has_room() {
            index.step().expect("a whole disk");
        }
        index.insert(key(number), at(number));
    }
}

#[test]
fn a_key_has_its_offsets_newest_first_wherever_they_are() {
    let index = empty(&SimDisk::new(1));
    for number in 0..500 {
        index.insert(key(number % 5), at(number));
        if number % 36 == 0 {
            index.step().unwrap();
        }
        assert_eq!(index.newest(key(number % 5)).unwrap(), Some(at(number)), "its own write");
    }
    let figures = index.figures();
    assert!(figures.runs > 0 && figures.frozen_tables > 0 && figures.memtable_entries > 0);
    for number in 0..5 {
        let all: Vec<_> = (0..500).rev().filter(|other| other % 5 == number).collect();
        assert_eq!(listed(&index, key(number)), all);
        let below = index.newest_first(key(number), Some(at(251)));
        let below: Vec<_> = below.map(|offset| offset.unwrap().get() / 32).collect();
        assert_eq!(below, all.into_iter().filter(|&other| other < 251).collect::<Vec<_>>());
    }
    assert_eq!(index.newest(key(5)).unwrap(), None);
    assert_eq!(index.newest_first(key(0), Some(Offset::ZERO)).count(), 0);
}

#[test]
fn an_offset_inserted_again_is_given_once() {
    let index = empty(&SimDisk::new(1));
    for round in 0..6 {
        (0..40).rev().for_each(|number| index.insert(key(number % 3), at(number)));
        assert_eq!(
            listed(&index, key(1)),
            (0..40).rev().filter(|n| n % 3 == 1).collect::<Vec<_>>()
        );
        if round % 2 == 0 {
            work_all(&index);
        }
    }
    index.capture().unwrap();
    work_all(&index);
    assert_eq!(listed(&index, key(2)), (0..40).rev().filter(|n| n % 3 == 2).collect::<Vec<_>>());
}

#[test]
fn hashes_at_both_ends_are_as_good_as_any() {
    let index = empty(&SimDisk::new(1));
    let keys = [0, 1, u64::MAX - 1, u64::MAX].map(KeyHash::new);
    for number in 0..400 {
        index.insert(keys[usize::try_from(number % 4).unwrap()], at(number));
        work_all(&index);
    }
    for (key, number) in keys.into_iter().zip(0..) {
        assert_eq!(
            listed(&index, key),
            (0..400).rev().filter(|n| n % 4 == number).collect::<Vec<_>>()
        );
    }
}

#[test]
fn when_the_disk_does_not_keep_up_there_is_no_room_and_nothing_is_lost() {
    let index = empty(&SimDisk::new(1));
    let mut inserted = 0;
    while index.has_room() {
        index.insert(key(inserted), at(inserted));
        inserted += 1;
    }
    assert_eq!(inserted, (SMALL.memtable_entries * SMALL.frozen_tables) as u64);
    // What was on its way already comes in nevertheless, and no further table is frozen.
    (inserted..inserted + 50).for_each(|number| index.insert(key(number), at(number)));
    assert_eq!(index.figures().frozen_tables, SMALL.frozen_tables);
    assert!((0..inserted + 50).all(|n| index.newest(key(n)).unwrap() == Some(at(n))));
    assert!(index.step().unwrap());
    assert!(index.has_room());
}

#[test]
fn a_hundred_thousand_entries_are_in_few_runs() {
    let index = empty(&SimDisk::new(1));
    let mut most = 0;
    for number in 0..100_000 {
        index.insert(key(number), at(number));
        if number % 32 == 31 {
            work_all(&index);
            most = most.max(index.figures().runs);
        }
    }
    // Tiers 0 to 6 with at most three runs each, of which tier 6 can have one.
    assert!(most <= 19, "{most} runs");
    assert_eq!(index.figures().run_entries + index.figures().memtable_entries as u64, 100_000);
}

#[test]
fn a_checkpoint_a_second_does_not_make_thousands_of_runs() {
    let index = empty(&SimDisk::new(1));
    let mut most = 0;
    for number in 0..2000 {
        index.insert(key(number), at(number));
        index.capture().unwrap();
        index.checkpointed();
        work_all(&index);
        most = most.max(index.figures().runs);
    }
    assert!(most <= 12, "{most} runs");
    assert!((0..2000).all(|n| index.newest(key(n)).unwrap() == Some(at(n))));
}

#[test]
fn a_small_merge_does_not_wait_for_a_large_one_under_way() {
    let limits = Limits { memtable_entries: 1000, merge_step_entries: 8, ..SMALL };
    let index = Index::open_within(SimDisk::new(1).root(), None, limits).unwrap();
    for number in 0..1024 {
        index.insert(key(number), at(number));
        if number % 256 == 255 {
            index.capture().unwrap();
        }
    }
    (0..5).for_each(|_| assert!(index.step().unwrap()));
    assert_eq!(index.figures().runs, 4, "to be merged in 128 steps");
    for number in 1024..1028 {
        index.insert(key(number), at(number));
        index.capture().unwrap();
    }
    (0..2).for_each(|_| assert!(index.step().unwrap()));
    assert_eq!(index.figures().runs, 5, "four small ones are one");
    work_all(&index);
    assert_eq!(index.figures().runs, 2);
    assert!((0..1028).all(|n| index.newest(key(n)).unwrap() == Some(at(n))));
}

#[test]
fn runs_pile_up_only_to_a_bound_and_then_the_producers_wait() {
    let disk = SimDisk::new(1);
    let index = Index::open_within(disk.root(), None, Limits { merge_step_entries: 1, ..SMALL });
    let index = index.unwrap();
    let mut refused = 0;
    for number in 0..3000 {
        refused += u64::from(!index.has_room());
        fill(&index, number..number + 1);
        assert!(index.figures().runs <= SMALL.runs);
        assert!(index.figures().frozen_tables <= SMALL.frozen_tables);
    }
    assert!(refused > 0);
    assert!((0..3000).all(|n| index.newest(key(n)).unwrap() == Some(at(n))));
}

#[test]
fn what_is_forgotten_is_not_given_and_its_room_comes_back() {
    let disk = SimDisk::new(1);
    let index = empty(&disk);
    fill(&index, 0..2000);
    index.capture().unwrap();
    index.checkpointed();
    work_all(&index);
    let before = disk.allocated();
    index.forget_below(at(1500));
    assert_eq!(index.newest(key(1499)).unwrap(), None);
    assert_eq!(index.newest(key(1500)).unwrap(), Some(at(1500)));
    index.forget_below(at(700));
    assert_eq!(index.newest(key(1499)).unwrap(), None, "it never goes down");
    work_all(&index);
    index.capture().unwrap();
    index.checkpointed();
    work_all(&index);
    // A run keeps what is forgotten only while that is less than half of it.
    assert!(index.figures().run_entries < 1000, "{:?}", index.figures());
    assert!(disk.allocated() < before * 6 / 10, "{} of {before}", disk.allocated());
    index.forget_below(at(2000));
    index.capture().unwrap();
    index.checkpointed();
    work_all(&index);
    assert_eq!((disk.allocated(), index.figures().runs), (0, 0));
}
