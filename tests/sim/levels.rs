//! Delay levels over a manual clock: each fires at its time and no earlier, in order, whatever becomes of the
//! table, of the clock, or of a record.

use std::collections::BTreeMap;
use std::sync::Arc;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::consumer::Received;
use horolog::message::record::Placement;
use horolog::message::{LevelTable, Moment, State};
use horolog::producer::{self, CancelAnswer, Cancelled, Changed, PutAnswer, Query, WhenMatched};
use horolog::timer::pending::Timeline;
use timerlog::disk::sim::{Random, SimDisk};

use crate::bench::{Bench, START};
use crate::model::{Checked, ensure};
use crate::world::World;

const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;

impl World {
    /// What has waited in one level queue stands in a queue of its topic in the order in which it was put,
    /// whatever tables and clocks were in between.
    pub(crate) fn check_level_order(&mut self) -> Checked {
        let store = &self.engine().store;
        let mut rows: BTreeMap<(u32, u16, u16), Vec<(u64, u64)>> = BTreeMap::new();
        for message in &self.model.messages {
            let Some((topic_id, queue, place)) = message.place else { continue };
            let moved = message.moments.len() > 1 || message.fire_asked;
            let Ok(found) = producer::find(store, &message.id) else { continue };
            if let Placement::Level { queue: level, .. } = found.message.placement
                && !moved
            {
                let row = rows.entry((topic_id, queue, level)).or_default();
                row.push((found.offset.get(), place));
            }
        }
        for (of, mut row) in rows {
            row.sort_unstable();
            let in_order = row.is_sorted_by_key(|&(_, place)| place);
            ensure!(in_order, "{of:?} is out of order: {row:?}");
            self.coverage.leveled_in_order += row.len() as u64 - 1;
        }
        Ok(())
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_millis(START)))
}

/// Steps to so many milliseconds after the start of the test.
fn go_to(bench: &mut Bench, after: u64) {
    bench.clock.advance(START + after - bench.wall());
    bench.settle();
}

pub(crate) fn lose_derived(disk: &SimDisk) {
    let files = disk.files();
    for name in crate::operations::DERIVED {
        if files.iter().any(|file| file.starts_with(name)) {
            disk.remove_tree(name);
        }
    }
}

fn bodies(read: &[Received]) -> Vec<String> {
    let mut bodies: Vec<_> =
        read.iter().map(|one| String::from_utf8_lossy(&one.body).into_owned()).collect();
    bodies.sort_unstable();
    bodies
}

/// Every message at the millisecond that it was due, and those of a queue in that order.
fn check_on_time(read: &[Received]) {
    for one in read {
        assert_eq!(one.fired_at, Some(one.deliver_at), "{one:?}");
    }
    for queue in 0..4 {
        let of_queue: Vec<_> =
            read.iter().filter(|one| one.queue == queue).map(|one| one.deliver_at).collect();
        assert!(of_queue.is_sorted(), "queue {queue}: {of_queue:?}");
    }
}

fn state(bench: &Bench, put: &PutAnswer) -> State {
    let found = producer::find(&bench.engine.store, &bench.id(put)).expect("it was put");
    found.standing(&bench.engine.store).expect("it can be read").state
}

#[test]
fn every_level_fires_at_its_time_and_no_earlier_and_in_order() {
    let mut bench = Bench::new();
    let mut due = Vec::new();
    // Level 19 is clamped to the last.
    for level in 1..=19_u32 {
        let delays = LevelTable::default();
        let delay = delays.delays_ms()[level.min(18) as usize - 1];
        for _ in 0..3 {
            let put = bench.put(Moment::Level(level), "due");
            let at = bench.wall() + delay;
            assert_eq!((put.state, put.deliver_at.as_millis()), (State::Scheduled, at));
            due.push(at);
            bench.clock.advance(7);
        }
    }
    bench.settle();
    due.sort_unstable();
    due.dedup();
    let count = |bench: &Bench, at| {
        let group = format!("at-{at}");
        let read = bench.read(&group);
        check_on_time(&read);
        read.len()
    };
    for at in due {
        let before = bench.engine.store.counts().fired;
        go_to(&mut bench, at - 1 - START);
        assert_eq!(bench.engine.store.counts().fired, before, "early: a millisecond before {at}");
        go_to(&mut bench, at - START);
        assert!(bench.engine.store.counts().fired > before, "late: nothing at {at}");
    }
    assert_eq!(bench.engine.store.pending(), 0);
    assert_eq!(count(&bench, 0), 57);
}

