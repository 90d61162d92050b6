//! The only place that starts threads: one a stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Progress, Signal, Stage, StageError};
use crate::clock::Clock;

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
#[expect(clippy::disallowed_methods, reason = "the one place that starts threads")]
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
        let builder = std::thread::Builder::new().name(stage.name().to_owned());
        let started = builder.spawn(move || drive(&mut *stage, &*clock, &stopping, &on_failure));
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

fn drive(stage: &mut dyn Stage, clock: &dyn Clock, stopping: &AtomicBool, on_failure: &OnFailure) {
    while !stopping.load(Ordering::Acquire) {
        let now = clock.now();
        match stage.step(now) {
            Ok(Progress::Worked) => {}
            Ok(Progress::Idle) => stage.signal().wait(LONGEST_SLEEP),
            Ok(Progress::IdleUntil(moment)) => {
                let ahead = Duration::from_millis(moment.since(clock.now().wall));
                if !ahead.is_zero() {
                    stage.signal().wait(ahead.min(LONGEST_SLEEP));
                }
            }
            Err(error) => return on_failure(error),
        }
    }
}

impl Running {
    /// Lets every stage finish its step, and joins its thread.
    pub fn stop(self) {
        self.stopping.store(true, Ordering::Release);
        for (signal, _) in &self.threads {
            signal.raise();
        }
        for (_, thread) in self.threads {
            if thread.join().is_err() {
                tracing::error!("a stage's thread had panicked");
            }
        }
    }
}
