//! Timers by the caller's own key.

use super::{LookupError, MessageView, Service, TimerAccepted, TimerError, Unavailable, WithBody};
use crate::message::{NewMessage, TopicName};
use crate::producer::{self, ChangeError, Found, IfExists, TimerPut};

impl Service {
    /// Puts the timer of `key`, in place of the one that waits under it.
    ///
    /// # Errors
    ///
    /// [`TimerError::Exists`] when one waits that was to be left alone. Nothing was stored then.
    pub async fn put_timer(
        &self,
        topic: &TopicName,
        key: &str,
        message: NewMessage,
        if_exists: IfExists,
    ) -> Result<TimerAccepted, TimerError> {
        self.check_open()?;
        let (topic, key) = (topic.clone(), key.to_owned());
        let put = self
            .decide::<_, _, TimerError>(move |service| {
                let engine = &service.0.engine;
                let (nonce, now) = (engine.nonce(), service.now());
                let message = message.clone();
                let (store, settings) = (&engine.store, service.0.put);
                producer::put_timer(store, settings, &topic, &key, message, if_exists, nonce, now)
            })
            .await?;
        match put {
            TimerPut::Exists => Err(TimerError::Exists),
            TimerPut::Put { answer, replaced } => {
                self.0.metrics.accepted(1);
                if replaced.is_some() {
                    self.0.metrics.cancelled(1);
                }
                Ok(TimerAccepted { accepted: self.accepted(answer), replaced })
            }
        }
    }

    /// What is known of the timer that was put under `key` last.
    ///
    /// # Errors
    ///
    /// [`TimerError::NotFound`] when none was.
    pub async fn timer(&self, topic: &TopicName, key: &str) -> Result<MessageView, TimerError> {
        let found = self.find_timer(topic, key).await?;
        self.view(found, WithBody::No).await.map_err(|error| match error {
            LookupError::Unavailable(error) => error.into(),
            LookupError::NotFound | LookupError::Damaged { .. } => TimerError::NotFound,
        })
    }

    /// Cancels the timer of `key`. `Ok`, with its id, means that it will never be delivered.
    ///
    /// # Errors
    ///
    /// [`TimerError::AlreadyDelivered`] when it is on its topic.
    pub async fn cancel_timer(&self, topic: &TopicName, key: &str) -> Result<String, TimerError> {
        self.check_ready()?;
        let not_found = || TimerError::NotFound;
        let named = self.0.engine.store.topic(topic).ok_or_else(not_found)?;
        let key = key.to_owned();
        let answer = self
            .decide::<_, _, TimerError>(move |service| {
                let store = &service.0.engine.store;
                // Nobody puts another timer between the look-up and the cancel.
                let _alone = store.stripes().timer(store.keys().timer(named.id, &key));
                let found = producer::find_timer(store, &named, &key)?;
                let Some(found) = found else { return Err(ChangeError::Unknown) };
                let decided = producer::cancel(store, &found, service.now())?;
                Ok(producer::Decided {
                    answer: (found.id(store), decided.answer),
                    receipt: decided.receipt,
                })
            })
            .await?;
        self.cancelled(answer.1).map(|()| answer.0).ok_or(TimerError::AlreadyDelivered)
    }

    async fn find_timer(&self, topic: &TopicName, key: &str) -> Result<Found, TimerError> {
        self.check_ready()?;
        let named = self.0.engine.store.topic(topic).ok_or(TimerError::NotFound)?;
        let key = key.to_owned();
        let found: Option<Found> = self
            .look(move |service| producer::find_timer(&service.0.engine.store, &named, &key))
            .await
            .map_err(|error: Unavailable| TimerError::from(error))?;
        found.ok_or(TimerError::NotFound)
    }
}

impl From<ChangeError> for TimerError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Unknown => Self::NotFound,
            ChangeError::TooFarAhead | ChangeError::TransactionOpen | ChangeError::Look(_) => {
                Self::Unavailable(Unavailable::of(error))
            }
            ChangeError::Append(error) => Self::Unavailable(error.into()),
        }
    }
}
