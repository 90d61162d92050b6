//! That the simulated disk loses what it says it loses, and nothing else.

use super::*;

const PAGE: usize = 4096;

fn written(disk: &SimDisk) -> Arc<dyn crate::disk::File> {
    let root = disk.root();
    let file = root.create("file", 4 * PAGE as u64).expect("create");
    file.sync().expect("sync");
    root.sync().expect("sync directory");
    file.write_at(0, &[1; 4 * PAGE]).expect("write");
    file
}

#[test]
fn what_was_synced_survives_a_power_cut() {
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        written(&disk).sync().expect("sync");
        disk.crash(&mut Random::new(seed));
        assert_eq!(disk.content("file"), vec![1; 4 * PAGE], "seed {seed}");
    }
}

#[test]
fn an_unsynced_page_is_new_old_or_torn_at_sectors_and_all_three_occur() {
    let (mut new, mut old, mut torn) = (0, 0, 0);
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        written(&disk);
        disk.crash(&mut Random::new(seed));
        for page in disk.content("file").chunks(PAGE) {
            for sector in page.chunks(512) {
                assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is whole");
            }
            match page.iter().filter(|byte| **byte == 1).count() {
                PAGE => new += 1,
                0 => old += 1,
                _ => torn += 1,
            }
        }
    }
    assert!(new > 20 && old > 20 && torn > 20, "new {new}, old {old}, torn {torn}");
}

#[test]
fn a_process_crash_keeps_the_page_cache_but_makes_nothing_durable() {
    let mut lost = 0;
    for seed in 0..20 {
        let disk = SimDisk::new(seed);
        written(&disk);
        disk.kill();
        assert_eq!(disk.content("file"), vec![1; 4 * PAGE]);
        disk.crash(&mut Random::new(seed));
        lost += u32::from(disk.content("file") != vec![1; 4 * PAGE]);
    }
    assert!(lost > 10, "only {lost} of 20 power cuts lost anything");
}

#[test]
fn what_a_failed_sync_dropped_no_later_sync_saves() {
    for seed in 0..20 {
        let disk = SimDisk::new(seed);
        let file = written(&disk);
        disk.fail_next(Operation::Sync, 1, io::ErrorKind::Other);
        assert!(file.sync().is_err());
        assert_eq!(disk.content("file"), vec![1; 4 * PAGE], "readers still see it");
        file.write_at(0, &[2; PAGE]).expect("rewrite the first page");
        file.sync().expect("the kernel answers as if all were well");
        disk.crash(&mut Random::new(seed));
        let content = disk.content("file");
        assert_eq!(content[..PAGE], [2; PAGE], "rewritten and synced");
        assert_eq!(content[PAGE..], [0; 3 * PAGE], "dropped");
    }
}

#[test]
fn a_prefix_of_the_unsynced_names_survives() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let disk = SimDisk::new(seed);
        let root = disk.root();
        for name in ["a", "b", "c"] {
            root.create(name, 0).expect("create");
        }
        root.rename("a", "d").expect("rename");
        disk.crash(&mut Random::new(seed));
        seen.insert(disk.files().concat());
    }
    let expected = ["", "a", "ab", "abc", "bcd"].map(str::to_owned);
    assert_eq!(seen, expected.into());
}

#[test]
fn a_file_that_was_never_synced_may_lose_its_length() {
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let disk = SimDisk::new(seed);
        let root = disk.root();
        root.create("file", 100).expect("create");
        root.sync().expect("sync directory");
        disk.crash(&mut Random::new(seed));
        lengths.insert(disk.content("file").len());
    }
    assert_eq!(lengths, [0, 100].into());
}

#[test]
fn handles_of_an_earlier_life_are_dead_and_its_locks_are_free() {
    let disk = SimDisk::new(1);
    let root = disk.root();
    let file = written(&disk);
    let lock = root.lock("lock", "process 1").expect("lock");
    disk.kill();
    assert!(root.list().is_err());
    assert!(file.write_at(0, &[9]).is_err());
    assert!(file.sync().is_err());
    let mine = disk.root().lock("lock", "process 2").expect("the kill freed it");
    drop(lock);
    let refused = disk.root().lock("lock", "process 3").expect_err("process 2 still has it");
    assert!(refused.to_string().contains("process 2"), "{refused}");
    drop(mine);
}

#[test]
fn the_power_can_be_cut_at_any_change() {
    let disk = SimDisk::new(1);
    let file = written(&disk);
    disk.cut_after(2);
    file.write_at(0, &[2]).expect("the first change happens");
    assert!(file.sync().is_err(), "the second is cut");
    assert!(file.read_at(0, &mut [0]).is_err(), "and nothing works any more");
    assert!(disk.is_cut());
    disk.crash(&mut Random::new(3));
    assert!(disk.root().open("file").is_ok());
}

#[test]
fn a_planned_error_strikes_the_nth_call_once() {
    let disk = SimDisk::new(1);
    let file = written(&disk);
    disk.fail_next(Operation::Write, 2, io::ErrorKind::StorageFull);
    file.write_at(0, &[2]).expect("the first");
    let full = file.write_at(0, &[3]).expect_err("the second");
    assert!(full.is_full());
    file.write_at(0, &[4]).expect("the third");
}

#[test]
fn a_full_disk_refuses_a_file_and_leaves_nothing() {
    let disk = SimDisk::new(1);
    disk.set_capacity(Some(100));
    let root = disk.root();
    root.create("a", 60).expect("fits");
    assert!(root.create("b", 60).expect_err("does not fit").is_full());
    assert_eq!(disk.files(), ["a"]);
    disk.set_capacity(None);
    root.create("b", 60).expect("fits now");
}

#[test]
fn rot_is_in_both_images() {
    let disk = SimDisk::new(1);
    let file = written(&disk);
    disk.flip_bit("file", 5, 1);
    let mut byte = [0];
    file.read_at(5, &mut byte).expect("read");
    assert_eq!(byte, [3]);
    disk.edit("file", |bytes| bytes.truncate(7));
    assert_eq!(disk.content("file"), [1, 1, 1, 1, 1, 3, 1]);
    disk.remove_tree("file");
    disk.crash(&mut Random::new(1));
    assert!(disk.files().is_empty());
}

#[test]
fn one_seed_gives_one_disk_and_another_gives_another() {
    let run = |seed| {
        let disk = SimDisk::new(seed);
        written(&disk);
        disk.root().subdirectory("below").expect("make").create("b", 9).expect("create");
        let before = disk.fingerprint();
        disk.crash(&mut Random::new(seed));
        (before, disk.fingerprint())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).1, run(8).1);
    assert_ne!(run(7).0, run(7).1);
}

#[test]
fn the_counters_count_calls_and_bytes() {
    let disk = SimDisk::new(1);
    let before = disk.counters();
    written(&disk).sync().expect("sync");
    let after = disk.counters();
    assert_eq!(after.syncs - before.syncs, 2);
    assert_eq!(after.directory_syncs, 1);
    assert_eq!(after.bytes_written, 4 * PAGE as u64);
}
