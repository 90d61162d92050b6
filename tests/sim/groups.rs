//! Groups at rest between calls: filters over long queues, resets, and where a group starts.

use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::consumer::{AckOutcome, More, QueuesAtBound, Received, ResetTo, TopicStats};
use horolog::message::{
    Attributes, GroupName, GroupSettings, Moment, NewMessage, StartFrom, TagFilter, TopicName,
};
use horolog::producer::{self, PutSettings};
use horolog::store::{Group, Topic};
use timerlog::disk::sim::{Random, SimDisk};

use crate::bench::{Bench, START};

const LEASE: Duration = Duration::from_secs(3600);

fn name(name: &str) -> GroupName {
    GroupName::writable(name).expect("a good name")
}

fn tags(tags: &[&str]) -> TagFilter {
    TagFilter::new(tags.iter().map(ToString::to_string))
}

impl Bench {
    /// Puts a message on a topic of one queue.
    fn put_tagged(&self, tag: Option<&str>, body: &str) {
        let tag = tag.map(ToOwned::to_owned);
        let attributes = Attributes { tag, ..Attributes::default() };
        let body = body.to_owned().into();
        let message = NewMessage { moment: Moment::Now, attributes, body };
        let topic = TopicName::writable("orders").expect("a good name");
        let (now, nonce) = (self.clock.now().wall, self.engine.nonce());
        let settings = PutSettings { queues_of_new_topic: Some(1) };
        producer::put(&self.engine.store, settings, &topic, message, nonce, now).expect("room");
    }

    fn pair(&self, group: &str) -> (Arc<Group>, Arc<Topic>) {
        let store = &self.engine.store;
        let group = store.group_or_make(&name(group), 30_000, self.clock.now().wall);
        let topic = TopicName::writable("orders").expect("a good name");
        (group.expect("room"), store.topic(&topic).expect("something was put"))
    }

    fn subscribe(&self, group: &str, filter: &TagFilter) {
        let (group, topic) = self.pair(group);
        let now = self.clock.now().wall;
        self.engine.consumers.subscribe(&group, &topic, Some(filter), now).expect("its filter");
    }

    /// One turn.
    fn turn(&self, group: &str, max: usize) -> (Vec<Received>, More) {
        let (group, topic) = self.pair(group);
        let consumers = &self.engine.consumers;
        let leased = consumers.receive(&group, &topic, max, LEASE, self.clock.now());
        let leased = leased.expect("the log can be read");
        let more = leased.more();
        (leased.take(), more)
    }

    fn stats(&self, group: &str) -> TopicStats {
        let (group, _) = self.pair(group);
        self.engine.consumers.stats(&group).expect("the queues can be read").remove(0)
    }

    fn reset(&self, group: &str, to: &ResetTo) -> Vec<u64> {
        let (group, topic) = self.pair(group);
        let reset = self.engine.consumers.reset(&group, &topic, to, self.clock.now());
        reset.expect("it can be").0
    }

    pub(crate) fn ack(&self, group: &str, received: &[Received]) -> Vec<AckOutcome> {
        let (group, _) = self.pair(group);
        let handles: Vec<_> = received.iter().map(|r| r.receipt_handle.clone()).collect();
        self.engine.consumers.ack(&group, &handles, self.clock.now()).expect("room").0
    }

    fn log_end(&self) -> u64 {
        self.engine.store.log().end().get()
    }
}

pub(crate) fn bodies(received: &[Received]) -> Vec<&str> {
    received.iter().map(|r| std::str::from_utf8(&r.body).expect("text")).collect()
}

