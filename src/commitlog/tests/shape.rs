//! How the log lies in its files: groups in a chain, whole within a segment, each segment ended.

use super::bench::{
    BEGIN, Bench, LARGE, SECRETS, SMALL, Told, after, all, at, groups, message_of, put,
    some_message,
};
use super::group::{GROUP_HEADER, GroupHeader, GroupKind, MAX_GROUP};
use super::*;
use timerlog::disk::sim::Random;

const HEADER: u64 = GROUP_HEADER as u64;

/// The most that one turn may take of a segment that is empty.
fn limit(segment_size: u64) -> usize {
    usize::try_from(segment_size - 2 * HEADER).unwrap()
}

/// A log of some segments, flushed every few turns.
fn filled(bench: &Bench, seed: u64) -> (CommitLog, Vec<Told>) {
    let (log, _) = bench.open();
    let (mut random, mut told) = (Random::new(seed), Vec::new());
    while log.end().get() < bench.segment_size * 3 {
        let longest = if random.once_in(5) { bench.segment_size / 3 } else { 900 };
        if let Ok(turn) = put(&log, &[some_message(&mut random, longest)]) {
            told.push(turn);
        }
        if random.once_in(3) {
            log.flush(at(log.end().get())).unwrap();
        }
    }
    log.flush(at(log.end().get())).unwrap();
    (log, told)
}

/// What must hold for any row of groups.
fn check_shape(groups: &[GroupHeader], segment_size: u64, context: &str) {
    let mut expected = BEGIN;
    for header in groups {
        let context = format!("{context}: {header:?}");
        assert_eq!(header.offset, expected.offset, "{context}");
        assert_eq!(header.number, expected.next_number, "{context}");
        assert_eq!(header.previous_hash, expected.previous_hash, "{context}");
        assert!(header.incarnation >= expected.incarnation, "{context}");
        assert!(header.durable_upto <= header.offset, "{context}");
        let first = header.offset.get() / segment_size;
        let last = (header.end().get() - 1) / segment_size;
        assert_eq!(first, last, "{context}: it straddles two segments");
        let ends_segment = header.end().get().is_multiple_of(segment_size);
        assert_eq!(header.kind == GroupKind::EndOfSegment, ends_segment, "{context}");
        assert_eq!(header.count == 0, ends_segment, "{context}");
        assert!(ends_segment || header.length as usize <= MAX_GROUP, "{context}");
        expected = after(header);
    }
}

#[test]
fn groups_follow_each_other_in_a_chain_and_none_straddles_two_segments() {
    for seed in 0..20 {
        for segment_size in [SMALL, LARGE] {
            let context = format!("seed {seed}, segments of {segment_size}");
            let bench = Bench::new(seed, segment_size, FlushMode::Sync);
            let (log, told) = filled(&bench, seed);
            let groups = groups(&log);
            check_shape(&groups, segment_size, &context);
            let ends = groups.iter().filter(|group| group.kind == GroupKind::EndOfSegment);
            assert!(
                ends.count() >= 3,
                "{context}: there must be some segments, or it tells nothing"
            );
            let count: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
            assert_eq!(count, told.len() as u64, "{context}");
        }
    }
}

#[test]
fn a_second_incarnation_goes_on_with_the_chain_of_the_first() {
    let bench = Bench::sync(SMALL);
    let (log, mut told) = filled(&bench, 1);
    let first = groups(&log);
    bench.disk.kill();
    let (log, seen) = bench.open();
    assert_eq!(seen, all(&told));
    told.push(put(&log, &[message_of(96, 1)]).unwrap());
    log.flush(at(0)).unwrap();
    let both = groups(&log);
    check_shape(&both, SMALL, "both incarnations");
    assert_eq!(both[..first.len()], first);
    assert_eq!(both[first.len()].incarnation, first[0].incarnation + 1);
    assert_eq!(both[first.len()].durable_upto, both[first.len()].offset, "recovery has synced");
    bench.disk.kill();
    assert_eq!(bench.open().1, all(&told));
}

