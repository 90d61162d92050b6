//! Opening a data directory: whose it is, how far a checkpoint says it was, and the log from there.
//!
//! ```text
//!   LOCK -> id.key -> checkpoint? ──whole──> queues, settled bits as of T ─┐
//!                        │ none, or anything derived is damaged            ├─> fold the log from T (or 0)
//!                        └──────────> remove what is derived ──────────────┘   to its tail -> Opened record
//! ```
//!
//! A log whose oldest segments were let go begins with the state at its begin, which it holds itself.
//!
//! A directory that is not ours is refused before all that: taking the lock already writes a file.

use std::sync::Arc;

use timerlog::checkpoint::{CheckpointError, read as read_checkpoint};
use timerlog::disk::{Directory, DiskError};

use super::arrivals::Arrivals;
use super::boundary::{Boundaries, Search};
use super::checkpoint::{FORMAT, Written};
use super::flush::NO_FLUSH;
use super::fold::{Dispatcher, Fold, LiveCounts};
use super::groups::{Group, Groups};
use super::identity::{Identity, IdentityError};
use super::keep::Keep;
use super::levels::Levels;
use super::replay::Replay;
use super::room::Room;
use super::state::{Counts, State};
use super::stripes::Stripes;
use super::topics::{LEVEL_TOPIC, LEVEL_TOPIC_ID, SYSTEM_TOPICS, TopicAt, Topics};
use super::{LOCK_NAME, Store, StoreError};
use crate::clock::{Now, Timestamp};
use crate::commitlog::settled::Settled;
use crate::commitlog::{
    AppendError, CommitLog, Damage, FlushMode, RecoverError, ScanFrom, Secrets, read_all, recover,
};
use crate::config::QueuedAppends;
use crate::index::{self, Index};
use crate::message::TopicSettings;
use crate::message::offset::Offset;
use crate::message::record::{DamageReason, Kind, Opened, Quarantine, Record};
use crate::stage::Signal;
use crate::sync::{AtomicU64, Mutex};

/// What is decided when a data directory is opened.
#[derive(Clone, Debug)]
pub struct Settings {
    pub flush: FlushMode,
    /// Of the CommitLog's files, for a directory that is new.
    pub segment_size: u64,
    pub index: index::Limits,
    /// What may wait for the disk before new work is refused.
    pub queued_appends: QueuedAppends,
    /// How long messages wait for their readers on a topic that does not say so itself.
    pub retention_ms: u64,
    /// For a directory that is new.
    pub key: [u8; 32],
    /// What a second process is told: who holds the lock.
    pub holder: String,
    pub derived: Derived,
    pub progress: Progress,
}

/// What becomes of the files that are derived from the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Derived {
    /// They are trusted as far as a checkpoint vouches for them.
    #[default]
    AsCheckpointed,
    /// All are built again from the log, whatever a checkpoint says. The directory must be there.
    Anew,
}

/// Whoever is told how far a start has read the log.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(Offset) + Send + Sync>>);

impl Progress {
    pub fn told_to(whom: impl Fn(Offset) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(whom)))
    }

    fn tell(&self, offset: Offset) {
        if let Some(whom) = &self.0 {
            whom(offset);
        }
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Progress").finish_non_exhaustive()
    }
}

/// Why a data directory was not opened. Nothing in it was overwritten.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("another process has the data directory {path} open: {holder}")]
    Locked { path: String, holder: String },
    #[error("{path} is no data directory: it has no id.key")]
    NotThere { path: String },
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Recover(#[from] RecoverError<StoreError>),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl OpenError {
    pub(super) fn locked(root: &Arc<dyn Directory>, error: DiskError) -> Self {
        if error.is_locked() {
            Self::Locked { path: root.path(), holder: error.cause.to_string() }
        } else {
            error.into()
        }
    }
}

/// An opened store, and what the layers above need to know of the opening.
#[derive(Debug)]
pub struct StoreOpened {
    pub store: Arc<Store>,
    /// The timer's part of the checkpoint; none when everything derived was built again.
    pub timer: Option<Vec<u8>>,
    /// Stretches of the log that could not be read.
    pub damage: Vec<Damage>,
    /// Why the derived files were built again, if they were.
    pub rebuilt: Option<String>,
}