#[test]
fn after_the_table_was_changed_old_queues_drain_and_each_fires_at_its_time() {
    for lost in [false, true] {
        let disk = SimDisk::new(1);
        let clock = clock();
        let mut bench = Bench::with_levels(&disk, Arc::clone(&clock), &[SECOND, 60 * SECOND]);
        bench.put(Moment::Level(1), "a: 1 s");
        bench.put(Moment::Level(2), "b: 60 s");
        bench.settle();
        bench.engine.rest(clock.now()).expect("a checkpoint");
        drop(bench);
        disk.crash(&mut Random::new(5));
        if lost {
            lose_derived(&disk);
        }
        let table = [60 * SECOND, 5 * SECOND];
        let mut bench = Bench::with_levels(&disk, Arc::clone(&clock), &table);
        bench.put(Moment::Level(1), "c: 60 s");
        bench.put(Moment::Level(2), "d: 5 s");
        bench.settle();
        drop(bench);
        disk.crash(&mut Random::new(6));
        let mut bench = Bench::with_levels(&disk, Arc::clone(&clock), &[5 * SECOND]);
        bench.put(Moment::Level(7), "e: 5 s");
        bench.settle();
        let expected = [
            (SECOND, vec!["a: 1 s"]),
            (5 * SECOND, vec!["a: 1 s", "d: 5 s", "e: 5 s"]),
            (60 * SECOND, vec!["a: 1 s", "b: 60 s", "c: 60 s", "d: 5 s", "e: 5 s"]),
        ];
        for (at, there) in expected {
            let before = bodies(&bench.read(&format!("before-{at}")));
            go_to(&mut bench, at - 1);
            assert_eq!(bodies(&bench.read(&format!("early-{at}"))), before, "before {at}");
            go_to(&mut bench, at);
            let read = bench.read(&format!("at-{at}"));
            check_on_time(&read);
            assert_eq!(bodies(&read), there, "at {at}");
        }
        assert_eq!(bench.engine.store.pending(), 0);
    }
}

/// RocketMQ retries what it cannot deliver for ever, and its level stands still.
#[test]
fn a_damaged_record_is_lost_alone_and_stops_neither_its_level_nor_others() {
    let disk = SimDisk::new(1);
    let mut bench = Bench::open(&disk, clock());
    bench.put(Moment::Level(1), "before");
    let damaged = bench.put(Moment::Level(1), "damaged");
    bench.put(Moment::Level(1), "behind");
    bench.put(Moment::Level(2), "another level");
    bench.settle();
    disk.flip_bit("commitlog/00000000000000000000", damaged.offset.get() + 40, 3);
    go_to(&mut bench, SECOND);
    assert_eq!(bodies(&bench.read("g")), ["before", "behind"]);
    go_to(&mut bench, 5 * SECOND);
    assert_eq!(bodies(&bench.read("g")), ["another level"]);
}

fn everything() -> Query {
    let deadlines = Timestamp::from_millis(0)..Timestamp::from_millis(u64::MAX);
    Query { topic_id: None, key: None, tag: None, deadlines }
}

