//! The oracle: what the ledger must amount to, whatever was killed and when.
//!
//! A pure function of the ledger. The *auditor* is a consumer group that has read every topic from the
//! earliest to the end, after the last fault.

mod report;
mod returned;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

pub(crate) use self::report::{Kills, Report, Tally};
use crate::ledger::{
    Accepted, Ack, Bytes, Cancel, Cancelled, Delivery, Entry, Nack, Outcome, Place, Put,
};

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Accepted, not cancelled, and not on its topic; or told delivered, and not there.
    Lost,
    /// Readable before its moment, by the server's own word or by this test's clock.
    Early,
    /// One message at two places.
    Twice,
    /// Told cancelled, and delivered; or told both.
    AfterCancel,
    /// Told acked, and handed to the same group again.
    AfterAck,
    /// Refused, or never sent, and delivered.
    NeverAccepted,
    /// Other bytes, another id, another moment or another topic than was put.
    Altered,
    /// A place that was given twice, or a gap between places.
    Places,
    /// An attempt that is lower than one before, or higher than there are.
    Attempts,
    /// Told given back, and handed out again too soon, or as if it had not been out.
    AfterNack,
    /// In an ordered group, after one that stands behind it.
    Order,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub fault: Fault,
    pub what: String,
}

/// What the ledger holds, by message.
#[derive(Debug, Default)]
struct Message<'a> {
    put: Option<&'a Put>,
    cancelled: bool,
    told_delivered: bool,
    cancel_unknown: bool,
    told_not_found: bool,
    /// With their places in the ledger.
    deliveries: Vec<(usize, &'a Delivery)>,
}

impl<'a> Message<'a> {
    fn accepted(&self) -> Option<&'a Accepted> {
        self.put.and_then(Put::accepted)
    }

    fn deliveries(&self) -> impl Iterator<Item = &'a Delivery> {
        self.deliveries.iter().map(|&(_, delivery)| delivery)
    }

    /// May still wait for its moment at `now`.
    fn may_wait(&self, now: u64) -> bool {
        let Some(put) = self.put else { return false };
        match &put.outcome {
            Outcome::Ok(accepted) => {
                accepted.deadline.is_some_and(|at| at > now) && !self.cancelled
            }
            Outcome::Unknown => put.earliest() > now,
            Outcome::Refused(_) => false,
        }
    }

    /// Must still wait for its moment at `now`.
    fn must_wait(&self, now: u64) -> bool {
        self.accepted().is_some() && self.may_wait(now) && !self.cancel_unknown
    }

    /// Must be on its topic at `now`, or on its way there.
    fn is_due(&self, now: u64) -> bool {
        let due =
            self.accepted().is_some_and(|accepted| accepted.deadline.is_none_or(|at| at <= now));
        due && !self.cancelled && !self.cancel_unknown
    }
}

/// A request to redrive all dead letters of a group.
#[derive(Debug)]
struct Redriving<'a> {
    group: &'a str,
    began: usize,
    ended: Option<usize>,
}

