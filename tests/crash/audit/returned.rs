//! What was given back comes again, not before its time, and in an ordered group in its place.

use std::collections::BTreeMap;

use super::{Audit, Fault, Message, Redriving, Violations};
use crate::consumer::{ORDERED, max_attempts};
use crate::ledger::{Delivery, Nack, Outcome};
use crate::wire::message_group;

impl Audit<'_> {
    /// Whether the message's attempts may begin again with the delivery that stands at `at`: it was a dead
    /// letter, and the group's were redriven since `from`, by a request that may have begun before.
    fn may_be_redriven(
        &self,
        message: &Message<'_>,
        group: &str,
        (from, at): (usize, usize),
    ) -> bool {
        let of_group = message.deliveries().filter(|delivery| delivery.group == group);
        let highest = of_group.map(|delivery| delivery.attempt).max();
        let between = |one: &Redriving<'_>| {
            one.group == group && one.began < at && one.ended.is_none_or(|ended| ended > from)
        };
        highest.is_some_and(|highest| highest >= max_attempts(group))
            && self.redriving.iter().any(between)
    }

    pub(super) fn check_attempts(
        &self,
        violations: &mut Violations,
        number: u64,
        message: &Message<'_>,
    ) {
        for &(at, later) in &message.deliveries {
            // Only what had come before the later one was asked for is certainly earlier.
            let earlier = message.deliveries.iter().filter(|(at, _)| *at < later.began);
            let mut of_group = earlier.filter(|(_, earlier)| earlier.group == later.group);
            let higher = of_group.rfind(|(_, earlier)| earlier.attempt > later.attempt);
            let back = higher
                .is_some_and(|&(from, _)| !self.may_be_redriven(message, &later.group, (from, at)));
            let most = max_attempts(&later.group);
            let attempts = 1..=most;
            let beyond = later.group != self.auditor && !attempts.contains(&later.attempt);
            violations.add(Fault::Attempts, back || beyond || later.attempt == 0, || {
                format!("message {number} had attempts {higher:?}, then {later:?}, of {most}")
            });
        }
    }

    /// The next one after a nack that was told to hold has a higher attempt, and does not come too soon.
    pub(super) fn check_nacks(&self, violations: &mut Violations) {
        for &(told, nack) in &self.nacks {
            let Nack { group, number, attempt, earliest, outcome } = nack;
            let Some(message) = self.messages.get(number) else { continue };
            if *outcome != Outcome::Ok(()) || *attempt >= max_attempts(group) {
                continue;
            }
            let after = |(_, delivery): &&(usize, &Delivery)| {
                delivery.group == *group && delivery.began > told
            };
            let Some(&(at, next)) = message.deliveries.iter().find(after) else { continue };
            let broken = next.received_at < *earliest || next.attempt <= *attempt;
            let redriven = || self.may_be_redriven(message, group, (told, at));
            violations.add(Fault::AfterNack, broken && !redriven(), || {
                format!("{nack:?} was told at {told}, and then came {next:?}")
            });
        }
    }

    /// Of a message group nothing comes after what stands behind it has come.
    pub(super) fn check_order(&self, violations: &mut Violations) {
        let mut lanes: BTreeMap<_, Vec<(usize, &Delivery)>> = BTreeMap::new();
        for (&number, message) in &self.messages {
            let Some(of) = message_group(number) else { continue };
            for &(at, delivery) in &message.deliveries {
                if delivery.group == ORDERED {
                    let lane = (delivery.place.topic.clone(), of.clone());
                    lanes.entry(lane).or_default().push((at, delivery));
                }
            }
        }
        for (lane, mut deliveries) in lanes {
            deliveries.sort_unstable_by_key(|&(at, _)| at);
            // Of each and those before it, the one that stands furthest.
            let mut furthest: Vec<&Delivery> = Vec::new();
            for (_, delivery) in &deliveries {
                let before = furthest.last().copied().unwrap_or(delivery);
                furthest.push(match before.place.offset > delivery.place.offset {
                    true => before,
                    false => delivery,
                });
            }
            for (_, delivery) in &deliveries {
                let earlier = deliveries.partition_point(|&(at, _)| at < delivery.began);
                let Some(before) = earlier.checked_sub(1).map(|last| furthest[last]) else {
                    continue;
                };
                violations.add(Fault::Order, before.place.offset > delivery.place.offset, || {
                    format!("in {lane:?} there was {before:?}, and then came {delivery:?}")
                });
            }
        }
    }

    /// How many messages are due at `now`, and the group has not acknowledged them.
    pub(crate) fn unacknowledged(&self, group: &str, now: u64) -> usize {
        let mut due: BTreeMap<_, _> =
            self.messages.iter().filter(|(_, message)| message.is_due(now)).collect();
        for (_, ack) in &self.acks {
            if ack.group == group && !matches!(ack.outcome, Outcome::Refused(_)) {
                due.remove(&ack.number);
            }
        }
        due.len()
    }
}
