//! Put: messages enter, for now or for a moment, one or many in one step.
//!
//! ```text
//!   topic? ──> prepare each (deadline, type, queue) ──> one turn: append all, index, the request's key
//! ```
//!
//! What one request puts is appended in one turn, so it stands in one group of the log: after a crash it
//! is there whole, with its idempotency key, or not at all.

use std::sync::Arc;

use super::deadline::{deadline, placement};
use super::idempotency::{earlier, outcomes};
use super::{Decided, LookError};
use crate::clock::Timestamp;
use crate::commitlog::{AppendError, Turn};
use crate::message::offset::Offset;
use crate::message::record::{
    Bound, Encoded, IdempotencyKey, KeyedTimer, Message, Placement, Terms, tag_hash,
};
use crate::message::{Moment, NewMessage, State, TopicName};
use crate::store::{MakeError, Store, Topic};

/// How topics come to be.
#[derive(Clone, Copy, Debug)]
pub struct PutSettings {
    /// Whether a topic makes itself at its first message, and with how many queues.
    pub queues_of_new_topic: Option<u16>,
}

/// One message of a request. `None` is one that could not be read: it has its place in the answer, and
/// nothing else.
pub type Item = Option<NewMessage>;

/// Whether some messages of a request may be accepted and others not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    Yes,
    No,
}

/// What is put in one step.
#[derive(Clone, Debug)]
pub struct Request {
    pub items: Vec<Item>,
    pub atomic: Atomic,
    /// The idempotency key that came with it.
    pub bound: Option<Bound>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutAnswer {
    pub offset: Offset,
    pub nonce: u64,
    pub state: State,
    /// When it is to be readable; for a message put for now, when it was accepted.
    pub deliver_at: Timestamp,
}

/// What became of a request, item by item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutsAnswer {
    pub items: Vec<Result<PutAnswer, Refusal>>,
    /// It was answered before, under its idempotency key, and nothing was stored now.
    pub replayed: bool,
}

/// Why one message is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the message is malformed")]
    Malformed,
    #[error("the moment lies more than 100 years ahead")]
    TooFarAhead,
    #[error("the topic's type does not take such a message")]
    TypeMismatch,
}

