//! Transactions: prepared, decided, checked, lost by the caller, abandoned, resumed.

use std::collections::{BTreeMap, BTreeSet};

use horolog::clock::Clock;
use horolog::message::record::{CheckUrl, Terms};
use horolog::message::{Moment, NewMessage, State, TopicName};
use horolog::producer::{self, ChangeError, EndAnswer, Ended, Fate, Found, PutAnswer, Resumed};
use horolog::transaction::Asked;
use timerlog::disk::sim::{Random, SimDisk};

use crate::bench::Bench;
use crate::model::{Checked, Message, Told, ensure};
use crate::operations::PUT;
use crate::world::{Open, TOPICS, World};

const PRODUCERS: usize = 2;

/// What the model knows of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Half {
    pub commit_asked: bool,
    pub rollback_asked: bool,
    pub committed: Told,
    pub rolled_back: Told,
    max_checks: u32,
    /// The last check that a producer was handed, since it was prepared or resumed.
    last_check: u32,
    /// Why a fact that was told cannot be.
    violation: Option<String>,
}

impl Half {
    pub(crate) fn check_received(&self, number: u64) -> Checked {
        ensure!(self.commit_asked, "half message {number} was received, and nobody committed it");
        ensure!(
            self.rolled_back != Told::Yes,
            "half message {number} was rolled back, and received"
        );
        Ok(())
    }

    pub(crate) fn check_undecided(&self, state: State, message: &Message) -> Checked {
        let number = message.number;
        ensure!(self.committed != Told::Yes, "{number} was told committed and is {state:?}");
        ensure!(message.place.is_none(), "{number} was received and is {state:?}");
        if state == State::RolledBack {
            ensure!(self.rollback_asked, "{number} is rolled back and nobody asked");
        } else {
            ensure!(
                self.rolled_back != Told::Yes,
                "{number} was told rolled back and is {state:?}"
            );
        }
        Ok(())
    }

    /// The power took back what was promised in async mode.
    pub(crate) fn forget(&mut self) {
        for told in [&mut self.committed, &mut self.rolled_back] {
            if *told == Told::Yes {
                *told = Told::Unknown;
            }
        }
        self.last_check = 0;
    }
}

/// What happened to transactions in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransactionCoverage(BTreeMap<&'static str, u64>);

/// What hundreds of seeds meet.
const RARE: [&str; 2] = ["given back", "not reached"];

/// What each block of seeds meets.
const HAPPENED: [&str; 9] = [
    "prepared",
    "committed",
    "committed with a moment",
    "rolled back",
    "told otherwise",
    "told abandoned",
    "checked",
    "resumed",
    "listed",
];

impl TransactionCoverage {
    fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    pub(crate) fn check(&self) {
        self.check_all(&HAPPENED);
    }

    /// For many more seeds than a block has.
    pub(crate) fn check_rare(&self) {
        self.check_all(&RARE);
    }

    fn check_all(&self, all: &[&str]) {
        for what in all {
            assert!(self.0.contains_key(what), "in none of these runs a transaction was {what}");
        }
    }
}

fn producer_group(index: usize) -> String {
    format!("producer-{index}")
}

/// Some transactions of a group are asked about at its own server.
fn check_url(group: &str) -> CheckUrl {
    CheckUrl { url: format!("https://{group}/checks?all"), secret: None }
}

impl World {
    pub(crate) fn transaction_operation(&mut self) -> Checked {
        match self.random.below(20) {
            0..8 => self.prepare(),
            8..13 => self.end_one(),
            13..18 => self.ask_for_checks(),
            18 => self.resume_one(),
            _ => self.list_transactions(),
        }
    }

