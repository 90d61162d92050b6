//! The system's topics of a group: `%RETRY%group`, what comes to it again, and `%DLQ%group`, what does not.
//!
//! There is one of each for a group and a topic, with one queue, made when it is first needed by the same
//! record as any topic. So a retry queue is derived, checkpointed and read like any queue, and goes with
//! its topic. The name tells whose it is: `%RETRY%billing/7/3`, group id before topic id; no name of a user
//! has a slash.

use std::sync::Arc;

use super::topics::TopicAt;
use super::{Group, MakeError, Store, Topic};
use crate::clock::Timestamp;
use crate::message::TopicSettings;
use crate::message::offset::Offset;
use crate::message::record::TopicSet;
use crate::message::timer_tag::MAX_TOPIC_ID;

/// What a system topic of a group holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Retries,
    DeadLetters,
}

/// Whose a system topic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belongs {
    pub holds: Holds,
    pub group_id: u32,
    pub topic_id: u32,
}

impl Holds {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Retries => "%RETRY%",
            Self::DeadLetters => "%DLQ%",
        }
    }

    pub(super) fn name(self, group: &Group, topic_id: u32) -> String {
        format!("{}{}/{}/{topic_id}", self.prefix(), group.name, group.id)
    }
}

impl Belongs {
    /// What the name says; `None` for a topic that is no group's.
    pub(super) fn of(name: &str) -> Option<Self> {
        let holds = [Holds::Retries, Holds::DeadLetters];
        let holds = holds.into_iter().find(|holds| name.starts_with(holds.prefix()))?;
        let (rest, topic_id) = name.rsplit_once('/')?;
        let (_, group_id) = rest.rsplit_once('/')?;
        Some(Self { holds, group_id: group_id.parse().ok()?, topic_id: topic_id.parse().ok()? })
    }
}

impl Store {
    /// The group's retries or dead letters of the topic, if there ever were any.
    pub fn system_topic(&self, holds: Holds, group: &Group, topic_id: u32) -> Option<Arc<Topic>> {
        self.fold.topics.by_name(&holds.name(group, topic_id))
    }

    /// The same, made when it is not there; `None` when the topic was deleted. To be called with no lock
    /// of consumers held.
    ///
    /// # Errors
    ///
    /// When it must be made and cannot.
    pub fn system_topic_or_make(
        &self,
        holds: Holds,
        group: &Group,
        topic_id: u32,
        now: Timestamp,
    ) -> Result<Option<Arc<Topic>>, MakeError> {
        if let Some(there) = self.system_topic(holds, group, topic_id) {
            return Ok(Some(there));
        }
        let _making = self.making.lock();
        if let Some(there) = self.system_topic(holds, group, topic_id) {
            return Ok(Some(there));
        }
        if self.topic_by_id(topic_id).is_none_or(|topic| topic.is_deleted()) {
            return Ok(None);
        }
        let id = self.fold.topics.next_id();
        if id > MAX_TOPIC_ID {
            return Err(MakeError::TooMany);
        }
        let (name, settings) = (holds.name(group, topic_id), TopicSettings::mixed(1));
        let set =
            TopicSet { topic_id: id, settings, at: now, delays_ms: Vec::new(), name: name.clone() };
        let record = set.encode();
        let set_at = self.log.turn_for_accepted(record.len())?.append(record);
        let at = TopicAt { id, name: &name, settings, set_at };
        Ok(Some(self.fold.topics.set(&at)))
    }
}

impl super::fold::Fold {
    /// The system topic with this id; made again when the record that made it is lost.
    pub(super) fn system_topic(
        &self,
        id: u32,
        holds: Holds,
        group: &Group,
        topic_id: u32,
        at: Offset,
    ) -> Arc<Topic> {
        if let Some(topic) = self.topics.by_id(id) {
            return topic;
        }
        let (name, settings) = (holds.name(group, topic_id), TopicSettings::mixed(1));
        self.topics.set(&TopicAt { id, name: &name, settings, set_at: at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::GroupSettings;

    #[test]
    fn a_name_tells_whose_the_topic_is_whatever_the_group_is_called() {
        for name in ["billing", "a%RETRY%b", "7.3"] {
            let group = Group::new(7, name, 0, Offset::ZERO, GroupSettings::default());
            for holds in [Holds::Retries, Holds::DeadLetters] {
                let belongs = Belongs { holds, group_id: 7, topic_id: 3 };
                assert_eq!(Belongs::of(&holds.name(&group, 3)), Some(belongs));
            }
        }
        for name in ["orders", "rmq_sys_wheel_timer", "%RETRY%billing", "%DLQ%a/b/c"] {
            assert_eq!(Belongs::of(name), None, "{name}");
        }
    }
}
