//! Cancel against fire, and a reschedule against both, on the whole engine: of all that may become of a message one
//! thing does, every caller is told which, and the consumer sees just that.
//!
//! The engine stands on a simulated disk, and the stages that a message passes run on the runner's threads. The message
//! is walked and routed, and waits in the last stage for its millisecond; when the threads start, that has come. When
//! all callers have been answered, the power is cut wherever the stages are, and the next start has to make good what the
//! answers say.

use std::sync::Arc;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::commitlog::Durability;
use horolog::engine::Engine;
use horolog::message::Moment;
use horolog::producer::{
    self, CancelAnswer, Cancelled, ChangeError, Changed, Decided, LookError, RescheduleAnswer,
};
use shuttle::future::block_on;
use shuttle::thread;
use timerlog::planted::Fault;

use crate::bench::{Bench, Checkpoints, START, receive};
use crate::explore::{LARGE, holds_and_meets, met, notices};

const DUE: u64 = START + 50;
const MOVED_TO: u64 = DUE + 5000;

/// What is decided, when it may be told. Where that hangs on a record that is on its way to the disk, the call is made
/// again when it is there, as the service does.
fn told<T>(decide: impl Fn() -> Result<Decided<T>, ChangeError>) -> T {
    loop {
        let receipt = match decide() {
            Ok(decided) => {
                assert_eq!(block_on(decided.receipt.wait()), Durability::Durable);
                return decided.answer;
            }
            Err(ChangeError::Look(LookError::NotWritten(receipt))) => receipt,
            Err(error) => panic!("nothing stands against it: {error}"),
        };
        assert_eq!(block_on(receipt.wait()), Durability::Durable);
    }
}

fn cancel(engine: &Engine, clock: &ManualClock, id: &str) -> CancelAnswer {
    let found = producer::find(&engine.store, id).expect("it was put");
    told(|| producer::cancel(&engine.store, &found, clock.now().wall))
}

fn reschedule(engine: &Engine, clock: &ManualClock, id: &str) -> RescheduleAnswer {
    let found = producer::find(&engine.store, id).expect("it was put");
    let moment = Moment::At(Timestamp::from_millis(MOVED_TO));
    told(|| producer::reschedule(&engine.store, &found, moment, clock.now().wall))
}

/// A message that waits for its millisecond, which comes now, and its id.
fn about_to_fire() -> (Bench, String) {
    let mut bench = Bench::new();
    let id = bench.put(DUE);
    // The group is there, so that a call of it only looks.
    bench.settle();
    receive(&bench.engine, &bench.clock, "during");
    bench.settle();
    bench.rest();
    bench.clock.advance(50);
    (bench, id)
}

fn spawn<T: Send + 'static>(
    bench: &Bench,
    id: &str,
    call: fn(&Engine, &ManualClock, &str) -> T,
) -> thread::JoinHandle<T> {
    let (engine, clock, id) = (Arc::clone(&bench.engine), Arc::clone(&bench.clock), id.to_owned());
    thread::spawn(move || call(&engine, &clock, &id))
}

/// How many a consumer has got that called twice.
fn consume(engine: &Engine, clock: &ManualClock, _id: &str) -> usize {
    receive(engine, clock, "during") + receive(engine, clock, "during")
}

/// What the next start hands out in all, before and after the later moment.
fn after_restart(bench: Bench) -> [usize; 2] {
    let mut bench = bench.restart();
    bench.settle();
    let before = receive(&bench.engine, &bench.clock, "after");
    bench.clock.advance(MOVED_TO - DUE);
    bench.settle();
    let then = receive(&bench.engine, &bench.clock, "after");
    assert_eq!(bench.engine.store.pending(), 0, "something waits still");
    [before, then]
}

/// Two callers cancel what fires, and a consumer takes what there is.
fn cancels_against_fire(checkpoints: Checkpoints) {
    let (mut bench, id) = about_to_fire();
    let running = bench.run(checkpoints);
    let consuming = spawn(&bench, &id, consume);
    let cancelling = [(); 2].map(|()| spawn(&bench, &id, cancel));
    let answers = cancelling.map(|thread| thread.join().expect("no panic"));
    let consumed = consuming.join().expect("no panic");
    running.stop();
    let expected = match answers {
        [CancelAnswer::AlreadyDelivered, CancelAnswer::AlreadyDelivered] => {
            met("delivered");
            1
        }
        [CancelAnswer::Cancelled(one), CancelAnswer::Cancelled(other)] => {
            met("cancelled");
            let first = [one, other].map(|cancelled| cancelled == Cancelled::First);
            assert_ne!(first[0], first[1], "the answers: both or none first");
            0
        }
        answers => panic!("the answers differ: {answers:?}"),
    };
    if consumed > 0 {
        met("consumed at once");
    }
    assert!(consumed <= expected, "the answers are {answers:?}, and {consumed} were consumed");
    let then = after_restart(bench);
    assert_eq!(then, [expected, 0], "the answers are {answers:?}, and the next start knows better");
}

