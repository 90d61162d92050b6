//! The disk fails, is full, or is slow.

use std::io::ErrorKind;
use std::sync::Arc;

use timerlog::disk::Operation;
use timerlog::disk::sim::Random;

use super::bench::{
    Bench, LARGE, SMALL, Told, acknowledged, all, at, message_of, put, whole_turns,
};
use super::*;
use crate::sync::Mutex;

/// A log with three turns flushed, and one that waits.
fn waiting(mode: FlushMode) -> (Bench, CommitLog, Vec<Told>) {
    let bench = Bench::new(5, SMALL, mode);
    let (log, _) = bench.open();
    let mut told = Vec::new();
    for fill in 1..=3 {
        told.push(put(&log, &[message_of(96, fill), message_of(5000 / 32 * 32, fill)]).unwrap());
        log.flush(at(u64::from(fill))).unwrap();
    }
    told.push(put(&log, &[message_of(96, 9), message_of(9984, 9)]).unwrap());
    (bench, log, told)
}

/// What must hold of a log once a write or a sync has failed.
fn check_failed(bench: &Bench, log: &CommitLog, told: &[Told], context: &str) {
    assert_eq!(acknowledged(told), 3, "{context}: the one that waited is not durable");
    let outcome = told[3].receipt.outcome();
    assert_eq!(outcome, Some(Durability::Failed), "{context}");
    let before = bench.disk.counters();
    for _ in 0..3 {
        let refused = log.turn(96).unwrap_err();
        assert!(matches!(refused, AppendError::Failed(_)), "{context}: {refused}");
        let refused = log.turn(0).unwrap_err();
        assert!(matches!(refused, AppendError::Failed(_)), "{context}: {refused}");
        log.flush(at(1000)).unwrap_err();
        log.flush_to_disk(at(1000)).unwrap_err();
    }
    let after = bench.disk.counters();
    assert_eq!(after, before, "{context}: the disk is left alone, above all not synced again");
    let last_durable = told[3].records[0].offset;
    assert!(log.durable() < last_durable, "{context}");
    assert!(log.visible() < last_durable, "{context}");
}

#[test]
fn a_failed_sync_fails_whoever_waits_and_is_never_tried_again() {
    let (bench, log, told) = waiting(FlushMode::Sync);
    bench.disk.fail_next(Operation::Sync, 1, ErrorKind::Other);
    let error = log.flush(at(10)).unwrap_err();
    assert!(error.to_string().contains("sync"), "{error}");
    check_failed(&bench, &log, &told, "failed sync");
}

#[test]
fn a_failed_write_fails_whoever_waits_and_nothing_is_synced_after_it() {
    for seed in 0..20 {
        let (bench, log, told) = waiting(FlushMode::Sync);
        bench.disk.fail_next(Operation::Write, 1, ErrorKind::Other);
        let error = log.flush(at(10)).unwrap_err();
        assert!(error.to_string().contains("write"), "{error}");
        check_failed(&bench, &log, &told, "failed write");
        bench.disk.crash(&mut Random::new(seed));
        let seen = bench.open().1;
        assert!(whole_turns(&seen, &told, &format!("seed {seed}")) >= 3, "seed {seed}");
    }
}

/// The kernel forgets what it could not write and shows it all the same. So what a failed sync left is
/// seen by the next start, and must then be written again to be there after a power cut.
#[test]
fn what_a_failed_sync_left_in_the_page_cache_is_made_durable_by_the_next_start() {
    for seed in 0..20 {
        let context = format!("seed {seed}");
        let (bench, log, told) = waiting(FlushMode::Sync);
        bench.disk.fail_next(Operation::Sync, 1, ErrorKind::Other);
        log.flush(at(10)).unwrap_err();
        bench.disk.kill();
        let (_, shown) = bench.recover().unwrap();
        assert_eq!(shown, all(&told), "{context}: the page cache has it");
        bench.disk.crash(&mut Random::new(seed));
        assert_eq!(bench.open().1, shown, "{context}");
    }
}

