//! The first leg of a walk: what waits in the delay levels, queue by queue, each from its head on.
//!
//! It comes before the wheel: what is moved out of a level while the walk rests waits in the wheel, and is
//! not missed there. A unit does not say whose topic it is of, so the head of its record is read.

use timerlog::Entry;

use super::place::NextRecord;
use super::walk::{Walk, WalkError};
use super::{Budget, Place};
use crate::commitlog::ReadError;
use crate::consumequeue::Unit;
use crate::message::record::Message;
use crate::message::timer_tag::TimerTag;
use crate::store::LEVEL_TOPIC_ID;

/// What reading a record costs, in records of the wheel.
const A_RECORD: u64 = 4;

impl Walk<'_> {
    /// Looks at the next unit of the levels; answers it, if it is to be given out. At their end the walk
    /// stands at the first slot.
    pub(super) fn step_level(
        &mut self,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Entry>, WalkError> {
        let store = &self.pending.store;
        let topic = store.topic_by_id(LEVEL_TOPIC_ID);
        let queue = u16::try_from(self.place.slot).ok();
        let level =
            queue.and_then(|queue| topic.as_ref()?.queue(queue).map(|level| (queue, level)));
        let Some((queue, level)) = level else {
            let start = self.pending.slot_of(self.wanted.deadlines.start.as_millis());
            self.place = Place::near(start, None);
            return Ok(None);
        };
        let incarnation = store.incarnation();
        let next = self.place.next.filter(|next| next.incarnation == incarnation);
        // Everything before the head is settled.
        let head = store.levels().released(queue);
        let place = next.map_or(head, |next| next.position.max(head));
        if place >= level.units.committed() {
            self.place = Place::level(u64::from(queue) + 1);
            return Ok(None);
        }
        let entry = self.entry(&level.units.unit(place)?, budget)?;
        self.place.next = Some(NextRecord { position: place + 1, incarnation });
        Ok(entry)
    }

    /// The unit as an entry, if it is pending and wanted.
    fn entry(&self, unit: &Unit, budget: &mut Budget<'_>) -> Result<Option<Entry>, WalkError> {
        let tag_hash = unit.tag_hash;
        // What the unit says is asked first: most are left out without a read.
        let in_question = !unit.is_hole() && self.wanted.may_take(unit.time, tag_hash);
        if !in_question || self.is_settled(unit.offset)? {
            return Ok(None);
        }
        budget.spend(A_RECORD);
        let mut bytes = Vec::new();
        let head = match self.pending.store.log().reader().head(unit.offset, &mut bytes) {
            Ok(record) => Message::decode_fixed(&record).ok(),
            // The scan tells of it.
            Err(ReadError::Record { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let Some(head) = head else { return Ok(None) };
        let tag = TimerTag::level(head.topic_id, head.queue, tag_hash).0;
        let (deadline, offset) = (unit.time.as_millis(), unit.offset.get());
        let entry = Entry { deadline, offset, length: unit.length, tag };
        Ok((self.wanted.takes(&entry) && self.has_topic(tag)).then_some(entry))
    }
}
