//! Disks that are full, that fail, and that lose power at any line.

use std::io::ErrorKind;

use timerlog::disk::Operation;

use super::*;
use crate::clock::{Now, Timestamp};
use crate::stage::{Progress, Stage};

fn has_all(index: &Index, numbers: std::ops::Range<u64>) -> bool {
    numbers.into_iter().all(|n| index.newest(key(n)).unwrap() == Some(at(n)))
}

/// The disk has no room for a run: the table stays in memory, the producers are refused, and when there
/// is room again all goes on as if nothing had been.
#[test]
fn a_full_disk_costs_time_and_nothing_else() {
    let disk = SimDisk::new(1);
    let index = empty(&disk);
    fill(&index, 0..300);
    work_all(&index);
    let files = disk.files();
    disk.set_capacity(Some(disk.allocated()));
    let mut next = 300;
    while index.has_room() {
        index.insert(key(next), at(next));
        next += 1;
        while index.step().is_ok_and(|worked| worked) {}
    }
    for _ in 0..3 {
        assert!(index.step().unwrap_err().is_full());
        assert!(index.capture().unwrap_err().is_full());
    }
    assert!(disk.files().iter().all(|file| files.contains(file)), "nothing is left over");
    assert!(has_all(&index, 0..next));
    disk.set_capacity(None);
    let manifest = index.capture().unwrap();
    assert!(index.has_room());
    work_all(&index);
    assert!(has_all(&index, 0..next));
    disk.crash(&mut Random::new(5));
    assert!(has_all(&open(&disk, Some(&manifest)).unwrap(), 0..next));
}

/// Some file systems find out only while writing. The half-written file goes, its number with it.
#[test]
fn a_disk_that_fills_while_a_file_is_written_is_no_different() {
    for nth in 1..60 {
        let disk = SimDisk::new(1);
        let index = empty(&disk);
        disk.fail_next(Operation::Write, nth, ErrorKind::StorageFull);
        let mut failures = 0;
        for number in 0..600 {
            index.insert(key(number), at(number));
            if number % 20 == 0 {
                failures += u64::from(index.step().is_err_and(|error| error.is_full()));
            }
        }
        assert_eq!(failures, 1, "write {nth}");
        work_all(&index);
        assert!(has_all(&index, 0..600), "write {nth}");
        index.capture().unwrap();
        index.checkpointed();
        work_all(&index);
        assert_eq!(disk.files().len(), index.figures().runs, "write {nth}");
    }
}

/// After a failed sync nobody knows what the disk has. The index says so for ever, and no checkpoint
/// lists what it wrote then.
#[test]
fn after_a_failed_sync_nothing_is_written_or_captured_any_more() {
    let full = ErrorKind::StorageFull;
    for (operation, kind) in [
        (Operation::Sync, ErrorKind::Other),
        (Operation::Sync, full),
        (Operation::SyncDirectory, ErrorKind::Other),
        (Operation::SyncDirectory, full),
        (Operation::Write, ErrorKind::Other),
    ] {
        let disk = SimDisk::new(1);
        let index = empty(&disk);
        fill(&index, 0..200);
        let manifest = index.capture().unwrap();
        fill(&index, 200..300);
        disk.fail_next(operation, 1, kind);
        let failed = index.capture().unwrap_err();
        assert!(matches!(&failed, IndexError::Disk(error) if error.operation == operation));
        let writes = disk.counters().writes;
        assert!(index.step().is_err());
        assert!(index.capture().is_err());
        assert_eq!(disk.counters().writes, writes);
        // Look-ups go on, and the checkpoint before stands.
        assert!(has_all(&index, 0..300));
        disk.crash(&mut Random::new(3));
        assert!(has_all(&open(&disk, Some(&manifest)).unwrap(), 0..200));
    }
}

/// A page rots, and a merge comes to it before any look-up. It is told once; then all goes on with that
/// run as it is, and the next start builds the index anew instead of meeting it again.
#[test]
fn a_run_that_a_merge_cannot_read_is_worked_around_until_the_next_start() {
    let disk = SimDisk::new(1);
    let index = Arc::new(empty(&disk));
    for number in 0..4 {
        index.insert(key(number), at(number));
        index.capture().unwrap();
    }
    index.checkpointed();
    disk.flip_bit(&disk.files()[2], 5000, 3);
    let errors: usize = (4..1000).map(|number| errors_of_insert(&index, number)).sum();
    assert_eq!((errors, index.figures().condemned_runs), (1, 1));
    assert!(index.newest(key(2)).is_err());
    assert!(has_all(&index, 0..2) && has_all(&index, 3..1000));
    let manifest = index.capture().unwrap();
    disk.kill();
    let damaged = open(&disk, Some(&manifest)).unwrap_err();
    assert!(matches!(damaged, IndexError::Damaged { damage: Damage::Missing, .. }), "{damaged}");
}

