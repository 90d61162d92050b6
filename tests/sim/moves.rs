//! Messages that are moved: often, back and forth, and at the very instant they fire.

use std::collections::BTreeMap;

use horolog::clock::{Clock, Timestamp};
use horolog::message::{Moment, State};
use horolog::producer::{self, CancelAnswer, Changed, Found};
use timerlog::disk::sim::{Random, SimDisk};

use crate::bench::{Bench, START};

const RACES: usize = 10_000;
const A_ROUND: usize = 100;

fn at(millis: u64) -> Moment {
    Moment::At(Timestamp::from_millis(millis))
}

fn found(bench: &Bench, id: &str) -> Found {
    producer::find(&bench.engine.store, id).expect("it was put")
}

/// Moves it, durably.
fn move_to(bench: &mut Bench, id: &str, millis: u64) -> Changed<Timestamp> {
    let now = bench.clock.now().wall;
    let found = found(bench, id);
    let decided = producer::reschedule(&bench.engine.store, &found, at(millis), now);
    let answer = decided.expect("the log has room").answer;
    bench.settle();
    answer
}

fn state(bench: &Bench, id: &str) -> State {
    found(bench, id).standing(&bench.engine.store).expect("it can be read").state
}

#[test]
fn a_message_moved_a_thousand_times_fires_once_at_its_last_moment() {
    let mut bench = Bench::new();
    let id = {
        let answer = bench.put(at(START + 500), "moved");
        bench.id(&answer)
    };
    bench.settle();
    let mut random = Random::new(7);
    for round in 0..1000 {
        // Near and far, up to three years ahead, and back to where it was.
        let ahead = [500, 2_000, 90_000, 40 * 86_400_000, 1100 * 86_400_000];
        let ahead = ahead[usize::try_from(random.below(5)).unwrap()];
        let due = START + if round == 999 { 3_000 } else { ahead };
        assert_eq!(move_to(&mut bench, &id, due), Changed::Done(Timestamp::from_millis(due)));
    }
    bench.clock.advance(2_999);
    bench.settle();
    assert!(bench.read("early").is_empty(), "it fired at a moment it no longer had");
    assert_eq!(bench.engine.store.pending(), 1);
    bench.clock.advance(1);
    bench.settle();
    let read = bench.read("in-time");
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].message_id, id);
    assert_eq!(read[0].deliver_at, Timestamp::from_millis(START + 3_000));
    assert_eq!(read[0].fired_at, Some(Timestamp::from_millis(START + 3_000)));
    for _ in 0..1200 {
        bench.clock.advance(3_000_000);
        bench.settle();
    }
    assert_eq!(bench.read("late").len(), 1, "it fired again at a moment it once had");
    assert_eq!(move_to(&mut bench, &id, START * 2), Changed::AlreadyDelivered);
}

#[test]
fn moved_away_and_back_it_fires_once_and_every_state_on_the_way_survives_a_restart() {
    let disk = SimDisk::new(3);
    let mut bench = Bench::open(&disk, Bench::new().clock);
    let (first, other) = (START + 10_000, START + 50_000);
    let id = {
        let answer = bench.put(at(first), "there and back");
        bench.id(&answer)
    };
    bench.settle();
    for (round, due) in [other, first, other, first].into_iter().enumerate() {
        move_to(&mut bench, &id, due);
        let clock = std::sync::Arc::clone(&bench.clock);
        if round % 2 == 0 {
            disk.crash(&mut Random::new(round as u64));
        } else {
            disk.kill();
        }
        drop(bench);
        bench = Bench::open(&disk, clock);
        bench.settle();
        let standing = found(&bench, &id).standing(&bench.engine.store).expect("it can be read");
        assert_eq!(standing.deliver_at, Timestamp::from_millis(due), "round {round}");
        assert_eq!(standing.state, State::Scheduled);
    }
    bench.clock.advance(60_000);
    bench.settle();
    let read = bench.read("g");
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].fired_at, Some(Timestamp::from_millis(START + 60_000)));
    assert_eq!(state(&bench, &id), State::Ready);
}

