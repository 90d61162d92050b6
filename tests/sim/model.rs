//! What was promised: the oracle.
//!
//! Every message has a number, and its body is that number. For each the model keeps what its producer was
//! told, and what consumers saw. *Unknown* is an answer that never came (the power went first): it may go
//! either way, but only one way.

use std::collections::{BTreeMap, BTreeSet};

use horolog::consumer::Received;

use crate::reads::Reads;
use crate::returned::Returned;
use crate::transactions::Half;

/// What a caller knows of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Not asked.
    Nothing,
    /// Asked, and no answer came: either way is right.
    Unknown,
    Yes,
}

#[derive(Debug)]
pub(crate) struct Message {
    pub number: u64,
    pub topic: usize,
    /// The topic's id: another one for each topic that had the name.
    pub topic_id: u32,
    pub tag: Option<String>,
    pub message_group: Option<String>,
    /// The moments it was given, in order: the one of the put and those of reschedules. None was put for
    /// now.
    pub moments: Vec<Moment>,
    /// Somebody asked for it to fire, whatever came of it.
    pub fire_asked: bool,
    pub accepted: Told,
    pub cancelled: Told,
    /// Somebody asked for a cancel, whatever came of it.
    pub cancel_asked: bool,
    /// A cancel was told that it is delivered.
    pub told_delivered: bool,
    /// Its topic was deleted.
    pub gone: Told,
    pub key: Option<String>,
    /// It was put as the timer of this key.
    pub timer: Option<String>,
    /// Messages with the same number were put in one step, all or none.
    pub batch: Option<u64>,
    /// Where it stands in its queue, once seen there: (topic id, queue, offset).
    pub place: Option<(u32, u16, u64)>,
    pub id: String,
    /// It came by way of a transaction.
    pub half: Option<Half>,
}

/// A moment that a message was given, and whether its caller knows so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub at: u64,
    pub told: Told,
}

impl Message {
    /// One that nothing is known of yet.
    pub(crate) fn new(number: u64, topic: usize) -> Self {
        Self {
            number,
            topic,
            topic_id: 0,
            tag: None,
            message_group: None,
            moments: Vec::new(),
            fire_asked: false,
            accepted: Told::Nothing,
            cancelled: Told::Nothing,
            cancel_asked: false,
            told_delivered: false,
            gone: Told::Nothing,
            key: None,
            timer: None,
            batch: None,
            place: None,
            id: String::new(),
            half: None,
        }
    }

    pub(crate) fn is_timed(&self) -> bool {
        !self.moments.is_empty()
    }

    /// Whether it may be due at `at`: that is its last moment, or one after the last that was told.
    pub(crate) fn may_be_due_at(&self, at: u64) -> bool {
        let told = self.moments.iter().rposition(|moment| moment.told == Told::Yes);
        self.moments[told.unwrap_or(0)..].iter().any(|moment| moment.at == at)
    }

    pub(crate) fn next_moment(&self) -> Option<u64> {
        self.moments.last().map(|moment| moment.at)
    }

    /// It is certain that it waits, or is on its topic.
    pub(crate) fn is_certain(&self) -> bool {
        let committed = self.half.as_ref().is_none_or(|half| half.committed == Told::Yes);
        committed
            && self.accepted == Told::Yes
            && self.cancelled == Told::Nothing
            && self.gone == Told::Nothing
    }
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub messages: Vec<Message>,
    /// (group, message): told that the ack holds.
    pub acked: BTreeSet<(usize, u64)>,
    /// (group, message): an ack without an answer.
    pub ack_unknown: BTreeSet<(usize, u64)>,
    /// The highest attempt seen of (group, message).
    attempts: BTreeMap<(usize, u64), u32>,
    /// Which message stands at a place.
    places: BTreeMap<(u32, u16, u64), u64>,
    pub reads: Reads,
    pub returned: Returned,
}

pub(crate) type Checked = Result<(), String>;

macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}
pub(crate) use ensure;

impl Model {
    pub(crate) fn message(&mut self, number: u64) -> &mut Message {
        &mut self.messages[usize::try_from(number).expect("numbers are counted in memory")]
    }

