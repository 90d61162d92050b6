//! Cancel against fire, ten thousand times at the due instant: one wins, and the caller is told which.

use std::collections::BTreeSet;

use horolog::clock::{Clock, Timestamp};
use horolog::message::Moment;
use horolog::message::timer_tag::TimerTag;
use horolog::producer::{self, CancelAnswer, Cancelled, Cause, PutAnswer};
use timerlog::disk::sim::Random;

use crate::bench::Bench;

const RACES: usize = 10_000;
const A_ROUND: usize = 100;

#[test]
fn after_cancelled_it_never_appears_and_after_delivered_it_always_does() {
    let mut bench = Bench::new();
    let mut random = Random::new(42);
    let (mut cancelled, mut delivered) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..RACES / A_ROUND {
        let due = bench.wall() + 50;
        let mut racing: Vec<_> = (0..A_ROUND)
            .map(|index| {
                let body = (round * A_ROUND + index).to_string();
                let answer = bench.put(Moment::At(Timestamp::from_millis(due)), &body);
                (bench.id(&answer), body)
            })
            .collect();
        bench.settle();
        // One millisecond before, nothing can have fired; at the due instant, everything may.
        bench.clock.advance(if random.once_in(3) { 49 } else { 50 });
        while let Some((id, body)) = racing.pop() {
            for _ in 0..random.below(3) {
                let stage = usize::try_from(random.below(bench.stages.len() as u64)).unwrap();
                bench.step(stage);
            }
            let found = producer::find(&bench.engine.store, &id).unwrap();
            let now = bench.clock.now().wall;
            match producer::cancel(&bench.engine.store, &found, now).unwrap().answer {
                CancelAnswer::Cancelled(_) => cancelled.insert(body),
                CancelAnswer::AlreadyDelivered => delivered.insert(body),
            };
        }
        bench.clock.advance(1);
        bench.settle();
    }
    let read = bench.read("audit");
    let seen: BTreeSet<_> =
        read.iter().map(|r| String::from_utf8(r.body.to_vec()).unwrap()).collect();
    assert_eq!(read.len(), seen.len(), "something fired twice");
    assert_eq!(seen, delivered);
    assert_eq!(cancelled.len() + delivered.len(), RACES);
    assert!(seen.is_disjoint(&cancelled));
    // Both ways must have happened often, or this was no race.
    assert!(cancelled.len() > RACES / 20, "only {} were cancelled", cancelled.len());
    assert!(delivered.len() > RACES / 20, "only {} were delivered", delivered.len());
}

fn cause(bench: &Bench, answer: &PutAnswer) -> Cause {
    let found = producer::find(&bench.engine.store, &bench.id(answer)).expect("it was put");
    let message = &found.message;
    let tag = TimerTag::message(message.topic_id, message.queue, message.tag_hash);
    Cause { offset: found.offset, deadline: answer.deliver_at, tag }
}

#[test]
fn of_many_cancelled_in_one_turn_each_is_told_what_became_of_it() {
    let mut bench = Bench::new();
    let due = bench.wall() + 50;
    let put = |at, body| bench.put(Moment::At(Timestamp::from_millis(at)), body);
    let (fires, waits) = (put(due, "fires"), put(due + 1, "waits"));
    bench.settle();
    let causes = [fires, waits, waits].map(|answer| cause(&bench, &answer));
    bench.clock.advance(50);
    bench.settle();
    let now = bench.clock.now().wall;
    let decided = producer::cancel_all(&bench.engine.store, &causes, now).unwrap();
    let [first, before] = [Cancelled::First, Cancelled::Before].map(CancelAnswer::Cancelled);
    assert_eq!(decided.answer, [CancelAnswer::AlreadyDelivered, first, before].map(Some));
    bench.clock.advance(1000);
    bench.settle();
    let read = bench.read("audit");
    let bodies: Vec<_> = read.iter().map(|received| received.body.to_vec()).collect();
    assert_eq!(bodies, [b"fires"]);
    assert_eq!(bench.engine.store.pending(), 0);
}
