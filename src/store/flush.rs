//! The flush as a stage: one group after the other, as fast as the disk takes them.

use std::sync::Arc;
use std::time::Duration;

use super::Store;
use crate::clock::{Clock, Now};
use crate::commitlog::Flushed;
use crate::stage::{Progress, Signal, Stage, StageError};
use crate::sync::Ordering;

/// Stands for: no flush is under way.
pub(super) const NO_FLUSH: u64 = u64::MAX;

/// What is told of each flush.
pub trait FlushObserver: Send {
    fn flushed(&self, records: u64, bytes: u64, took: Duration);
}

pub struct FlushStage {
    store: Arc<Store>,
    /// Only to measure how long the disk took.
    clock: Arc<dyn Clock>,
    observer: Box<dyn FlushObserver>,
}

impl std::fmt::Debug for FlushStage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("FlushStage")
    }
}

impl FlushStage {
    pub fn new(store: Arc<Store>, clock: Arc<dyn Clock>, observer: Box<dyn FlushObserver>) -> Self {
        Self { store, clock, observer }
    }
}

impl Store {
    fn flush_began(&self, now: Now) {
        let since = u64::try_from(now.monotonic.as_millis()).unwrap_or(NO_FLUSH);
        self.flushing_since.store(since, Ordering::Relaxed);
    }

    fn flush_ended(&self) {
        self.flushing_since.store(NO_FLUSH, Ordering::Relaxed);
    }

    /// How long the flush that is under way has taken so far; zero when there is none.
    pub fn flushing_for(&self, monotonic: Duration) -> Duration {
        match self.flushing_since.load(Ordering::Relaxed) {
            NO_FLUSH => Duration::ZERO,
            since => monotonic.saturating_sub(Duration::from_millis(since)),
        }
    }
}

impl Stage for FlushStage {
    fn name(&self) -> &'static str {
        "flush"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        self.store.flush_began(now);
        let flushed = self.store.log.flush(now);
        self.store.flush_ended();
        match flushed.map_err(|error| StageError::new(self.name(), error))? {
            Flushed::Nothing { sync_due_in_ms: None } => Ok(Progress::Idle),
            Flushed::Nothing { sync_due_in_ms: Some(left) } => {
                Ok(now.wall.checked_add(left).map_or(Progress::Idle, Progress::IdleUntil))
            }
            Flushed::Groups { records, bytes, .. } => {
                self.store.dispatch_signal.raise();
                let took = self.clock.now().monotonic.saturating_sub(now.monotonic);
                self.observer.flushed(records, bytes, took);
                Ok(Progress::Worked)
            }
        }
    }

    fn signal(&self) -> &Signal {
        self.store.log.flush_signal()
    }
}
