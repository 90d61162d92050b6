//! Horolog as one value: what every door (HTTP now, others later) calls.
//!
//! Each call answers when what it decided is durable. Decisions are made by
//! [`producer`](crate::producer) and [`consumer`](crate::consumer); this room gives them the time,
//! waits for the disk, and runs the stages on threads.

mod answers;
mod check_calls;
mod dead_letters;
mod decide;
mod groups;
mod messages;
mod observers;
mod receive;
mod scheduled;
mod threads;
mod timers;
mod topics;
mod transactions;

pub use crate::producer::MAX_BULK_CANCEL;
pub use answers::{
    Accepted, AckOutcome, ChangeError, DeadLetterPage, DeadLetterView, DeadLettersError,
    ExtendError, Extended, GroupError, GroupView, LookupError, MessageView, OpenError, PutError,
    Puts, Readiness, ReceiveError, ReceiveRequest, Received, ResetOffsetsError, SearchError,
    SearchPage, ServiceConfig, SetAside, TimerAccepted, TimerError, TopicError, TopicProgress,
    TopicView, Unavailable, WithBody,
};
pub use check_calls::{CheckCall, MAX_CALLED_HOSTS, MAX_CALLS_OF_HOST};
pub use scheduled::{
    BulkCancelled, MAX_BUCKETS, ScheduledError, ScheduledPage, ScheduledQuery, TimelineRequest,
};
pub use threads::ServiceHandle;
pub use transactions::{
    CheckView, Ended, Prepared, TransactionError, TransactionQuery, TransactionState,
    TransactionView, TransactionsPage,
};

use std::sync::Arc;
use std::time::Duration;

use timerlog::disk::Directory;
use tokio::sync::Semaphore;

use self::threads::Failure;
use crate::clock::Clock;
use crate::commitlog::{Durability, Receipt};
use crate::config::{QueuedAppends, TopicCreation};
use crate::consumer;
use crate::engine::Engine;
use crate::message::GroupName;
use crate::metrics::{Held, LogFile, Metrics};
use crate::producer::PutSettings;
use crate::space::{Marks, Pressure};
use crate::sync::{AtomicBool, Ordering};

/// A flush that takes longer makes whoever looks at the server's readiness be told.
const SLOW_FLUSH: Duration = Duration::from_secs(5);

/// Cheap to clone; all clones are the same service.
#[derive(Clone, Debug)]
pub struct Service(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Engine,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    put: PutSettings,
    /// How many queues a topic has that is made without saying.
    default_queues: u16,
    draining: AtomicBool,
    failure: Arc<Failure>,
    /// One permit for each walk over what is pending.
    walks: Arc<Semaphore>,
}

impl Service {
    /// Opens the data directory and starts the threads. Blocks until everything is recovered. `random`
    /// is 32 bytes from the operating system.
    ///
    /// # Errors
    ///
    /// [`OpenError`] names the file that cannot be used, and why.
    pub fn open(
        config: &ServiceConfig,
        directory: &Arc<dyn Directory>,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
        random: &[u8; 32],
    ) -> Result<(Self, ServiceHandle), OpenError> {
        let started = threads::start(config, directory, &clock, &metrics, random)?;
        let queues = match config.topics {
            TopicCreation::Automatic => Some(config.queues_per_topic),
            TopicCreation::Explicit => None,
        };
        let inner = Arc::new(Inner {
            engine: started.engine,
            clock,
            metrics,
            put: PutSettings { queues_of_new_topic: queues },
            default_queues: config.queues_per_topic,
            draining: AtomicBool::new(false),
            failure: started.failure,
            walks: Arc::new(Semaphore::new(scheduled::WALKS)),
        });
        let service = Self(inner);
        let handle = ServiceHandle::new(service.clone(), started.running);
        Ok((service, handle))
    }

    /// Acknowledges messages; one outcome a handle, in order.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]; nothing was acknowledged, unless it says that what became of it is unknown.
    pub async fn ack(
        &self,
        group: &GroupName,
        handles: &[String],
    ) -> Result<Vec<AckOutcome>, Unavailable> {
        self.check_ready()?;
        let Inner { engine, clock, .. } = &*self.0;
        let Some(group) = engine.store.group(group) else {
            return Ok(vec![AckOutcome::InvalidReceiptHandle; handles.len()]);
        };
        let acked = engine.consumers.ack(&group, handles, clock.now());
        let (outcomes, receipt) = acked.map_err(|consumer::AckError::Append(error)| error)?;
        self.durable(&receipt).await?;
        Ok(outcomes)
    }

    /// Gives messages back, to come again after `delay_ms` or by the group's backoff; one outcome a handle,
    /// in order.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]; nothing was given back, unless it says that what became of it is unknown.
    pub async fn nack(
        &self,
        group: &GroupName,
        handles: Vec<String>,
        delay_ms: Option<u64>,
    ) -> Result<Vec<AckOutcome>, Unavailable> {
        self.check_ready()?;
        let Some(group) = self.0.engine.store.group(group) else {
            return Ok(vec![AckOutcome::InvalidReceiptHandle; handles.len()]);
        };
        let service = self.clone();
        // Where a message first stood may be read from the disk.
        let nacked = blocking(move || {
            let Inner { engine, clock, .. } = &*service.0;
            let delay = delay_ms.map(Duration::from_millis);
            engine.consumers.nack(&group, &handles, delay, clock.now())
        });
        let (outcomes, receipt) = nacked.await??;
        self.durable(&receipt).await?;
        Ok(outcomes)
    }

