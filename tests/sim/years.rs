//! A shop whose timers wait far longer than the log keeps anything, by seeds.
//!
//! Plain timers, delay levels, timers by key, open transactions, what was given back, dead letters: each waits while
//! the log comes round again and again, and each is carried on. The power goes, or the process, in the midst of that,
//! at any change of the disk; what is derived is lost with some of these. At the end nothing is missing, early,
//! twice, or back from the dead.
//!
//! ```text
//! HOROLOG_SIM_YEARS=500 cargo test --test sim many_years
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::consumer::{AckOutcome, Mark, Received, Wanted};
use horolog::message::record::Terms;
use horolog::message::{
    Attributes, GroupName, GroupSettings, Moment, NewMessage, State, TopicName,
};
use horolog::producer::{
    self, CancelAnswer, ChangeError, EndAnswer, Ended, IfExists, LookError, PutSettings, TimerPut,
};
use horolog::stage::Progress;
use horolog::store::Store;
use timerlog::disk::sim::{Random, SimDisk};

use crate::bench::{Bench, START};
use crate::number;
use crate::retention::{DAY, HOUR, lose_derived};

const DAYS: u64 = 120;
const PUTS_A_DAY: u64 = 40;
/// A day less than they are kept.
const LETTERS_KEPT: u64 = 29 * DAY;
const ABANDON_AFTER: u64 = 80 * DAY;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Plain,
    Level,
    Keyed,
    Half,
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Waiting,
    Cancelled,
    /// Its transaction is, since then.
    Open(u64),
    /// Rolled back, or abandoned.
    Over,
    /// Acknowledged; *unsure* when the answer never came.
    Read {
        unsure: bool,
    },
    /// Given back: it comes again then.
    Returned(u64),
    Dead(u64),
    Redriven,
}

#[derive(Clone)]
struct Known {
    id: String,
    body: String,
    kind: Kind,
    due: u64,
    is: Is,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?} {} due at {}: {:?}", self.kind, self.id, self.due, self.is)
    }
}

/// What happened in a story.
type Seen = BTreeMap<&'static str, u64>;

struct Shop {
    disk: SimDisk,
    clock: Arc<ManualClock>,
    bench: Option<Bench>,
    random: Random,
    messages: Vec<Known>,
    /// The one that waits under each key.
    by_key: BTreeMap<u64, usize>,
    falls: u64,
    seen: Seen,
}

fn topic() -> TopicName {
    TopicName::writable("orders").expect("a good name")
}

fn readers() -> GroupName {
    GroupName::writable("readers").expect("a good name")
}

const PUT: PutSettings = PutSettings { queues_of_new_topic: Some(4) };

impl Shop {
    fn begin(seed: u64) -> Self {
        let disk = SimDisk::new(seed);
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        let bench = Bench::open_small_segments(&disk, Arc::clone(&clock));
        let settings = GroupSettings { max_attempts: 2, ..GroupSettings::default() };
        let set = bench.engine.consumers.set_group(&readers(), settings, clock.now().wall);
        set.expect("room");
        let mut shop = Self {
            disk,
            clock,
            bench: Some(bench),
            random: Random::new(seed),
            messages: Vec::new(),
            by_key: BTreeMap::new(),
            falls: 0,
            seen: Seen::new(),
        };
        shop.settle();
        shop
    }

    fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn bench(&self) -> &Bench {
        self.bench.as_ref().expect("it runs")
    }

    fn now(&self) -> u64 {
        self.clock.now().wall.as_millis()
    }

    /// Steps all stages until none has anything to do; starts again when the power has gone.
    fn settle(&mut self) {
        loop {
            let now = self.clock.now();
            let stages = &mut self.bench.as_mut().expect("it runs").stages;
            let mut worked = false;
            for stage in stages {
                match stage.step(now) {
                    Ok(progress) => worked |= progress == Progress::Worked,
                    Err(error) => {
                        assert!(self.disk.is_cut(), "a stage failed of itself: {error}");
                        self.fall();
                        worked = true;
                        break;
                    }
                }
            }
            if !worked {
                return;
            }
        }
    }

