//! The log gives back its room, and loses nothing by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::message::{GroupName, Moment, State};
use horolog::producer;
use timerlog::disk::sim::SimDisk;

use crate::bench::{Bench, START};

pub(crate) const HOUR: u64 = 3_600_000;
pub(crate) const DAY: u64 = 24 * HOUR;

/// What is known of one message.
#[derive(Clone, Debug)]
struct Put {
    id: String,
    body: String,
    due: u64,
    cancelled: bool,
    read: bool,
}

/// A service whose readers keep up, over a long time.
struct Story {
    disk: SimDisk,
    clock: Arc<ManualClock>,
    bench: Option<Bench>,
    puts: Vec<Put>,
    by_body: BTreeMap<String, usize>,
}

impl Story {
    fn begin(seed: u64) -> Self {
        let disk = SimDisk::new(seed);
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
        let bench = Some(Bench::open_small_segments(&disk, Arc::clone(&clock)));
        let (puts, by_body) = (Vec::new(), BTreeMap::new());
        Self { disk, clock, bench, puts, by_body }
    }

    fn bench(&mut self) -> &mut Bench {
        self.bench.as_mut().expect("it runs")
    }

    fn now(&self) -> u64 {
        self.clock.now().wall.as_millis()
    }

    /// Puts a message of about a kilobyte.
    fn put(&mut self, after: u64) -> usize {
        let number = self.puts.len();
        let body = format!("{number}-{}", "x".repeat(1000));
        let due = self.now() + after;
        let bench = self.bench();
        let answer = bench.put(Moment::After(after), &body);
        let id = bench.id(&answer);
        self.by_body.insert(body.clone(), number);
        self.puts.push(Put { id, body, due, cancelled: false, read: false });
        number
    }

    fn found(&mut self, number: usize) -> Result<producer::Found, producer::NotFound> {
        let id = self.puts[number].id.clone();
        producer::find(&self.bench().engine.store, &id)
    }

    /// Reads and acknowledges all there is; nothing may be early, twice, or cancelled.
    fn read_all(&mut self) {
        let now = self.clock.now();
        let received = self.bench().read("readers");
        let mut handles = Vec::new();
        for message in received {
            let body = String::from_utf8(message.body.to_vec()).expect("text");
            let number = self.by_body[&body];
            let put = &mut self.puts[number];
            assert_eq!(message.message_id, put.id, "message {number} has another id");
            assert!(!put.cancelled, "message {number} was cancelled");
            assert!(!put.read, "message {number} came twice");
            assert!(put.due <= now.wall.as_millis(), "message {number} is early");
            assert_eq!(message.deliver_at.as_millis(), put.due, "message {number}");
            put.read = true;
            handles.push(message.receipt_handle);
        }
        let engine = &self.bench().engine;
        let name = GroupName::writable("readers").expect("a good name");
        let Some(group) = engine.store.group(&name) else { return };
        if !handles.is_empty() {
            engine.consumers.ack(&group, &handles, now).expect("room");
        }
        self.bench().settle();
    }

    /// Lets `hours` pass, by the hour, and reads.
    fn pass(&mut self, hours: u64) {
        for _ in 0..hours {
            self.clock.advance(HOUR);
            self.bench().settle();
            self.read_all();
        }
    }

    fn checkpoint(&mut self) {
        let now = self.clock.now();
        self.bench().engine.rest(now).expect("a checkpoint");
    }

    /// The process ends; what is derived may be lost. It starts again.
    fn restart(&mut self, lose: Lose) {
        self.bench = None;
        self.disk.kill();
        if lose == Lose::Derived {
            lose_derived(&self.disk);
        }
        self.bench = Some(Bench::open_small_segments(&self.disk, Arc::clone(&self.clock)));
        self.bench().settle();
    }

    fn log_bytes(&self) -> u64 {
        self.bytes_below("commitlog/")
    }

    fn bytes_below(&self, folder: &str) -> u64 {
        let below = |path: &String| path.starts_with(folder);
        let files = self.disk.files().into_iter().filter(below);
        files.map(|path| self.disk.content(&path).len() as u64).sum()
    }

    fn log_begin(&mut self) -> u64 {
        self.bench().engine.store.log().extent().0.get()
    }

    fn pending(&self) -> Vec<usize> {
        let waits = |put: &Put| !put.cancelled && !put.read;
        (0..self.puts.len()).filter(|&number| waits(&self.puts[number])).collect()
    }

