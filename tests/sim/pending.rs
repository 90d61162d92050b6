//! What is pending, listed and cancelled in bulk, held against the model.
//!
//! At rest a list is exact: all that waits, each message once. Amid other operations, restarts included,
//! it must have what waited all along.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use horolog::clock::Timestamp;
use horolog::message::State;
use horolog::producer::{self, CancelAnswer, Query, WhenMatched};
use horolog::timer::pending::Timeline;

use crate::model::{Checked, Told, ensure};
use crate::ops_groups::TAGS;
use crate::world::{Open, TOPICS, World};

const ALL: Range<Timestamp> = Timestamp::from_millis(0)..Timestamp::from_millis(u64::MAX);
/// Dispatch and the two stages that file.
const FILING: Range<usize> = 1..4;

fn everything() -> Query {
    Query { topic_id: None, key: None, tag: None, deadlines: ALL }
}

impl World {
    /// The messages that wait by what their ids say, and by what the query asks.
    fn waiting(&mut self, query: &Query) -> Result<BTreeSet<u64>, String> {
        let highest = self.highest_wall;
        let store = &self.engine().store;
        let mut waiting = BTreeSet::new();
        for message in &self.model.messages {
            let number = message.number;
            // What was put and not answered may be lost.
            let Ok(found) = producer::find(store, &message.id) else { continue };
            let standing = found.standing(store).map_err(|error| error.to_string())?;
            let waits = standing.state == State::Scheduled;
            let deadline = standing.deliver_at.as_millis();
            let must_wait = message.is_certain()
                && message.is_timed()
                && !message.fire_asked
                && deadline > highest;
            let must_not = message.place.is_some() || message.cancelled == Told::Yes;
            ensure!(waits || !must_wait, "message {number} should wait: {message:?}");
            ensure!(!waits || !must_not, "message {number} should not wait: {message:?}");
            let tag = found.message.attributes.tag;
            let meant = query.topic_id.is_none_or(|id| id == found.message.topic_id)
                && (query.tag.is_none() || query.tag == tag)
                && query.deadlines.contains(&standing.deliver_at);
            if waits && meant {
                waiting.insert(number);
            }
        }
        Ok(waiting)
    }

    fn number_of(&self, id: &str) -> Result<u64, String> {
        let message = self.model.messages.iter().find(|message| message.id == id);
        message.map(|message| message.number).ok_or(format!("nobody put what is listed as {id}"))
    }

    /// One page, as the messages' numbers, and the cursor of the next.
    fn page(
        &mut self,
        query: &Query,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<u64>, Option<String>), String> {
        let engine = self.engine();
        let (store, clock) = (&engine.store, &*self.clock);
        let page = producer::list_scheduled(store, &engine.pending, query, cursor, limit, clock);
        let page = page.map_err(|error| format!("list: {error}"))?.answer;
        ensure!(page.items.len() <= limit, "{} items of {limit}", page.items.len());
        let mut numbers = Vec::new();
        for item in &page.items {
            let id = store.ids().message_id(item.found.offset, item.found.message.nonce);
            numbers.push(self.number_of(&id)?);
        }
        Ok((numbers, page.next))
    }

    /// All pages while nothing else happens; nothing may come twice.
    fn pages(&mut self, query: &Query) -> Result<BTreeSet<u64>, String> {
        let limit = [1, 2, 7, 1000][self.index(4)];
        let mut listed = BTreeSet::new();
        let mut cursor = None;
        loop {
            let (numbers, next) = self.page(query, cursor.as_deref(), limit)?;
            for number in numbers {
                ensure!(listed.insert(number), "message {number} is listed twice");
            }
            match next {
                Some(next) => cursor = Some(next),
                None => return Ok(listed),
            }
        }
    }

    pub(crate) fn list_at_rest(&mut self) -> Checked {
        self.settle()?;
        self.check_list()?;
        self.coverage.listed += 1;
        Ok(())
    }

