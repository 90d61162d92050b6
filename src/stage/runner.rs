//! The only place that starts threads: one a stage.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use timerlog::planted::{self, Fault};

use super::{Progress, Signal, Stage, StageError};
use crate::clock::Clock;
use crate::sync::thread::{Builder, JoinHandle};
use crate::sync::{AtomicBool, Ordering};

/// The longest sleep: a wall clock that was stepped is noticed within it.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Running stages. Stop them with [`Running::stop`]; dropping leaves them running.
#[derive(Debug)]
pub struct Running {
    threads: Vec<(Signal, JoinHandle<()>)>,
    stopping: Arc<AtomicBool>,
}

/// What is told when a stage fails. Called on the stage's thread, which then ends.
pub type OnFailure = Arc<dyn Fn(StageError) + Send + Sync>;

/// Gives each stage a thread that steps it until it is stopped or fails.
///
/// # Errors
///
/// When the operating system has no more threads; those already started are stopped again.
#[cfg_attr(
    not(feature = "shuttle"),
    expect(clippy::disallowed_methods, reason = "the one place that starts threads")
)]
pub fn run(
    stages: Vec<Box<dyn Stage>>,
    clock: &Arc<dyn Clock>,
    on_failure: &OnFailure,
) -> std::io::Result<Running> {
    let mut running =
        Running { threads: Vec::with_capacity(stages.len()), stopping: Arc::default() };
    for mut stage in stages {
        let signal = stage.signal().clone();
        let (clock, on_failure) = (Arc::clone(clock), Arc::clone(on_failure));
        let stopping = Arc::clone(&running.stopping);
        let builder = Builder::new().name(stage.name().to_owned());
        let started = builder.spawn(move || {
            let driven = AssertUnwindSafe(|| drive(&mut *stage, &*clock, &stopping));
            match catch_unwind(driven) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => on_failure(error),
                // A stage that is gone without a word would leave the others waiting for ever.
                Err(_) => on_failure(StageError::new(stage.name(), "it panicked; see above")),
            }
        });
        match started {
            Ok(thread) => running.threads.push((signal, thread)),
            Err(error) => {
                running.stop();
                return Err(error);
            }
        }
    }
    Ok(running)
}

fn drive(
    stage: &mut dyn Stage,
    clock: &dyn Clock,
    stopping: &AtomicBool,
) -> Result<(), StageError> {
    while !stopping.load(Ordering::Acquire) {
        let now = clock.now();
        match stage.step(now)? {
            Progress::Worked => {}
            Progress::Idle => stage.signal().wait(LONGEST_SLEEP),
            Progress::IdleUntil(moment) => {
                let ahead = Duration::from_millis(moment.since(clock.now().wall));
                if !ahead.is_zero() {
                    stage.signal().wait(ahead.min(LONGEST_SLEEP));
                }
            }
        }
    }
    Ok(())
}

impl Running {
    /// Lets every stage finish its step, and joins its thread.
    pub fn stop(self) {
        if !planted::is(Fault::WokenThenStopped) {
            self.stopping.store(true, Ordering::Release);
        }
        for (signal, _) in &self.threads {
            signal.raise();
        }
        self.stopping.store(true, Ordering::Release);
        for (_, thread) in self.threads {
            if thread.join().is_err() {
                tracing::error!("a stage's thread had panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::clock::{ManualClock, Now, Timestamp};

    /// A stage that ends in one of the ways a stage can end.
    struct Ending {
        signal: Signal,
        panics: bool,
    }

    impl Stage for Ending {
        fn name(&self) -> &'static str {
            "ending"
        }

        fn step(&mut self, _now: Now) -> Result<Progress, StageError> {
            assert!(!self.panics, "a bug");
            Err(StageError::new("ending", "a failed disk"))
        }

        fn signal(&self) -> &Signal {
            &self.signal
        }
    }

    #[test]
    fn a_stage_that_fails_or_panics_is_told_of() {
        for (panics, expected) in [(false, "ending: a failed disk"), (true, "ending: it panicked")]
        {
            let (told, hear) = channel();
            let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(Timestamp::from_millis(0)));
            let on_failure: OnFailure = Arc::new(move |error| {
                told.send(error.to_string()).expect("the test listens");
            });
            let stage = Box::new(Ending { signal: Signal::default(), panics });
            let running = run(vec![stage], &clock, &on_failure).expect("a thread");
            let heard = hear.recv().expect("the failure is told");
            assert!(heard.starts_with(expected), "{heard}");
            running.stop();
        }
    }
}
