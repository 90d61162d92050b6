//! The far log must not grow with what was, only with what is pending.

use super::*;
use crate::disk::sim::Random;

#[test]
fn a_log_that_is_in_use_is_left_alone() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    for offset in 0..2000 {
        add(&mut wheel, 1200 + offset % 300, offset);
    }
    assert_eq!(wheel.compact(10_000, &mut |_| false).expect("compact"), Compaction::NotDue);
}

#[test]
fn one_old_far_entry_does_not_hold_the_log_for_ever() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    let far = wheel.deadline_limit() - 1;
    add(&mut wheel, far, 1);
    let mut checkpoint = wheel.checkpoint();
    for round in 0..40 {
        let filings: Vec<_> = (0..100)
            .flat_map(|n| {
                let entry = entry(1300, 1000 + round * 100 + n);
                [Filing::add(entry), Filing::cancel(entry)]
            })
            .collect();
        wheel.file(&filings).expect("file");
        while let Compaction::Done { .. } = wheel.compact(10_000, &mut |_| false).expect("compact")
        {
        }
        wheel.snapshot().expect("snapshot");
        wheel.flush().expect("flush");
        checkpoint = wheel.checkpoint();
        wheel.release(&checkpoint).expect("release");
    }
    assert!(wheel.log_bytes() <= 4 * 12_288, "{} bytes are kept", wheel.log_bytes());
    let expected = dump(&wheel);
    disk.crash(&mut Random::new(1));
    let wheel = reopen(&disk, &checkpoint);
    assert_eq!(dump(&wheel), expected);
    assert_eq!(far_adds(&wheel, far / 40), [1]);
}

#[test]
fn a_slot_that_is_written_again_keeps_what_is_live_in_its_order() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    for offset in 0..10 {
        add(&mut wheel, 1300, offset);
    }
    cancel(&mut wheel, 1300, 3);
    let length = wheel.checkpoint().far_length;
    let rewritten = wheel.rewrite_oldest(100, &mut |entry| entry.offset == 5).expect("rewrite");
    assert_eq!(rewritten, Compaction::Done { far_slot: 32, kept: 8, left_out: 2 });
    assert_eq!(far_adds(&wheel, 32), [0, 1, 2, 4, 6, 7, 8, 9]);
    let state = wheel.far_slot(32).expect("occupied");
    assert_eq!((state.first.get(), state.count), (length, 8));
    assert_eq!(near_and_far_after_replay(&disk, &mut wheel), dump(&wheel));
}

#[test]
fn a_slot_of_which_nothing_is_left_stays_so_after_a_replay() {
    let disk = SimDisk::new(1);
    let mut wheel = small(&disk, 100);
    add(&mut wheel, 1300, 1);
    add(&mut wheel, 1300, 2);
    let rewritten = wheel.rewrite_oldest(100, &mut |_| true).expect("rewrite");
    assert_eq!(rewritten, Compaction::Done { far_slot: 32, kept: 0, left_out: 2 });
    assert_eq!((far_adds(&wheel, 32), wheel.pending()), (vec![], 0));
    assert_eq!(near_and_far_after_replay(&disk, &mut wheel), dump(&wheel));
}

#[test]
fn a_slot_that_is_too_long_is_left_alone() {
    let mut wheel = small(&SimDisk::new(1), 100);
    for offset in 0..10 {
        add(&mut wheel, 1300, offset);
    }
    let before = dump(&wheel);
    let rewritten = wheel.rewrite_oldest(9, &mut |_| false).expect("rewrite");
    assert_eq!(rewritten, Compaction::TooLong { far_slot: 32 });
    assert_eq!(dump(&wheel), before);
}

/// What a wheel that was opened from the logs alone looks like.
fn near_and_far_after_replay(disk: &SimDisk, wheel: &mut TimerWheel) -> Dump {
    wheel.flush().expect("flush");
    let checkpoint = wheel.checkpoint();
    dump(&reopen(disk, &checkpoint))
}
