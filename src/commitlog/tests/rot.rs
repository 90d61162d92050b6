//! Rot: what was durable cannot be read any more. It costs what was hit, is reported to the byte, and
//! nothing else is lost.

use std::ops::Range;

use super::bench::{
    BEGIN, Bench, LARGE, SECRETS, SMALL, Seen, Told, WITHOUT_BODY, after, all, at, groups,
    message_of, put,
};
use super::group::{GROUP_HEADER, GroupHeader, GroupKind, RecordsHash};
use super::*;
use crate::message::record::{HEADER_LENGTH, MAX_HEAD_LENGTH, Record};

const HEADER: u64 = GROUP_HEADER as u64;

/// A log of groups that were each flushed before the next was written.
struct Rotten {
    bench: Bench,
    told: Vec<Told>,
    groups: Vec<GroupHeader>,
}

/// Lengths of the records of each group.
const LENGTHS: [&[usize]; 5] = [&[96], &[128, 96], &[96, 320, 128], &[160], &[96, 96, 96, 96]];

fn log_of(segment_size: u64, lengths: &[&[usize]]) -> Rotten {
    let bench = Bench::sync(segment_size);
    let (log, _) = bench.open();
    let mut told = Vec::new();
    for (fill, lengths) in (1..).zip(lengths) {
        let records: Vec<_> = lengths.iter().map(|&length| message_of(length, fill)).collect();
        told.push(put(&log, &records).unwrap());
        log.flush(at(u64::from(fill))).unwrap();
    }
    let groups = groups(&log);
    bench.disk.kill();
    Rotten { bench, told, groups }
}

impl Rotten {
    /// Turns over one bit of each of `bytes`.
    fn flip(&self, bytes: Range<u64>) {
        for byte in bytes {
            let within = byte % self.bench.segment_size;
            let bit = u8::try_from(byte % 8).unwrap();
            self.bench.disk.flip_bit(&self.bench.file(Offset::new(byte)), within, bit);
        }
    }

    /// The records and headers that `bytes` touches, as stretches; neighbours are one.
    fn touched(&self, bytes: &Range<u64>) -> Vec<Damage> {
        let headers = self.groups.iter().map(|header| match header.kind {
            GroupKind::Records => (header.offset, HEADER),
            // What was in it cannot be told from what stood there before.
            GroupKind::EndOfSegment => (header.offset, u64::from(header.length)),
        });
        let records = all(&self.told).into_iter().map(|record| (record.offset, taken(&record)));
        let mut units: Vec<_> = headers.chain(records).collect();
        units.sort_unstable();
        let mut damage: Vec<Damage> = Vec::new();
        for (from, length) in units {
            if from.get() + length <= bytes.start || from.get() >= bytes.end {
                continue;
            }
            match damage.last_mut() {
                Some(last) if last.from.plus(last.length) == from => last.length += length,
                _ => damage.push(Damage { from, length }),
            }
        }
        damage
    }

    /// Everything is there but what is damaged, and the log goes on behind it.
    fn check(&self, damage: &[Damage], context: &str) {
        let (recovered, seen) = self.bench.recover().expect(context);
        let hit = |record: &Seen| {
            damage.iter().any(|d| (d.from..d.from.plus(d.length)).contains(&record.offset))
        };
        let expected: Vec<_> = all(&self.told).into_iter().filter(|record| !hit(record)).collect();
        assert_eq!(recovered.damage, damage, "{context}");
        assert_eq!(seen, expected, "{context}");
        assert_eq!(recovered.tail, after(self.groups.last().unwrap()), "{context}");
    }
}

fn taken(record: &Seen) -> u64 {
    let length = HEADER_LENGTH + record.head.len() + record.body.len();
    crate::message::offset::round_up(length) as u64
}

#[test]
fn one_flipped_bit_costs_one_record_or_a_header_and_is_reported_to_the_byte() {
    let log = log_of(SMALL, &LENGTHS);
    for group in &log.groups[..log.groups.len() - 1] {
        for byte in group.offset.get()..group.end().get() {
            let hit = byte..byte + 1;
            log.flip(hit.clone());
            let damage = log.touched(&hit);
            assert_eq!(damage.len(), 1, "byte {byte}");
            log.check(&damage, &format!("byte {byte} of {group:?}"));
            log.flip(hit);
        }
    }
    log.check(&[], "every bit is back");
}

