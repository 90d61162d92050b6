//! The row against a plain vector of bytes, and against the power.

use std::io::ErrorKind;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::disk::sim::{Random, SimDisk};
use crate::disk::{Directory, Operation};
use crate::error::DamageKind;

const SIZE: u64 = 4096;

fn row(disk: &SimDisk, length: u64) -> Result<Row, RowError> {
    Row::open(directory(disk), SIZE, length)
}

fn directory(disk: &SimDisk) -> Arc<dyn Directory> {
    let root = disk.root();
    let directory = root.subdirectory("row").expect("make the directory");
    root.sync().expect("sync the root");
    directory
}

/// A row of `files` files, the last one half full, flushed.
fn filled(disk: &SimDisk, files: u64) -> Row {
    let mut row = row(disk, 0).expect("open");
    for file in 0..files {
        let count = if file + 1 == files { SIZE / 2 } else { SIZE };
        let byte = u8::try_from(file + 1).expect("few files");
        row.append(&vec![byte; usize::try_from(count).expect("small")]).expect("append");
    }
    row.flush().expect("flush");
    row
}

fn damage(result: Result<Row, RowError>) -> (String, DamageKind) {
    match result {
        Err(RowError::Damaged(damage)) => (damage.file, damage.kind),
        other => panic!("expected damage, got {other:?}"),
    }
}

#[test]
fn an_empty_directory_is_an_empty_row() {
    let row = row(&SimDisk::new(1), 0).expect("open");
    assert_eq!((row.begin(), row.length(), row.allocated(), row.room()), (0, 0, 0, SIZE));
}

#[test]
fn what_is_appended_is_read_by_every_reader() {
    let disk = SimDisk::new(1);
    let mut row = row(&disk, 0).expect("open");
    let reader = row.reader();
    assert_eq!(row.append(b"one").expect("append"), 0);
    assert_eq!(row.append(b"two").expect("append"), 3);
    let mut bytes = [0; 6];
    reader.clone().read(0, &mut bytes).expect("read");
    assert_eq!(&bytes, b"onetwo");
    reader.read_exact_from_disk(0, &mut bytes).expect("read");
    assert_eq!(&bytes, b"onetwo");
}

#[test]
fn nothing_past_what_is_committed_is_read_but_by_recovery() {
    let disk = SimDisk::new(1);
    let mut row = filled(&disk, 1);
    let reader = row.reader();
    assert_eq!(reader.committed(), SIZE / 2);
    assert!(reader.read(SIZE / 2 - 1, &mut [0; 2]).is_err());
    reader.read_exact_from_disk(SIZE / 2 - 1, &mut [0; 2]).expect("it is allocated");
    assert!(reader.read_exact_from_disk(SIZE - 1, &mut [0; 2]).is_err(), "it straddles");
    assert!(reader.read(u64::MAX, &mut [0; 2]).is_err());
    row.reset_length(10);
    assert!(reader.read(0, &mut [0; 11]).is_err());
    assert_eq!(row.append(b"x").expect("append"), 10);
}

#[test]
fn the_rest_of_a_file_can_be_skipped() {
    let disk = SimDisk::new(1);
    let mut row = filled(&disk, 1);
    row.skip_to_next_segment();
    assert_eq!((row.length(), row.room()), (SIZE, SIZE));
    row.skip_to_next_segment();
    assert_eq!(row.length(), SIZE, "at the start of a file there is nothing to skip");
    assert_eq!(row.append(b"x").expect("append"), SIZE);
}

#[test]
#[should_panic(expected = "straddle")]
fn an_append_that_straddles_is_a_bug() {
    let mut row = filled(&SimDisk::new(1), 1);
    let _ = row.append(&[0; 4096]);
}