#[test]
fn what_waits_for_one_flush_goes_into_one_group() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    for fill in 1..=5 {
        put(&log, &[message_of(128, fill), message_of(96, fill)]).unwrap();
    }
    let expected = Flushed::Groups { groups: 1, records: 10, bytes: HEADER + 5 * (128 + 96) };
    assert_eq!(log.flush(at(0)).unwrap(), expected);
    assert_eq!(log.flush(at(0)).unwrap(), Flushed::Nothing { sync_due_in_ms: None });
    let group = groups(&log)[0];
    assert_eq!((group.count, u64::from(group.length)), (10, HEADER + 5 * (128 + 96)));
    assert_eq!(log.end(), group.end());
}

/// A group that ends where the end of the segment must begin leaves room for just that.
#[test]
fn a_segment_can_be_filled_to_the_last_byte_and_not_beyond() {
    let full = limit(SMALL);
    for short in [0, 32, 64, 96, 128] {
        let bench = Bench::sync(SMALL);
        let (log, _) = bench.open();
        let mut told = vec![put(&log, &[message_of(full - short, 7)]).unwrap()];
        log.flush(at(0)).unwrap();
        told.push(put(&log, &[message_of(96, 8)]).unwrap());
        log.flush(at(0)).unwrap();
        let groups = groups(&log);
        check_shape(&groups, SMALL, &format!("{short} bytes short"));
        let [first, end, second] = groups[..] else { panic!("{groups:?}") };
        assert_eq!(first.length as usize, full - short + GROUP_HEADER);
        assert_eq!(
            (end.kind, end.length as usize),
            (GroupKind::EndOfSegment, GROUP_HEADER + short)
        );
        assert_eq!(second.offset.get(), SMALL);
        bench.disk.kill();
        assert_eq!(bench.open().1, all(&told), "{short} bytes short");
    }
}

#[test]
fn the_last_room_of_a_segment_is_used_by_what_fits_it() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    let short = 96 + GROUP_HEADER;
    put(&log, &[message_of(limit(SMALL) - short, 7)]).unwrap();
    log.flush(at(0)).unwrap();
    put(&log, &[message_of(96, 8)]).unwrap();
    log.flush(at(0)).unwrap();
    assert_eq!(log.end().get(), SMALL - HEADER);
    assert_eq!(groups(&log).len(), 2);
}

#[test]
fn a_turn_that_no_segment_can_hold_is_refused_and_changes_nothing() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    put(&log, &[message_of(96, 1)]).unwrap();
    let end = log.end();
    let refused = log.turn(limit(SMALL) + 32).unwrap_err();
    assert!(matches!(refused, AppendError::TooLong { .. }), "{refused}");
    assert_eq!(log.end(), end);
}

#[test]
fn a_turn_that_no_group_can_hold_is_refused_though_a_segment_could() {
    let bench = Bench::sync(4 * MAX_GROUP as u64);
    let (log, _) = bench.open();
    let longest = MAX_GROUP - GROUP_HEADER;
    assert!(matches!(log.turn(longest + 32), Err(AppendError::TooLong { .. })));
    let half = message_of(longest / 64 * 32, 1);
    let told = put(&log, &[half.clone(), half]).unwrap();
    log.flush(at(0)).unwrap();
    bench.disk.kill();
    assert_eq!(bench.open().1, told.records);
}

#[test]
fn a_group_that_is_full_is_closed_and_the_turn_goes_into_the_next() {
    let bench = Bench::sync(4 * MAX_GROUP as u64);
    let (log, _) = bench.open();
    let told: Vec<_> =
        (1..=3).map(|fill| put(&log, &[message_of(MAX_GROUP / 2, fill)]).unwrap()).collect();
    assert!(matches!(log.flush(at(0)), Ok(Flushed::Groups { groups: 3, records: 3, .. })));
    check_shape(&groups(&log), bench.segment_size, "three long turns");
    bench.disk.kill();
    assert_eq!(bench.open().1, all(&told));
}

#[test]
fn a_turn_that_appends_nothing_leaves_no_trace() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    let receipt = log.turn(1024).unwrap().receipt();
    assert_eq!(receipt.outcome(), Some(Durability::Durable), "nothing was decided before");
    assert_eq!(log.end(), Offset::ZERO);
    assert_eq!(log.flush(at(0)).unwrap(), Flushed::Nothing { sync_due_in_ms: None });
}