    /// Makes a lease last `invisible_for_ms` from now.
    ///
    /// # Errors
    ///
    /// [`ExtendError::InvalidReceiptHandle`] when the handle is not, or no longer, good.
    pub async fn extend(
        &self,
        group: &GroupName,
        handle: &str,
        invisible_for_ms: u64,
    ) -> Result<Extended, ExtendError> {
        self.check_ready()?;
        let Inner { engine, clock, .. } = &*self.0;
        let group = engine.store.group(group).ok_or(ExtendError::InvalidReceiptHandle)?;
        let invisible_for = Duration::from_millis(invisible_for_ms);
        engine
            .consumers
            .extend(&group, handle, invisible_for, clock.now())
            .ok_or(ExtendError::InvalidReceiptHandle)
    }

    /// Whether the server does what it promises right now.
    pub fn readiness(&self) -> Readiness {
        let reason = if let Some(reason) = self.0.failure.reason() {
            reason
        } else if self.is_draining() {
            "the server is stopping".to_owned()
        } else if self.0.engine.timer.is_held() {
            "the wall clock jumped forward: firing is held until an operator had time to look"
                .into()
        } else {
            return self.degraded().unwrap_or(Readiness::Ready);
        };
        Readiness::NotReady { reason }
    }

    /// What of the log is set aside since it is damaged: how many stretches, and of each that the log still has the
    /// file, where in it, and what is wrong.
    pub fn quarantined(&self) -> (u64, Vec<SetAside>) {
        let store = &self.0.engine.store;
        let quarantined = store.quarantined();
        let listed = quarantined.iter().map(|one| {
            let (file, at) = store.place_in_file(one.from);
            SetAside { file, at, length: one.length, reason: one.reason }
        });
        (quarantined.count, listed.collect())
    }

    /// What keeps the server from taking all that it is asked for, if anything does.
    fn degraded(&self) -> Option<Readiness> {
        let Inner { engine, clock, .. } = &*self.0;
        let flush = engine.store.flushing_for(clock.now().monotonic);
        if flush >= SLOW_FLUSH {
            let reason = format!("the disk has been flushing for {} s", flush.as_secs());
            return Some(Readiness::Degraded { part: "disk", reason });
        }
        let what = match engine.space.pressure() {
            Pressure::None => return None,
            Pressure::NewWorkRefused => "nearly full: new messages are refused",
            Pressure::BallastGivenUp => {
                "full: new messages are refused, and what was accepted lives off the ballast"
            }
        };
        let reason = format!("the disk is {what} ({} bytes are free)", engine.space.free());
        Some(Readiness::Degraded { part: "disk", reason })
    }

    /// At which free space of the disk new work is refused, and the ballast given up.
    pub fn disk_marks(&self) -> Marks {
        self.0.engine.space.marks()
    }

    /// Messages that wait for their moment.
    pub fn pending(&self) -> u64 {
        self.0.engine.store.pending()
    }

    /// Brings those figures up to date that are only looked at when somebody asks.
    pub fn refresh_metrics(&self) {
        let Inner { engine, metrics, .. } = &*self.0;
        metrics.set_pending(engine.store.pending());
        let at_bound = engine.consumers.queues_at_bound();
        metrics.set_queues_at_bound(at_bound.out, at_bound.parked);
        metrics.set_held(Held::Leases, engine.consumers.kept());
        let QueuedAppends { records, bytes } = engine.store.log().waiting();
        metrics.set_held(Held::QueuedAppends, usize::try_from(records).unwrap_or(usize::MAX));
        metrics.set_held(Held::QueuedAppendBytes, usize::try_from(bytes).unwrap_or(usize::MAX));
        metrics.written_in_all(LogFile::ConsumeQueue, engine.store.queue_bytes_written());
        metrics.written_in_all(LogFile::TimerLog, engine.timer.log_bytes_written());
        metrics.quarantined_in_all(engine.store.quarantined().count);
        metrics.set_disk(engine.space.free(), engine.space.pressure() as u8);
        let settled = engine.store.log().settled();
        metrics.written_in_all(LogFile::Snapshot, settled.bytes_written());
    }

    /// Makes waiting receives answer with nothing and refuses new messages.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Release);
        self.0.engine.consumers.polls().drain();
        self.0.engine.check_polls.drain();
        self.0.engine.check_calls.notify_one();
    }

    /// Whether the server is about to stop.
    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Acquire)
    }

    /// New work is refused while draining; changes to what is there are not.
    fn check_open(&self) -> Result<(), Unavailable> {
        if self.is_draining() {
            return Err(Unavailable::NotReady { reason: "the server is stopping".to_owned() });
        }
        self.check_ready()
    }

    fn check_ready(&self) -> Result<(), Unavailable> {
        match self.0.failure.reason() {
            Some(reason) => Err(Unavailable::Failed { reason }),
            None => Ok(()),
        }
    }

    async fn durable(&self, receipt: &Receipt) -> Result<(), Unavailable> {
        match receipt.wait().await {
            Durability::Durable => Ok(()),
            Durability::Failed => Err(Unavailable::Failed {
                reason: self.0.failure.reason().unwrap_or_else(|| "the disk failed".to_owned()),
            }),
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unavailable> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Unavailable::NotReady { reason: "the server is stopping".to_owned() })
}