/// Why nothing was stored.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PutError {
    /// The only message, or one of an atomic batch.
    #[error("message {index}: {refusal}")]
    Refused { index: usize, refusal: Refusal },
    #[error("there is no topic {0}")]
    NoTopic(TopicName),
    #[error("the idempotency key was used for another request")]
    KeyReused,
    #[error(transparent)]
    Look(#[from] LookError),
    #[error(transparent)]
    Make(#[from] MakeError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Puts `message` on `topic`. `nonce` must be hard to guess: it is what the id's MAC is over.
///
/// # Errors
///
/// [`PutError`]; nothing was stored then.
pub fn put(
    store: &Store,
    settings: PutSettings,
    topic: &TopicName,
    message: NewMessage,
    nonce: u64,
    now: Timestamp,
) -> Result<Decided<PutAnswer>, PutError> {
    let request = Request { items: vec![Some(message)], atomic: Atomic::Yes, bound: None };
    let decided = put_all(store, settings, topic, request, &mut || nonce, now)?;
    let answer = decided.answer.items.into_iter().next();
    match answer.expect("an answer for each item") {
        Ok(answer) => Ok(Decided { answer, receipt: decided.receipt }),
        Err(refusal) => Err(PutError::Refused { index: 0, refusal }),
    }
}

/// Puts what `request` holds on `topic`, each message with a nonce of its own.
///
/// # Errors
///
/// [`PutError`]; nothing was stored then.
pub fn put_all(
    store: &Store,
    settings: PutSettings,
    topic: &TopicName,
    request: Request,
    nonces: &mut dyn FnMut() -> u64,
    now: Timestamp,
) -> Result<Decided<PutsAnswer>, PutError> {
    put_request(store, settings, topic, request, None, nonces, now)
}

/// As [`put_all`]; with `terms`, all of them as half messages.
pub(super) fn put_request(
    store: &Store,
    settings: PutSettings,
    topic: &TopicName,
    request: Request,
    terms: Option<&Terms>,
    nonces: &mut dyn FnMut() -> u64,
    now: Timestamp,
) -> Result<Decided<PutsAnswer>, PutError> {
    let Request { mut items, atomic, bound } = request;
    let _alone = bound.map(|bound| store.stripes().request(store.keys().idempotency(&bound.key)));
    if let Some(bound) = &bound
        && let Some(answer) = earlier(store, bound, now)?
    {
        return Ok(Decided { answer, receipt: store.log().latest_receipt() });
    }
    loop {
        if store.topic(topic).is_none()
            && settings.queues_of_new_topic.is_some()
            && let Some(refusals) = all_refused(store, &items, atomic, now)?
        {
            let items = refusals.into_iter().map(Err).collect();
            let answer = PutsAnswer { items, replayed: false };
            return Ok(Decided { answer, receipt: store.log().latest_receipt() });
        }
        let named = topic_for(store, settings, topic, now)?;
        let prepare = |item| prepare(store, &named, item, None, terms, nonces(), now);
        let prepared: Vec<_> = items.into_iter().map(prepare).collect();
        match append_all(store, &named, prepared, atomic, bound, now)? {
            Appended::Done(decided) => return Ok(decided),
            // What is put now goes to the topic's successor, if there is to be one.
            Appended::TopicGone(again) => items = again,
        }
    }
}

/// Why nothing of the request can be put, on whatever topic: that makes none. `None` when something can.
fn all_refused(
    store: &Store,
    items: &[Item],
    atomic: Atomic,
    now: Timestamp,
) -> Result<Option<Vec<Refusal>>, PutError> {
    let mut refusals = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let moment = item.as_ref().ok_or(Refusal::Malformed).map(|new| new.moment);
        match (moment.and_then(|moment| deadline(moment, store.levels(), now)), atomic) {
            (Err(refusal), Atomic::Yes) => return Err(PutError::Refused { index, refusal }),
            (Err(refusal), Atomic::No) => refusals.push(refusal),
            (Ok(_), Atomic::Yes) => {}
            (Ok(_), Atomic::No) => return Ok(None),
        }
    }
    Ok(Some(refusals).filter(|refusals| !refusals.is_empty()))
}

/// The topic to put on, made if topics make themselves.
pub(super) fn topic_for(
    store: &Store,
    settings: PutSettings,
    name: &TopicName,
    now: Timestamp,
) -> Result<Arc<Topic>, PutError> {
    match (store.topic(name), settings.queues_of_new_topic) {
        (Some(topic), _) => Ok(topic),
        (None, Some(queues)) => Ok(store.topic_or_make(name, queues, now)?),
        (None, None) => Err(PutError::NoTopic(name.clone())),
    }
}

/// A message, ready for a turn.
#[derive(Debug)]
pub(super) struct Prepared {
    new: NewMessage,
    pub(super) message: Message,
    pub(super) encoded: Encoded,
}

/// An item that is not put.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    item: Item,
}

/// Gives the item its deadline and queue, and encodes it; all but its place.
pub(super) fn prepare(
    store: &Store,
    topic: &Topic,
    item: Item,
    timer: Option<KeyedTimer>,
    terms: Option<&Terms>,
    nonce: u64,
    now: Timestamp,
) -> Result<Prepared, Box<Refused>> {
    let refused = |refusal, item| Err(Box::new(Refused { refusal, item }));
    let Some(new) = item else { return refused(Refusal::Malformed, None) };
    let attributes = &new.attributes;
    let of = topic.settings.of;
    let takes = match terms {
        Some(_) => of.takes_transactions(),
        None => of.takes(new.moment != Moment::Now, attributes.message_group.is_some()),
    };
    if !takes {
        return refused(Refusal::TypeMismatch, Some(new));
    }
    let placement = match placement(new.moment, store.levels(), now) {
        // Its commit files it in the wheel, whatever it was delayed by.
        Ok(Placement::Level { deadline, .. }) if terms.is_some() => Placement::Timed { deadline },
        Ok(placement) => placement,
        Err(refusal) => return refused(refusal, Some(new)),
    };
    let queue = match &attributes.message_group {
        Some(group) => topic.queue_of_group(group),
        None => topic.next_queue(),
    };
    let message = Message {
        nonce,
        born_at: now,
        placement,
        topic_id: topic.id,
        queue,
        tag_hash: tag_hash(attributes.tag.as_deref()),
        topic: topic.name.clone(),
        attributes: attributes.clone(),
        timer,
        terms: terms.cloned(),
    };
    let encoded = message.encode(&new.body);
    Ok(Prepared { new, message, encoded })
}

