//! Setting a group: making it, or changing what it is.

use std::sync::Arc;

use super::{Consumers, SubscribeError};
use crate::clock::Timestamp;
use crate::commitlog::{AppendError, Receipt};
use crate::message::{GroupName, GroupSettings};
use crate::store::{Group, Made, MakeError};

/// Why a group was not set; nothing has changed then.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SetError {
    /// Of the topic: its filter is another, and fixed.
    #[error("topic {topic}: {cause}")]
    Filter { topic: String, cause: SubscribeError },
    #[error("the group has begun to read: whether it is ordered is fixed")]
    OrderFixed,
    #[error(transparent)]
    Make(#[from] MakeError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl Consumers {
    /// Makes the group with `settings`, or gives them to the one that is there, whole: what was set before
    /// and is not in them is gone. Only the filter of a topic that the group has received from stays, and
    /// settings that name another one are refused.
    /// So are settings that change whether a group is ordered that has begun to read: what is out, or waits
    /// for its retry, was handed out by the other rule. Holds once the receipt is durable.
    ///
    /// # Errors
    ///
    /// [`SetError`].
    pub fn set_group(
        &self,
        name: &GroupName,
        settings: GroupSettings,
        now: Timestamp,
    ) -> Result<(Arc<Group>, Made, Receipt), SetError> {
        let (group, made) = self.store.make_group(name, &settings, now)?;
        if made == Made::Now {
            return Ok((group, made, self.store.log().latest_receipt()));
        }
        // First receives, which read the settings and fix filters, take turns with this.
        let mut leases = self.leases.lock();
        let changes = settings.ordered != group.settings().ordered;
        if changes && !self.topics_of(&leases, &group).is_empty() {
            return Err(SetError::OrderFixed);
        }
        for (topic, asked) in &settings.filters {
            let id = self.store.topic_by_name(topic).map(|topic| topic.id);
            let reading = id.and_then(|id| leases.reading(&group, id).as_ref());
            if let Some(there) = reading.and_then(|reading| reading.filter.as_ref())
                && there != asked
            {
                let cause = SubscribeError::Mismatch { there: there.clone() };
                return Err(SetError::Filter { topic: topic.clone(), cause });
            }
        }
        let receipt = match *group.settings() == settings {
            true => self.store.log().latest_receipt(),
            false => self.store.set_group(&group, settings, now)?,
        };
        Ok((group, made, receipt))
    }

    /// The group's settings, with the filters that are fixed in the place of those that were set.
    pub fn settings(&self, group: &Group) -> GroupSettings {
        let mut settings = GroupSettings::clone(&group.settings());
        let mut leases = self.leases.lock();
        for topic in self.topics_of(&leases, group) {
            let reading = leases.reading(group, topic.id).as_ref();
            match reading.and_then(|reading| reading.filter.clone()) {
                None => {}
                Some(filter) if filter.admits_everything() => {
                    settings.filters.remove(&topic.name);
                }
                Some(filter) => {
                    settings.filters.insert(topic.name.clone(), filter);
                }
            }
        }
        settings
    }
}