    fn prepare(&mut self) -> Checked {
        let topic = self.index(TOPICS);
        let (message, mut known) = self.new_message(topic);
        let terms = Terms {
            producer_group: producer_group(self.index(PRODUCERS)),
            check_after_ms: 100 + self.random.below(5000),
            check_interval_ms: 100 + self.random.below(60_000),
            max_checks: 1 + u32::try_from(self.random.below(3)).expect("small"),
            abandon_after_ms: 10_000 + self.random.below(200_000),
            check_url: None,
        };
        let terms = match self.random.once_in(3) {
            true => Terms { check_url: Some(check_url(&terms.producer_group)), ..terms },
            false => terms,
        };
        let number = known.number;
        let (engine, now) = (self.engine(), self.clock.now().wall);
        let (name, nonce) = (self.topic(topic), engine.nonce());
        let decided = producer::prepare_transaction(
            &engine.store,
            PUT,
            &name,
            message,
            &terms,
            None,
            nonce,
            now,
        );
        if let Ok(decided) = decided {
            let answer = decided.answer.items[0].map_err(|refusal| refusal.to_string())?;
            self.was_put(&mut known, &answer);
            self.open.push((decided.receipt, Open::Put { number }));
            self.coverage.transactions.count("prepared");
        }
        known.half = Some(Half {
            commit_asked: false,
            rollback_asked: false,
            committed: Told::Nothing,
            rolled_back: Told::Nothing,
            max_checks: terms.max_checks,
            last_check: 0,
            violation: None,
        });
        self.model.messages.push(known);
        Ok(())
    }

    fn some_half(&mut self) -> Result<Option<(u64, Found)>, String> {
        for _ in 0..20 {
            if let Some((number, found)) = self.some_message()?
                && found.is_half()
            {
                return Ok(Some((number, found)));
            }
        }
        Ok(None)
    }

    fn half(&mut self, number: u64) -> &mut Half {
        self.model.message(number).half.as_mut().expect("it was prepared as one")
    }

    fn end_one(&mut self) -> Checked {
        let Some((number, found)) = self.some_half()? else { return Ok(()) };
        let how = if self.random.once_in(3) { Ended::RolledBack } else { Ended::Committed };
        let now = self.clock.now().wall;
        let Ok(decided) = producer::end(&self.engine().store, &found, how, now) else {
            return Ok(());
        };
        let half = self.half(number);
        let other = match how {
            Ended::Committed => Ended::RolledBack,
            Ended::RolledBack => Ended::Committed,
        };
        let ended = match decided.answer {
            EndAnswer::AsAsked => how,
            EndAnswer::Otherwise => other,
            EndAnswer::Abandoned => {
                ensure!(half.committed != Told::Yes, "{number} was committed, now abandoned");
                ensure!(half.rolled_back != Told::Yes, "{number} was rolled back, now abandoned");
                self.coverage.transactions.count("told abandoned");
                return Ok(());
            }
        };
        let asked = match ended {
            Ended::Committed => &mut half.commit_asked,
            Ended::RolledBack => &mut half.rollback_asked,
        };
        *asked |= ended == how;
        ensure!(*asked, "transaction {number} ended as {ended:?}, and nobody asked for that");
        if ended != how {
            self.coverage.transactions.count("told otherwise");
        }
        self.open.push((decided.receipt, Open::Ended { number, how: ended }));
        Ok(())
    }

    /// The end of a transaction was told.
    pub(crate) fn transaction_ended(&mut self, number: u64, how: Ended) {
        let what = match how {
            Ended::Committed if self.model.message(number).is_timed() => "committed with a moment",
            Ended::Committed => "committed",
            Ended::RolledBack => "rolled back",
        };
        self.coverage.transactions.count(what);
        let half = self.half(number);
        match how {
            Ended::Committed => half.committed = Told::Yes,
            Ended::RolledBack => half.rolled_back = Told::Yes,
        }
        if (half.committed, half.rolled_back) == (Told::Yes, Told::Yes) {
            half.violation = Some("it was told committed, and rolled back".to_owned());
        }
    }

    /// A producer was handed a check, whose record is durable.
    pub(crate) fn was_checked(&mut self, number: u64, check: u32) {
        self.coverage.transactions.count("checked");
        let half = self.half(number);
        if check > half.max_checks {
            half.violation = Some(format!("check {check} of at most {}", half.max_checks));
        }
        if check <= half.last_check {
            half.violation = Some(format!("check {check} after check {}", half.last_check));
        }
        half.last_check = check;
    }

