//! What consumers do: set groups, receive by tags, reset offsets, and look at their lag.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use horolog::clock::Clock;
use horolog::commitlog::{Durability, FlushMode, Receipt};
use horolog::consumer::{More, SetError, SubscribeError};
use horolog::message::record::tag_hash;
use horolog::message::{GroupSettings, StartFrom, TagFilter};
use horolog::store::{Group, Topic};

use crate::model::{Checked, ensure};
use crate::ops_returned::{ORDERED, number_of};
use crate::reads::Decision;
use crate::world::{GROUPS, Held, Open, TOPICS, World};

/// Two tags that look the same to a unit, and another one.
pub(crate) static TAGS: LazyLock<[String; 3]> = LazyLock::new(|| {
    let twin = (0..).map(|number: u32| number.to_string());
    let twin = twin.into_iter().find(|tag| tag_hash(Some(tag)) == tag_hash(Some("paid")));
    ["paid".to_owned(), twin.expect("there are more tags than hashes"), "late".to_owned()]
});

/// What happened in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupCoverage(BTreeMap<&'static str, u64>);

const COVERED: [&str; 16] = [
    "groups set",
    "starts at the latest",
    "reads by tags",
    "resets",
    "resets told",
    "resets lost",
    "subscriptions that did not match",
    "void handles",
    "quiet lags",
    "nacks",
    "nacks told",
    "came again",
    "dead letters",
    "redriven",
    "out in order",
    "nacked in order",
];

impl GroupCoverage {
    pub(crate) fn count(&mut self, what: &'static str) {
        assert!(COVERED.contains(&what), "{what} is counted and not looked at");
        *self.0.entry(what).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        other.0.iter().for_each(|(what, count)| *self.0.entry(what).or_default() += count);
    }

    pub(crate) fn check(&self) {
        for what in COVERED {
            assert!(self.0.contains_key(what), "in none of these runs: {what}");
        }
    }
}

/// Whether a caller is there when its answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Stays,
    MayLeave,
}

impl World {
    pub(crate) fn group_operation(&mut self) -> Checked {
        match self.random.below(10) {
            0..2 => self.set_group(),
            2..6 => self.reset_offsets(),
            6..8 => self.ack_void(),
            _ => self.quiet_lag(),
        }
    }

    pub(crate) fn some_tag(&mut self) -> Option<String> {
        TAGS.get(self.index(4)).cloned()
    }

    fn some_filter(&mut self) -> TagFilter {
        let wanted = 1 + self.index(TAGS.len());
        let from = self.index(TAGS.len());
        TagFilter::new((from..from + wanted).map(|index| TAGS[index % TAGS.len()].clone()))
    }

    pub(crate) fn there(&self, group: usize, topic: usize) -> Option<(Arc<Group>, Arc<Topic>)> {
        let store = &self.engine().store;
        Some((store.group(&self.group(group))?, store.topic(&self.topic(topic))?))
    }