#[test]
fn leftovers_past_the_trusted_length_are_space() {
    let disk = SimDisk::new(1);
    drop(filled(&disk, 3));
    disk.kill();
    let mut row = row(&disk, SIZE + 5).expect("open");
    assert_eq!((row.begin(), row.length(), row.allocated()), (0, SIZE + 5, 3 * SIZE));
    let creates = disk.counters().creates;
    row.append(b"new").expect("append");
    row.skip_to_next_segment();
    row.append(b"new").expect("append");
    assert_eq!(disk.counters().creates, creates, "the third file is used again");
}

#[test]
fn a_file_missing_in_the_middle_is_named() {
    let disk = SimDisk::new(1);
    drop(filled(&disk, 3));
    disk.remove_tree("row/00000000000000004096");
    let found = damage(row(&disk, 0));
    assert_eq!(found, ("row/00000000000000004096".to_owned(), DamageKind::Missing));
}

#[test]
fn a_row_shorter_than_its_trusted_length_is_damaged() {
    let disk = SimDisk::new(1);
    drop(filled(&disk, 2));
    assert!(row(&disk, 2 * SIZE).is_ok());
    let found = damage(row(&disk, 2 * SIZE + 1));
    assert_eq!(found, ("row/00000000000000008192".to_owned(), DamageKind::Missing));
}

#[test]
fn a_foreign_name_is_refused() {
    for name in ["notes.txt", "0000000000000004096", "00000000000000000001"] {
        let disk = SimDisk::new(1);
        directory(&disk).create(name, 1).expect("create");
        let found = damage(row(&disk, 0));
        assert_eq!(found, (format!("row/{name}"), DamageKind::ForeignName));
    }
}

#[test]
fn a_file_of_a_wrong_length_is_damage_unless_it_is_new_and_holds_nothing() {
    let disk = SimDisk::new(1);
    drop(filled(&disk, 3));
    disk.edit("row/00000000000000008192", |bytes| bytes.truncate(17));
    let kind = DamageKind::WrongLength { expected: SIZE, found: 17 };
    let found = damage(row(&disk, 2 * SIZE + 1));
    assert_eq!(found, ("row/00000000000000008192".to_owned(), kind));
    // Nothing trusted was in it, but what is left may be all there is of a log without a checkpoint.
    assert_eq!(damage(row(&disk, 2 * SIZE)).0, "row/00000000000000008192");
    for length in [17, 0] {
        disk.edit("row/00000000000000008192", |bytes| *bytes = vec![0; length]);
        let opened = row(&disk, 2 * SIZE).expect("a crash while it was made");
        assert_eq!(opened.allocated(), 2 * SIZE, "it is gone");
        let directory = directory(&disk);
        directory.create("00000000000000008192", SIZE).expect("made again");
    }
    disk.edit("row/00000000000000000000", |bytes| bytes.push(0));
    assert_eq!(damage(row(&disk, 0)).0, "row/00000000000000000000");
}

#[test]
fn released_files_are_gone_for_readers_and_after_a_reopen() {
    let disk = SimDisk::new(1);
    let mut released = filled(&disk, 4);
    let reader = released.reader();
    released.release(2 * SIZE + 1).expect("release");
    assert_eq!(released.begin(), 2 * SIZE);
    assert!(matches!(reader.read(SIZE, &mut [0]), Err(RowError::OutOfReach { .. })));
    reader.read(2 * SIZE, &mut [0]).expect("kept");
    let length = released.length();
    disk.crash(&mut Random::new(1));
    let opened = row(&disk, length).expect("open");
    assert_eq!((opened.begin(), opened.length()), (2 * SIZE, length));
    assert_eq!(row(&disk, 0).expect("open").length(), 2 * SIZE, "nothing trusted");
}

#[test]
fn the_newest_file_is_never_released() {
    let disk = SimDisk::new(1);
    let mut row = filled(&disk, 2);
    row.skip_to_next_segment();
    row.release(u64::MAX).expect("release");
    assert_eq!((row.begin(), row.allocated()), (SIZE, 2 * SIZE));
    assert_eq!(row.append(b"x").expect("append"), 2 * SIZE);
}