    /// The power goes, or the process ends; what is derived may be lost with it.
    fn fall(&mut self) {
        self.falls += 1;
        self.bench = None;
        match self.random.once_in(2) {
            true => self.disk.kill(),
            false => self.disk.crash(&mut self.random),
        }
        if self.random.once_in(4) {
            lose_derived(&self.disk);
            self.count("falls without what is derived");
        }
        self.bench = Some(Bench::open_small_segments(&self.disk, Arc::clone(&self.clock)));
    }

    fn far(&mut self) -> u64 {
        match self.random.below(100) {
            0..60 => 1000 + self.random.below(60_000),
            60..75 => self.random.below(30 * HOUR) + 1,
            75..90 => self.random.below(20 * DAY) + 1,
            90..97 => self.random.below(100 * DAY) + 1,
            _ => 365 * DAY + self.random.below(DAY),
        }
    }

    fn put(&mut self) {
        let number = self.messages.len();
        let kind = match self.random.below(20) {
            0 => Kind::Level,
            1..4 => Kind::Keyed,
            4..6 => Kind::Half,
            _ => Kind::Plain,
        };
        let moment = match kind {
            Kind::Level => Moment::Level(18),
            _ => Moment::After(self.far()),
        };
        let body = format!("{number}-{}", "x".repeat(self.index(1500)));
        let attributes = Attributes::default();
        let message = NewMessage { moment, attributes, body: body.clone().into() };
        let now = self.clock.now().wall;
        let engine = &self.bench().engine;
        let (store, nonce) = (Arc::clone(&engine.store), engine.nonce());
        let answer = match kind {
            Kind::Plain | Kind::Level => {
                producer::put(&store, PUT, &topic(), message, nonce, now).expect("room").answer
            }
            Kind::Keyed => {
                let key = self.random.below(400);
                let name = format!("key-{key}");
                let replace = IfExists::Replace;
                let put =
                    producer::put_timer(&store, PUT, &topic(), &name, message, replace, nonce, now);
                let TimerPut::Put { answer, replaced } = put.expect("room").answer else {
                    panic!("it was to replace what is there");
                };
                let before = self.by_key.insert(key, number);
                let before = before.filter(|&before| self.messages[before].is == Is::Waiting);
                assert_eq!(replaced, before.map(|before| self.messages[before].id.clone()));
                if let Some(before) = before {
                    self.messages[before].is = Is::Cancelled;
                    self.count("replaced");
                }
                answer
            }
            Kind::Half => {
                let terms = Terms {
                    producer_group: "shop".to_owned(),
                    check_after_ms: self.random.below(30 * DAY) + 1000,
                    check_interval_ms: self.random.below(30 * DAY) + 1000,
                    max_checks: 3,
                    abandon_after_ms: ABANDON_AFTER,
                    check_url: None,
                };
                let put = producer::prepare_transaction(
                    &store,
                    PUT,
                    &topic(),
                    message,
                    &terms,
                    None,
                    nonce,
                    now,
                );
                put.expect("room").answer.items[0].expect("it is good")
            }
        };
        let is = if kind == Kind::Half { Is::Open(now.as_millis()) } else { Is::Waiting };
        let (id, due) = (self.bench().id(&answer), answer.deliver_at.as_millis());
        self.messages.push(Known { id, body, kind, due, is });
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).expect("below a usize")
    }

    fn some(&mut self, is: impl Fn(&Known) -> bool) -> Option<usize> {
        let all = (0..self.messages.len()).filter(|&number| is(&self.messages[number]));
        let all: Vec<_> = all.collect();
        (!all.is_empty()).then(|| all[self.index(all.len())])
    }

    fn some_that_waits(&mut self) -> Option<usize> {
        let now = self.now();
        self.some(|known| known.is == Is::Waiting && known.due > now)
    }

    fn found(&self, number: usize) -> producer::Found {
        let known = &self.messages[number];
        match producer::find(&self.bench().engine.store, &known.id) {
            Ok(found) => found,
            Err(error) => panic!("the id of message {number} is {error}: {known:?}"),
        }
    }

    /// Does it, again when what decides is not written yet.
    fn change<T>(
        &mut self,
        number: usize,
        change: impl Fn(&Store, &producer::Found) -> Result<T, ChangeError>,
    ) -> T {
        loop {
            let found = self.found(number);
            match change(&self.bench().engine.store, &found) {
                Ok(done) => return done,
                Err(ChangeError::Look(LookError::NotWritten(_))) => self.settle(),
                Err(error) => panic!("message {number}: {error}"),
            }
        }
    }

    /// Retention looks, and gets somewhere, but not to its end.
    fn meanwhile(&mut self) {
        self.clock.advance(31_000);
        for _ in 0..self.random.below(60) {
            let now = self.clock.now();
            let stages = self.bench().stages.len();
            let index = self.index(stages);
            let stage = &mut self.bench.as_mut().expect("it runs").stages[index];
            stage.step(now).expect("the power is on");
        }
    }

    fn cancel(&mut self) {
        let Some(number) = self.some_that_waits() else { return };
        let now = self.clock.now().wall;
        let decided = self.change(number, |store, found| producer::cancel(store, found, now));
        assert!(matches!(decided.answer, CancelAnswer::Cancelled(_)), "message {number}");
        self.messages[number].is = Is::Cancelled;
        self.count("cancelled");
    }

    fn postpone(&mut self) {
        let Some(number) = self.some_that_waits() else { return };
        let (now, after) = (self.clock.now().wall, self.far());
        let moment = Moment::After(after);
        self.change(number, |store, found| producer::reschedule(store, found, moment, now));
        self.messages[number].due = now.as_millis() + after;
        self.count("rescheduled");
    }

    fn end(&mut self) {
        let Some(number) = self.some(|known| matches!(known.is, Is::Open(_))) else { return };
        let how = if self.random.once_in(3) { Ended::RolledBack } else { Ended::Committed };
        let now = self.clock.now().wall;
        let decided = self.change(number, |store, found| producer::end(store, found, how, now));
        self.messages[number].is = match (decided.answer, how) {
            (EndAnswer::AsAsked, Ended::Committed) => {
                let known = &mut self.messages[number];
                known.due = known.due.max(now.as_millis());
                Is::Waiting
            }
            (EndAnswer::AsAsked, Ended::RolledBack) => Is::Over,
            (EndAnswer::Abandoned, _) => {
                self.check_abandoned(number);
                Is::Over
            }
            (EndAnswer::Otherwise, _) => panic!("nobody has ended message {number}"),
        };
        self.count("ended");
    }

    fn check_abandoned(&self, number: usize) {
        let Is::Open(since) = self.messages[number].is else {
            panic!("message {number} is no open transaction");
        };
        assert!(self.now() >= since + ABANDON_AFTER, "message {number} was abandoned early");
    }

    fn redrive(&mut self) {
        let fresh = self.now() - LETTERS_KEPT;
        let Some(number) = self.some(|known| matches!(known.is, Is::Dead(at) if at > fresh)) else {
            return;
        };
        let now = self.clock.now();
        let wanted = Wanted { ids: Some(vec![self.messages[number].id.clone()]), topic_id: None };
        let engine = &self.bench().engine;
        let group = engine.store.group(&readers()).expect("it reads");
        let (count, _) = engine.consumers.redrive(&group, &wanted, now).expect("room");
        assert_eq!(count, 1, "message {number} is a dead letter");
        self.messages[number].is = Is::Redriven;
        self.count("redriven");
    }

    /// A message was handed out.
    fn check_received(&self, received: &Received) -> usize {
        let text = std::str::from_utf8(&received.body).expect("text");
        let (number, _) = text.split_once('-').expect("a body of ours");
        let number: usize = number.parse().expect("a number");
        let (known, now) = (&self.messages[number], self.now());
        assert_eq!(text, known.body, "message {number} has another body");
        assert_eq!(received.message_id, known.id, "message {number} has another id");
        let may_come = match known.is {
            Is::Waiting => known.due <= now,
            Is::Returned(at) => at <= now,
            Is::Read { unsure } => unsure,
            Is::Redriven => true,
            Is::Cancelled | Is::Open(_) | Is::Over | Is::Dead(_) => false,
        };
        assert!(may_come, "message {number} came at {now}: {known:?}");
        if known.kind != Kind::Half {
            assert_eq!(received.deliver_at.as_millis(), known.due, "message {number}");
        }
        number
    }

    fn receive(&self) -> Vec<Received> {
        let mut all = Vec::new();
        loop {
            let received = self.bench().read("readers");
            if received.is_empty() {
                return all;
            }
            all.extend(received);
        }
    }

    /// Reads all there is, and acknowledges it; where the power may not go, gives some of it back.
    fn read(&mut self, all_is_well: bool) {
        let (now, falls) = (self.clock.now(), self.falls);
        let (mut acks, mut nacks, mut acked) = (Vec::new(), Vec::new(), Vec::new());
        let delay = self.random.below(9 * DAY) + 1;
        for received in self.receive() {
            let number = self.check_received(&received);
            if all_is_well && self.random.once_in(12) {
                let dies = received.attempt >= 2;
                let now = now.wall.as_millis();
                self.messages[number].is =
                    if dies { Is::Dead(now) } else { Is::Returned(now + delay) };
                self.count(if dies { "dead" } else { "given back" });
                nacks.push(received.receipt_handle);
            } else {
                self.messages[number].is = Is::Read { unsure: false };
                acked.push(number);
                acks.push(received.receipt_handle);
            }
        }
        let engine = &self.bench().engine;
        if let Some(group) = engine.store.group(&readers()) {
            if !acks.is_empty() {
                engine.consumers.ack(&group, &acks, now).expect("room");
            }
            if !nacks.is_empty() {
                let delay = Some(Duration::from_millis(delay));
                let (outcomes, _) =
                    engine.consumers.nack(&group, &nacks, delay, now).expect("room");
                assert!(outcomes.iter().all(|outcome| *outcome == AckOutcome::Ok), "{outcomes:?}");
            }
        }
        self.settle();
        if self.falls > falls {
            for number in acked {
                self.messages[number].is = Is::Read { unsure: true };
            }
        }
    }

    /// Hours pass, in which the power goes at some change of the disk.
    fn pass_with_a_fall(&mut self, hours: u64) {
        let falls = self.falls;
        let upto = if self.random.once_in(2) { 20 } else { 400 };
        self.disk.cut_after(1 + self.random.below(upto));
        for _ in 0..hours {
            self.hour(false);
        }
        if self.falls == falls {
            self.fall();
            self.settle();
        }
    }

    fn hour(&mut self, all_is_well: bool) {
        self.clock.advance(HOUR);
        self.settle();
        // Retention looks every half minute, and so often a checkpoint is written.
        self.clock.advance(31_000);
        self.settle();
        self.read(all_is_well);
        self.check_prompt();
    }

    /// What was due two hours ago has come.
    fn check_prompt(&self) {
        let before = self.now() - 2 * HOUR;
        for (number, known) in self.messages.iter().enumerate() {
            let late = match known.is {
                Is::Waiting => known.due < before,
                Is::Returned(at) => at < before,
                _ => false,
            };
            if late {
                let standing = self.found(number).standing(&self.bench().engine.store);
                panic!("at {} message {number} has not come: {known:?}, {standing:?}", self.now());
            }
        }
    }

    fn day(&mut self) {
        let mut hours = 0;
        while hours < 24 {
            for _ in 0..PUTS_A_DAY / 8 {
                self.put();
                self.settle();
            }
            self.meanwhile();
            match self.random.below(10) {
                0..3 => self.cancel(),
                3..6 => self.postpone(),
                6..9 => self.end(),
                _ if self.random.once_in(4) => self.redrive(),
                _ => {}
            }
            self.settle();
            match self.random.once_in(8) {
                true => self.pass_with_a_fall(3),
                false => (0..3).for_each(|_| self.hour(true)),
            }
            hours += 3;
        }
    }

    /// All that waits is found, and stands as it should.
    fn check(&mut self) {
        let store = Arc::clone(&self.bench().engine.store);
        let begin = store.log().begin();
        let mut waiting = 0;
        for number in 0..self.messages.len() {
            let known = self.messages[number].clone();
            let expected = match known.is {
                Is::Waiting if known.due > self.now() => State::Scheduled,
                Is::Open(_) => State::Prepared,
                _ => continue,
            };
            let found = self.found(number);
            let standing = found.standing(&store).expect("it can be looked up");
            if standing.state == State::Abandoned {
                self.check_abandoned(number);
                self.messages[number].is = Is::Over;
                self.count("abandoned");
                continue;
            }
            waiting += u64::from(expected == State::Scheduled);
            assert_eq!(standing.state, expected, "message {number}: {known:?}");
            assert_eq!(standing.deliver_at.as_millis(), known.due, "message {number}");
            let body = producer::body(&store, &found).expect("its body");
            assert_eq!(body, known.body.as_bytes(), "message {number}");
            if found.offset < begin {
                self.count(match known.kind {
                    Kind::Plain => "plain timers carried on",
                    Kind::Level => "levels carried on",
                    Kind::Keyed => "timers by key carried on",
                    Kind::Half => "transactions carried on",
                });
            }
        }
        assert_eq!(store.pending(), waiting, "what is pending");
        self.check_letters();
    }

    fn check_letters(&mut self) {
        let engine = &self.bench().engine;
        let Some(group) = engine.store.group(&readers()) else { return };
        let listed = engine.consumers.dead_letters(&group, Mark::default(), 10_000);
        let listed = listed.expect("the log can be read").0;
        let mut there: Vec<_> = listed.iter().map(|letter| letter.message_id.as_str()).collect();
        there.sort_unstable();
        assert!(there.is_sorted_by(|a, b| a < b), "a dead letter is listed twice: {there:?}");
        let fresh = self.now() - LETTERS_KEPT;
        let (mut old, begin) = (0, engine.store.log().begin());
        for (number, known) in self.messages.iter().enumerate() {
            let listed = there.binary_search(&known.id.as_str()).is_ok();
            match known.is {
                Is::Dead(at) if at > fresh => {
                    assert!(listed, "message {number} is no dead letter any more: {known:?}");
                    let found = producer::find(&engine.store, &known.id).expect("it is kept");
                    old += u64::from(found.offset < begin);
                }
                Is::Dead(_) => {}
                _ => assert!(!listed, "message {number} is a dead letter: {known:?}"),
            }
        }
        *self.seen.entry("dead letters carried on").or_default() += old;
    }

    /// Everything that waits comes.
    fn read_to_the_end(&mut self) {
        let due = |known: &Known| match known.is {
            Is::Waiting => Some(known.due),
            Is::Returned(at) => Some(at),
            _ => None,
        };
        while let Some(next) = self.messages.iter().filter_map(due).min() {
            let jump = next.saturating_sub(self.now()).max(HOUR);
            self.clock.advance(jump);
            self.settle();
            // A jump of the clock holds firing for a minute.
            self.clock.advance(60_000);
            self.settle();
            let waited = self.messages.iter().filter_map(due).count();
            self.read(false);
            let waits = self.messages.iter().filter_map(due).count();
            assert!(waits < waited, "nothing came of what was due at {next}");
        }
        let left = self.messages.iter().position(|known| known.is == Is::Redriven);
        assert_eq!(left, None, "what was redriven has not come");
    }
}

