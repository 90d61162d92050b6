//! The engine: store, timer and consumers as one value, with no thread, no clock and no network.
//!
//! [`Service`](crate::service::Service) runs its stages on threads; the simulator steps the very same
//! stages in an order that a seed decides.

use std::sync::Arc;
use std::time::Duration;

use timerlog::disk::Directory;

use crate::clock::{Clock, Now};
use crate::commitlog::Damage;
use crate::config::{DiskReserve, LeaseBounds};
use crate::consumer::long_poll::LongPolls;
use crate::consumer::{Consumers, ExpiryStage};
use crate::delay;
use crate::index::IndexStage;
use crate::message::LevelTable;
use crate::retention::{RetentionObserver, RetentionStage};
use crate::space::{Marks, SpaceStage, Watch};
use crate::stage::{Stage, Stages};
use crate::store::checkpoint::{CheckpointStage, Checkpointed, Participant};
use crate::store::dispatch::DispatchStage;
use crate::store::flush::{FlushObserver, FlushStage};
use crate::store::{self, MakeError, Store, StoreError};
use crate::sync::{AtomicU64, Notify, Ordering};
use crate::timer;
use crate::transaction::{Asked, Checks};

/// How the engine works.
#[derive(Clone, Debug)]
pub struct Settings {
    pub store: store::Settings,
    pub timer: timer::Settings,
    /// What the delay levels delay by.
    pub levels: LevelTable,
    pub leases: LeaseBounds,
    /// What of the disk is kept free for what was accepted.
    pub disk_reserve: DiskReserve,
    pub checkpoint_interval: Duration,
    /// Random, and another at each start: message ids hold numbers drawn from it.
    pub seed: u64,
}

