//! A record that cannot be believed costs itself, and nothing else: not its slot, its queue, its group, nor another
//! topic.
//!
//! Of everything that can wait there are two; one of each pair is damaged, in its header, its head or its body, while
//! the server runs, before it is started again, or before all that is derived is lost. Whatever was damaged comes whole
//! or not at all, and all the others come at their very moment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::commitlog::records;
use horolog::consumer::AckOutcome;
use horolog::message::offset::Offset;
use horolog::message::record::{HEADER_LENGTH, Kind, Terms};
use horolog::message::{GroupName, Moment};
use horolog::producer::{self, Ended};
use timerlog::disk::sim::SimDisk;

use crate::bench::{Bench, START};
use crate::retention::lose_derived;

const DUE: u64 = 5000;
const LOG: &str = "commitlog/00000000000000000000";

/// What is damaged, as the numbers of the records of its kind that are there before it.
const VICTIMS: [(Kind, usize); 6] = [
    // The first message is the one that a reader gives back.
    (Kind::Message, 2),
    (Kind::Message, 4),
    (Kind::Nack, 0),
    (Kind::Reschedule, 0),
    (Kind::HalfMessage, 0),
    (Kind::Commit, 0),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoesOn,
    Starts,
    IsRebuilt,
}

fn terms() -> Terms {
    Terms {
        producer_group: "shop".to_owned(),
        check_after_ms: 3_600_000,
        check_interval_ms: 3_600_000,
        max_checks: 3,
        abandon_after_ms: 86_400_000,
        check_url: None,
    }
}

/// Two of everything, all due at the same millisecond but for the two that are ready.
fn put_all(bench: &mut Bench) {
    bench.put_on("orders", Moment::Now, "retry 0");
    bench.put_on("orders", Moment::Now, "retry 1");
    bench.settle();
    let due = || Moment::At(Timestamp::from_millis(START + DUE));
    for number in 0..2 {
        bench.put_on("orders", due(), &format!("timer {number}"));
    }
    for number in 0..2 {
        // The second level is five seconds.
        bench.put_on("orders", Moment::Level(2), &format!("level {number}"));
    }
    bench.put_on("others", due(), "another topic");
    let store = Arc::clone(&bench.engine.store);
    let at = bench.clock.now().wall;
    for number in 0..2 {
        let put = bench.put(Moment::After(60_000), &format!("moved {number}"));
        let half = bench.prepare(due(), &format!("half {number}"), &terms());
        bench.settle();
        let found = producer::find(&store, &bench.id(&put)).expect("it is there");
        producer::reschedule(&store, &found, due(), at).expect("it waits");
        let found = producer::find(&store, &bench.id(&half)).expect("it is there");
        producer::end(&store, &found, Ended::Committed, at).expect("room");
        bench.settle();
    }
    let group = bench.engine.store.group(&readers());
    assert!(group.is_none(), "nobody has read yet");
    for received in bench.read("readers") {
        let group = bench.engine.store.group(&readers()).expect("it reads");
        let (handles, delay) = ([received.receipt_handle], Some(Duration::from_millis(DUE)));
        let now = bench.clock.now();
        let nacked = bench.engine.consumers.nack(&group, &handles, delay, now).expect("room");
        assert_eq!(nacked.0, [AckOutcome::Ok]);
    }
    // A later group, so that damage is told from a torn tail.
    bench.settle();
    bench.put_on("orders", Moment::After(600_000), "later");
    bench.settle();
}

fn readers() -> GroupName {
    GroupName::writable("readers").expect("a good name")
}

/// Where the record begins and its header, head and body end.
fn find(bench: &Bench, kind: Kind, number: usize) -> (u64, [usize; 3]) {
    let log = bench.engine.store.log();
    let (mut at, mut bytes, mut before) = (Offset::ZERO, Vec::new(), 0);
    while at < log.durable() {
        let header = log.reader().group(at, &mut bytes).expect("a group of the log");
        for record in records(&header, &bytes, log.reader().secrets()) {
            let record = record.expect("a record of the log");
            if record.header.kind == kind {
                if before == number {
                    let (head, body) = (record.head.len(), record.body.len());
                    let ends = [HEADER_LENGTH, HEADER_LENGTH + head, HEADER_LENGTH + head + body];
                    return (record.header.offset.get(), ends);
                }
                before += 1;
            }
        }
        at = header.end();
    }
    panic!("there is no {kind:?} number {number}");
}

/// Says how many have not come at their moment.
fn poisoned(kind: Kind, number: usize, part: usize, then: Then) -> usize {
    let what = format!("{kind:?} {number}, part {part}, {then:?}");
    let disk = SimDisk::new(1);
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let mut bench = Bench::open_small(&disk, Arc::clone(&clock));
    put_all(&mut bench);
    let (at, ends) = find(&bench, kind, number);
    let begin = if part == 0 { 0 } else { ends[part - 1] };
    if begin == ends[part] {
        return 0;
    }
    let middle = at + u64::try_from(usize::midpoint(begin, ends[part])).expect("small");
    disk.flip_bit(LOG, middle, 3);
    if then != Then::GoesOn {
        drop(bench);
        disk.kill();
        if then == Then::IsRebuilt {
            lose_derived(&disk);
        }
        bench = Bench::open_small(&disk, Arc::clone(&clock));
        bench.settle();
    }
    clock.advance(DUE - 1);
    bench.settle();
    let mut seen = BTreeSet::new();
    for received in bench.read("readers") {
        // Whose nack is lost was never given back.
        assert_eq!(kind, Kind::Nack, "{received:?} is early, {what}");
        seen.insert(String::from_utf8(received.body.to_vec()).expect("text"));
    }
    clock.advance(1);
    bench.settle();
    for received in bench.read("readers") {
        seen.insert(String::from_utf8(received.body.to_vec()).expect("text"));
    }
    let all = ["retry", "timer", "level", "moved", "half"];
    let all = all.iter().flat_map(|name| (0..2).map(move |number| format!("{name} {number}")));
    let missing: Vec<_> = all.filter(|body| !seen.contains(body)).collect();
    assert!(missing.len() <= 1, "{missing:?} have not come, {what}");
    assert_eq!(seen.len() + missing.len(), 10, "{seen:?}, {what}");
    // What comes after it in the same queues comes as ever.
    bench.put_on("orders", Moment::Now, "after");
    bench.settle();
    assert_eq!(bench.read("readers").len(), 1, "{what}");
    let others = bench.reader("readers", "others");
    assert_eq!(bench.all(&others).len(), 1, "another topic, {what}");
    clock.advance(600_000);
    bench.settle();
    let bodies: Vec<_> = bench.read("readers").into_iter().map(|one| one.body).collect();
    assert!(bodies.iter().any(|body| body.as_ref() == b"later"), "{what}");
    missing.len()
}

#[test]
fn what_is_damaged_is_lost_alone_and_all_else_comes_at_its_moment() {
    for (kind, number) in VICTIMS {
        let mut lost = 0;
        for part in 0..3 {
            for then in [Then::GoesOn, Then::Starts, Then::IsRebuilt] {
                lost += poisoned(kind, number, part, then);
            }
        }
        println!("{kind:?} {number}: {lost} of 9 have not come");
        assert!(lost > 0 || kind == Kind::Nack, "{kind:?} {number} was not damaged");
    }
}
