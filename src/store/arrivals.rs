//! Who is told when units arrive.

use std::sync::Arc;

use crate::sync::RwLock;

/// Told by dispatch, on its thread: be quick.
pub trait ArrivalListener: Send + Sync + std::fmt::Debug {
    /// `count` units of the topic can be read that could not before.
    fn arrived(&self, topic_id: u32, count: u64);
    /// `count` messages of the topic can be read again by the group alone.
    fn came_back(&self, _group_id: u32, _topic_id: u32, _count: u64) {}
}

#[derive(Debug, Default)]
pub(super) struct Arrivals {
    listeners: RwLock<Vec<Arc<dyn ArrivalListener>>>,
}

impl Arrivals {
    pub(super) fn listen(&self, listener: Arc<dyn ArrivalListener>) {
        self.listeners.write().push(listener);
    }

    pub(super) fn announce_again(&self, group_id: u32, topic_id: u32, count: u64) {
        for listener in &*self.listeners.read() {
            listener.came_back(group_id, topic_id, count);
        }
    }

    pub(super) fn announce(&self, topic_id: u32, count: u64) {
        for listener in &*self.listeners.read() {
            listener.arrived(topic_id, count);
        }
    }
}