#[test]
fn every_bit_of_a_group_in_the_middle_matters() {
    let log = log_of(SMALL, &[&[96], &[96], &[96]]);
    let middle = log.groups[1];
    for byte in middle.offset.get()..middle.end().get() {
        for bit in 0..8 {
            let file = log.bench.file(Offset::ZERO);
            log.bench.disk.flip_bit(&file, byte, bit);
            log.check(&log.touched(&(byte..byte + 1)), &format!("byte {byte}, bit {bit}"));
            log.bench.disk.flip_bit(&file, byte, bit);
        }
    }
}

#[test]
fn a_stretch_of_rot_costs_the_records_that_it_touches() {
    let log = log_of(SMALL, &LENGTHS);
    let end = log.groups[3].end().get();
    for from in (0..end).step_by(48) {
        for length in [2, 32, 100, 512, 700] {
            let hit = from..(from + length).min(end);
            log.flip(hit.clone());
            log.check(&log.touched(&hit), &format!("bytes {hit:?}"));
            log.flip(hit);
        }
    }
}

#[test]
fn two_places_of_rot_are_two_damages() {
    let log = log_of(SMALL, &LENGTHS);
    let (first, second) = (&log.told[1].records[0], &log.told[3].records[0]);
    let mut expected = Vec::new();
    for record in [first, second] {
        let byte = record.offset.get() + 40;
        log.flip(byte..byte + 1);
        expected.push(Damage { from: record.offset, length: taken(record) });
    }
    log.check(&expected, "two groups");
}

/// Segments of which the first is ended, so that rot can hit what ends it and what begins the next.
fn ended() -> Rotten {
    let half = usize::try_from(SMALL / 2).unwrap();
    log_of(SMALL, &[&[96], &[half, 512], &[half], &[96]])
}

#[test]
fn rot_of_what_ends_a_segment_costs_no_record() {
    let log = ended();
    let end = log.groups.iter().find(|group| group.kind == GroupKind::EndOfSegment).unwrap();
    for byte in end.offset.get()..end.offset.get() + HEADER {
        let hit = byte..byte + 1;
        log.flip(hit.clone());
        let damage = [Damage { from: end.offset, length: u64::from(end.length) }];
        log.check(&damage, &format!("byte {byte}"));
        log.flip(hit);
    }
    // What is behind the header was never written: it may be anything.
    log.flip(end.offset.get() + HEADER..end.end().get());
    log.check(&[], "behind the header");
}

#[test]
fn rot_over_the_end_of_a_segment_costs_what_it_touches_on_both_sides() {
    let log = ended();
    let next = log.groups.iter().find(|group| group.offset.get() == SMALL).unwrap();
    let hit = next.offset.get()..next.offset.get() + 200;
    log.flip(hit.clone());
    log.check(&log.touched(&hit), "the first group of the second segment");
}

/// The power failed in the first life, and groups that nobody was told of were cut. The next life ended
/// the segment before it came to where they stand. When later the header that ended it rots, they must
/// not be taken for something that was lost.
#[test]
fn what_a_torn_tail_left_behind_the_end_of_a_segment_is_not_salvaged() {
    let bench = Bench::new(1, SMALL, FlushMode::Async { interval_ms: 1_000_000 });
    let (log, _) = bench.open();
    let half = usize::try_from(SMALL / 2).unwrap();
    let mut told = vec![put(&log, &[message_of(half, 1)]).unwrap()];
    log.flush(at(1)).unwrap();
    let end = log.end();
    for fill in 2..6 {
        put(&log, &[message_of(96, fill), message_of(128, fill)]).unwrap();
        log.flush(at(2)).unwrap();
    }
    bench.disk.kill();
    bench.disk.flip_bit(&bench.file(end), end.get() + 50, 0);

    for fill in 10..12 {
        let (log, seen) = bench.open();
        assert_eq!(seen, all(&told), "life {fill}");
        // Too long for what is left of the segment, so the first thing is its end.
        told.push(put(&log, &[message_of(if fill == 10 { half } else { 96 }, fill)]).unwrap());
        log.flush(at(3)).unwrap();
        bench.disk.kill();
    }
    bench.disk.flip_bit(&bench.file(end), end.get() + 20, 0);
    let (recovered, seen) = bench.recover().unwrap();
    assert_eq!(seen, all(&told));
    assert_eq!(recovered.damage, [Damage { from: end, length: SMALL - end.get() }]);
}