/// The state to start from, with everything derived that it vouches for.
struct Base {
    fold: Fold,
    settled: Settled,
    index: Index,
    dispatcher: Dispatcher,
    begin: Offset,
    durable: Offset,
    timer: Option<Vec<u8>>,
}

impl Store {
    /// Opens the data directory `root`.
    ///
    /// # Errors
    ///
    /// [`OpenError`], by file name and reason.
    pub fn open(
        root: Arc<dyn Directory>,
        settings: &Settings,
        now: Now,
    ) -> Result<StoreOpened, OpenError> {
        Identity::check(&*root)?;
        if settings.derived == Derived::Anew && Identity::read(&*root)?.is_none() {
            return Err(OpenError::NotThere { path: root.path() });
        }
        let lock = root.lock(LOCK_NAME, &settings.holder);
        let lock = lock.map_err(|error| OpenError::locked(&root, error))?;
        let identity = Identity::open(&*root, &settings.key, settings.segment_size)?;
        let room = Room::new(Arc::clone(&root), lock);
        room.make_way()?;
        let log_directory = root.subdirectory("commitlog")?;
        let queues = root.subdirectory("consumequeue")?;
        let settled = root.subdirectory("settled")?;
        let index = root.subdirectory("index")?;
        root.sync()?;

        let (generation, mut state, mut reason) = read_state(&*root)?;
        if settings.derived == Derived::Anew {
            (state, reason) = (None, Some("that was asked for".to_owned()));
        }
        let derived = DerivedIn {
            log: Arc::clone(&log_directory),
            secrets: identity.secrets,
            queues,
            settled,
            index,
            segment_size: identity.segment_size,
            limits: settings.index,
            retention_ms: settings.retention_ms,
        };
        let (base, rebuilt) = derived.open(state, reason)?;
        let Base { fold, settled, index, mut dispatcher, begin, durable, timer } = base;
        let mut known = Vec::new();
        let from = dispatcher.at;
        let keys = identity.keys;
        let mut replay = Replay {
            fold: &fold,
            dispatcher: &mut dispatcher,
            settled: &settled,
            index: &index,
            keys: &keys,
        };
        let mut fold_record = |record: Record<'_>| {
            note_quarantine(&record, &mut known);
            settings.progress.tell(record.header.offset);
            replay.record(&record)
        };
        let recovered = recover(
            log_directory,
            identity.segment_size,
            identity.secrets,
            from,
            durable,
            &mut fold_record,
        )?;
        replay.finish(recovered.tail)?;
        fold.topics.remove_left_files()?;

        let incarnation = recovered.tail.incarnation + 1;
        let (tail, damage) = (recovered.tail.offset, recovered.damage.clone());
        let log = recovered.open(settled, settings.flush, incarnation, begin);
        let log = log.bounded(settings.queued_appends);
        announce(&log, incarnation, tail, &damage, &known, now)?;
        let store = Store {
            root,
            log,
            index: Arc::new(index),
            keys,
            stripes: Stripes::default(),
            fold,
            dispatcher: Mutex::new(dispatcher),
            boundaries: Boundaries::default(),
            arrivals: Arrivals::default(),
            dispatch_signal: Signal::default(),
            ids: identity.key,
            incarnation,
            flush: settings.flush,
            flushing_since: AtomicU64::new(NO_FLUSH),
            making: Mutex::default(),
            checkpoint: Mutex::new(Written::after(generation, begin)),
            room,
        };
        Ok(StoreOpened { store: Arc::new(store), timer, damage, rebuilt })
    }
}

/// The newest checkpoint's state, or why there is none.
fn read_state(
    root: &dyn Directory,
) -> Result<(u64, Option<State>, Option<String>), CheckpointError> {
    let copies = read_checkpoint(root, FORMAT)?;
    for damaged in &copies.damaged {
        tracing::warn!(%damaged, "a copy of the checkpoint is damaged");
    }
    let Some(newest) = copies.newest else {
        let reason = copies.damaged.first().map(ToString::to_string);
        return Ok((0, None, reason));
    };
    match State::decode(&newest.payload) {
        Ok(state) => Ok((newest.generation, Some(state), None)),
        Err(error) => Ok((newest.generation, None, Some(error.to_string()))),
    }
}

