//! The wall clock is set, at each step of the life of messages: forward, back, there and back; and the server goes on,
//! is started again, or loses what is derived.
//!
//! The life is two and a half seconds long, in which every stage steps once each tenth of a second. Each step of each
//! stage is a place where the clock is set once, and set back (or forward again) some steps later. Whatever the clocks
//! show: nothing fires before a wall clock that shows its moment, nothing twice, and all comes in the end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::consumer::AckOutcome;
use horolog::message::record::Terms;
use horolog::message::{GroupName, Moment};
use horolog::producer::{self, EndAnswer, Ended};
use horolog::stage::Progress;
use timerlog::disk::sim::SimDisk;

use crate::bench::{Bench, START};
use crate::retention::lose_derived;

const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;
/// Tenths of a second that a life is long.
const TENTHS: u64 = 25;
/// Steps of stages after which the clock is set to what it would have shown.
const BACK_AFTER: usize = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    Restart,
    Rebuild,
}

#[derive(Clone, Copy, Debug)]
struct Set {
    at_step: usize,
    by: u64,
    forward: bool,
    /// It is set again later, to what it would have shown.
    again: bool,
    meanwhile: Meanwhile,
}

struct Life {
    disk: SimDisk,
    clock: Arc<ManualClock>,
    bench: Option<Bench>,
    /// The latest that the wall clock has shown.
    highest: u64,
    /// What another group has seen on the way.
    seen: BTreeSet<String>,
    steps: usize,
    what: String,
}

const TIMED: [&str; 5] = ["timer", "level", "committed", "moved", "retry"];

impl Life {
    fn begin(what: String) -> Self {
        let disk = SimDisk::new(1);
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        let bench = Some(Bench::open_small_segments(&disk, Arc::clone(&clock)));
        let mut life =
            Self { disk, clock, bench, highest: START, seen: BTreeSet::new(), steps: 0, what };
        life.put_all();
        life
    }

    fn bench(&mut self) -> &mut Bench {
        self.bench.as_mut().expect("it runs")
    }

    /// One of each that waits for its moment, and what is over before the clock is set.
    fn put_all(&mut self) {
        let bench = self.bench();
        bench.put(Moment::Now, "retry");
        bench.settle();
        let read = bench.read("workers");
        let group = GroupName::writable("workers").expect("a good name");
        let group = bench.engine.store.group(&group).expect("it reads");
        let (handles, now) = ([read[0].receipt_handle.clone()], bench.clock.now());
        let delay = Some(Duration::from_millis(2100));
        let nacked = bench.engine.consumers.nack(&group, &handles, delay, now).expect("room");
        assert_eq!(nacked.0, [AckOutcome::Ok]);
        bench.put(Moment::Now, "now");
        bench.put(Moment::After(2300), "timer");
        bench.put(Moment::Level(1), "level");
        let moved = bench.put(Moment::After(DAY), "moved");
        let cancelled = bench.put(Moment::After(2200), "cancelled");
        let half = bench.prepare(Moment::After(1900), "committed", &terms());
        let (id, half) = (bench.id(&moved), bench.id(&half));
        bench.settle();
        let store = Arc::clone(&bench.engine.store);
        let found = |id: &str| producer::find(&store, id).expect("it is there");
        let at = now.wall;
        producer::reschedule(&store, &found(&id), Moment::After(1700), at).expect("it waits");
        let ended = producer::end(&store, &found(&half), Ended::Committed, at).expect("room");
        assert_eq!(ended.answer, EndAnswer::AsAsked);
        let cancel = found(&bench.id(&cancelled));
        producer::cancel(&store, &cancel, at).expect("room");
    }

