//! Stage 2: file requests in the wheel. The sole writer of both rings and both TimerLogs.

use std::sync::Arc;

use timerlog::{FileError, Filing, Refile, TimerError, TimerWheel};

use super::{Requests, Shared};
use crate::clock::Now;
use crate::commitlog::Outcome;
use crate::message::offset::Offset;
use crate::stage::{Pipe, Progress, Signal, Stage, StageError};
use crate::store::Store;
use crate::sync::Ordering;

/// Entries of a far slot looked at in one step: filing goes on in between.
const REFILE_BUDGET: usize = 8192;

#[derive(Debug)]
pub(super) struct EnqueuePut {
    store: Arc<Store>,
    shared: Arc<Shared>,
    input: Pipe<Requests>,
    /// Found no room on the disk, and is filed before anything else.
    held: Option<Requests>,
}

impl EnqueuePut {
    pub(super) fn new(store: Arc<Store>, shared: Arc<Shared>, input: Pipe<Requests>) -> Self {
        Self { store, shared, input, held: None }
    }

    fn file(&self, wheel: &mut TimerWheel, requests: &Requests) -> Result<(), TimerError> {
        match wheel.file(&requests.filings) {
            Ok(()) => {}
            // One absurd deadline must not keep the others from being filed.
            Err(FileError::BeyondRange { .. }) => self.file_one_by_one(wheel, &requests.filings)?,
            Err(FileError::Timer(error)) => return Err(error),
        }
        wheel.set_mark(requests.upto);
        self.shared.filed_upto.raise(requests.upto);
        self.shared.filed.fetch_add(requests.filings.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn file_one_by_one(
        &self,
        wheel: &mut TimerWheel,
        filings: &[Filing],
    ) -> Result<(), TimerError> {
        for filing in filings {
            match wheel.file(std::slice::from_ref(filing)) {
                Ok(()) => {}
                Err(error @ FileError::BeyondRange { .. }) => {
                    let offset = filing.entry.offset;
                    tracing::error!(offset, %error, "a message is due after the end of the wheel");
                }
                Err(FileError::Timer(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Moves on with the far slot that is due, if one is.
    fn refile(&self, wheel: &mut TimerWheel) -> Result<Refile, TimerError> {
        let settled = self.store.log().settled();
        wheel.refile(REFILE_BUDGET, &mut |entry| {
            // Whatever cannot be looked up is filed: the wheel may hold too much, never too little.
            matches!(settled.get(Offset::new(entry.offset)), Ok(Some(Outcome::Delivered)))
        })
    }
}

impl Stage for EnqueuePut {
    fn name(&self) -> &'static str {
        "enqueue_put"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        let failed = |error: TimerError| self.shared.failed("enqueue_put", &error);
        let mut wheel = self.shared.wheel.lock();
        let today = wheel.slot_of(now.wall.as_millis());
        if today < wheel.read_time() {
            // What joined the open slot stays there, though the slot lies ahead again.
            self.shared.opened.fetch_max(wheel.read_time(), Ordering::Relaxed);
            wheel.step_back(today);
        }
        let boundary = wheel.far_boundary();
        let refiled = match self.refile(&mut wheel) {
            Err(error) if error.wants_room() => return Ok(self.store.room().wait(now.wall)),
            refiled => refiled.map_err(failed)?,
        };
        // It also moves over far slots that are empty, and somebody may wait at it.
        let moved = wheel.far_boundary() != boundary;
        let requests = self.held.take().or_else(|| self.input.pop());
        if let Some(taken) = &requests {
            match self.file(&mut wheel, taken) {
                Err(error) if error.wants_room() => {
                    self.held = requests;
                    return Ok(self.store.room().wait(now.wall));
                }
                filed => filed.map_err(failed)?,
            }
        }
        drop(wheel);
        if requests.is_none() && refiled == Refile::NotDue && !moved {
            return Ok(Progress::Idle);
        }
        self.shared.dequeue_get.raise();
        if moved {
            self.shared.dequeue_check.raise();
        }
        Ok(Progress::Worked)
    }

    fn signal(&self) -> &Signal {
        &self.shared.enqueue_put
    }
}
