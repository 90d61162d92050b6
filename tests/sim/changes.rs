//! Changes of mind, timers by key, batches, requests that come again, search, topics that go.

use std::collections::{BTreeMap, BTreeSet};

use horolog::clock::Clock;
use horolog::message::record::Bound;
use horolog::message::{NewMessage, State};
use horolog::producer::{
    self, Atomic, Changed, IfExists, LookError, PutError, PutSettings, Refusal, Request, TimerPut,
};
use horolog::store::{Force, TopicChange};

use crate::model::{self, Checked, Told, ensure};
use crate::operations::PUT;
use crate::world::{Open, TOPICS, World};

/// Until a request is this old it is certain that its key is remembered, however the clock was stepped.
const SURELY_REMEMBERED_MS: u64 = producer::IDEMPOTENT_FOR_MS / 2;

/// A request that was made under an idempotency key, and may be made again.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    bound: Bound,
    topic: usize,
    items: Vec<NewMessage>,
    numbers: Vec<u64>,
    at: u64,
}

impl World {
    pub(crate) fn reschedule(&mut self) -> Checked {
        let Some((number, found)) = self.some_message()? else { return Ok(()) };
        let before = self.model.message(number).moments.clone();
        let moment = match before.first() {
            // Back to where it was at first.
            Some(first) if self.random.once_in(4) => {
                horolog::message::Moment::At(horolog::clock::Timestamp::from_millis(first.at))
            }
            _ => self.moment(),
        };
        let now = self.clock.now().wall;
        let decided = producer::reschedule(&self.engine().store, &found, moment, now);
        let Ok(decided) = decided else { return Ok(()) };
        match decided.answer {
            Changed::Done(at) => {
                let moments = &mut self.model.message(number).moments;
                moments.push(model::Moment { at: at.as_millis(), told: Told::Unknown });
                let index = moments.len() - 1;
                self.open.push((decided.receipt, Open::Moved { number, index }));
            }
            Changed::AlreadyDelivered => {
                self.open.push((decided.receipt, Open::ToldDelivered { number }));
            }
            Changed::AlreadyCancelled => {
                let message = self.model.message(number);
                let rolled_back = message.half.as_ref().is_some_and(|half| half.rollback_asked);
                ensure!(
                    message.cancel_asked || rolled_back,
                    "message {number}: cancelled, and nobody asked"
                );
                self.open.push((decided.receipt, Open::Cancelled { number }));
            }
        }
        Ok(())
    }

    pub(crate) fn fire_now(&mut self) -> Checked {
        let Some((number, found)) = self.some_message()? else { return Ok(()) };
        let now = self.clock.now().wall;
        let decided = producer::fire_now(&self.engine().store, &found, now);
        let Ok(decided) = decided else { return Ok(()) };
        match decided.answer {
            Changed::Done(_) => {
                self.coverage.fire_asked += 1;
                self.model.message(number).fire_asked = true;
                self.open.push((decided.receipt, Open::ToldDelivered { number }));
            }
            Changed::AlreadyDelivered => {
                self.open.push((decided.receipt, Open::ToldDelivered { number }));
            }
            Changed::AlreadyCancelled => {
                self.open.push((decided.receipt, Open::Cancelled { number }));
            }
        }
        Ok(())
    }

    pub(crate) fn put_timer(&mut self) -> Checked {
        let topic = self.index(TOPICS);
        let key = format!("timer-{}", self.index(2));
        let (message, mut known) = self.new_message(topic);
        let number = known.number;
        known.timer = Some(key.clone());
        let if_exists = if self.random.once_in(4) { IfExists::Refuse } else { IfExists::Replace };
        let now = self.clock.now().wall;
        let engine = self.engine();
        let (name, nonce) = (self.topic(topic), engine.nonce());
        let put =
            producer::put_timer(&engine.store, PUT, &name, &key, message, if_exists, nonce, now);
        if let Ok(decided) = put
            && let TimerPut::Put { answer, replaced } = decided.answer
        {
            ensure!(
                replaced.is_none() || if_exists == IfExists::Replace,
                "a timer was replaced that was to be left alone"
            );
            self.was_put(&mut known, &answer);
            self.open.push((decided.receipt.clone(), Open::Put { number }));
            if let Some(id) = replaced {
                let of_id = self.model.messages.iter_mut().find(|message| message.id == id);
                let old = of_id.ok_or_else(|| format!("replaced {id}, which nobody put"))?;
                ensure!(
                    old.timer == known.timer && old.topic == topic,
                    "timer {number} replaced another key's: {old:?}"
                );
                old.cancel_asked = true;
                let number = old.number;
                self.coverage.replaced += 1;
                self.open.push((decided.receipt, Open::Cancelled { number }));
            }
        }
        self.model.messages.push(known);
        Ok(())
    }

