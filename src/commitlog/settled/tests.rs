use std::io::ErrorKind;

use timerlog::disk::Operation;
use timerlog::disk::sim::{Random, SimDisk};

use super::*;

const SEGMENT: u64 = 4 << 20;

fn open(disk: &SimDisk) -> Settled {
    try_open(disk, Offset::ZERO).unwrap()
}

fn try_open(disk: &SimDisk, written_upto: Offset) -> Result<Settled, SettledError> {
    let root = disk.root();
    let directory = root.subdirectory("settled").unwrap();
    root.sync().unwrap();
    Settled::open(directory, SEGMENT, written_upto, Offset::ZERO)
}

#[test]
fn a_cause_is_settled_once_and_tells_how() {
    let disk = SimDisk::new(1);
    let settled = open(&disk);
    let outcomes = [Outcome::Delivered, Outcome::Withdrawn, Outcome::Superseded, Outcome::Dropped];
    for (index, outcome) in (0_u64..).zip(outcomes) {
        let cause = Offset::new(96 + index * 96);
        assert_eq!(settled.get(cause).unwrap(), None);
        assert_eq!(settled.set(cause, outcome).unwrap(), None);
        assert_eq!(settled.get(cause).unwrap(), Some(outcome));
        assert_eq!(settled.set(cause, Outcome::Delivered).unwrap(), Some(outcome));
    }
}

#[test]
fn neighbours_over_page_and_segment_bounds_do_not_touch_each_other() {
    let disk = SimDisk::new(1);
    let settled = open(&disk);
    let page_span = PAGE_BITS as u64 * STEP;
    for bound in [page_span, SEGMENT, SEGMENT + page_span] {
        let before = Offset::new(bound - 2 * STEP);
        let after = Offset::new(bound + STEP);
        settled.set(before, Outcome::Dropped).unwrap();
        assert_eq!(settled.get(after).unwrap(), None);
        settled.set(after, Outcome::Withdrawn).unwrap();
        assert_eq!(settled.get(before).unwrap(), Some(Outcome::Dropped));
        assert_eq!(settled.get(after).unwrap(), Some(Outcome::Withdrawn));
    }
}

#[test]
fn what_a_checkpoint_wrote_is_there_after_a_power_cut_and_nothing_else() {
    let disk = SimDisk::new(7);
    let settled = open(&disk);
    let (kept, lost) = (Offset::new(3200), Offset::new(6400));
    settled.set(kept, Outcome::Withdrawn).unwrap();
    settled.write(settled.copy_dirty(), Offset::new(32_000)).unwrap();
    settled.set(lost, Outcome::Delivered).unwrap();
    disk.crash(&mut Random::new(11));
    let settled = open(&disk);
    assert_eq!(settled.get(kept).unwrap(), Some(Outcome::Withdrawn));
    assert_eq!(settled.get(lost).unwrap(), None);
}

#[test]
fn the_cache_forgets_clean_pages_and_reads_them_again() {
    let disk = SimDisk::new(7);
    let settled = open(&disk);
    let page_span = PAGE_BITS as u64 * STEP;
    let causes: Vec<_> =
        (0..CACHED_PAGES as u64 + 10).map(|page| Offset::new(page * page_span)).collect();
    for &cause in &causes {
        settled.set(cause, Outcome::Withdrawn).unwrap();
        if settled.wants_checkpoint() {
            settled.write(settled.copy_dirty(), Offset::new(32_000)).unwrap();
        }
    }
    assert!(settled.inner.lock().pages.len() <= CACHED_PAGES);
    for &cause in &causes {
        assert_eq!(settled.get(cause).unwrap(), Some(Outcome::Withdrawn));
    }
}

#[test]
fn a_flipped_bit_in_a_page_is_noticed() {
    let mut page = Page::empty();
    page.set(17);
    let whole = page.seal(5);
    for bit in 0..PAGE_LENGTH * 8 {
        let mut bytes = whole;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Page::read(&bytes, 5).is_err(), "bit {bit}");
    }
    assert!(matches!(Page::read(&whole, 6), Err(PageError::Number { .. })));
    let read = Page::read(&whole, 5).unwrap();
    assert!(read.get(17) && !read.get(16) && !read.get(18));
}

#[test]
fn a_file_that_is_missing_or_an_older_copy_is_noticed() {
    let disk = SimDisk::new(7);
    let settled = open(&disk);
    settled.set(Offset::new(3200), Outcome::Withdrawn).unwrap();
    settled.write(settled.copy_dirty(), Offset::new(6400)).unwrap();
    drop(settled);
    let directory = disk.root().subdirectory("settled").unwrap();
    let name = format!("{:020}", 0);
    let file = directory.open(&name).unwrap();
    let mut older = vec![0; PAGE_LENGTH];
    file.read_at(0, &mut older).unwrap();

    let settled = open(&disk);
    settled.set(Offset::new(6400), Outcome::Delivered).unwrap();
    settled.write(settled.copy_dirty(), Offset::new(9600)).unwrap();
    // The second journal has only this page, so putting the older one back is mended by it ...
    file.write_at(0, &older).unwrap();
    assert_eq!(open(&disk).get(Offset::new(6400)).unwrap(), Some(Outcome::Delivered));
    // ... but files older than the checkpoint, or without the journal, are refused.
    assert!(matches!(try_open(&disk, Offset::new(9601)), Err(SettledError::Stale { .. })));
    directory.remove("journal").unwrap();
    assert!(matches!(try_open(&disk, Offset::new(9600)), Err(SettledError::Stale { .. })));
}

/// Each file that a checkpoint of the pages makes may find no room. The pages are written by a later one then, and
/// what was settled meanwhile with them.
#[test]
fn pages_that_found_no_room_are_written_when_there_is_some() {
    for nth in 1..=3 {
        let disk = SimDisk::new(7);
        let settled = open(&disk);
        let causes = [Offset::new(3200), Offset::new(SEGMENT + 3200)];
        for cause in causes {
            settled.set(cause, Outcome::Withdrawn).unwrap();
        }
        disk.fail_next(Operation::Create, nth, ErrorKind::StorageFull);
        let refused = settled.write(settled.copy_dirty(), Offset::new(32_000)).unwrap_err();
        assert!(matches!(&refused, SettledError::Disk(error) if error.wants_room()), "{refused}");
        assert_eq!((settled.dirty_pages(), settled.written_upto()), (2, Offset::ZERO));
        let meanwhile = Offset::new(6400);
        settled.set(meanwhile, Outcome::Delivered).unwrap();
        settled.write(settled.copy_dirty(), Offset::new(64_000)).unwrap();
        assert_eq!(settled.dirty_pages(), 0);
        disk.crash(&mut Random::new(nth));
        let settled = try_open(&disk, Offset::new(64_000)).unwrap();
        for cause in causes {
            assert_eq!(settled.get(cause).unwrap(), Some(Outcome::Withdrawn), "file {nth}");
        }
        assert_eq!(settled.get(meanwhile).unwrap(), Some(Outcome::Delivered), "file {nth}");
    }
}
