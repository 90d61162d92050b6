//! The topics that there are, with their queues.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::RwLock;
use timerlog::disk::{Directory, DiskError};

use crate::consumequeue::{ConsumeQueue, QueueError};

/// The holding topic of timed messages. Its one queue is the order in which they were appended.
pub const TIMER_TOPIC: &str = "rmq_sys_wheel_timer";
/// Its id; topics of users count from 1.
pub const TIMER_TOPIC_ID: u32 = 0;

/// A topic: a name, and queues that each have an order.
#[derive(Debug)]
pub struct Topic {
    pub id: u32,
    pub name: String,
    pub queues: Box<[Queue]>,
    turn: AtomicU32,
    /// Messages of this topic that wait for their moment, as dispatch has counted them.
    pub(super) pending: AtomicU64,
}

/// One queue: the appender's side and the readers'.
#[derive(Debug)]
pub struct Queue {
    /// The next offset to give. Only a turn's holder (and recovery) may touch it.
    next_offset: AtomicU64,
    pub units: ConsumeQueue,
}

impl Topic {
    fn open(
        root: &dyn Directory,
        id: u32,
        name: &str,
        lengths: &[u64],
        pending: u64,
    ) -> Result<Self, QueueError> {
        let directory = root.subdirectory(&format!("{id:010}"))?;
        let queues = (0..).zip(lengths).map(|(queue, &length)| {
            let units = ConsumeQueue::open(Arc::clone(&directory), queue, length)?;
            Ok(Queue { next_offset: AtomicU64::new(length), units })
        });
        Ok(Self {
            id,
            name: name.to_owned(),
            queues: queues.collect::<Result<_, QueueError>>()?,
            turn: AtomicU32::new(0),
            pending: AtomicU64::new(pending),
        })
    }

    /// The queue of the next message without a message group: they take turns.
    pub fn next_queue(&self) -> u16 {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        Self::queue_of(u64::from(turn), self.queues.len())
    }

    /// The queue of a message group, always the same.
    pub fn queue_of_group(&self, message_group: &str) -> u16 {
        Self::queue_of(xxhash_rust::xxh3::xxh3_64(message_group.as_bytes()), self.queues.len())
    }

    fn queue_of(number: u64, queues: usize) -> u16 {
        u16::try_from(number % queues as u64).expect("a topic has at most 65535 queues")
    }

    /// The queue numbered `queue`, if there is one.
    pub fn queue(&self, queue: u16) -> Option<&Queue> {
        self.queues.get(usize::from(queue))
    }

    /// `count` of the pending are pending no more. Never below zero: a topic that was made again from
    /// one of its messages has not counted those before.
    pub(super) fn settled(&self, count: u64) {
        let less = |pending: u64| Some(pending.saturating_sub(count));
        let _ = self.pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }
}

impl Queue {
    /// Takes `count` offsets and answers the first. To be called inside a turn, by its holder only: the
    /// order of the log and of the queue are then the same.
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
}

#[derive(Debug, Default)]
struct Maps {
    by_name: HashMap<String, Arc<Topic>>,
    by_id: HashMap<u32, Arc<Topic>>,
    next_id: u32,
}

impl Topics {
    pub(super) fn new(root: Arc<dyn Directory>, next_id: u32) -> Self {
        let maps = Maps { next_id: next_id.max(TIMER_TOPIC_ID + 1), ..Maps::default() };
        Self { root, maps: RwLock::new(maps) }
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

    /// Adds a topic with queues of the given lengths, or answers the one that has the id.
    pub(super) fn add(
        &self,
        id: u32,
        name: &str,
        lengths: &[u64],
        pending: u64,
    ) -> Result<Arc<Topic>, QueueError> {
        // Whoever makes a topic and dispatch, which finds its record, come here at the same time. There
        // must be one topic of an id: a second one would give the same offsets again.
        let mut maps = self.maps.write();
        if let Some(topic) = maps.by_id.get(&id) {
            return Ok(Arc::clone(topic));
        }
        let topic = Arc::new(Topic::open(&*self.root, id, name, lengths, pending)?);
        maps.by_id.insert(id, Arc::clone(&topic));
        maps.by_name.insert(name.to_owned(), Arc::clone(&topic));
        maps.next_id = maps.next_id.max(id + 1);
        Ok(topic)
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use timerlog::disk::sim::SimDisk;

    use super::*;

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
                topics.add(id, &format!("topic-{id}"), &[0, 0], 0).expect("a directory")
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
}
