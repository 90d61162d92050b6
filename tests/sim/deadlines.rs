//! Deadlines near and far: each fires at its very millisecond and not one before.

use horolog::clock::Timestamp;
use horolog::message::{MAX_DELAY_MS, Moment};

use crate::bench::{Bench, START};

const SECOND: u64 = 1000;
const DAY: u64 = 86_400 * SECOND;
/// Half of the near ring that ships: 2^19 slots of a second.
const HALF_RING: u64 = (1 << 19) * SECOND;

/// Schedules a message for `deadline` and lets time pass in steps that nobody takes for a jump.
fn fires_at(deadline: u64) {
    let mut bench = Bench::new();
    bench.put(Moment::At(Timestamp::from_millis(deadline)), "due");
    bench.settle();
    bench.clock.advance(deadline - 1 - bench.wall());
    bench.settle();
    assert_eq!(bench.read("g").len(), 0, "early: {} ms before", deadline - bench.wall());
    bench.clock.advance(1);
    bench.settle();
    let read = bench.read("g");
    assert_eq!(read.len(), 1, "not there at its millisecond");
    assert_eq!(read[0].fired_at, Some(Timestamp::from_millis(deadline)));
    bench.clock.advance(DAY);
    bench.settle();
    // Its lease has run out: there is the one message, again, and for another group the same one.
    assert_eq!((bench.read("g").len(), bench.read("other").len()), (1, 1));
}

#[test]
fn a_millisecond_ahead() {
    fires_at(START + 1);
}

#[test]
fn in_the_open_second() {
    fires_at(START + 500);
}

#[test]
fn around_the_bound_of_a_slot() {
    let bound = (START / SECOND + 5) * SECOND;
    [bound - 1, bound, bound + 1].into_iter().for_each(fires_at);
}

#[test]
fn around_half_a_ring() {
    let bound = (START + HALF_RING) / SECOND * SECOND;
    [bound - SECOND, bound - 1, bound, bound + 1, bound + SECOND].into_iter().for_each(fires_at);
}

#[test]
fn around_a_whole_ring() {
    let bound = (START + 2 * HALF_RING) / SECOND * SECOND;
    [bound - 1, bound, bound + 1].into_iter().for_each(fires_at);
}

#[test]
fn a_year_ahead() {
    fires_at(START + 365 * DAY + 7);
}

#[test]
fn a_hundred_years_ahead() {
    fires_at(START + MAX_DELAY_MS);
}

#[test]
fn a_backlog_of_a_month_fires_once_in_the_order_of_its_deadlines() {
    let mut bench = Bench::new();
    // One queue, so that there is one order.
    for index in 0..300_u64 {
        let shuffled = index * 7919 % 300;
        let deadline = START + 1 + shuffled * 2 * 3600 * SECOND;
        bench.put(Moment::At(Timestamp::from_millis(deadline)), &deadline.to_string());
    }
    bench.settle();
    bench.clock.advance(40 * DAY);
    bench.settle();
    let read = bench.read("g");
    assert_eq!(read.len(), 300);
    for queue in 0..4 {
        let of_queue: Vec<_> =
            read.iter().filter(|r| r.queue == queue).map(|r| r.deliver_at).collect();
        assert!(of_queue.is_sorted(), "queue {queue}: {of_queue:?}");
    }
}