#[test]
fn cancelled_after_a_move_it_never_fires_and_a_move_after_the_cancel_is_told_so() {
    let mut bench = Bench::new();
    let id = {
        let answer = bench.put(at(START + 1_000), "called off");
        bench.id(&answer)
    };
    bench.settle();
    move_to(&mut bench, &id, START + 5_000);
    let now = bench.clock.now().wall;
    let cancelled = producer::cancel(&bench.engine.store, &found(&bench, &id), now).unwrap();
    assert!(matches!(cancelled.answer, CancelAnswer::Cancelled(_)));
    bench.settle();
    assert_eq!(move_to(&mut bench, &id, START + 2_000), Changed::AlreadyCancelled);
    let fired = producer::fire_now(&bench.engine.store, &found(&bench, &id), now).unwrap();
    assert_eq!(fired.answer, Changed::AlreadyCancelled);
    bench.clock.advance(10_000);
    bench.settle();
    assert!(bench.read("g").is_empty());
    assert_eq!(bench.engine.store.pending(), 0);
}

#[test]
fn fired_on_request_it_says_when_it_was_asked_for_and_when_it_fired() {
    let mut bench = Bench::new();
    let due = START + 86_400_000;
    let id = {
        let answer = bench.put(at(due), "now, please");
        bench.id(&answer)
    };
    bench.settle();
    bench.clock.advance(77);
    let now = bench.clock.now().wall;
    let fired = producer::fire_now(&bench.engine.store, &found(&bench, &id), now).unwrap();
    assert_eq!(fired.answer, Changed::Done(now));
    bench.settle();
    let read = bench.read("g");
    assert_eq!(read.len(), 1);
    assert_eq!((read[0].deliver_at, read[0].fired_at), (Timestamp::from_millis(due), Some(now)));
    let (store, sought) = (&bench.engine.store, found(&bench, &id));
    let standing = sought.standing(store).unwrap();
    let topic = sought.topic(store).unwrap();
    assert_eq!(sought.fired_at(store, &topic, &standing).unwrap(), Some(now));
    bench.clock.advance(86_400_000);
    bench.settle();
    assert_eq!(bench.read("later").len(), 1, "it fired again at its own moment");
}

#[test]
fn a_move_that_races_the_firing_wins_or_is_told_that_it_lost() {
    let mut bench = Bench::new();
    let mut random = Random::new(11);
    // By body: when it may fire, by what its mover was told.
    let mut expected = BTreeMap::new();
    let (mut moved, mut delivered) = (0, 0);
    for round in 0..RACES / A_ROUND {
        let due = bench.wall() + 50;
        let racing: Vec<_> = (0..A_ROUND)
            .map(|index| {
                let body = (round * A_ROUND + index).to_string();
                let answer = bench.put(at(due), &body);
                (bench.id(&answer), body)
            })
            .collect();
        bench.settle();
        bench.clock.advance(if random.once_in(3) { 49 } else { 50 });
        for (id, body) in racing.into_iter().rev() {
            for _ in 0..random.below(3) {
                let stage = usize::try_from(random.below(bench.stages.len() as u64)).unwrap();
                bench.step(stage);
            }
            let now = bench.clock.now().wall;
            let later = due + 30 + random.below(40);
            let decided =
                producer::reschedule(&bench.engine.store, &found(&bench, &id), at(later), now);
            match decided.expect("the log has room").answer {
                Changed::Done(to) => {
                    moved += 1;
                    expected.insert(body, to);
                }
                Changed::AlreadyDelivered => {
                    delivered += 1;
                    expected.insert(body, Timestamp::from_millis(due));
                }
                Changed::AlreadyCancelled => unreachable!("nobody cancels here"),
            }
        }
        bench.clock.advance(1);
        bench.settle();
    }
    bench.clock.advance(1_000);
    bench.settle();
    let read = bench.read("audit");
    assert_eq!(read.len(), RACES, "each fires once");
    for received in read {
        let body = String::from_utf8(received.body.to_vec()).unwrap();
        let due = expected.remove(&body).expect("it fires once");
        assert_eq!(received.deliver_at, due, "{body}");
        assert!(received.fired_at.is_some_and(|fired| fired >= due), "{body} fired early");
    }
    assert!(moved > RACES / 20, "only {moved} were moved");
    assert!(delivered > RACES / 20, "only {delivered} were delivered first");
}