/// More than may be out at once are left out, behind a message that nobody acks and before the one that
/// is wanted.
#[test]
fn a_sparse_filter_neither_stalls_nor_costs_a_record_a_message() {
    const LEFT_OUT: u64 = 120_000;
    let mut bench = Bench::new();
    bench.put_tagged(Some("paid"), "stuck");
    for index in 0..LEFT_OUT {
        bench.put_tagged(if index % 2 == 0 { Some("late") } else { None }, "left out");
        // Bytes that wait for the disk are bounded.
        if index % 10_000 == 0 {
            bench.settle();
        }
    }
    bench.put_tagged(Some("paid"), "wanted");
    bench.settle();
    bench.subscribe("g", &tags(&["paid"]));
    bench.settle();
    let before = bench.log_end();
    let mut received = Vec::new();
    let mut turns = 0;
    while received.len() < 2 {
        let (some, more) = bench.turn("g", 10);
        assert!(!some.is_empty() || more == More::Perhaps, "it stalls after {turns} turns");
        received.extend(some);
        turns += 1;
    }
    assert_eq!(bodies(&received), ["stuck", "wanted"]);
    assert!((50..=70).contains(&turns), "each turn is bounded, and does something: {turns}");
    bench.settle();
    let written = bench.log_end() - before;
    assert!(written < turns * 512, "{written} bytes for {LEFT_OUT} messages left out");
    let stats = bench.stats("g");
    assert_eq!((stats.lag, stats.in_flight), (2, 2));
    let (group, topic) = bench.pair("g");
    let stretches = group.progress((topic.id, 0), |progress| progress.parts().1.len());
    assert_eq!(stretches, 1, "memory does not grow with what is left out");

    assert_eq!(bench.ack("g", &received), [AckOutcome::Ok; 2]);
    bench.settle();
    assert_eq!(group.progress((topic.id, 0), |progress| progress.floor()), LEFT_OUT + 2);
    assert_eq!(bench.stats("g").oldest_unacked, None);
}

/// As many as may be out are: the queue is read no further, and is counted as one that waits, until one of them
/// is acknowledged.
#[test]
fn a_queue_that_waits_for_acks_is_counted() {
    const MAX_OUT: usize = 100_000;
    let mut bench = Bench::new();
    for index in 0..=MAX_OUT {
        bench.put_tagged(None, "x");
        // Bytes that wait for the disk are bounded.
        if index % 10_000 == 0 {
            bench.settle();
        }
    }
    bench.settle();
    let at_bound = |bench: &Bench| bench.engine.consumers.queues_at_bound();
    let mut out = bench.turn("g", MAX_OUT - 1).0;
    assert_eq!(at_bound(&bench), QueuesAtBound::default());
    out.extend(bench.turn("g", 10).0);
    assert_eq!((out.len(), bench.turn("g", 10).0.len()), (MAX_OUT, 0));
    assert_eq!(at_bound(&bench), QueuesAtBound { out: 1, parked: 0 });
    assert_eq!(bench.ack("g", &out[..1]), [AckOutcome::Ok]);
    assert_eq!(at_bound(&bench), QueuesAtBound::default());
    bench.settle();
    assert_eq!(bench.turn("g", 10).0.len(), 1);
    assert_eq!(at_bound(&bench), QueuesAtBound { out: 1, parked: 0 });
}

/// What was left out is not looked at again after a restart.
#[test]
fn what_a_filter_has_left_out_stays_left_out_across_a_power_cut() {
    let disk = SimDisk::new(1);
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let mut bench = Bench::open(&disk, Arc::clone(&clock));
    for _ in 0..5000 {
        bench.put_tagged(None, "left out");
    }
    bench.settle();
    bench.subscribe("g", &tags(&["paid"]));
    while bench.turn("g", 10).1 == More::Perhaps {}
    bench.settle();
    disk.crash(&mut Random::new(1));
    let bench = Bench::open(&disk, clock);
    assert_eq!(bench.stats("g").lag, 0);
    assert_eq!(bench.turn("g", 10).1, More::No);
}