    /// Every message that waits is found by its id, is scheduled for its moment, and nothing else is pending.
    fn check_pending(&mut self) {
        let pending = self.pending();
        assert_eq!(self.bench().engine.store.pending(), pending.len() as u64);
        for number in pending {
            let found = self.found(number).expect("what is pending is found by its id");
            let store = Arc::clone(&self.bench().engine.store);
            let standing = found.standing(&store).expect("it can be looked up");
            let put = &self.puts[number];
            assert_eq!(standing.state, State::Scheduled, "message {number}");
            assert_eq!(standing.deliver_at.as_millis(), put.due, "message {number}");
            assert_eq!(producer::body(&store, &found).expect("its body"), put.body.as_bytes());
        }
    }

    /// All that wait come, once, at their moments.
    fn read_to_the_end(&mut self) {
        let last = self.puts.iter().map(|put| put.due).max().unwrap_or(0);
        while self.now() < last {
            let hours = (last - self.now()).div_ceil(HOUR).min(24 * 30);
            self.clock.advance(hours * HOUR);
            self.bench().settle();
            // A jump of the clock holds firing for a minute.
            self.clock.advance(60_000);
            self.bench().settle();
            self.read_all();
        }
        assert_eq!(self.pending(), Vec::<usize>::new());
    }
}

/// Of all files only those of the log are left, and the key of the ids.
pub(crate) fn lose_derived(disk: &SimDisk) {
    for path in disk.files() {
        if !path.starts_with("commitlog/") && path != "id.key" {
            disk.remove_tree(&path);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lose {
    Nothing,
    Derived,
}

/// Of a hundred messages one is due in a year, the others in a minute; half a year, at first with restarts. The log
/// holds what waits, what was put and read within the last days, and about as much again.
#[test]
fn the_log_is_about_twice_what_is_needed_under_a_mix_of_a_minute_and_a_year() {
    let mut story = Story::begin(1);
    let mut most = 0.0_f64;
    for day in 0..180_u64 {
        for batch in 0..8 {
            for index in 0..25_u64 {
                let after = if batch % 4 == 0 && index == 0 { 365 * DAY } else { 60_000 };
                story.put(after);
            }
            story.pass(3);
        }
        story.checkpoint();
        story.clock.advance(31_000);
        story.bench().settle();
        story.checkpoint();
        if day % 50 == 20 {
            story.restart(if day % 100 == 20 { Lose::Nothing } else { Lose::Derived });
            story.check_pending();
        }
        if day > 10 {
            // What waits, and what is kept for a day: a kilobyte each, and what is said of it.
            let waiting = story.pending().len() as u64 * 1200;
            let kept = 2 * 200 * 1400;
            let there = story.log_bytes();
            #[expect(clippy::cast_precision_loss, reason = "a ratio to look at")]
            let ratio = there as f64 / (waiting + kept) as f64;
            most = most.max(ratio);
        }
    }
    println!(
        "{} messages put, {} wait; the log has {} bytes, at the most {most:.2} times what is needed",
        story.puts.len(),
        story.pending().len(),
        story.log_bytes()
    );
    assert!(most < 2.5, "the log was {most:.2} times what is needed");
    // Every queue, the timer topic's too, has begun with a file of its first 128 units, and near timers with position 0.
    let (units, timers) = ("consumequeue/", "timerlog/near/");
    let files = story.disk.files();
    let first = |path: &String| {
        let name = path.rsplit(['/', '-']).next().expect("a path has a name");
        (path.starts_with(units) || path.starts_with(timers))
            && name.bytes().all(|byte| byte == b'0')
    };
    let first: Vec<_> = files.iter().filter(|path| first(path)).collect();
    assert!(first.is_empty(), "{first:?} are kept");
    println!("queues {}, timers {}", story.bytes_below(units), story.bytes_below(timers));
    story.restart(Lose::Derived);
    story.check_pending();
    story.read_to_the_end();
}

/// A group that reads nothing for days finds what is not older than its topic keeps it, whole, and goes on from there.
#[test]
fn what_nobody_reads_in_time_goes_and_what_is_younger_is_all_there() {
    for lose in [Lose::Nothing, Lose::Derived] {
        let mut story = Story::begin(2);
        story.put(1000);
        story.clock.advance(2000);
        story.bench().settle();
        assert_eq!(story.bench().read("late").len(), 1);
        for _ in 0..40 {
            for _ in 0..20 {
                story.put(60_000);
            }
            story.pass(3);
            story.checkpoint();
            story.clock.advance(31_000);
            story.bench().settle();
        }
        assert!(story.log_begin() > 0, "nothing was let go");
        story.restart(lose);
        let day_ago = story.now() - DAY;
        let found: Vec<_> = story.bench().read("late").into_iter().map(|m| m.body).collect();
        let young = story.puts.iter().filter(|put| put.due > day_ago);
        for put in young {
            let count = found.iter().filter(|body| **body == put.body.as_bytes()).count();
            assert_eq!(count, 1, "of a message that is not a day old, {lose:?}");
        }
        assert!(found.len() < story.puts.len() / 2, "{} of {}", found.len(), story.puts.len());
    }
}
