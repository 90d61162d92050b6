//! How work moves: stages, the bounded pipes between them, and the runner that gives each a thread.
//!
//! A stage is a value with a `step`. In production the [`runner`] steps it on a thread of its own and
//! sleeps on its [`Signal`] when there is nothing to do; in the simulator a seed decides which stage
//! steps next. The code is the same, so what the simulator cannot break is hard to break.
//!
//! Ground rules: values walk forward over [`Pipe`]s that are bounded; no stage calls another; no pipe
//! closes a cycle. A stage whose pipe is full keeps what it holds and says [`Progress::Idle`]: the pipe
//! raises its signal when there is room again.

mod pipe;
pub mod runner;
mod signal;
mod watermark;

pub use pipe::Pipe;
pub use signal::Signal;
pub use watermark::Watermark;

use crate::clock::{Now, Timestamp};

/// What a step has to say to whoever drives the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There may be more: step again at once.
    Worked,
    /// Nothing to do until the stage's signal is raised.
    Idle,
    /// As `Idle`, but step again when the wall clock shows this moment.
    IdleUntil(Timestamp),
}

/// A stage failed in a way it cannot get over: the server must end.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{stage}: {reason}")]
pub struct StageError {
    pub stage: &'static str,
    pub reason: String,
}

impl StageError {
    pub fn new(stage: &'static str, reason: impl std::fmt::Display) -> Self {
        Self { stage, reason: reason.to_string() }
    }
}

/// A piece of work that moves by steps.
pub trait Stage: Send {
    /// Also the name of its thread.
    fn name(&self) -> &'static str;

    /// Does a bounded amount of work.
    ///
    /// # Errors
    ///
    /// Only what nobody can get over; what concerns one message is dealt with inside.
    fn step(&mut self, now: Now) -> Result<Progress, StageError>;

    /// What wakes the stage.
    fn signal(&self) -> &Signal;
}

/// Stages, to be driven by whoever has them.
pub struct Stages(pub Vec<Box<dyn Stage>>);

impl std::fmt::Debug for Stages {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|stage| stage.name())).finish()
    }
}
