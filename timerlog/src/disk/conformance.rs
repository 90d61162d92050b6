//! What both disks must do, in one suite that is run against each.

use std::sync::Arc;

use super::sim::SimDisk;
use super::{Directory, OsDirectory};

/// Runs `check` on an empty directory of the operating system and on a simulated one.
fn on_both(check: fn(&dyn Directory)) {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    check(&OsDirectory::open(temporary.path().join("root")).expect("open"));
    let disk = SimDisk::new(1);
    check(&*disk.root());
}

#[test]
fn a_new_file_is_all_zeros_and_has_its_length() {
    on_both(|directory| {
        let file = directory.create("a", 10_000).expect("create");
        assert_eq!(file.length(), 10_000);
        let mut bytes = vec![7; 10_000];
        file.read_at(0, &mut bytes).expect("read");
        assert_eq!(bytes, vec![0; 10_000]);
    });
}

#[test]
fn what_was_written_is_read_by_every_way() {
    on_both(|directory| {
        let file = directory.create("a", 10_000).expect("create");
        let mapping = file.map().expect("map");
        file.write_at(4_090, b"across two pages").expect("write");
        let other = directory.open("a").expect("open");
        assert_eq!(other.length(), 10_000);
        let mut bytes = [0; 16];
        other.read_at(4_090, &mut bytes).expect("read");
        assert_eq!(&bytes, b"across two pages");
        bytes.fill(0);
        assert!(mapping.read(4_090, &mut bytes));
        assert_eq!(&bytes, b"across two pages");
    });
}

#[test]
fn nothing_is_read_or_written_past_the_end() {
    on_both(|directory| {
        let file = directory.create("a", 100).expect("create");
        let mapping = file.map().expect("map");
        assert!(file.write_at(96, b"12345").is_err());
        assert!(file.read_at(96, &mut [0; 5]).is_err());
        assert!(!mapping.read(96, &mut [0; 5]));
        assert!(!mapping.read(u64::MAX, &mut [0; 5]));
        assert!(mapping.read(95, &mut [0; 5]));
        assert_eq!(directory.open("a").expect("open").length(), 100);
    });
}

#[test]
fn an_empty_file_can_be_made_synced_and_mapped() {
    on_both(|directory| {
        let file = directory.create("a", 0).expect("create");
        file.sync().expect("sync");
        assert!(file.map().expect("map").read(0, &mut []));
    });
}

#[test]
fn a_name_is_taken_once() {
    on_both(|directory| {
        directory.create("a", 1).expect("create");
        let refused = directory.create("a", 1).expect_err("the name is taken");
        assert!(refused.is_already_exists());
        assert!(refused.to_string().starts_with("cannot create "), "{refused}");
        assert!(directory.open("b").expect_err("there is no such file").is_not_found());
        assert!(directory.remove("b").expect_err("there is no such file").is_not_found());
        assert!(directory.rename("b", "c").expect_err("there is no such file").is_not_found());
    });
}

#[test]
fn names_are_listed_in_order_files_apart_from_directories() {
    on_both(|directory| {
        for name in ["c", "a", "b"] {
            directory.create(name, 1).expect("create");
        }
        directory.subdirectory("z").expect("subdirectory");
        directory.subdirectory("y").expect("subdirectory");
        assert_eq!(directory.list().expect("list"), ["a", "b", "c"]);
        assert_eq!(directory.subdirectories().expect("list"), ["y", "z"]);
    });
}

#[test]
fn a_subdirectory_is_made_once_and_keeps_its_files() {
    on_both(|directory| {
        let below = directory.subdirectory("below").expect("made");
        below.create("a", 1).expect("create");
        below.sync().expect("sync");
        directory.sync().expect("sync");
        let again = directory.subdirectory("below").expect("found");
        assert_eq!(again.list().expect("list"), ["a"]);
        assert!(again.path().ends_with("below"));
    });
}

#[test]
fn a_file_is_not_a_subdirectory_and_the_other_way_round() {
    on_both(|directory| {
        directory.create("file", 1).expect("create");
        directory.subdirectory("below").expect("made");
        assert!(directory.subdirectory("file").is_err());
        assert!(directory.open("below").is_err());
        assert!(directory.create("below", 1).expect_err("taken").is_already_exists());
    });
}

#[test]
fn a_rename_replaces_and_a_removed_file_can_still_be_read() {
    on_both(|directory| {
        let old = directory.create("old", 3).expect("create");
        old.write_at(0, b"old").expect("write");
        let new = directory.create("new", 3).expect("create");
        new.write_at(0, b"new").expect("write");
        directory.rename("new", "old").expect("rename");
        assert_eq!(directory.list().expect("list"), ["old"]);
        let mut bytes = [0; 3];
        directory.open("old").expect("open").read_at(0, &mut bytes).expect("read");
        assert_eq!(&bytes, b"new");
        old.read_at(0, &mut bytes).expect("the handle goes on working");
        assert_eq!(&bytes, b"old");
        let mapping = new.map().expect("map");
        directory.remove("old").expect("remove");
        assert!(mapping.read(0, &mut bytes));
        assert!(directory.list().expect("list").is_empty());
    });
}

#[test]
fn a_lock_is_held_once_and_the_refusal_names_the_holder() {
    on_both(|directory| {
        let lock = directory.lock("lock", "horolog, process 17").expect("lock");
        let refused = directory.lock("lock", "horolog, process 18").expect_err("it is held");
        assert!(refused.is_locked());
        assert!(refused.to_string().contains("horolog, process 17"), "{refused}");
        drop(lock);
        let lock = directory.lock("lock", "18").expect("free again");
        let refused = directory.lock("lock", "19").expect_err("it is held");
        assert!(refused.to_string().ends_with("held by 18"), "{refused}");
        drop(lock);
        assert_eq!(directory.list().expect("list"), ["lock"]);
    });
}

#[test]
fn two_threads_may_use_one_file() {
    on_both(|directory| {
        let file = directory.create("a", 8192).expect("create");
        let other = Arc::clone(&file);
        let send_and_sync: &(dyn Send + Sync) = &other;
        let _ = send_and_sync;
        file.write_at(0, &[1]).expect("write");
        other.write_at(4096, &[2]).expect("write");
        file.sync().expect("sync");
    });
}

#[test]
fn what_was_never_written_is_passed_over_in_the_search_for_data() {
    on_both(|directory| {
        let file = directory.create("log", 1 << 20).unwrap();
        file.write_at(300_000, b"x").unwrap();
        let found = file.next_data(0).unwrap().unwrap();
        // A file system may answer by its own blocks, or not know; it must not pass over the byte.
        assert!(found <= 300_000, "{found}");
        assert_eq!(file.next_data(300_000).unwrap(), Some(300_000));
    });
}

#[test]
fn the_free_space_is_part_of_the_whole() {
    on_both(|directory| {
        let space = directory.space().unwrap();
        assert!(space.free > 0 && space.free <= space.total, "{space:?}");
    });
}

#[test]
fn a_lock_whose_file_is_gone_or_replaced_says_so() {
    on_both(|directory| {
        let lock = directory.lock("lock", "17").unwrap();
        lock.check().unwrap();
        directory.remove("lock").unwrap();
        let gone = lock.check().unwrap_err();
        assert!(gone.is_not_found() && gone.to_string().contains("lock"), "{gone}");
        directory.create("lock", 0).unwrap();
        lock.check().expect_err("it is another file of the same name");
    });
}
