//! The store: the log and what is derived from it, as one thing.
//!
//! ```text
//!   turn, flush ──> CommitLog ──> dispatch (the fold) ──> ConsumeQueues, progress, counts
//!                      │                                        │
//!                      └──────────── checkpoint ────────────────┘   two copies, written last
//! ```
//!
//! Ground rules:
//!
//! - Who appends a record that the index has entries for inserts them in the same turn.
//! - The log is the truth; everything else below the data directory but `id.key` can be deleted while
//!   the server is down, and is then built again.
//! - Order of locks: a stripe, the making of topics and groups, the consumers' leases, appender, then
//!   settled pages or the index; dispatcher alone. A checkpoint takes the dispatcher's lock to copy, never
//!   to write.
//! - A checkpoint says nothing that the disk does not hold: see [`checkpoint`].

mod arrivals;
mod boundary;
mod cause;
pub mod checkpoint;
pub mod dispatch;
pub mod flush;
mod fold;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod groups;
mod identity;
mod keep;
mod keys;
mod levels;
mod make_group;
mod open;
mod progress;
mod quarantined;
mod replay;
mod resets;
mod returned;
mod room;
mod state;
mod stripes;
mod system_topics;
mod topic_changes;
mod topics;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use timerlog::disk::{Directory, DiskError};
use timerlog::segment::RowError;

pub use self::arrivals::ArrivalListener;
use self::arrivals::Arrivals;
use self::boundary::Boundaries;
pub use self::boundary::{Boundary, BoundaryError, Expired, Kept};
pub use self::cause::{CauseError, Caused, Read};
use self::fold::{Dispatcher, Fold};
pub use self::groups::{Group, QueueKey, Reading};
pub use self::identity::{Identity, IdentityError};
pub use self::keep::SegmentKeep;
pub use self::keys::Keys;
pub use self::levels::{Level, Levels};
pub use self::make_group::Made;
pub use self::open::{Derived, OpenError, Progress, Settings, StoreOpened};
pub use self::progress::QueueProgress;
pub use self::quarantined::Quarantined;
pub use self::resets::{Reset, Retry};
pub use self::room::Room;
pub use self::state::{Counts, StateError};
pub use self::stripes::Stripes;
pub use self::system_topics::{Belongs, Holds};
pub use self::topic_changes::{DeleteError, Force, TopicChange, TopicChanged, TopicError};
use self::topics::TopicAt;
pub use self::topics::{
    FIRST_USER_TOPIC_ID, HALF_TOPIC, HALF_TOPIC_ID, LEVEL_TOPIC, LEVEL_TOPIC_ID, OP_TOPIC,
    OP_TOPIC_ID, Queue, TIMER_TOPIC, TIMER_TOPIC_ID, Topic,
};
pub use self::verify::{CheckTimer, Verified, VerifiedKind, VerifiedLog, verify};
use crate::clock::Timestamp;
use crate::commitlog::settled::SettledError;
use crate::commitlog::{AppendError, CommitLog, FlushMode, ReadError, ReleaseError};
use crate::consumequeue::{QueueError, UNIT_LENGTH};
use crate::index::{Index, IndexError};
use crate::message::id::IdKey;
use crate::message::offset::Offset;
use crate::message::record::{Kind, TopicSet};
use crate::message::{GroupName, GroupSettings, TopicName, TopicSettings};
use crate::stage::Signal;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Held by the process that has the data directory open.
pub const LOCK_NAME: &str = "LOCK";

/// What the whole server ends over.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Row(#[from] RowError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Settled(#[from] SettledError),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Release(#[from] ReleaseError),
    #[error(transparent)]
    Boundary(#[from] BoundaryError),
    /// Derived data of the timer: it must be built again.
    #[error(transparent)]
    Timer(#[from] timerlog::Damage),
    #[error(
        "the log has a record of kind {kind:?} at offset {offset}, which this version cannot read"
    )]
    UnknownKind { kind: Kind, offset: u64 },
}

impl StoreError {
    /// The disk had no room, and nothing has happened: see [`DiskError::wants_room`].
    pub fn wants_room(&self) -> bool {
        match self {
            Self::Disk(error)
            | Self::Row(RowError::Disk(error))
            | Self::Queue(QueueError::Disk(error))
            | Self::Settled(SettledError::Disk(error)) => error.wants_room(),
            _ => false,
        }
    }
}

/// The store. Shared by reference.
#[derive(Debug)]
pub struct Store {
    root: Arc<dyn Directory>,
    log: CommitLog,
    index: Arc<Index>,
    keys: Keys,
    stripes: Stripes,
    fold: Fold,
    dispatcher: Mutex<Dispatcher>,
    boundaries: Boundaries,
    arrivals: Arrivals,
    dispatch_signal: Signal,
    ids: IdKey,
    incarnation: u64,
    flush: FlushMode,
    /// The monotonic millisecond in which the flush under way began.
    flushing_since: AtomicU64,
    /// Held by whoever makes a topic or a group: a name is made once.
    making: Mutex<()>,
    checkpoint: Mutex<checkpoint::Written>,
    /// Dropped last: it holds the lock of the directory.
    room: Room,
}

