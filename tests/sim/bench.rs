//! An engine at rest between calls: for tests that say themselves what happens next.

use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::commitlog::FlushMode;
use horolog::config::{DiskReserve, LeaseBounds, QueuedAppends};
use horolog::consumer::Received;
use horolog::engine::{Engine, Settings};
use horolog::message::offset::Offset;
use horolog::message::{Attributes, GroupName, LevelTable, Moment, NewMessage, TopicName};
use horolog::producer::{self, PutAnswer, PutSettings};
use horolog::retention::RetentionObserver;
use horolog::stage::{Progress, Stage};
use horolog::store::Expired;
use horolog::store::flush::FlushObserver;
use horolog::{index, store, timer};
use timerlog::disk::sim::SimDisk;

use crate::world::WHEEL;

pub(crate) const START: u64 = 1_790_000_000_000;

pub(crate) struct Bench {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) engine: Engine,
    pub(crate) stages: Vec<Box<dyn Stage>>,
}

struct Quiet;

impl FlushObserver for Quiet {
    fn flushed(&self, _records: u64, _bytes: u64, _took: Duration) {}
}

impl timer::Observer for Quiet {
    fn fired(&self, _count: u64, _late_ms: u64) {}
    fn clock_stepped(&self, _step: timer::ClockStep) {}
}

impl RetentionObserver for Quiet {
    fn let_go(&self, _begin: Offset) {}
    fn expired(&self, _expired: &Expired) {}
    fn carried(&self, _count: u64) {}
}

fn store_settings(flush: FlushMode) -> store::Settings {
    store::Settings {
        flush,
        segment_size: 16 << 20,
        index: index::Limits::default(),
        queued_appends: QueuedAppends::default(),
        retention_ms: 72 * 3_600_000,
        key: [7; 32],
        holder: "a test".to_owned(),
        derived: store::Derived::default(),
        progress: store::Progress::default(),
    }
}

impl Bench {
    /// An engine with the measures that ship, on an empty disk.
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        Self::open(&SimDisk::new(1), clock)
    }

    pub(crate) fn open(disk: &SimDisk, clock: Arc<ManualClock>) -> Self {
        Self::open_in(disk, clock, FlushMode::Sync)
    }

    pub(crate) fn open_in(disk: &SimDisk, clock: Arc<ManualClock>, flush: FlushMode) -> Self {
        Self::open_with(disk, clock, flush, timer::Settings::default(), LevelTable::default())
    }

    /// As [`Bench::new`], with a wheel of other measures.
    pub(crate) fn with_wheel(wheel: timerlog::Config) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        Self::open_with_wheel(&SimDisk::new(1), clock, wheel)
    }

    pub(crate) fn open_with_wheel(
        disk: &SimDisk,
        clock: Arc<ManualClock>,
        wheel: timerlog::Config,
    ) -> Self {
        let timer = timer::Settings { wheel, ..timer::Settings::default() };
        Self::open_with(disk, clock, FlushMode::Sync, timer, LevelTable::default())
    }

    /// As [`Bench::open`], with the small wheel of the simulation: it opens in no time.
    pub(crate) fn open_small(disk: &SimDisk, clock: Arc<ManualClock>) -> Self {
        let timer = timer::Settings { wheel: WHEEL, ..timer::Settings::default() };
        Self::open_with(disk, clock, FlushMode::Sync, timer, LevelTable::default())
    }

    /// As [`Bench::open`], with delay levels of these delays.
    pub(crate) fn with_levels(disk: &SimDisk, clock: Arc<ManualClock>, delays_ms: &[u64]) -> Self {
        let levels = LevelTable::new(delays_ms.to_vec()).expect("a good table");
        Self::open_with(disk, clock, FlushMode::Sync, timer::Settings::default(), levels)
    }

    fn open_with(
        disk: &SimDisk,
        clock: Arc<ManualClock>,
        flush: FlushMode,
        timer: timer::Settings,
        levels: LevelTable,
    ) -> Self {
        Self::open_within(disk, clock, store_settings(flush), timer, levels)
    }

    /// With segments of 64 KiB, in which messages wait for a day for their readers.
    pub(crate) fn open_small_segments(disk: &SimDisk, clock: Arc<ManualClock>) -> Self {
        // What is filed again within the hour stays near; far slots for two years.
        let wheel = timerlog::Config { near_slots: 8192, far_slots: 1 << 15, ..WHEEL };
        let timer = timer::Settings { wheel, ..timer::Settings::default() };
        let store = store_settings(FlushMode::Sync);
        let store = store::Settings { segment_size: 64 << 10, retention_ms: 86_400_000, ..store };
        Self::open_within(disk, clock, store, timer, LevelTable::default())
    }

    fn open_within(
        disk: &SimDisk,
        clock: Arc<ManualClock>,
        store: store::Settings,
        timer: timer::Settings,
        levels: LevelTable,
    ) -> Self {
        let settings = Settings {
            store,
            timer,
            levels,
            leases: LeaseBounds::default(),
            disk_reserve: DiskReserve::Bytes(0),
            checkpoint_interval: Duration::from_secs(30),
            seed: 1,
        };
        let shared = Arc::clone(&clock) as Arc<dyn Clock>;
        let opened = Engine::open(
            &disk.root(),
            &settings,
            shared,
            Box::new(Quiet),
            Arc::new(Quiet),
            Box::new(Quiet),
            clock.now(),
        );
        let opened = opened.expect("the engine opens");
        Self { clock, engine: opened.engine, stages: opened.stages.0 }
    }

    pub(crate) fn wall(&self) -> u64 {
        self.clock.now().wall.as_millis()
    }

    pub(crate) fn put(&self, moment: Moment, body: &str) -> PutAnswer {
        let message =
            NewMessage { moment, attributes: Attributes::default(), body: body.to_owned().into() };
        let settings = PutSettings { queues_of_new_topic: Some(4) };
        let now = self.clock.now().wall;
        let nonce = self.engine.nonce();
        let topic = TopicName::writable("orders").expect("a good name");
        let decided = producer::put(&self.engine.store, settings, &topic, message, nonce, now);
        decided.expect("the log has room").answer
    }

    /// The id that the client got for a put.
    pub(crate) fn id(&self, answer: &PutAnswer) -> String {
        self.engine.store.ids().message_id(answer.offset, answer.nonce)
    }

    pub(crate) fn step(&mut self, index: usize) -> bool {
        let now = self.clock.now();
        self.stages[index].step(now).expect("no stage fails") == Progress::Worked
    }

    /// Steps all stages until none has anything to do.
    pub(crate) fn settle(&mut self) {
        // Every stage steps in each round, also after one that had something to do.
        while (0..self.stages.len()).filter(|&index| self.step(index)).count() > 0 {}
    }

    /// All that the group can read now.
    pub(crate) fn read(&self, group: &str) -> Vec<Received> {
        let now = self.clock.now();
        let group = GroupName::writable(group).expect("a good name");
        let topic = TopicName::writable("orders").expect("a good name");
        let Some(topic) = self.engine.store.topic(&topic) else { return Vec::new() };
        let group = self.engine.store.group_or_make(&group, 30_000, now.wall).expect("room");
        let lease = Duration::from_secs(3600);
        let mut all = Vec::new();
        loop {
            let leased = self.engine.consumers.receive(&group, &topic, 256, lease, now);
            let received = leased.expect("the log can be read").take();
            if received.is_empty() {
                return all;
            }
            all.extend(received);
        }
    }
}