    /// The stages rest: list and timeline are exact.
    fn check_list(&mut self) -> Checked {
        let query = everything();
        let waiting = self.waiting(&query)?;
        let listed = self.pages(&query)?;
        ensure!(
            listed == waiting,
            "listed and not waiting: {:?}; waiting and not listed: {:?}",
            listed.difference(&waiting),
            waiting.difference(&listed)
        );
        let pending = self.engine().store.pending();
        ensure!(listed.len() as u64 == pending, "{} listed, {pending} pending", listed.len());
        let of_topics =
            (0..TOPICS).filter_map(|topic| self.engine().store.topic(&self.topic(topic)));
        let ids: Vec<_> = of_topics.map(|topic| topic.id).collect();
        let mut by_topics = 0;
        for id in ids {
            by_topics += self.timeline(Some(id))?;
        }
        ensure!(by_topics == pending, "{by_topics} in the topics' timelines, {pending} pending");
        self.check_counted(pending)
    }

    /// The timeline by the slots' counts. They are exact but for three things: a slot that has fired and
    /// lies ahead again, since the clock was set back, counts what has fired until it is done; a cancel that
    /// overtakes the re-filing of its entry may leave one too many in its slot; and what fired early because
    /// somebody asked, or lost its topic, is counted until its slot is done.
    fn check_counted(&mut self, pending: u64) -> Checked {
        let by_counts = self.timeline(None)?;
        let now = self.wall();
        let ahead = self
            .model
            .messages
            .iter()
            .filter(|message| message.moments.iter().any(|moment| moment.at > now));
        // Each time that an entry was to be taken out of a slot ahead.
        let taken_out = ahead.map(|message| {
            let settled =
                message.cancel_asked || message.fire_asked || message.gone != Told::Nothing;
            message.moments.len() as u64 - 1 + u64::from(settled)
        });
        // Counts by slot alone know no topic, so retries are counted, too.
        let most = pending + taken_out.sum::<u64>() + self.model.returned.waiting();
        // While firing is held, slots lie behind that are not done.
        let behind = now < self.highest_wall || self.engine().timer.is_held();
        ensure!(
            behind || (pending..=most).contains(&by_counts),
            "{by_counts} in the timeline, {pending} pending, {most} at most"
        );
        self.coverage.counted_exactly += u64::from(by_counts == pending && pending > 0);
        Ok(())
    }

    /// The sum of all buckets.
    fn timeline(&self, topic_id: Option<u32>) -> Result<u64, String> {
        let empty =
            Timeline::empty(&ALL, 1 << 60, 1000, 1000).map_err(|error| error.to_string())?;
        let filled = self.engine().pending.fill(empty, ALL, topic_id, &*self.clock);
        let timeline = filled.map_err(|error| format!("timeline: {error}"))?;
        ensure!(timeline.complete, "a timeline at rest is not complete");
        Ok(timeline.buckets.iter().map(|bucket| bucket.count).sum())
    }

    /// Pages with other operations in between: what waited all along must be there, and once unless the
    /// server was started anew.
    pub(crate) fn list_amid_others(&mut self) -> Checked {
        self.settle()?;
        let query = everything();
        let before = self.waiting(&query)?;
        let (mut lives, mut restarts) = (self.lives(), 0);
        let mut listed: BTreeMap<u64, u64> = BTreeMap::new();
        let mut cursor = None;
        for page in 0.. {
            let limit = if page < 50 { 1 + self.index(4) } else { 1000 };
            let (numbers, next) = self.page(&query, cursor.as_deref(), limit)?;
            for number in numbers {
                *listed.entry(number).or_default() += 1;
            }
            let Some(next) = next else { break };
            cursor = Some(next);
            self.something_else()?;
            if self.lives() != lives {
                (lives, restarts) = (self.lives(), restarts + 1);
                self.catch_up()?;
            }
        }
        self.settle()?;
        restarts += u64::from(self.lives() != lives);
        let after = self.waiting(&query)?;
        let highest = self.highest_wall;
        for number in before.intersection(&after) {
            let message = self.model.message(*number);
            // A cancel or a firing that was lost with the process was true while it lasted.
            let settled_for_a_while = restarts > 0
                && (message.cancel_asked
                    || message.fire_asked
                    || message.moments.iter().any(|moment| moment.at <= highest));
            ensure!(
                settled_for_a_while || listed.contains_key(number),
                "message {number} waited all along and is not listed: {message:?}"
            );
        }
        let twice = listed.iter().find(|(_, count)| **count > 1);
        ensure!(restarts > 0 || twice.is_none(), "listed more than once: {twice:?}");
        self.coverage.listed_amid_others += 1;
        Ok(())
    }

