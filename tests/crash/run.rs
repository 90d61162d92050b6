//! A run: lives of the server under one load, ended one way or another, and the audit after the last.

use std::net::SocketAddr;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use horolog::client::Client;
use horolog::clock::{Clock, SystemClock};
use timerlog::disk::sim::Random;

use crate::audit::{Audit, Kills, Report};
use crate::consumer::{self, GROUPS, ORDERED};
use crate::ledger::{Ledger, Outcome};
use crate::load::{self, Load, Running, TOPICS};
use crate::scratch::{self, Scratch};
use crate::server::{Killed, Server};
use crate::wire::{self, Wanted};

/// Cancelled before an audit: what would keep it waiting for longer than this.
const HORIZON_MS: u64 = 6000;
/// How long the auditor waits for what is due, when nothing comes, before it calls it lost.
const PATIENCE_MS: u64 = 30_000;

/// When lives end after the load has begun, in milliseconds: most of them soon, ...
pub(crate) const SOON: Range<u64> = 5..800;
/// ... and some about when they write their first checkpoint, a second after their start.
pub(crate) const AT_CHECKPOINT: Range<u64> = 850..1250;

#[derive(Debug)]
pub(crate) struct Run {
    pub scratch: Scratch,
    pub ledger: Arc<Ledger>,
    pub load: Load,
    settings: &'static [&'static str],
    random: Random,
    clock: SystemClock,
    /// How long the last start took.
    start_took: Duration,
    kills: Kills,
}

/// A server that takes requests.
#[derive(Debug)]
pub(crate) struct Life {
    pub server: Server,
    pub address: SocketAddr,
}

/// Why an audit gave up: what is missing, what waits by the ledger, and what the server counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsettled {
    pub at: u64,
    pub missing: usize,
    pub waiting: RangeInclusive<u64>,
    pub pending: u64,
}

/// What an audit does with messages whose moment is far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Far {
    Cancel,
    Leave,
}