#[test]
fn what_a_failed_sync_lost_was_acknowledged_to_nobody() {
    for seed in 0..20 {
        let (bench, log, told) = waiting(FlushMode::Sync);
        bench.disk.fail_next(Operation::Sync, 1, ErrorKind::Other);
        log.flush(at(10)).unwrap_err();
        bench.disk.crash(&mut Random::new(seed));
        assert_eq!(bench.open().1, all(&told[..3]), "seed {seed}");
    }
}

/// Appends one turn while the disk is at work on the next `operation`, as another thread would.
fn append_during(
    bench: &Bench,
    log: &Arc<CommitLog>,
    operation: Operation,
) -> Arc<Mutex<Vec<Told>>> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let (noted, log) = (Arc::clone(&told), Arc::clone(log));
    bench.disk.on_operation(move |now, _| {
        if now == operation && noted.lock().is_empty() {
            noted.lock().push(put(&log, &[message_of(96, 77)]).unwrap());
        }
    });
    told
}

#[test]
fn what_is_appended_while_the_flush_fails_has_failed_too() {
    for operation in [Operation::Write, Operation::Sync] {
        let (bench, log, told) = waiting(FlushMode::Sync);
        let log = Arc::new(log);
        let meanwhile = append_during(&bench, &log, operation);
        bench.disk.fail_next(operation, 1, ErrorKind::Other);
        log.flush(at(10)).unwrap_err();
        let outcome = meanwhile.lock()[0].receipt.outcome();
        assert_eq!(outcome, Some(Durability::Failed), "{operation}: it waits for nobody");
        check_failed(&bench, &log, &told, &format!("failed {operation}"));
    }
}

#[test]
fn what_is_appended_during_a_flush_waits_for_the_next() {
    for operation in [Operation::Write, Operation::Sync] {
        let (bench, log, mut told) = waiting(FlushMode::Sync);
        let log = Arc::new(log);
        let meanwhile = append_during(&bench, &log, operation);
        log.flush(at(10)).unwrap();
        assert!(told[3].is_durable(), "{operation}");
        told.extend(meanwhile.lock().clone());
        assert_eq!(told[4].receipt.outcome(), None, "{operation}: it was not written yet");
        assert!(log.durable() < log.end(), "{operation}");
        log.flush(at(11)).unwrap();
        assert!(told[4].is_durable(), "{operation}");
        bench.disk.crash(&mut Random::new(1));
        assert_eq!(bench.open().1, all(&told), "{operation}");
    }
}

#[test]
fn a_failed_sync_of_the_interval_fails_the_log_and_is_never_tried_again() {
    let (bench, log, told) = waiting(FlushMode::Async { interval_ms: 100 });
    log.flush(at(10)).unwrap();
    assert_eq!(acknowledged(&told), 4, "written is what was asked for");
    bench.disk.fail_next(Operation::Sync, 1, ErrorKind::Other);
    log.flush(at(500)).unwrap_err();
    let before = bench.disk.counters();
    assert!(matches!(log.turn(96), Err(AppendError::Failed(_))));
    log.flush(at(1000)).unwrap_err();
    log.flush_to_disk(at(1000)).unwrap_err();
    assert_eq!(bench.disk.counters(), before);
    assert_eq!(log.durable(), Offset::ZERO);
}

#[test]
fn a_segment_that_cannot_be_made_for_another_reason_than_room_fails_the_log() {
    for operation in [Operation::Create, Operation::Sync, Operation::SyncDirectory] {
        let bench = Bench::sync(SMALL);
        let (log, _) = bench.open();
        let half = usize::try_from(SMALL / 2).unwrap();
        let told = put(&log, &[message_of(half, 1)]).unwrap();
        // The first sync is the flush's own.
        let nth = if operation == Operation::Sync { 2 } else { 1 };
        bench.disk.fail_next(operation, nth, ErrorKind::Other);
        log.flush(at(0)).unwrap_err();
        assert!(told.is_durable(), "{operation}: it was synced before");
        assert!(matches!(log.turn(96), Err(AppendError::Failed(_))), "{operation}");
        bench.disk.crash(&mut Random::new(3));
        assert_eq!(bench.open().1, told.records, "{operation}");
    }
}

// No room.