/// Why the data directory was not opened. Nothing that is the truth was overwritten.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error(transparent)]
    Timer(#[from] timer::OpenError),
    #[error("the delay levels need a new queue: {0}")]
    Levels(#[from] MakeError),
    #[error(transparent)]
    Disk(#[from] timerlog::disk::DiskError),
}

/// What must be known of an opening.
#[derive(Debug)]
pub struct Opened {
    pub engine: Engine,
    /// All stages, to be stepped by whoever opened the engine.
    pub stages: Stages,
    pub damage: Vec<Damage>,
    /// Why derived files were built again, if they were.
    pub rebuilt: Option<String>,
}

/// What a level releases has fired.
struct Releases(Arc<dyn timer::Observer>);

impl delay::Observer for Releases {
    fn released(&self, count: u64, late_ms: u64) {
        self.0.fired(count, late_ms);
    }
}

/// Store, timer and consumers of one data directory.
#[derive(Debug)]
pub struct Engine {
    pub store: Arc<Store>,
    pub consumers: Arc<Consumers>,
    /// Checks of open transactions, and those who wait for some.
    pub checks: Arc<Checks>,
    pub check_polls: Arc<LongPolls>,
    /// Told when a host is to be asked for a check.
    pub check_calls: Arc<Notify>,
    pub timer: Arc<timer::Shared>,
    /// How full the disk is.
    pub space: Arc<Watch>,
    /// Reads what is pending.
    pub pending: timer::Pending,
    participant: Arc<timer::TimerParticipant>,
    seed: u64,
    nonces: AtomicU64,
}

impl Engine {
    /// Opens the data directory `root`. The clock is asked only how long the disk takes.
    ///
    /// # Errors
    ///
    /// [`OpenError`], by file name and reason.
    pub fn open(
        root: &Arc<dyn Directory>,
        settings: &Settings,
        clock: Arc<dyn Clock>,
        flushes: Box<dyn FlushObserver>,
        timers: Arc<dyn timer::Observer>,
        retained: Box<dyn RetentionObserver>,
        now: Now,
    ) -> Result<Opened, OpenError> {
        let opened = Store::open(Arc::clone(root), &settings.store, now)?;
        let store = opened.store;
        let directory = root.subdirectory("timerlog")?;
        root.sync()?;
        let checkpoint = opened.timer.as_deref();
        let releases = Box::new(Releases(Arc::clone(&timers)));
        let check_polls = Arc::new(LongPolls::default());
        let woken = Arc::clone(&check_polls);
        let check_calls = Arc::new(Notify::new());
        let call = Arc::clone(&check_calls);
        let wake = move |asked: &Asked| match asked {
            Asked::Group(group) => {
                let (high, low) = row_of(group);
                woken.wake(high, low, 1);
            }
            Asked::Host(_) => call.notify_one(),
        };
        let checks = Arc::new(Checks::new(Arc::clone(&store), Box::new(wake)));
        let due = Arc::clone(&checks) as Arc<dyn timer::DueChecks>;
        let timer = timer::open(&store, &directory, settings.timer, checkpoint, timers, due, now)?;
        let timer::Settings { clock_jump_ms, clock_hold_ms, .. } = settings.timer;
        let delay = delay::Settings { clock_jump_ms, clock_hold_ms };
        let levels = delay::open(&store, &settings.levels, delay, releases, now.wall)?;
        let consumers = Arc::new(Consumers::new(Arc::clone(&store), settings.leases));

        let total = store.room().space()?.total;
        let marks = Marks::of(settings.disk_reserve, total, store.log().segment_size());
        let space = Arc::new(Watch::new(marks));

        let mut stages: Vec<Box<dyn Stage>> = vec![
            Box::new(FlushStage::new(Arc::clone(&store), clock, flushes)),
            Box::new(DispatchStage::new(Arc::clone(&store))),
        ];
        stages.extend(timer.stages.0);
        stages.push(levels);
        stages.push(Box::new(IndexStage::new(Arc::clone(store.index()))));
        stages.push(Box::new(ExpiryStage::new(Arc::clone(&consumers))));
        stages.push(Box::new(RetentionStage::new(
            Arc::clone(&store),
            Arc::clone(&consumers),
            Arc::clone(&timer.shared),
            settings.store.retention_ms,
            retained,
        )));
        stages.push(Box::new(SpaceStage::new(Arc::clone(&store), Arc::clone(&space))));
        stages.push(Box::new(CheckpointStage::new(
            Arc::clone(&store),
            Arc::clone(&timer.participant) as Arc<dyn Participant>,
            settings.checkpoint_interval,
        )));
        let pending = timer::Pending::new(Arc::clone(&store), Arc::clone(&timer.shared));
        let engine = Self {
            store,
            consumers,
            checks,
            check_polls,
            check_calls,
            timer: timer.shared,
            space,
            pending,
            participant: timer.participant,
            seed: settings.seed,
            nonces: AtomicU64::new(0),
        };
        let rebuilt = opened.rebuilt.or(timer.rebuilt);
        let stages = Stages(stages);
        Ok(Opened { engine, stages, damage: opened.damage, rebuilt })
    }

    /// The row in which those wait who ask for the checks of this producer group.
    pub fn check_row(group: &str) -> (u32, u32) {
        row_of(group)
    }

    /// The next number for a message's id.
    pub fn nonce(&self) -> u64 {
        let count = self.nonces.fetch_add(1, Ordering::Relaxed);
        xxhash_rust::xxh3::xxh3_64_with_seed(&count.to_le_bytes(), self.seed)
    }

    /// Writes a checkpoint, with a snapshot of the wheel: the next start has nothing to replay. To be
    /// called when the stages rest; a far slot that is being re-filed may still say
    /// [`Checkpointed::NotNow`].
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn rest(&self, now: Now) -> Result<Checkpointed, StoreError> {
        self.participant.want_snapshot();
        self.store.checkpoint(&*self.participant, now)
    }
}

/// Rows go by two numbers, and producer groups have none: 64 bits of a hash. Two groups of one hash would wake
/// each other for nothing.
fn row_of(group: &str) -> (u32, u32) {
    let hash = xxhash_rust::xxh3::xxh3_64(group.as_bytes()).to_le_bytes();
    let half = |at| crate::message::record::read_u32(&hash, at);
    (half(0), half(4))
}