/// Where what is derived from the log is kept.
struct DerivedIn {
    log: Arc<dyn Directory>,
    secrets: Secrets,
    queues: Arc<dyn Directory>,
    settled: Arc<dyn Directory>,
    index: Arc<dyn Directory>,
    segment_size: u64,
    limits: index::Limits,
    retention_ms: u64,
}

impl DerivedIn {
    /// What the state vouches for, or nothing at all, and why.
    fn open(
        &self,
        state: Option<State>,
        mut reason: Option<String>,
    ) -> Result<(Base, Option<String>), StoreError> {
        if let Some(state) = state {
            match self.vouched_for(state) {
                Ok(base) => return Ok((base, None)),
                Err(StoreError::Disk(error)) => return Err(error.into()),
                Err(error) => reason = Some(error.to_string()),
            }
        }
        if let Some(reason) = &reason {
            tracing::warn!(reason, "what is derived from the log is built again");
        }
        Ok((self.empty()?, reason))
    }

    /// Nothing is derived yet but what the log itself says of what it has let go.
    fn empty(&self) -> Result<Base, StoreError> {
        for name in self.queues.subdirectories()? {
            let topic = self.queues.subdirectory(&name)?;
            for file in topic.list()? {
                topic.remove(&file)?;
            }
            topic.sync()?;
        }
        let settled = Settled::empty(Arc::clone(&self.settled), self.segment_size)?;
        let index = Index::open_within(Arc::clone(&self.index), None, self.limits)?;
        if let Some(state) = self.state_at_begin()? {
            return self.begin_with(state, settled, index);
        }
        let at = ScanFrom { next_number: 1, ..ScanFrom::default() };
        let fold = self.fold(0, 0);
        make_system_topics(&fold.topics)?;
        fold.topics.restore(&level_topic(), &[], 0)?;
        let keep = Keep::new(self.segment_size, self.retention_ms);
        let dispatcher = Dispatcher::new(at, Counts::default(), keep);
        let (begin, durable, timer) = (Offset::ZERO, Offset::ZERO, None);
        Ok(Base { fold, settled, index, dispatcher, begin, durable, timer })
    }

    /// The state that the log begins with, if segments of it were let go.
    fn state_at_begin(&self) -> Result<Option<State>, StoreError> {
        let names = self.log.list()?;
        let first = names.iter().filter_map(|name| name.parse::<u64>().ok()).min();
        let begin = Offset::new(first.unwrap_or(0));
        if begin == Offset::ZERO {
            return Ok(None);
        }
        let mut search = Search::new(begin);
        let log = Arc::clone(&self.log);
        read_all(log, self.segment_size, self.secrets, begin, &mut |record| search.see(record))?;
        Ok(Some(search.found()?))
    }

    /// All that was readable then has expired, and all that waited then waits in later records.
    fn begin_with(
        &self,
        mut state: State,
        settled: Settled,
        index: Index,
    ) -> Result<Base, StoreError> {
        let begin = state.at.offset;
        tracing::info!(begin = begin.get(), "the log begins with the state it had there");
        for topic in &mut state.topics {
            topic.queues.iter_mut().for_each(|(first, length)| *first = *length);
        }
        state.segments.clear();
        state.boundaries.clear();
        state.begin = begin;
        settled.forget_below(begin);
        index.forget_below(begin);
        let (fold, dispatcher) = self.restore(&mut state)?;
        fold.expire(&state);
        Ok(Base { fold, settled, index, dispatcher, begin, durable: Offset::ZERO, timer: None })
    }

    /// Opens everything that the state vouches for.
    fn vouched_for(&self, mut state: State) -> Result<Base, StoreError> {
        let (upto, begin) = (state.settled_upto, state.begin);
        let settled = Settled::open(Arc::clone(&self.settled), self.segment_size, upto, begin)?;
        let manifest = Some(&state.index[..]);
        let index = Index::open_within(Arc::clone(&self.index), manifest, self.limits)?;
        index.forget_below(begin);
        let (fold, dispatcher) = self.restore(&mut state)?;
        let (durable, timer) = (state.durable_upto, Some(state.timer));
        Ok(Base { fold, settled, index, dispatcher, begin, durable, timer })
    }

