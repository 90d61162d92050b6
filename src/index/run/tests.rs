//! A run alone: its bytes, and its entries by cursor and by stream.

use proptest::prelude::*;
use timerlog::disk::sim::SimDisk;
use xxhash_rust::xxh3::xxh3_64;

use super::*;

fn write(disk: &SimDisk, entries: &[Entry], capacity: u64) -> Run {
    let mut writer = RunWriter::create(&*disk.root(), 7, capacity).unwrap();
    entries.iter().for_each(|&entry| writer.push(entry).unwrap());
    writer.finish(Arc::default()).unwrap()
}

fn entry(hash: u64, steps: u64) -> Entry {
    Entry::new(KeyHash::new(hash), Offset::new(steps * 32))
}

#[test]
fn the_bytes_of_a_run_are_these_for_ever() {
    let disk = SimDisk::new(1);
    let hashes = (0..300_u64).map(|number| (number << 55) | (number * 0x9E37_79B9));
    let entries: Vec<_> = hashes.map(|hash| entry(hash, hash % 1000)).collect();
    let run = write(&disk, &entries, 320);
    let bytes = disk.content(&file_name(7));
    // Header, two pages, two fences, and ten blocks from the next cache line on.
    assert_eq!(bytes.len(), 4096 + 2 * 4096 + 64 + 10 * 64);
    assert_eq!(bytes[12288..12304], entries[254].encode());
    assert_eq!(bytes[12304..12320], entries[299].encode());
    assert_eq!(xxh3_64(&bytes), 0x434D_E1C3_BEFE_A42D);
    assert_eq!(run.entries(), 300);
}

proptest! {
    /// Some hashes with few offsets and one with many, in a run of several pages.
    #[test]
    fn a_run_gives_by_cursor_and_stream_what_was_written(
        few in prop::collection::btree_set((any::<u64>(), 0_u64..1000), 0..300),
        hot in (any::<u64>(), 1_u64..700),
        spare in 0_u64..100,
        below in 0_u64..1100,
    ) {
        let mut entries: Vec<_> = few.iter().map(|&(hash, steps)| entry(hash, steps)).collect();
        entries.extend((0..hot.1).map(|steps| entry(hot.0, steps)));
        entries.sort();
        entries.dedup();
        let disk = SimDisk::new(1);
        let run = write(&disk, &entries, entries.len() as u64 + spare);
        let run = Arc::new(Run::open(&*disk.root(), run.listed(), Arc::default()).unwrap());

        let mut stream = RunStream::new(Arc::clone(&run));
        let mut streamed = Vec::new();
        while let Some(entry) = stream.next().unwrap() {
            streamed.push(entry);
        }
        prop_assert_eq!(&streamed, &entries);

        let absent = [0, u64::MAX, hot.0.wrapping_add(1)];
        let hashes = few.iter().take(20).map(|&(hash, _)| hash).chain([hot.0]).chain(absent);
        for hash in hashes.map(KeyHash::new) {
            let mut bound = Some(Offset::new(below * 32));
            let mut cursor = RunCursor::new(Arc::clone(&run), hash);
            let of_hash = entries.iter().filter(|entry| entry.hash == hash);
            for expected in of_hash.filter(|entry| entry.offset < Offset::new(below * 32)) {
                bound = cursor.newest(bound).unwrap();
                prop_assert_eq!(bound, Some(expected.offset));
            }
            prop_assert_eq!(cursor.newest(bound).unwrap(), None);
        }
    }
}

/// So much filter lies between the two hashes that it is left as the zeros of the new file.
#[test]
fn a_filter_that_is_mostly_empty_is_not_written_but_counts() {
    let disk = SimDisk::new(1);
    let entries: Vec<_> = [entry(1 << 40, 5), entry(u64::MAX, 3), entry(u64::MAX, 2)].into();
    let run = write(&disk, &entries, 1_000_000);
    assert!(disk.counters().bytes_written < 30_000);
    let run = Run::open(&*disk.root(), run.listed(), Arc::default()).unwrap();
    assert!(run.may_contain(entries[0].hash).unwrap() && run.may_contain(entries[1].hash).unwrap());
    assert!(!run.may_contain(KeyHash::new(1 << 63)).unwrap());
    let listed = run.listed();
    disk.flip_bit(&file_name(7), Layout::of(1_000_000).filter_at() + 1_000_000, 0);
    let damaged = Run::open(&*disk.root(), listed, Arc::default()).unwrap_err();
    assert!(matches!(
        damaged,
        IndexError::Damaged { damage: Damage::Crc { part: "filter", .. }, .. }
    ));
}

#[test]
#[should_panic = "after"]
fn entries_out_of_order_are_a_fault_of_the_program() {
    write(&SimDisk::new(1), &[entry(1, 1), entry(1, 2)], 2);
}
