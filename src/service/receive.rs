//! Receive, by long poll: looking, waiting for one's turn, and looking again.

use std::sync::Arc;
use std::time::Duration;

use super::answers::{ReceiveError, ReceiveRequest, Received};
use super::{Inner, Service, blocking};
use crate::consumer::long_poll::{Admission, Poll};
use crate::consumer::{Consumers, Leased, More};
use crate::message::{GroupName, GroupSettings, TopicName};
use crate::store::{Group, Topic};

impl Service {
    /// Leases messages to the group, waiting for some to arrive if there are none.
    ///
    /// Dropping the future gives nothing away: a lease counts only when the answer is taken.
    ///
    /// # Errors
    ///
    /// [`ReceiveError`]; nothing is leased then.
    pub async fn receive(
        &self,
        group: &GroupName,
        request: ReceiveRequest,
    ) -> Result<Vec<Received>, ReceiveError> {
        self.check_ready()?;
        let Inner { engine, clock, .. } = &*self.0;
        let deadline = tokio::time::Instant::now() + Duration::from_millis(request.wait_ms);
        // What waits in a system topic is not due: nobody reads it from there.
        if TopicName::writable(request.topic.as_str()).is_err() {
            return Err(ReceiveError::TopicNotFound { topic: request.topic });
        }
        let now = clock.now().wall;
        let topic = match (engine.store.topic(&request.topic), self.0.put.queues_of_new_topic) {
            (Some(topic), _) => topic,
            // A consumer may come before the first message.
            (None, Some(queues)) => engine.store.topic_or_make(&request.topic, queues, now)?,
            (None, None) => return Err(ReceiveError::TopicNotFound { topic: request.topic }),
        };
        let invisible_for_ms = GroupSettings::INVISIBLE_FOR_MS;
        let group = engine.store.group_or_make(group, invisible_for_ms, now)?;
        let tags = request.tags.as_ref();
        match engine.consumers.subscribe(&group, &topic, tags, now) {
            Ok(None) => {}
            Ok(Some(receipt)) => self.durable(&receipt).await?,
            Err(refusal) => {
                self.durable_so_far().await?;
                return Err(refusal.into());
            }
        }
        let mut poll = engine.consumers.polls().join(group.id, topic.id);
        let may_have = engine.consumers.may_have(&group, &topic);
        let mut may_look = match poll.admission(may_have) {
            Admission::Look => true,
            Admission::Nothing => false,
            // Those before it look right now: that is no wait that counts.
            Admission::Held => {
                poll.woken().await;
                true
            }
        };
        loop {
            if may_look {
                // Queues may have been added since, or the topic deleted.
                let topic = engine.store.topic_by_id(topic.id).filter(|topic| !topic.is_deleted());
                let Some(topic) = topic else { return Ok(Vec::new()) };
                let leased = self.look_for(&mut poll, &group, &topic, &request).await?;
                if !leased.is_empty() {
                    return Ok(leased.take());
                }
            }
            if engine.consumers.is_held_back(&group, &topic) {
                return Err(ReceiveError::TooManyOut);
            }
            if self.is_draining() || tokio::time::Instant::now() >= deadline {
                return Ok(Vec::new());
            }
            may_look = tokio::time::timeout_at(deadline, poll.woken()).await.is_ok();
        }
    }

    /// One look: as many turns as it takes to find something, or to have looked at all there is.
    async fn look_for(
        &self,
        poll: &mut Poll,
        group: &Arc<Group>,
        topic: &Arc<Topic>,
        request: &ReceiveRequest,
    ) -> Result<Leased, ReceiveError> {
        let consumers = &self.0.engine.consumers;
        poll.looks();
        let invisible_for = Consumers::invisible_for(group, request.invisible_for_ms);
        while consumers.may_have(group, topic) {
            let leased = self.lease(group, topic, request.max, invisible_for).await?;
            if !leased.is_empty() {
                poll.is_served();
                return Ok(leased);
            }
            if leased.more() == More::No || self.is_draining() {
                break;
            }
        }
        poll.rests();
        Ok(consumers.nothing())
    }

    async fn lease(
        &self,
        group: &Arc<Group>,
        topic: &Arc<Topic>,
        max: usize,
        invisible_for: Duration,
    ) -> Result<Leased, ReceiveError> {
        let service = self.clone();
        let (group, topic) = (Arc::clone(group), Arc::clone(topic));
        // Bodies are read from the disk, not on the network's threads.
        let leased = blocking(move || {
            let now = service.0.clock.now();
            service.0.engine.consumers.receive(&group, &topic, max, invisible_for, now)
        });
        Ok(leased.await??)
    }
}

#[cfg(test)]
mod tests {
    use timerlog::disk::Directory;
    use timerlog::disk::sim::SimDisk;

    use super::super::ServiceConfig;
    use super::*;
    use crate::clock::SystemClock;
    use crate::config::{DiskReserve, Flush, LeaseBounds, QueuedAppends, TopicCreation};
    use crate::message::{Attributes, Moment, NewMessage};
    use crate::metrics::Metrics;

    fn topic() -> TopicName {
        TopicName::writable("orders").expect("a good name")
    }

    async fn poll(service: Service) -> usize {
        let group = GroupName::writable("workers").expect("a good name");
        let request = ReceiveRequest {
            topic: topic(),
            max: 1,
            wait_ms: 3_600_000,
            invisible_for_ms: None,
            tags: None,
        };
        service.receive(&group, request).await.expect("the service is open").len()
    }

    #[tokio::test]
    async fn a_thousand_receives_wait_without_a_look_and_a_message_costs_one() {
        let config = ServiceConfig {
            flush: Flush::Sync,
            segment_size: 1 << 20,
            topics: TopicCreation::Automatic,
            queues_per_topic: 4,
            checkpoint_interval_ms: 60_000,
            disk_reserve: DiskReserve::Auto,
            retention_ms: 72 * 3_600_000,
            levels: crate::message::LevelTable::default(),
            queued_appends: QueuedAppends::default(),
            leases: LeaseBounds::default(),
        };
        let root: Arc<dyn Directory> = SimDisk::new(1).root();
        let (clock, metrics) = (Arc::new(SystemClock::new()), Arc::new(Metrics::new()));
        let opened = Service::open(&config, &root, clock, metrics, &[7; 32]);
        let (service, handle) = opened.expect("a new disk is good");
        let mut polls = tokio::task::JoinSet::new();
        for _ in 0..1000 {
            polls.spawn(poll(service.clone()));
        }
        let rows = Arc::clone(service.0.engine.consumers.polls());
        let until = async |waiting| {
            while rows.waiting() != waiting {
                tokio::task::yield_now().await;
            }
            // Whoever has joined has been asked once more, and waits.
            tokio::task::yield_now().await;
        };
        until(1000).await;
        let looks = rows.looks();
        assert!(looks <= 1000, "{looks} looks to begin with");
        for served in 1..=3 {
            let (moment, attributes) = (Moment::Now, Attributes::default());
            let message = NewMessage { moment, attributes, body: "one".into() };
            service.put(&topic(), message).await.expect("there is room");
            assert_eq!(polls.join_next().await.expect("they wait").expect("no panic"), 1);
            assert_eq!(rows.looks(), looks + served);
        }
        polls.shutdown().await;
        until(0).await;
        assert_eq!(rows.looks(), looks + 3, "who goes away makes nobody look");
        tokio::task::spawn_blocking(|| handle.stop()).await.expect("no panic");
    }
}