/// What is listed, by deadlines, and what the timeline counts.
fn pending(bench: &Bench) -> (Vec<u64>, u64) {
    let (store, pending) = (&bench.engine.store, &bench.engine.pending);
    let (mut deadlines, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = producer::list_scheduled(
            store,
            pending,
            &everything(),
            cursor.as_deref(),
            1,
            &*bench.clock,
        );
        let page = page.expect("it can be read").answer;
        deadlines.extend(page.items.iter().map(|item| item.deadline.as_millis() - START));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let range = everything().deadlines;
    let empty = Timeline::empty(&range, 1 << 60, SECOND, 100).expect("few buckets");
    let timeline = pending.fill(empty, range, None, &*bench.clock).expect("it can be read");
    assert!(timeline.complete);
    (deadlines, timeline.buckets.iter().map(|bucket| bucket.count).sum())
}

#[test]
fn what_waits_in_a_level_is_pending_like_any_other() {
    let mut bench = Bench::new();
    let cancelled = bench.put(Moment::Level(3), "cancelled");
    let moved = bench.put(Moment::Level(3), "moved");
    let fired = bench.put(Moment::Level(3), "fired");
    let left = bench.put(Moment::Level(4), "left");
    bench.put(Moment::After(20 * SECOND), "in the wheel");
    bench.settle();
    assert_eq!(
        pending(&bench),
        (vec![10 * SECOND, 10 * SECOND, 10 * SECOND, 30 * SECOND, 20 * SECOND], 5)
    );

    let now = bench.clock.now().wall;
    let store = Arc::clone(&bench.engine.store);
    let found = |put: &PutAnswer| producer::find(&store, &bench.id(put)).expect("it was put");
    let answer = producer::cancel(&store, &found(&cancelled), now).expect("room").answer;
    assert_eq!(answer, CancelAnswer::Cancelled(Cancelled::First));
    let later = Moment::After(15 * SECOND);
    let answer = producer::reschedule(&store, &found(&moved), later, now).expect("room").answer;
    assert_eq!(answer, Changed::Done(Timestamp::from_millis(START + 15 * SECOND)));
    let answer = producer::fire_now(&store, &found(&fired), now).expect("room").answer;
    assert_eq!(answer, Changed::Done(now));
    bench.settle();
    assert_eq!(bodies(&bench.read("g")), ["fired"]);
    // The counts of the slots are exact: nothing was taken out of them that was not in.
    assert_eq!(pending(&bench), (vec![30 * SECOND, 15 * SECOND, 20 * SECOND], 3));
    assert_eq!(bench.engine.store.pending(), 3);

    go_to(&mut bench, 14_999);
    assert!(bench.read("g").is_empty());
    go_to(&mut bench, 15 * SECOND);
    assert_eq!(bodies(&bench.read("g")), ["moved"]);
    let clock = &*bench.clock;
    let all = everything();
    let (engine, when) = (&bench.engine, WhenMatched::Cancel);
    let answer = producer::cancel_scheduled(&store, &engine.pending, &all, None, when, clock);
    assert_eq!(answer.expect("room").answer.matched, 2);
    bench.settle();
    assert_eq!(pending(&bench), (vec![], 0));
    assert_eq!(state(&bench, &left), State::Cancelled);
    go_to(&mut bench, HOUR / 2);
    assert!(bench.read("g").is_empty());
}

#[test]
fn what_became_due_during_a_downtime_fires_once_and_in_order() {
    let disk = SimDisk::new(1);
    let clock = clock();
    let mut bench = Bench::open(&disk, Arc::clone(&clock));
    for index in 0..1500 {
        bench.put(Moment::Level(1 + index % 2), &index.to_string());
        bench.clock.advance(1);
        if index % 100 == 0 {
            bench.settle();
        }
    }
    bench.settle();
    let fired = bench.read("g");
    drop(bench);
    disk.crash(&mut Random::new(2));
    clock.advance(24 * HOUR);
    let mut bench = Bench::open(&disk, Arc::clone(&clock));
    bench.settle();
    let read = bench.read("late");
    assert_eq!(read.len(), 1500);
    for queue in 0..4 {
        for level in 0..2 {
            let born: Vec<_> = read
                .iter()
                .filter(|one| one.queue == queue)
                .map(|one| String::from_utf8_lossy(&one.body).parse::<u64>().expect("a number"))
                .filter(|number| number % 2 == level)
                .collect();
            assert!(born.is_sorted(), "queue {queue}, level {}: {born:?}", level + 1);
        }
    }
    assert!(!fired.is_empty(), "some had fired before");
    assert_eq!(bench.engine.store.counts().fired, 1500);
}

#[test]
fn a_clock_that_is_set_back_delays_what_is_behind_the_head_and_releases_nothing_early() {
    let mut bench = Bench::new();
    bench.put(Moment::Level(1), "before the step");
    bench.settle();
    bench.clock.step_wall(Timestamp::from_millis(START - 10 * SECOND));
    bench.settle();
    let behind = bench.put(Moment::Level(1), "after the step");
    bench.settle();
    assert_eq!(behind.deliver_at, Timestamp::from_millis(START - 9 * SECOND));
    bench.clock.advance(10 * SECOND + 999);
    bench.settle();
    assert!(bench.read("g").is_empty(), "the head is not due");
    bench.clock.advance(1);
    bench.settle();
    assert_eq!(bodies(&bench.read("g")), ["after the step", "before the step"]);
}

#[test]
fn a_jump_of_the_clock_by_more_than_an_hour_holds_releases_for_a_minute() {
    let mut bench = Bench::new();
    bench.put(Moment::Level(3), "held");
    bench.settle();
    bench.clock.step_wall(Timestamp::from_millis(START + 2 * HOUR));
    bench.settle();
    bench.clock.advance(59_999);
    bench.settle();
    assert!(bench.read("g").is_empty());
    bench.clock.advance(1);
    bench.settle();
    assert_eq!(bodies(&bench.read("g")), ["held"]);
}

/// The table is derived from the log: rot may take the record that made the queues.
#[test]
fn a_queue_whose_record_is_lost_is_made_again_by_its_messages() {
    let disk = SimDisk::new(1);
    let clock = clock();
    let mut bench = Bench::with_levels(&disk, Arc::clone(&clock), &[SECOND, 5 * SECOND]);
    bench.put(Moment::Level(2), "5 s");
    bench.settle();
    // A later group, so that what is damaged is told from a torn tail.
    bench.put(Moment::Now, "later");
    bench.settle();
    drop(bench);
    disk.kill();
    lose_derived(&disk);
    let file = "commitlog/00000000000000000000";
    let name = b"SCHEDULE_TOPIC_XXXX";
    let content = disk.content(file);
    let at = content.windows(name.len()).position(|bytes| bytes == name).expect("its record");
    disk.flip_bit(file, at as u64, 0);
    let table = [SECOND, 5 * SECOND];
    let mut bench = Bench::with_levels(&disk, Arc::clone(&clock), &table);
    bench.put(Moment::Level(2), "the same delay, the same queue");
    bench.put(Moment::Level(1), "1 s");
    bench.settle();
    go_to(&mut bench, SECOND);
    assert_eq!(bodies(&bench.read("g")), ["1 s", "later"]);
    go_to(&mut bench, 5 * SECOND);
    assert_eq!(bodies(&bench.read("g")), ["5 s", "the same delay, the same queue"]);
    let levels = bench.engine.store.levels();
    assert_eq!(levels.of(2).map(|level| level.queue), Some(1));
}
