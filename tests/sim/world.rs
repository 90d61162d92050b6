//! The world that a seed makes: disk, clock, engine, and the callers' open questions.
//!
//! # The fault model
//!
//! What a single file and directory can suffer stands in [`timerlog::disk::sim`]: unflushed writes lost, pages torn and
//! written back in any order, syncs and creates that fail, a full disk, rot. The world adds what happens to the whole.
//! Every fault is counted, and a run of the bounded set in which one never happens fails ([`Coverage`]).
//!
//! - **Crash at any step**: the power goes, or the process is killed, between two operations, within one (a cut is
//!   counted down to any change of the disk) or while a start recovers. Every start may fall again.
//! - **Slow stages**: a step is one stage's; which comes next is drawn. So a flush, a dispatch or the wheel may be left
//!   behind for as long as the seed likes, while callers go on, and a caller whose answer waits for a flush that never
//!   comes before a crash was promised nothing.
//! - **Failed flush**: poisons the store, the process ends, and the next life begins from what the disk has.
//! - **Failed allocate, full disk**: creates fail one at a time, or all of them until room comes back.
//! - **Derived files gone**: each kind, some or all, before a start. Damaged and older ones: `damage`.
//! - **Rot in the log**: `poison`.
//! - **Clock steps**: the wall clock is set forward or back by a second to an hour at any moment; the monotonic clock
//!   goes on. By a second, an hour and ten days at each step of each stage, with and without a restart: `clock_steps`.
//! - **Downtime**: thirty days in `clock_steps`; lives of days on end in `years`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::commitlog::{Durability, FlushMode, Receipt};
use horolog::config::{DiskReserve, LeaseBounds, QueuedAppends};
use horolog::engine::{Engine, Settings};
use horolog::message::offset::Offset;
use horolog::message::{GroupName, LevelTable, TopicName};
use horolog::retention::RetentionObserver;
use horolog::stage::{Progress, Stage};
use horolog::store::Expired;
use horolog::store::flush::FlushObserver;
use horolog::{index, store, timer};
use timerlog::disk::sim::{Random, SimDisk};

use crate::changes::Asked;
use crate::model::{Checked, Model, Told, ensure};
use crate::ops_groups::GroupCoverage;
use crate::transactions::TransactionCoverage;

pub(crate) const TOPICS: usize = 3;
pub(crate) const GROUPS: usize = 2;
/// The wheel of the simulation turns in 256 seconds, so that every bound is met often: far slots
/// of 64 s, 3 days of them.
pub(crate) const WHEEL: timerlog::Config = timerlog::Config {
    precision_ms: 1000,
    near_slots: 256,
    far_slots: 4096,
    segment_size: 12_288,
    cancels_max: 4,
};
/// Each memtable, run and merge is met within some dozen puts.
const INDEX: index::Limits = index::Limits {
    memtable_entries: 6,
    frozen_tables: 2,
    runs: 8,
    tier_0_entries: 8,
    merge_step_entries: 5,
};
/// Tables of delay levels that have some delays in common.
const LEVELS: [&[u64]; 3] =
    [&[1000, 5000, 30_000, 600_000], &[5000, 1000, 1000, 7], &[30_000, 61_000, 600_000]];
/// Of the disk: two files of the log, and as much again as ballast.
pub(crate) const RESERVE_BYTES: u64 = 256 * 1024;
const RESERVE: DiskReserve = DiskReserve::Bytes(RESERVE_BYTES);
const START: u64 = 1_790_000_000_000;

/// What happened in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    pub puts: u64,
    pub leveled: u64,
    pub leveled_in_order: u64,
    pub fired: u64,
    pub cancelled: u64,
    pub told_delivered: u64,
    pub acked: u64,
    pub leases_expired: u64,
    pub crashes: u64,
    pub kills: u64,
    pub rests: u64,
    pub checkpoints: u64,
    pub rebuilds: u64,
    pub failed_syncs: u64,
    pub steps_forward: u64,
    pub steps_back: u64,
    pub unknown: u64,
    pub refiled: u64,
    pub moved: u64,
    pub fire_asked: u64,
    pub replaced: u64,
    pub batches: u64,
    pub replayed: u64,
    pub searched: u64,
    pub topics_deleted: u64,
    pub listed: u64,
    pub counted_exactly: u64,
    pub listed_amid_others: u64,
    pub cancelled_in_bulk: u64,
    pub refused_for_room: u64,
    pub room_came_back: u64,
    pub groups: GroupCoverage,
    pub transactions: TransactionCoverage,
}