impl Prepared {
    pub(super) fn into_item(self) -> Item {
        Some(self.new)
    }

    fn is_indexed(&self) -> bool {
        !self.message.attributes.keys.is_empty() || self.message.timer.is_some()
    }

    /// Appends the message in the turn, with its place in its queue and its entries in the index.
    pub(super) fn append(self, store: &Store, topic: &Topic, turn: &mut Turn<'_>) -> PutAnswer {
        let Self { message, mut encoded, .. } = self;
        let (state, deliver_at) = match message.placement {
            // Its commit gives it its place.
            Placement::Ready { .. } if message.terms.is_some() => {
                (State::Prepared, message.born_at)
            }
            Placement::Timed { deadline } | Placement::Level { deadline, .. } => {
                let half = message.terms.is_some();
                (if half { State::Prepared } else { State::Scheduled }, deadline)
            }
            Placement::Ready { .. } => {
                let queue = topic.queue(message.queue);
                let queue = queue.expect("the queue was chosen among the topic's own");
                Message::set_queue_offset(&mut encoded, queue.take_offsets(1));
                (State::Ready, message.born_at)
            }
        };
        let offset = turn.append(encoded);
        store.keys().of_message(&message, |key| store.index().insert(key, offset));
        topic.appended(offset);
        PutAnswer { offset, nonce: message.nonce, state, deliver_at }
    }
}

/// How a try to append ended.
enum Appended {
    Done(Decided<PutsAnswer>),
    /// Nothing was: here are the items again.
    TopicGone(Vec<Item>),
}

fn append_all(
    store: &Store,
    topic: &Topic,
    prepared: Vec<Result<Prepared, Box<Refused>>>,
    atomic: Atomic,
    bound: Option<Bound>,
    now: Timestamp,
) -> Result<Appended, PutError> {
    let mut room = 0;
    let mut indexed = bound.is_some();
    let mut accepted = 0;
    for (index, item) in prepared.iter().enumerate() {
        match item {
            Ok(prepared) => {
                room += prepared.encoded.len();
                indexed |= prepared.is_indexed();
                accepted += 1;
            }
            Err(refused) if atomic == Atomic::Yes => {
                return Err(PutError::Refused { index, refusal: refused.refusal });
            }
            Err(_) => {}
        }
    }
    // A key binds what it has stored: with nothing stored, a repetition is as good as the first.
    let bound = bound.filter(|_| accepted > 0);
    let key = bound.map(|bound| {
        let items = outcomes(&prepared, room);
        IdempotencyKey { at: now, bound, items }.encode()
    });
    room += key.as_ref().map_or(0, Encoded::len);
    if indexed {
        check_index(store)?;
    }
    let mut turn = store.log().turn(room)?;
    if topic.is_deleted() {
        let again = prepared.into_iter().map(|item| match item {
            Ok(prepared) => prepared.into_item(),
            Err(refused) => refused.item,
        });
        return Ok(Appended::TopicGone(again.collect()));
    }
    let items = prepared.into_iter().map(|item| match item {
        Ok(prepared) => Ok(prepared.append(store, topic, &mut turn)),
        Err(refused) => Err(refused.refusal),
    });
    let items = items.collect();
    if let (Some(key), Some(bound)) = (key, bound) {
        let offset = turn.append(key);
        store.index().insert(store.keys().idempotency(&bound.key), offset);
    }
    let receipt = turn.receipt();
    Ok(Appended::Done(Decided { answer: PutsAnswer { items, replayed: false }, receipt }))
}

/// Refuses what needs the index while that is behind: its memory has a bound.
pub(super) fn check_index(store: &Store) -> Result<(), AppendError> {
    if store.index().has_room() {
        return Ok(());
    }
    Err(AppendError::IndexBehind)
}
