//! Put: a message enters, for now or for a moment.

use super::Decided;
use crate::clock::Timestamp;
use crate::commitlog::AppendError;
use crate::message::offset::Offset;
use crate::message::record::{Message, Placement, tag_hash};
use crate::message::{MAX_DELAY_MS, Moment, NewMessage, State, TopicName};
use crate::store::{MakeError, Store, Topic};

/// How topics come to be.
#[derive(Clone, Copy, Debug)]
pub struct PutSettings {
    /// Whether a topic makes itself at its first message, and with how many queues.
    pub queues_of_new_topic: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutAnswer {
    pub offset: Offset,
    pub nonce: u64,
    pub state: State,
    /// When it is to be readable; for a message put for now, when it was accepted.
    pub deliver_at: Timestamp,
}

/// Why a message was not accepted. Nothing was stored.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PutError {
    #[error("the moment lies more than 100 years ahead")]
    TooFarAhead,
    #[error("there is no topic {0}")]
    NoTopic(TopicName),
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
    let deadline = deadline(message.moment, now)?;
    let topic = match (store.topic(topic), settings.queues_of_new_topic) {
        (Some(topic), _) => topic,
        (None, Some(queues)) => store.topic_or_make(topic, queues, now)?,
        (None, None) => return Err(PutError::NoTopic(topic.clone())),
    };
    append(store, &topic, message, deadline, nonce, now)
}

/// The moment as a deadline; `None` is now.
fn deadline(moment: Moment, now: Timestamp) -> Result<Option<Timestamp>, PutError> {
    let deadline = match moment {
        Moment::Now | Moment::After(0) => return Ok(None),
        Moment::At(deadline) => deadline,
        Moment::After(delay) => now.checked_add(delay).ok_or(PutError::TooFarAhead)?,
    };
    match deadline.since(now) {
        0 => Ok(None),
        ahead if ahead > MAX_DELAY_MS => Err(PutError::TooFarAhead),
        _ => Ok(Some(deadline)),
    }
}

fn append(
    store: &Store,
    topic: &Topic,
    message: NewMessage,
    deadline: Option<Timestamp>,
    nonce: u64,
    now: Timestamp,
) -> Result<Decided<PutAnswer>, PutError> {
    let queue = match &message.attributes.message_group {
        Some(group) => topic.queue_of_group(group),
        None => topic.next_queue(),
    };
    let record = Message {
        nonce,
        born_at: now,
        placement: match deadline {
            Some(deadline) => Placement::Timed { deadline },
            // The place in the queue is given inside the turn.
            None => Placement::Ready { queue_offset: 0 },
        },
        topic_id: topic.id,
        queue,
        tag_hash: tag_hash(message.attributes.tag.as_deref()),
        topic: topic.name.clone(),
        attributes: message.attributes,
    };
    let mut encoded = record.encode(&message.body);
    let mut turn = store.log().turn(encoded.len())?;
    if deadline.is_none() {
        let queue = topic.queue(queue).expect("the queue was chosen among the topic's own");
        Message::set_queue_offset(&mut encoded, queue.take_offsets(1));
    }
    let offset = turn.append(encoded);
    let receipt = turn.receipt();
    let (state, deliver_at) = match deadline {
        Some(deadline) => (State::Scheduled, deadline),
        None => (State::Ready, now),
    };
    Ok(Decided { answer: PutAnswer { offset, nonce, state, deliver_at }, receipt })
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
        assert_eq!(deadline(Moment::Now, NOW).unwrap(), None);
        assert_eq!(at(0).unwrap(), None);
        assert_eq!(at(NOW.as_millis()).unwrap(), None);
        assert_eq!(at(NOW.as_millis() + 1).unwrap(), after(1));
        assert_eq!(at(NOW.as_millis() + MAX_DELAY_MS).unwrap(), after(MAX_DELAY_MS));
        assert!(matches!(at(NOW.as_millis() + MAX_DELAY_MS + 1), Err(PutError::TooFarAhead)));
        assert!(matches!(at(u64::MAX), Err(PutError::TooFarAhead)));
        assert_eq!(deadline(Moment::After(0), NOW).unwrap(), None);
        assert_eq!(deadline(Moment::After(50), NOW).unwrap(), after(50));
        assert!(matches!(deadline(Moment::After(u64::MAX), NOW), Err(PutError::TooFarAhead)));
    }
}
