//! Two writers of one key, on threads: one timer waits, one message is stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::config::{DiskReserve, Flush, LeaseBounds, QueuedAppends, TopicCreation};
use horolog::message::record::Bound;
use horolog::message::{Attributes, GroupName, LevelTable, Moment, NewMessage, State, TopicName};
use horolog::metrics::Metrics;
use horolog::producer::{Atomic, IfExists, Request};
use horolog::service::{ReceiveRequest, Service, ServiceConfig, ServiceHandle, WithBody};
use timerlog::disk::sim::SimDisk;

use crate::bench::START;

/// Puts of each of the two writers.
const PUTS: usize = 5_000;

/// A server without a network, whose disk never makes anybody wait.
fn service() -> (Service, ServiceHandle) {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let config = ServiceConfig {
        flush: Flush::Sync,
        segment_size: 16 << 20,
        topics: TopicCreation::Automatic,
        queues_per_topic: 4,
        checkpoint_interval_ms: 3_600_000,
        disk_reserve: DiskReserve::Auto,
        retention_ms: 72 * 3_600_000,
        levels: LevelTable::default(),
        queued_appends: QueuedAppends::default(),
        leases: LeaseBounds::default(),
    };
    let metrics = Arc::new(Metrics::new());
    Service::open(&config, &SimDisk::new(1).root(), clock, metrics, &[9; 32]).expect("it opens")
}

fn message(body: String) -> NewMessage {
    let moment = Moment::At(Timestamp::from_millis(START + 60_000));
    NewMessage { moment, attributes: Attributes::default(), body: body.into() }
}

fn topic() -> TopicName {
    TopicName::writable("orders").expect("a good name")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .expect("threads")
}

#[test]
fn of_two_writers_of_one_timer_one_waits_at_the_end() {
    let (service, handle) = service();
    let runtime = runtime();
    let write = |writer: &'static str| {
        let service = service.clone();
        runtime.spawn(async move {
            let mut ids = Vec::new();
            for put in 0..PUTS {
                let timer = message(format!("{writer} {put}"));
                let put = service.put_timer(&topic(), "order-1", timer, IfExists::Replace).await;
                let put = put.expect("a put is accepted");
                ids.push((put.accepted.id, put.replaced));
            }
            ids
        })
    };
    let (one, other) = (write("one"), write("other"));
    let mut puts = runtime.block_on(one).expect("no panic");
    puts.extend(runtime.block_on(other).expect("no panic"));

    // Each replaces the one before it, and none is replaced twice: they form one row.
    let replaced: Vec<_> = puts.iter().filter_map(|(_, replaced)| replaced.clone()).collect();
    assert_eq!(replaced.len(), 2 * PUTS - 1, "all but the first replace one");
    assert_eq!(replaced.iter().collect::<BTreeSet<_>>().len(), replaced.len());
    let last = puts.iter().find(|(id, _)| !replaced.contains(id)).expect("one is the last");
    let waiting = runtime.block_on(service.timer(&topic(), "order-1")).expect("one waits");
    assert_eq!((&waiting.id, waiting.state), (&last.0, State::Scheduled));
    let counted = runtime.block_on(service.scheduled(&<_>::default(), None, 1000)).expect("a list");
    assert_eq!(counted.items.len(), 1);
    runtime.block_on(service.fire_now(&last.0)).expect("it waits");
    let request = ReceiveRequest {
        topic: topic(),
        max: 256,
        wait_ms: 3_600_000,
        invisible_for_ms: None,
        tags: None,
    };
    let group = GroupName::writable("workers").expect("a good name");
    let received = runtime.block_on(service.receive(&group, request)).expect("it can be read");
    assert_eq!(received.len(), 1, "one fired");
    assert_eq!(received[0].message_id, last.0);
    assert_eq!(service.pending(), 0, "and nothing waits any more");
    handle.stop();
}

#[test]
fn of_two_requests_under_one_key_at_once_one_is_stored() {
    let (service, handle) = service();
    let runtime = runtime();
    for round in 0..500_u64 {
        let bound = Bound { key: u128::from(round).to_le_bytes(), request: [1; 16] };
        let ask = || {
            let service = service.clone();
            let items = vec![Some(message(round.to_string()))];
            let request = Request { items, atomic: Atomic::Yes, bound: Some(bound) };
            runtime.spawn(async move { service.put_all(&topic(), request).await })
        };
        let asked = [ask(), ask(), ask()];
        let mut answers = Vec::new();
        for asked in asked {
            answers.push(runtime.block_on(asked).expect("no panic").expect("it is accepted"));
        }
        let first = answers.iter().filter(|answer| !answer.replayed).count();
        assert_eq!(first, 1, "round {round}: stored {first} times");
        let ids: BTreeSet<_> = answers
            .iter()
            .map(|answer| answer.items[0].as_ref().expect("accepted").id.clone())
            .collect();
        assert_eq!(ids.len(), 1, "round {round}: told {ids:?}");
        let id = ids.first().expect("one id");
        let view = runtime.block_on(service.message(id, WithBody::Yes)).expect("it is there");
        assert_eq!(view.body.expect("asked for"), round.to_string());
    }
    // What waits is counted as the log is read, which is a moment after the answer.
    while service.pending() < 500 {
        std::thread::yield_now();
    }
    assert_eq!(service.pending(), 500);
    handle.stop();
}
