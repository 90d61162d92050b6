//! The checkpoint: how far everything derived is, so that a start need not read the whole log.
//!
//! In this order, so that a kill at any line costs start time only:
//!
//! 1. the timer notes and syncs its part (how far it has filed, its logs' lengths);
//! 2. dispatch's part is copied under its lock: T, the queues' lengths, progress, counts. T is not before
//!    what the timer has filed;
//! 3. what the index has in memory is written, and the dirty settled pages are copied;
//! 4. **the log is flushed to its present tail**, so that no page and no
//!    run of the index knows of a fact that could be lost;
//! 5. the pages are written, the queues synced;
//! 6. the checkpoint is written, over the older of two copies;
//! 7. the room that neither copy needs any more is given back: the timer's, and that of what the log has let go.

use std::sync::Arc;
use std::time::Duration;

use timerlog::checkpoint::{self, Format};
use timerlog::planted::{self, Fault};

use super::fold::Dispatcher;
use super::levels::LevelQueue;
use super::state::{GroupState, State, TopicState};
use super::topics::LEVEL_TOPIC_ID;
use super::{Store, StoreError};
use crate::clock::Now;
use crate::message::GroupSettings;
use crate::message::offset::Offset;
use crate::stage::{Progress, Signal, Stage, StageError};

/// The file kit's part: what kind of checkpoint this is.
pub(super) const FORMAT: Format = Format { magic: *b"HOROSTAT", version: 1 };

/// Whoever keeps derived state above the store: the timer.
pub trait Participant: Send + Sync + std::fmt::Debug {
    /// Syncs what is derived and answers how far it is, or `None` when now is not a good time.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    fn capture(&self) -> Result<Option<Vec<u8>>, StoreError>;

    /// A checkpoint with what was last captured is durable. The one written before it is the oldest that a
    /// start may fall back to: what that one can do without may go.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    fn written(&self) -> Result<(), StoreError>;
}

/// What the last checkpoint said.
#[derive(Debug, Default)]
pub(super) struct Written {
    generation: u64,
    payload: Vec<u8>,
    /// Where the log began by it.
    begin: Offset,
}

impl Written {
    pub(super) fn after(generation: u64, begin: Offset) -> Self {
        Self { generation, payload: Vec::new(), begin }
    }
}

/// What a call of [`Store::checkpoint`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpointed {
    Written,
    /// Nothing has changed since the last one.
    Unchanged,
    /// The timer is in the midst of something, or the disk is full: ask again.
    NotNow,
}

impl Store {
    /// Writes a checkpoint.
    ///
    /// # Errors
    ///
    /// When the disk fails: the checkpoint before still stands, and the server must end.
    pub fn checkpoint(
        &self,
        timer: &dyn Participant,
        now: Now,
    ) -> Result<Checkpointed, StoreError> {
        match self.try_checkpoint(timer, now) {
            // The checkpoint before still stands, and the next one is tried when there may be room.
            Err(error) if error.wants_room() => {
                self.room.want();
                Ok(Checkpointed::NotNow)
            }
            checkpointed => checkpointed,
        }
    }

    fn try_checkpoint(
        &self,
        timer: &dyn Participant,
        now: Now,
    ) -> Result<Checkpointed, StoreError> {
        let mut written = self.checkpoint.lock();
        let Some(of_timer) = timer.capture()? else { return Ok(Checkpointed::NotNow) };
        let Some(mut state) = self.capture(of_timer) else { return Ok(Checkpointed::NotNow) };
        state.index = match self.index.capture() {
            Ok(manifest) => manifest,
            Err(error) if error.is_full() => {
                self.room.want();
                return Ok(Checkpointed::NotNow);
            }
            Err(error) => return Err(error.into()),
        };
        let dirty = self.log.settled().copy_dirty();
        state.durable_upto = match planted::is(Fault::PagesBeforeFlush) {
            true => self.log.durable(),
            false => self.log.flush_to_disk(now)?,
        };
        self.dispatch_signal.raise();
        self.log.settled().write(dirty, state.durable_upto)?;
        state.settled_upto = self.log.settled().written_upto();
        self.sync_queues()?;
        let payload = state.encode();
        debug_assert_eq!(State::decode(&payload).map(drop), Ok(()), "what is written is read");
        if payload == written.payload {
            return Ok(Checkpointed::Unchanged);
        }
        checkpoint::write(&*self.root, FORMAT, written.generation + 1, &payload)?;
        let (generation, begin) = (written.generation + 1, state.begin);
        // The copy before this one is the older of the two now.
        let before = std::mem::replace(&mut *written, Written { generation, payload, begin });
        self.index.checkpointed();
        self.fold.topics.remove_left_files()?;
        timer.written()?;
        self.release(before.begin)?;
        Ok(Checkpointed::Written)
    }