impl Coverage {
    fn fields(&self) -> [(&'static str, u64); 31] {
        [
            ("puts", self.puts),
            ("put with a level", self.leveled),
            ("in the order of their level", self.leveled_in_order),
            ("fired", self.fired),
            ("cancelled", self.cancelled),
            ("told delivered", self.told_delivered),
            ("acked", self.acked),
            ("leases expired", self.leases_expired),
            ("crashes", self.crashes),
            ("kills", self.kills),
            ("rests", self.rests),
            ("checkpoints", self.checkpoints),
            ("rebuilds", self.rebuilds),
            ("failed syncs", self.failed_syncs),
            ("steps forward", self.steps_forward),
            ("steps back", self.steps_back),
            ("unknown", self.unknown),
            ("refiled", self.refiled),
            ("moved", self.moved),
            ("fire asked", self.fire_asked),
            ("replaced", self.replaced),
            ("batches", self.batches),
            ("replayed", self.replayed),
            ("searched", self.searched),
            ("topics deleted", self.topics_deleted),
            ("listed", self.listed),
            ("counted exactly", self.counted_exactly),
            ("listed amid others", self.listed_amid_others),
            ("cancelled in bulk", self.cancelled_in_bulk),
            ("refused for want of room", self.refused_for_room),
            ("room came back", self.room_came_back),
        ]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.puts += other.puts;
        self.leveled += other.leveled;
        self.leveled_in_order += other.leveled_in_order;
        self.fired += other.fired;
        self.cancelled += other.cancelled;
        self.told_delivered += other.told_delivered;
        self.acked += other.acked;
        self.leases_expired += other.leases_expired;
        self.crashes += other.crashes;
        self.kills += other.kills;
        self.rests += other.rests;
        self.checkpoints += other.checkpoints;
        self.rebuilds += other.rebuilds;
        self.failed_syncs += other.failed_syncs;
        self.steps_forward += other.steps_forward;
        self.steps_back += other.steps_back;
        self.unknown += other.unknown;
        self.refiled += other.refiled;
        self.moved += other.moved;
        self.fire_asked += other.fire_asked;
        self.replaced += other.replaced;
        self.batches += other.batches;
        self.replayed += other.replayed;
        self.searched += other.searched;
        self.topics_deleted += other.topics_deleted;
        self.listed += other.listed;
        self.counted_exactly += other.counted_exactly;
        self.listed_amid_others += other.listed_amid_others;
        self.cancelled_in_bulk += other.cancelled_in_bulk;
        self.refused_for_room += other.refused_for_room;
        self.room_came_back += other.room_came_back;
        self.groups.add(&other.groups);
        self.transactions.add(&other.transactions);
    }

    pub(crate) fn check(&self) {
        for (what, count) in self.fields() {
            assert!(count > 0, "in none of these runs: {what}");
        }
        self.groups.check();
        self.transactions.check();
    }

    /// For hundreds of seeds.
    pub(crate) fn check_rare(&self) {
        self.transactions.check_rare();
    }
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub coverage: Coverage,
    pub fingerprint: u64,
}

/// A question whose answer waits for the disk.
#[derive(Debug)]
pub(crate) enum Open {
    Put {
        number: u64,
    },
    /// The message was given the moment with this index.
    Moved {
        number: u64,
        index: usize,
    },
    Cancelled {
        number: u64,
    },
    /// The topic with this id is deleted.
    TopicDeleted {
        id: u32,
    },
    ToldDelivered {
        number: u64,
    },
    /// The transaction of the message ended so.
    Ended {
        number: u64,
        how: horolog::producer::Ended,
    },
    /// A producer was handed this check.
    Checked {
        number: u64,
        check: u32,
    },
    Acked {
        group: usize,
        number: u64,
    },
    /// The message comes again at this moment, with a higher attempt than this one.
    Nacked {
        group: usize,
        number: u64,
        attempt: u32,
        comes_at: u64,
    },
    /// An ack that a reset has overtaken: it holds, and means nothing.
    AckedBeforeReset,
    /// How a group reads a topic was decided.
    Read {
        group: usize,
        topic: usize,
        number: u64,
    },
    Reset {
        group: usize,
        topic: usize,
        number: u64,
    },
    Set {
        group: usize,
        number: u64,
    },
}

/// A receipt handle that a consumer holds.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub group: usize,
    pub topic: usize,
    pub number: u64,
    pub attempt: u32,
    pub handle: String,
}

