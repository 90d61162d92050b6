//! What a wheel is after a crash, with every file that can be missing or wrong.

use std::io::ErrorKind;

use super::*;
use crate::disk::Operation;
use crate::disk::sim::Random;
use crate::error::{Damage, DamageKind, TimerError};

/// A wheel with something in both rings, some of it settled, and a snapshot halfway.
fn filled(disk: &SimDisk) -> (TimerWheel, TimerCheckpoint) {
    let mut wheel = small(disk, 100);
    for n in 0..600 {
        add(&mut wheel, 1000 + n % 150, n);
        if n % 10 == 9 {
            cancel(&mut wheel, 1000 + (n - 3) % 150, n - 3);
        }
        if n == 150 {
            settle(&mut wheel);
            wheel.snapshot().expect("snapshot");
        }
    }
    settle(&mut wheel);
    wheel.flush().expect("flush");
    let checkpoint = wheel.checkpoint();
    (wheel, checkpoint)
}

fn refused(disk: &SimDisk, checkpoint: &TimerCheckpoint) -> (String, DamageKind) {
    match TimerWheel::open(directory(disk), SMALL, checkpoint) {
        Err(TimerError::NeedsRebuild(damage)) => (damage.file, damage.kind),
        other => panic!("expected a rebuild, got {other:?}"),
    }
}

#[test]
fn a_wheel_is_after_a_power_cut_what_it_was_at_the_checkpoint() {
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        let (mut wheel, checkpoint) = filled(&disk);
        let expected = dump(&wheel);
        add(&mut wheel, 1077, 777);
        settle(&mut wheel);
        disk.crash(&mut Random::new(seed));
        let wheel = reopen(&disk, &checkpoint);
        assert_eq!(dump(&wheel), expected, "seed {seed}");
        assert!(wheel.recovery().snapshot.is_some());
        assert!(wheel.recovery().replayed > 0);
        assert_eq!(wheel.checkpoint(), checkpoint);
    }
}

#[test]
fn without_its_snapshot_a_wheel_is_the_same() {
    let disk = SimDisk::new(1);
    let (wheel, checkpoint) = filled(&disk);
    let expected = dump(&wheel);
    disk.kill();
    let snapshot = disk.files().into_iter().find(|path| path.contains("snapshot-"));
    disk.remove_tree(&snapshot.expect("one was taken"));
    let wheel = reopen(&disk, &checkpoint);
    assert_eq!(dump(&wheel), expected);
    assert_eq!(wheel.recovery().snapshot, None);
}

#[test]
fn with_any_bit_of_its_snapshot_turned_over_a_wheel_is_the_same() {
    let disk = SimDisk::new(1);
    let (wheel, checkpoint) = filled(&disk);
    let expected = dump(&wheel);
    let snapshot = disk.files().into_iter().find(|path| path.contains("snapshot-"));
    let path = snapshot.expect("one was taken");
    let whole = disk.content(&path);
    for offset in 0..whole.len() as u64 {
        disk.kill();
        directory(&disk).create(&path[6..], whole.len() as u64).map(drop).unwrap_or_default();
        disk.edit(&path, |bytes| bytes.clone_from(&whole));
        disk.flip_bit(&path, offset, u8::try_from(offset % 8).expect("below 8"));
        let wheel = reopen(&disk, &checkpoint);
        assert_eq!(dump(&wheel), expected, "byte {offset}");
        assert_eq!(wheel.recovery().damaged.len(), 1, "it is reported");
        assert!(!disk.files().contains(&path), "and removed");
    }
}

#[test]
fn a_snapshot_that_cannot_be_read_is_passed_over() {
    let disk = SimDisk::new(1);
    let (wheel, checkpoint) = filled(&disk);
    let expected = dump(&wheel);
    disk.kill();
    let headers = disk.files().iter().filter(|path| !path.contains("snapshot")).count() as u64;
    disk.fail_next(Operation::Read, headers + 1, ErrorKind::Other);
    let wheel = reopen(&disk, &checkpoint);
    assert_eq!(dump(&wheel), expected);
    assert_eq!(wheel.recovery().damaged.len(), 1);
}

