//! Opening the timer: the wheel as a checkpoint says it was, or an empty one that is filled again.

use std::sync::Arc;

use timerlog::disk::{Directory, DiskError};
use timerlog::{Checked, Damage, DamageKind, Origin, TimerCheckpoint, TimerError, TimerWheel};

use super::dequeue_check::{DequeueCheck, DueChecks};
use super::dequeue_get::DequeueGet;
use super::dequeue_message::DequeueMessage;
use super::dequeue_put::DequeuePut;
use super::enqueue_get::EnqueueGet;
use super::enqueue_put::EnqueuePut;
use super::participant::{self, TimerParticipant};
use super::{CONDEMNED, Observer, Settings, Shared};
use crate::clock::{Now, Timestamp};
use crate::clock_watch::ClockWatch;
use crate::stage::{Pipe, Signal, Stage, Stages, Watermark};
use crate::store::{Store, TIMER_TOPIC_ID};
use crate::sync::{AtomicBool, AtomicU64, Mutex};

/// Values that a pipe holds at most: batches of 1024 requests, walked slots, runs of one queue.
const REQUEST_BATCHES: usize = 16;
const WALKED_SLOTS: usize = 8;
const RUNS: usize = 1024;
const CHECKS: usize = 8;

/// Why the timer cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Timer(#[from] TimerError),
}

/// The timer, ready to run.
#[derive(Debug)]
pub struct Opened {
    pub shared: Arc<Shared>,
    pub participant: Arc<TimerParticipant>,
    /// The stages, in the order of the walk.
    pub stages: Stages,
    /// Why the wheel is filled again from the timer topic, if it is.
    pub rebuilt: Option<String>,
}

/// Opens the timer of `store` in `directory`. `checkpoint` is its part of the checkpoint; without one
/// the wheel begins empty, and the timer topic is filed again from its first unit.
/// `checks` is told of every check that is due.
///
/// # Errors
///
/// When the disk fails.
pub fn open(
    store: &Arc<Store>,
    directory: &Arc<dyn Directory>,
    settings: Settings,
    checkpoint: Option<&[u8]>,
    observer: Arc<dyn Observer>,
    checks: Arc<dyn DueChecks>,
    now: Now,
) -> Result<Opened, OpenError> {
    let (wheel, opened_upto, rebuilt) = open_wheel(directory, settings, checkpoint, store, now)?;
    let mark = wheel.checkpoint().mark;
    let enqueue_get = Signal::default();
    let dequeue_message = Signal::default();
    let dequeue_put = Signal::default();
    let shared = Arc::new(Shared {
        wheel: Mutex::new(wheel),
        directory: Arc::clone(directory),
        in_flight: AtomicU64::new(0),
        filed: AtomicU64::new(0),
        filed_upto: Watermark::new(mark),
        opened: AtomicU64::new(opened_upto),
        held: AtomicBool::new(false),
        enqueue_put: Signal::default(),
        dequeue_get: Signal::default(),
        dequeue_check: Signal::default(),
    });
    let requests = Pipe::new(REQUEST_BATCHES, enqueue_get.clone(), shared.enqueue_put.clone());
    let walked = Pipe::new(WALKED_SLOTS, shared.dequeue_get.clone(), dequeue_message.clone());
    let runs = Pipe::new(RUNS, dequeue_message.clone(), dequeue_put.clone());
    let due_checks = Pipe::new(CHECKS, dequeue_message.clone(), shared.dequeue_check.clone());
    let topic = store.topic_by_id(TIMER_TOPIC_ID).expect("the store makes the timer topic itself");
    let there = topic.queues[0].units.committed();

    let watch = ClockWatch::new(settings.clock_jump_ms, settings.clock_hold_ms);
    let (store, shared_with) = (|| Arc::clone(store), || Arc::clone(&shared));
    let stages: Vec<Box<dyn Stage>> = vec![
        Box::new(EnqueueGet::new(store(), topic, mark, requests.clone(), enqueue_get)),
        Box::new(EnqueuePut::new(store(), shared_with(), requests)),
        Box::new(DequeueGet::new(shared_with(), walked.clone(), settings.lookahead_ms, there)),
        Box::new(DequeueMessage::new(
            store(),
            shared_with(),
            walked,
            runs.clone(),
            due_checks.clone(),
            dequeue_message,
        )),
        Box::new(DequeuePut::new(store(), shared_with(), runs, watch, observer, dequeue_put)),
        Box::new(DequeueCheck::new(shared_with(), due_checks, checks)),
    ];
    let participant =
        Arc::new(TimerParticipant::new(store(), shared_with(), settings.snapshot_after_bytes));
    Ok(Opened { shared, participant, stages: Stages(stages), rebuilt })
}