#[test]
#[should_panic(expected = "a turn appends no more than it asked room for")]
fn a_turn_that_appends_more_than_it_asked_for_is_a_bug() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    log.turn(96).unwrap().append(message_of(128, 1));
}

#[test]
fn a_log_can_be_read_from_the_end_of_any_group() {
    for segment_size in [SMALL, LARGE] {
        let bench = Bench::new(3, segment_size, FlushMode::Sync);
        let (log, told) = filled(&bench, 3);
        let (groups, end) = (groups(&log), log.end());
        bench.disk.kill();
        let all = all(&told);
        for header in &groups {
            let (recovered, seen) = bench.recover_from(after(header), header.end()).unwrap();
            let later = all.iter().filter(|record| record.offset >= header.end());
            assert!(seen.iter().eq(later), "from {}", header.end());
            assert_eq!(recovered.damage, []);
            assert_eq!(recovered.tail, after(groups.last().unwrap()), "from {}", header.end());
            assert_eq!(recovered.tail.offset, end);
        }
    }
}

#[test]
fn every_record_can_be_read_at_its_offset() {
    for seed in 0..4 {
        let bench = Bench::new(seed, SMALL, FlushMode::Sync);
        let (log, told) = filled(&bench, seed);
        let mut bytes = Vec::new();
        for expected in all(&told) {
            let length = u32::try_from(32 + expected.head.len() + expected.body.len()).unwrap();
            // What a pointer says of the length is a hint: it may be wrong.
            for hint in [None, Some(length), Some(0), Some(length - 1), Some(u32::MAX)] {
                let record = log.reader().record(expected.offset, hint, &mut bytes).unwrap();
                assert_eq!(bench::Seen::of(&record), expected, "seed {seed}, hint {hint:?}");
            }
            let head = log.reader().head(expected.offset, &mut bytes).unwrap();
            assert_eq!((head.head, head.body), (&expected.head[..], &[][..]), "seed {seed}");
        }
    }
}

#[test]
fn every_group_is_read_with_its_records() {
    let bench = Bench::sync(SMALL);
    let (log, told) = filled(&bench, 5);
    let mut seen = Vec::new();
    for header in groups(&log) {
        let mut bytes = Vec::new();
        log.reader().group(header.offset, &mut bytes).unwrap();
        for record in records(&header, &bytes, SECRETS) {
            seen.push(bench::Seen::of(&record.unwrap()));
        }
    }
    assert_eq!(seen, all(&told));
}

#[test]
fn where_no_record_begins_none_is_read() {
    let bench = Bench::sync(SMALL);
    let (log, told) = filled(&bench, 5);
    let begins: Vec<_> = all(&told).iter().map(|record| record.offset).collect();
    let mut bytes = Vec::new();
    for offset in (0..log.end().get() + 128).step_by(32).map(Offset::new) {
        for hint in [None, Some(4096)] {
            let is_one = begins.binary_search(&offset).is_ok();
            let read = log.reader().record(offset, hint, &mut bytes);
            assert_eq!(read.is_ok(), is_one, "at {offset}");
            assert!(
                is_one
                    || matches!(read, Err(ReadError::Record { .. } | ReadError::PastTheEnd { .. })),
                "at {offset}"
            );
        }
    }
    let far = log.reader().record(Offset::new(u64::MAX - 31), None, &mut bytes);
    assert!(matches!(far, Err(ReadError::PastTheEnd { .. })));
}

#[test]
fn what_is_not_flushed_cannot_be_seen() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    let told = put(&log, &[message_of(96, 1)]).unwrap();
    assert_eq!((log.visible(), log.durable()), (Offset::ZERO, Offset::ZERO));
    assert_eq!(told.receipt.outcome(), None);
    let mut bytes = Vec::new();
    let read = log.reader().record(told.records[0].offset, None, &mut bytes);
    assert!(matches!(read, Err(ReadError::PastTheEnd { .. })));
    log.flush(at(0)).unwrap();
    assert_eq!((log.visible(), log.durable()), (log.end(), log.end()));
    assert_eq!(told.receipt.outcome(), Some(Durability::Durable));
    assert!(log.reader().record(told.records[0].offset, None, &mut bytes).is_ok());
}
