//! What was promised: the oracle.
//!
//! Every message has a number, and its body is that number. For each the model keeps what its producer was
//! told, and what consumers saw. *Unknown* is an answer that never came (the power went first): it may go
//! either way, but only one way.

use std::collections::{BTreeMap, BTreeSet};

use horolog::consumer::Received;

use crate::reads::Reads;

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
    pub tag: Option<String>,
    /// `None` was put for now.
    pub deadline: Option<u64>,
    pub accepted: Told,
    pub cancelled: Told,
    /// Somebody asked for a cancel, whatever came of it.
    pub cancel_asked: bool,
    /// A cancel was told that it is delivered.
    pub told_delivered: bool,
    /// Where it stands in its queue, once seen there: (topic, queue, offset).
    pub place: Option<(usize, u16, u64)>,
    pub id: String,
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
    places: BTreeMap<(usize, u16, u64), u64>,
    pub reads: Reads,
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
        let place = (topic, received.queue, received.queue_offset);
        let tag = received.attributes.tag.as_deref();
        self.reads.check_received((group, topic), (place.1, place.2), tag)?;
        ensure!(self.message(number).tag.as_deref() == tag, "message {number} has another tag");
        let acked = self.acked.contains(&(group, number));
        ensure!(
            !acked,
            "message {number} was acked by group {group} and handed to it again: {received:?}, {:?}",
            self.message(number)
        );
        let before = self.attempts.insert((group, number), received.attempt).unwrap_or(0);
        ensure!(
            received.attempt >= before.max(1),
            "message {number} went back from attempt {before} to {}",
            received.attempt
        );
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
        ensure!(message.id == received.message_id, "message {number} came under another id");
        match message.deadline {
            None => ensure!(received.fired_at.is_none(), "message {number} was put for now"),
            Some(deadline) => {
                let fired = received.fired_at.map(|fired| fired.as_millis());
                ensure!(
                    received.deliver_at.as_millis() == deadline,
                    "message {number} names another deadline"
                );
                ensure!(
                    deadline <= highest_wall,
                    "message {number} is due at {deadline}, and no clock has shown that yet"
                );
                ensure!(
                    fired.is_some_and(|fired| fired >= deadline),
                    "message {number} is due at {deadline} and fired early, at {fired:?}"
                );
            }
        }
        Ok(number)
    }

    /// Nothing that was acked, and no place, is promised any more.
    pub(crate) fn forget_progress(&mut self) {
        self.acked.clear();
        self.attempts.clear();
        self.places.clear();
        self.reads.forget();
        for message in &mut self.messages {
            message.place = None;
        }
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
            let may_be_missing =
                message.accepted != Told::Yes || message.cancelled != Told::Nothing;
            ensure!(
                there || may_be_missing,
                "message {number} was accepted, not cancelled, and is lost: {message:?}"
            );
            ensure!(
                !there || message.cancelled != Told::Yes,
                "message {number} was told cancelled and is on its topic"
            );
            ensure!(
                there || !message.told_delivered,
                "message {number} was told delivered and is not on its topic"
            );
        }
        Ok(())
    }

    /// How many messages wait at `now`, as (at least, at most): what is unknown may count or not.
    pub(crate) fn unsettled(&self) -> (u64, u64) {
        let mut bounds = (0, 0);
        for message in self.messages.iter().filter(|message| message.deadline.is_some()) {
            if message.accepted == Told::Nothing || message.cancelled == Told::Yes {
                continue;
            }
            bounds.1 += 1;
            if message.accepted == Told::Yes && message.cancelled == Told::Nothing {
                bounds.0 += 1;
            }
        }
        bounds
    }
}
