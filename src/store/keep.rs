//! How long each segment of the log is kept: counted by the fold, asked by retention.
//!
//! ```text
//!   segment   0            1            2            3
//!             free after   free after   free after   free after     the latest of: what was put here + 24 h,
//!             messages 9   messages 7   messages 8   messages 2     what was delivered from here + its retention
//!             waiting 0    waiting 1    waiting 5    waiting 2      causes that no fact has settled yet
//! ```
//!
//! *Free after* is what the fold knows of times, *waiting* a count that tells where it is worth while to look: what
//! holds a segment is found by reading it ([`retention`](crate::retention)). Topics that were deleted leave what waited
//! in the counts.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::message::offset::Offset;

/// Idempotency keys are good for this long, and so is a record of them, and what it names.
const IDEMPOTENCY_MS: u64 = 24 * 3_600_000;

/// A start that follows so long after the last record was down: what was due meanwhile fires late.
const DOWN_MS: u64 = 600_000;

/// What is known of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentKeep {
    pub free_after: Timestamp,
    /// Records of messages.
    pub messages: u64,
    /// Causes that wait.
    pub waiting: u64,
}

/// Of all segments, by where they begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keep {
    segment_size: u64,
    /// Nothing is counted of what is before.
    begin: Offset,
    /// How long a topic's messages wait for their readers, where it does not say so itself.
    pub(super) retention_ms: u64,
    pub(super) segments: BTreeMap<u64, SegmentKeep>,
    /// The latest time that a record tells.
    pub(super) latest: Timestamp,
    /// After a long time of being down nothing is freed before.
    pub(super) hold_until: Timestamp,
}

impl Keep {
    pub(super) fn new(segment_size: u64, retention_ms: u64) -> Self {
        Self {
            segment_size,
            begin: Offset::ZERO,
            retention_ms,
            segments: BTreeMap::new(),
            latest: Timestamp::default(),
            hold_until: Timestamp::default(),
        }
    }

    fn change(&mut self, at: Offset, change: impl FnOnce(&mut SegmentKeep)) {
        if at >= self.begin {
            let begin = at.get() - at.get() % self.segment_size;
            change(self.segments.entry(begin).or_default());
        }
    }

    /// The segment that holds `at` is needed for `for_ms` after `time`.
    pub(super) fn needed(&mut self, at: Offset, time: Timestamp, for_ms: u64) {
        let until = time.checked_add(for_ms).unwrap_or(Timestamp::from_millis(u64::MAX));
        self.change(at, |segment| segment.free_after = segment.free_after.max(until));
    }

    /// A message was put here, at `time`, or a key that repetitions are known by.
    pub(super) fn put(&mut self, at: Offset, time: Timestamp) {
        self.latest = self.latest.max(time);
        self.needed(at, time, IDEMPOTENCY_MS);
        self.change(at, |segment| segment.messages += 1);
    }

    /// What is at `at` gives a message a moment.
    pub(super) fn waits(&mut self, at: Offset) {
        self.change(at, |segment| segment.waiting += 1);
    }

    /// The cause at `at` is settled.
    pub(super) fn settled(&mut self, at: Offset) {
        self.change(at, |segment| segment.waiting = segment.waiting.saturating_sub(1));
    }

    /// A server was started at `time`.
    pub(super) fn opened(&mut self, time: Timestamp, longest_retention_ms: u64) {
        let down = self.latest.as_millis() > 0 && time.since(self.latest) > DOWN_MS;
        if down && let Some(until) = time.checked_add(longest_retention_ms) {
            self.hold_until = self.hold_until.max(until);
        }
        self.latest = self.latest.max(time);
    }

    /// The log begins at `begin`.
    pub(super) fn forget_below(&mut self, begin: Offset) {
        self.begin = self.begin.max(begin);
        self.segments = self.segments.split_off(&self.begin.get());
    }
}
