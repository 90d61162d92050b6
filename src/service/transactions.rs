//! Transactions: prepared, ended, looked at, resumed, and asked about by long poll.

use std::time::Duration;

use bytes::Bytes;

use super::{Inner, PutError, Service, Unavailable, blocking};
use crate::clock::Timestamp;
use crate::commitlog::Receipt;
use crate::consumer::long_poll::{Admission, Poll};
use crate::engine::Engine;
use crate::message::record::{Bound, Terms};
use crate::message::{Attributes, GroupName, NewMessage, TopicName};
use crate::producer::{
    self, BodyError, ChangeError, EndAnswer, Fate, Found, Resumed, TransactionStanding,
};
use crate::transaction::{Asked, Check};

pub use crate::producer::Ended;

/// A half message that is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The id of the transaction, and of its message.
    pub id: String,
    /// The request came again, under its idempotency key, and is answered as the first time.
    pub replayed: bool,
}

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    Prepared,
    Committed,
    RolledBack,
    Abandoned,
}

/// What is known of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionView {
    pub id: String,
    pub topic: String,
    pub producer_group: String,
    pub state: TransactionState,
    pub prepared_at: Timestamp,
    /// Since it was prepared, or resumed.
    pub checks: u32,
    pub max_checks: u32,
    pub next_check_at: Option<Timestamp>,
    /// When it ends of itself, while it is open.
    pub abandoned_at: Option<Timestamp>,
}

/// Some of the transactions, in the order they were prepared.
#[derive(Clone, Debug)]
pub struct TransactionsPage {
    pub items: Vec<TransactionView>,
    pub cursor: Option<String>,
}

/// Which transactions are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionQuery {
    pub topic: Option<TopicName>,
    pub state: Option<TransactionState>,
    pub limit: usize,
    pub cursor: Option<String>,
}

/// A question to a producer: what became of this transaction?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckView {
    pub id: String,
    pub topic: String,
    pub attributes: Attributes,
    pub body: Bytes,
    /// From 1.
    pub check: u32,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum TransactionError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no transaction with this id")]
    NotFound,
    #[error("there is no topic {topic}")]
    TopicNotFound { topic: TopicName },
    #[error("the cursor is not one that this list has given")]
    InvalidCursor,
    #[error("the transaction was decided the other way")]
    DecidedOtherwise,
    #[error("the transaction was abandoned: nobody answered for it in time; it can be resumed")]
    Abandoned,
    #[error("the transaction is not abandoned")]
    NotAbandoned,
}

impl From<ChangeError> for TransactionError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Unknown => Self::NotFound,
            ChangeError::Append(error) => Self::Unavailable(error.into()),
            ChangeError::Look(_) | ChangeError::TooFarAhead | ChangeError::TransactionOpen => {
                Self::Unavailable(Unavailable::of(error))
            }
        }
    }
}

impl Service {
    /// Accepts a half message: it is read by nobody before its transaction is committed.
    ///
    /// # Errors
    ///
    /// [`PutError`]; nothing was stored, unless it says that what became of it is unknown.
    pub async fn prepare(
        &self,
        topic: &TopicName,
        message: NewMessage,
        terms: Terms,
        bound: Option<Bound>,
    ) -> Result<Prepared, PutError> {
        self.check_open()?;
        let topic = topic.clone();
        let attempt = move |service: &Self| {
            let Inner { engine, put, .. } = &*service.0;
            let (message, nonce, now) = (message.clone(), engine.nonce(), service.now());
            producer::prepare_transaction(
                &engine.store,
                *put,
                &topic,
                message,
                &terms,
                bound,
                nonce,
                now,
            )
        };
        let answer = self.decide::<_, _, PutError>(attempt).await?;
        let item = answer.items.into_iter().next().expect("an answer for each item");
        let item = item.map_err(|refusal| PutError::Refused { index: 0, refusal })?;
        if !answer.replayed {
            self.0.metrics.accepted(1);
        }
        let id = self.0.engine.store.ids().message_id(item.offset, item.nonce);
        Ok(Prepared { id, replayed: answer.replayed })
    }

    /// Ends a transaction. `Ok` means that it ended as asked, now or before.
    ///
    /// # Errors
    ///
    /// [`TransactionError::DecidedOtherwise`], [`TransactionError::Abandoned`]; the answer is durable, too.
    pub async fn end_transaction(&self, id: &str, how: Ended) -> Result<(), TransactionError> {
        let found = self.find_transaction(id).await?;
        let answer = self
            .decide::<_, _, TransactionError>(move |service| {
                producer::end(&service.0.engine.store, &found, how, service.now())
            })
            .await?;
        match answer {
            EndAnswer::AsAsked => Ok(()),
            EndAnswer::Otherwise => Err(TransactionError::DecidedOtherwise),
            EndAnswer::Abandoned => Err(TransactionError::Abandoned),
        }
    }