#[test]
fn a_full_disk_refuses_an_append_and_changes_nothing() {
    let disk = SimDisk::new(1);
    let mut row = filled(&disk, 1);
    row.skip_to_next_segment();
    disk.set_capacity(Some(SIZE));
    let full = row.append(b"x").expect_err("no room for a second file");
    assert!(matches!(full, RowError::Disk(error) if error.is_full()));
    assert_eq!((row.length(), row.allocated()), (SIZE, SIZE));
    disk.set_capacity(None);
    assert_eq!(row.append(b"x").expect("there is room again"), SIZE);
}

#[test]
fn after_a_failed_sync_everything_is_refused_and_no_file_is_synced_again() {
    let disk = SimDisk::new(1);
    let mut row = filled(&disk, 1);
    row.append(b"x").expect("append");
    disk.fail_next(Operation::Sync, 1, ErrorKind::Other);
    assert!(row.flush().is_err());
    let syncs = disk.counters().syncs;
    assert!(row.flush().is_err());
    assert!(row.append(b"x").is_err());
    assert!(row.prepare(0).is_err());
    assert!(row.write_at(0, b"x").is_err());
    assert!(row.release(0).is_err());
    assert_eq!(disk.counters().syncs, syncs);
}

#[test]
fn a_flush_syncs_what_is_dirty_once() {
    let disk = SimDisk::new(1);
    let mut row = filled(&disk, 3);
    let syncs = disk.counters().syncs;
    row.flush().expect("nothing to do");
    assert_eq!(disk.counters().syncs, syncs);
    row.write_at(0, b"again").expect("write");
    row.append(b"x").expect("append");
    let begun = row.start_flush();
    row.append(b"after the flush began").expect("append");
    begun.wait().expect("flush");
    assert_eq!(disk.counters().syncs, syncs + 2);
    drop(row.start_flush());
    row.flush().expect("a flush that was dropped is made good");
    assert_eq!(disk.counters().syncs, syncs + 2, "the sync above came after the append");
}

#[test]
fn a_prepared_file_is_as_durable_as_one_that_was_appended_to() {
    let disk = SimDisk::new(1);
    let mut prepared = row(&disk, 0).expect("open");
    prepared.prepare(2 * SIZE).expect("prepare");
    disk.crash(&mut Random::new(1));
    assert_eq!(row(&disk, 0).expect("open").allocated(), 3 * SIZE);
}

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Skip,
    Cut(u64),
    Rewrite,
    Flush,
    Kill,
    Release(u64),
    Crash(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_usize..3000).prop_map(Step::Append),
        1 => Just(Step::Skip),
        1 => (0_u64..2000).prop_map(Step::Cut),
        1 => Just(Step::Rewrite),
        3 => Just(Step::Flush),
        2 => Just(Step::Kill),
        1 => (0_u64..20_000).prop_map(Step::Release),
        2 => any::<u64>().prop_map(Step::Crash),
    ]
}

/// The bytes from `begin` to the length, read file by file.
fn all(row: &Row) -> Vec<u8> {
    let reader = row.reader();
    let mut bytes = Vec::new();
    let mut position = row.begin();
    while position < row.length() {
        let end = row.length().min(position - position % SIZE + SIZE);
        let mut piece = vec![0; usize::try_from(end - position).expect("small")];
        reader.read(position, &mut piece).expect("read");
        bytes.extend(piece);
        position = end;
    }
    bytes
}