fn errors_of_insert(index: &Index, number: u64) -> usize {
    index.insert(key(number), at(number));
    let mut errors = 0;
    loop {
        match index.step() {
            Ok(true) => {}
            Ok(false) => return errors,
            Err(error) => {
                errors += 1;
                assert!(!error.is_fatal() && errors < 3, "{error}");
            }
        }
    }
}

/// Here a look-up is the first. The run goes once all of it is forgotten, and with it the reason to build
/// anew.
#[test]
fn a_condemned_run_is_forgotten_as_any_other() {
    let disk = SimDisk::new(1);
    let index = empty(&disk);
    (0..10).for_each(|number| index.insert(key(number), at(number)));
    index.capture().unwrap();
    index.checkpointed();
    disk.flip_bit(&disk.files()[0], 5000, 3);
    assert!(index.newest(key(1)).is_err());
    work_all(&index);
    assert!(disk.files().is_empty());
    fill(&index, 10..100);
    index.forget_below(at(50));
    let manifest = index.capture().unwrap();
    index.checkpointed();
    work_all(&index);
    assert_eq!(index.figures().condemned_runs, 0);
    disk.kill();
    assert!(has_all(&open(&disk, Some(&manifest)).unwrap(), 50..100));
}

/// A bad sector under a page is an error of the look-ups that need it, and of no other.
#[test]
fn a_page_that_cannot_be_read_is_an_error_of_its_keys_only() {
    let disk = SimDisk::new(1);
    let index = Index::empty(disk.root()).unwrap();
    (0..1000).for_each(|number| index.insert(key(number), at(number)));
    index.capture().unwrap();
    disk.flip_bit(&disk.files()[0], 4096 + 4096 + 100, 0);
    let failed = (0..1000).filter(|&number| index.newest(key(number)).is_err()).count();
    assert_eq!(failed, 255, "those of the second page");
    let mut over = (0..1000).map(|n| index.newest_first(key(n), None)).find_map(|mut offsets| {
        offsets.next().is_some_and(|first| first.is_err()).then_some(offsets)
    });
    assert!(over.as_mut().unwrap().next().is_none(), "an error is the last item");
    disk.fail_next(Operation::Read, 1, ErrorKind::Other);
    assert!((0..10).any(|n| matches!(index.newest(key(n)), Err(IndexError::Disk(_)))));
}

/// Cuts the power at each change of a life with runs, merges, removals and checkpoints; every time the
/// last checkpoint written is good.
#[test]
fn the_power_may_go_at_any_line() {
    let life = |disk: &SimDisk| -> (Option<Vec<u8>>, u64) {
        let mut checkpoint = (None, 0);
        let mut live = || -> Result<(), IndexError> {
            let index = open(disk, None)?;
            for number in 0..400 {
                index.insert(key(number), at(number));
                if number % 9 == 0 {
                    index.step()?;
                }
                if number % 90 == 89 {
                    checkpoint = (Some(index.capture()?), number + 1);
                    index.checkpointed();
                }
            }
            while index.step()? {}
            Ok(())
        };
        let lived = live();
        assert!(lived.is_ok() || disk.is_cut(), "{lived:?}");
        checkpoint
    };
    let mut cuts = 0;
    for changes in 1.. {
        let disk = SimDisk::new(changes);
        disk.cut_after(changes);
        let (manifest, upto) = life(&disk);
        if !disk.is_cut() {
            break;
        }
        cuts += 1;
        disk.crash(&mut Random::new(changes));
        let index = open(&disk, manifest.as_deref()).unwrap();
        assert!(has_all(&index, 0..upto), "cut at change {changes}");
        assert!((upto..400).all(|n| index.newest(key(n)).unwrap().is_none()));
    }
    assert!(cuts > 100, "{cuts} cuts");
}

#[test]
fn the_stage_waits_out_a_full_disk_and_ends_over_a_broken_one() {
    let disk = SimDisk::new(1);
    let index = Arc::new(empty(&disk));
    let mut stage = IndexStage::new(Arc::clone(&index));
    let now = Now { wall: Timestamp::from_millis(5000), monotonic: std::time::Duration::ZERO };
    assert_eq!(stage.step(now).unwrap(), Progress::Idle);
    fill(&index, 0..40);
    disk.set_capacity(Some(0));
    let retry = Progress::IdleUntil(Timestamp::from_millis(6000));
    assert_eq!(stage.step(now).unwrap(), retry);
    disk.set_capacity(None);
    assert_eq!(stage.step(now).unwrap(), Progress::Worked);
    disk.flip_bit(&disk.files()[0], 5000, 3);
    assert!((0..32).any(|n| index.newest(key(n)).is_err()));
    assert_eq!(stage.step(now).unwrap(), Progress::Worked, "its file goes");
    fill(&index, 40..80);
    disk.fail_next(Operation::Sync, 1, ErrorKind::Other);
    assert_eq!(stage.step(now).unwrap_err().stage, "index");
}
