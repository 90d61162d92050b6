//! What is still to be acknowledged of a topic.

use std::collections::BTreeSet;

use super::Consumers;
use crate::store::Topic;

impl Consumers {
    /// How many messages of the topic the groups that have read from it have still to acknowledge, all
    /// groups together.
    pub fn unacked(&self, topic: &Topic) -> u64 {
        let leases = self.leases.lock();
        let reading = leases.queues.keys().filter(|seat| seat.topic_id == topic.id);
        let mut readers: BTreeSet<u32> = reading.map(|seat| seat.group_id).collect();
        drop(leases);
        let groups = self.store.groups();
        let has_read = groups.iter().filter(|group| group.has_read(topic.id));
        readers.extend(has_read.map(|group| group.id));
        let mut unacked = 0;
        for group in groups.iter().filter(|group| readers.contains(&group.id)) {
            for (number, queue) in (0..).zip(&topic.queues) {
                let committed = queue.units.committed();
                unacked += group.progress((topic.id, number), |progress| {
                    committed.saturating_sub(progress.acked())
                });
            }
        }
        unacked
    }
}
