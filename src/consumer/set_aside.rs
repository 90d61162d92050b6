//! What was leased and is not to be handed out: its record is damaged, or its tag has the hash of another.

use super::lease::Granted;
use super::receive::ReceiveError;
use super::{Consumers, Seat};
use crate::clock::Now;
use crate::consumequeue::Unit;
use crate::message::record::{Ack, Acked, DamageReason, Quarantine};
use crate::store::Group;

impl Consumers {
    /// What cannot be read is quarantined, what is not to be read is not, and both count as consumed by the
    /// group: each is lost alone.
    pub(super) fn set_aside(
        &self,
        group: &Group,
        lost: &[(Seat, Granted, Option<Unit>)],
        now: Now,
    ) -> Result<(), ReceiveError> {
        let damaged: Vec<_> = lost
            .iter()
            .filter_map(|(_, _, unit)| *unit)
            .map(|unit| {
                let (from, length) = (unit.offset, u64::from(unit.length));
                Quarantine { from, length, reason: DamageReason::Body }.encode()
            })
            .collect();
        let mut leases = self.leases.lock();
        // After a reset in between, they will be found again.
        let still_held = |(seat, granted, _): &&(Seat, Granted, Option<Unit>)| {
            let queue = leases.queues.get(seat);
            queue.is_some_and(|queue| queue.held(granted.queue_offset, granted.number).is_some())
        };
        let lost: Vec<_> = lost.iter().filter(still_held).collect();
        let acked = lost.iter().map(|(seat, granted, _)| {
            let (topic_id, queue) = (seat.topic_id, seat.queue);
            Acked { topic_id, queue, queue_offset: granted.queue_offset }.into()
        });
        let ack = Ack { group_id: group.id, at: now.wall, acked: acked.collect() }.encode();
        let room =
            ack.len() + damaged.iter().map(crate::message::record::Encoded::len).sum::<usize>();
        let topics = self.topics_by_id(lost.iter().map(|(seat, ..)| seat.topic_id));
        let mut turn = self.store.log().turn_for_accepted(room)?;
        for record in damaged {
            turn.append(record);
        }
        let offset = turn.append(ack);
        topics.iter().for_each(|topic| topic.appended(offset));
        drop(turn);
        for (seat, granted, _) in lost {
            leases.queue(group, *seat).acking(granted.queue_offset, granted.number);
            leases.done(group, *seat, self.topic_of(*seat), granted.queue_offset);
        }
        drop(leases);
        self.expiry_signal.raise();
        Ok(())
    }
}