/// A snapshot from after the checkpoint knows slots as empty that were settled only later, even
/// when nothing was filed in between and both lie at the same length of the log. Taking it would lose
/// them; leaving it there would have it taken later, when its revision has come round again.
#[test]
fn a_snapshot_from_after_the_checkpoint_is_removed() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    add(&mut wheel, 1001, 1);
    wheel.flush().expect("flush");
    let checkpoint = wheel.checkpoint();
    settle(&mut wheel);
    wheel.snapshot().expect("snapshot");
    assert_eq!(disk.files().iter().filter(|path| path.contains("snapshot-")).count(), 1);
    disk.kill();
    let mut wheel = reopen(&disk, &checkpoint);
    assert_eq!(near_adds(&wheel, 100), [1]);
    assert_eq!(wheel.recovery().snapshot, None);
    add(&mut wheel, 1002, 2);
    let checkpoint = wheel.checkpoint();
    wheel.flush().expect("flush");
    disk.crash(&mut Random::new(4));
    assert_eq!(near_adds(&reopen(&disk, &checkpoint), 100), [1, 2]);
}

/// Whatever bit of a file that the checkpoint speaks of is turned over, the check names the file, and changes nothing.
#[test]
fn a_check_names_each_damaged_file_and_changes_nothing() {
    let disk = SimDisk::new(1);
    let (_, checkpoint) = filled(&disk);
    disk.kill();
    let whole = check(&directory(&disk), &SMALL, &checkpoint).unwrap();
    assert!(whole.damage.is_empty() && whole.read > 0, "{whole:?}");
    let mut named = 0;
    for path in disk.files() {
        let content = disk.content(&path);
        // What is not zero is written; most of a segment is room.
        let written = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        for offset in (0..written).step_by(13) {
            disk.flip_bit(&path, offset, 3);
            let before = disk.fingerprint();
            let checked = check(&directory(&disk), &SMALL, &checkpoint).unwrap();
            assert_eq!(disk.fingerprint(), before);
            let files: Vec<_> = checked.damage.iter().map(|damage| &damage.file).collect();
            if files.is_empty() {
                let opened = TimerWheel::open(directory(&disk), SMALL, &checkpoint);
                opened.unwrap_or_else(|error| panic!("{path}, byte {offset}: {error}"));
            } else {
                assert_eq!(files, [&path], "byte {offset}");
                named += 1;
            }
            disk.flip_bit(&path, offset, 3);
        }
    }
    assert!(named > 20, "{named}");
}

#[test]
fn a_missing_or_damaged_log_needs_a_rebuild_and_names_the_file() {
    let disk = SimDisk::new(1);
    let (_, checkpoint) = filled(&disk);
    let logs: Vec<_> = disk.files().into_iter().filter(|path| !path.contains("snapshot")).collect();
    assert!(logs.len() >= 3, "{logs:?}");
    for path in logs {
        disk.kill();
        let whole = disk.content(&path);
        let (folder, name) = path.rsplit_once('/').expect("in a folder");
        disk.remove_tree(&path);
        assert_eq!(refused(&disk, &checkpoint), (path.clone(), DamageKind::Missing));
        let track = directory(&disk).subdirectory(&folder[6..]).expect("there");
        track.create(name, whole.len() as u64).expect("create");
        assert_eq!(refused(&disk, &checkpoint).0, path, "zeros are no log");
        disk.edit(&path, |bytes| *bytes = whole[..whole.len() - 1].to_vec());
        assert_eq!(refused(&disk, &checkpoint).0, path, "a byte is missing");
        disk.edit(&path, |bytes| bytes.clone_from(&whole));
        reopen(&disk, &checkpoint);
    }
    disk.remove_tree("wheel/near");
    let checked = check(&directory(&disk), &SMALL, &checkpoint).unwrap();
    assert_eq!(checked.damage, [Damage::of("wheel/near".to_owned(), DamageKind::Missing)]);
    assert_eq!(refused(&disk, &checkpoint).1, DamageKind::Missing);
    let mut wheel = small(&disk, 100);
    add(&mut wheel, 1005, 1);
    assert_eq!(wheel.pending(), 1, "it was made anew");
}