    /// At rest, of each topic and key at most one timer waits, and the last one put is the one found.
    pub(crate) fn look_at_timers(&mut self) -> Checked {
        self.settle()?;
        let store = &self.engine().store;
        let mut waiting: BTreeMap<(u32, &str), Vec<u64>> = BTreeMap::new();
        for message in &self.model.messages {
            let Some(key) = &message.timer else { continue };
            let Ok(found) = producer::find(store, &message.id) else { continue };
            let standing = found.standing(store).map_err(|error| error.to_string())?;
            if standing.state == State::Scheduled {
                let of_key = waiting.entry((message.topic_id, key)).or_default();
                of_key.push(message.number);
            }
        }
        for ((topic_id, key), numbers) in waiting {
            ensure!(numbers.len() == 1, "timers {numbers:?} of key {key} all wait");
            let topic = store.topic_by_id(topic_id).ok_or("a timer waits, its topic is gone")?;
            let latest = producer::find_timer(store, &topic, key);
            let latest = latest.map_err(|error| error.to_string())?;
            let id = latest.map(|found| found.id(store)).unwrap_or_default();
            let known = self.model.messages.iter().find(|message| message.id == id);
            ensure!(
                known.is_some_and(|message| message.number == numbers[0]),
                "timer {} of key {key} waits, and the key leads to {known:?}",
                numbers[0]
            );
        }
        Ok(())
    }

