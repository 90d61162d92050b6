//! Retries among others: a storm of them makes nobody late, and with their topic they are gone.

use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::consumer::{AckOutcome, DeadMessage, Mark, More, Received, Wanted};
use horolog::message::{Attributes, GroupName, GroupSettings, Moment, NewMessage, TopicName};
use horolog::producer::{self, PutSettings};
use horolog::store::{Force, Group, Holds, Topic};
use timerlog::disk::sim::{Random, SimDisk};

use crate::bench::{Bench, START};
use crate::groups::bodies;

const LEASE: Duration = Duration::from_secs(3600);
pub(crate) const HOUR: u64 = 3_600_000;

/// The group's hold on one topic.
pub(crate) struct Reader {
    pub(crate) group: Arc<Group>,
    pub(crate) topic: Arc<Topic>,
}

fn topic(name: &str) -> TopicName {
    TopicName::writable(name).expect("a good name")
}

impl Bench {
    pub(crate) fn put_on(&self, name: &str, moment: Moment, body: &str) {
        let attributes = Attributes::default();
        let message = NewMessage { moment, attributes, body: body.to_owned().into() };
        let settings = PutSettings { queues_of_new_topic: Some(1) };
        let (now, nonce) = (self.clock.now().wall, self.engine.nonce());
        let put = producer::put(&self.engine.store, settings, &topic(name), message, nonce, now);
        put.expect("the log has room");
    }

    pub(crate) fn reader(&self, group: &str, name: &str) -> Reader {
        let store = &self.engine.store;
        let group = GroupName::writable(group).expect("a good name");
        let group = store.group_or_make(&group, 30_000, self.clock.now().wall).expect("room");
        Reader { group, topic: store.topic(&topic(name)).expect("something was put") }
    }

    pub(crate) fn give_up_after(&self, group: &str, max_attempts: u32) {
        let name = GroupName::writable(group).expect("a good name");
        let settings = GroupSettings { max_attempts, ..GroupSettings::default() };
        let set = self.engine.consumers.set_group(&name, settings, self.clock.now().wall);
        set.expect("room");
    }

    /// All that the reader can have now.
    pub(crate) fn all(&self, reader: &Reader) -> Vec<Received> {
        let mut all = Vec::new();
        loop {
            let now = self.clock.now();
            let consumers = &self.engine.consumers;
            let leased = consumers.receive(&reader.group, &reader.topic, 256, LEASE, now);
            let leased = leased.expect("the log can be read");
            if leased.is_empty() && leased.more() == More::No {
                return all;
            }
            all.extend(leased.take());
        }
    }

    pub(crate) fn nack(
        &self,
        reader: &Reader,
        received: &[Received],
        delay_ms: u64,
    ) -> Vec<AckOutcome> {
        let handles: Vec<_> = received.iter().map(|r| r.receipt_handle.clone()).collect();
        let delay = Some(Duration::from_millis(delay_ms));
        let consumers = &self.engine.consumers;
        let nacked = consumers.nack(&reader.group, &handles, delay, self.clock.now());
        nacked.expect("the log has room").0
    }

    pub(crate) fn ack_all(&self, reader: &Reader, received: &[Received]) -> Vec<AckOutcome> {
        let handles: Vec<_> = received.iter().map(|r| r.receipt_handle.clone()).collect();
        let acked = self.engine.consumers.ack(&reader.group, &handles, self.clock.now());
        acked.expect("the log has room").0
    }

    pub(crate) fn letters(&self, group: &Group) -> Vec<DeadMessage> {
        let listed = self.engine.consumers.dead_letters(group, Mark::default(), 1000);
        listed.expect("the log can be read").0
    }

    fn stage(&self, name: &str) -> usize {
        let stage = self.stages.iter().position(|stage| stage.name() == name);
        stage.unwrap_or_else(|| panic!("there is no stage {name}"))
    }
}