#[test]
fn a_bit_turned_over_in_a_log_is_noticed_on_replay_or_on_the_walk() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    for n in 0..6 {
        add(&mut wheel, 1050, n);
        if n == 3 {
            wheel.snapshot().expect("snapshot");
        }
    }
    wheel.flush().expect("flush");
    let checkpoint = wheel.checkpoint();
    for offset in 0..7 * 48 {
        for bit in 0..8 {
            disk.kill();
            disk.flip_bit("wheel/near/00000000000000000000", offset, bit);
            let walked = TimerWheel::open(directory(&disk), SMALL, &checkpoint).and_then(|wheel| {
                let last = wheel.slot(105).expect("occupied").last;
                Ok(wheel.reader().walk(last, None, 105, |_| {})?)
            });
            assert!(walked.is_err(), "bit {bit} of byte {offset}");
            disk.flip_bit("wheel/near/00000000000000000000", offset, bit);
        }
    }
}

#[test]
fn a_wheel_of_other_measures_needs_a_rebuild() {
    let disk = SimDisk::new(1);
    let (_, checkpoint) = filled(&disk);
    let config = Config { precision_ms: 20, ..SMALL };
    let result = TimerWheel::open(directory(&disk), config, &checkpoint);
    let Err(TimerError::NeedsRebuild(damage)) = result else { panic!("it opened") };
    assert_eq!(damage.kind, DamageKind::OtherMeasures);
}

#[test]
fn files_that_nothing_leads_to_are_released_and_not_missed() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    let mut checkpoint = wheel.checkpoint();
    for round in 0..40 {
        for n in 0..50 {
            add(&mut wheel, (100 + round) * 10 + n % 90, round * 50 + n);
        }
        refile_all(&mut wheel);
        settle(&mut wheel);
        wheel.snapshot().expect("snapshot");
        wheel.flush().expect("flush");
        checkpoint = wheel.checkpoint();
        wheel.release(&checkpoint).expect("release");
    }
    assert!(wheel.log_bytes() < 4 * 12_288, "{} bytes are kept", wheel.log_bytes());
    let logs = disk.files().iter().filter(|path| !path.contains("snapshot")).count();
    assert!(logs <= 5, "{logs} files");
    let expected = dump(&wheel);
    disk.crash(&mut Random::new(1));
    assert_eq!(dump(&reopen(&disk, &checkpoint)), expected);
    disk.files().iter().filter(|path| path.contains("snapshot")).for_each(|path| {
        disk.remove_tree(path);
    });
    assert_eq!(dump(&reopen(&disk, &checkpoint)), expected, "from what is left of the logs");
}

#[test]
fn after_a_failed_sync_the_wheel_refuses_everything() {
    let disk = SimDisk::new(1);
    let (mut wheel, checkpoint) = filled(&disk);
    let expected = dump(&wheel);
    add(&mut wheel, 1077, 777);
    disk.fail_next(Operation::Sync, 1, ErrorKind::Other);
    assert!(wheel.flush().is_err());
    let syncs = disk.counters().syncs;
    assert!(wheel.flush().is_err());
    assert!(wheel.file(&[Filing::add(entry(1077, 778))]).is_err());
    assert_eq!(disk.counters().syncs, syncs, "nothing is synced again");
    disk.crash(&mut Random::new(1));
    assert_eq!(dump(&reopen(&disk, &checkpoint)), expected);
}

#[test]
fn one_seed_gives_one_disk() {
    let run = |seed| {
        let disk = SimDisk::new(seed);
        let (mut wheel, checkpoint) = filled(&disk);
        add(&mut wheel, 1077, 777);
        disk.crash(&mut Random::new(seed));
        drop(reopen(&disk, &checkpoint));
        disk.fingerprint()
    };
    assert_eq!(run(5), run(5));
}

