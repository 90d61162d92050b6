//! The fold of what consumers gave back: nacks, dead letters, redrives; and of resets, which make some of
//! that void.

use super::fold::{Dispatcher, Fold, FoldError, pointer_length};
use super::groups::{Group, Retries};
use super::progress::QueueProgress;
use super::system_topics::{Belongs, Holds};
use super::topics::Topic;
use crate::consumequeue::Unit;
use crate::message::record::{Acked, DeadLetter, Nack, OffsetsReset, Record, Redrive};
use crate::message::timer_tag::TimerTag;
use std::sync::Arc;

impl Fold {
    pub(super) fn fold_nack(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let nack = Nack::decode(record)?;
        let group = self.group_of(nack.group_id)?;
        let topic_id = nack.origin.topic_id;
        if self.topics.by_id(topic_id).is_none() {
            return Ok(());
        }
        let Acked { topic_id: place, queue, queue_offset } = nack.place;
        let key = (place, queue);
        let Some(tag) = nack.tag else {
            let mut progress = group.progress.lock();
            let queue = progress.entry(key).or_default();
            queue.delayed(queue_offset, nack.attempt, nack.comes_at);
            return Ok(());
        };
        let (id, at) = (TimerTag(tag).topic_id(), record.header.offset);
        let retries = self.system_topic(id, Holds::Retries, &group, topic_id, at);
        group.progress.lock().entry(key).or_default().give_back(queue_offset);
        let (offset, length) = (at, pointer_length(record));
        let unit = Unit { offset, length, tag_hash: 0, time: nack.comes_at };
        self.file_timer_unit(dispatcher, unit);
        let retention_ms = self.retention_of(dispatcher, &retries);
        for needed in [nack.origin.cause, nack.origin.message] {
            dispatcher.keep.needed(needed, nack.comes_at, retention_ms);
        }
        dispatcher.keep.waits(offset);
        retries.scheduled();
        Ok(())
    }

    pub(super) fn fold_dead_letter(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let letter = DeadLetter::decode(record)?;
        let group = self.group_of(letter.group_id)?;
        let topic_id = letter.origin.topic_id;
        if self.topics.by_id(topic_id).is_none() {
            return Ok(());
        }
        let at = record.header.offset;
        self.system_topic(letter.dead_letters, Holds::DeadLetters, &group, topic_id, at);
        let Acked { topic_id, queue, queue_offset } = letter.place;
        let mut progress = group.progress.lock();
        progress.entry((topic_id, queue)).or_default().give_back(queue_offset);
        drop(progress);
        let (length, time) = (pointer_length(record), letter.at);
        let unit = Unit { offset: at, length, tag_hash: 0, time };
        dispatcher.batch.add((letter.dead_letters, 0), letter.queue_offset, unit);
        Ok(())
    }

    pub(super) fn fold_redrive(
        &self,
        dispatcher: &mut Dispatcher,
        record: &Record<'_>,
    ) -> Result<(), FoldError> {
        let redrive = Redrive::decode(record)?;
        let group = self.group_of(redrive.group_id)?;
        let letters = self.topics.by_id(redrive.dead_letters);
        let Some(belongs) = letters.and_then(|topic| topic.belongs) else { return Ok(()) };
        let at = record.header.offset;
        let (id, topic_id) = (redrive.retry_topic, belongs.topic_id);
        let retries = self.system_topic(id, Holds::Retries, &group, topic_id, at);
        let retention_ms = self.retention_of(dispatcher, &retries);
        for one in &redrive.redriven {
            for needed in [one.record, one.message] {
                dispatcher.keep.needed(needed, redrive.at, retention_ms);
            }
        }
        let mut progress = group.progress.lock();
        let taken = progress.entry((redrive.dead_letters, 0)).or_default();
        for (place, one) in (redrive.first_queue_offset..).zip(&redrive.redriven) {
            taken.ack(one.queue_offset);
            let (offset, length) = (one.record, one.length);
            // No attempt was made.
            let unit = Unit { offset, length, tag_hash: 0, time: redrive.at };
            dispatcher.batch.add((id, 0), place, unit);
        }
        Ok(())
    }

    pub(super) fn fold_offsets_reset(&self, record: &Record<'_>) -> Result<(), FoldError> {
        let reset = OffsetsReset::decode(record)?;
        let topic_id = reset.topic_id;
        if self.topics.by_id(topic_id).is_none() {
            return Ok(());
        }
        let group = self.group_of(reset.group_id)?;
        let queues = self.topics.of_topic(topic_id).into_iter();
        let belongs = Belongs { holds: Holds::Retries, group_id: group.id, topic_id };
        let retries = queues.into_iter().find(|queue| queue.belongs == Some(belongs));
        // Of those that are acknowledged nothing comes any more.
        let left = |retries: &Topic| {
            let acked = group.progress((retries.id, 0), QueueProgress::acked);
            retries.pending() > 0 || acked < reset.retries_end
        };
        let retries = match retries.is_some_and(|retries| left(&retries)) {
            true => Retries::Perhaps,
            false => Retries::None,
        };
        group.fold_reset(&reset, record.header.offset, retries);
        Ok(())
    }

    fn group_of(&self, id: u32) -> Result<Arc<Group>, FoldError> {
        self.groups.by_id(id).ok_or(FoldError::UnknownGroup(id))
    }
}