/// The same, where the groups that were cut have numbers that are in use again before them.
#[test]
fn a_cut_group_does_not_pass_for_the_next_one_since_it_has_its_number() {
    let bench = Bench::new(1, SMALL, FlushMode::Async { interval_ms: 1_000_000 });
    let (log, _) = bench.open();
    let half = usize::try_from(SMALL / 2).unwrap();
    let mut told = vec![put(&log, &[message_of(half, 1)]).unwrap()];
    log.flush(at(1)).unwrap();
    let end = log.end();
    for (length, fill) in [(1600, 2), (96, 3), (96, 4)] {
        put(&log, &[message_of(length, fill)]).unwrap();
        log.flush(at(2)).unwrap();
    }
    bench.disk.kill();
    bench.disk.flip_bit(&bench.file(end), end.get() + 50, 0);

    let (log, seen) = bench.open();
    assert_eq!(seen, all(&told));
    for (length, fill) in [(96, 10), (96, 11), (half, 12)] {
        told.push(put(&log, &[message_of(length, fill)]).unwrap());
        log.flush(at(3)).unwrap();
    }
    log.flush_to_disk(at(4)).unwrap();
    told.push(put(&log, &[message_of(96, 13)]).unwrap());
    log.flush(at(5)).unwrap();
    bench.disk.kill();
    bench.disk.flip_bit(&bench.file(end), end.get() + 20, 0);
    let (recovered, seen) = bench.recover().unwrap();
    assert_eq!(recovered.damage, [Damage { from: end, length: HEADER }]);
    assert_eq!(seen, all(&told));
}

/// A body that has been damaged is searched for records, and whoever sent it may have filled it with what
/// looks like the beginning of long ones.
#[test]
fn a_hostile_body_does_not_make_the_search_for_records_expensive() {
    let mut header = [0; HEADER_LENGTH];
    header[16..20].copy_from_slice(&u32::try_from(MAX_HEAD_LENGTH).unwrap().to_le_bytes());
    let bench = Bench::sync(4 * LARGE);
    let (log, _) = bench.open();
    // The body begins within a step, the headers at the next.
    let into_step = WITHOUT_BODY % HEADER_LENGTH;
    let body = [&header[into_step..], &header.repeat(20_000)].concat();
    let hostile = bench::message_with(&body);
    let told = put(&log, &[message_of(96, 1), hostile, message_of(96, 2)]).unwrap();
    log.flush(at(0)).unwrap();
    put(&log, &[message_of(96, 3)]).unwrap();
    log.flush(at(1)).unwrap();
    bench.disk.kill();
    let hit = told.records[1].offset;
    bench.disk.flip_bit(&bench.file(hit), hit.get() + 300, 0);
    let before = bench.disk.counters().bytes_read;
    let (recovered, seen) = bench.recover().unwrap();
    let read = bench.disk.counters().bytes_read - before;
    assert_eq!(recovered.damage, [Damage { from: hit, length: taken(&told.records[1]) }]);
    assert_eq!(seen.len(), 3);
    assert!(read < 5 * 4 * LARGE, "{read} bytes were read");
}

#[test]
fn a_record_that_stands_in_the_place_of_another_is_reported_with_its_group() {
    let log = log_of(SMALL, &LENGTHS);
    let (group, record) = (log.groups[2], &log.told[2].records[1]);
    let mut other = message_of(usize::try_from(taken(record)).unwrap(), 0xee);
    let at = usize::try_from(record.offset.get()).unwrap();
    let sealed = other.seal(record.offset, SECRETS.record);
    log.bench.disk.edit(&log.bench.file(record.offset), |bytes| {
        bytes[at..at + sealed.len()].copy_from_slice(sealed);
    });
    let (recovered, seen) = log.bench.recover().unwrap();
    let damage = Damage { from: group.offset, length: u64::from(group.length) };
    assert_eq!(recovered.damage, [damage]);
    let mut expected = all(&log.told);
    let place = expected.iter().position(|seen| seen == record).unwrap();
    expected[place] = Seen::of(&Record::check(sealed, record.offset, SECRETS.record).unwrap());
    assert_eq!(seen, expected);
    assert_eq!(recovered.tail, after(log.groups.last().unwrap()));
}