/// An old checkpoint can turn up again when the newest is damaged. If a rebuild lies between, the
/// logs hold other records at the same lengths: cutting them there would lose some.
#[test]
fn a_checkpoint_from_before_a_rebuild_is_not_taken_for_one_of_the_new_wheel() {
    let disk = SimDisk::new(1);
    let (mut wheel, old) = filled(&disk);
    wheel = {
        drop(wheel);
        let origin = Origin { read_time: 100, lineage: 2 };
        TimerWheel::create(directory(&disk), SMALL, origin).expect("create")
    };
    for n in 0..600 {
        add(&mut wheel, 1000 + n % 150, n);
    }
    wheel.flush().expect("flush");
    disk.kill();
    assert_eq!(refused(&disk, &old).1, DamageKind::Misplaced);
    reopen(&disk, &wheel.checkpoint());
}

/// A slot that was settled, then opened again by a step back, comes back to life when its snapshot is
/// lost and the log is all there is. That does no harm: its entries are settled. But the older part
/// of its chain may have been released, and then the rest of it must not look like damage.
#[test]
fn a_settled_chain_that_was_released_in_part_is_no_damage_to_a_replay() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    for n in 0..400 {
        add(&mut wheel, 1001, n);
    }
    add(&mut wheel, 1050, 999);
    settle(&mut wheel);
    wheel.step_back(100);
    wheel.flush().expect("flush");
    let checkpoint = wheel.checkpoint();
    wheel.release(&checkpoint).expect("release");
    assert_eq!(disk.files().iter().filter(|path| path.contains("near/")).count(), 1);
    disk.kill();
    let snapshot = disk.files().into_iter().find(|path| path.contains("snapshot-"));
    disk.remove_tree(&snapshot.expect("the step back took one"));
    let wheel = reopen(&disk, &checkpoint);
    assert_eq!(near_adds(&wheel, 105), [999]);
    assert_eq!(wheel.slot(100), None, "all of it lies below the floor");

    // The same with the floor in the midst of the chain.
    let between = TimerCheckpoint { near_floor: checkpoint.near_floor - 48 * 50, ..checkpoint };
    let wheel = reopen(&disk, &between);
    assert_eq!(near_adds(&wheel, 100).len(), 50);
    assert_eq!(near_adds(&wheel, 105), [999]);
}

/// The checkpoint has a crc, so these cannot come from rot; but a mistake in the owner's store must
/// end in a rebuild, too, and neither in a panic nor in a wheel that lacks something.
#[test]
fn a_checkpoint_that_does_not_fit_the_files_needs_a_rebuild() {
    let disk = SimDisk::new(1);
    let (wheel, checkpoint) = filled(&disk);
    let (first, _) = wheel.slots_in(0..u64::MAX)[0];
    disk.kill();
    let early = TimerCheckpoint { read_time: first - 14, ..checkpoint };
    let kind = refused(&disk, &early).1;
    assert!(matches!(kind, DamageKind::OutsideWindow { .. }), "{kind:?}");
}

#[test]
fn a_snapshot_of_more_than_the_checkpointed_log_is_passed_over() {
    let disk = SimDisk::new(1);
    let (wheel, checkpoint) = filled(&disk);
    let expected = dump(&wheel);
    drop(wheel);
    let mut later = reopen(&disk, &checkpoint);
    let mut snapshot = later.capture();
    snapshot.head.near_length += 48;
    snapshot.write(&*directory(&disk)).expect("write");
    disk.kill();
    let wheel = reopen(&disk, &checkpoint);
    assert_eq!(dump(&wheel), expected);
    assert_eq!(wheel.recovery().damaged[0].kind, DamageKind::BeyondCheckpoint);
    snapshot.head.near_length = checkpoint.near_length - 48 * 40;
    snapshot.write(&*directory(&disk)).expect("write");
    disk.kill();
    let wheel = reopen(&disk, &checkpoint);
    assert_eq!(dump(&wheel), expected);
    let kind = &wheel.recovery().damaged[0].kind;
    assert!(matches!(kind, DamageKind::PastEnd { .. }), "{kind:?}");
}
