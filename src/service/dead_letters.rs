//! Dead letters: listed, and given to their group again.

use super::answers::{DeadLetterPage, DeadLetterView, DeadLettersError, MessageView};
use super::{Inner, Service, Unavailable, blocking};
use crate::consumer::{DeadMessage, Mark, Wanted};
use crate::message::{GroupName, State, TopicName};
use crate::store::Group;
use std::sync::Arc;
use std::time::Duration;

/// How long a request waits for dispatch to come to what was appended before it.
const DISPATCH_WAIT: Duration = Duration::from_secs(5);
/// Topic id 4, offset 8.
const CURSOR_LENGTH: usize = 12;

impl Service {
    /// A page of the group's dead letters: topic by topic, oldest first.
    ///
    /// # Errors
    ///
    /// [`DeadLettersError`].
    pub async fn dead_letters(
        &self,
        name: &GroupName,
        cursor: Option<String>,
        max: usize,
    ) -> Result<DeadLetterPage, DeadLettersError> {
        let group = self.group_that_reads(name).await?;
        let ids = self.0.engine.store.ids();
        let from = match cursor {
            None => Mark::default(),
            Some(text) => ids
                .read_cursor::<CURSOR_LENGTH>(&text)
                .map(|fields| mark(&fields))
                .ok_or(DeadLettersError::InvalidCursor)?,
        };
        let service = self.clone();
        let page = blocking(move || {
            service.catch_up();
            service.0.engine.consumers.dead_letters(&group, from, max)
        });
        let (letters, next) = page.await?.map_err(Unavailable::from)?;
        let next_cursor = next.map(|mark| {
            let (topic_id, offset) = (mark.topic_id.to_be_bytes(), mark.offset.to_be_bytes());
            ids.write_cursor(&[&topic_id[..], &offset[..]].concat())
        });
        Ok(DeadLetterPage { letters: letters.into_iter().map(view).collect(), next_cursor })
    }

    /// Makes dead letters readable by the group again, attempts from 1; answers how many.
    ///
    /// # Errors
    ///
    /// [`DeadLettersError`]; some may be redriven then, and are not a second time.
    pub async fn redrive(
        &self,
        name: &GroupName,
        ids: Option<Vec<String>>,
        topic: Option<TopicName>,
    ) -> Result<u64, DeadLettersError> {
        let group = self.group_that_reads(name).await?;
        let topic_id = match topic {
            None => None,
            Some(topic) => match self.0.engine.store.topic(&topic) {
                Some(there) => Some(there.id),
                None => return Err(DeadLettersError::TopicNotFound { topic }),
            },
        };
        let service = self.clone();
        let redriven = blocking(move || {
            service.catch_up();
            let Inner { engine, clock, .. } = &*service.0;
            engine.consumers.redrive(&group, &Wanted { ids, topic_id }, clock.now())
        });
        let (count, receipt) = redriven.await?.map_err(Unavailable::from)?;
        self.durable(&receipt).await?;
        Ok(count)
    }

    async fn group_that_reads(&self, name: &GroupName) -> Result<Arc<Group>, DeadLettersError> {
        self.check_ready()?;
        let group = self.0.engine.store.group(name);
        let group = group.ok_or_else(|| DeadLettersError::GroupNotFound { group: name.clone() })?;
        self.durable_so_far().await?;
        Ok(group)
    }

    /// Waits until what was answered before is in the queues.
    fn catch_up(&self) {
        let store = &self.0.engine.store;
        store.wait_for_dispatch(store.log().visible(), DISPATCH_WAIT);
    }
}

fn mark(fields: &[u8; CURSOR_LENGTH]) -> Mark {
    let [a, b, c, d, rest @ ..] = *fields;
    Mark { topic_id: u32::from_be_bytes([a, b, c, d]), offset: u64::from_be_bytes(rest) }
}

fn view(dead: DeadMessage) -> DeadLetterView {
    DeadLetterView {
        queue: dead.queue,
        queue_offset: dead.queue_offset,
        attempts: dead.attempts,
        reason: dead.reason,
        dead_at: dead.dead_at,
        message: MessageView {
            id: dead.message_id,
            topic: dead.topic,
            state: State::Ready,
            born_at: dead.born_at,
            deliver_at: dead.deliver_at,
            fired_at: dead.fired_at,
            attributes: dead.attributes,
            timer_key: None,
            body: None,
        },
    }
}
