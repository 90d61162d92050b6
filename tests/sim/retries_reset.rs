//! Offsets are reset while messages wait to come again: none comes twice, and none is lost.

use std::sync::Arc;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::consumer::{AckOutcome, Received, ResetTo, Wanted};
use horolog::message::Moment;
use timerlog::disk::sim::SimDisk;

use crate::bench::{Bench, START};
use crate::groups::bodies;
use crate::retries::{ALL_WAYS, HOUR, Reader, after, given_back};

/// A topic of one queue with four messages. The first waits for an hour to come again, the second is readable
/// again, the third is out again, the fourth is out for the first time.
fn given_back_in_all_ways(bench: &mut Bench) -> (Reader, Vec<Received>) {
    ["0", "1", "2", "3"].into_iter().for_each(|body| bench.put_on("orders", Moment::Now, body));
    bench.settle();
    let reader = bench.reader("g", "orders");
    let first = bench.all(&reader);
    given_back(&bench.nack(&reader, &first[..1], HOUR));
    given_back(&bench.nack(&reader, &first[2..3], 0));
    bench.settle();
    let mut out = bench.all(&reader);
    assert_eq!(bodies(&out), ["2"]);
    given_back(&bench.nack(&reader, &first[1..2], 0));
    bench.settle();
    out.extend(first.into_iter().skip(3));
    (reader, out)
}

fn open() -> (SimDisk, Bench) {
    let disk = SimDisk::new(1);
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let bench = Bench::open_small(&disk, clock);
    (disk, bench)
}

fn reset(bench: &Bench, reader: &Reader, to: &ResetTo) {
    let now = bench.clock.now();
    let reset = bench.engine.consumers.reset(&reader.group, &reader.topic, to, now);
    reset.expect("the log has room");
}

fn attempts(received: &[Received]) -> Vec<(&str, u32)> {
    let mut attempts: Vec<_> =
        bodies(received).into_iter().zip(received.iter().map(|one| one.attempt)).collect();
    attempts.sort_unstable();
    attempts
}

/// It was handed out once by the log and once by its retry, after it was acknowledged.
#[test]
fn a_message_that_a_reset_brings_back_does_not_come_by_its_retry_as_well() {
    for meanwhile in ALL_WAYS {
        let (disk, mut bench) = open();
        let (reader, out) = given_back_in_all_ways(&mut bench);
        reset(&bench, &reader, &ResetTo::Earliest);
        let invalid = [AckOutcome::InvalidReceiptHandle; 2];
        assert_eq!(bench.ack_all(&reader, &out), invalid, "handles of retries are void, too");
        assert_eq!(bench.nack(&reader, &out, 0), invalid);
        // Dispatch has not come to the reset, and what it brings is what counts all the same.
        let early = bench.all(&reader);
        assert_eq!(attempts(&early), [("0", 1), ("1", 1), ("2", 1), ("3", 1)]);
        bench.settle();
        drop(reader);
        let mut bench = after(bench, &disk, meanwhile);
        let reader = bench.reader("g", "orders");
        assert_eq!(bench.ack_all(&reader, &early), [AckOutcome::Ok; 4], "{meanwhile:?}");
        bench.settle();
        let lag = |bench: &Bench| bench.engine.consumers.stats(&reader.group).expect("read")[0].lag;
        assert_eq!(lag(&bench), 1, "what waits counts until its moment: {meanwhile:?}");
        bench.clock.advance(2 * HOUR);
        bench.settle();
        assert_eq!(attempts(&bench.all(&reader)), [], "{meanwhile:?}");
        bench.settle();
        assert_eq!(lag(&bench), 0, "{meanwhile:?}");
        // Given back after the reset, it comes as ever.
        reset(&bench, &reader, &ResetTo::Queues([(0, 3)].into()));
        let last = bench.all(&reader);
        given_back(&bench.nack(&reader, &last, 1000));
        bench.clock.advance(1000);
        bench.settle();
        assert_eq!(attempts(&bench.all(&reader)), [("3", 2)], "{meanwhile:?}");
    }
}