    fn something_else(&mut self) -> Checked {
        match self.random.below(40) {
            0..10 => self.put(),
            10..15 => self.cancel(),
            15..30 => self.step_some(),
            30..36 => self.let_time_pass(),
            36..39 => self.let_time_pass().and_then(|()| self.settle()),
            _ => self.kill(),
        }
    }

    /// What a reader waits for in a server that runs.
    fn catch_up(&mut self) -> Checked {
        let mut worked = true;
        while worked {
            worked = false;
            for stage in FILING {
                worked |= self.step(stage)?;
            }
        }
        Ok(())
    }

    /// Cancels all of a topic in a range of time, or says how many they are.
    pub(crate) fn cancel_many(&mut self) -> Checked {
        self.settle()?;
        let topic = self.index(TOPICS);
        let Some(topic) = self.engine().store.topic(&self.topic(topic)) else { return Ok(()) };
        let from = self.wall() + self.random.below(100_000);
        let to = from + 1 + self.random.below(600_000);
        let query = Query {
            topic_id: Some(topic.id),
            key: None,
            tag: self.random.once_in(2).then(|| TAGS[0].clone()),
            deadlines: Timestamp::from_millis(from)..Timestamp::from_millis(to),
        };
        let waiting = self.waiting(&query)?;
        let when_matched =
            if self.random.once_in(4) { WhenMatched::Count } else { WhenMatched::Cancel };
        let engine = self.engine();
        let (store, clock) = (&engine.store, &*self.clock);
        let decided =
            producer::cancel_scheduled(store, &engine.pending, &query, None, when_matched, clock);
        let decided = match decided {
            Ok(decided) => decided,
            Err(producer::ScheduledError::Cancel(_)) => return Ok(()),
            Err(error) => return Err(format!("bulk cancel: {error}")),
        };
        let answer = decided.answer;
        ensure!(answer.next.is_none(), "a small bulk cancel is not done in one call");
        ensure!(
            answer.matched == waiting.len() as u64,
            "{} matched, and {waiting:?} wait",
            answer.matched
        );
        let mut selected = BTreeSet::new();
        for one in &answer.selected {
            let number = self.number_at(one.cause.offset)?;
            selected.insert(number);
            let open = match one.answer {
                CancelAnswer::Cancelled(_) => Open::Cancelled { number },
                CancelAnswer::AlreadyDelivered => Open::ToldDelivered { number },
            };
            self.open.push((decided.receipt.clone(), open));
            self.model.message(number).cancel_asked = true;
        }
        if when_matched == WhenMatched::Cancel {
            ensure!(selected == waiting, "cancelled {selected:?}, and {waiting:?} wait");
            self.coverage.cancelled_in_bulk += selected.len() as u64;
        }
        Ok(())
    }

    /// The message that the cause at `offset` speaks for.
    fn number_at(&self, offset: horolog::message::offset::Offset) -> Result<u64, String> {
        let store = &self.engine().store;
        let is_it = |id: &str| {
            let standing = producer::find(store, id).ok().map(|found| found.standing(store));
            matches!(standing, Some(Ok(standing)) if standing.cause == offset)
        };
        let message = self.model.messages.iter().find(|message| is_it(&message.id));
        message.map(|message| message.number).ok_or(format!("nobody put what stands at {offset}"))
    }
}