/// A disk with room for one segment, most of which is used.
fn nearly_full() -> (Bench, CommitLog, Vec<Told>) {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    bench.disk.set_capacity(Some(SMALL));
    let told = vec![put(&log, &[message_of(40_000, 1)]).unwrap()];
    log.flush(at(0)).unwrap();
    (bench, log, told)
}

#[test]
fn on_a_full_disk_what_does_not_fit_is_refused_and_what_does_goes_on() {
    let (bench, log, mut told) = nearly_full();
    for fill in 2..5 {
        let refused = put(&log, &[message_of(32_000, fill)]).unwrap_err();
        assert!(matches!(refused, AppendError::StorageFull), "{refused}");
        told.push(put(&log, &[message_of(320, fill)]).unwrap());
        log.flush(at(u64::from(fill))).unwrap();
        assert!(told.last().unwrap().is_durable());
    }
    bench.disk.crash(&mut Random::new(1));
    assert_eq!(bench.open().1, all(&told));
}

#[test]
fn when_room_comes_back_the_log_goes_on_without_a_restart() {
    let (bench, log, mut told) = nearly_full();
    assert!(matches!(put(&log, &[message_of(32_000, 2)]), Err(AppendError::StorageFull)));
    bench.disk.set_capacity(None);
    // The flush looks for room whenever it has nothing else to do.
    assert_eq!(log.flush(at(1)).unwrap(), Flushed::Nothing { sync_due_in_ms: None });
    told.push(put(&log, &[message_of(32_000, 2)]).unwrap());
    log.flush(at(2)).unwrap();
    bench.disk.crash(&mut Random::new(1));
    assert_eq!(bench.open().1, all(&told));
}

/// A disk may say that it is full when it syncs. That is a failed sync, and no lack of room that passes.
#[test]
fn a_sync_that_finds_no_room_is_a_failed_sync() {
    for operation in [Operation::Sync, Operation::SyncDirectory] {
        let bench = Bench::sync(SMALL);
        let (log, _) = bench.open();
        let told = put(&log, &[message_of(40_000, 1)]).unwrap();
        let nth = if operation == Operation::Sync { 2 } else { 1 };
        bench.disk.fail_next(operation, nth, ErrorKind::StorageFull);
        log.flush(at(0)).unwrap_err();
        assert!(told.is_durable());
        assert!(matches!(log.turn(96), Err(AppendError::Failed(_))), "{operation}");
    }
}

/// The process ended before it had made the segment after the one that is nearly full.
fn killed_at_the_end_of_a_segment() -> (Bench, Vec<Told>) {
    let (bench, log, mut told) = nearly_full();
    told.push(put(&log, &[message_of(25_000 / 32 * 32, 2)]).unwrap());
    log.flush(at(1)).unwrap();
    bench.disk.kill();
    (bench, told)
}

#[test]
fn a_start_makes_the_segment_that_its_first_turn_needs() {
    let (bench, mut told) = killed_at_the_end_of_a_segment();
    bench.disk.set_capacity(None);
    let (log, seen) = bench.open();
    assert_eq!(seen, all(&told));
    // Nobody has flushed yet: the server's first turn says that it started.
    told.push(put(&log, &[message_of(640, 3)]).unwrap());
    log.flush(at(2)).unwrap();
    bench.disk.kill();
    assert_eq!(bench.open().1, all(&told));
}

#[test]
fn a_start_on_a_full_disk_serves_what_is_there_and_says_that_it_is_full() {
    let (bench, told) = killed_at_the_end_of_a_segment();
    let (log, seen) = bench.open();
    assert_eq!(seen, all(&told));
    assert!(matches!(put(&log, &[message_of(640, 3)]), Err(AppendError::StorageFull)));
    bench.disk.set_capacity(None);
    log.flush(at(2)).unwrap();
    put(&log, &[message_of(640, 3)]).unwrap();
}

#[test]
fn a_disk_with_no_room_for_the_first_segment_is_refused_by_name() {
    let bench = Bench::sync(SMALL);
    bench.disk.set_capacity(Some(SMALL - 1));
    let refused = bench.recover().unwrap_err();
    assert!(refused.to_string().contains(&bench.file(Offset::ZERO)), "{refused}");
    bench.disk.set_capacity(None);
    bench.open();
}

