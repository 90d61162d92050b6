//! What may happen next.

use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::commitlog::{Durability, Receipt};
use horolog::consumer::{AckOutcome, Received};
use horolog::message::{Attributes, GroupName, GroupSettings, Moment, NewMessage, TopicName};
use horolog::producer::{self, PutSettings};
use horolog::store::{Group, Topic};
use timerlog::disk::sim::{Random, SimDisk};

use super::HOUR;
use super::lanes::{Lane, Number, number_of};
use crate::bench::{Bench, START};
use crate::model::Checked;

pub(super) const MESSAGE_GROUPS: usize = 50;
pub(super) const CONSUMERS: usize = 8;
pub(super) const MAX_ATTEMPTS: u32 = 3;
const BACKOFF_MS: [u64; 2] = [700, 20_000];
const OPERATIONS: usize = 4000;

pub(super) struct Held {
    pub(super) message: Number,
    pub(super) attempt: u32,
    pub(super) handle: String,
}

pub(super) enum Open {
    Put(Number),
    Acked(Number),
}

#[derive(Debug, Default)]
pub(super) struct Happened {
    pub(super) handed_out: u64,
    pub(super) acked: u64,
    pub(super) given_back: u64,
    pub(super) dead: u64,
    pub(super) again: u64,
    pub(super) unknown_acks: u64,
    pub(super) lives: u64,
}

pub(super) struct Story {
    pub(super) random: Random,
    pub(super) disk: SimDisk,
    pub(super) clock: Arc<ManualClock>,
    pub(super) bench: Option<Bench>,
    pub(super) lanes: Vec<Lane>,
    pub(super) consumers: Vec<Vec<Held>>,
    pub(super) open: Vec<(Receipt, Open)>,
    pub(super) happened: Happened,
}

