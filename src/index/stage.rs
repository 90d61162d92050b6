//! The work behind the index as a stage: runs are written and merged.

use std::sync::Arc;

use super::Index;
use crate::clock::Now;
use crate::stage::{Progress, Signal, Stage, StageError};

/// After how long a full disk is tried again, in milliseconds.
const FULL_DISK_RETRY_MS: u64 = 1000;

/// Steps an [`Index`].
///
/// A full disk ends nothing: the producers are refused ([`Index::has_room`]) until there is room. Nor
/// does a run that cannot be read, which is logged. Any other failure ends the server.
#[derive(Debug)]
pub struct IndexStage {
    index: Arc<Index>,
}

impl IndexStage {
    pub fn new(index: Arc<Index>) -> Self {
        Self { index }
    }
}

impl Stage for IndexStage {
    fn name(&self) -> &'static str {
        "index"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        match self.index.step() {
            Ok(true) => Ok(Progress::Worked),
            Ok(false) => Ok(Progress::Idle),
            Err(error) if error.is_full() => {
                let retry = now.wall.checked_add(FULL_DISK_RETRY_MS);
                Ok(retry.map_or(Progress::Idle, Progress::IdleUntil))
            }
            Err(error) if !error.is_fatal() => {
                tracing::error!(%error, "the next start builds the index anew");
                Ok(Progress::Worked)
            }
            Err(error) => Err(StageError::new(self.name(), error)),
        }
    }

    fn signal(&self) -> &Signal {
        self.index.signal()
    }
}