/// Every place of dispatch's lag: the reset is appended, and folded only later.
#[test]
fn what_is_received_right_after_a_reset_is_what_it_says_before_dispatch_knows_of_it() {
    let mut bench = Bench::new();
    for body in ["0", "1", "2"] {
        bench.put_tagged(None, body);
    }
    bench.settle();
    let (first, _) = bench.turn("g", 10);
    // One ack is folded, one is appended only, one message is out.
    assert_eq!(bench.ack("g", &first[..1]), [AckOutcome::Ok]);
    bench.settle();
    assert_eq!(bench.ack("g", &first[1..2]), [AckOutcome::Ok]);
    assert_eq!(bench.reset("g", &ResetTo::Earliest), [0]);

    assert_eq!(bench.ack("g", &first), [AckOutcome::InvalidReceiptHandle; 3]);
    let (again, _) = bench.turn("g", 10);
    assert_eq!(bodies(&again), ["0", "1", "2"]);
    assert!(again.iter().all(|received| received.attempt == 1));
    // An ack of after the reset counts, the one of before it does not.
    assert_eq!(bench.ack("g", &again[..1]), [AckOutcome::Ok]);
    assert_eq!(bench.stats("g").in_flight, 2);
    bench.settle();
    let stats = bench.stats("g");
    assert_eq!((stats.lag, stats.in_flight), (2, 2));
    assert_eq!(bodies(&bench.turn("g", 10).0), [""; 0]);
    // Dispatch has come to it: a reset forward swallows what is before it, and only that.
    bench.put_tagged(None, "3");
    assert_eq!(bench.reset("g", &ResetTo::Latest), [4]);
    bench.put_tagged(None, "4");
    bench.settle();
    assert_eq!(bodies(&bench.turn("g", 10).0), ["4"]);
}

#[test]
fn a_lease_that_runs_out_around_a_reset_costs_no_attempt_after_it() {
    let mut bench = Bench::new();
    bench.put_tagged(None, "0");
    bench.settle();
    let (first, _) = bench.turn("g", 1);
    bench.clock.advance(3_600_000);
    // The stage that ends leases appends its record; it is not durable when the reset comes.
    let expiry = bench.stages.iter().position(|stage| stage.name() == "lease_expiry");
    bench.step(expiry.expect("there is one"));
    bench.reset("g", &ResetTo::Earliest);
    let (second, _) = bench.turn("g", 1);
    assert_eq!((first[0].attempt, second[0].attempt), (1, 1));
    bench.settle();
    assert_eq!(bodies(&bench.turn("g", 1).0), [""; 0], "it is out, and once");
    assert_eq!(bench.ack("g", &second), [AckOutcome::Ok]);
}

#[test]
fn a_reset_to_a_time_starts_with_what_became_readable_then() {
    let mut bench = Bench::new();
    for body in ["0", "1", "2"] {
        bench.put_tagged(None, body);
        bench.settle();
        bench.clock.advance(10);
    }
    for (ahead, stands) in [(0, 0), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (1000, 3)] {
        let time = Timestamp::from_millis(START + ahead);
        assert_eq!(bench.reset("g", &ResetTo::Time(time)), [stands], "{ahead} ms");
    }
}

/// A group that starts from the latest, its first receive, a power cut, and what comes in between.
#[test]
fn where_a_group_starts_is_decided_once_or_not_at_all() {
    for survives in [true, false] {
        let disk = SimDisk::new(1);
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        let mut bench = Bench::open(&disk, Arc::clone(&clock));
        let settings = GroupSettings { start_from: StartFrom::Latest, ..GroupSettings::default() };
        let set = bench.engine.consumers.set_group(&name("g"), settings, clock.now().wall);
        set.expect("room");
        bench.put_tagged(None, "before");
        bench.settle();
        let (group, topic) = bench.pair("g");
        let first = bench.engine.consumers.subscribe(&group, &topic, None, clock.now().wall);
        let receipt = first.expect("room").expect("it must be waited for");
        assert!(receipt.outcome().is_none());
        let again = bench.engine.consumers.subscribe(&group, &topic, None, clock.now().wall);
        assert!(again.expect("the same").is_some(), "whoever comes meanwhile waits, too");
        if survives {
            bench.settle();
            let later = bench.engine.consumers.subscribe(&group, &topic, None, clock.now().wall);
            assert!(later.expect("the same").is_none());
        }
        drop((group, topic));
        disk.crash(&mut Random::new(1));

        let mut bench = Bench::open(&disk, Arc::clone(&clock));
        bench.put_tagged(None, "after");
        bench.settle();
        let expected: &[&str] = if survives { &["after"] } else { &[] };
        assert_eq!(bodies(&bench.turn("g", 10).0), expected);
        bench.put_tagged(None, "last");
        bench.settle();
        assert_eq!(bodies(&bench.turn("g", 10).0), ["last"]);
    }
}
