//! The folder of timers, as its user sees it.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::disk::sim::{Random, SimDisk};

const SMALL: Config = Config {
    precision_ms: 10,
    near_slots: 16,
    far_slots: 64,
    segment_size: 12_288,
    cancels_max: 4,
};

fn open(disk: &SimDisk) -> Result<Timers, OpenError> {
    Timers::open_in(disk.root(), SMALL, 1000)
}

fn entry(deadline: u64, offset: u64) -> Entry {
    Entry { deadline, offset, length: 3, tag: 4 }
}

fn offsets(timers: &mut Timers, now: u64) -> Vec<u64> {
    timers.due(now).expect("due").iter().map(|entry| entry.offset).collect()
}

#[test]
fn entries_come_at_their_millisecond_by_deadline_and_arrival() {
    let mut timers = open(&SimDisk::new(1)).expect("open");
    for (deadline, offset) in [(1005, 4), (1003, 2), (1005, 3), (1017, 5), (20, 1)] {
        timers.schedule(entry(deadline, offset)).expect("schedule");
    }
    assert_eq!(offsets(&mut timers, 1002), [1]);
    assert_eq!(offsets(&mut timers, 1004), [2]);
    assert_eq!(offsets(&mut timers, 1004), [0; 0], "once");
    timers.schedule(entry(1004, 6)).expect("an entry for the open slot joins it");
    assert_eq!(offsets(&mut timers, 1016), [6, 3, 4]);
    assert_eq!(offsets(&mut timers, 1017), [5]);
}

#[test]
fn what_is_cancelled_is_not_handed_out_near_far_or_in_the_open_slot() {
    let mut timers = open(&SimDisk::new(1)).expect("open");
    let all: Vec<_> = (0..200).map(|n| entry(1001 + n * 5, n)).collect();
    timers.schedule_all(&all).expect("schedule");
    assert_eq!(offsets(&mut timers, 1001), [0]);
    for n in (1..200).filter(|n| n % 3 != 0) {
        timers.cancel(all[n]).expect("cancel");
    }
    let expected: Vec<_> = (1..200).filter(|n| n % 3 == 0).collect();
    assert_eq!(offsets(&mut timers, 5000), expected);
}

#[test]
fn a_clock_that_goes_back_delays_and_nothing_comes_early_or_twice() {
    let mut timers = open(&SimDisk::new(1)).expect("open");
    timers.schedule(entry(1500, 1)).expect("schedule");
    assert_eq!(offsets(&mut timers, 1400), [0; 0]);
    timers.schedule(entry(1300, 2)).expect("schedule");
    assert_eq!(offsets(&mut timers, 1299), [0; 0]);
    assert_eq!(offsets(&mut timers, 1300), [2]);
    assert_eq!(offsets(&mut timers, 1500), [1]);
}

#[test]
fn what_was_flushed_is_there_after_a_crash_and_the_rest_is_not() {
    for seed in 0..20 {
        let disk = SimDisk::new(seed);
        let mut timers = open(&disk).expect("open");
        timers.schedule(entry(1500, 1)).expect("schedule");
        timers.flush().expect("flush");
        timers.schedule(entry(1500, 2)).expect("schedule");
        disk.crash(&mut Random::new(seed));
        assert_eq!(offsets(&mut open(&disk).expect("open"), 2000), [1]);
    }
}

#[test]
fn entries_of_the_open_slot_come_again_after_a_reopening() {
    let disk = SimDisk::new(1);
    let mut timers = open(&disk).expect("open");
    timers.schedule_all(&[entry(1005, 1), entry(1012, 2), entry(1019, 3)]).expect("schedule");
    assert_eq!(offsets(&mut timers, 1015), [1, 2]);
    timers.close().expect("close");
    assert_eq!(offsets(&mut open(&disk).expect("open"), 1019), [2, 3]);
}

#[test]
fn a_folder_is_open_once_and_the_refusal_names_the_holder() {
    let disk = SimDisk::new(1);
    let timers = open(&disk).expect("open");
    let refused = open(&disk).expect_err("it is open");
    assert!(matches!(&refused, OpenError::Disk(error) if error.is_locked()));
    assert!(refused.to_string().contains(&format!("process {}", std::process::id())), "{refused}");
    timers.close().expect("close");
    open(&disk).expect("it is free");
}

#[test]
fn a_folder_without_its_checkpoint_is_refused_and_nothing_of_it_is_touched() {
    let disk = SimDisk::new(1);
    let mut timers = open(&disk).expect("open");
    timers.schedule(entry(1500, 1)).expect("schedule");
    timers.close().expect("close");
    let copies = ["checkpoint-a", "checkpoint-b"];
    let whole = copies.map(|name| disk.content(name));
    copies.iter().for_each(|name| disk.flip_bit(name, 50, 1));
    assert!(matches!(open(&disk), Err(OpenError::Damaged(_))));
    disk.flip_bit(copies[1], 50, 1);
    let timers = open(&disk).expect("one copy is whole");
    assert_eq!(timers.damaged().len(), 1);
    drop(timers);
    copies.iter().zip(&whole).for_each(|(name, whole)| disk.edit(name, |it| it.clone_from(whole)));
    drop(open(&disk).expect("whole again"));
    copies.iter().for_each(|name| disk.remove_tree(name));
    let refused = open(&disk).expect_err("the checkpoint is missing");
    assert_eq!(refused.to_string(), "/checkpoint-a: the file is missing");
    assert!(disk.files().iter().any(|path| path.starts_with("far/")));
}

