//! How the read time moves, forth and back.

use super::*;

#[test]
fn a_slot_is_settled_only_with_all_that_was_filed_in_it() {
    let mut wheel = small(&SimDisk::new(1), 100);
    assert_eq!(wheel.advance(101, None), Advance::NotOpen { read_time: 100 });
    add(&mut wheel, 1000, 1);
    let walked = wheel.slot(100).expect("occupied").last;
    add(&mut wheel, 1000, 2);
    let last = wheel.slot(100).expect("occupied").last;
    assert_eq!(wheel.advance(100, Some(walked)), Advance::Joined { last });
    assert_eq!(wheel.advance(100, None), Advance::Joined { last });
    let mut joined = Vec::new();
    wheel
        .reader()
        .walk(last, Some(walked), 100, |record| joined.push(record.entry.offset))
        .expect("walk");
    assert_eq!(joined, [2]);
    assert_eq!(wheel.advance(100, Some(last)), Advance::Moved);
    assert_eq!((wheel.read_time(), wheel.slot(100), wheel.pending()), (101, None, 0));
}

#[test]
fn empty_slots_are_skipped_up_to_the_first_that_is_not() {
    let mut wheel = small(&SimDisk::new(1), 100);
    add(&mut wheel, 1050, 1);
    assert_eq!(wheel.skip_empty(103), 103);
    assert_eq!(wheel.skip_empty(1000), 105);
    assert_eq!(wheel.skip_empty(50), 105, "never back");
    settle(&mut wheel);
    assert_eq!(wheel.skip_empty(1000), 108, "not over the far boundary");
}

#[test]
fn the_read_time_waits_at_the_far_boundary_for_the_re_filing() {
    let mut wheel = small(&SimDisk::new(1), 100);
    add(&mut wheel, 1085, 1);
    assert_eq!(wheel.skip_empty(1000), 108);
    assert_eq!(wheel.advance(108, None), Advance::FarSlotDue);
    refile_all(&mut wheel);
    assert_eq!(near_adds(&wheel, 108), [1]);
    settle(&mut wheel);
    assert_eq!(wheel.read_time(), 109);
}

#[test]
fn after_a_step_back_what_was_settled_stays_so_and_new_entries_find_their_slots() {
    let mut wheel = small(&SimDisk::new(1), 100);
    add(&mut wheel, 1001, 1);
    settle(&mut wheel);
    wheel.skip_empty(104);
    assert_eq!(wheel.step_back(100), 100);
    assert_eq!(wheel.slot(100), None);
    add(&mut wheel, 1002, 2);
    assert_eq!(near_adds(&wheel, 100), [2]);
    assert_eq!(wheel.step_back(200), 100, "never forth");
}

#[test]
fn the_read_time_steps_back_only_as_far_as_the_slots_in_use_allow() {
    let mut wheel = small(&SimDisk::new(1), 100);
    add(&mut wheel, 1075, 1);
    assert_eq!(wheel.step_back(0), 108 - 16);
    add(&mut wheel, 10, 2);
    assert_eq!(near_adds(&wheel, 92), [2], "what is due earlier joins the open slot");
    assert_eq!(near_adds(&wheel, 107), [1]);
}

#[test]
fn a_clock_that_was_a_year_ahead_for_a_moment_comes_all_the_way_back() {
    let mut wheel = small(&SimDisk::new(1), 100);
    for _ in 0..1000 {
        refile_all(&mut wheel);
        wheel.skip_empty(5000);
    }
    assert_eq!(wheel.read_time(), 5000);
    assert_eq!(wheel.step_back(100), 100);
    assert_eq!(wheel.far_boundary(), 108);
    add(&mut wheel, 1060, 1);
    add(&mut wheel, 1085, 2);
    assert_eq!(near_adds(&wheel, 106), [1]);
    assert_eq!(far_adds(&wheel, 27), [2]);
}

#[test]
fn a_far_entry_keeps_its_place_through_a_step_back() {
    let mut wheel = small(&SimDisk::new(1), 100);
    for _ in 0..20 {
        refile_all(&mut wheel);
        wheel.skip_empty(140);
    }
    let last = wheel.deadline_limit() - 1;
    add(&mut wheel, last, 1);
    let stepped = wheel.step_back(0);
    assert!(stepped > 0, "the far ring has one turn too");
    for slot in stepped..last / 10 {
        if slot * 10 < wheel.deadline_limit() {
            add(&mut wheel, slot * 10, slot);
        }
    }
    assert_eq!(wheel.pending(), last / 10 - stepped + 1);
}

#[test]
fn after_a_step_back_the_flush_takes_a_snapshot() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    add(&mut wheel, 1001, 1);
    settle(&mut wheel);
    wheel.step_back(100);
    wheel.flush().expect("flush");
    let checkpoint = wheel.checkpoint();
    let expected = dump(&wheel);
    disk.kill();
    let wheel = reopen(&disk, &checkpoint);
    assert_eq!(dump(&wheel), expected, "the log alone would have filled slot 100 again");
    assert_eq!(wheel.recovery().snapshot, Some(checkpoint.revision));
}

/// While a far slot is re-filed the checkpoint is the one from before, and a snapshot of later is of
/// no use to it. So the snapshot that a step back calls for has to come before the re-filing.
#[test]
fn a_step_back_just_before_a_re_filing_is_not_forgotten_by_its_checkpoint() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    for offset in 0..3 {
        add(&mut wheel, 1085, offset);
    }
    wheel.skip_empty(105);
    add(&mut wheel, 1050, 7);
    settle(&mut wheel);
    wheel.step_back(105);
    let expected = dump(&wheel);
    assert!(matches!(wheel.refile(1, &mut |_| false), Ok(Refile::Going(_))));
    wheel.flush().expect("flush");
    let checkpoint = wheel.checkpoint();
    disk.kill();
    assert_eq!(dump(&reopen(&disk, &checkpoint)), expected);
}
