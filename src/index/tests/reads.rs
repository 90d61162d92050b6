//! What look-ups cost, and look-ups beside work.

use super::*;
use crate::sync::AtomicBool;

fn page_reads<T>(index: &Index, look_up: impl FnOnce() -> T) -> (T, u64) {
    let before = index.figures().page_reads;
    let answer = look_up();
    (answer, index.figures().page_reads - before)
}

/// Twelve runs of 20,000 entries, as three each in four tiers make.
fn twelve_runs(disk: &SimDisk) -> Index {
    let limits = Limits { memtable_entries: 20_000, tier_0_entries: 1, ..Limits::default() };
    let index = Index::open_within(disk.root(), None, limits).unwrap();
    for number in 0..240_000 {
        index.insert(key(number), at(number));
        if number % 20_000 == 19_999 {
            index.capture().unwrap();
        }
    }
    assert_eq!(index.figures().runs, 12);
    index
}

#[test]
fn a_miss_reads_two_pages_at_most_and_mostly_none() {
    let index = twelve_runs(&SimDisk::new(1));
    let (mut total, mut most) = (0, 0);
    for number in 240_000..250_000 {
        let (found, reads) = page_reads(&index, || index.newest(key(number)).unwrap());
        assert_eq!(found, None);
        total += reads;
        most = most.max(reads);
    }
    assert!(most <= 2, "{most} pages for one miss");
    assert!(total < 250, "{total} pages for 10,000 misses of 12 runs");
}

#[test]
fn a_hit_reads_one_page_and_what_filters_and_page_bounds_cost() {
    let index = twelve_runs(&SimDisk::new(1));
    let (mut total, mut most) = (0, 0);
    for number in (0..240_000).step_by(24) {
        let (found, reads) = page_reads(&index, || index.newest(key(number)).unwrap());
        assert_eq!(found, Some(at(number)));
        total += reads;
        most = most.max(reads);
    }
    assert!(most <= 3, "{most} pages for one hit");
    assert!((10_000..10_300).contains(&total), "{total} pages for 10,000 hits");
}

#[test]
fn a_run_takes_eighteen_bytes_an_entry() {
    let disk = SimDisk::new(1);
    let index = twelve_runs(&disk);
    assert_eq!(index.figures().run_entries, 240_000);
    let hundredths = disk.allocated() * 100 / 240_000;
    assert!((1812..1850).contains(&hundredths), "{hundredths} hundredths of a byte");
}

#[test]
fn a_hot_key_is_paged_through_lazily() {
    let index = Index::empty(SimDisk::new(1).root()).unwrap();
    for number in 0..100_000 {
        index.insert(key(1), at(number));
        if number % 25_000 == 24_999 {
            index.capture().unwrap();
        }
    }
    assert_eq!(index.figures().runs, 4);
    let (newest, reads) = page_reads(&index, || index.newest(key(1)).unwrap());
    assert_eq!((newest, reads), (Some(at(99_999)), 1), "older runs are not opened");

    // A page of a hundred, and the next by its last offset: each costs a page or two, however far in.
    for from in [99_999, 60_000, 25_000, 99] {
        let below = Some(at(from + 1));
        let take = || index.newest_first(key(1), below).take(100).collect::<Result<Vec<_>, _>>();
        let (offsets, reads) = page_reads(&index, take);
        let expected: Vec<_> = (0..100).map(|n| at(from - n)).collect();
        assert_eq!(offsets.unwrap(), expected);
        assert!(reads <= 2, "{reads} pages from {from}");
    }
    let (count, reads) = page_reads(&index, || index.newest_first(key(1), None).count());
    assert_eq!(count, 100_000);
    assert!(reads <= 100_000 / 255 + 8, "{reads} pages for all");
    work_all(&index);
    assert_eq!(index.figures().runs, 1);
    assert_eq!(index.newest_first(key(1), None).count(), 100_000);
}

/// A look-up owns what it reads: it goes on over runs that were merged and removed under it.
#[test]
fn a_look_up_outlives_the_merge_and_the_files_it_reads() {
    let disk = SimDisk::new(1);
    let index = empty(&disk);
    (0..60).for_each(|number| index.insert(key(1), at(number)));
    let mut begun = index.newest_first(key(1), None);
    assert_eq!(begun.next().unwrap().unwrap(), at(59));
    for number in 60..600 {
        index.insert(key(1), at(number));
        work_all(&index);
    }
    index.forget_below(at(600));
    index.capture().unwrap();
    index.checkpointed();
    work_all(&index);
    assert_eq!(disk.allocated(), 0);
    let rest: Result<Vec<_>, _> = begun.collect();
    assert_eq!(rest.unwrap(), (0..59).rev().map(at).collect::<Vec<_>>());
}

/// Three threads look up what was inserted before, newest first and whole, while a fourth inserts, freezes,
/// writes, merges and removes.
#[test]
#[expect(clippy::disallowed_methods, reason = "a race needs threads")]
fn look_ups_beside_all_that_work_miss_nothing() {
    const KEYS: u64 = 50;
    let disk = SimDisk::new(1);
    let index = empty(&disk);
    let (inserted, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let check = |of: u64| {
        let upto = inserted.load(Ordering::Acquire);
        let found = listed(&index, key(of));
        assert!(found.is_sorted_by(|one, other| one > other), "key {of}");
        let expected = (0..upto).rev().filter(|n| n % KEYS == of);
        let newer = found.iter().take_while(|&&n| n >= upto).count();
        assert!(expected.eq(found[newer..].iter().copied()), "key {of} of {upto}");
    };
    std::thread::scope(|scope| {
        for first in 0..3 {
            let (check, over) = (&check, &over);
            scope.spawn(move || {
                let mut of = first;
                while !over.load(Ordering::Acquire) {
                    check(of % KEYS);
                    of += 3;
                }
            });
        }
        for number in 0..6000 {
            index.insert(key(number % KEYS), at(number));
            inserted.store(number + 1, Ordering::Release);
            index.step().unwrap();
            if number % 500 == 0 {
                index.capture().unwrap();
                index.checkpointed();
            }
        }
        over.store(true, Ordering::Release);
    });
    (0..KEYS).for_each(check);
}
