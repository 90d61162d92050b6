//! The topics that there are, with their queues.
//!
//! ```text
//!   by name ──> Topic ── by id        what a topic is set to is a new `Topic` value;
//!                 │                   its queues and what is counted of it are shared
//!                 └─ queues, life     with the value before
//! ```
//!
//! A topic goes in two steps. In the turn that appends its deletion it loses its name and is marked, so
//! that no later turn does anything for it; when dispatch comes to that record it goes altogether. Its
//! files go once a checkpoint no longer speaks of them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use timerlog::disk::{Directory, DiskError};

use super::system_topics::Belongs;
use crate::consumequeue::{ConsumeQueue, Home, QueueError};
use crate::message::TopicSettings;
use crate::message::offset::Offset;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, RwLock};

/// The holding topic of timed messages. Its one queue is the order in which they were appended.
pub const TIMER_TOPIC: &str = "rmq_sys_wheel_timer";
/// Its id.
pub const TIMER_TOPIC_ID: u32 = 0;
/// Half messages in the order they were appended, whatever became of them.
pub const HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
pub const HALF_TOPIC_ID: u32 = 1;
/// Commits and rollbacks in the order they were decided.
pub const OP_TOPIC: &str = "RMQ_SYS_TRANS_OP_HALF_TOPIC";
pub const OP_TOPIC_ID: u32 = 2;
/// The holding topic of messages with a delay level: a queue for each delay.
pub const LEVEL_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";
pub const LEVEL_TOPIC_ID: u32 = 3;
/// Topics of users count from here: there is room below for more of the system's own.
pub const FIRST_USER_TOPIC_ID: u32 = 16;

/// The topics that the store makes itself, each with one queue.
pub(super) const SYSTEM_TOPICS: [(u32, &str); 3] =
    [(TIMER_TOPIC_ID, TIMER_TOPIC), (HALF_TOPIC_ID, HALF_TOPIC), (OP_TOPIC_ID, OP_TOPIC)];

/// A topic: a name, settings, and queues that each have an order.
#[derive(Debug)]
pub struct Topic {
    pub id: u32,
    pub name: String,
    pub settings: TopicSettings,
    /// Where the record stands that has these settings.
    pub(super) set_at: Offset,
    pub queues: Box<[Arc<Queue>]>,
    /// Whose it is, if it is one of a group's system topics.
    pub belongs: Option<Belongs>,
    life: Arc<Life>,
}

/// What stays the same when a topic is set to something else.
#[derive(Debug)]
struct Life {
    home: Arc<Home>,
    turn: AtomicU32,
    /// Messages of this topic that wait for their moment, as dispatch has counted them.
    pending: AtomicU64,
    /// Where the last record about a message of it stands.
    last_append: AtomicU64,
    deleted: AtomicBool,
}

impl Life {
    fn new(home: &Arc<Home>, pending: u64) -> Self {
        Self {
            home: Arc::clone(home),
            turn: AtomicU32::new(0),
            pending: AtomicU64::new(pending),
            last_append: AtomicU64::new(0),
            deleted: AtomicBool::new(false),
        }
    }
}

/// One queue: the appender's side and the readers'.
#[derive(Debug)]
pub struct Queue {
    /// The next offset to give. Only a turn's holder (and recovery) may touch it.
    next_offset: AtomicU64,
    pub units: ConsumeQueue,
}

/// A topic as it is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct TopicAt<'a> {
    pub(super) id: u32,
    pub(super) name: &'a str,
    pub(super) settings: TopicSettings,
    /// Of the record that says so.
    pub(super) set_at: Offset,
}

impl Topic {
    fn open(
        home: &Arc<Home>,
        at: &TopicAt<'_>,
        queues: &[(u64, u64)],
        pending: u64,
    ) -> Result<Self, QueueError> {
        Ok(Self::with(at, open_queues(home, queues)?, Arc::new(Life::new(home, pending))))
    }

    fn new(home: &Arc<Home>, at: &TopicAt<'_>) -> Self {
        let queues = new_queues(home, 0..at.settings.queues).collect();
        Self::with(at, queues, Arc::new(Life::new(home, 0)))
    }