    /// Opens an abandoned transaction again; its first check is at once.
    ///
    /// # Errors
    ///
    /// [`TransactionError::NotAbandoned`].
    pub async fn resume_transaction(&self, id: &str) -> Result<(), TransactionError> {
        let found = self.find_transaction(id).await?;
        let resumed = self
            .decide::<_, _, TransactionError>(move |service| {
                producer::resume(&service.0.engine.store, &found, service.now())
            })
            .await?;
        match resumed {
            Resumed::Open => Ok(()),
            Resumed::NotAbandoned => Err(TransactionError::NotAbandoned),
        }
    }

    /// What is known of a transaction, durable.
    ///
    /// # Errors
    ///
    /// [`TransactionError::NotFound`] for everything that is not the id of one.
    pub async fn transaction(&self, id: &str) -> Result<TransactionView, TransactionError> {
        let found = self.find_transaction(id).await?;
        let sought = found.clone();
        let standing = self
            .decide::<_, _, TransactionError>(move |service| {
                producer::transaction_standing(&service.0.engine.store, &sought)
            })
            .await?;
        Ok(self.transaction_view(&found, &standing))
    }

    /// Transactions in the order they were prepared. A page may be short, or empty, and not the last.
    ///
    /// # Errors
    ///
    /// [`TransactionError::TopicNotFound`], [`TransactionError::InvalidCursor`].
    pub async fn transactions(
        &self,
        query: TransactionQuery,
    ) -> Result<TransactionsPage, TransactionError> {
        self.check_ready()?;
        let store = &self.0.engine.store;
        let topic_id = match &query.topic {
            None => None,
            Some(topic) => {
                let named = TopicName::writable(topic.as_str()).ok();
                let not_found = || TransactionError::TopicNotFound { topic: topic.clone() };
                Some(named.and_then(|name| store.topic(&name)).ok_or_else(not_found)?.id)
            }
        };
        let from = match &query.cursor {
            None => 0,
            Some(cursor) => store
                .ids()
                .read_cursor(cursor)
                .and_then(place_of)
                .ok_or(TransactionError::InvalidCursor)?,
        };
        let (state, limit) = (query.state, query.limit);
        let page = self
            .decide::<_, _, TransactionError>(move |service| {
                let wanted = |standing: &TransactionStanding| {
                    state.is_none_or(|state| state == state_of(standing.fate))
                };
                let store = &service.0.engine.store;
                producer::list_transactions(store, topic_id, wanted, from, limit)
            })
            .await?;
        let items = page.items.iter().map(|(found, at)| self.transaction_view(found, at)).collect();
        let cursor = page.next.map(|place| store.ids().write_cursor(&fields_of(place)));
        Ok(TransactionsPage { items, cursor })
    }

    async fn find_transaction(&self, id: &str) -> Result<Found, TransactionError> {
        self.check_ready()?;
        let (id, service) = (id.to_owned(), self.clone());
        let found = blocking(move || producer::find(&service.0.engine.store, &id)).await?;
        match found {
            Ok(found) if found.is_half() => Ok(found),
            Ok(_) | Err(producer::NotFound::Unknown) => Err(TransactionError::NotFound),
            Err(producer::NotFound::Read(error)) => Err(Unavailable::of(error).into()),
        }
    }

    fn transaction_view(&self, found: &Found, standing: &TransactionStanding) -> TransactionView {
        let (next_check_at, abandoned_at) = match standing.fate {
            Fate::Open(open) => {
                let next = open.next_check_at.filter(|next| *next < open.abandoned_at);
                (next, Some(open.abandoned_at))
            }
            _ => (None, None),
        };
        let terms = found.message.terms.as_ref();
        TransactionView {
            id: found.id(&self.0.engine.store),
            topic: found.message.topic.clone(),
            producer_group: terms.map_or_else(String::new, |terms| terms.producer_group.clone()),
            state: state_of(standing.fate),
            prepared_at: found.message.born_at,
            checks: standing.checks,
            max_checks: terms.map_or(0, |terms| terms.max_checks),
            next_check_at,
            abandoned_at,
        }
    }

    /// Gives the checks that wait for the producer group, waiting for some to come if there are none.
    ///
    /// A check has counted when its record is durable. Dropping the future before it answers gives what it
    /// held back, and that has not counted; when the power goes meanwhile, it has.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]; then nothing was handed out.
    pub async fn checks(
        &self,
        group: &GroupName,
        max: usize,
        wait_ms: u64,
    ) -> Result<Vec<CheckView>, Unavailable> {
        self.check_ready()?;
        let engine = &self.0.engine;
        let deadline = tokio::time::Instant::now() + Duration::from_millis(wait_ms);
        let (high, low) = Engine::check_row(group.as_str());
        let mut poll = engine.check_polls.join(high, low);
        let asked = Asked::Group(group.as_str().to_owned());
        let mut may_look = match poll.admission(engine.checks.may_have(&asked)) {
            Admission::Look => true,
            Admission::Nothing => false,
            Admission::Held => {
                poll.woken().await;
                true
            }
        };
        loop {
            if may_look && let Some(handed) = self.look_for_checks(&mut poll, &asked, max).await? {
                let views = self.check_views(&handed).await?;
                handed.take();
                return Ok(views);
            }
            if self.is_draining() || tokio::time::Instant::now() >= deadline {
                return Ok(Vec::new());
            }
            may_look = tokio::time::timeout_at(deadline, poll.woken()).await.is_ok();
        }
    }