impl Run {
    /// `longest_wait` bounds the long polls of the load, in milliseconds; `settings` are more arguments
    /// of the server's.
    pub(crate) fn new(longest_wait: u64, settings: &'static [&'static str]) -> Self {
        let clock = SystemClock::new();
        let seed = number("HOROLOG_CRASH_SEED").unwrap_or(clock.now().wall.as_millis());
        let mut random = Random::new(seed);
        let ledger = Arc::new(Ledger::new());
        let load = Load::new(&ledger, &mut random, longest_wait);
        Self {
            scratch: Scratch::new(seed),
            settings,
            ledger,
            load,
            random,
            clock,
            start_took: Duration::ZERO,
            kills: Kills::default(),
        }
    }

    pub(crate) async fn start(&mut self) -> Life {
        let began = self.clock.now().monotonic;
        let mut server = Server::spawn(&self.scratch, self.settings);
        let Some(address) = server.ready().await else {
            panic!("the server does not start: {}", self.scratch.logged())
        };
        self.start_took = self.clock.now().monotonic - began;
        consumer::set_groups(&mut Client::new(address)).await;
        Life { server, address }
    }

    /// A life under load that ends by `kill -9` at a random moment, in milliseconds.
    pub(crate) async fn live_and_be_killed(&mut self, moments: Range<u64>) {
        let Life { server, address } = self.start().await;
        self.kills.rounds += 1;
        let mut running = self.load.start(address);
        let moment = self.moment(moments);
        self.keep_up(&mut running, moment).await;
        assert_eq!(server.kill(), Killed::Running, "{}", self.scratch.logged());
        self.kills.all += 1;
        self.load.stop(running).await;
    }

    /// A life under load that is told to stop, and killed before it has, mostly.
    pub(crate) async fn live_and_be_killed_while_stopping(&mut self) {
        let Life { mut server, address } = self.start().await;
        self.kills.rounds += 1;
        let mut running = self.load.start(address);
        let moment = self.moment(SOON);
        self.keep_up(&mut running, moment).await;
        server.terminate();
        let moment = self.moment(0..60);
        if tokio::time::timeout(moment, server.ended()).await.is_err()
            && server.kill() == Killed::Running
        {
            self.kills.all += 1;
            self.kills.in_stop += 1;
        }
        self.load.stop(running).await;
    }

    /// Starts that are killed before they are done, most of them: up to three in a row.
    pub(crate) async fn be_killed_in_recovery(&mut self) {
        for _ in 0..=self.random.below(3) {
            let mut server = Server::spawn(&self.scratch, self.settings);
            let longest = u64::try_from(self.start_took.as_millis()).unwrap_or(u64::MAX);
            let moment = self.moment(0..longest.max(1));
            let ready = tokio::time::timeout(moment, server.ready()).await;
            assert_eq!(server.kill(), Killed::Running, "{}", self.scratch.logged());
            self.kills.all += 1;
            self.kills.in_recovery += usize::from(ready.is_err());
        }
    }

    /// Waits for a random while, in milliseconds.
    pub(crate) async fn pass(&mut self, range: Range<u64>) {
        let moment = self.moment(range);
        // Nothing ends it but its end.
        let _ = tokio::time::timeout(moment, std::future::pending::<()>()).await;
    }

    pub(crate) fn moment(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.random.below(range.end - range.start))
    }

    /// Lets the load run for a while, in which none of it may stop.
    pub(crate) async fn keep_up(&mut self, running: &mut Running, duration: Duration) {
        let stopped = tokio::time::timeout(duration, running.first_stop(&mut self.load)).await;
        if stopped.is_ok() {
            let last = self
                .ledger
                .read(|entries| format!("{:#?}", &entries[entries.len().saturating_sub(8)..]));
            panic!("a worker stopped by itself: {last}, {}", self.scratch.logged());
        }
    }

    /// Reads every topic to the end as `auditor`, once everything that is due has been fired, and
    /// holds the ledger against what was promised.
    pub(crate) async fn audit(&mut self, life: &Life, auditor: &str, far: Far) -> Report {
        let mut client = Client::new(life.address);
        let horizon = self.ledger.now() + HORIZON_MS;
        if far == Far::Cancel {
            self.cancel_the_far(&mut client, auditor, horizon).await;
        }
        let read = self.read_all(&mut client, auditor, horizon).await;
        for group in GROUPS {
            self.drain(&mut client, auditor, group).await;
        }
        let at = match &read {
            Ok(at) => *at,
            Err(unsettled) => unsettled.at,
        };
        let mut report = self.ledger.read(|entries| Audit::of(entries, auditor).report(at));
        if report.violations.is_empty() {
            // Nobody is missing; then what the server counts is what must be.
            assert_eq!(read, Ok(at));
            self.check_states(&mut client, auditor).await;
        }
        report.kills = self.kills;
        report.segments = self.segments().len();
        report
    }

    async fn cancel_the_far(&self, client: &mut Client, auditor: &str, horizon: u64) {
        let far = self.ledger.read(|entries| Audit::of(entries, auditor).to_cancel(horizon));
        for (number, id) in far {
            load::cancel(&self.ledger, client, number, &id).await;
        }
    }

    /// Reads until all that is due up to `horizon` was, nothing of it is missing, nothing more comes,
    /// and the server counts as pending what must be; when that was.
    async fn read_all(
        &self,
        client: &mut Client,
        auditor: &str,
        horizon: u64,
    ) -> Result<u64, Unsettled> {
        let mut progress = self.ledger.now();
        loop {
            let mut count = 0;
            for topic in TOPICS {
                count += self.read_some(client, auditor, topic).await;
            }
            let now = self.ledger.now();
            if count > 0 {
                progress = now;
                continue;
            }
            let pending = wire::pending(client).await;
            let now = self.ledger.now().max(now);
            let horizon = horizon.max(now);
            let (missing, waiting, later) = self.ledger.read(|entries| {
                let audit = Audit::of(entries, auditor);
                (audit.missing(horizon), audit.waiting(now), audit.waiting(horizon))
            });
            if missing == 0 && waiting == later && waiting.contains(&pending) {
                return Ok(now);
            }
            if now - progress > PATIENCE_MS {
                return Err(Unsettled { at: now, missing, waiting, pending });
            }
        }
    }

    /// Lets the group acknowledge whatever it has to read: no message that is due may be lost for it, given
    /// back, dead, or stuck behind another.
    async fn drain(&self, client: &mut Client, auditor: &str, group: &str) {
        let mut progress = self.ledger.now();
        loop {
            if group != ORDERED {
                consumer::redrive(&self.ledger, client, group).await;
            }
            let mut count = 0;
            for topic in TOPICS {
                let wanted = Wanted { topic, max: 256, wait: 20, invisible_for: 60_000 };
                match consumer::receive(&self.ledger, client, group, wanted).await {
                    Outcome::Ok(held) if !held.is_empty() => {
                        count += held.len();
                        consumer::ack(&self.ledger, client, group, held).await;
                    }
                    Outcome::Refused(why) if why != "TOPIC_NOT_FOUND" => {
                        panic!("{group} was refused: {why}, {}", self.scratch.logged())
                    }
                    Outcome::Unknown => panic!("{group} was not answered"),
                    _ => {}
                }
            }
            let now = self.ledger.now();
            if count > 0 {
                progress = now;
                continue;
            }
            let left =
                self.ledger.read(|entries| Audit::of(entries, auditor).unacknowledged(group, now));
            let behind = wire::behind(client, group).await;
            if left == 0 && behind == (0, 0) {
                return;
            }
            assert!(
                now - progress <= PATIENCE_MS,
                "{group} has {left} messages left that do not come; lag and dead letters: {behind:?}"
            );
        }
    }

    async fn read_some(&self, client: &mut Client, auditor: &str, topic: &str) -> usize {
        let wanted = Wanted { topic, max: 256, wait: 100, invisible_for: 3_600_000 };
        match consumer::receive(&self.ledger, client, auditor, wanted).await {
            Outcome::Ok(held) => held.len(),
            Outcome::Refused(why) if why == "TOPIC_NOT_FOUND" => 0,
            outcome => panic!("the auditor was answered {outcome:?}: {}", self.scratch.logged()),
        }
    }

    /// Asked about each message, the server says what the auditor saw.
    async fn check_states(&self, client: &mut Client, auditor: &str) {
        let now = self.ledger.now();
        // What is due while this runs may be in either state.
        let certain = now + HORIZON_MS;
        let states = self.ledger.read(|entries| Audit::of(entries, auditor).states(certain));
        for (id, expected) in states {
            assert_eq!(wire::state(client, &id).await, expected, "{id}");
        }
    }

    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        scratch::entries(&self.scratch.data().join("commitlog"))
    }
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}