/// The messages of `entries`, by number.
#[derive(Debug)]
pub(crate) struct Audit<'a> {
    messages: BTreeMap<u64, Message<'a>>,
    acks: Vec<(usize, &'a Ack)>,
    nacks: Vec<(usize, &'a Nack)>,
    /// Of which group all dead letters were redriven: when it was asked for, and when that was answered.
    redriving: Vec<Redriving<'a>>,
    redriven: u64,
    auditor: &'a str,
}

impl<'a> Audit<'a> {
    pub(crate) fn of(entries: &'a [Entry], auditor: &'a str) -> Self {
        let mut audit = Self {
            messages: BTreeMap::new(),
            acks: Vec::new(),
            nacks: Vec::new(),
            redriving: Vec::new(),
            redriven: 0,
            auditor,
        };
        for (at, entry) in entries.iter().enumerate() {
            match entry {
                Entry::Put(put) => audit.message(put.number).put = Some(put),
                Entry::Cancel(Cancel { number, outcome }) => {
                    let message = audit.message(*number);
                    match outcome {
                        Outcome::Ok(Cancelled::Cancelled) => message.cancelled = true,
                        Outcome::Ok(Cancelled::AlreadyDelivered) => message.told_delivered = true,
                        Outcome::Unknown => message.cancel_unknown = true,
                        Outcome::Refused(why) => {
                            message.told_not_found |= why == "MESSAGE_NOT_FOUND";
                        }
                    }
                }
                Entry::Delivery(delivery) => {
                    audit.message(delivery.number).deliveries.push((at, delivery));
                }
                Entry::Ack(ack) => audit.acks.push((at, ack)),
                Entry::Nack(nack) => audit.nacks.push((at, nack)),
                Entry::Redriving { group } => {
                    audit.redriving.push(Redriving { group, began: at, ended: None });
                }
                Entry::Redriven { began, count } => {
                    audit.redriven += count;
                    let of_it = audit.redriving.iter_mut().find(|it| it.began == *began);
                    of_it.expect("it stands in the ledger").ended = Some(at);
                }
            }
        }
        for message in audit.messages.values_mut() {
            // Asked again, a cancel that had no answer gets one, and it is final.
            message.cancel_unknown &= !message.cancelled && !message.told_delivered;
        }
        audit
    }

    fn message(&mut self, number: u64) -> &mut Message<'a> {
        self.messages.entry(number).or_default()
    }

    fn seen_by_auditor(&self, message: &Message<'_>) -> bool {
        message.deliveries().any(|delivery| delivery.group == self.auditor)
    }

    /// How many messages are due at `now`, and the auditor has not seen them.
    pub(crate) fn missing(&self, now: u64) -> usize {
        let missing =
            |message: &&Message<'_>| message.is_due(now) && !self.seen_by_auditor(message);
        self.messages.values().filter(missing).count()
    }

    /// How many messages wait at `now`: as many as must at least, as may at most.
    pub(crate) fn waiting(&self, now: u64) -> RangeInclusive<u64> {
        let count = |waits: fn(&Message<'a>, u64) -> bool| {
            self.messages.values().filter(|message| waits(message, now)).count() as u64
        };
        count(Message::must_wait)..=count(Message::may_wait)
    }

    /// The messages to cancel before an audit: those whose cancel was not answered, and those that
    /// would keep it waiting past `horizon`.
    pub(crate) fn to_cancel(&self, horizon: u64) -> Vec<(u64, String)> {
        let far = |message: &Message<'_>| {
            let deadline = message.accepted().and_then(|accepted| accepted.deadline);
            deadline.is_some_and(|at| at > horizon) && !message.cancelled && !message.told_delivered
        };
        let messages = self.messages.iter();
        messages
            .filter(|(_, message)| message.cancel_unknown || far(message))
            .filter_map(|(&number, message)| Some((number, message.accepted()?.id.clone())))
            .collect()
    }

    /// Every accepted message: its id and the state that the server must name at `now`, where that
    /// is certain.
    pub(crate) fn states(&self, now: u64) -> Vec<(String, &'static str)> {
        let state = |message: &Message<'_>| match message {
            message if message.cancelled => Some("CANCELLED"),
            message if self.seen_by_auditor(message) || message.told_delivered => Some("READY"),
            message if message.must_wait(now) => Some("SCHEDULED"),
            _ => None,
        };
        let messages = self.messages.values();
        messages
            .filter_map(|message| Some((message.accepted()?.id.clone(), state(message)?)))
            .collect()
    }

    /// What the auditor found where.
    pub(crate) fn found(&self) -> BTreeMap<Place, Found> {
        let deliveries = self.messages.values().flat_map(Message::deliveries);
        deliveries
            .filter(|delivery| delivery.group == self.auditor)
            .map(|delivery| {
                let Delivery { number, deliver_at, fired_at, .. } = *delivery;
                let id = delivery.id.clone();
                (delivery.place.clone(), Found { number, id, deliver_at, fired_at })
            })
            .collect()
    }

    /// Holds everything against what was promised. `now` is when the auditor had read it all.
    pub(crate) fn report(&self, now: u64) -> Report {
        let mut violations = Violations::default();
        for (&number, message) in &self.messages {
            self.check_whole(&mut violations, number, message, now);
            for delivery in message.deliveries() {
                check_delivery(&mut violations, number, message, delivery);
            }
            self.check_attempts(&mut violations, number, message);
        }
        self.check_acks(&mut violations);
        self.check_nacks(&mut violations);
        self.check_order(&mut violations);
        self.check_places(&mut violations);
        let (tally, violations) = (self.tally(), violations.0);
        Report { tally, violations, kills: Kills::default(), segments: 0 }
    }

    fn check_whole(
        &self,
        violations: &mut Violations,
        number: u64,
        message: &Message<'_>,
        now: u64,
    ) {
        let seen = self.seen_by_auditor(message);
        let promised = message.is_due(now) || message.told_delivered;
        violations.add(Fault::Lost, promised && !seen, || {
            format!("message {number} is not on its topic: {message:?}")
        });
        violations.add(Fault::Lost, message.told_not_found, || {
            format!("message {number} was not known any more: {message:?}")
        });
        let delivered = message.told_delivered || !message.deliveries.is_empty();
        violations.add(Fault::AfterCancel, message.cancelled && delivered, || {
            format!("message {number} was told cancelled: {message:?}")
        });
        let places: BTreeSet<_> = message.deliveries().map(|delivery| &delivery.place).collect();
        violations.add(Fault::Twice, places.len() > 1, || {
            format!("message {number} stands at {places:?}")
        });
    }

    fn check_acks(&self, violations: &mut Violations) {
        for (told, ack) in &self.acks {
            let Some(message) = self.messages.get(&ack.number) else { continue };
            let again = message
                .deliveries()
                .find(|delivery| delivery.group == ack.group && delivery.began > *told);
            let again = again.filter(|_| ack.outcome == Outcome::Ok(()));
            violations.add(Fault::AfterAck, again.is_some(), || {
                format!("{ack:?} was told at {told}, and then came {again:?}")
            });
        }
    }

    /// Places are dense, each holds one message, and the auditor was given each once.
    fn check_places(&self, violations: &mut Violations) {
        let mut holds: BTreeMap<&Place, u64> = BTreeMap::new();
        let mut audited: BTreeSet<&Place> = BTreeSet::new();
        for (&number, message) in &self.messages {
            for delivery in message.deliveries() {
                let place = &delivery.place;
                let held = *holds.entry(place).or_insert(number);
                violations.add(Fault::Places, held != number, || {
                    format!("{place:?} holds message {held} and message {number}")
                });
                let again = delivery.group == self.auditor && !audited.insert(place);
                violations.add(Fault::Places, again, || {
                    format!("{place:?} was handed to the auditor twice, within one lease")
                });
            }
        }
        let mut next: BTreeMap<(&str, u16), u64> = BTreeMap::new();
        for place in audited {
            let expected = next.entry((&place.topic, place.queue)).or_default();
            violations.add(Fault::Places, place.offset != *expected, || {
                format!("before {place:?} there is a gap from offset {expected}")
            });
            *expected = place.offset + 1;
        }
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for message in self.messages.values() {
            match message.put.map(|put| &put.outcome) {
                Some(Outcome::Ok(_)) => tally.puts_ok += 1,
                Some(Outcome::Unknown) => tally.puts_unknown += 1,
                Some(Outcome::Refused(_)) | None => tally.puts_refused += 1,
            }
            tally.cancelled += usize::from(message.cancelled);
            tally.told_delivered += usize::from(message.told_delivered);
            let fired = message.deliveries().any(|delivery| delivery.fired_at.is_some());
            tally.fired += usize::from(fired);
            let groups: BTreeSet<_> =
                message.deliveries().map(|delivery| &delivery.group).collect();
            tally.redelivered += message.deliveries.len() - groups.len();
        }
        let acked = self.acks.iter().filter(|(_, ack)| ack.outcome == Outcome::Ok(()));
        tally.acked = acked.count();
        let nacked = self.nacks.iter().filter(|(_, nack)| nack.outcome == Outcome::Ok(()));
        tally.nacked = nacked.count();
        tally.redriven = usize::try_from(self.redriven).unwrap_or(usize::MAX);
        let put = self.messages.values().filter_map(|message| message.put);
        let leveled = put.filter(|put| {
            put.accepted().is_some() && matches!(put.asked, crate::ledger::Asked::Level(_))
        });
        tally.leveled = leveled.count();
        tally
    }
}

