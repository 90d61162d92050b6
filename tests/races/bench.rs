//! An engine on a simulated disk, whose stages run on the threads of the scheduler.

use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::commitlog::FlushMode;
use horolog::config::{DiskReserve, LeaseBounds, QueuedAppends};
use horolog::engine::{Engine, Settings};
use horolog::message::offset::Offset;
use horolog::message::{Attributes, GroupName, LevelTable, Moment, NewMessage, TopicName};
use horolog::producer::{self, PutSettings};
use horolog::retention::RetentionObserver;
use horolog::stage::runner::{OnFailure, Running, run};
use horolog::stage::{Progress, Stage};
use horolog::store::Expired;
use horolog::store::flush::FlushObserver;
use horolog::{index, store, timer};
use shuttle::rand::{Rng, thread_rng};
use timerlog::disk::sim::{Random, SimDisk};

pub(crate) const START: u64 = 1_790_000_000_000;

/// It turns in 256 seconds, and opens in no time.
const WHEEL: timerlog::Config = timerlog::Config {
    precision_ms: 1000,
    near_slots: 256,
    far_slots: 4096,
    segment_size: 12_288,
    cancels_max: 4,
};

/// The stages that a message passes from its put to its topic.
const PATH: [&str; 7] = [
    "flush",
    "dispatch",
    "enqueue_get",
    "enqueue_put",
    "dequeue_get",
    "dequeue_message",
    "dequeue_put",
];

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

fn settings() -> Settings {
    let store = store::Settings {
        flush: FlushMode::Sync,
        segment_size: 64 << 10,
        index: index::Limits::default(),
        queued_appends: QueuedAppends::default(),
        retention_ms: 72 * 3_600_000,
        key: [7; 32],
        holder: "a test".to_owned(),
        derived: store::Derived::default(),
        progress: store::Progress::default(),
    };
    Settings {
        store,
        timer: timer::Settings { wheel: WHEEL, ..timer::Settings::default() },
        levels: LevelTable::default(),
        leases: LeaseBounds::default(),
        disk_reserve: DiskReserve::Bytes(0),
        checkpoint_interval: Duration::ZERO,
        seed: 1,
    }
}

/// Whether a checkpoint is written while the stages run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checkpoints {
    None,
    Written,
}

pub(crate) struct Bench {
    disk: SimDisk,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) engine: Arc<Engine>,
    stages: Vec<Box<dyn Stage>>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        Self::open(SimDisk::new(1), clock)
    }

    fn open(disk: SimDisk, clock: Arc<ManualClock>) -> Self {
        let opened = Engine::open(
            &disk.root(),
            &settings(),
            Arc::clone(&clock) as Arc<dyn Clock>,
            Box::new(Quiet),
            Arc::new(Quiet),
            Box::new(Quiet),
            clock.now(),
        );
        let opened = opened.expect("the engine opens");
        Self { disk, clock, engine: Arc::new(opened.engine), stages: opened.stages.0 }
    }

    /// Cuts the power, and starts the server again.
    pub(crate) fn restart(self) -> Self {
        let Self { disk, clock, engine, stages } = self;
        drop((engine, stages));
        disk.crash(&mut Random::new(thread_rng().r#gen()));
        Self::open(disk, clock)
    }

    /// Puts a message that is due at `due`; answers its id.
    pub(crate) fn put(&self, due: u64) -> String {
        let moment = Moment::At(Timestamp::from_millis(due));
        let message = NewMessage { moment, attributes: Attributes::default(), body: "body".into() };
        let put = PutSettings { queues_of_new_topic: Some(1) };
        let now = self.clock.now().wall;
        let nonce = self.engine.nonce();
        let decided = producer::put(&self.engine.store, put, &topic(), message, nonce, now);
        let answer = decided.expect("the log has room").answer;
        self.engine.store.ids().message_id(answer.offset, answer.nonce)
    }

    /// Writes a checkpoint of what is at rest.
    pub(crate) fn rest(&self) {
        self.engine.rest(self.clock.now()).expect("the disk works");
    }

    /// Steps all stages on this thread until none has anything to do.
    pub(crate) fn settle(&mut self) {
        let now = self.clock.now();
        let mut worked = true;
        while worked {
            worked = false;
            for stage in &mut self.stages {
                worked |= stage.step(now).expect("no stage fails") == Progress::Worked;
            }
        }
    }

    /// Gives each stage of the path of a message a thread, and with `checkpoints` the one that writes those, too.
    pub(crate) fn run(&mut self, checkpoints: Checkpoints) -> Running {
        let all = std::mem::take(&mut self.stages);
        let runs = |name| {
            PATH.contains(&name) || name == "checkpoint" && checkpoints == Checkpoints::Written
        };
        let stages = all.into_iter().filter(|stage| runs(stage.name())).collect();
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let on_failure: OnFailure = Arc::new(|error| panic!("{error}"));
        run(stages, &clock, &on_failure).expect("threads")
    }
}

fn topic() -> TopicName {
    TopicName::writable("orders").expect("a good name")
}

/// How many messages the group is handed out by one call.
pub(crate) fn receive(engine: &Engine, clock: &ManualClock, group: &str) -> usize {
    let now = clock.now();
    let group = GroupName::writable(group).expect("a good name");
    let topic = engine.store.topic(&topic()).expect("something was put");
    let group = engine.store.group_or_make(&group, 30_000, now.wall).expect("room");
    let lease = Duration::from_secs(3600);
    let leased = engine.consumers.receive(&group, &topic, 16, lease, now);
    leased.expect("the log can be read").take().len()
}