// Too slow.

/// Appends new messages until one is refused; the claims, and how many bytes waited by then.
fn overload(log: &CommitLog) -> (Vec<Receipt>, u64) {
    let long = message_of(4_000_000, 1);
    let mut receipts = Vec::new();
    loop {
        match log.turn(long.len()) {
            Ok(mut turn) => {
                turn.append(long.clone());
                receipts.push(turn.receipt());
            }
            Err(AppendError::Overloaded { bytes, .. }) => return (receipts, bytes),
            Err(error) => panic!("{error}"),
        }
        assert!(receipts.len() < 30, "what waits must have a bound");
    }
}

#[test]
fn when_too_much_waits_for_the_disk_a_turn_is_refused_until_the_flush_catches_up() {
    let bench = Bench::sync(192 * LARGE);
    let (log, _) = bench.open();
    let (receipts, waiting) = overload(&log);
    let bound = 64 << 20;
    assert!((bound..bound + 4_000_200).contains(&waiting), "{waiting} bytes wait");
    assert!(matches!(log.turn(96), Err(AppendError::Overloaded { .. })));
    log.flush(at(0)).unwrap();
    let durable = Some(Durability::Durable);
    assert!(receipts.iter().all(|receipt| receipt.outcome() == durable));
    // What waited was given back to the byte, or the bound would creep.
    assert_eq!(overload(&log).1, waiting);
}