fn open_wheel(
    directory: &Arc<dyn Directory>,
    settings: Settings,
    checkpoint: Option<&[u8]>,
    store: &Store,
    now: Now,
) -> Result<(TimerWheel, u64, Option<String>), OpenError> {
    let mut reason = None;
    let condemned = directory.list()?.iter().any(|name| name == CONDEMNED);
    if condemned {
        reason = Some(format!("{} was found damaged while running", directory.path()));
    } else if let Some(bytes) = checkpoint {
        match existing(directory, settings, bytes) {
            Ok((wheel, opened)) => {
                for damage in &wheel.recovery().damaged {
                    tracing::warn!(%damage, "a snapshot of the wheel is damaged and was removed");
                }
                return Ok((wheel, opened, None));
            }
            Err(TimerError::Disk(error)) => return Err(error.into()),
            Err(TimerError::NeedsRebuild(damage)) => reason = Some(damage.to_string()),
        }
    }
    if let Some(reason) = &reason {
        tracing::warn!(reason, "the wheel is filled again from the timer topic");
    }
    // What came due while the server was down has a slot of its own each second, as it would have had.
    let read_time = now.wall.min(match store.latest_time() {
        never if never == Timestamp::default() => now.wall,
        latest => latest,
    });
    let read_time = read_time.as_millis() / u64::from(settings.wheel.precision_ms);
    let origin = Origin { read_time, lineage: store.incarnation() };
    let wheel = TimerWheel::create(Arc::clone(directory), settings.wheel, origin)?;
    if condemned {
        directory.remove(CONDEMNED)?;
        directory.sync()?;
    }
    Ok((wheel, 0, reason))
}

/// Reads the files of a wheel with the default measures, as far as a checkpoint speaks of them. Opens nothing.
///
/// # Errors
///
/// The disk's.
pub fn check_files(
    directory: &Arc<dyn Directory>,
    checkpoint: &[u8],
) -> Result<Checked, DiskError> {
    let wheel = Settings::default().wheel;
    let mut checked = match decode(directory, checkpoint) {
        Ok((checkpoint, _)) => timerlog::check(directory, &wheel, &checkpoint)?,
        Err(damage) => Checked { read: 0, damage: vec![damage] },
    };
    if directory.list()?.iter().any(|name| name == CONDEMNED) {
        let file = format!("{}/{CONDEMNED}", directory.path());
        checked.damage.push(Damage { file, offset: None, kind: DamageKind::Condemned });
    }
    Ok(checked)
}

fn decode(directory: &Arc<dyn Directory>, bytes: &[u8]) -> Result<(TimerCheckpoint, u64), Damage> {
    let damage = |kind| Damage { file: directory.path(), offset: None, kind };
    let (bytes, opened) = participant::parts_of(bytes).ok_or_else(|| {
        let (expected, found) = (participant::LENGTH as u64, bytes.len() as u64);
        damage(DamageKind::WrongLength { expected, found })
    })?;
    Ok((TimerCheckpoint::decode(bytes).map_err(damage)?, opened))
}

fn existing(
    directory: &Arc<dyn Directory>,
    settings: Settings,
    bytes: &[u8],
) -> Result<(TimerWheel, u64), TimerError> {
    let (checkpoint, opened) = decode(directory, bytes)?;
    let wheel = TimerWheel::open(Arc::clone(directory), settings.wheel, &checkpoint)?;
    Ok((wheel, opened))
}