    /// One look: durable when it finds some.
    async fn look_for_checks(
        &self,
        poll: &mut Poll,
        asked: &Asked,
        max: usize,
    ) -> Result<Option<Handed>, Unavailable> {
        poll.looks();
        while self.0.engine.checks.may_have(asked) && !self.is_draining() {
            let handed = self.take_checks(asked, max).await?;
            if !handed.checks.is_empty() {
                poll.is_served();
                return Ok(Some(handed));
            }
        }
        poll.rests();
        Ok(None)
    }

    /// Takes checks for whoever is asked; they are durable.
    pub(super) async fn take_checks(
        &self,
        asked: &Asked,
        max: usize,
    ) -> Result<Handed, Unavailable> {
        let asked = asked.clone();
        let take = move |service: &Self| service.take(&asked, max);
        let (handed, receipt) =
            self.look::<_, _, Refused>(take).await.map_err(|refused| refused.0)?;
        self.durable(&receipt).await?;
        Ok(handed)
    }

    fn take(&self, asked: &Asked, max: usize) -> Result<(Handed, Receipt), ChangeError> {
        let taken = self.0.engine.checks.take(asked, max, self.now())?;
        Ok((Handed { service: self.clone(), checks: taken.checks }, taken.receipt))
    }

    async fn check_views(&self, handed: &Handed) -> Result<Vec<CheckView>, Unavailable> {
        let (service, checks) = (self.clone(), handed.checks.clone());
        let views = move || checks.iter().filter_map(|check| service.check_view(check)).collect();
        blocking(views).await?
    }

    /// Gives back a check that nobody was given: it has not counted, and is due again after `wait_ms`.
    pub(super) async fn give_back(&self, check: Check, wait_ms: u64) {
        let Check { found, handed } = check;
        let attempt = move |service: &Self| {
            let now = service.now();
            let due = now.checked_add(wait_ms).unwrap_or(now);
            producer::give_back(&service.0.engine.store, &found, &handed, due, now)
        };
        if let Err(Refused(error)) = self.look::<_, ChangeError, Refused>(attempt).await {
            tracing::warn!(%error, "a check that nobody was given has counted");
        }
    }

    /// Nothing when the disk has not kept the body: nobody can answer for it, and its checks run out.
    pub(super) fn check_view(&self, check: &Check) -> Option<Result<CheckView, Unavailable>> {
        let store = &self.0.engine.store;
        let message = &check.found.message;
        let body = match producer::body(store, &check.found) {
            Ok(body) => body,
            Err(BodyError::Damaged(error)) => {
                let offset = check.found.offset.get();
                tracing::error!(offset, %error, "the body of a half message is damaged");
                return None;
            }
            Err(BodyError::Read(error)) => return Some(Err(Unavailable::of(error))),
        };
        Some(Ok(CheckView {
            id: check.found.id(store),
            topic: message.topic.clone(),
            attributes: message.attributes.clone(),
            body,
            check: check.handed.check,
        }))
    }
}

/// Checks that were recorded for a caller; when it goes away before it takes them they are given back.
#[derive(Debug)]
pub(super) struct Handed {
    service: Service,
    checks: Vec<Check>,
}

impl Handed {
    pub(super) fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// They were given to who is asked.
    pub(super) fn take(mut self) {
        self.checks.clear();
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if self.checks.is_empty() {
            return;
        }
        // Without a runtime the server is gone, and the checks have counted.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for check in std::mem::take(&mut self.checks) {
            let service = self.service.clone();
            runtime.spawn(async move { service.give_back(check, 0).await });
        }
    }
}

/// Why no check was handed out.
struct Refused(Unavailable);

impl From<Unavailable> for Refused {
    fn from(error: Unavailable) -> Self {
        Self(error)
    }
}

impl From<ChangeError> for Refused {
    fn from(error: ChangeError) -> Self {
        Self(match error {
            ChangeError::Append(error) => error.into(),
            error => Unavailable::of(error),
        })
    }
}

const fn state_of(fate: Fate) -> TransactionState {
    match fate {
        Fate::Open(_) => TransactionState::Prepared,
        Fate::Abandoned { .. } => TransactionState::Abandoned,
        Fate::Committed => TransactionState::Committed,
        Fate::RolledBack => TransactionState::RolledBack,
    }
}

/// What a cursor is of, and the place.
fn fields_of(place: u64) -> [u8; 9] {
    let mut fields = [b't'; 9];
    fields[1..].copy_from_slice(&place.to_le_bytes());
    fields
}

fn place_of(fields: [u8; 9]) -> Option<u64> {
    let place = u64::from_le_bytes(fields[1..].try_into().ok()?);
    (fields == fields_of(place)).then_some(place)
}
