//! What a message costs in bytes that are written, all files together.

use std::sync::Arc;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::message::Moment;
use timerlog::disk::sim::SimDisk;

use crate::bench::{Bench, START};

const MESSAGES: u64 = 8192;
/// As many wait for one flush as connections wait for their answer.
const AT_ONCE: u64 = 256;
const SIZE: usize = 1024;

/// The body is written once. All that a message of 1 KiB writes from its put to its ack, with the index, the settled
/// bits and a checkpoint at the end, is at most 1.35 KiB.
#[test]
fn a_message_of_a_kibibyte_writes_little_more_than_itself_from_put_to_ack() {
    let disk = SimDisk::new(1);
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let mut bench = Bench::open(&disk, clock);
    let body = "x".repeat(SIZE);
    bench.put(Moment::Now, &body);
    bench.settle();
    let first = bench.read("g");
    bench.ack("g", &first);
    bench.settle();
    bench.engine.rest(bench.clock.now()).expect("a checkpoint");
    let written = || disk.counters().bytes_written;
    let start = written();
    for number in 0..MESSAGES {
        bench.put(Moment::After(30_000 + number % 1000), &body);
        if number % AT_ONCE == AT_ONCE - 1 {
            bench.settle();
        }
    }
    let put = written();
    for _ in 0..320 {
        bench.clock.advance(100);
        bench.settle();
    }
    let fired = written();
    let received = bench.read("g");
    assert_eq!(received.len() as u64, MESSAGES);
    for some in received.chunks(32) {
        bench.ack("g", some);
        bench.settle();
    }
    let acked = written();
    bench.engine.rest(bench.clock.now()).expect("a checkpoint");
    let rested = written();
    let each = |from: u64, to: u64| (to - from) / MESSAGES;
    println!(
        "of each message of {SIZE} bytes {} bytes are written: {} by its put, {} by its firing, {} by its ack, {} by a \
         checkpoint",
        each(start, rested),
        each(start, put),
        each(put, fired),
        each(fired, acked),
        each(acked, rested),
    );
    let most = SIZE as u64 * 135 / 100;
    assert!(each(start, rested) <= most, "{} bytes for each", each(start, rested));
}