#[test]
fn rot_far_from_the_next_whole_group_is_found_over_more_than_one_block_of_the_search() {
    let long = usize::try_from(4 * LARGE).unwrap();
    let log = log_of(16 * LARGE, &[&[96], &[long, 96], &[96], &[96]]);
    let byte = log.groups[1].offset.get();
    log.flip(byte..byte + 1);
    log.check(&log.touched(&(byte..byte + 1)), "the header of a long group");
    log.flip(byte..byte + 1);
    let body = byte + HEADER + 1000;
    log.flip(body..body + 1);
    log.check(&log.touched(&(body..body + 1)), "a long body");
}

#[test]
fn damage_is_the_same_at_every_start_and_stays_readable_around() {
    let log = log_of(SMALL, &LENGTHS);
    let byte = log.told[2].records[1].offset.get() + 100;
    log.flip(byte..byte + 1);
    let damage = log.touched(&(byte..byte + 1));
    for _ in 0..3 {
        log.check(&damage, "start after start");
        log.bench.disk.kill();
    }
    let (recovered, mut expected) = log.bench.recover().unwrap();
    let grown = log.bench.grow(recovered);
    expected.extend(put(&grown, &[message_of(96, 99)]).unwrap().records);
    grown.flush(at(99)).unwrap();
    log.bench.disk.crash(&mut timerlog::disk::sim::Random::new(1));
    let (recovered, seen) = log.bench.recover().unwrap();
    assert_eq!((seen, recovered.damage), (expected, damage));
}

// A log that is not what the checkpoint says.

#[test]
fn a_log_that_lost_what_a_checkpoint_had_seen_is_refused_and_not_touched() {
    let log = log_of(SMALL, &LENGTHS);
    let last = log.groups.last().unwrap();
    for byte in [last.offset.get(), last.offset.get() + HEADER + 50, last.end().get() - 40] {
        log.flip(byte..byte + 1);
        let before = log.bench.disk.fingerprint();
        for durable in [last.offset.plus(32), last.end()] {
            let refused = log.bench.recover_from(BEGIN, durable).unwrap_err();
            let (at, upto) = (last.offset.get(), durable.get());
            assert!(
                matches!(refused, RecoverError::Shorter { end, durable } if (end, durable) == (at, upto)),
                "{refused}"
            );
        }
        assert_eq!(log.bench.disk.fingerprint(), before, "nothing is touched");
        // What it had seen before that is there, so a checkpoint of then is content.
        log.bench.recover_from(BEGIN, last.offset).unwrap();
        log.flip(byte..byte + 1);
    }
}

#[test]
fn a_log_whose_file_is_missing_or_cut_short_is_refused_by_name_and_not_touched() {
    let half = usize::try_from(SMALL / 2).unwrap();
    // The second segment is not half used, so it is the newest file.
    let log = log_of(SMALL, &[&[96], &[half, 512], &[half - 768]]);
    let durable = log.groups.last().unwrap().end();
    assert!(durable.get() > SMALL && log.bench.disk.files().len() == 2);
    let second = log.bench.file(durable);
    let whole = log.bench.disk.content(&second);
    let refused = |context: &str| {
        let before = log.bench.disk.fingerprint();
        for from in [BEGIN, after(&log.groups[0]), after(&log.groups[2])] {
            let error = log.bench.recover_from(from, durable).unwrap_err();
            assert!(error.to_string().contains(&second), "{context}: {error}");
        }
        assert_eq!(log.bench.disk.fingerprint(), before, "{context}");
    };
    for length in [0, 4096, whole.len() - 1] {
        log.bench.disk.edit(&second, |bytes| bytes.truncate(length));
        refused(&format!("cut to {length} bytes"));
    }
    log.bench.disk.remove_tree(&second);
    refused("missing");
}

// A log that a newer version wrote.

/// Puts `header` in the place of `old`, sealed.
fn replace_header(bench: &Bench, old: &GroupHeader, header: [u8; GROUP_HEADER]) {
    let within = usize::try_from(old.offset.get() % bench.segment_size).unwrap();
    bench.disk.edit(&bench.file(old.offset), |bytes| {
        bytes[within..within + GROUP_HEADER].copy_from_slice(&header);
    });
}

fn with_crc(mut header: [u8; GROUP_HEADER]) -> [u8; GROUP_HEADER] {
    let crc = crc32c::crc32c(&header[..GROUP_HEADER - 4]);
    header[GROUP_HEADER - 4..].copy_from_slice(&crc.to_le_bytes());
    header
}

