//! How much is pending when: by the counts of the slots, or by their entries.
//!
//! A slot that is counted as a whole counts in the bucket that its beginning lies in, or in the first one
//! if it began before that; far slots are three days wide. What is walked, entry by entry, counts at its
//! own deadline. Walked are the slots in which something was, or could have been, fired already, since
//! their counts are behind until they are emptied; what waits in the delay levels; and everything when a
//! topic is asked for, since slots count all topics together.

use std::ops::Range;
use std::time::Duration;

use super::{Budget, Pending, Place, Step, WalkError, Wanted};
use crate::clock::{Clock, Timestamp};

/// Slots whose counts are copied at once.
const SLOTS_AT_ONCE: usize = 4096;

/// How long chains are walked.
const WALK_TIME: Duration = Duration::from_secs(1);

/// So many become due from `start` on, until the next bucket starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub start: Timestamp,
    pub count: u64,
}

/// What is due when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// All of them, the empty ones too. The last one is cut where the range ends.
    pub buckets: Vec<Bucket>,
    /// `false` when there was more to walk than there was time, and when a far slot of the range is just
    /// being re-filed: then what was filed for its time meanwhile is not in.
    pub complete: bool,
}

/// Why there is no timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimelineError {
    #[error("a bucket is at least {least_ms} ms long")]
    BucketTooShort { least_ms: u64 },
    #[error("this would be {asked} buckets; at most {limit} can be had at once")]
    TooManyBuckets { asked: u64, limit: u64 },
}

impl Timeline {
    /// Empty buckets of `bucket_ms` over `range`.
    ///
    /// # Errors
    ///
    /// [`TimelineError`] when a bucket is shorter than `least_ms`, or there are more than `limit`.
    pub fn empty(
        range: &Range<Timestamp>,
        bucket_ms: u64,
        least_ms: u64,
        limit: u64,
    ) -> Result<Self, TimelineError> {
        if bucket_ms < least_ms.max(1) {
            return Err(TimelineError::BucketTooShort { least_ms });
        }
        let asked = range.end.since(range.start).div_ceil(bucket_ms);
        if asked > limit {
            return Err(TimelineError::TooManyBuckets { asked, limit });
        }
        let start = |index| Timestamp::from_millis(range.start.as_millis() + index * bucket_ms);
        let buckets = (0..asked).map(|index| Bucket { start: start(index), count: 0 });
        Ok(Self { buckets: buckets.collect(), complete: true })
    }

    /// Counts what is due at `at`, or before the first bucket.
    fn add(&mut self, at: Timestamp, count: u64) {
        let after = self.buckets.partition_point(|bucket| bucket.start <= at);
        if let Some(bucket) = self.buckets.get_mut(after.saturating_sub(1)) {
            bucket.count += count;
        }
    }
}

impl Pending {
    /// Fills `timeline`, which is empty and spans `range`, with what is pending, of one topic or of all.
    ///
    /// # Errors
    ///
    /// [`WalkError`] when what must be walked cannot be read.
    pub fn fill(
        &self,
        mut timeline: Timeline,
        range: Range<Timestamp>,
        topic_id: Option<u32>,
        clock: &dyn Clock,
    ) -> Result<Timeline, WalkError> {
        let first = self.slot_of(range.start.as_millis());
        let end = self.slot_of(range.end.as_millis().saturating_sub(1)) + 1;
        let every = topic_id.is_some();
        let wanted = Wanted { topic_id, tag_hash: None, deadlines: range };
        if every {
            let last = end.max(self.opened() + 1) - 1;
            self.fill_by_entries(&mut timeline, wanted, last, clock)?;
            return Ok(timeline);
        }
        let today = self.slot_of(clock.now().wall.as_millis());
        let fired = today.max(self.opened());
        let boundary = self.shared.wheel.lock().far_boundary();
        let walked = fired.min(boundary.saturating_sub(1));
        self.fill_by_entries(&mut timeline, wanted, walked, clock)?;
        self.fill_by_counts(&mut timeline, first.max(walked + 1), end);
        Ok(timeline)
    }

    /// Counts the entries of the slots up to `last` at their own deadlines.
    fn fill_by_entries(
        &self,
        timeline: &mut Timeline,
        wanted: Wanted,
        last: u64,
        clock: &dyn Clock,
    ) -> Result<(), WalkError> {
        let mut budget = Budget::new(clock, WALK_TIME, u64::MAX);
        let mut walk = self.walk_slots(wanted, Place::level(0), last);
        loop {
            match walk.step(&mut budget)? {
                Step::Entry(entry) => timeline.add(Timestamp::from_millis(entry.deadline), 1),
                Step::Paused => {
                    timeline.complete = false;
                    return Ok(());
                }
                Step::End => return Ok(()),
            }
        }
    }

    /// Counts the slots from `first` on, up to the one before `end`, by their counts.
    fn fill_by_counts(&self, timeline: &mut Timeline, first: u64, end: u64) {
        let width = self.far_width;
        let mut at = first;
        // Near slots, and then those from the boundary on: it may move between two looks.
        loop {
            let wheel = self.shared.wheel.lock();
            let boundary = wheel.far_boundary();
            let start = at.max(wheel.read_time());
            let slots = wheel.first_slots_in(start..boundary.min(end), SLOTS_AT_ONCE);
            let Some(&(last, _)) = slots.last() else {
                let far = (first.max(boundary) / width)..end.div_ceil(width);
                let far_slots = wheel.far_slots_in(far.clone());
                let refiled = boundary / width;
                timeline.complete &= !(wheel.is_refiling() && far.contains(&refiled));
                drop(wheel);
                for (slot, state) in far_slots {
                    timeline.add(self.begin_of(slot.saturating_mul(width)), state.count.into());
                }
                return;
            };
            drop(wheel);
            for (slot, state) in slots {
                timeline.add(self.begin_of(slot), state.count.into());
            }
            at = last + 1;
        }
    }

    fn begin_of(&self, slot: u64) -> Timestamp {
        Timestamp::from_millis(slot.saturating_mul(self.precision_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn buckets_begin_at_the_start_and_the_last_is_cut_at_the_end() {
        let mut timeline = Timeline::empty(&(at(500)..at(3600)), 1000, 1000, 1000).unwrap();
        let starts: Vec<_> = timeline.buckets.iter().map(|b| b.start.as_millis()).collect();
        assert_eq!(starts, [500, 1500, 2500, 3500]);
        for ms in [0, 500, 1499, 1500, 3599] {
            timeline.add(at(ms), 1);
        }
        let counts: Vec<_> = timeline.buckets.iter().map(|bucket| bucket.count).collect();
        assert_eq!(counts, [3, 1, 0, 1], "what began before counts in the first");
    }

    #[test]
    fn buckets_are_not_shorter_than_a_slot_and_not_too_many() {
        let empty = |end, bucket| Timeline::empty(&(at(0)..at(end)), bucket, 1000, 10);
        assert_eq!(empty(1, 999), Err(TimelineError::BucketTooShort { least_ms: 1000 }));
        assert_eq!(empty(1, 0), Err(TimelineError::BucketTooShort { least_ms: 1000 }));
        assert_eq!(empty(10_000, 1000).unwrap().buckets.len(), 10);
        let too_many = TimelineError::TooManyBuckets { asked: 11, limit: 10 };
        assert_eq!(empty(10_001, 1000), Err(too_many));
        assert_eq!(empty(u64::MAX, u64::MAX).unwrap().buckets.len(), 1);
    }
}
