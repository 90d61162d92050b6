//! The consumer groups that there are, and how far each is.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::progress::QueueProgress;

/// One queue of one topic.
pub type QueueKey = (u32, u16);

/// A consumer group. What it has done is folded from the log: dispatch is the only writer.
#[derive(Debug)]
pub struct Group {
    pub id: u32,
    pub name: String,
    pub epoch: u32,
    pub invisible_for_ms: u64,
    pub(super) progress: Mutex<BTreeMap<QueueKey, QueueProgress>>,
}

impl Group {
    pub(super) fn new(id: u32, name: &str, epoch: u32, invisible_for_ms: u64) -> Self {
        let progress = Mutex::default();
        Self { id, name: name.to_owned(), epoch, invisible_for_ms, progress }
    }

    /// The topic is gone, and its id is not used again.
    pub(super) fn forget_topic(&self, topic_id: u32) {
        self.progress.lock().retain(|&(topic, _), _| topic != topic_id);
    }

    /// Whether the group has acknowledged, or let go of, anything of the topic.
    pub fn has_read(&self, topic_id: u32) -> bool {
        let progress = self.progress.lock();
        progress.range((topic_id, 0)..=(topic_id, u16::MAX)).next().is_some()
    }

    /// Shows the group's progress with a queue to `look`.
    pub fn progress<T>(&self, key: QueueKey, look: impl FnOnce(&QueueProgress) -> T) -> T {
        match self.progress.lock().get(&key) {
            Some(progress) => look(progress),
            None => look(&QueueProgress::default()),
        }
    }
}

/// All groups, by name and by id.
#[derive(Debug, Default)]
pub(super) struct Groups {
    maps: RwLock<Maps>,
}

#[derive(Debug, Default)]
struct Maps {
    by_name: HashMap<String, Arc<Group>>,
    by_id: HashMap<u32, Arc<Group>>,
    next_id: u32,
}

impl Groups {
    pub(super) fn new(next_id: u32) -> Self {
        Self { maps: RwLock::new(Maps { next_id: next_id.max(1), ..Maps::default() }) }
    }

    pub(super) fn by_name(&self, name: &str) -> Option<Arc<Group>> {
        self.maps.read().by_name.get(name).cloned()
    }

    pub(super) fn by_id(&self, id: u32) -> Option<Arc<Group>> {
        self.maps.read().by_id.get(&id).cloned()
    }

    pub(super) fn next_id(&self) -> u32 {
        self.maps.read().next_id
    }

    /// Adds the group, or answers the one that has the id.
    pub(super) fn add(&self, group: Group) -> Arc<Group> {
        let mut maps = self.maps.write();
        if let Some(group) = maps.by_id.get(&group.id) {
            return Arc::clone(group);
        }
        let group = Arc::new(group);
        maps.by_id.insert(group.id, Arc::clone(&group));
        maps.by_name.insert(group.name.clone(), Arc::clone(&group));
        maps.next_id = maps.next_id.max(group.id + 1);
        group
    }

    /// All of them, by id.
    pub(super) fn all(&self) -> Vec<Arc<Group>> {
        let mut all: Vec<_> = self.maps.read().by_id.values().cloned().collect();
        all.sort_by_key(|group| group.id);
        all
    }
}
