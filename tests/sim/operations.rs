//! What may happen next.

use horolog::clock::Clock;
use horolog::consumer::AckOutcome;
use horolog::message::{Attributes, Moment, NewMessage, State};
use horolog::producer::{self, CancelAnswer, PutSettings};
use timerlog::disk::Operation;

use crate::model::{self, Checked, Message, Told, ensure};
use crate::world::{GROUPS, Open, TOPICS, World};

/// How topics come to be here.
pub(crate) const PUT: PutSettings = PutSettings { queues_of_new_topic: Some(2) };

pub(crate) const DERIVED: [&str; 6] =
    ["consumequeue", "settled", "timerlog", "index", "checkpoint-a", "checkpoint-b"];

impl World {
    pub(crate) fn operation(&mut self) -> Checked {
        self.highest_wall = self.highest_wall.max(self.wall());
        match self.random.below(1000) {
            0..150 => self.put(),
            150..165 => self.put_batch(),
            165..185 => self.put_again(),
            185..215 => self.put_timer(),
            215..245 => self.reschedule(),
            245..255 => self.fire_now(),
            255..300 => self.cancel(),
            300..360 => self.receive_some(),
            360..380 => self.group_operation(),
            380..430 => self.ack_some(),
            430..450 => self.give_back(),
            450..460 => self.extend_one(),
            460..485 => self.look(),
            485..495 => self.search(),
            495..500 => self.look_at_timers(),
            500..690 => self.step_some(),
            690..736 => self.transaction_operation(),
            736..746 => self.list_at_rest(),
            746..754 => self.list_amid_others(),
            754..760 => self.cancel_many(),
            760..800 => self.settle().and_then(|()| self.check_counts()),
            800..926 => self.let_time_pass(),
            926..930 if !self.scripted => self.live_on_a_full_disk(),
            926..930 => self.settle(),
            930..945 => self.step_clock(),
            945..955 => self.checkpoint(),
            955..987 | 989..1000 if self.scripted => self.settle(),
            955..968 => self.power_cut(),
            968..980 => self.kill(),
            980..987 => self.rest(),
            987..989 => self.delete_topic(),
            989..995 => self.lose_derived(),
            _ => self.fail_a_sync(),
        }
    }