    fn with(at: &TopicAt<'_>, queues: Vec<Arc<Queue>>, life: Arc<Life>) -> Self {
        Self {
            id: at.id,
            name: at.name.to_owned(),
            settings: at.settings,
            set_at: at.set_at,
            queues: queues.into(),
            belongs: Belongs::of(at.name),
            life,
        }
    }

    /// The same topic with other settings. It keeps all its queues: what stands in them stays.
    fn set(&self, at: &TopicAt<'_>) -> Self {
        let mut queues = self.queues.to_vec();
        let there = u16::try_from(queues.len()).expect("a topic has at most 65535 queues");
        queues.extend(new_queues(&self.life.home, there..at.settings.queues));
        Self::with(&TopicAt { name: &self.name, ..*at }, queues, Arc::clone(&self.life))
    }

    /// The queue of the next message without a message group: they take turns.
    pub fn next_queue(&self) -> u16 {
        let turn = self.life.turn.fetch_add(1, Ordering::Relaxed);
        Self::queue_of(u64::from(turn), self.queues.len())
    }

    /// The queue of a message group, the same as long as the topic has as many queues.
    pub fn queue_of_group(&self, message_group: &str) -> u16 {
        Self::queue_of(xxhash_rust::xxh3::xxh3_64(message_group.as_bytes()), self.queues.len())
    }

    fn queue_of(number: u64, queues: usize) -> u16 {
        u16::try_from(number % queues as u64).expect("a topic has at most 65535 queues")
    }

    /// The queue numbered `queue`, if there is one.
    pub fn queue(&self, queue: u16) -> Option<&Queue> {
        self.queues.get(usize::from(queue)).map(|queue| &**queue)
    }

