//! What can be set of a consumer group.

use std::collections::BTreeMap;
use std::time::Duration;

use super::TagFilter;

/// Where a group begins with a topic that it has not read before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartFrom {
    #[default]
    Earliest,
    /// With what is put, or fires, after the group's first receive of the topic.
    Latest,
}

/// The settings of a group. What may change later, and what a change means, is said at each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// Messages of a message group come one after the other. Fixed once the group has begun to read.
    pub ordered: bool,
    /// How often a message is handed out before it is a dead letter. A change counts for whatever
    /// comes back after it.
    pub max_attempts: u32,
    /// How long a message that was not acknowledged waits, by attempt; the last counts for all that
    /// follow. As above.
    pub backoff_ms: Vec<u64>,
    /// How long leases last that do not say otherwise. A change counts for new leases.
    pub invisible_for_ms: u64,
    /// Counts for topics that the group has not read yet: where it has begun elsewhere stays.
    pub start_from: StartFrom,
    /// By name of topic, for topics that the group may not have read yet. From the first receive of a
    /// topic on its filter is fixed: what it left out is consumed, and no other filter brings it back.
    pub filters: BTreeMap<String, TagFilter>,
}

impl GroupSettings {
    pub const MAX_ATTEMPTS: u32 = 16;
    pub const INVISIBLE_FOR_MS: u64 = 30_000;
    /// The delay levels from 3 up, as RocketMQ retries.
    pub const BACKOFF_MS: [u64; 16] = [
        10_000, 30_000, 60_000, 120_000, 180_000, 240_000, 300_000, 360_000, 420_000, 480_000,
        540_000, 600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000,
    ];

    /// How long a message waits after the attempt numbered `attempt`, from 1.
    pub fn backoff(&self, attempt: u32) -> Duration {
        let step = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        let last = self.backoff_ms.len().saturating_sub(1);
        Duration::from_millis(self.backoff_ms.get(step.min(last)).copied().unwrap_or(0))
    }
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            ordered: false,
            max_attempts: Self::MAX_ATTEMPTS,
            backoff_ms: Self::BACKOFF_MS.to_vec(),
            invisible_for_ms: Self::INVISIBLE_FOR_MS,
            start_from: StartFrom::default(),
            filters: BTreeMap::new(),
        }
    }
}