    /// Puts back what the state says; its topics keep their names and queues there.
    fn restore(&self, state: &mut State) -> Result<(Fold, Dispatcher), StoreError> {
        let fold = self.fold(state.next_topic_id, state.next_group_id);
        for topic in &state.topics {
            let queues = u16::try_from(topic.queues.len()).unwrap_or(u16::MAX);
            let (of, retention_ms) = (topic.of, topic.retention_ms);
            let settings = TopicSettings { of, queues, retention_ms };
            let at = TopicAt { id: topic.id, name: &topic.name, settings, set_at: topic.set_at };
            fold.topics.restore(&at, &topic.queues, topic.pending)?;
        }
        fold.levels.restore(std::mem::take(&mut state.levels));
        // An older checkpoint may not speak of all of them.
        make_system_topics(&fold.topics)?;
        for group in std::mem::take(&mut state.groups) {
            // What replay finds is later than this.
            let (at, settings) = (Offset::ZERO, group.settings);
            let added = Group::new(group.id, &group.name, group.epoch, at, settings);
            *added.progress.lock() = group.progress;
            *added.readings.lock() = group.readings;
            fold.groups.add(added);
        }
        let mut keep = Keep::new(self.segment_size, self.retention_ms);
        keep.latest = state.latest;
        keep.hold_until = state.hold_until;
        keep.segments = std::mem::take(&mut state.segments);
        keep.forget_below(state.begin);
        let mut dispatcher = Dispatcher::new(state.at, state.counts, keep);
        dispatcher.boundaries = std::mem::take(&mut state.boundaries);
        dispatcher.quarantined = std::mem::take(&mut state.quarantined);
        dispatcher.quarantined.forget_below(state.begin);
        Ok((fold, dispatcher))
    }

    fn fold(&self, next_topic_id: u32, next_group_id: u32) -> Fold {
        Fold {
            topics: Topics::new(Arc::clone(&self.queues), next_topic_id),
            groups: Groups::new(next_group_id),
            levels: Levels::default(),
            counts: LiveCounts::default(),
        }
    }
}

/// Adds those of the system's own topics that are not there.
fn make_system_topics(topics: &Topics) -> Result<(), StoreError> {
    for (id, name) in SYSTEM_TOPICS {
        if topics.by_id(id).is_none() {
            let settings = TopicSettings::mixed(1);
            topics.restore(&TopicAt { id, name, settings, set_at: Offset::ZERO }, &[(0, 0)], 0)?;
        }
    }
    Ok(())
}

/// It has no queues before its first record.
fn level_topic() -> TopicAt<'static> {
    let settings = TopicSettings::mixed(0);
    TopicAt { id: LEVEL_TOPIC_ID, name: LEVEL_TOPIC, settings, set_at: Offset::ZERO }
}

fn note_quarantine(record: &Record<'_>, known: &mut Vec<Damage>) {
    if record.header.kind == Kind::Quarantine
        && let Ok(quarantine) = Quarantine::decode(record)
    {
        known.push(Damage { from: quarantine.from, length: quarantine.length });
    }
}

/// Begins the incarnation: its first group says so, and sets aside what could not be read.
fn announce(
    log: &CommitLog,
    incarnation: u64,
    tail: Offset,
    damage: &[Damage],
    known: &[Damage],
    now: Now,
) -> Result<(), OpenError> {
    let at: Timestamp = now.wall;
    let opened = Opened { incarnation, at, tail }.encode();
    log.turn(opened.len())?.append(opened);
    for damage in damage.iter().filter(|damage| !known.contains(damage)) {
        tracing::error!(
            from = damage.from.get(),
            length = damage.length,
            "a stretch of the log is damaged"
        );
        let (from, length) = (damage.from, damage.length);
        let record = Quarantine { from, length, reason: DamageReason::Unreadable }.encode();
        log.turn_for_accepted(record.len())?.append(record);
        // There may be more of them than may wait.
        log.flush_to_disk(now).map_err(StoreError::from)?;
    }
    log.flush_to_disk(now).map_err(StoreError::from)?;
    Ok(())
}