/// So many turns of one short record each are granted until one is refused.
fn turns(log: &CommitLog, turn: impl Fn() -> Result<(), AppendError>) -> u64 {
    let before = log.waiting().records;
    loop {
        match turn() {
            Ok(()) => assert!(log.waiting().records < 1_000_000, "what waits must have a bound"),
            Err(AppendError::Overloaded { .. }) => return log.waiting().records - before,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn what_follows_from_accepted_work_has_room_when_new_work_has_none() {
    let bench = Bench::sync(192 * LARGE);
    let (log, _) = bench.open();
    let log = log.bounded(QueuedAppends { records: 10, bytes: 1 << 20 });
    let short = message_of(192, 1);
    let append = |mut turn: Turn<'_>| {
        turn.append(short.clone());
    };
    let fresh = || log.turn(short.len()).map(append);
    let accepted = || log.turn_for_accepted(short.len()).map(append);
    assert_eq!(turns(&log, fresh), 10);
    assert_eq!(turns(&log, accepted), 25_000);
    assert_eq!(turns(&log, fresh), 0);
    log.flush(at(0)).unwrap();
    assert_eq!(log.waiting(), QueuedAppends { records: 0, bytes: 0 });
    assert_eq!(turns(&log, fresh), 10);
}

#[test]
fn what_needs_a_segment_that_is_not_there_yet_waits_for_the_flush() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    let half = usize::try_from(SMALL / 2).unwrap();
    let mut told = vec![put(&log, &[message_of(half, 1)]).unwrap()];
    let refused = put(&log, &[message_of(half, 2)]).unwrap_err();
    assert!(matches!(refused, AppendError::Overloaded { .. }), "{refused}");
    log.flush(at(0)).unwrap();
    told.push(put(&log, &[message_of(half, 2)]).unwrap());
    log.flush(at(1)).unwrap();
    bench.disk.kill();
    assert_eq!(bench.open().1, all(&told));
}

// Async mode.

#[test]
fn in_async_mode_what_is_written_is_synced_when_the_interval_has_passed() {
    let bench = Bench::new(1, SMALL, FlushMode::Async { interval_ms: 100 });
    let (log, _) = bench.open();
    let told = put(&log, &[message_of(96, 1)]).unwrap();
    log.flush(at(0)).unwrap();
    assert!(told.is_durable(), "written is what was asked for");
    assert_eq!((log.visible(), log.durable()), (log.end(), Offset::ZERO));
    for (now, left) in [(0, 100), (30, 70), (99, 1)] {
        let expected = Flushed::Nothing { sync_due_in_ms: Some(left) };
        assert_eq!(log.flush(at(now)).unwrap(), expected);
        assert_eq!(log.durable(), Offset::ZERO);
    }
    assert_eq!(log.flush(at(100)).unwrap(), Flushed::Nothing { sync_due_in_ms: None });
    assert_eq!(log.durable(), log.end());
}

/// A power cut may cost the interval and no more, and most of all when there is much to lose.
#[test]
fn in_async_mode_what_is_written_is_synced_by_the_interval_under_load_too() {
    let bench = Bench::new(1, SMALL, FlushMode::Async { interval_ms: 100 });
    let (log, _) = bench.open();
    let mut ends = Vec::new();
    for now in (0..2000).step_by(10) {
        put(&log, &[message_of(96, 1)]).unwrap();
        log.flush(at(now)).unwrap();
        ends.push((now, log.end()));
        let must = ends.iter().rfind(|(then, _)| then + 100 <= now).map(|(_, end)| *end);
        assert!(log.durable() >= must.unwrap_or_default(), "after {now} ms");
    }
    let syncs = bench.disk.counters().syncs;
    assert!(syncs < 40, "{syncs} syncs: async mode does not sync each flush");
}

#[test]
fn a_flush_to_the_disk_syncs_in_every_mode() {
    for mode in [FlushMode::Sync, FlushMode::Async { interval_ms: 1_000_000 }] {
        let bench = Bench::new(1, SMALL, mode);
        let (log, _) = bench.open();
        let told = put(&log, &[message_of(96, 1)]).unwrap();
        assert_eq!(log.flush_to_disk(at(0)).unwrap(), log.end());
        assert_eq!(log.flush_to_disk(at(0)).unwrap(), log.end(), "there is nothing to do");
        bench.disk.crash(&mut Random::new(2));
        assert_eq!(bench.open().1, told.records);
    }
}

// Who waits.

#[test]
fn one_flush_wakes_everyone_who_waits_for_it() {
    let (_bench, log, told) = waiting(FlushMode::Sync);
    let (first, second) = (told[3].receipt.clone(), log.turn(96).unwrap().receipt());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (one, two, flushed) = runtime
        .block_on(async { tokio::join!(first.wait(), second.wait(), async { log.flush(at(5)) }) });
    assert!(flushed.is_ok());
    assert_eq!((one, two), (Durability::Durable, Durability::Durable));
    assert_eq!(runtime.block_on(first.wait()), Durability::Durable, "one who comes late");
}

#[test]
fn a_failed_flush_wakes_everyone_who_waits_for_it() {
    let (bench, log, told) = waiting(FlushMode::Sync);
    bench.disk.fail_next(Operation::Sync, 1, ErrorKind::Other);
    let receipt = told[3].receipt.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (outcome, flushed) =
        runtime.block_on(async { tokio::join!(receipt.wait(), async { log.flush(at(5)) }) });
    assert!(flushed.is_err());
    assert_eq!(outcome, Durability::Failed);
}

/// One pwrite a group and one sync a flush is what the throughput stands on.
#[test]
fn a_flush_writes_once_and_syncs_once() {
    let (bench, log, _) = waiting(FlushMode::Sync);
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    bench.disk.on_operation(move |operation, _| noted.lock().push(operation));
    log.flush(at(5)).unwrap();
    assert_eq!(*calls.lock(), [Operation::Write, Operation::Sync]);
}

#[test]
fn a_turn_that_panics_fails_the_log_and_none_of_it_reaches_the_disk() {
    // A cause that is settled while its fact is not appended would be swallowed for ever, once a
    // checkpoint had written the page: so the flush before that fails.
    let (bench, log, told) = waiting(FlushMode::Sync);
    let panicking = std::panic::AssertUnwindSafe(|| {
        let mut turn = log.turn(96).unwrap();
        turn.settle(told[0].records[0].offset, Outcome::Delivered).unwrap();
        panic!("a bug between the settled bit and its fact");
    });
    std::panic::catch_unwind(panicking).unwrap_err();
    check_failed(&bench, &log, &told, "panic in a turn");
}
