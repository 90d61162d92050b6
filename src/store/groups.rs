//! The consumer groups that there are, how each is set, and how far it is.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::progress::QueueProgress;
use super::resets::{Reset, Resets};
use crate::message::offset::Offset;
use crate::message::record::OffsetsReset;
use crate::message::{GroupSettings, TagFilter};
use crate::sync::{Mutex, RwLock};

/// One queue of one topic.
pub type QueueKey = (u32, u16);

/// A consumer group. What it has done is folded from the log: dispatch is the only writer. Its settings
/// are also known to whoever made or set it, before dispatch comes to the record: the later record wins.
#[derive(Debug)]
pub struct Group {
    pub id: u32,
    pub name: String,
    pub epoch: u32,
    settings: RwLock<Dated>,
    pub(super) progress: Mutex<BTreeMap<QueueKey, QueueProgress>>,
    /// By topic. Written after the progress: who sees a fence here sees the progress behind it.
    pub(super) readings: Mutex<BTreeMap<u32, Reading>>,
}

/// Settings and where their record stands.
#[derive(Debug)]
struct Dated {
    at: Offset,
    settings: Arc<GroupSettings>,
}

/// How a group reads a topic that it has begun with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Receipt handles with a lower lease number are void.
    pub fence: u64,
    /// `None` until the group's first receive of the topic decides.
    pub filter: Option<TagFilter>,
}

impl Group {
    pub(super) fn new(
        id: u32,
        name: &str,
        epoch: u32,
        at: Offset,
        settings: GroupSettings,
    ) -> Self {
        Self {
            id,
            name: name.to_owned(),
            epoch,
            settings: RwLock::new(Dated { at, settings: Arc::new(settings) }),
            progress: Mutex::default(),
            readings: Mutex::default(),
        }
    }

    pub fn settings(&self) -> Arc<GroupSettings> {
        Arc::clone(&self.settings.read().settings)
    }

    /// The record at `at` sets the group, unless a later one has.
    pub(super) fn set(&self, at: Offset, settings: GroupSettings) {
        let mut dated = self.settings.write();
        if at > dated.at {
            *dated = Dated { at, settings: Arc::new(settings) };
        }
    }

    /// The topic is gone, and its id is not used again.
    pub(super) fn forget_topic(&self, topic_id: u32) {
        self.progress.lock().retain(|&(topic, _), _| topic != topic_id);
        self.readings.lock().remove(&topic_id);
    }

    /// Shows the group's progress with a queue to `look`.
    pub fn progress<T>(&self, key: QueueKey, look: impl FnOnce(&QueueProgress) -> T) -> T {
        match self.progress.lock().get(&key) {
            Some(progress) => look(progress),
            None => look(&QueueProgress::default()),
        }
    }

    /// How the group reads the topic, as far as dispatch has come.
    pub fn reading(&self, topic_id: u32) -> Option<Reading> {
        self.readings.lock().get(&topic_id).cloned()
    }

    /// The topics that the group has begun with, as far as dispatch has come.
    pub fn topics(&self) -> Vec<u32> {
        self.readings.lock().keys().copied().collect()
    }

    /// The record of the reset stands at `at`; there may be `retries` from before it, or not.
    pub(super) fn fold_reset(&self, reset: &OffsetsReset, at: Offset, retries: Retries) {
        let mut progress = self.progress.lock();
        for (queue, &offset) in (0..).zip(&reset.queues) {
            if let Some(start) = offset {
                let there = progress.entry((reset.topic_id, queue)).or_default();
                let mut resets = match retries {
                    Retries::Perhaps => there.resets().clone(),
                    Retries::None => Resets::default(),
                };
                if retries == Retries::Perhaps {
                    resets.push(Reset { at, start, retries_end: reset.retries_end });
                }
                *there = QueueProgress::starting_at(start).with_resets(resets);
            }
        }
        drop(progress);
        let mut readings = self.readings.lock();
        let before = readings.remove(&reset.topic_id).and_then(|reading| reading.filter);
        let filter = reset.filter.clone().or(before);
        readings.insert(reset.topic_id, Reading { fence: reset.fence, filter });
    }
}

/// Whether a group has retries of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retries {
    Perhaps,
    None,
}

/// All groups, by name and by id.
#[derive(Debug, Default)]
pub(super) struct Groups {
    maps: RwLock<Maps>,
}

#[derive(Debug, Default)]
struct Maps {
    by_name: BTreeMap<String, Arc<Group>>,
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

    /// Up to `max` groups by name, those after `after`.
    pub(super) fn page(&self, after: Option<&str>, max: usize) -> Vec<Arc<Group>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let maps = self.maps.read();
        let page = maps.by_name.range::<str, _>((from, Bound::Unbounded));
        page.map(|(_, group)| Arc::clone(group)).take(max).collect()
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
