//! Moving entries from the far ring to the near one.

use proptest::prelude::*;

use super::*;

/// A wheel whose far slot 27 (slots 108 to 111) is due.
fn due(disk: &SimDisk, fill: impl FnOnce(&mut TimerWheel)) -> TimerWheel {
    let mut wheel = small(disk, 100);
    fill(&mut wheel);
    wheel.skip_empty(104);
    assert_eq!(wheel.read_time(), 104);
    wheel
}

#[test]
fn nothing_is_re_filed_before_its_time() {
    let mut wheel = small(&SimDisk::new(1), 100);
    add(&mut wheel, 1085, 1);
    assert_eq!(wheel.refile(10, &mut |_| false).expect("refile"), Refile::NotDue);
    wheel.skip_empty(103);
    assert_eq!(wheel.refile(10, &mut |_| false).expect("refile"), Refile::NotDue);
    wheel.skip_empty(104);
    let done = Refile::Done(Refiled { far_slot: 27, moved: 1, left_out: 0 });
    assert_eq!(wheel.refile(10, &mut |_| false).expect("refile"), done);
    assert_eq!((wheel.far_boundary(), near_adds(&wheel, 108)), (112, vec![1]));
    assert_eq!(wheel.far_slot(27), None);
}

#[test]
fn a_call_moves_no_more_than_its_budget_in_the_order_of_deadlines() {
    let disk = SimDisk::new(1);
    let mut wheel = due(&disk, |wheel| {
        for (deadline, offset) in [(1110, 1), (1080, 2), (1085, 3), (1081, 4), (1090, 5)] {
            add(wheel, deadline, offset);
        }
    });
    let going = |moved| Refile::Going(Refiled { far_slot: 27, moved, left_out: 0 });
    assert_eq!(wheel.refile(3, &mut |_| false).expect("refile"), going(3));
    assert_eq!(near_adds(&wheel, 108), [4, 3], "the newest three, by deadline");
    assert_eq!(near_adds(&wheel, 109), [5]);
    assert_eq!(wheel.far_boundary(), 108, "it moves when all is done");
    let done = Refile::Done(Refiled { far_slot: 27, moved: 2, left_out: 0 });
    assert_eq!(wheel.refile(3, &mut |_| false).expect("refile"), done);
    assert_eq!(near_adds(&wheel, 108), [4, 3, 2]);
    assert_eq!(near_adds(&wheel, 111), [1]);
}

#[test]
fn what_is_cancelled_or_skipped_is_left_behind() {
    let disk = SimDisk::new(1);
    let mut wheel = due(&disk, |wheel| {
        for offset in 1..=5 {
            add(wheel, 1085, offset);
        }
        cancel(wheel, 1085, 2);
        add(wheel, 1085, 6);
        cancel(wheel, 1085, 4);
    });
    assert_eq!(wheel.far_slot(27).map(|state| state.count), Some(4));
    let done = Refile::Done(Refiled { far_slot: 27, moved: 3, left_out: 3 });
    let refiled = wheel.refile(100, &mut |entry| entry.offset == 5).expect("refile");
    assert_eq!(refiled, done);
    assert_eq!(near_adds(&wheel, 108), [1, 3, 6]);
    assert_eq!(wheel.pending(), 3);
}

#[test]
fn more_cancels_than_are_held_at_once_are_all_honoured() {
    for budget in [1, 2, 3, 7, 1000] {
        let disk = SimDisk::new(1);
        let mut wheel = due(&disk, |wheel| {
            for offset in 0..150 {
                add(wheel, 1080 + offset % 40, offset * 32);
                if offset % 3 == 2 {
                    cancel(wheel, 1080 + (offset - 1) % 40, (offset - 1) * 32);
                }
                if offset >= 50 && offset % 5 == 0 {
                    cancel(wheel, 1080 + (offset - 50) % 40, (offset - 50) * 32);
                }
            }
        });
        let expected: Vec<_> = (0..150)
            .filter(|offset| offset % 3 != 1 && (*offset >= 100 || offset % 5 != 0))
            .map(|offset| offset * 32)
            .collect();
        let (mut moved, mut left_out, mut calls) = (0, 0, 0);
        loop {
            calls += 1;
            match wheel.refile(budget, &mut |_| false).expect("refile") {
                Refile::NotDue => break,
                Refile::Going(step) | Refile::Done(step) => {
                    moved += step.moved;
                    left_out += step.left_out;
                }
            }
        }
        let mut found: Vec<_> = (108..112).flat_map(|slot| near_adds(&wheel, slot)).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "budget {budget}");
        assert_eq!((moved, left_out), (expected.len(), 150 - expected.len()));
        assert!(calls > 10, "four cancels at a time need many passes");
        assert_eq!(wheel.pending(), expected.len() as u64);
    }
}