#[test]
fn a_group_of_a_newer_version_is_refused_by_name_and_not_cut() {
    for (place, value) in [(74, 2), (74, 0xff), (72, 3), (72, 0)] {
        for which in [0, 2, 4] {
            let log = log_of(SMALL, &LENGTHS);
            let mut header = log.groups[which].encode(SECRETS.group);
            header[place] = value;
            replace_header(&log.bench, &log.groups[which], with_crc(header));
            let before = log.bench.disk.fingerprint();
            let refused = log.bench.recover().unwrap_err();
            assert!(
                matches!(
                    &refused,
                    RecoverError::Newer(ReadError::Group { offset, .. })
                        if *offset == log.groups[which].offset.get()
                ),
                "group {which}, byte {place} = {value}: {refused}"
            );
            assert_eq!(log.bench.disk.fingerprint(), before, "nothing is touched");
        }
    }
}

#[test]
fn a_group_of_a_newer_version_behind_rot_is_refused_by_name_and_not_cut() {
    let log = log_of(SMALL, &LENGTHS);
    let byte = log.groups[1].offset.get();
    log.flip(byte..byte + 1);
    for group in &log.groups[2..] {
        let mut header = group.encode(SECRETS.group);
        header[74] = 2;
        replace_header(&log.bench, group, with_crc(header));
    }
    let before = log.bench.disk.fingerprint();
    let refused = log.bench.recover().unwrap_err();
    assert!(matches!(refused, RecoverError::Newer(ReadError::Group { .. })), "{refused}");
    assert_eq!(log.bench.disk.fingerprint(), before, "nothing is touched");
}

/// Nothing that we write looks so, and a start must come to an end all the same.
#[test]
fn an_end_of_segment_that_contradicts_itself_is_reported_and_passed() {
    let log = ended();
    let end = log.groups.iter().find(|group| group.kind == GroupKind::EndOfSegment).unwrap();
    let header = GroupHeader { count: 1, ..*end };
    replace_header(&log.bench, end, header.encode(SECRETS.group));
    log.check(&[Damage { from: end.offset, length: u64::from(end.length) }], "it counts a record");
}

#[test]
fn a_record_of_a_newer_version_or_an_unknown_kind_is_refused_by_name_and_not_cut() {
    for (place, value) in [(25, 2), (24, 31), (24, 0xff)] {
        for which in [0, 2, 4] {
            let log = log_of(SMALL, &LENGTHS);
            let record = log.told[which].records.last().unwrap();
            reseal(&log, which, record.offset, |bytes| bytes[place] = value);
            let before = log.bench.disk.fingerprint();
            let refused = log.bench.recover().unwrap_err();
            assert!(
                matches!(
                    &refused,
                    RecoverError::Newer(ReadError::Record { offset, .. })
                        if *offset == record.offset.get()
                ),
                "group {which}, byte {place} = {value}: {refused}"
            );
            assert_eq!(log.bench.disk.fingerprint(), before, "nothing is touched");
        }
    }
}

/// Changes the record at `offset` of group `which` and makes the crcs of the record and of the group's
/// header right again, as another program would have written them.
fn reseal(log: &Rotten, which: usize, offset: Offset, change: impl FnOnce(&mut [u8])) {
    let group = log.groups[which];
    let (start, end) = (group.offset.get(), group.end().get());
    let (start, end) = (usize::try_from(start).unwrap(), usize::try_from(end).unwrap());
    let at = usize::try_from(offset.get()).unwrap();
    log.bench.disk.edit(&log.bench.file(group.offset), |bytes| {
        let head_end = at + HEADER_LENGTH + message_head_length(&bytes[at..]);
        change(&mut bytes[at..]);
        let crc = crc32c::crc32c(&bytes[at + 4..head_end]);
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
        let records_hash = hash_of(&bytes[start..end], group.offset);
        let header = GroupHeader { records_hash, ..group }.encode(SECRETS.group);
        bytes[start..start + GROUP_HEADER].copy_from_slice(&header);
    });
}

fn message_head_length(record: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([record[16], record[17]]))
}

/// By the crcs as they stand in the bytes, whatever the records are.
fn hash_of(group: &[u8], offset: Offset) -> u128 {
    let (mut at, mut hash) = (GROUP_HEADER, RecordsHash::default());
    while at < group.len() {
        let mut crcs = [0; 8];
        crcs.copy_from_slice(&group[at..at + 8]);
        hash.add(crcs);
        let body = usize::from(u16::from_le_bytes([group[at + 20], group[at + 21]]));
        let length = HEADER_LENGTH + message_head_length(&group[at..]) + body;
        at += crate::message::offset::round_up(length);
    }
    assert_eq!(at, group.len(), "the group at {offset} is full of records");
    hash.finish()
}

