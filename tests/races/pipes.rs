//! Pipes between stages, on the threads of the runner: every item comes out once and in order, who finds a pipe full or
//! empty is woken when it is not, and stages that are stopped all end and lose nothing.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Now, Timestamp};
use horolog::stage::runner::{OnFailure, Running, run};
use horolog::stage::{Pipe, Progress, Signal, Stage, StageError, Watermark};
use horolog::sync::Mutex;
use timerlog::planted::Fault;

use crate::explore::{SMALL, holds, notices};

const ITEMS: u64 = 5;

/// Makes the items, one after the other.
struct Source {
    next: Arc<Mutex<u64>>,
    out: Pipe<u64>,
    signal: Signal,
}

impl Stage for Source {
    fn name(&self) -> &'static str {
        "source"
    }

    fn step(&mut self, _now: Now) -> Result<Progress, StageError> {
        let mut next = self.next.lock();
        if *next == ITEMS || self.out.push(*next).is_err() {
            return Ok(Progress::Idle);
        }
        *next += 1;
        Ok(Progress::Worked)
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}

/// Hands on what it has got, and keeps what finds no room.
struct Middle {
    input: Pipe<u64>,
    held: Arc<Mutex<Option<u64>>>,
    out: Pipe<u64>,
    signal: Signal,
}

impl Stage for Middle {
    fn name(&self) -> &'static str {
        "middle"
    }

    fn step(&mut self, _now: Now) -> Result<Progress, StageError> {
        let mut held = self.held.lock();
        let Some(item) = held.take().or_else(|| self.input.pop()) else {
            return Ok(Progress::Idle);
        };
        *held = self.out.push(item).err();
        Ok(if held.is_some() { Progress::Idle } else { Progress::Worked })
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}

/// Takes what comes out.
struct Sink {
    input: Pipe<u64>,
    taken: Arc<Mutex<Vec<u64>>>,
    count: Arc<Watermark>,
    signal: Signal,
}

impl Stage for Sink {
    fn name(&self) -> &'static str {
        "sink"
    }

    fn step(&mut self, _now: Now) -> Result<Progress, StageError> {
        let Some(item) = self.input.pop() else { return Ok(Progress::Idle) };
        let mut taken = self.taken.lock();
        taken.push(item);
        self.count.raise(taken.len() as u64);
        Ok(Progress::Worked)
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}

/// A source, a stage in the middle and a sink, running, with a pipe of one place and one of two between them.
struct Line {
    made: Arc<Mutex<u64>>,
    first: Pipe<u64>,
    held: Arc<Mutex<Option<u64>>>,
    second: Pipe<u64>,
    taken: Arc<Mutex<Vec<u64>>>,
    count: Arc<Watermark>,
    running: Running,
}

impl Line {
    fn start() -> Self {
        let [source, middle, sink] = [(); 3].map(|()| Signal::default());
        let first = Pipe::new(1, source.clone(), middle.clone());
        let second = Pipe::new(2, middle.clone(), sink.clone());
        let (made, held, taken) = (Arc::default(), Arc::default(), Arc::default());
        let count = Arc::new(Watermark::default());
        let stages: Vec<Box<dyn Stage>> = vec![
            Box::new(Source { next: Arc::clone(&made), out: first.clone(), signal: source }),
            Box::new(Middle {
                input: first.clone(),
                held: Arc::clone(&held),
                out: second.clone(),
                signal: middle,
            }),
            Box::new(Sink {
                input: second.clone(),
                taken: Arc::clone(&taken),
                count: Arc::clone(&count),
                signal: sink,
            }),
        ];
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(Timestamp::from_millis(0)));
        let on_failure: OnFailure = Arc::new(|error| panic!("{error}"));
        let running = run(stages, &clock, &on_failure).expect("threads");
        Self { made, first, held, second, taken, count, running }
    }
}

/// Everything that was made comes out; then the stages, all asleep, are stopped.
fn everything_comes_out() {
    let line = Line::start();
    assert!(line.count.wait_for(ITEMS, Duration::from_secs(1)));
    line.running.stop();
    assert_eq!(*line.taken.lock(), (0..ITEMS).collect::<Vec<_>>());
    assert!(line.first.is_empty() && line.second.is_empty());
}

/// Stopped wherever they are, the stages end, and what was made is somewhere, in order.
fn stopped_midway() {
    let line = Line::start();
    line.running.stop();
    let mut all = mem::take(&mut *line.taken.lock());
    all.extend(std::iter::from_fn(|| line.second.pop()));
    all.extend(line.held.lock().take());
    all.extend(std::iter::from_fn(|| line.first.pop()));
    assert_eq!(all, (0..*line.made.lock()).collect::<Vec<_>>());
}

#[test]
fn every_item_comes_out_once_and_in_order() {
    holds(SMALL, everything_comes_out);
}

#[test]
fn a_pipe_that_does_not_tell_of_room_is_noticed() {
    notices(Fault::RoomNotTold, "deadlock", SMALL, everything_comes_out);
}

#[test]
fn stages_that_are_stopped_all_end_and_lose_nothing() {
    holds(SMALL, stopped_midway);
}

#[test]
fn stages_that_are_woken_before_they_are_told_to_stop_are_noticed() {
    notices(Fault::WokenThenStopped, "deadlock", SMALL, stopped_midway);
}