#[test]
fn one_cancel_held_at_a_time_is_enough() {
    let disk = SimDisk::new(1);
    let config = Config { cancels_max: 1, ..SMALL };
    let mut wheel = TimerWheel::create(directory(&disk), config, origin(100)).expect("create");
    for offset in 0..20 {
        add(&mut wheel, 1085, offset);
    }
    for offset in (0..20).step_by(2) {
        cancel(&mut wheel, 1085, offset);
    }
    wheel.skip_empty(104);
    refile_all(&mut wheel);
    let mut found = near_adds(&wheel, 108);
    found.sort_unstable();
    assert_eq!(found, (0..20).filter(|offset| offset % 2 == 1).collect::<Vec<_>>());
}

#[test]
fn what_is_filed_during_a_re_filing_goes_where_it_would_be_brought() {
    let disk = SimDisk::new(1);
    let mut wheel = due(&disk, |wheel| {
        for offset in 1..=4 {
            add(wheel, 1085, offset);
        }
    });
    assert!(matches!(wheel.refile(2, &mut |_| false), Ok(Refile::Going(_))));
    add(&mut wheel, 1089, 9);
    assert_eq!(near_adds(&wheel, 108), [3, 4, 9]);
    refile_all(&mut wheel);
    assert_eq!(near_adds(&wheel, 108), [3, 4, 9, 1, 2]);
}

#[test]
fn a_crash_in_the_midst_does_it_all_again_and_nothing_is_there_twice() {
    let disk = SimDisk::new(1);
    let mut wheel = due(&disk, |wheel| {
        for offset in 1..=4 {
            add(wheel, 1085, offset);
        }
        wheel.set_mark(4);
    });
    let before = dump(&wheel);
    assert!(matches!(wheel.refile(2, &mut |_| false), Ok(Refile::Going(_))));
    add(&mut wheel, 1089, 9);
    wheel.set_mark(5);
    wheel.snapshot().expect("snapshot");
    wheel.flush().expect("flush");
    let checkpoint = wheel.checkpoint();
    assert_eq!(checkpoint.mark, 4, "what was filed since is to be filed again");
    disk.kill();
    let mut wheel = reopen(&disk, &checkpoint);
    assert_eq!(dump(&wheel), before);
    add(&mut wheel, 1089, 9);
    refile_all(&mut wheel);
    assert_eq!(near_adds(&wheel, 108), [1, 2, 3, 4, 9]);
}

#[test]
fn a_step_back_in_the_midst_waits_for_its_end() {
    let disk = SimDisk::new(1);
    let mut wheel = due(&disk, |wheel| {
        for offset in 1..=4 {
            add(wheel, 1115, offset);
        }
    });
    assert!(matches!(wheel.refile(2, &mut |_| false), Ok(Refile::Going(_))));
    assert_eq!(wheel.step_back(0), 112 - 16);
    assert_eq!(wheel.far_boundary(), 108);
    refile_all(&mut wheel);
    assert_eq!(near_adds(&wheel, 111), [3, 4, 1, 2]);
    assert_eq!(wheel.far_boundary(), 112);
}

#[test]
fn a_damaged_record_stops_the_re_filing_with_its_place() {
    let disk = SimDisk::new(1);
    let mut wheel = due(&disk, |wheel| add(wheel, 1085, 1));
    disk.flip_bit("wheel/far/00000000000000000000", 50, 3);
    let error = wheel.refile(10, &mut |_| false).expect_err("damaged");
    assert!(matches!(error, crate::TimerError::NeedsRebuild(_)), "{error}");
    assert!(error.to_string().contains("wheel/far/00000000000000000000 at byte 48"), "{error}");
}

proptest! {
    /// With any order of adds and cancels, any bound and any budget, each live entry is moved once.
    #[test]
    fn a_re_filing_moves_each_live_entry_once(
        steps in prop::collection::vec((any::<bool>(), 0_u64..40), 1..120),
        budget in 1_usize..30,
        cancels_max in 1_usize..5,
    ) {
        let disk = SimDisk::new(1);
        let config = Config { cancels_max, ..SMALL };
        let mut wheel = TimerWheel::create(directory(&disk), config, origin(100)).expect("create");
        let mut live = std::collections::BTreeSet::new();
        let mut added = std::collections::BTreeSet::new();
        for (is_add, n) in steps {
            let (deadline, offset) = (1080 + n, n * 32);
            if is_add && added.insert(offset) {
                live.insert(offset);
                add(&mut wheel, deadline, offset);
            } else if !is_add && live.remove(&offset) {
                cancel(&mut wheel, deadline, offset);
            }
        }
        wheel.skip_empty(104);
        let mut calls = 0;
        while wheel.refile(budget, &mut |_| false).expect("refile") != Refile::NotDue {
            calls += 1;
            prop_assert!(calls < 10_000, "it comes to an end");
        }
        let mut found: Vec<_> = (108..112).flat_map(|slot| near_adds(&wheel, slot)).collect();
        found.sort_unstable();
        prop_assert_eq!(found, live.into_iter().collect::<Vec<_>>());
    }
}
