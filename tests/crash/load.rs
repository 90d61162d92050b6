//! The load: writers that put and change their minds, and the consumers of `consumer.rs`.
//!
//! A worker lives longer than the servers: what one life told it, it uses in the next. It stops when the
//! connection breaks, and is started again against the next life.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use horolog::client::Client;
use timerlog::disk::sim::Random;
use tokio::task::JoinSet;

use crate::consumer::{Consumer, GROUPS};
use crate::ledger::{Accepted, Asked, Cancel, Cancelled, Entry, Ledger, Outcome, Put};
use crate::wire;

pub(crate) const TOPICS: [&str; 2] = ["orders", "mails"];
const WRITERS: u64 = 4;
/// The consumers of each group.
const CONSUMERS: u64 = 2;

#[derive(Debug)]
pub(crate) struct Load {
    ledger: Arc<Ledger>,
    numbers: Arc<AtomicU64>,
    workers: Vec<Worker>,
}

#[derive(Debug)]
enum Worker {
    Writer(Writer),
    Consumer(Consumer),
}

/// Whether there is a server to go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Up,
    Down,
}

/// Workers that are at it.
#[derive(Debug)]
pub(crate) struct Running(JoinSet<Worker>);

impl Running {
    /// Waits for the first to stop.
    pub(crate) async fn first_stop(&mut self, load: &mut Load) {
        if let Some(stopped) = self.0.join_next().await {
            load.workers.push(stopped.expect("a worker does not panic"));
        }
    }
}

impl Load {
    /// `longest_wait` bounds the long polls of the consumers, in milliseconds.
    pub(crate) fn new(ledger: &Arc<Ledger>, random: &mut Random, longest_wait: u64) -> Self {
        let numbers = Arc::new(AtomicU64::new(1));
        let writers = (0..WRITERS).map(|_| {
            Worker::Writer(Writer {
                ledger: Arc::clone(ledger),
                numbers: Arc::clone(&numbers),
                random: Random::new(random.next()),
                plans: BTreeMap::new(),
            })
        });
        let mut workers: Vec<_> = writers.collect();
        for group in GROUPS {
            workers.extend((0..CONSUMERS).map(|_| {
                let random = Random::new(random.next());
                Worker::Consumer(Consumer::new(group, ledger, random, longest_wait))
            }));
        }
        Self { ledger: Arc::clone(ledger), numbers, workers }
    }

    pub(crate) fn start(&mut self, address: SocketAddr) -> Running {
        let mut running = JoinSet::new();
        for worker in self.workers.drain(..) {
            running.spawn(worker.run(address));
        }
        Running(running)
    }

    /// Waits until the last has noticed that the server is gone.
    pub(crate) async fn stop(&mut self, mut running: Running) {
        while !running.0.is_empty() {
            running.first_stop(self).await;
        }
    }

    /// One put outside of the load.
    pub(crate) async fn put(
        &self,
        client: &mut Client,
        topic: &'static str,
        asked: Asked,
    ) -> Outcome<Accepted> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        put(&self.ledger, client, topic, number, asked).await
    }
}

impl Worker {
    async fn run(mut self, address: SocketAddr) -> Self {
        let mut client = Client::new(address);
        loop {
            let link = match &mut self {
                Self::Writer(writer) => writer.step(&mut client).await,
                Self::Consumer(consumer) => consumer.step(&mut client).await,
            };
            if link == Link::Down {
                return self;
            }
        }
    }
}

impl Link {
    pub(crate) fn after<T>(outcome: &Outcome<T>) -> Self {
        match outcome {
            Outcome::Ok(_) => Self::Up,
            Outcome::Refused(why) => match why.as_str() {
                // A consumer may come before the first message, and later than its lease.
                "TOPIC_NOT_FOUND" | "INVALID_RECEIPT_HANDLE" => Self::Up,
                // The disk is full, and the log waits for room.
                "STORAGE_FULL" | "OVERLOADED" => Self::Up,
                _ => Self::Down,
            },
            Outcome::Unknown => Self::Down,
        }
    }
}

#[derive(Debug)]
struct Writer {
    ledger: Arc<Ledger>,
    numbers: Arc<AtomicU64>,
    random: Random,
    /// Cancels to come, by their moment.
    plans: BTreeMap<(u64, u64), String>,
}

impl Writer {
    async fn step(&mut self, client: &mut Client) -> Link {
        let now = self.ledger.now();
        match self.plans.first_key_value() {
            Some((&(moment, _), _)) if moment <= now => self.cancel(client).await,
            _ => self.put(client).await,
        }
    }

    async fn put(&mut self, client: &mut Client) -> Link {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let topic = TOPICS[usize::from(self.random.once_in(3))];
        let asked = self.moment();
        let outcome = put(&self.ledger, client, topic, number, asked).await;
        if let Outcome::Ok(accepted) = &outcome
            && self.random.once_in(4)
        {
            self.plan(number, accepted);
        }
        Link::after(&outcome)
    }

    fn moment(&mut self) -> Asked {
        let random = &mut self.random;
        let delay = match random.below(22) {
            0..6 => return Asked::Now,
            6..9 => 1 + random.below(10),
            9..13 => 1 + random.below(100),
            13..16 => 1 + random.below(1000),
            16..19 => 1 + random.below(5000),
            19 => return Asked::Level(1),
            20 => return Asked::Level(2),
            _ => 30_000 + random.below(600_000),
        };
        match random.once_in(3) {
            true => Asked::At(self.ledger.now() + delay),
            false => Asked::After(delay),
        }
    }

    /// Plans to cancel a message: at once, on the way, or about the instant at which it is due.
    fn plan(&mut self, number: u64, accepted: &Accepted) {
        let now = self.ledger.now();
        let deadline = accepted.deadline.unwrap_or(now);
        let moment = match self.random.below(4) {
            0 => now,
            1 => now + self.random.below(deadline.saturating_sub(now).max(1)),
            _ => deadline.saturating_sub(4) + self.random.below(8),
        };
        self.plans.insert((moment, number), accepted.id.clone());
    }

    async fn cancel(&mut self, client: &mut Client) -> Link {
        let Some(((moment, number), id)) = self.plans.pop_first() else { return Link::Up };
        let outcome = cancel(&self.ledger, client, number, &id).await;
        // Without an answer it is asked again, mostly; with one, sometimes: the answer is final.
        let again = match outcome {
            Outcome::Ok(_) => self.random.once_in(20),
            Outcome::Refused(_) => true,
            Outcome::Unknown => !self.random.once_in(3),
        };
        if again {
            self.plans.insert((moment, number), id);
        }
        Link::after(&outcome)
    }
}

async fn put(
    ledger: &Ledger,
    client: &mut Client,
    topic: &'static str,
    number: u64,
    asked: Asked,
) -> Outcome<Accepted> {
    let sent_at = ledger.now();
    let outcome = wire::put(client, topic, number, asked).await;
    let told = outcome.clone();
    ledger.append(Entry::Put(Put { number, topic, asked, sent_at, outcome }));
    told
}

pub(crate) async fn cancel(
    ledger: &Ledger,
    client: &mut Client,
    number: u64,
    id: &str,
) -> Outcome<Cancelled> {
    let outcome = wire::cancel(client, id).await;
    let told = outcome.clone();
    ledger.append(Entry::Cancel(Cancel { number, outcome }));
    told
}
