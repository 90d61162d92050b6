//! What is pending: pages of it, how much of it when, and its end by the thousand.
//!
//! Each of these walks the wheel, on a blocking thread and at most [`WALKS`] at once, so that whoever
//! lists everything over and over does not take the cores from what fires. Before it walks it waits until
//! what was accepted so far is in the wheel: a message whose put was answered is in the list.

use std::ops::Range;
use std::sync::Arc;

use super::{Inner, MessageView, Service, Unavailable, blocking};
use crate::clock::Timestamp;
use crate::message::{State, TopicName};
use crate::producer::{self, CancelAnswer, Cancelled, Listed, Query, WhenMatched};
use crate::store::Topic;
use crate::timer::pending::{Timeline, TimelineError, WalkError};

/// Walks at the same time; others wait for their turn.
pub(super) const WALKS: usize = 4;

/// Most buckets of a timeline.
pub const MAX_BUCKETS: u64 = 1000;

/// How much a timeline spans unless its end is given.
const TIMELINE_MS: u64 = 60 * 60 * 1000;

/// Which of the pending are meant: all that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduledQuery {
    pub topic: Option<TopicName>,
    /// What one of the message's keys begins with.
    pub key: Option<String>,
    pub tag: Option<String>,
    /// The first moment that is meant.
    pub from: Option<Timestamp>,
    /// The first moment that is not.
    pub to: Option<Timestamp>,
}

/// Some of what is pending, in the order of the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledPage {
    pub items: Vec<MessageView>,
    /// Asks for the page after this one. A page without items may have one.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineRequest {
    pub topic: Option<TopicName>,
    /// `None` is now.
    pub from: Option<Timestamp>,
    /// `None` is an hour after `from`.
    pub to: Option<Timestamp>,
    pub bucket_ms: u64,
}

/// What a bulk cancel has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkCancelled {
    pub matched: u64,
    /// These will never be delivered.
    pub cancelled: u64,
    /// These fired before their cancel came to them.
    pub already_delivered: u64,
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ScheduledError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no topic {topic}")]
    TopicNotFound { topic: TopicName },
    #[error("the cursor is not one of this server, or was given for another query")]
    InvalidCursor,
    #[error("the range is empty: to must be after from")]
    EmptyRange,
    #[error(transparent)]
    Timeline(#[from] TimelineError),
}

impl Service {
    /// A page of at most `limit` messages that wait, from the start or from `cursor` on.
    ///
    /// # Errors
    ///
    /// [`ScheduledError`] says what is wrong with the query.
    pub async fn scheduled(
        &self,
        query: &ScheduledQuery,
        cursor: Option<String>,
        limit: usize,
    ) -> Result<ScheduledPage, ScheduledError> {
        self.check_ready()?;
        let query = self.query(query)?;
        let decided = self.walk(move |Inner { engine, clock, .. }| {
            let (store, pending) = (&engine.store, &engine.pending);
            producer::list_scheduled(store, pending, &query, cursor.as_deref(), limit, &**clock)
        });
        let decided = decided.await??;
        self.durable(&decided.receipt).await?;
        let producer::Page { items, next } = decided.answer;
        let items = items.into_iter().map(|listed| self.listed(listed)).collect();
        Ok(ScheduledPage { items, next_cursor: next })
    }

    /// How many messages wait for each stretch of time.
    ///
    /// # Errors
    ///
    /// [`ScheduledError`] says what is wrong with the request.
    pub async fn timeline(&self, request: &TimelineRequest) -> Result<Timeline, ScheduledError> {
        self.check_ready()?;
        let topic = self.topic_of(request.topic.as_ref())?;
        let from = request.from.unwrap_or_else(|| self.0.clock.now().wall);
        let latest = Timestamp::from_millis(u64::MAX);
        let to = request.to.unwrap_or_else(|| from.checked_add(TIMELINE_MS).unwrap_or(latest));
        let range = not_empty(from..to)?;
        let least_ms = self.0.engine.pending.precision_ms();
        let empty = Timeline::empty(&range, request.bucket_ms, least_ms, MAX_BUCKETS)?;
        let filled = self.walk(move |Inner { engine, clock, .. }| {
            engine.pending.fill(empty, range, topic.map(|topic| topic.id), &**clock)
        });
        let timeline = filled.await??;
        self.durable(&self.0.engine.store.log().latest_receipt()).await?;
        Ok(timeline)
    }

