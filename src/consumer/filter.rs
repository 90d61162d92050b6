//! The filter at work: which units a turn hands out, which it leaves out, and how that is recorded.
//!
//! A unit has 16 bits of its message's tag; so what a filter leaves out is told without reading the message,
//! but for one in 65,535 of the others, which is found out after reading. What is left out counts as
//! consumed, by runs in an ack record: one record a turn, whatever the turn has passed.

use super::lease::{Granted, Stretch, Verdict};
use super::reading::SubscribeError;
use super::receive::{More, ReceiveError};
use super::{Consumers, Leases, Seat, seat};
use crate::clock::Now;
use crate::consumequeue::{ConsumeQueue, QueueError};
use crate::message::TagFilter;
use crate::message::record::{Ack, Acked, AckedRun};
use crate::store::{Group, Topic};
use timerlog::planted::{self, Fault};

/// Units that one turn may look at, with all leases locked: some tenths of a millisecond.
const UNITS_A_TURN: usize = 2048;

/// What one turn has leased.
pub(super) struct Grants {
    pub(super) granted: Vec<(Seat, Granted)>,
    pub(super) filter: TagFilter,
    pub(super) more: More,
}

/// One turn's look at units.
pub(super) struct Look<'a> {
    filter: &'a TagFilter,
    /// So many units may still be looked at.
    pub(super) left: usize,
    /// The queue could not be read.
    pub(super) failed: Option<QueueError>,
    /// It ended before a unit whose message group is not read yet.
    pub(super) unread: bool,
}

impl<'a> Look<'a> {
    pub(super) fn new(filter: &'a TagFilter) -> Self {
        Self { filter, left: UNITS_A_TURN, failed: None, unread: false }
    }

    pub(super) fn judge(&mut self, units: &ConsumeQueue, offset: u64) -> Verdict {
        if self.filter.admits_everything() {
            return Verdict::HandOut;
        }
        if self.left == 0 || self.failed.is_some() {
            return Verdict::EndOfTurn;
        }
        self.left -= 1;
        match units.unit(offset) {
            Ok(unit) if self.filter.may_admit(unit.tag_hash) => Verdict::HandOut,
            Ok(_) => Verdict::Exclude,
            Err(error) => {
                self.failed = Some(error);
                Verdict::EndOfTurn
            }
        }
    }

    /// Of a retry queue: the filter has admitted it before.
    pub(super) fn judge_retry(&mut self, units: &ConsumeQueue, offset: u64) -> Verdict {
        match units.unit(offset) {
            _ if self.failed.is_some() => Verdict::EndOfTurn,
            Ok(unit) => Verdict::HandOutAgain(u32::from(unit.tag_hash)),
            Err(error) => {
                self.failed = Some(error);
                Verdict::EndOfTurn
            }
        }
    }
}

impl Consumers {
    /// The filter by which the group reads the topic; decided here if it never was.
    pub(super) fn filter(
        &self,
        leases: &mut Leases,
        group: &Group,
        topic: &Topic,
        now: Now,
    ) -> Result<TagFilter, ReceiveError> {
        match leases.subscribe(self, group, topic, None, now.wall) {
            Ok(_) | Err(SubscribeError::Mismatch { .. }) => {}
            Err(SubscribeError::Append(error)) => return Err(error.into()),
        }
        let reading = leases.reading(group, topic.id).as_ref();
        Ok(reading.and_then(|reading| reading.filter.clone()).unwrap_or_default())
    }

    /// Appends what this turn has left out. When the log takes nothing now, it is kept for the next turn.
    pub(super) fn record_excluded(
        &self,
        leases: &mut Leases,
        group: &Group,
        topic: &Topic,
        now: Now,
    ) {
        let seats = (0..).zip(&topic.queues).map(|(queue, _)| seat(group, topic, queue));
        let seats: Vec<_> = seats.collect();
        let mut runs = Vec::new();
        for &seat in &seats {
            if let Some(queue) = leases.queues.get(&seat) {
                queue.excluded().iter().for_each(|&stretch| add_runs(seat, stretch, &mut runs));
            }
        }
        if runs.is_empty() || planted::is(Fault::ExcludedNotRecorded) {
            return;
        }
        let record = Ack { group_id: group.id, at: now.wall, acked: runs }.encode();
        match self.store.log().turn_for_accepted(record.len()) {
            Ok(mut turn) => topic.appended(turn.append(record)),
            Err(error) => {
                tracing::debug!(%error, group = group.name, "what the filter left out waits");
                return;
            }
        }
        for seat in seats {
            if let Some(queue) = leases.queues.get_mut(&seat) {
                queue.excluded_is_recorded();
            }
        }
    }
}

/// A stretch as runs that are short enough for the record.
fn add_runs(seat: Seat, stretch: Stretch, runs: &mut Vec<AckedRun>) {
    let mut offset = stretch.first;
    while offset < stretch.end {
        let count = (stretch.end - offset).min(AckedRun::MAX);
        let more = u16::try_from(count - 1).expect("a run is at most 65536 long");
        let (topic_id, queue) = (seat.topic_id, seat.queue);
        runs.push(AckedRun { first: Acked { topic_id, queue, queue_offset: offset }, more });
        offset += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_told_in_runs_that_fit_the_record() {
        let seat = Seat { group_id: 1, topic_id: 2, queue: 3 };
        for length in [1, 2, AckedRun::MAX - 1, AckedRun::MAX, AckedRun::MAX + 1, 1_000_000] {
            let mut runs = Vec::new();
            add_runs(seat, Stretch { first: 7, end: 7 + length }, &mut runs);
            let mut offset = 7;
            for run in &runs {
                assert_eq!(run.first, Acked { topic_id: 2, queue: 3, queue_offset: offset });
                offset += run.count();
            }
            assert_eq!(offset, 7 + length);
            assert_eq!(runs.len() as u64, length.div_ceil(AckedRun::MAX));
        }
    }
}
