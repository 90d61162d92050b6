//! What seeds have found, told as stories of their own: seeds change their meaning, stories do not.

use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::consumer::AckOutcome;
use horolog::message::{Attributes, GroupName, Moment, NewMessage, TopicName};
use horolog::producer::{self, Query};
use horolog::store::Force;
use horolog::timer::pending::Timeline;
use timerlog::disk::sim::{Random, SimDisk};

use crate::bench::{Bench, START};
use crate::operations::PUT;
use horolog::commitlog::FlushMode;

/// Found by seed 1187. A group was made and received, and the power went before its record was on the
/// disk. The next group was given the same id, and the lost one's receipt handles were good for it: an
/// ack under one acknowledged what the new group had never seen.
#[test]
fn a_group_lost_with_the_power_leaves_no_handle_that_is_good_for_another() {
    let disk = SimDisk::new(1);
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let mut bench = Bench::open(&disk, Arc::clone(&clock));
    bench.put(Moment::Now, "paid");
    bench.settle();
    let handles: Vec<_> = bench.read("lost").into_iter().map(|r| r.receipt_handle).collect();
    assert_eq!(handles.len(), 1);

    disk.crash(&mut Random::new(1));
    let bench = Bench::open(&disk, Arc::clone(&clock));
    let now = clock.now();
    let name = |name| GroupName::writable(name).expect("a good name");
    assert!(bench.engine.store.group(&name("lost")).is_none());
    let other = bench.engine.store.group_or_make(&name("other"), 30_000, now.wall).expect("room");
    let (outcomes, _) = bench.engine.consumers.ack(&other, &handles, now).expect("room");
    assert_eq!(outcomes, [AckOutcome::InvalidReceiptHandle]);
    let topic = TopicName::writable("orders").expect("a good name");
    let topic = bench.engine.store.topic(&topic).expect("it was durable");
    let lease = Duration::from_secs(30);
    let leased = bench.engine.consumers.receive(&other, &topic, 10, lease, now).expect("a read");
    assert_eq!(leased.take().len(), 1);
}

/// Found by seed 2778. In async mode a message was received, the power took it back, and another one came
/// to stand in its place in the queue; the handle from before acknowledged that one, which nobody had seen.
#[test]
fn in_async_mode_a_handle_ends_with_its_life() {
    let disk = SimDisk::new(1);
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let mode = FlushMode::Async { interval_ms: 600_000 };
    let mut bench = Bench::open_in(&disk, Arc::clone(&clock), mode);
    bench.put(Moment::Now, "first of all, so that topic and group are on the disk");
    bench.settle();
    assert_eq!(bench.read("g").len(), 1);
    bench.engine.rest(clock.now()).expect("a checkpoint");
    // One message for each of the four queues.
    for index in 0..4 {
        bench.put(Moment::Now, &format!("taken back {index}"));
    }
    bench.settle();
    let handles: Vec<_> = bench.read("g").into_iter().map(|r| r.receipt_handle).collect();
    assert_eq!(handles.len(), 4);

    disk.kill();
    let mut bench = Bench::open_in(&disk, Arc::clone(&clock), mode);
    bench.settle();
    let group = GroupName::writable("g").expect("a good name");
    let group = bench.engine.store.group(&group).expect("it was durable");
    let (outcomes, _) = bench.engine.consumers.ack(&group, &handles, clock.now()).expect("room");
    assert_eq!(outcomes, [AckOutcome::InvalidReceiptHandle; 4]);
    assert_eq!(bench.read("g").len(), 5, "they come again");
}

/// Found by seed 77. A group that was durable first received a topic, and the power went before the record
/// of where it starts was on the disk. An ack under a handle of that receive held; then the next receive
/// decided where the group starts, and what was acknowledged came again. Nobody is shown a message before
/// that record is durable, and a handle of one that is lost is void.
#[test]
fn a_first_receive_lost_with_the_power_leaves_no_handle_that_is_good() {
    let disk = SimDisk::new(1);
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let mut bench = Bench::open(&disk, Arc::clone(&clock));
    let name = GroupName::writable("g").expect("a good name");
    bench.engine.store.group_or_make(&name, 30_000, clock.now().wall).expect("room");
    bench.put(Moment::Now, "paid");
    bench.settle();
    let handles: Vec<_> = bench.read("g").into_iter().map(|r| r.receipt_handle).collect();

    disk.crash(&mut Random::new(1));
    let mut bench = Bench::open(&disk, Arc::clone(&clock));
    let group = bench.engine.store.group(&name).expect("it was durable");
    let (outcomes, _) = bench.engine.consumers.ack(&group, &handles, clock.now()).expect("room");
    assert_eq!(outcomes, [AckOutcome::InvalidReceiptHandle]);
    bench.settle();
    assert_eq!(bench.read("g").len(), 1);
}