    /// The state now; none while a group is folded whose units found no room.
    fn capture(&self, timer: Vec<u8>) -> Option<State> {
        let dispatcher = self.dispatcher.lock();
        dispatcher.folded_to.is_none().then(|| self.capture_at(&dispatcher, timer))
    }

    /// The state where dispatch stands.
    pub(super) fn capture_at(&self, dispatcher: &Dispatcher, timer: Vec<u8>) -> State {
        let topics = self.fold.topics.all().into_iter().map(|topic| TopicState {
            id: topic.id,
            name: topic.name.clone(),
            set_at: topic.set_at,
            of: topic.settings.of,
            retention_ms: topic.settings.retention_ms,
            pending: topic.pending(),
            queues: topic
                .queues
                .iter()
                .map(|queue| (queue.units.first(), queue.units.committed()))
                .collect(),
        });
        let groups = self.fold.groups.all().into_iter().map(|group| GroupState {
            id: group.id,
            epoch: group.epoch,
            name: group.name.clone(),
            settings: GroupSettings::clone(&group.settings()),
            progress: group.progress.lock().clone(),
            readings: group.readings.lock().clone(),
        });
        State {
            at: dispatcher.at,
            counts: dispatcher.counts,
            next_topic_id: self.fold.topics.next_id(),
            next_group_id: self.fold.groups.next_id(),
            topics: topics.collect(),
            groups: groups.collect(),
            levels: self.levels_state(),
            begin: self.log.begin(),
            latest: dispatcher.keep.latest,
            hold_until: dispatcher.keep.hold_until,
            segments: dispatcher.keep.segments.clone(),
            boundaries: dispatcher.boundaries.clone(),
            quarantined: dispatcher.quarantined.clone(),
            timer,
            ..State::default()
        }
    }

    /// Nothing is appended to the queues meanwhile: the dispatcher's lock is held.
    fn levels_state(&self) -> Vec<LevelQueue> {
        let topic = self.topic_by_id(LEVEL_TOPIC_ID);
        topic.map_or_else(Vec::new, |topic| self.fold.levels.capture(&topic))
    }

    fn sync_queues(&self) -> Result<(), StoreError> {
        for topic in self.fold.topics.all() {
            for queue in &topic.queues {
                queue.units.flush()?;
            }
        }
        Ok(self.fold.topics.sync()?)
    }
}

/// Checkpoints as a stage.
#[derive(Debug)]
pub struct CheckpointStage {
    store: Arc<Store>,
    timer: Arc<dyn Participant>,
    interval: Duration,
    last: Option<Duration>,
    signal: Signal,
}

impl CheckpointStage {
    pub fn new(store: Arc<Store>, timer: Arc<dyn Participant>, interval: Duration) -> Self {
        Self { store, timer, interval, last: None, signal: Signal::default() }
    }
}

impl Stage for CheckpointStage {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        let last = *self.last.get_or_insert(now.monotonic);
        let due = now.monotonic.saturating_sub(last) >= self.interval;
        if due || self.store.log.settled().wants_checkpoint() {
            let checkpointed = self.store.checkpoint(&*self.timer, now);
            match checkpointed.map_err(|error| StageError::new(self.name(), error))? {
                Checkpointed::Written | Checkpointed::Unchanged => self.last = Some(now.monotonic),
                Checkpointed::NotNow => {}
            }
        }
        Ok(Progress::Idle)
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }
}