#[test]
fn when_the_newest_checkpoint_is_damaged_the_one_before_finds_all_its_files() {
    let disk = SimDisk::new(1);
    let mut timers = open(&disk).expect("open");
    for round in 0..40 {
        let now = 1000 + round * 30;
        let entries: Vec<_> = (0..60).map(|n| entry(now + n, round * 60 + n)).collect();
        timers.schedule_all(&entries).expect("schedule");
        timers.due(now + 25).expect("due");
        timers.flush().expect("flush");
        let newest =
            if timers.generation.is_multiple_of(2) { "checkpoint-a" } else { "checkpoint-b" };
        drop(timers);
        disk.kill();
        disk.flip_bit(newest, 60, 1);
        drop(open(&disk).unwrap_or_else(|error| panic!("round {round}: {error}")));
        disk.flip_bit(newest, 60, 1);
        timers = open(&disk).expect("open");
    }
}

#[test]
fn a_power_cut_while_a_folder_is_made_leaves_one_that_can_be_made() {
    for seed in 0..40 {
        for cut in 1..20 {
            let disk = SimDisk::new(seed);
            disk.cut_after(cut);
            let made = open(&disk).is_ok();
            disk.crash(&mut Random::new(seed));
            let mut timers = open(&disk).expect("open");
            assert_eq!(offsets(&mut timers, 9000), [0; 0], "seed {seed}, cut {cut}, {made}");
        }
    }
}

#[test]
fn many_due_entries_come_in_bounded_batches_in_order() {
    let mut timers = open(&SimDisk::new(1)).expect("open");
    let all: Vec<_> = (0..150_000).map(|n| entry(1000 + n % 100, n)).collect();
    timers.schedule_all(&all).expect("schedule");
    let mut seen = Vec::new();
    loop {
        let batch = timers.due(2000).expect("due");
        if batch.is_empty() {
            break;
        }
        assert!(batch.len() < BATCH + 15_001, "one slot more at most");
        seen.extend(batch);
    }
    assert_eq!(seen.len(), all.len());
    assert!(seen.is_sorted());
}

#[derive(Clone, Debug)]
enum Step {
    Schedule { ahead: u64, count: u64 },
    Cancel { nth: usize },
    Due { later: u64 },
    Flush,
    Close,
    Crash { seed: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0_u64..900, 1_u64..30).prop_map(|(ahead, count)| Step::Schedule { ahead, count }),
        2 => (0_usize..50).prop_map(|nth| Step::Cancel { nth }),
        5 => (0_u64..80).prop_map(|later| Step::Due { later }),
        2 => Just(Step::Flush),
        1 => Just(Step::Close),
        1 => any::<u64>().prop_map(|seed| Step::Crash { seed }),
    ]
}

/// The plain set that the folder is compared to.
#[derive(Clone, Default)]
struct Model {
    pending: BTreeSet<Entry>,
    handed_out: BTreeSet<Entry>,
}

fn check(steps: &[Step]) {
    let disk = SimDisk::new(1);
    let mut timers = open(&disk).expect("open");
    let (mut model, mut flushed) = (Model::default(), Model::default());
    let (mut now, mut next) = (1000, 0);
    for step in steps {
        match step {
            Step::Schedule { ahead, count } => {
                for n in 0..*count {
                    next += 1;
                    let entry = entry((now + ahead + n * 3).saturating_sub(30), next);
                    timers.schedule(entry).expect("schedule");
                    model.pending.insert(entry);
                }
            }
            Step::Cancel { nth } => {
                let slot_end = now / 10 * 10 + 10;
                let later = model.pending.iter().filter(|entry| entry.deadline >= slot_end);
                if let Some(entry) = later.copied().nth(*nth) {
                    timers.cancel(entry).expect("cancel");
                    model.pending.remove(&entry);
                }
            }
            Step::Due { later } => {
                now += later;
                let due = timers.due(now).expect("due");
                assert!(due.is_sorted());
                let expected: Vec<_> =
                    model.pending.extract_if(.., |entry| entry.deadline <= now).collect();
                let fresh: Vec<_> =
                    due.iter().filter(|entry| !model.handed_out.contains(entry)).copied().collect();
                assert_eq!(fresh, expected);
                model.handed_out.extend(expected);
            }
            Step::Flush => {
                timers.flush().expect("flush");
                flushed = model.clone();
            }
            Step::Close => {
                timers.close().expect("close");
                flushed = model.clone();
                timers = open(&disk).expect("open");
            }
            Step::Crash { seed } => {
                disk.crash(&mut Random::new(*seed));
                model = flushed.clone();
                timers = open(&disk).expect("open");
            }
        }
    }
}

proptest! {
    #[test]
    fn a_folder_hands_out_what_a_sorted_set_would(steps in prop::collection::vec(step(), 1..60)) {
        check(&steps);
    }
}