    fn ask_for_checks(&mut self) -> Checked {
        let group = producer_group(self.index(PRODUCERS));
        let by_url = self.random.once_in(2);
        let asked = if by_url { Asked::Host(group.clone()) } else { Asked::Group(group.clone()) };
        let max = 1 + self.index(3);
        let now = self.clock.now().wall;
        let taken = match self.engine().checks.take(&asked, max, now) {
            Ok(taken) => taken,
            Err(ChangeError::Look(_) | ChangeError::Append(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        ensure!(taken.checks.len() <= max, "{} checks for {max}", taken.checks.len());
        let gone = self.random.once_in(4);
        for check in taken.checks {
            let store = &self.engine().store;
            let id = check.found.id(store);
            let terms = check.found.message.terms.as_ref().ok_or("a check of no transaction")?;
            ensure!(terms.producer_group == group, "{group} was handed another group's check");
            ensure!(terms.check_url.is_some() == by_url, "{asked:?} was handed {terms:?}");
            // A host that was not reached is tried again after a while; a caller that went away has a
            // next.
            let due = if by_url { self.clock.now().wall.checked_add(500) } else { Some(now) };
            if gone {
                // Too soon to be read, or refused by a busy log: then it has counted.
                let due = due.ok_or("the end of time")?;
                let _ = producer::give_back(store, &check.found, &check.handed, due, now);
                self.coverage.transactions.count(if by_url { "not reached" } else { "given back" });
                continue;
            }
            let known = self.model.messages.iter().find(|message| message.id == id);
            let known = known.ok_or_else(|| format!("a check of {id}, which nobody prepared"))?;
            let half = known.half.as_ref().ok_or("a check of no half message")?;
            ensure!(half.committed != Told::Yes, "{} was committed, and is checked", known.number);
            ensure!(
                half.rolled_back != Told::Yes,
                "{} was rolled back, and is checked",
                known.number
            );
            let open = Open::Checked { number: known.number, check: check.handed.check };
            self.open.push((taken.receipt.clone(), open));
        }
        Ok(())
    }

    fn resume_one(&mut self) -> Checked {
        let Some((number, found)) = self.some_half()? else { return Ok(()) };
        let now = self.clock.now().wall;
        let Ok(decided) = producer::resume(&self.engine().store, &found, now) else {
            return Ok(());
        };
        if decided.answer == Resumed::Open {
            self.coverage.transactions.count("resumed");
            self.half(number).last_check = 0;
        }
        Ok(())
    }

    /// At rest each open half that was told accepted is listed, and once.
    fn list_transactions(&mut self) -> Checked {
        self.settle()?;
        let store = &self.engine().store;
        let (mut listed, mut from) = (BTreeSet::new(), 0);
        loop {
            let page = producer::list_transactions(store, None, |_| true, from, 3);
            let page = page.map_err(|error| error.to_string())?.answer;
            for (found, _) in page.items {
                ensure!(listed.insert(found.id(store)), "a transaction is listed twice");
            }
            match page.next {
                Some(next) => from = next,
                None => break,
            }
        }
        for message in self.model.messages.iter().filter(|message| message.half.is_some()) {
            let there = message.accepted == Told::Yes && message.gone == Told::Nothing;
            ensure!(!there || listed.contains(&message.id), "not listed: {message:?}");
        }
        self.coverage.transactions.count("listed");
        Ok(())
    }

    /// Past all times nothing is open: it was decided, or abandoned. And what was told was true.
    pub(crate) fn audit_transactions(&mut self) -> Checked {
        let store = &self.engine().store;
        for message in &self.model.messages {
            let Some(half) = &message.half else { continue };
            if let Some(violation) = &half.violation {
                return Err(format!("transaction {}: {violation}", message.number));
            }
            if message.accepted != Told::Yes || message.gone != Told::Nothing {
                continue;
            }
            let found = producer::find(store, &message.id).map_err(|error| error.to_string())?;
            let standing = producer::transaction_standing(store, &found);
            let fate = standing.map_err(|error| error.to_string())?.answer.fate;
            ensure!(!matches!(fate, Fate::Open(_)), "still open at the end: {message:?}");
            ensure!(half.committed != Told::Yes || fate == Fate::Committed, "lost: {message:?}");
            let rolled_back = half.rolled_back == Told::Yes;
            ensure!(!rolled_back || fate == Fate::RolledBack, "{fate:?}: {message:?}");
        }
        Ok(())
    }
}

fn shop() -> Asked {
    Asked::Group("shop".to_owned())
}

fn terms(max_checks: u32) -> Terms {
    Terms {
        producer_group: "shop".to_owned(),
        check_after_ms: 6000,
        check_interval_ms: 30_000,
        max_checks,
        abandon_after_ms: 3_600_000,
        check_url: None,
    }
}

impl Bench {
    pub(crate) fn prepare(&self, moment: Moment, body: &str, terms: &Terms) -> PutAnswer {
        let attributes = horolog::message::Attributes::default();
        let message = NewMessage { moment, attributes, body: body.to_owned().into() };
        let topic = TopicName::writable("orders").expect("a good name");
        let (store, nonce, now) = (&self.engine.store, self.engine.nonce(), self.clock.now().wall);
        let decided =
            producer::prepare_transaction(store, PUT, &topic, message, terms, None, nonce, now);
        decided.expect("the log has room").answer.items[0].expect("it is accepted")
    }

    fn found(&self, answer: &PutAnswer) -> Found {
        producer::find(&self.engine.store, &self.id(answer)).expect("it was prepared")
    }

    fn fate(&self, answer: &PutAnswer) -> Fate {
        let standing = producer::transaction_standing(&self.engine.store, &self.found(answer));
        standing.expect("it can be looked up").answer.fate
    }

    /// The numbers of the checks that the group is handed now.
    fn take(&mut self, max: usize) -> Vec<u32> {
        let taken = self.engine.checks.take(&shop(), max, self.clock.now().wall);
        let taken = taken.expect("the log has room");
        self.settle();
        taken.checks.iter().map(|check| check.handed.check).collect()
    }
}

const RACES: usize = 10_000;
const A_ROUND: usize = 100;

/// Commit, rollback, check and abandon, all at the instant when each may be.
#[test]
fn of_all_that_races_for_a_transaction_one_wins_and_the_others_are_told() {
    let mut bench = Bench::new();
    let mut random = Random::new(42);
    let mut fates: BTreeMap<&str, usize> = BTreeMap::new();
    let mut committed = BTreeSet::new();
    for round in 0..RACES / A_ROUND {
        // The first check and the end fall together.
        let terms = Terms { abandon_after_ms: 6000 + round as u64 % 2, ..terms(3) };
        let mut racing: Vec<_> = (0..A_ROUND)
            .map(|index| {
                let body = (round * A_ROUND + index).to_string();
                (bench.prepare(Moment::Now, &body, &terms), body)
            })
            .collect();
        bench.settle();
        bench.clock.advance(6000);
        while let Some((answer, body)) = racing.pop() {
            for _ in 0..random.below(4) {
                let stage = usize::try_from(random.below(bench.stages.len() as u64)).unwrap();
                bench.step(stage);
            }
            if random.once_in(3) {
                let taken = bench.engine.checks.take(&shop(), 1, bench.clock.now().wall);
                assert!(taken.expect("the log has room").checks.len() <= 1);
                // The record of the check decides what comes next: it must be readable.
                bench.step(0);
            }
            let (store, now) = (&bench.engine.store, bench.clock.now().wall);
            let mut told = Vec::new();
            for how in [Ended::Committed, Ended::RolledBack] {
                if random.once_in(2) {
                    let found = producer::find(store, &bench.id(&answer)).expect("it is there");
                    match producer::end(store, &found, how, now) {
                        Ok(decided) => told.push((how, decided.answer)),
                        Err(ChangeError::Look(producer::LookError::NotWritten(_))) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            if let [(_, first), (_, second)] = told[..] {
                let both = (first, second);
                assert!(
                    both == (EndAnswer::AsAsked, EndAnswer::Otherwise)
                        || both == (EndAnswer::Abandoned, EndAnswer::Abandoned),
                    "{told:?}"
                );
            }
            bench.settle();
            match (bench.fate(&answer), told.first()) {
                (Fate::Committed, Some((Ended::Committed, EndAnswer::AsAsked))) => {
                    committed.insert(body);
                    *fates.entry("committed").or_default() += 1;
                }
                (Fate::RolledBack, Some((Ended::RolledBack, EndAnswer::AsAsked))) => {
                    *fates.entry("rolled back").or_default() += 1;
                }
                (Fate::Abandoned { .. }, None | Some((_, EndAnswer::Abandoned))) => {
                    *fates.entry("abandoned").or_default() += 1;
                }
                (Fate::Open(open), None) => {
                    let what = if open.count > 0 { "checked" } else { "open" };
                    *fates.entry(what).or_default() += 1;
                }
                other => panic!("{body}: {other:?}"),
            }
        }
        bench.clock.advance(1);
        bench.settle();
    }
    let read = bench.read("audit");
    let seen: BTreeSet<_> =
        read.iter().map(|r| String::from_utf8(r.body.to_vec()).unwrap()).collect();
    assert_eq!(read.len(), seen.len(), "something was committed twice");
    assert_eq!(seen, committed);
    for fate in ["committed", "rolled back", "abandoned"] {
        let count = fates.get(fate).copied().unwrap_or_default();
        assert!(count > RACES / 50, "only {count} were {fate}: {fates:?}");
    }
}

#[test]
fn checks_come_at_their_times_count_when_handed_out_and_end() {
    let mut bench = Bench::new();
    let half = bench.prepare(Moment::Now, "half", &terms(2));
    bench.settle();
    bench.clock.advance(5999);
    bench.settle();
    assert_eq!(bench.take(10), [0_u32; 0], "not before its time");
    bench.clock.advance(1);
    bench.settle();
    // Nobody asks for a long time: it waits, and has not counted.
    bench.clock.advance(600_000);
    bench.settle();
    assert_eq!(bench.take(10), [1]);
    bench.clock.advance(29_999);
    bench.settle();
    assert_eq!(bench.take(10), [0_u32; 0]);
    bench.clock.advance(1);
    bench.settle();
    assert_eq!(bench.take(10), [2]);
    bench.clock.advance(29_999);
    bench.settle();
    assert!(matches!(bench.fate(&half), Fate::Open(_)));
    bench.clock.advance(1);
    bench.settle();
    assert_eq!(bench.fate(&half), Fate::Abandoned { checks: 2 });
    let now = bench.clock.now().wall;
    let resumed = producer::resume(&bench.engine.store, &bench.found(&half), now);
    assert_eq!(resumed.expect("room").answer, Resumed::Open);
    bench.settle();
    assert_eq!(bench.take(10), [1], "at once, and from zero");
    assert!(bench.read("g").is_empty());
}

#[test]
fn a_check_whose_caller_went_away_has_not_counted() {
    let mut bench = Bench::new();
    let half = bench.prepare(Moment::Now, "half", &terms(1));
    bench.settle();
    bench.clock.advance(6000);
    bench.settle();
    for _ in 0..10 {
        let now = bench.clock.now().wall;
        let taken = bench.engine.checks.take(&shop(), 1, now).expect("room");
        assert_eq!(taken.checks[0].handed.check, 1);
        bench.settle();
        let check = &taken.checks[0];
        producer::give_back(&bench.engine.store, &check.found, &check.handed, now, now)
            .expect("room");
        bench.settle();
    }
    assert_eq!(bench.take(1), [1]);
    bench.clock.advance(30_000);
    bench.settle();
    assert_eq!(bench.fate(&half), Fate::Abandoned { checks: 1 });
}

#[test]
fn what_nobody_asks_for_ends_by_its_time_and_is_found_again_by_every_start() {
    let disk = SimDisk::new(1);
    let clock = Bench::new().clock;
    let mut bench = Bench::open(&disk, std::sync::Arc::clone(&clock));
    let half = bench.prepare(Moment::Now, "half", &terms(1));
    bench.settle();
    clock.advance(6000);
    bench.settle();
    assert_eq!(bench.engine.checks.parked(), 1);
    for derived in [&[][..], &crate::operations::DERIVED[..]] {
        bench.engine.rest(clock.now()).expect("a checkpoint");
        drop(bench);
        disk.kill();
        derived.iter().for_each(|path| disk.remove_tree(path));
        bench = Bench::open(&disk, std::sync::Arc::clone(&clock));
        bench.settle();
        clock.advance(60_000);
        bench.settle();
        assert_eq!(bench.engine.checks.parked(), 1);
    }
    clock.advance(3_600_000);
    bench.settle();
    assert_eq!(bench.fate(&half), Fate::Abandoned { checks: 0 });
    assert_eq!(bench.engine.checks.parked(), 0);
}

/// A list or a timeline of what is pending knows nothing of checks.
#[test]
fn checks_in_the_wheel_are_not_pending() {
    let mut bench = Bench::new();
    let half = bench.prepare(Moment::After(20_000), "half", &terms(1));
    bench.settle();
    assert_eq!(bench.engine.store.pending(), 0);
    let now = bench.clock.now().wall;
    let ended = producer::end(&bench.engine.store, &bench.found(&half), Ended::Committed, now);
    assert_eq!(ended.expect("room").answer, EndAnswer::AsAsked);
    bench.settle();
    assert_eq!(bench.engine.store.pending(), 1);
    bench.clock.advance(20_000);
    bench.settle();
    assert_eq!(bench.engine.store.pending(), 0);
    let read = bench.read("g");
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].fired_at.map(|at| at.since(now)), Some(20_000));
}

/// Found by seed 368. After a downtime a note that was due in two seconds stood in the last near slot of long
/// ago and was waited for there: the read time stood with it, and what was overdue and still far fired only
/// then.
#[test]
fn a_check_that_is_soon_due_holds_up_nothing_that_is_overdue() {
    let wheel = timerlog::Config {
        near_slots: 256,
        far_slots: 4096,
        segment_size: 12_288,
        ..timerlog::Config::default()
    };
    let mut bench = Bench::with_wheel(wheel);
    bench.put(Moment::After(1_999_000), "overdue");
    let later = Terms { check_after_ms: 2_000_500, ..terms(1) };
    bench.prepare(Moment::Now, "half", &later);
    bench.settle();
    bench.clock.advance(1_999_000);
    bench.settle();
    assert_eq!(bench.read("g").len(), 1);
    assert_eq!(bench.take(1), [0_u32; 0]);
    bench.clock.advance(1500);
    bench.settle();
    assert_eq!(bench.take(1), [1]);
}

/// What the disk is read for two checks of each of ten transactions, while `open` others wait for theirs.
fn reads_of_checks(open: usize) -> u64 {
    let disk = SimDisk::new(1);
    let mut bench = Bench::open(&disk, Bench::new().clock);
    let later = Terms { check_after_ms: 1_000_000, ..terms(1) };
    for index in 0..open {
        bench.prepare(Moment::Now, "waits", &later);
        if index % 1000 == 999 {
            bench.settle();
        }
    }
    for _ in 0..10 {
        bench.prepare(Moment::Now, "checked", &terms(3));
    }
    bench.settle();
    let before = disk.counters().reads;
    for (after_ms, check) in [(6000, 1), (30_000, 2)] {
        bench.clock.advance(after_ms);
        bench.settle();
        assert_eq!(bench.take(100), [check; 10]);
    }
    disk.counters().reads - before
}

#[test]
fn what_is_read_for_a_check_does_not_grow_with_what_is_open() {
    let (few, many) = (reads_of_checks(100), reads_of_checks(100_000));
    // Four a check at the most, and what the stages read for themselves.
    assert!(few <= 100, "{few} reads for 20 checks");
    assert!(many <= few + 5, "{few} reads for 20 checks, {many} among 100,000 that are open");
}
