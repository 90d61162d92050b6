//! Messages: put, looked at, moved, fired, cancelled, found by key.

use sha2::{Digest, Sha256};

use super::{
    Accepted, ChangeError, LookupError, MessageView, PutError, Puts, SearchError, SearchPage,
    Service, Unavailable, WithBody, blocking,
};
use crate::clock::Timestamp;
use crate::message::offset::Offset;
use crate::message::{Moment, NewMessage, State, TopicName};
use crate::producer::{
    self, Atomic, CancelAnswer, Cancelled, Changed, Decided, Found, PutAnswer, PutsAnswer, Request,
    Standing,
};

impl Service {
    /// Accepts a message, to be ready at once or at a moment.
    ///
    /// # Errors
    ///
    /// [`PutError`]; nothing was stored, unless it says that what became of it is unknown.
    pub async fn put(&self, topic: &TopicName, message: NewMessage) -> Result<Accepted, PutError> {
        let items = vec![Some(message)];
        let request = Request { items, atomic: Atomic::Yes, bound: None };
        let mut puts = self.put_all(topic, request).await?;
        let answer = puts.items.pop().expect("an answer for each item");
        answer.map_err(|refusal| PutError::Refused { index: 0, refusal })
    }

    /// Accepts what the request holds, in one step.
    ///
    /// # Errors
    ///
    /// As [`Service::put`].
    pub async fn put_all(&self, topic: &TopicName, request: Request) -> Result<Puts, PutError> {
        self.check_open()?;
        let answer = if request.bound.is_some() {
            let topic = topic.clone();
            let attempt = move |service: &Self| service.try_put(&topic, request.clone());
            self.decide::<_, _, PutError>(attempt).await?
        } else {
            // Nothing is looked up, so this neither waits nor reads.
            let decided = self.try_put(topic, request)?;
            self.durable(&decided.receipt).await?;
            decided.answer
        };
        if !answer.replayed {
            let accepted = answer.items.iter().filter(|item| item.is_ok()).count();
            self.0.metrics.accepted(accepted as u64);
        }
        let items = answer.items.into_iter().map(|item| item.map(|item| self.accepted(item)));
        Ok(Puts { items: items.collect(), replayed: answer.replayed })
    }

    fn try_put(
        &self,
        topic: &TopicName,
        request: Request,
    ) -> Result<Decided<PutsAnswer>, producer::PutError> {
        let engine = &self.0.engine;
        let now = self.now();
        producer::put_all(&engine.store, self.0.put, topic, request, &mut || engine.nonce(), now)
    }

    pub(super) fn accepted(&self, answer: PutAnswer) -> Accepted {
        Accepted {
            id: self.0.engine.store.ids().message_id(answer.offset, answer.nonce),
            state: answer.state,
            deliver_at: answer.deliver_at,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.0.clock.now().wall
    }

    /// What is known of a message.
    ///
    /// # Errors
    ///
    /// [`LookupError::NotFound`] for everything that is not an id of ours.
    pub async fn message(&self, id: &str, body: WithBody) -> Result<MessageView, LookupError> {
        self.check_ready()?;
        let id = id.to_owned();
        let service = self.clone();
        let found = blocking(move || producer::find(&service.0.engine.store, &id)).await??;
        self.view(found, body).await
    }

    /// What is known of a message that was found, durable.
    pub(super) async fn view(
        &self,
        found: Found,
        body: WithBody,
    ) -> Result<MessageView, LookupError> {
        let sought = found.clone();
        let standing: Standing = self
            .look(move |service| sought.standing(&service.0.engine.store))
            .await
            .map_err(|error: Unavailable| LookupError::from(error))?;
        if let Some(receipt) = &standing.receipt {
            self.durable(receipt).await?;
        }
        let service = self.clone();
        blocking(move || service.compose(&found, &standing, body)).await?
    }

    /// A message that stands so; its receipt is durable.
    pub(super) fn compose(
        &self,
        found: &Found,
        standing: &Standing,
        body: WithBody,
    ) -> Result<MessageView, LookupError> {
        let store = &self.0.engine.store;
        let fired_at = match store.topic_by_id(found.message.topic_id) {
            Some(topic) if standing.state == State::Ready => {
                found.fired_at(store, &topic, standing).map_err(Unavailable::of)?
            }
            _ => None,
        };
        let body = match body {
            WithBody::No => None,
            WithBody::Yes => Some(producer::body(store, found)?),
        };
        Ok(MessageView {
            id: found.id(store),
            topic: found.message.topic.clone(),
            state: standing.state,
            born_at: found.message.born_at,
            deliver_at: standing.deliver_at,
            fired_at,
            attributes: found.message.attributes.clone(),
            timer_key: found.message.timer.as_ref().map(|timer| timer.key.clone()),
            body,
        })
    }

    /// Cancels a message that waits. `Ok` means that it will never be delivered.
    ///
    /// # Errors
    ///
    /// [`ChangeError::AlreadyDelivered`] when it is on its topic.
    pub async fn cancel(&self, id: &str) -> Result<(), ChangeError> {
        let answer = self
            .change(id, |service, found| {
                producer::cancel(&service.0.engine.store, found, service.now())
            })
            .await?;
        self.cancelled(answer).ok_or(ChangeError::AlreadyDelivered)
    }

    /// Counts a cancel; nothing when it came too late.
    pub(super) fn cancelled(&self, answer: CancelAnswer) -> Option<()> {
        match answer {
            CancelAnswer::Cancelled(Cancelled::First) => {
                self.0.metrics.cancelled(1);
                Some(())
            }
            CancelAnswer::Cancelled(Cancelled::Before) => Some(()),
            CancelAnswer::AlreadyDelivered => None,
        }
    }

    /// Gives a message that waits another moment, and answers when it is to be readable.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]; it waits for the moment it had, if it waits.
    pub async fn reschedule(&self, id: &str, moment: Moment) -> Result<Timestamp, ChangeError> {
        let changed = self
            .change(id, move |service, found| {
                producer::reschedule(&service.0.engine.store, found, moment, service.now())
            })
            .await?;
        done(changed)
    }

    /// Fires a message that waits, now, and answers when that was.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]; it waits as before, if it waits.
    pub async fn fire_now(&self, id: &str) -> Result<Timestamp, ChangeError> {
        let changed = self
            .change(id, |service, found| {
                producer::fire_now(&service.0.engine.store, found, service.now())
            })
            .await?;
        done(changed)
    }

    /// Decides a change of mind about the message that `id` stands for.
    async fn change<T: Send + 'static>(
        &self,
        id: &str,
        attempt: impl Fn(&Self, &Found) -> Result<Decided<T>, producer::ChangeError>
        + Send
        + Sync
        + 'static,
    ) -> Result<T, ChangeError> {
        self.check_ready()?;
        let (id, service) = (id.to_owned(), self.clone());
        let found = blocking(move || producer::find(&service.0.engine.store, &id)).await??;
        self.decide(move |service| attempt(service, &found)).await
    }

