//! What seeds have found of nacks, retries and order, told as stories of their own.

use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::consumer::{AckOutcome, Received};
use horolog::message::{Attributes, GroupName, GroupSettings, Moment, NewMessage, TopicName};
use horolog::producer;
use timerlog::disk::sim::SimDisk;

use crate::bench::{Bench, START};
use crate::groups::bodies;
use crate::operations::PUT;
use crate::retries::{HOUR, given_back};

/// Lives of one server, each ended by a kill.
struct Lives {
    disk: SimDisk,
    clock: Arc<ManualClock>,
}

impl Lives {
    fn begin() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        Self { disk: SimDisk::new(1), clock }
    }

    /// The next one, at rest.
    fn next(&self) -> Bench {
        let mut bench = Bench::open_small(&self.disk, Arc::clone(&self.clock));
        bench.settle();
        bench
    }

    fn end(&self, mut bench: Bench) {
        bench.settle();
        drop(bench);
        self.disk.kill();
    }
}

fn attempts(received: &[Received]) -> Vec<u32> {
    received.iter().map(|one| one.attempt).collect()
}

/// Found while nacks came into the simulation. A message was handed out in two lives; under the second handle
/// it was given back, or died, so that its place in the queue was done with. The first handle was taken for
/// one whose ack had been repeated and was told ok, and the message came again.
#[test]
fn an_ack_under_an_older_handle_is_refused_when_the_message_has_gone_on() {
    for (max_attempts, letters) in [(16, 0), (1, 1)] {
        let lives = Lives::begin();
        let bench = lives.next();
        bench.give_up_after("g", max_attempts);
        bench.put_on("orders", Moment::Now, "x");
        lives.end(bench);
        let bench = lives.next();
        let first = bench.all(&bench.reader("g", "orders"));
        lives.end(bench);
        let mut bench = lives.next();
        let reader = bench.reader("g", "orders");
        let second = bench.all(&reader);
        assert_eq!((first.len(), second.len()), (1, 1));
        given_back(&bench.nack(&reader, &second, 1000));
        let refused = [AckOutcome::InvalidReceiptHandle];
        assert_eq!(bench.ack_all(&reader, &first), refused, "appended");
        bench.settle();
        assert_eq!(bench.ack_all(&reader, &first), refused, "folded");
        drop(reader);
        lives.end(bench);
        let mut bench = lives.next();
        let reader = bench.reader("g", "orders");
        assert_eq!(bench.ack_all(&reader, &first), refused, "in the next life");
        bench.clock.advance(1000);
        bench.settle();
        let again = bench.all(&reader);
        assert_eq!((again.len(), bench.letters(&reader.group).len()), (1 - letters, letters));
    }
}

/// Found while order came into the simulation. A lease of an earlier life was extended before its message was
/// looked at in this one: the cursor passed it by, nobody owned its message group, and the next one was handed
/// out beside it.
#[test]
fn a_lease_that_is_extended_after_a_restart_owns_its_message_group() {
    let lives = Lives::begin();
    let bench = lives.next();
    let name = GroupName::writable("g").expect("a good name");
    let settings = GroupSettings { ordered: true, ..GroupSettings::default() };
    bench.engine.consumers.set_group(&name, settings, lives.clock.now().wall).expect("room");
    let topic = TopicName::writable("orders").expect("a good name");
    for body in ["first", "second"] {
        let message_group = Some("one".to_owned());
        let attributes = Attributes { message_group, ..Attributes::default() };
        let message = NewMessage { moment: Moment::Now, attributes, body: body.into() };
        let (store, now) = (&bench.engine.store, lives.clock.now().wall);
        producer::put(store, PUT, &topic, message, bench.engine.nonce(), now).expect("room");
    }
    lives.end(bench);
    let bench = lives.next();
    let first = bench.all(&bench.reader("g", "orders"));
    assert_eq!(bodies(&first), ["first"]);
    lives.end(bench);
    let mut bench = lives.next();
    let reader = bench.reader("g", "orders");
    let (consumers, now) = (&bench.engine.consumers, lives.clock.now());
    let longer = Duration::from_millis(HOUR);
    let extended = consumers.extend(&reader.group, &first[0].receipt_handle, longer, now);
    assert!(extended.is_some());
    assert_eq!(bodies(&bench.all(&reader)), [""; 0]);
    assert_eq!(bench.ack_all(&reader, &first), [AckOutcome::Ok]);
    bench.settle();
    assert_eq!(bodies(&bench.all(&reader)), ["second"]);
}

/// Found while nacks came into the simulation, and by seed 1377. The lease of the second attempt ended, which
/// is recorded; then the server was started anew, and the message was given back under the handle of the
/// first. That counted from the first attempt: the message came with one that it had been out with before.
#[test]
fn a_nack_under_an_older_handle_takes_no_attempts_back() {
    let lives = Lives::begin();
    let bench = lives.next();
    bench.put_on("orders", Moment::Now, "x");
    lives.end(bench);
    let bench = lives.next();
    let first = bench.all(&bench.reader("g", "orders"));
    lives.end(bench);
    let mut bench = lives.next();
    let reader = bench.reader("g", "orders");
    let second = bench.all(&reader);
    bench.clock.advance(HOUR);
    bench.settle();
    let third = bench.all(&reader);
    assert_eq!([attempts(&first), attempts(&second), attempts(&third)], [[1], [1], [2]]);
    drop(reader);
    lives.end(bench);
    let mut bench = lives.next();
    let reader = bench.reader("g", "orders");
    assert_eq!(bench.nack(&reader, &first, 0), [AckOutcome::InvalidReceiptHandle]);
    given_back(&bench.nack(&reader, &third, 0));
    bench.settle();
    assert_eq!(attempts(&bench.all(&reader)), [3]);
}
