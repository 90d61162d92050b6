//! Long polls: callers that wait for messages to arrive.
//!
//! An arrival wakes as many waiters of each group as there are messages, the oldest first; nobody
//! polls. A waiter that was woken and went away passes its wake-up on.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::store::ArrivalListener;

/// A group's waiters for a topic, the oldest first.
type Row = VecDeque<Arc<Waiter>>;

/// All callers that wait, by topic and group.
#[derive(Debug, Default)]
pub struct LongPolls {
    topics: Mutex<HashMap<u32, HashMap<u32, Row>>>,
    waiting: AtomicUsize,
    draining: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiter {
    notify: Notify,
    woken: AtomicBool,
}

/// A place in the row of a group's waiters for a topic; dropping it leaves the row.
#[derive(Debug)]
pub struct Poll {
    polls: Arc<LongPolls>,
    group_id: u32,
    topic_id: u32,
    waiter: Arc<Waiter>,
    used: bool,
}

impl LongPolls {
    /// Joins the row. Join before looking whether there is something, so that nothing that arrives in
    /// between is missed.
    pub fn join(self: &Arc<Self>, group_id: u32, topic_id: u32) -> Poll {
        let waiter = Arc::new(Waiter::default());
        let mut topics = self.topics.lock();
        let groups = topics.entry(topic_id).or_default();
        groups.entry(group_id).or_default().push_back(Arc::clone(&waiter));
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Poll { polls: Arc::clone(self), group_id, topic_id, waiter, used: false }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Wakes everyone, and whoever comes later does not wait.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        for groups in self.topics.lock().values() {
            for waiter in groups.values().flatten() {
                waiter.wake();
            }
        }
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Wakes up to `count` waiters of one group.
    pub(super) fn wake(&self, group_id: u32, topic_id: u32, count: u64) {
        if let Some(groups) = self.topics.lock().get(&topic_id)
            && let Some(row) = groups.get(&group_id)
        {
            wake_first(row, count);
        }
    }
}

fn wake_first(row: &Row, count: u64) {
    let mut left = count;
    for waiter in row {
        if left == 0 {
            return;
        }
        if waiter.wake() {
            left -= 1;
        }
    }
}

impl ArrivalListener for LongPolls {
    fn arrived(&self, topic_id: u32, count: u64) {
        if let Some(groups) = self.topics.lock().get(&topic_id) {
            groups.values().for_each(|row| wake_first(row, count));
        }
    }
}

impl Waiter {
    /// `false` when it was awake already.
    fn wake(&self) -> bool {
        let first = !self.woken.swap(true, Ordering::AcqRel);
        if first {
            self.notify.notify_one();
        }
        first
    }
}

impl Poll {
    /// Returns when something may be there for this caller.
    pub async fn woken(&mut self) {
        if !self.polls.is_draining() {
            self.waiter.notify.notified().await;
        }
        self.used = true;
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let mut topics = self.polls.topics.lock();
        if let Some(groups) = topics.get_mut(&self.topic_id) {
            if let Some(row) = groups.get_mut(&self.group_id) {
                row.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
                if row.is_empty() {
                    groups.remove(&self.group_id);
                }
            }
            if groups.is_empty() {
                topics.remove(&self.topic_id);
            }
        }
        drop(topics);
        self.polls.waiting.fetch_sub(1, Ordering::Relaxed);
        if self.waiter.woken.load(Ordering::Acquire) && !self.used {
            self.polls.wake(self.group_id, self.topic_id, 1);
        }
    }
}