/// Found by seed 21. One message, handed out in two lives, and both handles in one ack of a third: it was
/// on its way to be acknowledged twice, and fewer than none were out.
#[test]
fn two_handles_of_one_message_in_one_ack_are_one_ack() {
    let disk = SimDisk::new(1);
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let mut handles = Vec::new();
    for life in 0..2 {
        let mut bench = Bench::open(&disk, Arc::clone(&clock));
        if life == 0 {
            bench.put(Moment::Now, "paid");
        }
        bench.settle();
        handles.extend(bench.read("g").into_iter().map(|r| r.receipt_handle));
        bench.settle();
        drop(bench);
        disk.kill();
    }
    assert_eq!(handles.len(), 2);
    let mut bench = Bench::open(&disk, Arc::clone(&clock));
    let name = GroupName::writable("g").expect("a good name");
    let group = bench.engine.store.group(&name).expect("it was durable");
    let consumers = &bench.engine.consumers;
    let (outcomes, _) = consumers.ack(&group, &handles, clock.now()).expect("room");
    assert_eq!(outcomes, [AckOutcome::Ok; 2]);
    let stats = &consumers.stats(&group).expect("the queues can be read")[0];
    assert_eq!((stats.lag, stats.in_flight), (1, 0), "acknowledged, and not folded yet");
    bench.settle();
    assert_eq!(bench.engine.consumers.stats(&group).expect("as before")[0].lag, 0);
    assert_eq!(bench.read("g").len(), 0);
}

/// Found by seed 1021. The stage that ends leases said that it had nothing to do when it had appended the
/// end of one: whoever waited for all stages to rest went on before that was on the disk.
#[test]
fn at_rest_no_lease_is_about_to_end() {
    let mut bench = Bench::new();
    bench.put(Moment::Now, "paid");
    bench.settle();
    assert_eq!(bench.read("g").len(), 1);
    bench.clock.advance(3_600_000);
    bench.settle();
    assert_eq!(bench.read("g").len(), 1);
}

/// Found by seeds 81 and 227. A message was cancelled and its topic deleted before the timer had come to
/// either. Of the topic nothing was filed any more, but the cancel was: it took a message of another topic
/// out of the count of their second.
#[test]
fn a_cancel_whose_topic_is_gone_is_not_taken_out_of_what_others_are_counted_for() {
    let mut bench = Bench::new();
    let due = Moment::At(Timestamp::from_millis(START + 3_600_000));
    let cancelled = bench.put(due, "its topic goes");
    let now = bench.clock.now().wall;
    // The flush and dispatch, and no stage of the timer.
    let (flush, dispatch) = (0, 1);
    bench.step(flush);
    let store = Arc::clone(&bench.engine.store);
    let other = TopicName::writable("other").expect("a good name");
    let message = NewMessage { moment: due, attributes: Attributes::default(), body: "x".into() };
    let nonce = bench.engine.nonce();
    producer::put(&store, PUT, &other, message, nonce, now).expect("the log has room");
    let found = producer::find(&store, &bench.id(&cancelled)).expect("it was put");
    producer::cancel(&store, &found, now).expect("the log has room");
    let orders = TopicName::writable("orders").expect("a good name");
    store.delete_topic(&orders, Force::Yes, |_| 0, now).expect("the log has room");
    bench.step(flush);
    while bench.step(dispatch) {}
    bench.settle();
    let all = Timestamp::from_millis(0)..Timestamp::from_millis(u64::MAX);
    let empty = Timeline::empty(&all, 1 << 60, 1000, 1000).expect("few buckets");
    let counted = bench.engine.pending.fill(empty, all, None, &*bench.clock).expect("it is there");
    assert_eq!(store.pending(), 1);
    assert_eq!(counted.buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 1);
}

/// Found by seed 3097. While the clock was ahead for a moment, and firing held, a message joined the slot that
/// was open then. The clock came back, and the slot lay ahead; after a start nobody knew of that any more, and a
/// list by time ended before it.
#[test]
fn what_joined_a_later_slot_is_listed_by_its_own_time_after_a_start_too() {
    let disk = SimDisk::new(1);
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let mut bench = Bench::open(&disk, Arc::clone(&clock));
    bench.settle();
    bench.put(Moment::After(60_000), "due before its slot");
    clock.step_wall(Timestamp::from_millis(START + 2 * 3_600_000));
    let dequeue_get = bench.stages.iter().position(|stage| stage.name() == "dequeue_get");
    bench.step(dequeue_get.expect("it is a stage"));
    bench.settle();
    clock.step_wall(Timestamp::from_millis(START));
    bench.settle();
    let soon = clock.now().wall..Timestamp::from_millis(START + 100_000);
    let query = Query { topic_id: None, key: None, tag: None, deadlines: soon };
    for starts in 0..3 {
        let (store, pending) = (&bench.engine.store, &bench.engine.pending);
        let listed = producer::list_scheduled(store, pending, &query, None, 10, &*clock);
        let items = listed.expect("it can be listed").answer.items;
        assert_eq!(items.len(), 1, "after {starts} starts");
        bench.engine.rest(clock.now()).expect("a checkpoint");
        drop(bench);
        disk.kill();
        bench = Bench::open(&disk, Arc::clone(&clock));
        bench.settle();
    }
}