    fn set_group(&mut self) -> Checked {
        let group = self.index(GROUPS);
        let start_from = match self.random.once_in(2) {
            true => StartFrom::Latest,
            false => StartFrom::Earliest,
        };
        let mut settings = GroupSettings { start_from, ..GroupSettings::default() };
        settings.max_attempts = match self.random.once_in(2) {
            true => 1 + u32::try_from(self.random.below(3)).expect("below 3"),
            false => 1 + u32::try_from(self.random.below(50)).expect("below 50"),
        };
        settings.backoff_ms = vec![500, 4_000, 90_000];
        settings.ordered = group == ORDERED;
        for topic in 0..TOPICS {
            if self.random.once_in(3) {
                let filter = match self.model.reads.latest((group, topic)) {
                    // Mostly what is there: anything else is refused.
                    Some(known) if !self.random.once_in(4) => known.filter.unwrap_or_default(),
                    _ => self.some_filter(),
                };
                if !filter.admits_everything() {
                    settings.filters.insert(self.topic(topic).as_str().to_owned(), filter);
                }
            }
        }
        let fits = (0..TOPICS).all(|topic| {
            let asked = settings.filters.get(self.topic(topic).as_str());
            let there = self.model.reads.latest((group, topic)).and_then(|known| known.filter);
            there.is_none() || asked.is_none() || there.as_ref() == asked
        });
        let (name, now) = (self.group(group), self.clock.now().wall);
        let before = self.engine().store.group(&name);
        let before = before.map(|group| GroupSettings::clone(&group.settings()));
        let most = settings.max_attempts;
        match self.engine().consumers.set_group(&name, settings.clone(), now) {
            Ok((there, _, receipt)) => {
                self.model.returned.set(group, most);
                ensure!(fits, "group {group} was set to filters that do not fit: {settings:?}");
                ensure!(*there.settings() == settings, "group {group} is not as it was set");
                let number = self.model.reads.number();
                self.model.reads.set(group, number, before, settings);
                self.open.push((receipt, Open::Set { group, number }));
                self.coverage.groups.count("groups set");
            }
            Err(SetError::Filter { .. }) => {
                ensure!(!fits, "group {group} could not be set: {settings:?}");
                self.coverage.groups.count("subscriptions that did not match");
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Lets the group read the topic. `None` when it cannot, now or by these tags.
    pub(crate) fn subscribe(
        &mut self,
        group: usize,
        topic: usize,
        asked: Option<&TagFilter>,
    ) -> Result<Option<Option<Receipt>>, String> {
        let now = self.clock.now().wall;
        let engine = self.engine();
        let Some(topic_there) = engine.store.topic(&self.topic(topic)) else { return Ok(None) };
        let settings = GroupSettings { ordered: group == ORDERED, ..GroupSettings::default() };
        let made = engine.store.make_group(&self.group(group), &settings, now);
        let Ok((group_there, _)) = made else { return Ok(None) };
        let consumers = Arc::clone(&engine.consumers);
        let settings = group_there.settings();
        let before = consumers.reading(&group_there, &topic_there);
        let declared = settings.filters.get(&topic_there.name).cloned();
        let there = before.as_ref().and_then(|reading| reading.filter.clone());
        let undecided = there.is_none();
        let there = there.or(declared);
        let fits = there.is_none() || asked.is_none() || there.as_ref() == asked;
        let receipt = match consumers.subscribe(&group_there, &topic_there, asked, now) {
            Ok(receipt) => receipt,
            Err(SubscribeError::Mismatch { .. }) => {
                ensure!(!fits, "group {group} may not read topic {topic} by {asked:?}");
                self.coverage.groups.count("subscriptions that did not match");
                return Ok(None);
            }
            Err(SubscribeError::Append(_)) => return Ok(None),
        };
        ensure!(fits, "group {group} reads topic {topic} by {there:?}, and was given {asked:?}");
        if undecided {
            let latest = before.is_none() && settings.start_from == StartFrom::Latest;
            let start = |end: u64| match (&before, latest) {
                (Some(_), _) => None,
                (None, true) => Some(end),
                (None, false) => Some(0),
            };
            let starts = topic_there.queues.iter().map(|queue| start(queue.next_offset()));
            let filter = there.or_else(|| asked.cloned()).unwrap_or_default();
            if latest {
                self.coverage.groups.count("starts at the latest");
            }
            if !filter.admits_everything() {
                self.coverage.groups.count("reads by tags");
            }
            let decided = consumers.reading(&group_there, &topic_there).ok_or("it is decided")?;
            ensure!(decided.filter.as_ref() == Some(&filter), "another filter than asked for");
            let (starts, acked) = (starts.collect(), BTreeSet::new());
            let number = self.model.reads.number();
            let decision =
                Decision { number, fence: decided.fence, filter: Some(filter), starts, acked };
            self.model.reads.appended((group, topic), decision);
            let receipt = receipt.clone().unwrap_or_else(|| self.latest_receipt());
            self.open.push((receipt, Open::Read { group, topic, number }));
        }
        Ok(Some(receipt))
    }

    fn latest_receipt(&self) -> Receipt {
        self.engine().store.log().latest_receipt()
    }

    pub(crate) fn receive(
        &mut self,
        group: usize,
        topic: usize,
        max: usize,
        invisible_ms: u64,
        caller: Caller,
    ) -> Result<Vec<Held>, String> {
        // A receive that says what it wants says mostly what is there.
        let asked = match self.random.below(6) {
            0 if group < GROUPS && caller == Caller::MayLeave => Some(self.some_filter()),
            1 | 2 => self.model.reads.latest((group, topic)).and_then(|known| known.filter),
            _ => None,
        };
        loop {
            let subscribed = self.subscribe(group, topic, asked.as_ref())?;
            let Some(receipt) = subscribed else { return Ok(Vec::new()) };
            match (receipt.is_none_or(|r| r.outcome() == Some(Durability::Durable)), caller) {
                (true, _) => break,
                // It waits, and nothing is shown to it.
                (false, Caller::MayLeave) => return Ok(Vec::new()),
                // The disk may fail meanwhile, and nothing is decided then.
                (false, Caller::Stays) => self.settle()?,
            }
        }
        let Some((group_there, topic_there)) = self.there(group, topic) else {
            return Ok(Vec::new());
        };
        let consumers = Arc::clone(&self.engine().consumers);
        let (now, invisible) = (self.clock.now(), Duration::from_millis(invisible_ms));
        self.hear_answers();
        let leased = loop {
            let leased = consumers.receive(&group_there, &topic_there, max, invisible, now);
            let leased = leased.map_err(|error| format!("receive: {error}"))?;
            if !leased.is_empty() || leased.more() == More::No {
                break leased;
            }
        };
        if caller == Caller::MayLeave && self.random.once_in(10) {
            // The caller went away: nobody has seen it.
            return Ok(Vec::new());
        }
        let mut held = Vec::new();
        let highest = self.highest_wall;
        for received in leased.take() {
            let before = self.model.attempt(group, number_of(&received));
            let number = self.model.received(group, topic, &received, highest)?;
            if group == ORDERED {
                self.check_order(topic, number, now.monotonic, invisible)?;
            }
            if before > 0 && received.attempt > before {
                self.coverage.groups.count("came again");
            }
            let ahead = received.deliver_at.since(received.born_at);
            // Farther than two far slots ahead it must have been filed far, and filed again.
            self.coverage.refiled += u64::from(ahead > 128_000);
            if received.attempt > 1 {
                self.coverage.leases_expired += 1;
            }
            let (attempt, handle) = (received.attempt, received.receipt_handle);
            held.push(Held { group, topic, number, attempt, handle });
        }
        Ok(held)
    }

    pub(crate) fn receive_some(&mut self) -> Checked {
        let (group, topic) = (self.index(GROUPS), self.index(TOPICS));
        let max = 1 + self.index(8);
        let invisible = [200, 5_000, 120_000][self.index(3)];
        let held = self.receive(group, topic, max, invisible, Caller::MayLeave)?;
        self.held.extend(held);
        Ok(())
    }

    /// When a group has read all there is, what it is behind is what is out.
    fn quiet_lag(&mut self) -> Checked {
        let (group, topic) = (self.index(GROUPS), self.index(TOPICS));
        self.settle()?;
        let received = self.read_topic(group, topic)?;
        self.held.extend(received);
        let lives = self.lives();
        self.settle()?;
        // If the disk fails just now, nothing is out any more.
        if self.lives() == lives {
            self.check_lag(group, topic)?;
            self.coverage.groups.count("quiet lags");
        }
        Ok(())
    }

    /// Of what a group has read to its end: lag and what is out are the same. Answers it.
    pub(crate) fn check_lag(&self, group: usize, topic: usize) -> Result<u64, String> {
        let Some((there, topic)) = self.there(group, topic) else { return Ok(0) };
        let stats = self.engine().consumers.stats(&there).map_err(|error| error.to_string())?;
        let Some(stats) = stats.iter().find(|stats| stats.topic == topic.name) else {
            return Ok(0);
        };
        ensure!(
            group == ORDERED || stats.lag >= stats.in_flight,
            "group {group} has read all of {}, and is behind: {stats:?}",
            topic.name
        );
        Ok(stats.lag)
    }

    /// All that the group can read of the topic now.
    pub(crate) fn read_topic(&mut self, group: usize, topic: usize) -> Result<Vec<Held>, String> {
        let mut all = Vec::new();
        loop {
            let received = self.receive(group, topic, 256, 600_000, Caller::Stays)?;
            if received.is_empty() {
                return Ok(all);
            }
            all.extend(received);
        }
    }

    /// At the end: a group gets whatever it wants and has not acked, and nothing else is behind.
    pub(crate) fn audit_group(&mut self, group: usize) -> Checked {
        self.redrive_all(group)?;
        for topic in 0..TOPICS {
            let received = self.read_all_of(group, topic)?;
            let seen: BTreeSet<_> = received.iter().map(|held| held.number).collect();
            self.settle()?;
            let lag = self.check_lag(group, topic)?;
            // One at a time of each message group was acknowledged to see the next.
            let expected = if group == ORDERED { 0 } else { received.len() as u64 };
            let topic_id = self.there(group, topic).map(|(_, topic)| topic.id);
            ensure!(
                lag == expected,
                "group {group} was handed {} of topic {topic}, and its lag is {lag}",
                seen.len()
            );
            for message in &self.model.messages {
                let Some((of, queue, offset)) = message.place else { continue };
                let number = message.number;
                if Some(of) != topic_id || seen.contains(&number) {
                    continue;
                }
                let acked = [&self.model.acked, &self.model.ack_unknown];
                let done = acked.iter().any(|acked| acked.contains(&(group, number)));
                let tag = message.tag.as_deref();
                let missing = self.model.reads.must_come((group, topic), (queue, offset), tag);
                ensure!(
                    done || !missing,
                    "message {number} is lost for group {group}: {message:?}"
                );
            }
        }
        Ok(())
    }

    /// After a start: what has become of what was decided and not told.
    pub(crate) fn groups_started(&mut self) -> Checked {
        let keeps = self.mode == FlushMode::Sync;
        for group in 0..GROUPS + 2 {
            let there = self.engine().store.group(&self.group(group));
            let settings = there.as_ref().map(|there| there.settings());
            self.model.reads.check_settings(group, settings.as_deref())?;
            for topic in 0..TOPICS {
                let topic_there = self.engine().store.topic(&self.topic(topic));
                let ids = there.as_ref().zip(topic_there);
                let reading = ids.and_then(|(group, topic)| group.reading(topic.id));
                let pair = (group, topic);
                let lost = self.model.reads.started(pair, reading.as_ref(), keeps)?;
                self.model.acked.extend(lost.into_iter().map(|number| (group, number)));
                // Handles are void by what has survived only.
                let fence = reading.map_or(0, |reading| reading.fence);
                let by = self.void_by.remove(&pair).unwrap_or_default();
                if by.iter().any(|&by| by > fence) {
                    self.coverage.groups.count("resets lost");
                    self.void.retain(|void| (void.group, void.topic) != pair);
                }
            }
        }
        self.model.reads.all_started();
        Ok(())
    }
}
