//! Dispatch: the fold, live.
//!
//! ```text
//!   log below *visible* ── group by group ──> units (ConsumeQueues), acks (progress), counts
//!                                                  └─> arrivals: long polls, the timer's first stage
//! ```

use std::sync::Arc;

use super::{Belongs, Holds, Store, StoreError};
use crate::clock::Now;
use crate::commitlog::{ScanFrom, records};
use crate::stage::{Progress, Signal, Stage, StageError};

impl Store {
    /// Folds the next group, if there is one below the visible watermark. `false` when there is none.
    pub(super) fn dispatch(&self) -> Result<bool, StoreError> {
        let mut dispatcher = self.dispatcher.lock();
        if dispatcher.at.offset >= self.log.visible() {
            return Ok(false);
        }
        let mut bytes = std::mem::take(&mut dispatcher.bytes);
        let reader = self.log.reader();
        let header = reader.group(dispatcher.at.offset, &mut bytes)?;
        for record in records(&header, &bytes, reader.secrets()) {
            self.fold.fold(&mut dispatcher, &record?)?;
        }
        dispatcher.bytes = bytes;
        let arrived = self.fold.write_batch(&mut dispatcher)?;
        dispatcher.at = ScanFrom {
            offset: header.end(),
            next_number: header.number + 1,
            previous_hash: header.hash(reader.secrets().group),
            incarnation: header.incarnation,
        };
        self.fold.publish(&dispatcher);
        self.note_boundary(&dispatcher);
        drop(dispatcher);
        for (topic_id, count) in arrived {
            match self.fold.topics.by_id(topic_id).and_then(|topic| topic.belongs) {
                None => self.arrivals.announce(topic_id, count),
                Some(Belongs { holds: Holds::Retries, group_id, topic_id }) => {
                    self.arrivals.announce_again(group_id, topic_id, count);
                }
                // Nobody waits for dead letters.
                Some(Belongs { holds: Holds::DeadLetters, .. }) => {}
            }
        }
        Ok(true)
    }
}

/// Dispatch as a stage.
#[derive(Debug)]
pub struct DispatchStage {
    store: Arc<Store>,
}

impl DispatchStage {
    pub fn new(store: Arc<Store>) -> Self {
        Self { store }
    }
}

impl Stage for DispatchStage {
    fn name(&self) -> &'static str {
        "dispatch"
    }

    fn step(&mut self, _now: Now) -> Result<Progress, StageError> {
        match self.store.dispatch() {
            Ok(true) => Ok(Progress::Worked),
            Ok(false) => Ok(Progress::Idle),
            Err(error) => Err(StageError::new(self.name(), error)),
        }
    }

    fn signal(&self) -> &Signal {
        &self.store.dispatch_signal
    }
}