    pub(super) fn scheduled(&self) {
        self.life.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// `count` of the pending are pending no more. Never below zero: a topic that was made again from
    /// one of its messages has not counted those before.
    pub(super) fn settled(&self, count: u64) {
        let less = |pending: u64| Some(pending.saturating_sub(count));
        let _ = self.life.pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub fn pending(&self) -> u64 {
        self.life.pending.load(Ordering::Relaxed)
    }

    /// A record about a message of the topic was appended. To be called in the turn that did.
    pub fn appended(&self, at: Offset) {
        self.life.last_append.store(at.get(), Ordering::Relaxed);
    }

    /// Where the last such record stands. Exact in a turn only.
    pub(super) fn last_append(&self) -> Offset {
        Offset::new(self.life.last_append.load(Ordering::Relaxed))
    }

    /// Whether a turn has deleted the topic. Final in a turn: whoever appends something for a topic asks
    /// there.
    pub fn is_deleted(&self) -> bool {
        self.life.deleted.load(Ordering::Acquire)
    }
}

fn open_queues(home: &Arc<Home>, queues: &[(u64, u64)]) -> Result<Vec<Arc<Queue>>, QueueError> {
    let queues = (0..).zip(queues).map(|(queue, &(first, length))| {
        let units = ConsumeQueue::open(Arc::clone(home), queue, first, length)?;
        Ok(Arc::new(Queue { next_offset: AtomicU64::new(length), units }))
    });
    queues.collect()
}

fn new_queues(home: &Arc<Home>, numbers: Range<u16>) -> impl Iterator<Item = Arc<Queue>> {
    numbers.map(|queue| {
        let units = ConsumeQueue::new(Arc::clone(home), queue);
        Arc::new(Queue { next_offset: AtomicU64::new(0), units })
    })
}

pub(super) fn directory_name(id: u32) -> String {
    format!("{id:010}")
}

impl Queue {
    /// Takes `count` offsets and answers the first. To be called inside a turn, by its holder only: the
    /// order of the log and of the queue are then the same. The level topic's are taken by the fold, which
    /// alone writes there.
    pub fn take_offsets(&self, count: u64) -> u64 {
        self.next_offset.fetch_add(count, Ordering::Relaxed)
    }

    /// Recovery found offsets up to `end` in the log.
    pub(super) fn raise_next_offset(&self, end: u64) {
        self.next_offset.fetch_max(end, Ordering::Relaxed);
    }

    pub fn next_offset(&self) -> u64 {
        self.next_offset.load(Ordering::Relaxed)
    }
}

/// All topics, by name and by id.
#[derive(Debug)]
pub(super) struct Topics {
    root: Arc<dyn Directory>,
    maps: RwLock<Maps>,
    /// There may be files of topics that are gone.
    leftovers: AtomicBool,
}

#[derive(Debug, Default)]
struct Maps {
    by_name: HashMap<String, Arc<Topic>>,
    by_id: HashMap<u32, Arc<Topic>>,
    next_id: u32,
}

impl Topics {
    pub(super) fn new(root: Arc<dyn Directory>, next_id: u32) -> Self {
        let maps = Maps { next_id: next_id.max(FIRST_USER_TOPIC_ID), ..Maps::default() };
        Self { root, maps: RwLock::new(maps), leftovers: AtomicBool::new(true) }
    }

    pub(super) fn by_name(&self, name: &str) -> Option<Arc<Topic>> {
        self.maps.read().by_name.get(name).cloned()
    }

    pub(super) fn by_id(&self, id: u32) -> Option<Arc<Topic>> {
        self.maps.read().by_id.get(&id).cloned()
    }

    /// The id for the next topic to be made. The caller excludes other makers.
    pub(super) fn next_id(&self) -> u32 {
        self.maps.read().next_id
    }

    /// Puts back a topic of the checkpoint, with queues of which these are the first unit and the length.
    pub(super) fn restore(
        &self,
        at: &TopicAt<'_>,
        queues: &[(u64, u64)],
        pending: u64,
    ) -> Result<Arc<Topic>, QueueError> {
        let home = Home::open(Arc::clone(&self.root), directory_name(at.id))?;
        let topic = Arc::new(Topic::open(&home, at, queues, pending)?);
        self.maps.write().insert(&topic);
        Ok(topic)
    }

    /// Makes the topic, or sets the one that has the id; answers it. What an older record says is passed
    /// over: it has been said again since.
    pub(super) fn set(&self, at: &TopicAt<'_>) -> Arc<Topic> {
        // Whoever makes a topic and dispatch, which finds its record, come here at the same time. There
        // must be one topic of an id: a second one would give the same offsets again.
        let mut maps = self.maps.write();
        let topic = match maps.by_id.get(&at.id) {
            Some(topic) if at.set_at <= topic.set_at => return Arc::clone(topic),
            Some(topic) => topic.set(at),
            None => Topic::new(&Home::new(Arc::clone(&self.root), directory_name(at.id)), at),
        };
        let topic = Arc::new(topic);
        maps.insert(&topic);
        topic
    }

    /// The topic's deletion is appended in this very turn: its name is free, and no turn does anything
    /// for it any more.
    pub(super) fn mark_deleted(&self, topic: &Topic) {
        let mut maps = self.maps.write();
        topic.life.deleted.store(true, Ordering::Release);
        maps.forget_name(topic);
    }

    /// The system topics that hold what comes of a topic.
    pub(super) fn of_topic(&self, topic_id: u32) -> Vec<Arc<Topic>> {
        let mut all = self.all();
        all.retain(|topic| topic.belongs.is_some_and(|belongs| belongs.topic_id == topic_id));
        all
    }

    /// Dispatch has come to the topic's deletion.
    pub(super) fn remove(&self, id: u32) -> Option<Arc<Topic>> {
        let mut maps = self.maps.write();
        let topic = maps.by_id.remove(&id)?;
        topic.life.deleted.store(true, Ordering::Release);
        maps.forget_name(&topic);
        self.leftovers.store(true, Ordering::Relaxed);
        Some(topic)
    }

    /// Removes the files of topics that are gone. To be called when no checkpoint that a start may go by
    /// speaks of them.
    pub(super) fn remove_left_files(&self) -> Result<(), DiskError> {
        if !self.leftovers.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        for name in self.root.subdirectories()? {
            let id = name.parse::<u32>().ok();
            if id.is_none_or(|id| self.by_id(id).is_some() || id >= self.next_id()) {
                continue;
            }
            let directory = self.root.subdirectory(&name)?;
            for file in directory.list()? {
                directory.remove(&file)?;
            }
            directory.sync()?;
        }
        Ok(())
    }

    /// Makes the topics' directories durable.
    pub(super) fn sync(&self) -> Result<(), DiskError> {
        self.root.sync()
    }

    /// All of them, by id.
    pub(super) fn all(&self) -> Vec<Arc<Topic>> {
        let mut all: Vec<_> = self.maps.read().by_id.values().cloned().collect();
        all.sort_by_key(|topic| topic.id);
        all
    }
}

impl Maps {
    fn insert(&mut self, topic: &Arc<Topic>) {
        self.by_id.insert(topic.id, Arc::clone(topic));
        if !topic.is_deleted() {
            self.by_name.insert(topic.name.clone(), Arc::clone(topic));
        }
        self.next_id = self.next_id.max(topic.id + 1);
    }

    /// A topic made again under the name keeps it.
    fn forget_name(&mut self, topic: &Topic) {
        if self.by_name.get(&topic.name).is_some_and(|named| named.id == topic.id) {
            self.by_name.remove(&topic.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use timerlog::disk::sim::SimDisk;

    use super::*;

    fn at(id: u32, name: &str, queues: u16, set_at: u64) -> TopicAt<'_> {
        let settings = TopicSettings::mixed(queues);
        TopicAt { id, name, settings, set_at: Offset::new(set_at) }
    }

    /// Found by killing the server under load, in async mode: the producer that made a topic and dispatch,
    /// which had read its record already, each added the topic. Both gave out the same offsets, and of two
    /// messages with one offset one was lost.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a race needs two threads")]
    fn two_who_add_a_topic_at_once_get_the_same_one() {
        let topics = Topics::new(SimDisk::new(1).root(), 0);
        let together = Barrier::new(2);
        let add_all = || -> Vec<_> {
            let add = |id: u32| {
                together.wait();
                topics.set(&at(id, &format!("topic-{id}"), 2, 32))
            };
            (1..500).map(add).collect()
        };
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(add_all);
            (add_all(), other.join().expect("no panic"))
        });
        for (one, other) in one.iter().zip(&other) {
            assert!(Arc::ptr_eq(one, other), "two topics of id {}", one.id);
            let found = topics.by_name(&one.name).expect("it was added");
            assert!(Arc::ptr_eq(one, &found), "another topic of name {}", one.name);
        }
    }

    #[test]
    fn a_topic_that_grows_keeps_its_queues_and_what_is_counted_of_it() {
        let topics = Topics::new(SimDisk::new(1).root(), 0);
        let before = topics.set(&at(1, "orders", 2, 32));
        before.scheduled();
        before.queues[1].take_offsets(7);
        let after = topics.set(&at(1, "orders", 5, 64));
        assert_eq!(after.queues.len(), 5);
        assert_eq!(after.queues[1].next_offset(), 7);
        assert_eq!(after.pending(), 1);
        before.scheduled();
        assert_eq!(after.pending(), 2);
        // Dispatch comes to the older record later.
        let again = topics.set(&at(1, "orders", 2, 32));
        assert!(Arc::ptr_eq(&again, &after));
    }

    #[test]
    fn a_deleted_topics_name_is_free_at_once_and_its_successor_keeps_it() {
        let topics = Topics::new(SimDisk::new(1).root(), 0);
        let old = topics.set(&at(1, "orders", 2, 32));
        topics.mark_deleted(&old);
        assert!(old.is_deleted());
        assert!(topics.by_name("orders").is_none());
        assert!(topics.by_id(1).is_some(), "dispatch still has records of it to come to");
        let new = topics.set(&at(2, "orders", 2, 96));
        assert!(!new.is_deleted());
        topics.remove(1);
        assert!(topics.by_id(1).is_none());
        assert_eq!(topics.by_name("orders").unwrap().id, 2);
    }

    #[test]
    fn files_of_a_topic_that_is_gone_are_removed_and_no_others() {
        let disk = SimDisk::new(1);
        let topics = Topics::new(disk.root(), 0);
        for id in 1..=2 {
            let topic = topics.set(&at(id, &format!("topic-{id}"), 1, 32));
            topic.queues[0].units.append(0, &[crate::consumequeue::Unit::HOLE]).unwrap();
        }
        let files =
            |id: u32| disk.root().subdirectory(&directory_name(id)).unwrap().list().unwrap();
        topics.remove(1);
        topics.remove_left_files().unwrap();
        assert!(files(1).is_empty());
        assert_eq!(files(2).len(), 1);
    }
}