fn cancel_against_fire() {
    cancels_against_fire(Checkpoints::None);
}

fn cancel_against_fire_and_a_checkpoint() {
    cancels_against_fire(Checkpoints::Written);
}

fn cancel_against_reschedule_against_fire() {
    let (mut bench, id) = about_to_fire();
    let running = bench.run(Checkpoints::None);
    let consuming = spawn(&bench, &id, consume);
    let moving = spawn(&bench, &id, reschedule);
    let cancelling = spawn(&bench, &id, cancel);
    let cancelled = cancelling.join().expect("no panic");
    let moved = moving.join().expect("no panic");
    let consumed = consuming.join().expect("no panic");
    running.stop();
    let told = (cancelled, moved);
    let expected = match told {
        (CancelAnswer::AlreadyDelivered, Changed::AlreadyDelivered) => {
            met("delivered");
            [1, 0]
        }
        (CancelAnswer::Cancelled(Cancelled::First), Changed::Done(_)) => {
            met("moved, then cancelled");
            [0, 0]
        }
        (CancelAnswer::Cancelled(Cancelled::First), Changed::AlreadyCancelled) => {
            met("cancelled");
            [0, 0]
        }
        told => panic!("the answers differ: {told:?}"),
    };
    assert!(consumed <= expected[0], "the answers are {told:?}, and {consumed} were consumed");
    let then = after_restart(bench);
    assert_eq!(then, expected, "the answers are {told:?}, and the next start knows better");
}

fn reschedule_against_fire() {
    let (mut bench, id) = about_to_fire();
    let running = bench.run(Checkpoints::None);
    let consuming = spawn(&bench, &id, consume);
    let moving = spawn(&bench, &id, reschedule);
    let moved = moving.join().expect("no panic");
    let consumed = consuming.join().expect("no panic");
    running.stop();
    let expected = match moved {
        Changed::AlreadyDelivered => {
            met("delivered");
            [1, 0]
        }
        Changed::Done(at) if at.as_millis() == MOVED_TO => {
            met("moved");
            [0, 1]
        }
        moved => panic!("the answers tell of what nobody did: {moved:?}"),
    };
    assert!(consumed <= expected[0], "the answers are {moved:?}, and {consumed} were consumed");
    let then = after_restart(bench);
    assert_eq!(then, expected, "the answers are {moved:?}, and the next start knows better");
}

#[test]
fn one_of_cancelled_and_fired_comes_true_and_is_told() {
    let all = ["cancelled", "delivered", "consumed at once"];
    holds_and_meets(LARGE, cancel_against_fire, &all);
}

#[test]
fn what_was_told_holds_when_a_checkpoint_was_written_meanwhile() {
    holds_and_meets(LARGE, cancel_against_fire_and_a_checkpoint, &["cancelled", "delivered"]);
}

#[test]
fn a_cancel_that_decides_before_its_turn_is_noticed() {
    notices(Fault::DecidedBeforeTurn, "the answers", LARGE, cancel_against_fire);
}

#[test]
fn a_fire_that_does_not_ask_is_noticed() {
    notices(Fault::NoSettledCheck, "the answers", LARGE, cancel_against_fire);
}

#[test]
fn one_of_moved_and_fired_comes_true_and_is_told() {
    holds_and_meets(LARGE, reschedule_against_fire, &["moved", "delivered"]);
}

#[test]
fn a_move_that_leaves_the_old_moment_is_noticed() {
    notices(Fault::MoveWithoutSettling, "the answers", LARGE, reschedule_against_fire);
}

#[test]
fn a_cancel_and_a_move_of_what_fires_agree() {
    let all = ["delivered", "cancelled", "moved, then cancelled"];
    holds_and_meets(LARGE, cancel_against_reschedule_against_fire, &all);
}