    /// A consumer was handed a message.
    pub(crate) fn received(
        &mut self,
        group: usize,
        topic: usize,
        received: &Received,
        highest_wall: u64,
    ) -> Result<u64, String> {
        let text = std::str::from_utf8(&received.body).map_err(|error| error.to_string())?;
        let number: u64 = text.parse().map_err(|_| format!("a body nobody sent: {text:?}"))?;
        ensure!(
            number < self.messages.len() as u64,
            "message {number} was received and never sent"
        );
        let topic_id = self.message(number).topic_id;
        let place = (topic_id, received.queue, received.queue_offset);
        let tag = received.attributes.tag.as_deref();
        let again = self.returned.may_come_again(group, number);
        self.reads.check_received((group, topic), (place.1, place.2), tag, again)?;
        ensure!(self.message(number).tag.as_deref() == tag, "message {number} has another tag");
        let acked = self.acked.contains(&(group, number));
        ensure!(
            !acked || self.returned.is_doubled(group, number),
            "message {number} was acked by group {group} and handed to it again: {received:?}, {:?}",
            self.message(number)
        );
        let before = self.attempts.insert((group, number), received.attempt).unwrap_or(0);
        ensure!(
            received.attempt >= before.max(1) || self.returned.is_doubled(group, number),
            "message {number} went back from attempt {before} to {}",
            received.attempt
        );
        self.returned.check_received(group, number, received.attempt, highest_wall)?;
        let stands = *self.places.entry(place).or_insert(number);
        ensure!(stands == number, "{place:?} held message {stands}, now {number}");
        let message = self.message(number);
        ensure!(message.topic == topic, "message {number} came on another topic");
        ensure!(
            message.place.is_none_or(|known| known == place),
            "message {number} fired twice: at {:?} and {place:?}",
            message.place
        );
        message.place = Some(place);
        ensure!(
            message.cancelled != Told::Yes,
            "message {number} was told cancelled and was delivered"
        );
        ensure!(
            message.accepted != Told::Nothing,
            "message {number} was refused and was delivered"
        );
        ensure!(message.gone != Told::Yes, "message {number} outlived its topic");
        ensure!(message.id == received.message_id, "message {number} came under another id");
        if let Some(half) = &message.half {
            half.check_received(number)?;
        }
        if !message.is_timed() {
            ensure!(received.fired_at.is_none(), "message {number} was put for now");
            return Ok(number);
        }
        let deadline = received.deliver_at.as_millis();
        let fired = received.fired_at.map(|fired| fired.as_millis());
        ensure!(
            message.may_be_due_at(deadline),
            "message {number} came as due at {deadline}, not at its last moment: {message:?}"
        );
        let fired = fired.ok_or_else(|| format!("message {number} does not say when it fired"))?;
        ensure!(
            fired <= highest_wall,
            "message {number} fired at {fired}, and no clock has shown that yet"
        );
        ensure!(
            fired >= deadline || message.fire_asked,
            "message {number} is due at {deadline} and fired early, at {fired}"
        );
        Ok(number)
    }

    /// Nothing that was acked, and no place, is promised any more.
    pub(crate) fn forget_progress(&mut self) {
        self.acked.clear();
        self.attempts.clear();
        self.places.clear();
        self.returned.forget();
        self.reads.forget();
        for message in &mut self.messages {
            message.place = None;
        }
    }

    /// The highest attempt of the message that the group has seen.
    pub(crate) fn attempt(&self, group: usize, number: u64) -> u32 {
        self.attempts.get(&(group, number)).copied().unwrap_or(0)
    }

    /// A reset: their attempts may count from 1 again.
    pub(crate) fn forget_attempts(&mut self, group: usize, numbers: &BTreeSet<u64>) {
        self.attempts.retain(|(of, number), _| *of != group || !numbers.contains(number));
    }

    /// What a group that read everything from the start must have seen.
    pub(crate) fn check_all_seen(&self, seen: &BTreeSet<u64>) -> Checked {
        for message in &self.messages {
            let number = message.number;
            let there = seen.contains(&number);
            ensure!(
                there || !message.is_certain(),
                "message {number} was accepted, not cancelled, and is lost: {message:?}"
            );
            ensure!(
                !there || message.cancelled != Told::Yes,
                "message {number} was told cancelled and is on its topic"
            );
            ensure!(
                there || !message.told_delivered || message.gone != Told::Nothing,
                "message {number} was told delivered and is not on its topic"
            );
        }
        self.check_batches(seen)
    }

    /// Of what was put in one step there is all or nothing.
    fn check_batches(&self, seen: &BTreeSet<u64>) -> Checked {
        let mut batches: BTreeMap<u64, Vec<&Message>> = BTreeMap::new();
        let left = self
            .messages
            .iter()
            .filter(|message| message.cancelled == Told::Nothing && message.gone == Told::Nothing);
        for message in left {
            if let Some(batch) = message.batch {
                batches.entry(batch).or_default().push(message);
            }
        }
        for (batch, messages) in batches {
            let there = messages.iter().filter(|message| seen.contains(&message.number)).count();
            ensure!(
                there == 0 || there == messages.len(),
                "of batch {batch} there are {there} of {}: {messages:?}",
                messages.len()
            );
        }
        Ok(())
    }

    /// How many messages wait at `now`, as (at least, at most): what is unknown may count or not.
    pub(crate) fn unsettled(&self) -> (u64, u64) {
        let mut bounds = (0, 0);
        for message in self.messages.iter().filter(|message| message.is_timed()) {
            if message.accepted == Told::Nothing || message.cancelled == Told::Yes {
                continue;
            }
            // What fired before its topic went is counted as fired, what waited then is not.
            match &message.half {
                // Committed after its moment it never waited for it.
                Some(half) => bounds.1 += u64::from(half.commit_asked),
                None => {
                    bounds.1 += 1;
                    bounds.0 += u64::from(message.is_certain());
                }
            }
        }
        bounds
    }
}
