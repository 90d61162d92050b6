//! Topics: made, set, listed, deleted.

use std::sync::Arc;
use std::time::Duration;

use super::{Service, TopicError, TopicView, Unavailable, blocking};
use crate::message::TopicName;
use crate::store::{self, DeleteError, Force, Topic, TopicChange};

/// How long a deletion waits for dispatch to count what was appended last.
const DISPATCH_WAIT: Duration = Duration::from_secs(5);

impl Service {
    /// Makes the topic, or sets it to something else; answers what it is then, and whether it was made.
    ///
    /// # Errors
    ///
    /// [`TopicError`]; nothing was changed then.
    pub async fn set_topic(
        &self,
        name: &TopicName,
        change: TopicChange,
    ) -> Result<(TopicView, bool), TopicError> {
        self.check_open()?;
        let (service, name) = (self.clone(), name.clone());
        // Files are made for new queues.
        let changed = blocking(move || {
            let inner = &*service.0;
            inner.engine.store.set_topic(&name, change, inner.default_queues, service.now())
        })
        .await??;
        self.durable(&changed.receipt).await?;
        Ok((view(&changed.topic), changed.made))
    }

    /// All topics, by name.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] when the store has failed.
    pub fn topics(&self) -> Result<Vec<TopicView>, Unavailable> {
        self.check_ready()?;
        Ok(self.0.engine.store.topics().iter().map(view).collect())
    }

    /// # Errors
    ///
    /// [`TopicError::NotFound`] when there is none of this name.
    pub fn topic(&self, name: &TopicName) -> Result<TopicView, TopicError> {
        self.check_ready()?;
        let not_found = || TopicError::NotFound { topic: name.clone() };
        Ok(view(&self.0.engine.store.topic(name).ok_or_else(not_found)?))
    }

    /// Deletes the topic: nothing of it is delivered from then on.
    ///
    /// # Errors
    ///
    /// [`TopicError::NotEmpty`] without force, when something is still to be delivered or acknowledged.
    pub async fn delete_topic(&self, name: &TopicName, force: Force) -> Result<(), TopicError> {
        self.check_ready()?;
        let store = &self.0.engine.store;
        loop {
            let consumers = &self.0.engine.consumers;
            match store.delete_topic(name, force, |topic| consumers.unacked(topic), self.now()) {
                Ok((receipt, topic)) => {
                    self.durable(&receipt).await?;
                    consumers.topic_deleted(&topic);
                    return Ok(());
                }
                Err(DeleteError::NotCounted) => {
                    let (service, end) = (self.clone(), store.log().end());
                    self.durable(&store.log().latest_receipt()).await?;
                    let caught_up = blocking(move || {
                        service.0.engine.store.wait_for_dispatch(end, DISPATCH_WAIT)
                    });
                    if !caught_up.await? {
                        return Err(Unavailable::Overloaded.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn view(topic: &Arc<Topic>) -> TopicView {
    let queues = topic.queues.iter().map(|queue| (0, queue.units.committed()));
    TopicView {
        name: topic.name.clone(),
        settings: topic.settings,
        pending: topic.pending(),
        queues: queues.collect(),
    }
}

impl From<store::TopicError> for TopicError {
    fn from(error: store::TopicError) -> Self {
        match error {
            store::TopicError::TypeFixed { topic } => Self::TypeFixed { topic },
            store::TopicError::QueuesFixed { topic, has } => Self::QueuesFixed { topic, has },
            store::TopicError::Make(error) => Self::Unavailable(error.into()),
        }
    }
}

impl From<DeleteError> for TopicError {
    fn from(error: DeleteError) -> Self {
        match error {
            DeleteError::NotFound(topic) => Self::NotFound { topic },
            DeleteError::NotEmpty { pending, unacked } => Self::NotEmpty { pending, unacked },
            DeleteError::NotCounted => Self::Unavailable(Unavailable::Overloaded),
            DeleteError::Append(error) => Self::Unavailable(error.into()),
        }
    }
}