    pub(crate) fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).expect("below a usize")
    }

    pub(crate) fn moment(&mut self) -> Moment {
        let second = 1000;
        let now = self.wall();
        let next_slot = (now / second + 1) * second;
        let after = match self.random.below(15) {
            0 => return Moment::Now,
            1 => return Moment::At(horolog::clock::Timestamp::from_millis(now.saturating_sub(5))),
            2 => 1,
            3 => self.random.below(50) + 1,
            4 => next_slot - now,
            5 => next_slot - now - 1 + self.random.below(3),
            6 => self.random.below(5 * second) + 1,
            7 => self.random.below(60 * second) + 1,
            8 => 128 * second,
            9 => self.random.below(300 * second) + 1,
            10 => self.random.below(3600 * second) + 1,
            11..14 => {
                self.coverage.leveled += 1;
                return Moment::Level(1 + u32::try_from(self.index(5)).expect("a small number"));
            }
            _ => self.random.below(2 * 86_400 * second) + 1,
        };
        Moment::After(after)
    }

    /// A message with the next number, and what the model is to know of it.
    pub(crate) fn new_message(&mut self, topic: usize) -> (NewMessage, Message) {
        let number = self.model.messages.len() as u64;
        let mut known = Message::new(number, topic);
        known.key = self.random.once_in(4).then(|| format!("key-{}", self.index(3)));
        known.tag = self.some_tag();
        let message_group = self.random.once_in(3).then(|| "one".to_owned());
        known.message_group.clone_from(&message_group);
        let message = NewMessage {
            moment: self.moment(),
            attributes: Attributes {
                content_type: "text/plain".to_owned(),
                tag: known.tag.clone(),
                keys: known.key.iter().cloned().collect(),
                message_group,
                ..Attributes::default()
            },
            body: number.to_string().into(),
        };
        (message, known)
    }

    /// The model's part of a message that was put, and waits for the disk.
    pub(crate) fn was_put(&mut self, known: &mut Message, answer: &producer::PutAnswer) {
        let store = &self.engine().store;
        known.accepted = Told::Unknown;
        known.id = store.ids().message_id(answer.offset, answer.nonce);
        known.topic_id = store.topic(&self.topic(known.topic)).expect("it was put there").id;
        let later = answer.deliver_at > self.clock.now().wall;
        if answer.state == State::Scheduled || answer.state == State::Prepared && later {
            let at = answer.deliver_at.as_millis();
            known.moments.push(model::Moment { at, told: Told::Unknown });
        }
        self.coverage.puts += 1;
    }

    pub(crate) fn put(&mut self) -> Checked {
        let topic = self.index(TOPICS);
        let (message, mut known) = self.new_message(topic);
        let number = known.number;
        let now = self.clock.now().wall;
        let engine = self.engine();
        let (name, nonce) = (self.topic(topic), engine.nonce());
        let decided = producer::put(&engine.store, PUT, &name, message, nonce, now);
        // What is refused was not stored: it must never be seen.
        if let Ok(decided) = decided {
            self.was_put(&mut known, &decided.answer);
            self.open.push((decided.receipt, Open::Put { number }));
        }
        self.model.messages.push(known);
        Ok(())
    }

    /// A message that was accepted, mostly a recent one: its moment is near.
    pub(crate) fn some_message(&mut self) -> Result<Option<(u64, producer::Found)>, String> {
        let count = self.model.messages.len();
        if count == 0 {
            return Ok(None);
        }
        let from = if self.random.once_in(3) { 0 } else { count.saturating_sub(20) };
        let index = from + self.index(count - from);
        let message = &self.model.messages[index];
        if message.accepted != Told::Yes {
            return Ok(None);
        }
        let found = producer::find(&self.engine().store, &message.id);
        match (found, message.gone) {
            (Ok(_), Told::Yes) => Err(format!("an id outlived its topic: {message:?}")),
            (Ok(found), _) => Ok(Some((message.number, found))),
            (Err(_), Told::Yes | Told::Unknown) => Ok(None),
            (Err(error), Told::Nothing) => {
                Err(format!("accepted, and its id says: {error}: {message:?}"))
            }
        }
    }

    pub(crate) fn cancel(&mut self) -> Checked {
        let Some((number, found)) = self.some_message()? else { return Ok(()) };
        let engine = self.engine();
        let Ok(decided) = producer::cancel(&engine.store, &found, self.clock.now().wall) else {
            return Ok(());
        };
        let open = match decided.answer {
            CancelAnswer::Cancelled(_) => Open::Cancelled { number },
            CancelAnswer::AlreadyDelivered => Open::ToldDelivered { number },
        };
        self.open.push((decided.receipt, open));
        self.model.message(number).cancel_asked = true;
        Ok(())
    }

    /// What a look at a message says must agree with what was told, and comes true.
    fn look(&mut self) -> Checked {
        let Some((number, found)) = self.some_message()? else { return Ok(()) };
        let message = &self.model.messages[usize::try_from(number).expect("counted in memory")];
        let timed = message.is_timed();
        let standing = match found.standing(&self.engine().store) {
            Ok(standing) => standing,
            Err(producer::LookError::NotWritten(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let deliver_at = standing.deliver_at.as_millis();
        ensure!(
            !timed || message.may_be_due_at(deliver_at),
            "a look says due at {deliver_at}: {message:?}"
        );
        match standing.state {
            State::Scheduled => {
                ensure!(message.place.is_none(), "message {number} was seen and is scheduled");
                ensure!(!message.told_delivered, "message {number} was delivered, now scheduled");
                ensure!(message.cancelled != Told::Yes, "message {number} was cancelled");
            }
            State::Cancelled => {
                ensure!(message.cancel_asked, "message {number} is cancelled and nobody asked");
                ensure!(message.place.is_none(), "message {number} was seen and is cancelled");
            }
            State::Prepared | State::RolledBack | State::Abandoned => {
                let half = message.half.as_ref().ok_or("undecided, and no half message")?;
                half.check_undecided(standing.state, message)?;
            }
            State::Ready => {
                ensure!(message.cancelled != Told::Yes, "message {number} was cancelled");
                if let Some(receipt) = standing.receipt.filter(|_| timed) {
                    self.open.push((receipt, Open::ToldDelivered { number }));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn ack_some(&mut self) -> Checked {
        if self.held.is_empty() {
            return Ok(());
        }
        let index = self.index(self.held.len());
        let group = self.held[index].group;
        let mut taken = Vec::new();
        for _ in 0..=self.index(4) {
            let of_group = self.held.iter().position(|held| held.group == group);
            let Some(index) = of_group else { break };
            taken.push(self.held.swap_remove(index));
        }
        taken.iter().for_each(|held| self.model.returned.not_out(group, held.number));
        let name = self.group(group);
        let engine = self.engine();
        let Some(group_there) = engine.store.group(&name) else { return Ok(()) };
        let handles: Vec<_> = taken.iter().map(|held| held.handle.clone()).collect();
        let Ok((outcomes, receipt)) =
            engine.consumers.ack(&group_there, &handles, self.clock.now())
        else {
            return Ok(());
        };
        for (held, outcome) in taken.iter().zip(outcomes) {
            if outcome == AckOutcome::Ok {
                let open = Open::Acked { group, number: held.number };
                self.open.push((receipt.clone(), open));
            }
        }
        // A stranger's handle is worth nothing.
        if let Some(other) = self.engine().store.group(&self.group((group + 1) % GROUPS)) {
            let strange = self.engine().consumers.ack(&other, &handles, self.clock.now());
            if let Ok((outcomes, _)) = strange {
                let refused = outcomes.iter().all(|o| *o == AckOutcome::InvalidReceiptHandle);
                ensure!(refused, "group {group}'s handles were good for another group");
            }
        }
        Ok(())
    }

    fn extend_one(&mut self) -> Checked {
        if self.held.is_empty() {
            return Ok(());
        }
        let index = self.index(self.held.len());
        let held = self.held[index].clone();
        let engine = self.engine();
        if let Some(group) = engine.store.group(&self.group(held.group)) {
            let longer = std::time::Duration::from_secs(60);
            let _ = engine.consumers.extend(&group, &held.handle, longer, self.clock.now());
        }
        Ok(())
    }

    pub(crate) fn step_some(&mut self) -> Checked {
        for _ in 0..=self.index(12) {
            let index = self.index(self.stages.len());
            self.step(index)?;
        }
        Ok(())
    }

    pub(crate) fn let_time_pass(&mut self) -> Checked {
        let millis = match self.random.below(6) {
            0 => 1,
            1 => self.random.below(30),
            2 => self.random.below(1000),
            3 => self.random.below(4000),
            4 => self.random.below(60_000),
            // Straight to the next deadline: its very millisecond.
            _ => {
                let now = self.wall();
                let next = self.model.messages.iter().filter_map(Message::next_moment);
                next.filter(|&at| at > now).min().map_or(1, |at| at - now).min(600_000)
            }
        };
        self.clock.advance(millis);
        Ok(())
    }

    fn step_clock(&mut self) -> Checked {
        let by = [900, 5_000, 100_000, 4_000_000][self.index(4)];
        let now = self.wall();
        let wall = if self.random.once_in(2) { now + by } else { now - by };
        self.clock.step_wall(horolog::clock::Timestamp::from_millis(wall));
        Ok(())
    }

    pub(crate) fn checkpoint(&mut self) -> Checked {
        // The checkpoint stage is the last; its interval has passed.
        self.clock.advance(20_000);
        let last = self.stages.len() - 1;
        self.step(last)?;
        self.coverage.checkpoints += 1;
        Ok(())
    }

    fn power_cut(&mut self) -> Checked {
        if self.random.once_in(2) {
            // In the midst of whatever the disk is asked for next.
            self.disk.cut_after(1 + self.random.below(12));
            let lives = self.lives();
            for _ in 0..200 {
                let index = self.index(self.stages.len());
                self.step(index)?;
                if self.lives() > lives {
                    return Ok(());
                }
            }
        }
        self.stop();
        self.disk.crash(&mut self.random);
        self.forget_promises_of_async();
        self.coverage.crashes += 1;
        self.start()
    }

    pub(crate) fn lives(&self) -> u64 {
        self.coverage.crashes + self.coverage.kills
    }

    pub(crate) fn kill(&mut self) -> Checked {
        self.stop();
        self.disk.kill();
        self.coverage.kills += 1;
        self.start()
    }

    /// An orderly stop, and a start with nothing to replay.
    fn rest(&mut self) -> Checked {
        let now = self.clock.now();
        if self.engine().rest(now).is_err() {
            return self.fall();
        }
        self.hear_answers();
        self.coverage.rests += 1;
        self.kill()
    }

    fn lose_derived(&mut self) -> Checked {
        self.stop();
        self.disk.kill();
        match self.random.below(3) {
            0 => DERIVED.iter().for_each(|name| self.lose(name)),
            1 => {
                let name = DERIVED[self.index(DERIVED.len())];
                self.lose(name);
            }
            _ => {
                let files: Vec<_> = self
                    .disk
                    .files()
                    .into_iter()
                    .filter(|path| DERIVED.iter().any(|name| path.starts_with(name)))
                    .collect();
                if !files.is_empty() {
                    let path = files[self.index(files.len())].clone();
                    self.lose(&path);
                }
            }
        }
        self.start()
    }

    fn fail_a_sync(&mut self) -> Checked {
        self.coverage.failed_syncs += 1;
        let nth = 1 + self.random.below(3);
        self.disk.fail_next(Operation::Sync, nth, std::io::ErrorKind::Other);
        Ok(())
    }
}
