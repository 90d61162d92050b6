//! Where entries go, and what they cost.

use std::io::ErrorKind;

use super::*;
use crate::disk::Operation;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

#[test]
fn entries_are_found_in_the_slot_of_their_deadline() {
    let mut wheel = small(&SimDisk::new(1), 100);
    add(&mut wheel, 1001, 1);
    add(&mut wheel, 1009, 2);
    add(&mut wheel, 1010, 3);
    assert_eq!(near_adds(&wheel, 100), [1, 2]);
    assert_eq!(near_adds(&wheel, 101), [3]);
    assert_eq!((wheel.pending(), wheel.pending_in(100..101)), (3, 2));
}

#[test]
fn what_is_late_joins_the_open_slot_and_a_late_cancel_is_dropped() {
    let mut wheel = small(&SimDisk::new(1), 100);
    add(&mut wheel, 3, 1);
    add(&mut wheel, 0, 2);
    cancel(&mut wheel, 3, 1);
    assert_eq!(near_adds(&wheel, 100), [1, 2]);
    assert_eq!(wheel.slot(100).map(|state| state.count), Some(2));
}

#[test]
fn a_cancel_is_a_record_and_takes_one_from_the_count() {
    let mut wheel = small(&SimDisk::new(1), 100);
    add(&mut wheel, 1050, 1);
    add(&mut wheel, 1050, 2);
    cancel(&mut wheel, 1050, 1);
    let state = wheel.slot(105).expect("occupied");
    assert_eq!(state.count, 1);
    let mut kinds = Vec::new();
    wheel
        .reader()
        .walk(state.last, None, 105, |record| kinds.push((record.kind, record.entry.offset)))
        .expect("walk");
    assert_eq!(kinds, [(EntryKind::Cancel, 1), (EntryKind::Add, 2), (EntryKind::Add, 1)]);
}

#[test]
fn the_boundary_parts_the_rings() {
    let mut wheel = small(&SimDisk::new(1), 100);
    assert_eq!(wheel.far_boundary(), 108);
    add(&mut wheel, 1079, 1);
    add(&mut wheel, 1080, 2);
    assert_eq!(near_adds(&wheel, 107), [1]);
    assert_eq!(far_adds(&wheel, 27), [2]);
    assert_eq!(wheel.far_pending_in(27..28), 1);
}

#[test]
fn a_deadline_beyond_the_far_ring_is_refused_and_nothing_of_its_batch_is_filed() {
    let mut wheel = small(&SimDisk::new(1), 100);
    let limit = wheel.deadline_limit();
    assert_eq!(limit, (108 + 64) * 10);
    let batch = [Filing::add(entry(1050, 1)), Filing::add(entry(limit, 2))];
    let refused = wheel.file(&batch).expect_err("out of range");
    assert!(matches!(refused, FileError::BeyondRange { deadline, limit: end } if deadline == end));
    assert_eq!(wheel.pending(), 0);
    assert!(wheel.file(&[Filing::add(entry(u64::MAX, 3))]).is_err());
    add(&mut wheel, limit - 1, 4);
    cancel(&mut wheel, u64::MAX, 5);
    assert_eq!(wheel.pending(), 1);
}

#[test]
fn a_batch_costs_one_write_for_each_log() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    add(&mut wheel, 1000, 1);
    add(&mut wheel, 1100, 2);
    let writes = disk.counters().writes;
    let batch: Vec<_> = (0..100).map(|n| Filing::add(entry(1000 + n, n))).collect();
    wheel.file(&batch).expect("file");
    assert_eq!(disk.counters().writes, writes + 2);
}

#[test]
fn a_full_disk_refuses_a_batch_and_the_wheel_goes_on_when_there_is_room() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    add(&mut wheel, 1000, 0);
    disk.set_capacity(Some(disk.allocated()));
    let batch: Vec<_> = (1..400).map(|n| Filing::add(entry(1000, n))).collect();
    let refused = wheel.file(&batch).expect_err("the second file does not fit");
    let crate::TimerError::Disk(error) = (match refused {
        FileError::Timer(error) => error,
        other @ FileError::BeyondRange { .. } => panic!("{other}"),
    }) else {
        panic!("nothing is damaged")
    };
    assert!(error.is_full());
    assert_eq!(near_adds(&wheel, 100), [0]);
    disk.set_capacity(None);
    wheel.file(&batch).expect("file");
    assert_eq!(near_adds(&wheel, 100).len(), 400);
}

#[test]
fn each_kind_of_deadline_comes_at_its_second_and_not_before() {
    let now = 1_999_999_999_999;
    let slot = now / 1000;
    let half_ring = (1 << 19) * 1000;
    let deadlines = [
        now + 1,
        (slot + 1) * 1000,
        (slot + 1) * 1000 - 1,
        now + half_ring - 1,
        now + half_ring,
        now + half_ring + 1,
        now + 365 * DAY_MS,
        now + 100 * 365 * DAY_MS,
    ];
    let disk = SimDisk::new(1);
    let mut wheel =
        TimerWheel::create(directory(&disk), Config::default(), origin(slot)).expect("create");
    let filings: Vec<_> =
        deadlines.iter().zip(1..).map(|(deadline, n)| Filing::add(entry(*deadline, n))).collect();
    wheel.file(&filings).expect("file");

    let mut seen = Vec::new();
    let end = deadlines.iter().max().expect("not empty") / 1000 + 1;
    while wheel.read_time() < end {
        refile_all(&mut wheel);
        let open = wheel.skip_empty(end);
        seen.extend(near_adds(&wheel, open).into_iter().map(|offset| (open, offset)));
        if open < wheel.far_boundary() && open < end {
            settle(&mut wheel);
        }
    }
    let mut expected: Vec<_> =
        filings.iter().map(|filing| (filing.entry.deadline / 1000, filing.entry.offset)).collect();
    expected.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, expected);
    assert_eq!(wheel.pending(), 0);
}

/// A batch goes to both logs or to none: what found no room is filed again as a whole, and stands there once.
#[test]
fn a_batch_that_finds_no_room_in_one_log_is_in_neither_and_may_be_filed_again() {
    for nth in 1..=2 {
        let disk = SimDisk::new(1);
        let mut wheel = small(&disk, 100);
        let batch = [Filing::add(entry(1050, 1)), Filing::add(entry(1600, 2))];
        disk.fail_next(Operation::Create, nth, ErrorKind::StorageFull);
        let refused = wheel.file(&batch).expect_err("one of the logs has no file");
        assert!(matches!(&refused, FileError::Timer(error) if error.wants_room()), "{refused}");
        assert_eq!(wheel.pending(), 0, "file {nth}");
        wheel.file(&batch).expect("there is room");
        assert_eq!((wheel.pending(), near_adds(&wheel, 105)), (2, vec![1]), "file {nth}");
    }
}