/// Ten thousand messages are given back again and again, all to one millisecond. At that millisecond a timer
/// of another topic is due, and the retry of another group: both fire in the first step after it, and are
/// handed out while most of the storm is still to come.
#[test]
fn a_storm_of_retries_makes_no_other_group_or_topic_late() {
    const STORM: usize = 10_000;
    const BACKOFF: u64 = 1000;
    let mut bench = Bench::new();
    ["storm", "calm"].into_iter().for_each(|group| bench.give_up_after(group, 1000));
    for index in 0..STORM {
        bench.put_on("stormy", Moment::Now, "again");
        // Bytes that wait for the disk are bounded.
        if index % 2000 == 0 {
            bench.settle();
        }
    }
    bench.settle();
    let storm = bench.reader("storm", "stormy");
    let mut raging = bench.all(&storm);
    assert_eq!(raging.len(), STORM);
    given_back(&bench.nack(&storm, &raging, 0));
    bench.settle();
    raging = bench.all(&storm);
    // This topic and its retries are younger than the storm's: the turn comes to them last.
    bench.put_on("quiet", Moment::Now, "again");
    bench.settle();
    let calm = bench.reader("calm", "quiet");
    let mut mine = bench.all(&calm);
    let [fire, flush, dispatch] =
        ["dequeue_put", "flush", "dispatch"].map(|name| bench.stage(name));
    for round in 1..=5 {
        given_back(&bench.nack(&storm, &raging, BACKOFF));
        given_back(&bench.nack(&calm, &mine, BACKOFF));
        let due = Timestamp::from_millis(START + round * BACKOFF);
        bench.put_on("quiet", Moment::At(due), "on time");
        bench.clock.advance(BACKOFF - 1);
        bench.settle();
        assert!(bench.all(&storm).is_empty() && bench.all(&calm).is_empty(), "early");

        bench.clock.advance(1);
        bench.step(fire);
        bench.step(flush);
        while bench.step(dispatch) {}
        let (timers, again): (Vec<_>, Vec<_>) =
            bench.all(&calm).into_iter().partition(|one| one.fired_at.is_some());
        assert_eq!(timers.iter().map(|one| one.fired_at).collect::<Vec<_>>(), [Some(due)]);
        assert_eq!(again.iter().map(|one| u64::from(one.attempt)).collect::<Vec<_>>(), [round + 1]);
        raging = bench.all(&storm);
        assert!(raging.len() < STORM / 2, "there was no storm: {}", raging.len());
        // Another group reads the storm's own topic as if there were none.
        let bystander = bench.reader(&format!("bystander-{round}"), "stormy");
        assert_eq!(bench.all(&bystander).len(), STORM);

        bench.settle();
        raging.extend(bench.all(&storm));
        assert_eq!((raging.len(), bench.clock.now().wall), (STORM, due), "round {round}");
        assert_eq!(bench.ack_all(&calm, &timers), [AckOutcome::Ok]);
        mine = again;
    }
}

pub(crate) fn given_back(outcomes: &[AckOutcome]) {
    assert!(outcomes.iter().all(|outcome| *outcome == AckOutcome::Ok), "{outcomes:?}");
}

/// How the server is between the deletion and what comes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meanwhile {
    Up,
    Killed,
    OutOfPower,
    WithoutDerivedFiles,
}

/// Opens the disk again, as it is after that.
pub(crate) fn after(bench: Bench, disk: &SimDisk, meanwhile: Meanwhile) -> Bench {
    let clock = Arc::clone(&bench.clock);
    if meanwhile == Meanwhile::Up {
        return bench;
    }
    drop(bench);
    match meanwhile {
        Meanwhile::OutOfPower => disk.crash(&mut Random::new(3)),
        _ => disk.kill(),
    }
    if meanwhile == Meanwhile::WithoutDerivedFiles {
        crate::levels::lose_derived(disk);
    }
    Bench::open_small(disk, clock)
}

pub(crate) const ALL_WAYS: [Meanwhile; 4] =
    [Meanwhile::Up, Meanwhile::Killed, Meanwhile::OutOfPower, Meanwhile::WithoutDerivedFiles];

