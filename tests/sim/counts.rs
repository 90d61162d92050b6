//! The counts are exact: what is pending is what was accepted, less what fired, was cancelled or dropped, at
//! every quiet point, across restarts, with half of all cancelled.

use std::ops::Range;
use std::sync::Arc;

use horolog::clock::{Clock, Timestamp};
use horolog::message::{Attributes, Moment, NewMessage, TopicName};
use horolog::producer::{self, CancelAnswer, IfExists, Query, TimerPut, WhenMatched};
use horolog::store::{Counts, Force};
use timerlog::disk::sim::{Random, SimDisk};

use crate::bench::{Bench, START};
use crate::operations::PUT;

const ALL: Range<Timestamp> = Timestamp::from_millis(0)..Timestamp::from_millis(u64::MAX);

/// What the counts must say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Expected {
    scheduled: u64,
    fired: u64,
    cancelled: u64,
    dropped: u64,
}

impl Expected {
    fn pending(self) -> u64 {
        self.scheduled - self.fired - self.cancelled - self.dropped
    }
}

/// At rest: the counts, the topics' own, and what a list has, all say the same.
fn check(bench: &mut Bench, expected: Expected) {
    bench.settle();
    let store = &bench.engine.store;
    let Counts { scheduled, fired, cancelled, dropped, .. } = store.counts();
    assert_eq!(Expected { scheduled, fired, cancelled, dropped }, expected);
    assert_eq!(store.pending(), expected.pending());
    let of_topics: u64 = store.topics().iter().map(|topic| topic.pending()).sum();
    assert_eq!(of_topics, expected.pending());
    let query = Query { topic_id: None, key: None, tag: None, deadlines: ALL };
    let (mut listed, mut cursor) = (0, None);
    loop {
        let pending = &bench.engine.pending;
        let clock = &*bench.clock;
        let page = producer::list_scheduled(store, pending, &query, cursor.as_deref(), 1000, clock);
        let page = page.expect("a list").answer;
        listed += page.items.len() as u64;
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, expected.pending());
}

fn restart(bench: Bench, disk: &SimDisk, random: &mut Random) -> Bench {
    let clock = Arc::clone(&bench.clock);
    drop(bench);
    if random.once_in(2) {
        disk.kill();
    } else {
        disk.crash(random);
    }
    Bench::open(disk, clock)
}

fn put_timer(bench: &Bench, key: &str, at: u64) -> Option<String> {
    let topic = TopicName::writable("timers").expect("a good name");
    let moment = Moment::At(Timestamp::from_millis(at));
    let message = NewMessage { moment, attributes: Attributes::default(), body: "t".into() };
    let (engine, now) = (&bench.engine, bench.clock.now().wall);
    let (nonce, replace) = (engine.nonce(), IfExists::Replace);
    let put = producer::put_timer(&engine.store, PUT, &topic, key, message, replace, nonce, now);
    match put.expect("the log has room").answer {
        TimerPut::Put { replaced, .. } => replaced,
        TimerPut::Exists => None,
    }
}

#[test]
fn pending_is_what_was_accepted_less_what_fired_was_cancelled_or_dropped() {
    let (disk, mut random) = (SimDisk::new(5), Random::new(5));
    let mut bench = Bench::open(&disk, Bench::new().clock);
    let mut expected = Expected::default();
    for round in 0..12_u64 {
        let ids: Vec<_> = (0..100_u64)
            .map(|number| {
                // Near and far: up to forty days.
                let due = bench.wall() + 1 + (number * number * 350_000) % (40 * 86_400_000);
                let moment = Moment::At(Timestamp::from_millis(due));
                let answer = bench.put(moment, &format!("{round} {number}"));
                bench.id(&answer)
            })
            .collect();
        expected.scheduled += 100;
        check(&mut bench, expected);
        // Half of them are cancelled, some moved before.
        for (number, id) in ids.iter().enumerate() {
            let now = bench.clock.now().wall;
            let store = &bench.engine.store;
            let found = producer::find(store, id).expect("it was put");
            if number % 3 == 0 {
                let later = Moment::After(50 * 86_400_000);
                producer::reschedule(store, &found, later, now).expect("the log has room");
                bench.settle();
            }
            if number % 2 == 0 {
                let answer =
                    producer::cancel(&bench.engine.store, &found, now).expect("the log has room");
                assert!(matches!(answer.answer, CancelAnswer::Cancelled(_)));
                expected.cancelled += 1;
            }
        }
        for key in ["a", "b", "a", "a"] {
            expected.scheduled += 1;
            let replaced = put_timer(&bench, key, bench.wall() + 60 * 86_400_000);
            expected.cancelled += u64::from(replaced.is_some());
            bench.settle();
        }
        check(&mut bench, expected);
        bench = restart(bench, &disk, &mut random);
        check(&mut bench, expected);
        let before = bench.engine.store.counts().fired;
        for _ in 0..30 {
            bench.clock.advance(3_000_000);
            bench.settle();
        }
        expected.fired += bench.engine.store.counts().fired - before;
        check(&mut bench, expected);
        bench = restart(bench, &disk, &mut random);
        check(&mut bench, expected);
    }
    assert!(expected.fired > 100, "{expected:?}");

    let orders = TopicName::writable("orders").expect("a good name");
    let waiting = bench.engine.store.topic(&orders).expect("it is there").pending();
    let deleted =
        bench.engine.store.delete_topic(&orders, Force::Yes, |_| 0, bench.clock.now().wall);
    deleted.expect("the log has room");
    expected.dropped += waiting;
    check(&mut bench, expected);
    bench = restart(bench, &disk, &mut random);
    check(&mut bench, expected);
    assert_eq!(expected.pending(), 2, "the two timers are of another topic");

    let topic_id = bench.engine.store.topics().first().map(|topic| topic.id);
    let query = Query { topic_id, key: Some("a".to_owned()), tag: None, deadlines: ALL };
    let (store, pending) = (&bench.engine.store, &bench.engine.pending);
    let cancelled = producer::cancel_scheduled(
        store,
        pending,
        &query,
        None,
        WhenMatched::Cancel,
        &*bench.clock,
    );
    assert_eq!(cancelled.expect("the log has room").answer.selected.len(), 1);
    expected.cancelled += 1;
    check(&mut bench, expected);
    assert!(bench.wall() > START);
}