#[derive(Debug, Default)]
pub(crate) struct Fired {
    count: AtomicU64,
    steps_forward: AtomicU64,
    steps_back: AtomicU64,
}

impl timer::Observer for Fired {
    fn fired(&self, count: u64, _late_ms: u64) {
        self.count.fetch_add(count, Ordering::Relaxed);
    }

    fn clock_stepped(&self, step: timer::ClockStep) {
        match step {
            timer::ClockStep::Forward { .. } => &self.steps_forward,
            timer::ClockStep::Back { .. } => &self.steps_back,
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}

struct NoFlushes;

impl FlushObserver for NoFlushes {
    fn flushed(&self, _records: u64, _bytes: u64, _took: Duration) {}
}

struct Retained;

impl RetentionObserver for Retained {
    fn let_go(&self, _begin: Offset) {}
    fn expired(&self, _expired: &Expired) {}
    fn carried(&self, _count: u64) {}
}

pub(crate) struct World {
    seed: u64,
    pub random: Random,
    /// The operations that are run; `None`: all.
    pub(crate) only: Option<BTreeSet<usize>>,
    pub disk: SimDisk,
    pub clock: Arc<ManualClock>,
    pub engine: Option<Engine>,
    pub stages: Vec<Box<dyn Stage>>,
    pub model: Model,
    pub open: Vec<(Receipt, Open)>,
    pub held: Vec<Held>,
    pub requests: Vec<Asked>,
    /// Handles from before a reset, and the fences of the resets of this life.
    pub void: Vec<Held>,
    pub void_by: BTreeMap<(usize, usize), Vec<u64>>,
    pub coverage: Coverage,
    observer: Arc<Fired>,
    pub(crate) mode: FlushMode,
    faults: u64,
    levels: usize,
    /// The latest that the wall clock has shown.
    pub(crate) highest_wall: u64,
    /// The disk and the process fail only as a test says: no operation is to do it.
    pub(crate) scripted: bool,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mode = match random.once_in(4) {
            // In async mode an answer promises less: only the end of the process is survived.
            true => FlushMode::Async { interval_ms: 200 },
            false => FlushMode::Sync,
        };
        Self {
            seed,
            disk: SimDisk::new(random.next()),
            random,
            only: None,
            clock: Arc::new(ManualClock::new(Timestamp::from_millis(START))),
            engine: None,
            stages: Vec::new(),
            model: Model::default(),
            open: Vec::new(),
            held: Vec::new(),
            requests: Vec::new(),
            void: Vec::new(),
            void_by: BTreeMap::new(),
            coverage: Coverage::default(),
            observer: Arc::default(),
            mode,
            faults: 0,
            levels: 0,
            highest_wall: START,
            scripted: false,
        }
    }

    pub(crate) fn run(mut self, operations: usize) -> Result<Ended, String> {
        self.start()?;
        for index in 0..operations {
            if self.only.as_ref().is_none_or(|only| only.contains(&index)) {
                self.draw_for(index as u64);
                self.operation().map_err(|violation| format!("operation {index}: {violation}"))?;
                self.hear_answers();
            }
        }
        self.draw_for(operations as u64);
        self.audit()?;
        self.coverage.fired = self.observer.count.load(Ordering::Relaxed);
        self.coverage.steps_forward = self.observer.steps_forward.load(Ordering::Relaxed);
        self.coverage.steps_back = self.observer.steps_back.load(Ordering::Relaxed);
        Ok(Ended { coverage: self.coverage, fingerprint: self.disk.fingerprint() })
    }

    /// What an operation draws does not hang on what those before it have drawn.
    fn draw_for(&mut self, operation: u64) {
        let mut of_seed = Random::new(self.seed);
        self.random = Random::new(of_seed.next() ^ Random::new(operation).next());
    }

    /// As [`World::run`], up to the first life's end or that of the operations; without the audit.
    pub(crate) fn run_script(&mut self, operations: usize) -> Checked {
        self.start()?;
        for index in 0..operations {
            if self.lives() > 0 {
                break;
            }
            match self.operation() {
                // The power went in the midst of it: what it has not been told, nobody has.
                Err(_) if self.disk.is_cut() => self.fall()?,
                done => done.map_err(|violation| format!("operation {index}: {violation}"))?,
            }
            self.hear_answers();
        }
        Ok(())
    }

    pub(crate) fn wall(&self) -> u64 {
        self.clock.now().wall.as_millis()
    }

    pub(crate) fn topic(&self, index: usize) -> TopicName {
        TopicName::writable(&format!("topic-{index}")).expect("a good name")
    }

    pub(crate) fn group(&self, index: usize) -> GroupName {
        GroupName::writable(&format!("group-{index}")).expect("a good name")
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("the engine runs between operations")
    }

    /// Starts the engine on what the disk has; again, if the disk fails meanwhile.
    pub(crate) fn start(&mut self) -> Checked {
        for _ in 0..10 {
            match self.try_start() {
                Err(_) if self.disk_failed() => {
                    self.end_of_life();
                }
                Ok(()) => return self.groups_started(),
                // It starts when there is room, and nothing is lost by then.
                Err(refused) if refused.contains("no storage space") => {
                    self.disk.set_capacity(None);
                    self.end_of_life();
                }
                failed => return failed,
            }
        }
        Err("ten starts failed".to_owned())
    }

    /// Whether a planned fault has struck since it was last asked.
    fn disk_failed(&mut self) -> bool {
        let faults = self.disk.counters().faults;
        std::mem::replace(&mut self.faults, faults) != faults || self.disk.is_cut()
    }

    fn try_start(&mut self) -> Checked {
        let settings = Settings {
            store: store::Settings {
                flush: self.mode,
                segment_size: 64 * 1024,
                index: INDEX,
                retention_ms: 72 * 3_600_000,
                queued_appends: QueuedAppends::default(),
                key: [7; 32],
                holder: "the simulation".to_owned(),
                derived: store::Derived::default(),
                progress: store::Progress::default(),
            },
            timer: timer::Settings {
                wheel: WHEEL,
                lookahead_ms: 2000,
                clock_jump_ms: 3_600_000,
                clock_hold_ms: 60_000,
                snapshot_after_bytes: 4800,
            },
            levels: self.some_levels(),
            leases: LeaseBounds::default(),
            disk_reserve: RESERVE,
            checkpoint_interval: Duration::from_secs(20),
            seed: self.random.next(),
        };
        let now = self.clock.now();
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let timers = Arc::clone(&self.observer) as Arc<dyn timer::Observer>;
        let root = self.disk.root();
        let opened = Engine::open(
            &root,
            &settings,
            clock,
            Box::new(NoFlushes),
            timers,
            Box::new(Retained),
            now,
        )
        .map_err(|error| format!("the start failed: {error}"))?;
        ensure!(opened.damage.is_empty(), "damage without rot: {:?}", opened.damage);
        if opened.rebuilt.is_some() {
            self.coverage.rebuilds += 1;
        }
        self.engine = Some(opened.engine);
        self.stages = opened.stages.0;
        self.see_which_topics_are_there();
        Ok(())
    }

    /// The table of delay levels, which changes with some starts.
    fn some_levels(&mut self) -> LevelTable {
        if self.random.once_in(4) {
            self.levels = self.index(LEVELS.len());
        }
        LevelTable::new(LEVELS[self.levels].to_vec()).expect("a good table")
    }

    /// The process is gone: what was not answered never will be.
    pub(crate) fn stop(&mut self) {
        self.hear_answers();
        for (_, open) in std::mem::take(&mut self.open) {
            self.coverage.unknown += 1;
            match open {
                Open::Put { number } => self.model.message(number).accepted = Told::Unknown,
                // What a topic had is gone or not: the next start shows it.
                Open::Moved { .. } | Open::TopicDeleted { .. } => {}
                Open::Cancelled { number } => self.unknown_cancel(number),
                // What has become of a decision is seen after the start.
                Open::ToldDelivered { .. }
                | Open::Ended { .. }
                | Open::Checked { .. }
                | Open::AckedBeforeReset
                | Open::Nacked { .. }
                | Open::Read { .. }
                | Open::Reset { .. }
                | Open::Set { .. } => {}
                Open::Acked { group, number } => {
                    self.model.ack_unknown.insert((group, number));
                }
            }
        }
        self.stages.clear();
        self.model.returned.out.clear();
        self.engine = None;
    }

    fn unknown_cancel(&mut self, number: u64) {
        let message = self.model.message(number);
        if message.cancelled == Told::Nothing {
            message.cancelled = Told::Unknown;
        }
    }

    /// In async mode a power cut may take back what was answered: then nothing was promised.
    pub(crate) fn forget_promises_of_async(&mut self) {
        if self.mode == FlushMode::Sync {
            return;
        }
        for message in &mut self.model.messages {
            if message.accepted == Told::Yes {
                message.accepted = Told::Unknown;
            }
            if message.cancelled == Told::Yes {
                message.cancelled = Told::Unknown;
            }
            if message.gone == Told::Yes {
                message.gone = Told::Unknown;
            }
            message.moments.iter_mut().for_each(|moment| moment.told = Told::Unknown);
            message.told_delivered = false;
            if let Some(half) = &mut message.half {
                half.forget();
            }
        }
        self.model.forget_progress();
        self.requests.clear();
        self.void.clear();
        self.void_by.clear();
    }

    /// After a start it is known whether a topic is there.
    fn see_which_topics_are_there(&mut self) {
        let store = Arc::clone(&self.engine().store);
        for message in &mut self.model.messages {
            if message.gone == Told::Unknown {
                let there = store.topic_by_id(message.topic_id).is_some();
                message.gone = if there { Told::Nothing } else { Told::Yes };
            }
        }
    }

    pub(crate) fn hear_answers(&mut self) {
        let mut left = Vec::new();
        for (receipt, open) in std::mem::take(&mut self.open) {
            match (receipt.outcome(), open) {
                (Some(Durability::Durable), Open::Put { number }) => {
                    self.model.message(number).accepted = Told::Yes;
                }
                (Some(Durability::Durable), Open::Moved { number, index }) => {
                    self.coverage.moved += 1;
                    self.model.message(number).moments[index].told = Told::Yes;
                }
                (Some(Durability::Durable), Open::TopicDeleted { id }) => {
                    self.coverage.topics_deleted += 1;
                    let of_it = self.model.messages.iter_mut();
                    // Those that were put after it are of another topic.
                    of_it.filter(|m| m.topic_id == id && m.gone != Told::Nothing).for_each(|m| {
                        m.gone = Told::Yes;
                    });
                }
                (Some(Durability::Durable), Open::Cancelled { number }) => {
                    self.coverage.cancelled += 1;
                    self.model.message(number).cancelled = Told::Yes;
                }
                (Some(Durability::Durable), Open::ToldDelivered { number }) => {
                    self.coverage.told_delivered += 1;
                    self.model.message(number).told_delivered = true;
                }
                (Some(Durability::Durable), Open::Acked { group, number }) => {
                    self.coverage.acked += 1;
                    // Of one that was acked before async mode forgot, nobody knows where it stands, nor
                    // whether a reset brings it back.
                    match self.model.message(number).place {
                        Some(_) => self.model.acked.insert((group, number)),
                        None => self.model.ack_unknown.insert((group, number)),
                    };
                }
                (Some(Durability::Durable), Open::AckedBeforeReset) => {}
                (Some(Durability::Durable), Open::Nacked { group, number, attempt, comes_at }) => {
                    self.model.returned.told(group, number, attempt, comes_at);
                    self.coverage.groups.count("nacks told");
                }
                (Some(Durability::Durable), Open::Read { group, topic, number }) => {
                    self.model.reads.told((group, topic), number);
                }
                (Some(Durability::Durable), Open::Ended { number, how }) => {
                    self.transaction_ended(number, how);
                }
                (Some(Durability::Durable), Open::Checked { number, check }) => {
                    self.was_checked(number, check);
                }
                (Some(Durability::Durable), Open::Reset { group, topic, number }) => {
                    self.coverage.groups.count("resets told");
                    self.model.reads.told((group, topic), number);
                }
                (Some(Durability::Durable), Open::Set { group, number }) => {
                    self.model.reads.set_is_told(group, number);
                }
                (_, open) => left.push((receipt, open)),
            }
        }
        self.open = left;
    }

    /// Steps one stage. `false` when it had nothing to do. A stage that fails ends the process.
    pub(crate) fn step(&mut self, index: usize) -> Result<bool, String> {
        let now = self.clock.now();
        self.highest_wall = self.highest_wall.max(now.wall.as_millis());
        match self.stages[index].step(now) {
            Ok(Progress::Worked) => Ok(true),
            Ok(Progress::Idle | Progress::IdleUntil(_)) => Ok(false),
            Err(error) => {
                ensure!(self.disk_failed(), "a stage failed of itself: {error}");
                self.fall()?;
                Ok(true)
            }
        }
    }

    /// Steps all stages until none has anything to do.
    pub(crate) fn settle(&mut self) -> Checked {
        for _ in 0..100_000 {
            let mut worked = false;
            for index in 0..self.stages.len() {
                worked |= self.step(index)?;
            }
            if !worked {
                self.hear_answers();
                return Ok(());
            }
        }
        Err("the stages do not come to rest".to_owned())
    }

    /// The process dies of a failed disk. The page cache may show what the disk lacks, or the power
    /// goes too.
    pub(crate) fn fall(&mut self) -> Checked {
        self.stop();
        self.end_of_life();
        self.start()
    }

    fn end_of_life(&mut self) {
        if self.random.once_in(2) {
            self.disk.kill();
            self.coverage.kills += 1;
        } else {
            self.disk.crash(&mut self.random);
            self.forget_promises_of_async();
            self.coverage.crashes += 1;
        }
    }

    /// Reads everything from the start as a group of its own, and holds it against the model.
    pub(crate) fn audit(&mut self) -> Checked {
        self.settle()?;
        self.check_counts()?;
        self.stop();
        self.disk.kill();
        self.start()?;
        // Past every deadline (two days, at most), in steps that are no jump, until nothing waits.
        for step in 1..=200 {
            self.clock.advance(3_000_000);
            self.highest_wall = self.highest_wall.max(self.wall());
            self.settle()?;
            if step >= 60 && self.engine().store.pending() == 0 {
                break;
            }
        }
        ensure!(self.engine().store.pending() == 0, "{} still wait", self.engine().store.pending());
        self.audit_transactions()?;
        let seen = self.read_all(GROUPS)?;
        self.model.check_all_seen(&seen)?;
        self.check_level_order()?;
        for group in 0..GROUPS {
            self.audit_group(group)?;
        }
        self.check_rebuild(&seen)
    }

    /// Everything derived deleted: the same messages, and none twice.
    fn check_rebuild(&mut self, seen: &BTreeSet<u64>) -> Checked {
        self.stop();
        self.disk.kill();
        for derived in crate::operations::DERIVED {
            self.lose(derived);
        }
        self.start()?;
        self.settle()?;
        ensure!(self.engine().store.pending() == 0, "a rebuild brought something back");
        let again = self.read_all(GROUPS + 1)?;
        ensure!(again == *seen, "a rebuild shows {} messages, not {}", again.len(), seen.len());
        Ok(())
    }

    /// Deletes what lies at `path`, if anything does.
    pub(crate) fn lose(&mut self, path: &str) {
        let there = self.disk.files();
        let below = |file: &String| file == path || file.starts_with(&format!("{path}/"));
        if there.iter().any(below) {
            self.disk.remove_tree(path);
        }
    }

    fn read_all(&mut self, group: usize) -> Result<BTreeSet<u64>, String> {
        let mut seen = BTreeSet::new();
        for topic in 0..TOPICS {
            let received = self.read_topic(group, topic)?;
            seen.extend(received.iter().map(|held| held.number));
        }
        Ok(seen)
    }

    /// At rest, the counts are what the model says.
    pub(crate) fn check_counts(&self) -> Checked {
        let counts = self.engine().store.counts();
        let (least, most) = self.model.unsettled();
        let waiting = counts.pending() + counts.fired;
        ensure!(
            (least..=most).contains(&waiting),
            "{} pending and {} fired, and the model knows {least} to {most}",
            counts.pending(),
            counts.fired
        );
        Ok(())
    }
}