// The chain.

/// Writes a group of other content, whole and sealed, in the place of group `which`.
fn replace(log: &Rotten, which: usize, header: GroupHeader) -> Vec<Seen> {
    let group = log.groups[which];
    let (mut at, mut hash) = (group.offset.plus(HEADER), RecordsHash::default());
    let mut content = Vec::new();
    for record in &log.told[which].records {
        let mut other = message_of(usize::try_from(taken(record)).unwrap(), 0xee);
        let sealed = other.seal(at, SECRETS.record);
        hash.add(Record::check(sealed, at, SECRETS.record).unwrap().header.crcs());
        content.extend_from_slice(sealed);
        at = at.plus(sealed.len() as u64);
    }
    let header = GroupHeader { records_hash: hash.finish(), ..header };
    replace_header(&log.bench, &group, header.encode(SECRETS.group));
    let within = usize::try_from(group.offset.get() % log.bench.segment_size).unwrap();
    log.bench.disk.edit(&log.bench.file(group.offset), |bytes| {
        bytes[within + GROUP_HEADER..][..content.len()].copy_from_slice(&content);
    });
    let mut at = 0;
    let mut seen = Vec::new();
    while at < content.len() {
        let offset = group.offset.plus(HEADER + at as u64);
        let record = Record::check(&content[at..], offset, SECRETS.record).unwrap();
        at += record.header.padded_length();
        seen.push(Seen::of(&record));
    }
    seen
}

#[test]
fn a_whole_group_that_was_written_after_another_one_is_not_accepted_in_the_middle() {
    for which in 1..4 {
        for other in [0, 1, log_of(SMALL, &LENGTHS).groups[which].previous_hash ^ 1] {
            let log = log_of(SMALL, &LENGTHS);
            let group = log.groups[which];
            replace(&log, which, GroupHeader { previous_hash: other, ..group });
            let damage = [Damage { from: group.offset, length: u64::from(group.length) }];
            log.check(&damage, &format!("group {which} follows another"));
        }
    }
}

#[test]
fn a_whole_group_that_was_written_after_another_one_is_not_accepted_at_the_tail() {
    let log = log_of(SMALL, &LENGTHS);
    let last = *log.groups.last().unwrap();
    for header in [
        GroupHeader { previous_hash: last.previous_hash ^ 1, ..last },
        GroupHeader { number: last.number + 1, ..last },
        GroupHeader { number: last.number - 1, ..last },
        GroupHeader { incarnation: last.incarnation - 1, ..last },
    ] {
        replace(&log, log.groups.len() - 1, header);
        let (recovered, seen) = log.bench.recover().unwrap();
        assert_eq!(seen, all(&log.told[..log.told.len() - 1]), "{header:?}");
        assert_eq!(recovered.tail.offset, last.offset, "{header:?}");
        assert_eq!(recovered.damage, [], "{header:?}");
    }
}

/// The disk answered that a write was done and lost it, and what stood there before was a whole group of
/// the same place in the chain. It passes for ours until the next group says that it was written after
/// another one. Its records have been served by then, and the report says which they are. That takes two
/// more groups: of two that do not fit each other, the third says which is ours.
#[test]
fn a_whole_group_that_the_next_one_does_not_follow_is_reported() {
    for which in 0..3 {
        let log = log_of(SMALL, &LENGTHS);
        let group = log.groups[which];
        let other = replace(&log, which, GroupHeader { closed_at: at(77).wall, ..group });
        let (recovered, seen) = log.bench.recover().unwrap();
        let damage = [Damage { from: group.offset, length: u64::from(group.length) }];
        assert_eq!(recovered.damage, damage, "group {which}");
        assert_eq!(recovered.tail, after(log.groups.last().unwrap()), "group {which}");
        let ours: Vec<_> = seen.iter().filter(|record| !other.contains(record)).collect();
        let expected = all(&log.told);
        let in_group = |record: &&Seen| (group.offset..group.end()).contains(&record.offset);
        let expected: Vec<_> = expected.iter().filter(|record| !in_group(record)).collect();
        assert_eq!(ours, expected, "group {which}");
    }
}