/// What is below the flushed length survives everything; no more than that is ever trusted.
fn check(steps: &[Step]) {
    let disk = SimDisk::new(1);
    let mut tested = row(&disk, 0).expect("open");
    let mut model: Vec<u8> = Vec::new();
    let mut flushed = 0;
    let mut next = 0_u8;
    for step in steps {
        match step {
            Step::Append(count) => {
                let count = (*count).min(usize::try_from(tested.room()).expect("small"));
                next = next.wrapping_add(1);
                let bytes = vec![next; count];
                assert_eq!(tested.append(&bytes).expect("append"), model.len() as u64);
                model.extend(bytes);
            }
            Step::Skip => {
                tested.skip_to_next_segment();
                let end = usize::try_from(tested.length()).expect("small");
                for position in model.len()..end {
                    // What is skipped is whatever is there; the model takes it over.
                    let mut byte = [0];
                    tested.reader().read(position as u64, &mut byte).expect("read");
                    model.push(byte[0]);
                }
            }
            Step::Cut(count) => {
                let length = tested.length().saturating_sub(*count).max(tested.begin());
                tested.reset_length(length);
                model.truncate(usize::try_from(length).expect("small"));
                flushed = flushed.min(model.len());
            }
            Step::Rewrite if tested.length() > tested.begin() => {
                let last = model.last_mut().expect("it is not empty");
                *last = last.wrapping_add(100);
                tested.write_at(tested.length() - 1, &[*last]).expect("write");
                flushed = flushed.min(model.len() - 1);
            }
            Step::Rewrite => {}
            Step::Flush => {
                tested.flush().expect("flush");
                flushed = model.len();
            }
            Step::Kill => {
                disk.kill();
                model.truncate(flushed);
                tested = row(&disk, flushed as u64).expect("open");
                model.resize(usize::try_from(tested.length()).expect("small"), 0);
                flushed = model.len();
            }
            Step::Release(position) => tested.release(*position).expect("release"),
            Step::Crash(seed) => {
                disk.crash(&mut Random::new(*seed));
                model.truncate(flushed);
                tested = row(&disk, flushed as u64).expect("open");
                model.resize(usize::try_from(tested.length()).expect("small"), 0);
                flushed = model.len();
            }
        }
        let begin = usize::try_from(tested.begin()).expect("small");
        assert_eq!(tested.length(), model.len() as u64);
        assert!(all(&tested) == model[begin..], "after {step:?}");
    }
}

proptest! {
    #[test]
    fn a_row_holds_what_a_vector_holds(steps in prop::collection::vec(step(), 1..40)) {
        check(&steps);
    }
}

/// A process that was killed between making a file and syncing it leaves a file that only the page
/// cache knows of. Reused as it is, it would lose its name or its length at the next power cut, with
/// later files behind it.
#[test]
fn a_file_that_a_killed_process_left_half_durable_is_made_good_when_it_is_reused() {
    for changes in 2..=3 {
        for seed in 0..40 {
            let disk = SimDisk::new(seed);
            let mut first = filled(&disk, 1);
            let length = first.length();
            disk.cut_after(changes);
            assert!(first.prepare(SIZE).is_err(), "cut at its sync, or at that of its name");
            disk.kill();
            let mut second = row(&disk, length).expect("open");
            assert_eq!(second.allocated(), 2 * SIZE, "the file is there");
            second.skip_to_next_segment();
            second.append(b"x").expect("append");
            second.flush().expect("flush");
            if seed % 2 == 0 {
                second.prepare(2 * SIZE).expect("prepare");
            }
            disk.crash(&mut Random::new(seed));
            let third = row(&disk, SIZE + 1).expect("open");
            let mut byte = [0];
            third.reader().read(SIZE, &mut byte).expect("read");
            assert_eq!(byte, *b"x", "seed {seed}");
        }
    }
}

#[test]
fn a_prepared_leftover_does_not_break_the_row_behind_it() {
    for seed in 0..40 {
        let disk = SimDisk::new(seed);
        let mut first = filled(&disk, 1);
        let length = first.length();
        disk.cut_after(2);
        assert!(first.prepare(SIZE).is_err());
        disk.kill();
        let mut second = row(&disk, length).expect("open");
        second.prepare(2 * SIZE).expect("prepare");
        disk.crash(&mut Random::new(seed));
        assert_eq!(row(&disk, length).expect("open").allocated(), 3 * SIZE, "seed {seed}");
    }
}