/// A reset says from where the queue is read; no queue brings what was given back and stands before that.
#[test]
fn what_was_given_back_and_stands_before_a_reset_still_comes() {
    for (to, log, retries) in [
        (ResetTo::Queues([(0, 2)].into()), vec![("2", 1), ("3", 1)], vec![("0", 2), ("1", 2)]),
        (ResetTo::Latest, vec![], vec![("0", 2), ("1", 2), ("2", 2)]),
    ] {
        for meanwhile in ALL_WAYS {
            let (disk, mut bench) = open();
            let (reader, _) = given_back_in_all_ways(&mut bench);
            reset(&bench, &reader, &to);
            bench.settle();
            drop(reader);
            let mut bench = after(bench, &disk, meanwhile);
            let reader = bench.reader("g", "orders");
            let mut read = bench.all(&reader);
            assert_eq!(bench.ack_all(&reader, &read), vec![AckOutcome::Ok; read.len()]);
            bench.clock.advance(HOUR);
            bench.settle();
            let late = bench.all(&reader);
            assert_eq!(attempts(&late), [("0", 2)], "{to:?} {meanwhile:?}");
            read.extend(late);
            let mut expected = [log.clone(), retries.clone()].concat();
            expected.sort_unstable();
            assert_eq!(attempts(&read), expected, "{to:?} {meanwhile:?}");
        }
    }
}

/// A reset to the latest must not bring back to life what the reset before it had made void.
#[test]
fn what_a_reset_has_made_void_stays_void_after_the_next_one() {
    for meanwhile in ALL_WAYS {
        let (disk, mut bench) = open();
        let (reader, _) = given_back_in_all_ways(&mut bench);
        reset(&bench, &reader, &ResetTo::Earliest);
        let read = bench.all(&reader);
        assert_eq!(bench.ack_all(&reader, &read), [AckOutcome::Ok; 4]);
        reset(&bench, &reader, &ResetTo::Latest);
        bench.settle();
        drop(reader);
        let mut bench = after(bench, &disk, meanwhile);
        let reader = bench.reader("g", "orders");
        bench.clock.advance(HOUR);
        bench.settle();
        assert_eq!(attempts(&bench.all(&reader)), [], "{meanwhile:?}");
    }
}

/// A dead letter is nobody's to hand out until somebody asks for it, before a reset or after.
#[test]
fn a_dead_letter_outlives_a_reset_and_what_was_redriven_before_it_does_not() {
    for meanwhile in ALL_WAYS {
        let (disk, mut bench) = open();
        bench.give_up_after("g", 1);
        ["0", "1"].into_iter().for_each(|body| bench.put_on("orders", Moment::Now, body));
        bench.settle();
        let reader = bench.reader("g", "orders");
        let read = bench.all(&reader);
        given_back(&bench.nack(&reader, &read, 0));
        bench.settle();
        let redrive = |bench: &Bench, reader: &Reader, id: &str| {
            let wanted = Wanted { ids: Some(vec![id.to_owned()]), topic_id: None };
            let now = bench.clock.now();
            bench.engine.consumers.redrive(&reader.group, &wanted, now).expect("room").0
        };
        assert_eq!(redrive(&bench, &reader, &read[0].message_id), 1);
        reset(&bench, &reader, &ResetTo::Earliest);
        bench.settle();
        drop(reader);
        let mut bench = after(bench, &disk, meanwhile);
        let reader = bench.reader("g", "orders");
        assert_eq!(bench.letters(&reader.group).len(), 1, "{meanwhile:?}");
        let again = bench.all(&reader);
        assert_eq!(attempts(&again), [("0", 1), ("1", 1)], "{meanwhile:?}");
        assert_eq!(bench.ack_all(&reader, &again), [AckOutcome::Ok; 2]);
        assert_eq!(redrive(&bench, &reader, &read[1].message_id), 1, "{meanwhile:?}");
        bench.settle();
        assert_eq!(attempts(&bench.all(&reader)), [("1", 1)], "{meanwhile:?}");
    }
}
