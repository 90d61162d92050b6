//! What bounds the memory of leases: how many messages may be out, and how many entries say when leases end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::End;
use crate::config::LeaseBounds;
use crate::sync::{AtomicUsize, Ordering};

/// Entries that are kept before it is asked which of them still mean something.
const FEW: usize = 1024;

/// Counts what all queues keep: what is out, and what waits to be handed out again.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    bounds: LeaseBounds,
    all: Arc<AtomicUsize>,
}

impl Tally {
    pub(super) fn new(bounds: LeaseBounds) -> Self {
        Self { bounds, all: Arc::default() }
    }

    /// The part of one more queue, which keeps nothing yet.
    pub(super) fn part(&self) -> Part {
        Part { tally: self.clone(), kept: 0 }
    }

    pub(super) fn all(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }
}

/// One queue's part of the tally, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Part {
    tally: Tally,
    kept: usize,
}

impl Part {
    pub(super) fn set(&mut self, kept: usize) {
        if kept >= self.kept {
            self.tally.all.fetch_add(kept - self.kept, Ordering::Relaxed);
        } else {
            self.tally.all.fetch_sub(self.kept - kept, Ordering::Relaxed);
        }
        self.kept = kept;
    }

    /// Whether the queue keeps as much as one may.
    pub(super) fn is_full(&self) -> bool {
        self.kept >= self.tally.bounds.per_queue
    }

    /// Whether all queues together keep as much as they may.
    pub(super) fn all_are_full(&self) -> bool {
        self.tally.all() >= self.tally.bounds.all
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// When leases end, the earliest first. An entry whose lease is gone or was extended means nothing: a lease
/// that is extended again and again, or one of hours that is acknowledged at once, leaves one behind each
/// time. So once there are twice as many as there were after the last look, those are thrown away.
#[derive(Debug)]
pub(super) struct Ends {
    heap: BinaryHeap<Reverse<End>>,
    look_at: usize,
}

impl Ends {
    pub(super) fn new() -> Self {
        Self { heap: BinaryHeap::new(), look_at: FEW }
    }

    pub(super) fn push(&mut self, end: End) {
        self.heap.push(Reverse(end));
    }

    pub(super) fn first(&self) -> Option<End> {
        self.heap.peek().map(|&Reverse(end)| end)
    }

    pub(super) fn pop(&mut self) {
        self.heap.pop();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Whether it is time for [`Ends::keep`].
    pub(super) fn is_overgrown(&self) -> bool {
        self.heap.len() >= self.look_at
    }

    /// Throws away what `means_something` does not say yes to.
    pub(super) fn keep(&mut self, means_something: impl Fn(&End) -> bool) {
        let mut ends = std::mem::take(&mut self.heap).into_vec();
        ends.retain(|Reverse(end)| means_something(end));
        // A lease that is extended twice in one instant has two entries that say the same.
        ends.sort_unstable();
        ends.dedup();
        ends.shrink_to(2 * ends.len());
        self.look_at = FEW + 2 * ends.len();
        self.heap = ends.into();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Seat;
    use super::super::lease::LeaseNumber;
    use super::*;

    fn end(until: u64, queue_offset: u64) -> End {
        let seat = Seat { group_id: 1, topic_id: 2, queue: 3 };
        let number = LeaseNumber(queue_offset);
        End { until: Duration::from_secs(until), seat, queue_offset, number }
    }

    #[test]
    fn a_lease_that_is_extended_forever_keeps_few_entries() {
        let mut ends = Ends::new();
        let mut longest = 0;
        for until in 0..100_000 {
            // One of a thousand leases is extended; only its last entry means something.
            ends.push(end(until, until % 1000));
            longest = longest.max(ends.heap.len());
            if ends.is_overgrown() {
                ends.keep(|end| end.until.as_secs() + 1000 > until);
            }
        }
        assert!(longest <= FEW + 2 * 1000, "{longest}");
        // The last thousand are there, in order.
        ends.keep(|end| end.until.as_secs() >= 99_000);
        for until in 99_000..100_000 {
            assert_eq!(ends.first(), Some(end(until, until % 1000)));
            ends.pop();
        }
        assert!(ends.is_empty());
    }

    #[test]
    fn what_is_said_twice_is_kept_once() {
        let mut ends = Ends::new();
        (0..FEW as u64).for_each(|_| ends.push(end(1, 1)));
        assert!(ends.is_overgrown());
        ends.keep(|_| true);
        assert_eq!(ends.heap.len(), 1);
    }
}
