//! Everything that is derived from the log, made anew while no server runs, so that the next start finds it.
//!
//! ```text
//!   log ──recovery──> queues, settled bits, index ──> timer topic ──enqueue get, put──> wheel ──> a checkpoint
//! ```
//!
//! Only the stages that bring the wheel up to date step: nothing fires, nothing expires, nothing is let go.

use std::sync::Arc;

use timerlog::disk::Directory;

use crate::clock::{Clock, Now};
use crate::message::offset::Offset;
use crate::stage::{Progress as Step, Stage, StageError, Stages};
use crate::store::checkpoint::Checkpointed;
use crate::store::dispatch::DispatchStage;
use crate::store::flush::{FlushObserver, FlushStage};
use crate::store::{self, Derived, Store, StoreError, TIMER_TOPIC_ID};
use crate::timer::{self, CheckOutcome, ClockStep, DueChecks};

/// The stages of the timer that file.
const FILING: [&str; 2] = ["enqueue_get", "enqueue_put"];
/// A far slot that is being re-filed puts a checkpoint off; it is asked for again after so many rounds at the most.
const ROUNDS_MAX: usize = 1_000_000;

/// Why it could not be done. What was derived before may be gone then; a start makes it anew.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error(transparent)]
    Timer(#[from] timer::OpenError),
    #[error(transparent)]
    Disk(#[from] timerlog::disk::DiskError),
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error(transparent)]
    Checkpoint(#[from] StoreError),
    #[error("the wheel does not come to rest")]
    Restless,
}

/// What was made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    pub log_begin: Offset,
    pub log_end: Offset,
    /// Messages that wait for their moment.
    pub pending: u64,
    /// Damaged stretches of the log that are set aside.
    pub quarantined: u64,
}

#[derive(Debug)]
struct Quiet;

impl FlushObserver for Quiet {
    fn flushed(&self, _records: u64, _bytes: u64, _took: std::time::Duration) {}
}

impl timer::Observer for Quiet {
    fn fired(&self, _count: u64, _late_ms: u64) {}
    fn clock_stepped(&self, _step: ClockStep) {}
}

impl DueChecks for Quiet {
    fn due(
        &self,
        _cause: Offset,
        _length: u32,
        _now: crate::clock::Timestamp,
    ) -> Result<CheckOutcome, StageError> {
        Ok(CheckOutcome::Busy)
    }
}

/// Makes anew what is derived from the log in `root`. `filing` is told how much of the timer topic is filed, and how
/// much there is; how far the log is read, `settings` tell.
///
/// # Errors
///
/// [`RebuildError`].
pub fn rebuild(
    root: &Arc<dyn Directory>,
    mut settings: store::Settings,
    timer: timer::Settings,
    clock: &Arc<dyn Clock>,
    filing: &dyn Fn(u64, u64),
) -> Result<Rebuilt, RebuildError> {
    settings.derived = Derived::Anew;
    let now = clock.now();
    let store = Store::open(Arc::clone(root), &settings, now)?.store;
    let directory = root.subdirectory("timerlog")?;
    root.sync()?;
    let (observer, checks) = (Arc::new(Quiet), Arc::new(Quiet));
    let opened = timer::open(&store, &directory, timer, None, observer, checks, now)?;
    let mut stages: Vec<Box<dyn Stage>> = vec![
        Box::new(FlushStage::new(Arc::clone(&store), Arc::clone(clock), Box::new(Quiet))),
        Box::new(DispatchStage::new(Arc::clone(&store))),
    ];
    let Stages(of_timer) = opened.stages;
    stages.extend(of_timer.into_iter().filter(|stage| FILING.contains(&stage.name())));
    stages.push(Box::new(crate::index::IndexStage::new(Arc::clone(store.index()))));
    let units = || store.topic_by_id(TIMER_TOPIC_ID).map_or(0, |it| it.queues[0].units.committed());
    for _ in 0..ROUNDS_MAX {
        while step_all(&mut stages, clock.now())? {
            filing(opened.shared.filed_upto(), units());
        }
        opened.participant.want_snapshot();
        match store.checkpoint(&*opened.participant, clock.now())? {
            Checkpointed::NotNow => {}
            Checkpointed::Written | Checkpointed::Unchanged => {
                return Ok(Rebuilt {
                    log_begin: store.log().begin(),
                    log_end: store.log().end(),
                    pending: store.pending(),
                    quarantined: store.quarantined().count,
                });
            }
        }
    }
    Err(RebuildError::Restless)
}

/// Whether any had something to do.
fn step_all(stages: &mut [Box<dyn Stage>], now: Now) -> Result<bool, StageError> {
    let mut worked = false;
    for stage in stages {
        worked |= stage.step(now)? == Step::Worked;
    }
    Ok(worked)
}