/// One message as the auditor found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub number: u64,
    pub id: String,
    pub deliver_at: u64,
    pub fired_at: Option<u64>,
}

#[derive(Debug, Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, fault: Fault, broken: bool, what: impl FnOnce() -> String) {
        if broken {
            self.0.push(Violation { fault, what: what() });
        }
    }
}

fn check_delivery(
    violations: &mut Violations,
    number: u64,
    message: &Message<'_>,
    delivery: &Delivery,
) {
    let put = match message.put {
        Some(put) if !matches!(put.outcome, Outcome::Refused(_)) => put,
        put => {
            let what = || format!("message {number}, {put:?}, was delivered: {delivery:?}");
            return violations.add(Fault::NeverAccepted, true, what);
        }
    };
    let Delivery { deliver_at, fired_at, received_at, .. } = *delivery;
    let moment = fired_at.unwrap_or(received_at).min(received_at);
    let early = moment < deliver_at || moment < put.earliest();
    violations.add(Fault::Early, early, || {
        format!("message {number} was asked for {}: {delivery:?}", put.earliest())
    });
    let other = |accepted: &Accepted| {
        accepted.id != delivery.id
            || accepted.deadline.is_some() != fired_at.is_some()
            || accepted.deadline.is_some_and(|deadline| deadline != deliver_at)
    };
    let altered = delivery.body == Bytes::Others
        || put.topic != delivery.place.topic
        || put.accepted().is_some_and(other);
    violations.add(Fault::Altered, altered, || {
        format!("message {number} was put as {put:?} and came as {delivery:?}")
    });
}

#[cfg(test)]
mod tests;