impl Store {
    pub fn log(&self) -> &CommitLog {
        &self.log
    }

    /// The disk as room for files.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// From keys to the records that have them. Only a turn's holder inserts.
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Held from look-up to append by whoever must be alone with a key.
    pub fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    pub fn ids(&self) -> &IdKey {
        &self.ids
    }

    /// Whether what was shown to anybody is there after a power cut, at the same place.
    pub fn keeps_what_was_seen(&self) -> bool {
        self.flush == FlushMode::Sync
    }

    /// Counts the starts of this data directory, from 1.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The topic of this name. That of the timers is nobody's to ask for.
    pub fn topic(&self, name: &TopicName) -> Option<Arc<Topic>> {
        let named = self.fold.topics.by_name(name.as_str());
        named.filter(|topic| topic.id != TIMER_TOPIC_ID)
    }

    /// By a name that need not be one.
    pub fn topic_by_name(&self, name: &str) -> Option<Arc<Topic>> {
        self.fold.topics.by_name(name)
    }

    pub fn topic_by_id(&self, id: u32) -> Option<Arc<Topic>> {
        self.fold.topics.by_id(id)
    }

    pub fn group(&self, name: &GroupName) -> Option<Arc<Group>> {
        self.fold.groups.by_name(name.as_str())
    }

    pub fn group_by_id(&self, id: u32) -> Option<Arc<Group>> {
        self.fold.groups.by_id(id)
    }

    /// Messages that wait for their moment, as far as dispatch has come.
    pub fn pending(&self) -> u64 {
        self.fold.counts.pending.load(Ordering::Relaxed)
    }

    /// Bytes written to queues since the start.
    pub fn queue_bytes_written(&self) -> u64 {
        self.fold.counts.units_written.load(Ordering::Relaxed) * UNIT_LENGTH as u64
    }

    /// The counts, together with the promise that nothing is half counted.
    pub fn counts(&self) -> Counts {
        self.dispatcher.lock().counts
    }

    /// Everything before this is in the queues, the progress and the counts.
    pub fn dispatched(&self) -> Offset {
        Offset::new(self.fold.counts.dispatched.load(Ordering::Acquire))
    }

    /// Blocks until everything before `upto` is dispatched, or `timeout` has passed; `true` when it is.
    pub fn wait_for_dispatch(&self, upto: Offset, timeout: Duration) -> bool {
        self.fold.counts.dispatch_mark.wait_for(upto.get(), timeout)
    }

    pub fn listen(&self, listener: Arc<dyn ArrivalListener>) {
        self.arrivals.listen(listener);
    }

    /// The topic `name`, made with `queues` queues when there is none. A message that is appended
    /// afterwards stands later in the log than the record that made its topic.
    ///
    /// # Errors
    ///
    /// When it must be made and cannot.
    pub fn topic_or_make(
        &self,
        name: &TopicName,
        queues: u16,
        now: Timestamp,
    ) -> Result<Arc<Topic>, MakeError> {
        if let Some(topic) = self.topic(name) {
            return Ok(topic);
        }
        let _making = self.making.lock();
        if let Some(topic) = self.topic(name) {
            return Ok(topic);
        }
        let topic_id = self.fold.topics.next_id();
        if topic_id > crate::message::timer_tag::MAX_TOPIC_ID {
            return Err(MakeError::TooMany);
        }
        let settings = TopicSettings::mixed(queues);
        let (name_of, delays_ms) = (name.as_str().to_owned(), Vec::new());
        let set = TopicSet { topic_id, settings, at: now, name: name_of, delays_ms };
        let record = set.encode();
        let set_at = self.log.turn(record.len())?.append(record);
        let at = TopicAt { id: topic_id, name: name.as_str(), settings, set_at };
        Ok(self.fold.topics.set(&at))
    }

    /// The group `name`, made with all settings but one at their defaults when there is none.
    ///
    /// # Errors
    ///
    /// When it must be made and cannot.
    pub fn group_or_make(
        &self,
        name: &GroupName,
        invisible_for_ms: u64,
        now: Timestamp,
    ) -> Result<Arc<Group>, MakeError> {
        if let Some(group) = self.group(name) {
            return Ok(group);
        }
        let settings = GroupSettings { invisible_for_ms, ..GroupSettings::default() };
        self.make_group(name, &settings, now).map(|(group, _)| group)
    }
}

/// Why a topic or a group cannot be made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MakeError {
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("there are as many topics as ids")]
    TooMany,
}
