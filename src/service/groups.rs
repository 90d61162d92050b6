//! Groups: set, looked at, and made to read from elsewhere.

use std::sync::Arc;

use super::answers::{GroupError, GroupView, ResetOffsetsError, TopicProgress};
use super::{Inner, Service, Unavailable, blocking};
use crate::consumer::ResetTo;
use crate::message::{GroupName, GroupSettings, TopicName};
use crate::store::{Group, Made};

impl Service {
    /// Makes the group, or sets the one that is there anew.
    ///
    /// # Errors
    ///
    /// [`GroupError::Mismatch`] when it reads a topic by another filter; nothing has changed then.
    pub async fn set_group(
        &self,
        name: &GroupName,
        settings: GroupSettings,
    ) -> Result<(GroupView, Made), GroupError> {
        self.check_open()?;
        let Inner { engine, clock, .. } = &*self.0;
        let set = engine.consumers.set_group(name, settings, clock.now().wall);
        let (group, made, receipt) = match set {
            Ok(set) => set,
            Err(refusal) => {
                self.durable_so_far().await?;
                return Err(refusal.into());
            }
        };
        self.durable(&receipt).await?;
        Ok((self.view_group(group).await?, made))
    }

    /// A group: its settings, and how far it is.
    ///
    /// # Errors
    ///
    /// [`GroupError::NotFound`].
    pub async fn group(&self, name: &GroupName) -> Result<GroupView, GroupError> {
        self.check_ready()?;
        let group = self.0.engine.store.group(name);
        let group = group.ok_or_else(|| GroupError::NotFound { group: name.clone() })?;
        self.durable_so_far().await?;
        Ok(self.view_group(group).await?)
    }

    /// Up to `max` groups by name, those after `after`.
    ///
    /// # Errors
    ///
    /// [`Unavailable`].
    pub async fn groups(
        &self,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<GroupView>, Unavailable> {
        self.check_ready()?;
        let mut views = Vec::new();
        self.durable_so_far().await?;
        for group in self.0.engine.store.groups(after, max) {
            views.push(self.view_group(group).await?);
        }
        Ok(views)
    }

    /// Makes the group read the topic from elsewhere; answers where it now stands, by queue.
    ///
    /// # Errors
    ///
    /// [`ResetOffsetsError`]; nothing has changed then, unless it says that this is unknown.
    pub async fn reset_offsets(
        &self,
        group: &GroupName,
        topic: &TopicName,
        to: ResetTo,
    ) -> Result<Vec<u64>, ResetOffsetsError> {
        self.check_open()?;
        let store = &self.0.engine.store;
        let there = store.group(group);
        let there =
            there.ok_or_else(|| ResetOffsetsError::GroupNotFound { group: group.clone() })?;
        let known = store.topic(topic).filter(|_| TopicName::writable(topic.as_str()).is_ok());
        let known =
            known.ok_or_else(|| ResetOffsetsError::TopicNotFound { topic: topic.clone() })?;
        let service = self.clone();
        // The search by time may go to the disk.
        let reset = blocking(move || {
            let Inner { engine, clock, .. } = &*service.0;
            engine.consumers.reset(&there, &known, &to, clock.now())
        });
        match reset.await? {
            Ok((stands, receipt)) => {
                self.durable(&receipt).await?;
                Ok(stands)
            }
            Err(refusal) => {
                self.durable_so_far().await?;
                Err(refusal.into())
            }
        }
    }

    /// Waits for what an answer was decided on: a refusal that the power makes untrue was none.
    pub(super) async fn durable_so_far(&self) -> Result<(), Unavailable> {
        self.durable(&self.0.engine.store.log().latest_receipt()).await
    }

    async fn view_group(&self, group: Arc<Group>) -> Result<GroupView, Unavailable> {
        let service = self.clone();
        // The oldest unit of each queue may be on the disk.
        blocking(move || {
            let Inner { engine, clock, .. } = &*service.0;
            let stats = engine.consumers.stats(&group).map_err(Unavailable::of)?;
            let now = clock.now().wall;
            let topics = stats.into_iter().map(|stats| TopicProgress {
                oldest_unacked_age_ms: stats.oldest_unacked.map(|time| now.since(time)),
                topic: stats.topic,
                lag: stats.lag,
                in_flight: stats.in_flight,
                dead_letters: stats.dead_letters,
            });
            Ok(GroupView {
                name: group.name.clone(),
                settings: engine.consumers.settings(&group),
                topics: topics.collect(),
            })
        })
        .await?
    }
}
