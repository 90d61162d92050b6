//! Messages are given back, die, are redriven; and an ordered group gets its message groups in order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use horolog::clock::Clock;
use horolog::consumer::{AckOutcome, Mark, Received, Wanted};

use crate::model::{Checked, Told, ensure};
use crate::world::{GROUPS, Held, Open, World};

/// The group that is ordered.
pub(crate) const ORDERED: usize = 1;

pub(crate) fn number_of(received: &Received) -> u64 {
    std::str::from_utf8(&received.body).ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

impl World {
    pub(crate) fn give_back(&mut self) -> Checked {
        match self.random.below(8) {
            0 => self.redrive_some(),
            _ => self.nack_some(),
        }
    }

    fn nack_some(&mut self) -> Checked {
        if self.held.is_empty() {
            return Ok(());
        }
        let index = self.index(self.held.len());
        let held = self.held.swap_remove(index);
        let delay = match self.random.below(4) {
            0 => None,
            1 => Some(0),
            2 => Some(self.random.below(3_000)),
            _ => Some(self.random.below(400_000)),
        };
        let group = held.group;
        let Some(there) = self.engine().store.group(&self.group(group)) else { return Ok(()) };
        let now = self.clock.now();
        let consumers = Arc::clone(&self.engine().consumers);
        let delay = delay.map(Duration::from_millis);
        let handles = [held.handle.clone(), held.handle.clone()];
        let backoff = there.settings().backoff(held.attempt);
        self.model.returned.asked(group, held.number);
        let Ok((outcomes, receipt)) = consumers.nack(&there, &handles, delay, now) else {
            return Ok(());
        };
        ensure!(outcomes[0] == outcomes[1], "twice in one request: {outcomes:?} {held:?}");
        if outcomes[0] != AckOutcome::Ok {
            return Ok(());
        }
        let acked = consumers.ack(&there, &handles, now);
        ensure!(
            acked.is_err() || acked.is_ok_and(|(o, _)| o == [AckOutcome::InvalidReceiptHandle; 2]),
            "what was given back was acknowledged: {held:?}"
        );
        let wait = delay.unwrap_or(backoff).as_millis();
        // An ordered group waits on the monotonic clock: the wall clock may be set back meanwhile.
        let comes_at = match group {
            ORDERED => 0,
            _ => now.wall.as_millis() + u64::try_from(wait).expect("a short wait"),
        };
        let (number, attempt) = (held.number, held.attempt);
        // A dead letter does not come by itself.
        if held.attempt < there.settings().max_attempts {
            self.open.push((receipt, Open::Nacked { group, number, attempt, comes_at }));
        }
        self.coverage.groups.count("nacks");
        if group == ORDERED {
            self.coverage.groups.count("nacked in order");
        }
        Ok(())
    }

    fn redrive_some(&mut self) -> Checked {
        let group = self.index(GROUPS);
        self.settle()?;
        self.redrive_all(group)
    }

    /// Everything dead of the group is readable again, once.
    pub(crate) fn redrive_all(&mut self, group: usize) -> Checked {
        let name = self.group(group);
        let consumers = Arc::clone(&self.engine().consumers);
        let Some(there) = self.engine().store.group(&name) else { return Ok(()) };
        let listed = consumers.dead_letters(&there, Mark::default(), usize::MAX);
        let (letters, _) = listed.map_err(|error| error.to_string())?;
        let mut numbers = BTreeSet::new();
        for letter in &letters {
            let of_id = self.model.messages.iter().find(|known| known.id == letter.message_id);
            let known = of_id.ok_or("a dead letter that nobody sent")?;
            ensure!(
                known.gone != Told::Yes && known.cancelled != Told::Yes,
                "a dead letter that is gone: {known:?}"
            );
            let number = known.number;
            ensure!(
                !self.model.acked.contains(&(group, number))
                    || self.model.returned.is_doubled(group, number),
                "message {number} was acked by group {group} and is dead: {letter:?}"
            );
            ensure!(letter.attempts >= 1, "it was never out: {letter:?}");
            numbers.insert(number);
            self.coverage.groups.count("dead letters");
        }
        let Ok((count, _)) = consumers.redrive(&there, &Wanted::default(), self.clock.now()) else {
            return Ok(());
        };
        ensure!(
            count == letters.len() as u64,
            "{count} were redriven of {} that are listed",
            letters.len()
        );
        self.model.forget_attempts(group, &numbers);
        for &number in &numbers {
            self.model.returned.redriven(group, number);
            self.coverage.groups.count("redriven");
        }
        if let Ok((twice, _)) = consumers.redrive(&there, &Wanted::default(), self.clock.now()) {
            ensure!(twice == 0, "{twice} were redriven twice");
        }
        self.settle()
    }

    /// A message is handed to the ordered group: no other of its message group is out, and those before it
    /// are done.
    pub(crate) fn check_order(
        &mut self,
        topic: usize,
        number: u64,
        now: Duration,
        invisible: Duration,
    ) -> Checked {
        let message = &self.model.messages[usize::try_from(number).expect("counted in memory")];
        let Some(message_group) = message.message_group.clone() else { return Ok(()) };
        let of_group = self.model.messages.iter().filter(|other| {
            other.topic_id == message.topic_id
                && other.number != number
                && other.message_group.as_ref() == Some(&message_group)
        });
        let pair = (ORDERED, topic);
        for other in of_group {
            let key = (ORDERED, other.number);
            let out = self.model.returned.out.get(&key).is_some_and(|&until| now < until);
            ensure!(
                !out,
                "message {number} is out, and so is {} of its message group: {message:?} {other:?}",
                other.number
            );
            let (Some(place), Some(others)) = (message.place, other.place) else { continue };
            if (place.0, place.1) != (others.0, others.1) || others.2 > place.2 {
                continue;
            }
            let tag = other.tag.as_deref();
            let wanted = self.model.reads.must_come(pair, (others.1, others.2), tag);
            let done = self.model.acked.contains(&key) || self.model.ack_unknown.contains(&key);
            let attempts = self.model.attempt(ORDERED, other.number);
            let again = self.model.returned.has_died(ORDERED, number);
            let dead = self.model.returned.may_be_dead(ORDERED, attempts)
                || self.model.returned.has_died(ORDERED, other.number)
                // It was dead, perhaps, before a reset that may have been lost.
                || self.model.returned.is_doubled(ORDERED, other.number);
            ensure!(
                done || dead || again || !wanted,
                "message {number} came before {}, of the same message group: {message:?} {other:?}",
                other.number
            );
        }
        self.model.returned.out.insert((ORDERED, number), now + invisible);
        self.coverage.groups.count("out in order");
        Ok(())
    }

    /// All that the group has to read of the topic; of a message group one comes after the other.
    pub(crate) fn read_all_of(&mut self, group: usize, topic: usize) -> Result<Vec<Held>, String> {
        let mut all = self.read_topic(group, topic)?;
        if group != ORDERED {
            return Ok(all);
        }
        let mut last = all.clone();
        for _ in 0..1000 {
            // What only looked like a wanted tag is passed when its ack is folded.
            if last.is_empty() && self.check_lag(group, topic)? == 0 {
                break;
            }
            let Some((there, _)) = self.there(group, topic) else { return Ok(all) };
            let handles: Vec<_> = last.iter().map(|held| held.handle.clone()).collect();
            let consumers = Arc::clone(&self.engine().consumers);
            let acked = consumers.ack(&there, &handles, self.clock.now());
            let (_, receipt) = acked.map_err(|error| error.to_string())?;
            for held in &last {
                self.model.returned.not_out(group, held.number);
                let (receipt, number) = (receipt.clone(), held.number);
                self.open.push((receipt, Open::Acked { group, number }));
            }
            self.settle()?;
            last = self.read_topic(group, topic)?;
            all.extend(last.iter().cloned());
        }
        Ok(all)
    }
}