impl Story {
    /// An ordered group that has begun to read its topic, and nothing in it.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let disk = SimDisk::new(random.next());
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        let mut story = Self {
            bench: Some(Bench::open_small(&disk, Arc::clone(&clock))),
            random,
            disk,
            clock,
            lanes: (0..MESSAGE_GROUPS).map(|_| Lane::default()).collect(),
            consumers: (0..CONSUMERS).map(|_| Vec::new()).collect(),
            open: Vec::new(),
            happened: Happened::default(),
        };
        let settings = GroupSettings {
            ordered: true,
            max_attempts: MAX_ATTEMPTS,
            backoff_ms: BACKOFF_MS.to_vec(),
            ..GroupSettings::default()
        };
        let (name, now) = (GroupName::writable("g").expect("a good name"), story.clock.now().wall);
        story.put(0);
        let engine = &story.bench().engine;
        engine.consumers.set_group(&name, settings, now).expect("room");
        let (group, topic) = story.there();
        let engine = &story.bench().engine;
        engine.consumers.subscribe(&group, &topic, None, now).expect("room");
        story.settle();
        story
    }

    pub(super) fn bench(&mut self) -> &mut Bench {
        self.bench.as_mut().expect("the engine runs between operations")
    }

    pub(super) fn there(&mut self) -> (Arc<Group>, Arc<Topic>) {
        let store = Arc::clone(&self.bench().engine.store);
        let group = store.group(&GroupName::writable("g").expect("a good name"));
        let topic = store.topic(&TopicName::writable("orders").expect("a good name"));
        (group.expect("it was made first of all"), topic.expect("it was made first of all"))
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).expect("below a usize")
    }

    pub(super) fn settle(&mut self) {
        self.bench().settle();
        self.hear();
    }

    pub(super) fn hear(&mut self) {
        for (receipt, open) in std::mem::take(&mut self.open) {
            match (receipt.outcome(), open) {
                (Some(Durability::Durable), Open::Put((lane, number))) => {
                    self.lanes[lane].stored.insert(number);
                }
                (Some(Durability::Durable), Open::Acked((lane, number))) => {
                    self.lanes[lane].acked.insert(number);
                    self.happened.acked += 1;
                }
                (_, open) => self.open.push((receipt, open)),
            }
        }
    }

    pub(super) fn put(&mut self, lane: usize) {
        let number = self.lanes[lane].put;
        self.lanes[lane].put += 1;
        let name = format!("{lane}/{number}");
        let attributes = Attributes {
            keys: vec![name.clone()],
            message_group: Some(lane.to_string()),
            ..Attributes::default()
        };
        let message = NewMessage { moment: Moment::Now, attributes, body: name.into() };
        let topic = TopicName::writable("orders").expect("a good name");
        let settings = PutSettings { queues_of_new_topic: Some(3) };
        let now = self.clock.now().wall;
        let engine = &self.bench().engine;
        let nonce = engine.nonce();
        let put = producer::put(&engine.store, settings, &topic, message, nonce, now);
        let receipt = put.expect("the log has room").receipt;
        self.open.push((receipt, Open::Put((lane, number))));
    }

    /// A receive by one of the consumers.
    pub(super) fn receive(
        &mut self,
        consumer: usize,
        max: usize,
        lease: Duration,
    ) -> Result<usize, String> {
        let (group, topic) = self.there();
        let now = self.clock.now();
        let consumers = Arc::clone(&self.bench().engine.consumers);
        let leased = consumers.receive(&group, &topic, max, lease, now);
        let received = leased.map_err(|error| error.to_string())?.take();
        for one in &received {
            self.handed_out(one, now.monotonic, lease)?;
            let Received { attempt, receipt_handle, .. } = one.clone();
            let message = number_of(&String::from_utf8_lossy(&one.body));
            self.consumers[consumer].push(Held { message, attempt, handle: receipt_handle });
        }
        Ok(received.len())
    }

    /// Takes something out of a consumer's hands.
    fn some_held(&mut self) -> Option<Held> {
        let consumer = self.index(CONSUMERS);
        let count = self.consumers[consumer].len();
        let index = self.index(count.max(1));
        (count > 0).then(|| self.consumers[consumer].swap_remove(index))
    }

    pub(super) fn is_out_no_more(&mut self, (lane, number): Number) {
        let out = &mut self.lanes[lane].out;
        *out = out.filter(|&(other, _)| other != number);
    }

    pub(super) fn ack(&mut self, held: &Held) {
        let (group, _) = self.there();
        let now = self.clock.now();
        let consumers = Arc::clone(&self.bench().engine.consumers);
        let acked = consumers.ack(&group, std::slice::from_ref(&held.handle), now);
        let (outcomes, receipt) = acked.expect("the log has room");
        if outcomes == [AckOutcome::Ok] {
            self.is_out_no_more(held.message);
            self.open.push((receipt, Open::Acked(held.message)));
        }
    }

    fn give_back(&mut self, held: &Held) -> Checked {
        let (group, _) = self.there();
        let now = self.clock.now();
        let delay = match self.random.below(4) {
            0 => Some(Duration::ZERO),
            1 => Some(Duration::from_millis(self.random.below(5000))),
            _ => None,
        };
        let consumers = Arc::clone(&self.bench().engine.consumers);
        let nacked = consumers.nack(&group, std::slice::from_ref(&held.handle), delay, now);
        let (outcomes, _) = nacked.map_err(|error| error.to_string())?;
        if outcomes == [AckOutcome::Ok] {
            self.is_out_no_more(held.message);
            self.happened.given_back += 1;
        }
        Ok(())
    }

    fn extend(&mut self, held: Held) {
        let (group, _) = self.there();
        let now = self.clock.now();
        let longer = Duration::from_millis(1 + self.random.below(20_000));
        let consumers = Arc::clone(&self.bench().engine.consumers);
        if consumers.extend(&group, &held.handle, longer, now).is_some() {
            let (lane, number) = held.message;
            self.lanes[lane].out = Some((number, now.monotonic + longer));
        }
        let consumer = self.index(CONSUMERS);
        self.consumers[consumer].push(held);
    }

    /// The process ends, one way or another, and the next one finds what the disk has.
    pub(super) fn live_again(&mut self) {
        self.happened.lives += 1;
        let way = self.random.below(3);
        if way == 0 {
            let now = self.clock.now();
            self.bench().engine.rest(now).expect("the disk is well");
        }
        self.hear();
        for (_, open) in std::mem::take(&mut self.open) {
            if let Open::Acked((lane, number)) = open {
                self.lanes[lane].perhaps_acked.insert(number);
                self.happened.unknown_acks += 1;
            }
        }
        self.bench = None;
        match way {
            0 | 1 => self.disk.kill(),
            _ => self.disk.crash(&mut self.random),
        }
        self.lanes.iter_mut().for_each(|lane| lane.out = None);
        self.bench = Some(Bench::open_small(&self.disk, Arc::clone(&self.clock)));
    }

    fn operation(&mut self) -> Checked {
        match self.random.below(100) {
            0..16 => {
                let lane = self.index(MESSAGE_GROUPS);
                self.put(lane);
            }
            16..36 => {
                let (consumer, max) = (self.index(CONSUMERS), 1 + self.index(6));
                let lease = [300, 5000, 60_000][self.index(3)];
                self.receive(consumer, max, Duration::from_millis(lease))?;
            }
            36..52 => {
                if let Some(held) = self.some_held() {
                    self.ack(&held);
                }
            }
            52..58 => {
                if let Some(held) = self.some_held() {
                    self.give_back(&held)?;
                }
            }
            58..60 => {
                // A consumer that says nothing: the lease ends by itself.
                self.some_held();
            }
            60..62 => {
                if let Some(held) = self.some_held() {
                    self.extend(held);
                }
            }
            62..88 => {
                for _ in 0..=self.index(8) {
                    let stages = self.bench().stages.len();
                    let stage = self.index(stages);
                    self.bench().step(stage);
                }
            }
            88..91 => self.settle(),
            91..99 => {
                let millis = [1, 50, 1000, 7000][self.index(4)];
                let millis = 1 + self.random.below(millis);
                self.clock.advance(millis);
            }
            _ => self.live_again(),
        }
        Ok(())
    }

    /// Nothing goes wrong any more: everything that was stored is acknowledged, or is dead.
    pub(super) fn drain(&mut self) -> Checked {
        for _ in 0..1000 {
            self.settle();
            for consumer in 0..CONSUMERS {
                self.receive(consumer, 256, HOUR)?;
                for held in std::mem::take(&mut self.consumers[consumer]) {
                    self.ack(&held);
                }
            }
            self.settle();
            let left = |lane: &Lane| {
                lane.stored.iter().any(|n| {
                    !lane.acked.contains(n)
                        && !lane.perhaps_acked.contains(n)
                        && !lane.dead.contains(n)
                })
            };
            if !self.lanes.iter().any(left) {
                return Ok(());
            }
            self.look_at_dead_letters()?;
            self.clock.advance(1000);
        }
        Err("it does not come to an end".to_owned())
    }

    pub(super) fn run(mut self) -> Result<Happened, String> {
        for index in 0..OPERATIONS {
            self.operation().map_err(|violation| format!("operation {index}: {violation}"))?;
        }
        self.drain()?;
        Ok(self.happened)
    }
}