/// With a topic goes whatever its groups have given back: what waits for its moment, what is readable again
/// and nobody has taken, what is out, what is dead. Another topic of the same group keeps all of that.
#[test]
fn with_its_topic_everything_that_was_given_back_is_gone() {
    for meanwhile in ALL_WAYS {
        let disk = SimDisk::new(1);
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        let mut bench = Bench::open_small(&disk, Arc::clone(&clock));
        bench.give_up_after("g", 3);
        for name in ["goes", "stays"] {
            for body in ["waits", "readable", "out", "dead"] {
                bench.put_on(name, Moment::Now, body);
            }
            bench.put_on(name, Moment::After(HOUR), "timed");
            bench.settle();
            let reader = bench.reader("g", name);
            let first = bench.all(&reader);
            given_back(&bench.nack(&reader, &first[3..], 0));
            given_back(&bench.nack(&reader, &first[2..3], 0));
            bench.settle();
            let second = bench.all(&reader);
            assert_eq!(bodies(&second), ["dead", "out"]);
            given_back(&bench.nack(&reader, &second[..1], 0));
            bench.settle();
            given_back(&bench.nack(&reader, &bench.all(&reader), 0));
            given_back(&bench.nack(&reader, &first[..1], HOUR));
            given_back(&bench.nack(&reader, &first[1..2], 0));
            bench.settle();
        }
        let (goes, stays) = (bench.reader("g", "goes"), bench.reader("g", "stays"));
        let figures = |bench: &Bench, group: &Group| {
            let stats = bench.engine.consumers.stats(group).expect("the queues can be read");
            let figures = stats.into_iter().map(|s| (s.topic, s.lag, s.in_flight, s.dead_letters));
            (figures.collect::<Vec<_>>(), bench.engine.store.pending())
        };
        let of = |name: &str, in_flight| (name.to_owned(), 3, in_flight, 1);
        assert_eq!(figures(&bench, &goes.group), (vec![of("goes", 1), of("stays", 1)], 2));
        let held = [Holds::Retries, Holds::DeadLetters].map(|holds| {
            let held = bench.engine.store.system_topic(holds, &goes.group, goes.topic.id);
            held.expect("something was given back, and something died").id
        });

        let now = clock.now().wall;
        let deleted = bench.engine.store.delete_topic(&topic("goes"), Force::Yes, |_| 0, now);
        let (_, gone) = deleted.expect("it is there");
        bench.settle();
        bench.engine.consumers.topic_deleted(&gone);
        drop((goes.group, stays));
        let mut bench = after(bench, &disk, meanwhile);
        let stays = bench.reader("g", "stays");
        let out = u64::from(meanwhile == Meanwhile::Up);
        assert_eq!(figures(&bench, &stays.group), (vec![of("stays", out)], 1), "{meanwhile:?}");
        assert_eq!(bench.letters(&stays.group).len(), 1);
        for id in held {
            assert!(bench.engine.store.topic_by_id(id).is_none(), "{id} is left: {meanwhile:?}");
        }

        // One of the same name begins with nothing, and nothing comes to it.
        bench.put_on("goes", Moment::Now, "new");
        bench.settle();
        let new = bench.reader("g", "goes");
        assert_eq!(bodies(&bench.all(&new)), ["new"], "{meanwhile:?}");
        let all = Wanted::default();
        let redriven = bench.engine.consumers.redrive(&stays.group, &all, clock.now());
        assert_eq!(redriven.expect("room").0, 1, "of the topic that stays");
        bench.clock.advance(2 * HOUR);
        bench.settle();
        assert_eq!(bench.engine.store.counts().dropped, 1);
        assert_eq!(bodies(&bench.all(&new)), ["new"], "its lease has ended: {meanwhile:?}");
        let mut read = bench.all(&stays);
        read.sort_by(|one, other| one.body.cmp(&other.body));
        assert_eq!(bodies(&read), ["dead", "out", "readable", "timed", "waits"], "{meanwhile:?}");
        assert_eq!(bench.ack_all(&stays, &read), [AckOutcome::Ok; 5]);
        bench.settle();
        let stats = bench.engine.consumers.stats(&stays.group).expect("the queues can be read");
        let left: Vec<_> =
            stats.iter().map(|s| (s.topic.as_str(), s.lag, s.dead_letters)).collect();
        assert_eq!(left, [("goes", 1, 0), ("stays", 0, 0)], "{meanwhile:?}");
        assert_eq!(bench.engine.store.pending(), 0);
    }
}