    /// Lives on, with the clock set on the way.
    fn live(&mut self, set: Set) {
        let mut left = None;
        for _ in 0..TENTHS {
            self.clock.advance(100);
            self.highest = self.highest.max(self.bench().wall());
            for index in 0..self.bench().stages.len() {
                if self.steps == set.at_step {
                    self.set_clock(set.by, set.forward);
                    left = Some(BACK_AFTER);
                }
                match &mut left {
                    Some(0) => {
                        left = None;
                        self.meanwhile(set.meanwhile);
                        if set.again {
                            self.set_clock(set.by, !set.forward);
                        }
                    }
                    Some(left) => *left -= 1,
                    None => {}
                }
                self.steps += 1;
                self.bench().step(index);
            }
            self.look();
        }
    }

    fn set_clock(&mut self, by: u64, forward: bool) {
        let wall = self.bench().wall();
        let wall = if forward { wall + by } else { wall - by };
        self.clock.step_wall(Timestamp::from_millis(wall));
        self.highest = self.highest.max(wall);
        let body = format!("at {}", self.steps);
        self.bench().put(Moment::Now, &body);
    }

    fn meanwhile(&mut self, meanwhile: Meanwhile) {
        if meanwhile == Meanwhile::Nothing {
            return;
        }
        // What was answered is on the disk.
        let now = self.clock.now();
        self.bench().engine.store.log().flush(now).expect("the disk works");
        self.bench = None;
        self.disk.kill();
        if meanwhile == Meanwhile::Rebuild {
            lose_derived(&self.disk);
        }
        self.bench = Some(Bench::open_small_segments(&self.disk, Arc::clone(&self.clock)));
    }

    /// What is readable is due by a clock that was shown.
    fn look(&mut self) {
        for group in ["lookers", "workers"] {
            for received in self.bench().read(group) {
                let body = String::from_utf8(received.body.to_vec()).expect("text");
                let due = received.deliver_at.as_millis();
                assert!(due <= self.highest, "{body} is early, {}", self.what);
                if let Some(fired) = received.fired_at {
                    assert!(fired.as_millis() >= due, "{body} fired early, {}", self.what);
                    assert!(fired.as_millis() <= self.highest, "{body}, {}", self.what);
                }
                assert_ne!(body, "cancelled", "{}", self.what);
                self.seen.insert(body);
            }
        }
    }

    /// Time passes until all must have come: each has one place on its topic.
    fn end(&mut self) {
        for _ in 0..4 {
            self.clock.advance(6 * DAY);
            self.highest = self.highest.max(self.bench().wall());
            // The jump holds firing for a minute.
            self.bench().settle();
            self.clock.advance(61_000);
            self.highest = self.highest.max(self.bench().wall());
            self.bench().settle();
        }
        self.look();
        let (mut places, mut bodies) = (BTreeSet::new(), Vec::new());
        for received in self.bench().read("the-end") {
            assert!(places.insert((received.queue, received.queue_offset)), "{}", self.what);
            bodies.push(String::from_utf8(received.body.to_vec()).expect("text"));
        }
        bodies.sort_unstable();
        let mut expected: Vec<_> = TIMED.iter().map(|body| (*body).to_owned()).collect();
        expected.push("now".to_owned());
        expected.extend(bodies.iter().filter(|body| body.starts_with("at ")).cloned());
        expected.sort_unstable();
        assert_eq!(bodies, expected, "{}", self.what);
        let put_after = bodies.iter().filter(|body| body.starts_with("at ")).count();
        assert!(put_after > 0, "what is put under the other clock is lost, {}", self.what);
        assert_eq!(self.bench().engine.store.pending(), 0, "{}", self.what);
    }
}

fn terms() -> Terms {
    Terms {
        producer_group: "shop".to_owned(),
        check_after_ms: HOUR,
        check_interval_ms: HOUR,
        max_checks: 3,
        abandon_after_ms: DAY,
        check_url: None,
    }
}

fn steps_of_a_life() -> usize {
    let mut life = Life::begin("undisturbed".to_owned());
    let never = Set {
        at_step: usize::MAX,
        by: 0,
        forward: true,
        again: false,
        meanwhile: Meanwhile::Nothing,
    };
    life.live(never);
    for body in TIMED {
        assert!(life.seen.contains(body), "{body} has come after two and a half seconds");
    }
    life.steps
}

