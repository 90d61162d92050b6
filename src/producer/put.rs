//! Put: messages enter, for now or for a moment, one or many in one step.
//!
//! ```text
//!   topic? ──> prepare each (deadline, type, queue) ──> one turn: append all, index, the request's key
//! ```
//!
//! What one request puts is appended in one turn, so it stands in one group of the log: after a crash it
//! is there whole, with its idempotency key, or not at all.

use std::sync::Arc;

use super::idempotency::{earlier, outcomes};
use super::{Decided, LookError};
use crate::clock::Timestamp;
use crate::commitlog::{AppendError, Turn};
use crate::message::offset::Offset;
use crate::message::record::{
    Bound, Encoded, IdempotencyKey, KeyedTimer, Message, Placement, Terms, tag_hash,
};
use crate::message::{MAX_DELAY_MS, Moment, NewMessage, State, TopicName};
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
        let named = topic_for(store, settings, topic, now)?;
        let prepare = |item| prepare(&named, item, None, terms, nonces(), now);
        let prepared: Vec<_> = items.into_iter().map(prepare).collect();
        match append_all(store, &named, prepared, atomic, bound, now)? {
            Appended::Done(decided) => return Ok(decided),
            // What is put now goes to the topic's successor, if there is to be one.
            Appended::TopicGone(again) => items = again,
        }
    }
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

/// The moment as a deadline; `None` is now.
pub(super) fn deadline(moment: Moment, now: Timestamp) -> Result<Option<Timestamp>, Refusal> {
    let deadline = match moment {
        Moment::Now | Moment::After(0) => return Ok(None),
        Moment::At(deadline) => deadline,
        Moment::After(delay) => now.checked_add(delay).ok_or(Refusal::TooFarAhead)?,
    };
    match deadline.since(now) {
        0 => Ok(None),
        ahead if ahead > MAX_DELAY_MS => Err(Refusal::TooFarAhead),
        _ => Ok(Some(deadline)),
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
    let deadline = match deadline(new.moment, now) {
        Ok(deadline) => deadline,
        Err(refusal) => return refused(refusal, Some(new)),
    };
    let queue = match &attributes.message_group {
        Some(group) => topic.queue_of_group(group),
        None => topic.next_queue(),
    };
    let message = Message {
        nonce,
        born_at: now,
        placement: match deadline {
            Some(deadline) => Placement::Timed { deadline },
            // The place in the queue is given inside the turn.
            None => Placement::Ready { queue_offset: 0 },
        },
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
            Placement::Timed { deadline } if message.terms.is_some() => (State::Prepared, deadline),
            // Its commit gives it its place.
            Placement::Ready { .. } if message.terms.is_some() => {
                (State::Prepared, message.born_at)
            }
            Placement::Timed { deadline } => (State::Scheduled, deadline),
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    fn after(millis: u64) -> Option<Timestamp> {
        NOW.checked_add(millis)
    }

    #[test]
    fn a_moment_not_after_now_is_now_and_one_too_far_is_refused() {
        let at = |millis| deadline(Moment::At(Timestamp::from_millis(millis)), NOW);
        assert_eq!(deadline(Moment::Now, NOW), Ok(None));
        assert_eq!(at(0), Ok(None));
        assert_eq!(at(NOW.as_millis()), Ok(None));
        assert_eq!(at(NOW.as_millis() + 1), Ok(after(1)));
        assert_eq!(at(NOW.as_millis() + MAX_DELAY_MS), Ok(after(MAX_DELAY_MS)));
        assert_eq!(at(NOW.as_millis() + MAX_DELAY_MS + 1), Err(Refusal::TooFarAhead));
        assert_eq!(at(u64::MAX), Err(Refusal::TooFarAhead));
        assert_eq!(deadline(Moment::After(0), NOW), Ok(None));
        assert_eq!(deadline(Moment::After(50), NOW), Ok(after(50)));
        assert_eq!(deadline(Moment::After(u64::MAX), NOW), Err(Refusal::TooFarAhead));
    }
}
