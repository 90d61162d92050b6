//! Running a body in many orders, and planting a fault that it must notice.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use shuttle::scheduler::{
    PctScheduler, RandomScheduler, ReplayScheduler, Schedule, Scheduler, Task, TaskId,
};
use shuttle::{Config, Runner};
use timerlog::planted::{Fault, plant};

/// Orders that a body of a few dozen steps is run in, under each scheduler.
pub(crate) const SMALL: usize = 2000;

/// Orders for a body that opens an engine.
pub(crate) const LARGE: usize = 200;

const SEED: u64 = 20_260_921;
/// Points at which priorities change, plus one: a race of three threads needs two or three.
const DEPTH: usize = 4;

/// What runs as the first thread of each execution, and starts the others.
pub(crate) type Body = fn();

/// The body holds in so many orders under each scheduler, or as many as the environment asks for.
pub(crate) fn holds(iterations: usize, body: Body) {
    holds_and_meets(iterations, body, &[]);
}

/// As [`holds`], and among the orders were some in which each of these things happened: one that never does is not
/// tested.
pub(crate) fn holds_and_meets(iterations: usize, body: Body, all: &[&'static str]) {
    if let Ok(schedule) = std::env::var("HOROLOG_RACE_SCHEDULE") {
        Runner::new(ReplayScheduler::new_from_encoded(schedule.trim()), config()).run(body);
        return;
    }
    let iterations = number("HOROLOG_RACE_ITERATIONS").unwrap_or(iterations);
    MET.take();
    let run = catch_unwind(|| {
        Runner::new(RandomScheduler::new_from_seed(SEED, iterations), config()).run(body);
        Runner::new(PctScheduler::new_from_seed(SEED, DEPTH, iterations), config()).run(body);
    });
    if let Err(panicked) = run {
        println!(
            "to run this order again: HOROLOG_RACE_SCHEDULE='<the schedule above>' \
             cargo test --features shuttle --test races <this test> -- --nocapture"
        );
        resume_unwind(panicked);
    }
    let met = MET.take();
    println!("of {} orders: {met:?}", 2 * iterations);
    for what in all {
        assert!(met.contains_key(what), "in none of these orders: {what}");
    }
}

thread_local! {
    /// How often something happened. The scheduler runs all threads of a body on the one of the test.
    static MET: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Says that this has happened in the order at hand.
pub(crate) fn met(what: &'static str) {
    MET.with_borrow_mut(|met| *met.entry(what).or_default() += 1);
}

/// With the fault planted, one of the schedulers, or both, find an order in which the body fails, and says so in these
/// words. Not both must: what takes a thread to be left standing for long is out of reach of the random one.
pub(crate) fn notices(fault: Fault, said: &str, iterations: usize, body: Body) {
    let random = RandomScheduler::new_from_seed(SEED, iterations);
    let pct = PctScheduler::new_from_seed(SEED, DEPTH, iterations);
    plant(Some(fault));
    let found = [failure(random, body), failure(pct, body)];
    plant(None);
    let [at_random, by_priority] = found.each_ref().map(|f| f.as_ref().map(|f| f.executions));
    println!("{fault:?} is noticed in order {at_random:?} at random, {by_priority:?} by priority");
    assert!(found.iter().any(Option::is_some), "{fault:?} goes unnoticed");
    for Failure { message, .. } in found.into_iter().flatten() {
        assert!(message.contains(said), "{fault:?} is noticed otherwise: {message}");
    }
}

/// A failure, and the order in which it happened.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) schedule: Schedule,
    /// The number of that order.
    pub(crate) executions: usize,
}

/// The first failure.
pub(crate) fn failure(scheduler: impl Scheduler + 'static, body: Body) -> Option<Failure> {
    let seen = Rc::new(RefCell::new(Failure::default()));
    let recorded = Recorded { scheduler, seen: Rc::clone(&seen) };
    let run = catch_unwind(AssertUnwindSafe(|| Runner::new(recorded, config()).run(body)));
    let panicked = run.err()?;
    let message = match panicked.downcast::<String>() {
        Ok(message) => *message,
        Err(other) => other.downcast_ref::<&str>().map_or_else(String::new, ToString::to_string),
    };
    Some(Failure { message, ..seen.take() })
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.silence_warnings = true;
    config
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// A scheduler that remembers what it has decided in the execution at hand.
struct Recorded<S> {
    scheduler: S,
    seen: Rc<RefCell<Failure>>,
}

impl<S: Scheduler> Scheduler for Recorded<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        let schedule = self.scheduler.new_execution()?;
        let mut seen = self.seen.borrow_mut();
        seen.schedule = schedule.clone();
        seen.executions += 1;
        Some(schedule)
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let task = self.scheduler.next_task(runnable, current, is_yielding)?;
        self.seen.borrow_mut().schedule.push_task(task);
        Some(task)
    }

    fn next_u64(&mut self) -> u64 {
        self.seen.borrow_mut().schedule.push_random();
        self.scheduler.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use horolog::sync::{AtomicU64, Ordering};
    use shuttle::thread;

    use super::*;

    /// Two threads add one each, and one of the sums may be lost.
    fn adds_in_two_steps() {
        let sum = Arc::new(AtomicU64::new(0));
        let adds = || {
            let sum = Arc::clone(&sum);
            move || sum.store(sum.load(Ordering::Acquire) + 1, Ordering::Release)
        };
        let threads = [thread::spawn(adds()), thread::spawn(adds())];
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(sum.load(Ordering::Acquire), 2, "one sum was lost");
    }

    #[test]
    fn a_schedule_that_fails_fails_again() {
        let random = RandomScheduler::new_from_seed(SEED, SMALL);
        let failed = failure(random, adds_in_two_steps).expect("a sum is lost");
        assert!(failed.message.contains("one sum was lost"), "{}", failed.message);
        let replay = ReplayScheduler::new_from_schedule(failed.schedule.clone());
        let again = failure(replay, adds_in_two_steps);
        assert_eq!(again, Some(Failure { executions: 1, ..failed }));
    }
}