fn at_every_step(by: u64) {
    for at_step in 0..steps_of_a_life() {
        for meanwhile in [Meanwhile::Nothing, Meanwhile::Restart, Meanwhile::Rebuild] {
            for (forward, again) in [(true, true), (false, true), (true, false), (false, false)] {
                let set = Set { at_step, by, forward, again, meanwhile };
                let mut life = Life::begin(format!("{set:?}"));
                life.live(set);
                life.end();
            }
        }
    }
}

#[test]
fn a_clock_that_is_set_by_a_second_fires_nothing_early_or_twice() {
    at_every_step(SECOND);
}

#[test]
fn a_clock_that_is_set_by_an_hour_fires_nothing_early_or_twice() {
    at_every_step(HOUR);
}

#[test]
fn a_clock_that_is_set_by_ten_days_fires_nothing_early_or_twice() {
    at_every_step(10 * DAY);
}

/// Set forward by days, and back within the minute for which firing is held: nobody has seen anything of it.
#[test]
fn a_jump_forward_that_is_taken_back_at_once_fires_nothing() {
    for at_step in (0..steps_of_a_life()).step_by(5) {
        let set = Set {
            at_step,
            by: 10 * DAY,
            forward: true,
            again: true,
            meanwhile: Meanwhile::Nothing,
        };
        let mut life = Life::begin(format!("{set:?}"));
        let tomorrow = life.bench().put(Moment::After(DAY), "tomorrow");
        life.live(set);
        assert!(!life.seen.contains("tomorrow"), "{}", life.what);
        let id = life.bench().id(&tomorrow);
        let store = Arc::clone(&life.bench().engine.store);
        let found = producer::find(&store, &id).expect("it is there");
        let state = found.standing(&store).expect("it can be looked up").state;
        assert_eq!(state, horolog::message::State::Scheduled, "{}", life.what);
    }
}

/// Down for thirty days: what came due meanwhile comes at once, in order, and the service takes new messages on the way.
#[test]
fn after_thirty_days_down_all_that_is_overdue_fires_once_in_order_while_new_messages_are_taken() {
    for meanwhile in [Meanwhile::Restart, Meanwhile::Rebuild] {
        let disk = SimDisk::new(1);
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        let mut bench = Bench::open(&disk, Arc::clone(&clock));
        for index in 0..2000_u64 {
            let after = 1000 + index * 7919 % 2000 * (25 * DAY / 2000);
            bench.put(Moment::After(after), &format!("{index}"));
        }
        bench.settle();
        drop(bench);
        disk.kill();
        if meanwhile == Meanwhile::Rebuild {
            lose_derived(&disk);
        }
        clock.advance(30 * DAY);
        let mut bench = Bench::open(&disk, Arc::clone(&clock));
        let mut new = 0;
        let mut read = Vec::new();
        loop {
            let stages = 0..bench.stages.len();
            let now = clock.now();
            let step = |index: usize| bench.stages[index].step(now).expect("no stage fails");
            let worked = stages.map(step).filter(|progress| *progress == Progress::Worked).count();
            if worked == 0 {
                break;
            }
            if new < 100 {
                bench.put(Moment::Now, "new");
                new += 1;
            }
            read.extend(bench.read("readers"));
            clock.advance(1);
        }
        read.extend(bench.read("readers"));
        let (news, overdue): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|received| received.body.as_ref() == b"new");
        assert_eq!(news.len(), new, "{meanwhile:?}");
        assert!(new > 10, "messages were put while the overdue fired, {meanwhile:?}");
        let ids: BTreeSet<_> = overdue.iter().map(|received| &received.message_id).collect();
        assert_eq!((overdue.len(), ids.len()), (2000, 2000), "{meanwhile:?}");
        for queue in 0..4 {
            let mut of_queue: Vec<_> = overdue.iter().filter(|one| one.queue == queue).collect();
            of_queue.sort_by_key(|received| received.queue_offset);
            assert!(of_queue.is_sorted_by_key(|received| received.deliver_at), "{meanwhile:?}");
        }
    }
}