fn story(seed: u64) -> Seen {
    let mut shop = Shop::begin(seed);
    for day in 0..DAYS {
        shop.day();
        if day % 10 == 9 {
            shop.check();
        }
    }
    let begin = shop.bench().engine.store.log().begin().get();
    let (low, high) = shop.bench().engine.store.log().extent();
    println!(
        "seed {seed}: {} messages, {} falls, the log is {}..{} of {begin}: {:?}",
        shop.messages.len(),
        shop.falls,
        low.get(),
        high.get(),
        shop.seen
    );
    shop.fall();
    shop.check();
    shop.read_to_the_end();
    shop.seen
}

fn stories(seeds: std::ops::Range<u64>) {
    let mut all = Seen::new();
    for seed in seeds {
        for (what, count) in story(seed) {
            *all.entry(what).or_default() += count;
        }
    }
    let happened = [
        "replaced",
        "cancelled",
        "rescheduled",
        "ended",
        "abandoned",
        "given back",
        "dead",
        "redriven",
        "falls without what is derived",
        "plain timers carried on",
        "timers by key carried on",
        "transactions carried on",
        "dead letters carried on",
    ];
    for what in happened {
        assert!(all.contains_key(what), "in none of these stories: {what}");
    }
}

#[test]
fn what_waits_longer_than_the_log_keeps_anything_comes_once_by_seeds_0_to_3() {
    stories(0..4);
}

#[test]
fn what_waits_longer_than_the_log_keeps_anything_comes_once_by_seeds_4_to_7() {
    stories(4..8);
}

#[test]
fn many_years() {
    let count = number("HOROLOG_SIM_YEARS").unwrap_or(1);
    (1000..1000 + count).for_each(|seed| drop(story(seed)));
}
