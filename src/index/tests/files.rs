//! Which files a start trusts, and which it may count on.

use std::io::ErrorKind;

use timerlog::disk::Operation;

use super::*;

/// Five hundred entries in runs of some tiers, all of them in the manifest.
fn captured(disk: &SimDisk) -> Vec<u8> {
    let index = empty(disk);
    fill(&index, 0..500);
    index.capture().unwrap()
}

fn has_all(index: &Index, numbers: std::ops::Range<u64>) -> bool {
    numbers.into_iter().all(|n| index.newest(key(n)).unwrap() == Some(at(n)))
}

#[test]
fn what_a_checkpoint_lists_is_there_after_a_power_cut_and_nothing_else() {
    for seed in 0..50 {
        let disk = SimDisk::new(1);
        let index = empty(&disk);
        fill(&index, 0..300);
        let manifest = index.capture().unwrap();
        // Runs of what the log may lose, which no checkpoint lists.
        fill(&index, 300..600);
        disk.crash(&mut Random::new(seed));
        let index = open(&disk, Some(&manifest)).unwrap();
        assert!(has_all(&index, 0..300));
        assert!((300..600).all(|n| index.newest(key(n)).unwrap().is_none()), "seed {seed}");
        assert_eq!(disk.files().len(), index.figures().runs, "the others are gone");
    }
}

/// After the capture, all that it lists is merged away; until a newer checkpoint is durable its files are
/// the only ones that a start can go by.
#[test]
fn a_listed_run_stays_until_a_newer_checkpoint_is_durable() {
    let disk = SimDisk::new(1);
    let index = empty(&disk);
    fill(&index, 0..200);
    let older = index.capture().unwrap();
    index.checkpointed();
    let listed = disk.files();
    fill(&index, 200..2000);
    work_all(&index);
    let newer = index.capture().unwrap();
    work_all(&index);
    assert!(listed.iter().all(|file| disk.files().contains(file)));
    disk.kill();
    assert!(has_all(&open(&disk, Some(&older)).unwrap(), 0..200));

    // That start removed what only the newer one lists: it is refused, not half trusted.
    let damaged = open(&disk, Some(&newer)).unwrap_err();
    assert!(matches!(damaged, IndexError::Damaged { damage: Damage::Missing, .. }), "{damaged}");
}

#[test]
fn replaced_runs_go_when_the_checkpoint_is_durable() {
    let disk = SimDisk::new(1);
    let index = empty(&disk);
    fill(&index, 0..200);
    index.capture().unwrap();
    index.checkpointed();
    fill(&index, 200..2000);
    work_all(&index);
    let manifest = index.capture().unwrap();
    index.checkpointed();
    work_all(&index);
    let manifest_of_rest = index.capture().unwrap();
    index.checkpointed();
    work_all(&index);
    assert_eq!(disk.files().len(), index.figures().runs);
    assert_eq!(index.capture().unwrap(), manifest_of_rest, "nothing changed, so no byte did");
    disk.kill();
    assert!(open(&disk, Some(&manifest)).is_err() || manifest == manifest_of_rest);
    assert!(has_all(&open(&disk, Some(&manifest_of_rest)).unwrap(), 0..2000));
}

#[test]
fn a_start_without_a_checkpoint_is_empty_and_removes_all() {
    let disk = SimDisk::new(1);
    captured(&disk);
    assert!(!disk.files().is_empty());
    let index = Index::empty(disk.root()).unwrap();
    assert_eq!(index.newest(key(1)).unwrap(), None);
    assert!(disk.files().is_empty());
}

#[test]
fn opening_reads_no_entries() {
    let disk = SimDisk::new(1);
    let index = Index::empty(disk.root()).unwrap();
    (0..60_000).for_each(|number| index.insert(key(number), at(number)));
    let manifest = index.capture().unwrap();
    let before = disk.counters().bytes_read;
    let index = Index::open(disk.root(), Some(&manifest)).unwrap();
    let read = disk.counters().bytes_read - before;
    assert!(read < disk.allocated() / 8, "{read} of {}", disk.allocated());
    assert!(has_all(&index, 0..60_000));
}

/// Each bit of each file: a start refuses it, or the look-ups that meet its page do. None misses.
#[test]
fn every_flipped_bit_of_a_run_is_noticed() {
    let disk = SimDisk::new(1);
    let index = empty(&disk);
    (0..30).for_each(|number| index.insert(key(number % 10), at(number)));
    let manifest = index.capture().unwrap();
    let [file] = &disk.files()[..] else { panic!("one run") };
    let length = disk.content(file).len() as u64;
    // Only the zeros that bring the filter to a cache line belong to nothing.
    let fence_end = 4096 + 4096 + 16;
    for byte in (0..fence_end).chain(fence_end + 48..length) {
        for bit in 0..8 {
            disk.flip_bit(file, byte, bit);
            let noticed = match open(&disk, Some(&manifest)) {
                Err(IndexError::Damaged { .. }) => !(4096..8192).contains(&byte),
                Err(IndexError::Disk(_)) => false,
                Ok(index) => {
                    let mut looked = (0..10).map(|number| index.newest(key(number)));
                    looked.all(|found| matches!(found, Err(IndexError::Damaged { .. })))
                }
            };
            assert!(noticed, "bit {bit} of byte {byte}");
            disk.flip_bit(file, byte, bit);
        }
    }
}

#[test]
fn a_bad_sector_at_the_start_is_damage() {
    let disk = SimDisk::new(1);
    let manifest = captured(&disk);
    for nth in 1..=3 {
        disk.fail_next(Operation::Read, nth, ErrorKind::Other);
        let damaged = open(&disk, Some(&manifest)).unwrap_err();
        assert!(matches!(damaged, IndexError::Damaged { damage: Damage::Unreadable { .. }, .. }));
    }
    assert!(open(&disk, Some(&manifest)).is_ok());
}

#[test]
fn a_missing_shorter_or_older_file_is_noticed_at_the_start() {
    let disk = SimDisk::new(1);
    let manifest = captured(&disk);
    let file = disk.files().pop().unwrap();
    let whole = disk.content(&file);

    disk.edit(&file, |bytes| bytes.truncate(bytes.len() - 64));
    let damaged = open(&disk, Some(&manifest)).unwrap_err();
    assert!(matches!(damaged, IndexError::Damaged { damage: Damage::Length { .. }, .. }));
    disk.edit(&file, |bytes| bytes.truncate(100));
    let damaged = open(&disk, Some(&manifest)).unwrap_err();
    assert!(matches!(damaged, IndexError::Damaged { damage: Damage::Length { .. }, .. }));
    disk.edit(&file, |bytes| bytes.clone_from(&whole));
    assert!(open(&disk, Some(&manifest)).is_ok());

    // Another life wrote a run of the same number, whole in itself.
    let other = SimDisk::new(1);
    let index = empty(&other);
    fill(&index, 1000..1500);
    index.capture().unwrap();
    disk.edit(&file, |bytes| *bytes = other.content(&file));
    let damaged = open(&disk, Some(&manifest)).unwrap_err();
    assert!(matches!(damaged, IndexError::Damaged { damage: Damage::Other, .. }), "{damaged}");

    disk.root().remove(&file).unwrap();
    let damaged = open(&disk, Some(&manifest)).unwrap_err();
    assert!(matches!(damaged, IndexError::Damaged { damage: Damage::Missing, .. }), "{damaged}");
    assert!(open(&disk, Some(&manifest[1..])).is_err());
    // What the caller does then.
    let index = empty(&disk);
    fill(&index, 0..500);
    assert!(has_all(&index, 0..500));
}
