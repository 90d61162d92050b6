//! Topics on request: made, set to something else, deleted.

use std::sync::Arc;

use super::topics::TopicAt;
use super::{MakeError, Store, Topic};
use crate::clock::Timestamp;
use crate::commitlog::{AppendError, Receipt};
use crate::message::record::{TopicDeleted, TopicSet};
use crate::message::timer_tag::MAX_TOPIC_ID;
use crate::message::{TopicName, TopicSettings, TopicType};

/// What a caller wants a topic to be; what it does not name stays, or takes its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicChange {
    pub of: Option<TopicType>,
    pub queues: Option<u16>,
    pub retention_ms: Option<u64>,
}

/// A topic that is as it was asked to be, once the receipt is durable.
#[derive(Clone, Debug)]
pub struct TopicChanged {
    pub topic: Arc<Topic>,
    pub made: bool,
    pub receipt: Receipt,
}

/// Why a topic is not changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TopicError {
    #[error("topic {topic} has a type, which cannot be changed")]
    TypeFixed { topic: TopicName },
    #[error("topic {topic} has {has} queues; queues can only be added, and to a FIFO topic none")]
    QueuesFixed { topic: TopicName, has: u16 },
    #[error(transparent)]
    Make(#[from] MakeError),
}

/// Whether a topic is deleted with all that is still to be delivered or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    Yes,
    No,
}

/// Why a topic is not deleted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DeleteError {
    #[error("there is no topic {0}")]
    NotFound(TopicName),
    #[error("{pending} messages wait for their moment and {unacked} for an acknowledgement")]
    NotEmpty { pending: u64, unacked: u64 },
    /// What was appended for the topic last is not counted yet: wait for dispatch and ask again.
    #[error("the topic is being written to")]
    NotCounted,
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl Store {
    /// Makes topic `name`, or sets it to something else.
    ///
    /// # Errors
    ///
    /// [`TopicError`]; nothing was changed then.
    pub fn set_topic(
        &self,
        name: &TopicName,
        change: TopicChange,
        default_queues: u16,
        now: Timestamp,
    ) -> Result<TopicChanged, TopicError> {
        let _making = self.making.lock();
        let there = self.topic(name);
        let (id, settings) = match &there {
            Some(topic) => (topic.id, changed(name, topic.settings, change)?),
            None => (self.fold.topics.next_id(), new(change, default_queues)),
        };
        if let Some(topic) = there.as_ref().filter(|topic| topic.settings == settings) {
            let (topic, receipt) = (Arc::clone(topic), self.log.latest_receipt());
            return Ok(TopicChanged { topic, made: false, receipt });
        }
        if id > MAX_TOPIC_ID {
            return Err(MakeError::TooMany.into());
        }
        let set = TopicSet {
            topic_id: id,
            settings,
            at: now,
            name: name.as_str().to_owned(),
            delays_ms: Vec::new(),
        };
        let record = set.encode();
        let mut turn = self.log.turn(record.len()).map_err(MakeError::from)?;
        let set_at = turn.append(record);
        let receipt = turn.receipt();
        let at = TopicAt { id, name: name.as_str(), settings, set_at };
        let topic = self.fold.topics.set(&at);
        Ok(TopicChanged { topic, made: there.is_none(), receipt })
    }

    /// Deletes topic `name`: from the record of it on nothing of the topic is delivered. Without force
    /// only when nothing waits in it, and `unacked` finds nothing that a group has still to acknowledge;
    /// both when everything that was appended for the topic is counted.
    ///
    /// # Errors
    ///
    /// [`DeleteError`]; the topic is as it was.
    pub fn delete_topic(
        &self,
        name: &TopicName,
        force: Force,
        unacked: impl FnOnce(&Topic) -> u64,
        now: Timestamp,
    ) -> Result<(Receipt, Arc<Topic>), DeleteError> {
        let _making = self.making.lock();
        let topic = self.topic(name).ok_or_else(|| DeleteError::NotFound(name.clone()))?;
        let record = TopicDeleted { topic_id: topic.id, at: now }.encode();
        let counted_to = topic.last_append();
        if force == Force::No {
            if counted_to >= self.dispatched() {
                return Err(DeleteError::NotCounted);
            }
            // Counted before the turn: whoever acknowledges holds the leases while it waits for one.
            let (pending, unacked) = (topic.pending(), unacked(&topic));
            if pending > 0 || unacked > 0 {
                return Err(DeleteError::NotEmpty { pending, unacked });
            }
        }
        let mut turn = self.log.turn_for_accepted(record.len())?;
        if force == Force::No && topic.last_append() != counted_to {
            return Err(DeleteError::NotCounted);
        }
        turn.append(record);
        self.fold.topics.mark_deleted(&topic);
        for system in self.fold.topics.of_topic(topic.id) {
            self.fold.topics.mark_deleted(&system);
        }
        let receipt = turn.receipt();
        drop(turn);
        Ok((receipt, topic))
    }

    /// All topics of users, by name.
    pub fn topics(&self) -> Vec<Arc<Topic>> {
        let mut all = self.fold.topics.all();
        all.retain(|topic| {
            let of_users = topic.id >= super::FIRST_USER_TOPIC_ID && topic.belongs.is_none();
            of_users && !topic.is_deleted()
        });
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }
}

fn new(change: TopicChange, default_queues: u16) -> TopicSettings {
    TopicSettings {
        of: change.of.unwrap_or(TopicType::Mixed),
        queues: change.queues.unwrap_or(default_queues),
        retention_ms: change.retention_ms,
    }
}

fn changed(
    name: &TopicName,
    is: TopicSettings,
    change: TopicChange,
) -> Result<TopicSettings, TopicError> {
    if change.of.is_some_and(|of| of != is.of) {
        return Err(TopicError::TypeFixed { topic: name.clone() });
    }
    let queues = change.queues.unwrap_or(is.queues);
    let fixed = is.of == TopicType::Fifo && queues != is.queues;
    if fixed || queues < is.queues {
        return Err(TopicError::QueuesFixed { topic: name.clone(), has: is.queues });
    }
    let retention_ms = change.retention_ms.or(is.retention_ms);
    Ok(TopicSettings { of: is.of, queues, retention_ms })
}
