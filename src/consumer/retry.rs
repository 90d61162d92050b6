//! What a group reads of a topic: the topic's own queues, and its retry queue, which takes its turn with
//! them.
//!
//! A retry queue's units have the attempts made in the place of a tag hash: what stands there was admitted
//! by the group's filter before.

use std::sync::Arc;

use super::fifo::Judged;
use super::filter::Look;
use super::lease::Verdict;
use super::receive::ReceiveError;
use super::{Consumers, Lanes, Place, Seat, seat};
use crate::commitlog::ReadError;
use crate::consumequeue::{ConsumeQueue, Unit};
use crate::message::TagFilter;
use crate::message::record::Kind;
use crate::store::{CauseError, Caused, Group, Holds, Queue, Read, Retry, Topic};
use timerlog::planted::{self, Fault};

/// One queue that a group reads.
pub(super) struct Source {
    pub(super) seat: Seat,
    pub(super) queue: Arc<Queue>,
    kind: SourceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourceKind {
    Own,
    Retries,
}

impl Source {
    pub(super) fn units(&self) -> &ConsumeQueue {
        &self.queue.units
    }

    /// What to do with the unit at the cursor.
    pub(super) fn judge(
        &self,
        look: &mut Look<'_>,
        lanes: Option<&mut Lanes>,
        offset: u64,
    ) -> Verdict {
        let verdict = match self.kind {
            SourceKind::Own => look.judge(self.units(), offset),
            SourceKind::Retries => look.judge_retry(self.units(), offset),
        };
        let place = (self.seat, offset);
        match (verdict, lanes) {
            (Verdict::HandOut | Verdict::HandOutAgain(_), Some(lanes)) => {
                match lanes.judge(place) {
                    Judged::As(Verdict::HandOut) => verdict,
                    Judged::As(other) => other,
                    Judged::Full => Verdict::EndOfTurn,
                    Judged::Unread => {
                        look.unread = true;
                        Verdict::EndOfTurn
                    }
                }
            }
            (Verdict::Exclude, Some(lanes)) => {
                lanes.forget_head(place);
                verdict
            }
            (verdict, _) => verdict,
        }
    }
}

impl Consumers {
    /// The queues that the group reads of the topic, the retry queue last.
    pub(super) fn sources(&self, group: &Group, topic: &Topic) -> Vec<Source> {
        let own = (0..).zip(&topic.queues).map(|(number, queue)| Source {
            seat: seat(group, topic, number),
            queue: Arc::clone(queue),
            kind: SourceKind::Own,
        });
        let mut sources: Vec<_> = own.collect();
        let retries = self.store.system_topic(Holds::Retries, group, topic.id);
        sources.extend(retries.map(|retries| Source {
            seat: seat(group, &retries, 0),
            queue: Arc::clone(&retries.queues[0]),
            kind: SourceKind::Retries,
        }));
        sources
    }

    /// Reads to which message groups the next `max` units of each queue belong, with no lock held.
    pub(super) fn read_ahead(
        &self,
        group: &Group,
        topic: &Topic,
        sources: &[Source],
        max: usize,
    ) -> Result<(), ReceiveError> {
        let filter = self.reading(group, topic).and_then(|reading| reading.filter);
        let filter = filter.unwrap_or_default();
        let mut bytes = Vec::new();
        for source in sources {
            for offset in self.unread(group, topic, source, max) {
                let message_group = self.message_group(source, &filter, offset, &mut bytes)?;
                let mut leases = self.leases.lock();
                let passed = leases.queue(group, source.seat).cursor() > offset;
                if !passed {
                    let lanes = leases.lanes.entry((group.id, topic.id)).or_default();
                    lanes.read((source.seat, offset), message_group);
                }
            }
        }
        Ok(())
    }

    /// Of the next units those that were not read ahead.
    fn unread(&self, group: &Group, topic: &Topic, source: &Source, max: usize) -> Vec<u64> {
        let mut guard = self.leases.lock();
        let leases = &mut *guard;
        let end = source.units().committed();
        let next = leases.look(group, source.seat, |state, progress| {
            let mut offsets = Vec::new();
            let mut offset = progress.next_unacked(state.cursor());
            while offset < end && offsets.len() < max {
                offsets.push(offset);
                offset = progress.next_unacked(offset + 1);
            }
            offsets
        });
        let lanes = leases.lanes.entry((group.id, topic.id)).or_default();
        next.into_iter().filter(|&offset| !lanes.is_read((source.seat, offset))).collect()
    }

    fn message_group(
        &self,
        source: &Source,
        filter: &TagFilter,
        offset: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<u64>, ReceiveError> {
        let unit = source.units().unit(offset)?;
        let left_out = source.kind == SourceKind::Own && !filter.may_admit(unit.tag_hash);
        if unit.is_hole() || left_out {
            return Ok(None);
        }
        match self.store.caused(unit.offset, unit.length, Read::HeadOnly, bytes) {
            Ok(caused) => {
                let name = caused.message.attributes.message_group;
                Ok(name.map(|name| xxhash_rust::xxh3::xxh3_64(name.as_bytes())))
            }
            // It is handed out to be found damaged, and set aside.
            Err(CauseError::Read(ReadError::Record { .. })) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the unit at this place of the group's retry queue is from before a reset by which its message
    /// comes in its own queue.
    pub(super) fn is_void(
        &self,
        group: &Group,
        place: u64,
        unit: Unit,
        caused: &Caused<'_>,
    ) -> bool {
        let Some(origin) = caused.origin else { return false };
        let nacked_at = (caused.kind == Kind::Nack).then_some(unit.offset);
        let retry = Retry { place, nacked_at, origin: origin.queue_offset };
        let seat = Seat { group_id: group.id, topic_id: origin.topic_id, queue: origin.queue };
        let mut leases = self.leases.lock();
        leases.look(group, seat, |_, progress| progress.resets().void(retry))
            && !planted::is(Fault::ResetLeavesRetries)
    }

    /// Lets the next one of each message group go whose owner is done. `true` when one was.
    pub(super) fn release(&self) -> bool {
        let mut guard = self.leases.lock();
        let leases = &mut *guard;
        let mut woken = Vec::new();
        for _ in 0..leases.releases.len() {
            let Some(release) = leases.releases.pop_front() else { break };
            let (seat, offset): Place = release.place;
            let Some(group) = self.store.group_by_id(seat.group_id) else { continue };
            let folded = leases.look(&group, seat, |_, progress| progress.is_acked(offset));
            // What is appended may go with the power: then this one comes again, and the next one would have
            // been out before it.
            if !folded && !planted::is(Fault::ReleasedBeforeFold) {
                leases.releases.push_back(release);
                continue;
            }
            let lanes = leases.lanes.get_mut(&(group.id, release.topic_id));
            let next = lanes.and_then(|lanes| lanes.release(release.place));
            if let Some((seat, offset)) = next {
                leases.queue(&group, seat).unpark(offset);
            }
            woken.push((group.id, release.topic_id));
        }
        drop(guard);
        for &(group_id, topic_id) in &woken {
            self.polls.wake(group_id, topic_id, 1);
        }
        !woken.is_empty()
    }
}
