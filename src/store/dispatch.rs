//! Dispatch: the fold, live.
//!
//! ```text
//!   log below *visible* ── group by group ──> units (ConsumeQueues), acks (progress), counts
//!                                                  └─> arrivals: long polls, the timer's first stage
//! ```

use std::sync::Arc;

use super::fold::Dispatcher;
use super::{Belongs, Holds, Store, StoreError};
use crate::clock::Now;
use crate::commitlog::{ScanFrom, records};
use crate::stage::{Progress, Signal, Stage, StageError};

/// What a call of [`Store::dispatch`] came to.
enum Dispatched {
    /// A group is folded, and its units are written.
    Group,
    /// There is none below the visible watermark.
    Nothing,
    /// A group is folded, and some of its units wait for room on the disk.
    NoRoom,
}

impl Store {
    /// Folds the next group, if there is one below the visible watermark.
    fn dispatch(&self) -> Result<Dispatched, StoreError> {
        let mut dispatcher = self.dispatcher.lock();
        let folded_to = match dispatcher.folded_to {
            // Its units found no room.
            Some(folded_to) => folded_to,
            None if dispatcher.at.offset >= self.log.visible() => return Ok(Dispatched::Nothing),
            None => self.fold_group(&mut dispatcher)?,
        };
        dispatcher.folded_to = Some(folded_to);
        let arrived = match self.fold.write_batch(&mut dispatcher) {
            Err(error) if error.wants_room() => return Ok(Dispatched::NoRoom),
            written => written?,
        };
        dispatcher.folded_to = None;
        dispatcher.at = folded_to;
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
        Ok(Dispatched::Group)
    }

    /// Folds the group at hand and answers where the next one begins. Its units wait in the batch.
    fn fold_group(&self, dispatcher: &mut Dispatcher) -> Result<ScanFrom, StoreError> {
        let mut bytes = std::mem::take(&mut dispatcher.bytes);
        let reader = self.log.reader();
        let header = reader.group(dispatcher.at.offset, &mut bytes)?;
        for record in records(&header, &bytes, reader.secrets()) {
            self.fold.fold(dispatcher, &record?)?;
        }
        dispatcher.bytes = bytes;
        Ok(ScanFrom {
            offset: header.end(),
            next_number: header.number + 1,
            previous_hash: header.hash(reader.secrets().group),
            incarnation: header.incarnation,
        })
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

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        match self.store.dispatch() {
            Ok(Dispatched::Group) => Ok(Progress::Worked),
            Ok(Dispatched::Nothing) => Ok(Progress::Idle),
            Ok(Dispatched::NoRoom) => Ok(self.store.room().wait(now.wall)),
            Err(error) => Err(StageError::new(self.name(), error)),
        }
    }

    fn signal(&self) -> &Signal {
        &self.store.dispatch_signal
    }
}