    pub(crate) fn put_batch(&mut self) -> Checked {
        let topic = self.index(TOPICS);
        let first = self.model.messages.len() as u64;
        let count = 1 + self.index(5);
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            let (message, mut known) = self.new_message(topic);
            known.batch = Some(first);
            self.model.messages.push(known);
            items.push(message);
        }
        let numbers: Vec<_> = (first..).take(count).collect();
        let bound = self.random.once_in(2).then(|| Bound {
            key: u128::from(self.random.next()).to_le_bytes(),
            request: u128::from(self.random.next()).to_le_bytes(),
        });
        self.coverage.batches += 1;
        self.ask(topic, items, &numbers, bound).map(drop)
    }

    /// Makes a request again that was made before, answered or not.
    pub(crate) fn put_again(&mut self) -> Checked {
        let now = self.wall();
        self.requests.retain(|asked| now.abs_diff(asked.at) < SURELY_REMEMBERED_MS);
        if self.requests.is_empty() {
            return Ok(());
        }
        let index = self.index(self.requests.len());
        let Asked { bound, topic, items, numbers, .. } = self.requests[index].clone();
        if self.random.once_in(5) {
            let request = u128::from(self.random.next()).to_le_bytes();
            return self.ask_otherwise(topic, items, &numbers, Bound { request, ..bound });
        }
        let replayed = self.ask(topic, items, &numbers, Some(bound))?;
        let certain =
            numbers.iter().all(|&number| self.model.message(number).accepted == Told::Yes);
        ensure!(
            replayed != Some(false) || !certain,
            "a request was accepted and told so, and then again: messages {numbers:?}"
        );
        Ok(())
    }

    /// Another request under a key is refused, unless the key was never accepted.
    fn ask_otherwise(
        &mut self,
        topic: usize,
        items: Vec<NewMessage>,
        numbers: &[u64],
        bound: Bound,
    ) -> Checked {
        let certain =
            numbers.iter().all(|&number| self.model.message(number).accepted == Told::Yes);
        if !certain {
            return Ok(());
        }
        let engine = self.engine();
        let items = items.into_iter().map(Some).collect();
        let request = Request { items, atomic: Atomic::Yes, bound: Some(bound) };
        let (name, now) = (self.topic(topic), self.clock.now().wall);
        let put =
            producer::put_all(&engine.store, PUT, &name, request, &mut || engine.nonce(), now);
        ensure!(
            matches!(put, Err(PutError::KeyReused | PutError::Look(LookError::NotWritten(_)))),
            "another request was taken under a key: {put:?}"
        );
        Ok(())
    }

    /// Puts all or nothing, and says whether it was answered as before; nothing when it was refused.
    fn ask(
        &mut self,
        topic: usize,
        items: Vec<NewMessage>,
        numbers: &[u64],
        bound: Option<Bound>,
    ) -> Result<Option<bool>, String> {
        let engine = self.engine();
        let request = Request {
            items: items.iter().cloned().map(Some).collect(),
            atomic: Atomic::Yes,
            bound,
        };
        let (name, now) = (self.topic(topic), self.clock.now().wall);
        let put =
            producer::put_all(&engine.store, PUT, &name, request, &mut || engine.nonce(), now);
        let at = self.wall();
        if let Some(bound) = bound
            && !self.requests.iter().any(|asked| asked.bound == bound)
        {
            self.requests.push(Asked { bound, topic, items, numbers: numbers.to_vec(), at });
        }
        let Ok(decided) = put else { return Ok(None) };
        let replayed = decided.answer.replayed;
        self.coverage.replayed += u64::from(replayed);
        for (&number, item) in numbers.iter().zip(&decided.answer.items) {
            let answer = item.map_err(|refusal: Refusal| refusal.to_string())?;
            let id = self.engine().store.ids().message_id(answer.offset, answer.nonce);
            let message = self.model.message(number);
            if replayed || message.accepted == Told::Yes {
                ensure!(
                    message.id == id || message.accepted != Told::Yes,
                    "message {number} was told another id: {message:?}"
                );
            }
            if message.accepted == Told::Yes {
                continue;
            }
            if !replayed {
                // What was tried before is not there.
                let mut fresh = model::Message::new(number, topic);
                fresh.key = message.key.clone();
                fresh.tag = message.tag.clone();
                fresh.batch = message.batch;
                self.was_put(&mut fresh, &answer);
                *self.model.message(number) = fresh;
            }
            self.open.push((decided.receipt.clone(), Open::Put { number }));
        }
        Ok(Some(replayed))
    }

    /// A search finds all that was told accepted, nothing that nobody put, newest first.
    pub(crate) fn search(&mut self) -> Checked {
        let (topic, key) = (self.index(TOPICS), format!("key-{}", self.index(3)));
        let limit = 1 + self.index(4);
        let store = &self.engine().store;
        let Some(named) = store.topic(&self.topic(topic)) else { return Ok(()) };
        let (mut below, mut found) = (None, Vec::new());
        loop {
            let page = match producer::search(store, &named, &key, below, limit) {
                Ok(page) => page,
                Err(LookError::NotWritten(_)) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            };
            ensure!(page.found.len() <= limit, "a page of {} for {limit}", page.found.len());
            found.extend(page.found);
            below = page.next;
            if below.is_none() {
                break;
            }
        }
        ensure!(
            found.is_sorted_by(|one, next| one.offset > next.offset),
            "a search is not newest first, or finds something twice"
        );
        let ids: BTreeSet<_> = found.iter().map(|found| found.id(store)).collect();
        for message in &self.model.messages {
            let sought = message.topic_id == named.id
                && message.key.as_ref() == Some(&key)
                && message.accepted == Told::Yes
                && message.gone == Told::Nothing;
            ensure!(!sought || ids.contains(&message.id), "a search misses {message:?}");
        }
        let known: BTreeSet<_> = self
            .model
            .messages
            .iter()
            .filter(|message| message.key.as_ref() == Some(&key) && message.topic == topic)
            .map(|message| &message.id)
            .collect();
        ensure!(ids.iter().all(|id| known.contains(id)), "a search finds what nobody put");
        self.coverage.searched += 1;
        Ok(())
    }

    /// Deletes a topic with all that it has, and perhaps makes it again.
    pub(crate) fn delete_topic(&mut self) -> Checked {
        let topic = self.index(TOPICS);
        let (name, now) = (self.topic(topic), self.clock.now().wall);
        let store = &self.engine().store;
        let Some(named) = store.topic(&name) else { return Ok(()) };
        let deleted = store.delete_topic(&name, Force::Yes, |_| 0, now);
        let Ok((receipt, _)) = deleted else { return Ok(()) };
        for message in &mut self.model.messages {
            if message.topic_id == named.id && message.gone == Told::Nothing {
                message.gone = Told::Unknown;
            }
        }
        let acked = self.model.reads.topic_deleted(topic);
        self.model.ack_unknown.extend(acked);
        self.held.retain(|held| held.topic != topic);
        self.void.retain(|void| void.topic != topic);
        self.void_by.retain(|pair, _| pair.1 != topic);
        self.open.push((receipt, Open::TopicDeleted { id: named.id }));
        self.requests.retain(|asked| asked.topic != topic);
        if self.random.once_in(2) {
            let PutSettings { queues_of_new_topic } = PUT;
            let queues = queues_of_new_topic.unwrap_or(1);
            let change = TopicChange { queues: Some(1 + queues), ..TopicChange::default() };
            let _ = self.engine().store.set_topic(&name, change, queues, now);
        }
        Ok(())
    }
}
