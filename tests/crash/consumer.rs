//! Consumers: they receive, ack, extend, give back, and redrive what has died.

use std::sync::Arc;

use horolog::client::Client;
use serde_json::json;
use timerlog::disk::sim::Random;

use crate::ledger::{Ack, Entry, Ledger, Nack, Outcome};
use crate::load::{Link, TOPICS};
use crate::wire::{self, Wanted};

/// A message is a dead letter of this group soon.
pub(crate) const GROUP: &str = "workers";
/// This group gets the messages of a message group in order.
pub(crate) const ORDERED: &str = "clerks";
pub(crate) const GROUPS: [&str; 2] = [GROUP, ORDERED];

/// How often a message is handed out, at most. In the ordered group none dies: one that was redriven would
/// have lost its place.
pub(crate) fn max_attempts(group: &str) -> u32 {
    if group == ORDERED { 1000 } else { 3 }
}

/// Makes the groups what they are to be, before anybody receives.
pub(crate) async fn set_groups(client: &mut Client) {
    for group in GROUPS {
        let settings = json!({
            "ordered": group == ORDERED, "maxAttempts": max_attempts(group), "backoff": ["40ms"],
        });
        wire::set_group(client, group, settings).await;
    }
}

/// What a consumer has in its hands.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub number: u64,
    pub attempt: u32,
    pub handle: String,
}

/// Receives once for `group`.
pub(crate) async fn receive(
    ledger: &Ledger,
    client: &mut Client,
    group: &str,
    wanted: Wanted<'_>,
) -> Outcome<Vec<Held>> {
    let began = ledger.length();
    let received = match wire::receive(client, group, wanted).await {
        Outcome::Ok(received) => received,
        Outcome::Refused(why) => return Outcome::Refused(why),
        Outcome::Unknown => return Outcome::Unknown,
    };
    let at = ledger.now();
    for message in &received {
        ledger.append(Entry::Delivery(message.delivery(group, began, at)));
    }
    let held = received.into_iter().map(|message| Held {
        number: message.number(),
        attempt: message.attempt,
        handle: message.receipt_handle,
    });
    Outcome::Ok(held.collect())
}

/// Acknowledges all of these; `Down` when the server is gone.
pub(crate) async fn ack(
    ledger: &Ledger,
    client: &mut Client,
    group: &str,
    taken: Vec<Held>,
) -> Link {
    let outcomes = wire::ack(client, group, &handles(&taken)).await;
    let link = link(&outcomes);
    for (Held { number, .. }, outcome) in taken.into_iter().zip(outcomes) {
        ledger.append(Entry::Ack(Ack { group: group.to_owned(), number, outcome }));
    }
    link
}

/// Redrives all dead letters of the group.
pub(crate) async fn redrive(ledger: &Ledger, client: &mut Client, group: &str) -> Link {
    let began = ledger.append(Entry::Redriving { group: group.to_owned() });
    let outcome = wire::redrive(client, group).await;
    let link = Link::after(&outcome);
    if let Outcome::Ok(count) = outcome {
        ledger.append(Entry::Redriven { began, count });
    }
    link
}

fn handles(held: &[Held]) -> Vec<&str> {
    held.iter().map(|held| held.handle.as_str()).collect()
}

fn link(outcomes: &[Outcome<()>]) -> Link {
    match outcomes.iter().any(|outcome| Link::after(outcome) == Link::Down) {
        true => Link::Down,
        false => Link::Up,
    }
}

#[derive(Debug)]
pub(crate) struct Consumer {
    group: &'static str,
    ledger: Arc<Ledger>,
    random: Random,
    longest_wait: u64,
    /// Also of earlier lives.
    held: Vec<Held>,
}

impl Consumer {
    /// `longest_wait` bounds its long polls, in milliseconds.
    pub(crate) fn new(
        group: &'static str,
        ledger: &Arc<Ledger>,
        random: Random,
        longest_wait: u64,
    ) -> Self {
        Self { group, ledger: Arc::clone(ledger), random, longest_wait, held: Vec::new() }
    }

    pub(crate) async fn step(&mut self, client: &mut Client) -> Link {
        match self.random.below(40) {
            0..4 if !self.held.is_empty() => self.extend(client).await,
            4..18 if !self.held.is_empty() => self.ack(client).await,
            18..23 if !self.held.is_empty() => self.give_back(client).await,
            23 if self.group != ORDERED => redrive(&self.ledger, client, self.group).await,
            _ => self.receive(client).await,
        }
    }

    async fn receive(&mut self, client: &mut Client) -> Link {
        let wanted = Wanted {
            topic: TOPICS[usize::from(self.random.once_in(2))],
            max: 1 + self.random.below(32),
            wait: self.random.below(self.longest_wait + 1),
            invisible_for: [100, 1000, 30_000]
                [usize::from(self.random.next().to_le_bytes()[0] % 3)],
        };
        let received = receive(&self.ledger, client, self.group, wanted).await;
        let link = Link::after(&received);
        if let Outcome::Ok(held) = received {
            self.held.extend(held);
        }
        link
    }

    /// Takes the latest ones, so that some wait for their leases to run out, or for the next life.
    fn take(&mut self, most: u8) -> Vec<Held> {
        let count = 1 + usize::from(self.random.next().to_le_bytes()[0] % most);
        self.held.split_off(self.held.len().saturating_sub(count))
    }

    async fn ack(&mut self, client: &mut Client) -> Link {
        let mut taken = self.take(64);
        if self.random.once_in(4) {
            // Some are forgotten: their messages come again.
            taken.pop();
        }
        ack(&self.ledger, client, self.group, taken).await
    }

    async fn give_back(&mut self, client: &mut Client) -> Link {
        let taken = self.take(8);
        let delay = match self.random.below(3) {
            0 => 0,
            1 => self.random.below(20),
            _ => self.random.below(500),
        };
        let earliest = self.ledger.now() + delay;
        let outcomes = wire::nack(client, self.group, &handles(&taken), delay).await;
        let link = link(&outcomes);
        for (Held { number, attempt, .. }, outcome) in taken.into_iter().zip(outcomes) {
            let group = self.group.to_owned();
            self.ledger.append(Entry::Nack(Nack { group, number, attempt, earliest, outcome }));
        }
        link
    }

    async fn extend(&mut self, client: &mut Client) -> Link {
        let index = self.random.below(self.held.len() as u64);
        let index = usize::try_from(index).expect("below a length");
        let invisible_for = 50 + self.random.below(2000);
        let handle = self.held[index].handle.clone();
        Link::after(&wire::extend(client, self.group, &handle, invisible_for).await)
    }
}