    /// Cancels messages that wait, or counts them in a dry run: a bounded number at a time, from the start
    /// or from `cursor` on.
    ///
    /// # Errors
    ///
    /// [`ScheduledError`]; when it is [`ScheduledError::Unavailable`] some may be cancelled.
    pub async fn cancel_scheduled(
        &self,
        query: &ScheduledQuery,
        cursor: Option<String>,
        when_matched: WhenMatched,
    ) -> Result<BulkCancelled, ScheduledError> {
        self.check_ready()?;
        let query = self.query(query)?;
        let decided = self.walk(move |Inner { engine, clock, .. }| {
            let (store, pending) = (&engine.store, &engine.pending);
            let cursor = cursor.as_deref();
            producer::cancel_scheduled(store, pending, &query, cursor, when_matched, &**clock)
        });
        let decided = decided.await??;
        self.durable(&decided.receipt).await?;
        let producer::BulkCancel { matched, selected, next } = decided.answer;
        let count = |wanted: fn(CancelAnswer) -> bool| {
            selected.iter().filter(|selected| wanted(selected.answer)).count() as u64
        };
        let first = CancelAnswer::Cancelled(Cancelled::First);
        self.0.metrics.cancelled(selected.iter().filter(|s| s.answer == first).count() as u64);
        Ok(BulkCancelled {
            matched,
            cancelled: count(|answer| matches!(answer, CancelAnswer::Cancelled(_))),
            already_delivered: count(|answer| answer == CancelAnswer::AlreadyDelivered),
            next_cursor: next,
        })
    }

    /// Does `work` on a blocking thread when the timer has come to what is visible, and it is its turn.
    async fn walk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, Unavailable> {
        let permit = Arc::clone(&self.0.walks).acquire_owned().await;
        let service = self.clone();
        blocking(move || {
            // Given back when the work is done, though the caller may be gone by then.
            let _permit = permit;
            let Inner { engine, clock, .. } = &*service.0;
            if !engine.pending.catch_up(&**clock) {
                tracing::warn!("the timer is behind: what was put last may not be listed yet");
            }
            work(&service.0)
        })
        .await
    }

    fn query(&self, query: &ScheduledQuery) -> Result<Query, ScheduledError> {
        let topic = self.topic_of(query.topic.as_ref())?;
        let from = query.from.unwrap_or(Timestamp::from_millis(0));
        let to = query.to.unwrap_or(Timestamp::from_millis(u64::MAX));
        Ok(Query {
            topic_id: topic.map(|topic| topic.id),
            key: query.key.clone(),
            tag: query.tag.clone(),
            deadlines: not_empty(from..to)?,
        })
    }

    fn topic_of(&self, name: Option<&TopicName>) -> Result<Option<Arc<Topic>>, ScheduledError> {
        let Some(name) = name else { return Ok(None) };
        // The system's holding topics are no topics to those outside.
        let ours = TopicName::writable(name.as_str()).ok();
        match ours.and_then(|name| self.0.engine.store.topic(&name)) {
            Some(topic) => Ok(Some(topic)),
            None => Err(ScheduledError::TopicNotFound { topic: name.clone() }),
        }
    }

    fn listed(&self, listed: Listed) -> MessageView {
        let Listed { found, deadline } = listed;
        let message = found.message;
        MessageView {
            id: self.0.engine.store.ids().message_id(found.offset, message.nonce),
            topic: message.topic,
            state: State::Scheduled,
            born_at: message.born_at,
            deliver_at: deadline,
            fired_at: None,
            attributes: message.attributes,
            timer_key: message.timer.map(|timer| timer.key),
            body: None,
        }
    }
}

fn not_empty(range: Range<Timestamp>) -> Result<Range<Timestamp>, ScheduledError> {
    if range.start < range.end { Ok(range) } else { Err(ScheduledError::EmptyRange) }
}

impl From<WalkError> for ScheduledError {
    fn from(error: WalkError) -> Self {
        Self::Unavailable(Unavailable::of(error))
    }
}

impl From<producer::ScheduledError> for ScheduledError {
    fn from(error: producer::ScheduledError) -> Self {
        match error {
            producer::ScheduledError::Cursor => Self::InvalidCursor,
            producer::ScheduledError::Walk(error) => error.into(),
            producer::ScheduledError::Read(error) => Self::Unavailable(Unavailable::of(error)),
            producer::ScheduledError::Cancel(producer::ChangeError::Append(error)) => {
                Self::Unavailable(error.into())
            }
            producer::ScheduledError::Cancel(error) => Self::Unavailable(Unavailable::of(error)),
        }
    }
}