    /// The messages of `topic` with `key`, newest first, at most `limit`: from the newest, or from where
    /// the page ended that gave `cursor`.
    ///
    /// # Errors
    ///
    /// [`SearchError::TopicNotFound`] when there is no such topic, [`SearchError::BadCursor`] when no
    /// search of it for this key has given the cursor.
    pub async fn search(
        &self,
        topic: &TopicName,
        key: &str,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<SearchPage, SearchError> {
        self.check_ready()?;
        let not_found = || SearchError::TopicNotFound { topic: topic.clone() };
        let named = self.0.engine.store.topic(topic).ok_or_else(not_found)?;
        let of = Sought::new(named.id, key);
        let ids = self.0.engine.store.ids();
        let below = match cursor {
            None => None,
            Some(cursor) => {
                let fields = ids.read_cursor(cursor).ok_or(SearchError::BadCursor)?;
                Some(of.place(fields).ok_or(SearchError::BadCursor)?)
            }
        };
        let key = key.to_owned();
        let page = self
            .look(move |service| {
                producer::search(&service.0.engine.store, &named, &key, below, limit)
            })
            .await
            .map_err(|error: Unavailable| SearchError::from(error))?;
        let mut messages = Vec::with_capacity(page.found.len());
        for found in page.found {
            match self.view(found, WithBody::No).await {
                Ok(view) => messages.push(view),
                Err(LookupError::Unavailable(error)) => return Err(error.into()),
                // Gone since it was found.
                Err(LookupError::NotFound | LookupError::Damaged { .. }) => {}
            }
        }
        let next = page.next.map(|next| ids.write_cursor(&of.fields(next)));
        Ok(SearchPage { messages, next })
    }
}

/// What a search is for, as its cursors have it: a cursor of another search would go on in the middle of
/// this one. Hashed without the store's secret, since clients see it.
struct Sought([u8; 8]);

impl Sought {
    const FIELDS: usize = 17;

    fn new(topic_id: u32, key: &str) -> Self {
        let digest =
            Sha256::new().chain_update(topic_id.to_le_bytes()).chain_update(key).finalize();
        let mut of = [0; 8];
        of.copy_from_slice(&digest[..8]);
        Self(of)
    }

    fn fields(&self, below: Offset) -> [u8; Self::FIELDS] {
        let mut fields = [b's'; Self::FIELDS];
        fields[1..9].copy_from_slice(&self.0);
        fields[9..].copy_from_slice(&below.get().to_le_bytes());
        fields
    }

    /// Where to go on, if the fields are of this search.
    fn place(&self, fields: [u8; Self::FIELDS]) -> Option<Offset> {
        let below = Offset::new(u64::from_le_bytes(fields[9..].try_into().ok()?));
        (fields == self.fields(below)).then_some(below)
    }
}

fn done(changed: Changed<Timestamp>) -> Result<Timestamp, ChangeError> {
    match changed {
        Changed::Done(at) => Ok(at),
        Changed::AlreadyDelivered => Err(ChangeError::AlreadyDelivered),
        Changed::AlreadyCancelled => Err(ChangeError::AlreadyCancelled),
    }
}
