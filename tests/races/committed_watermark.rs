//! How far a log and a queue have come, as told to those who do not write them: nothing that is told of is missing.
//!
//! The story of a race that was here: a unit was written to the file of its queue after the file had been marked as
//! to be synced. A checkpoint that came in between took the mark and synced what was there, so the next one, which
//! counted the unit, found nothing to sync: it promised a unit that a power cut took away, and the next start had
//! to build everything derived again. Now the mark is set when the write is done.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use horolog::clock::{Now, Timestamp};
use horolog::commitlog::group::GroupMagic;
use horolog::commitlog::settled::Settled;
use horolog::commitlog::{
    CommitLog, Durability, FlushMode, Flushed, Receipt, Recovered, ScanFrom, Secrets, recover,
};
use horolog::consumequeue::{ConsumeQueue, Home, Unit};
use horolog::message::Attributes;
use horolog::message::offset::Offset;
use horolog::message::record::{Magic, Message, Placement};
use horolog::sync::Mutex;
use shuttle::future::block_on;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use timerlog::disk::Operation;
use timerlog::disk::sim::{Random, SimDisk};
use timerlog::planted::Fault;

use crate::explore::{SMALL, holds, notices};

const SEGMENT: u64 = 8 << 10;
const SECRETS: Secrets = Secrets { record: Magic(1), group: GroupMagic(2) };
const BEGIN: ScanFrom =
    ScanFrom { offset: Offset::ZERO, next_number: 1, previous_hash: 0, incarnation: 0 };
/// A file of a queue holds 128 units to begin with: what is appended goes over the end of one.
const FIRST: u64 = 126;

fn now() -> Now {
    Now { wall: Timestamp::from_millis(1_790_000_000_000), monotonic: Duration::ZERO }
}

fn read_log(disk: &SimDisk) -> Recovered {
    let directory = disk.root().subdirectory("commitlog").expect("the disk works");
    disk.root().sync().expect("the disk works");
    let mut fold = |_: horolog::message::record::Record<'_>| Ok::<(), Infallible>(());
    recover(directory, SEGMENT, SECRETS, BEGIN, Offset::ZERO, &mut fold).expect("the disk works")
}

fn open_log(disk: &SimDisk) -> Arc<CommitLog> {
    let settled = Settled::empty(SimDisk::new(1).root(), SEGMENT).expect("the disk works");
    Arc::new(read_log(disk).open(settled, FlushMode::Sync, 1, Offset::ZERO))
}

/// Appends a message in a turn of its own; nothing when the log has failed.
fn append(log: &CommitLog) -> Option<Receipt> {
    let message = Message {
        nonce: 5,
        born_at: now().wall,
        placement: Placement::Ready { queue_offset: 0 },
        topic_id: 1,
        queue: 0,
        tag_hash: 0,
        topic: "t".into(),
        attributes: Attributes::default(),
        timer: None,
        terms: None,
    };
    let record = message.encode(b"body");
    let mut turn = log.turn(record.len()).ok()?;
    turn.append(record);
    Some(turn.receipt())
}

/// Flushes, as the stage does, until so many records are written or the disk fails.
fn flush(log: &CommitLog, records: u64) {
    let mut left = records;
    while left > 0 {
        match log.flush(now()) {
            Ok(Flushed::Nothing { .. }) => log.flush_signal().wait(Duration::from_secs(1)),
            Ok(Flushed::Groups { records, .. }) => left -= records,
            Err(_) => return,
        }
    }
}

/// One appends, one flushes, and one reads all that it is told is there.
fn a_log_and_its_reader() {
    let log = open_log(&SimDisk::new(1));
    let appending = {
        let log = Arc::clone(&log);
        thread::spawn(move || (0..3).for_each(|_| drop(append(&log))))
    };
    let flushing = {
        let log = Arc::clone(&log);
        thread::spawn(move || flush(&log, 3))
    };
    let (mut next, mut bytes, mut records) = (Offset::ZERO, Vec::new(), 0);
    while records < 3 {
        let visible = log.visible();
        assert!(log.durable() >= visible, "what is visible need not be durable");
        while next < visible {
            let group = log.reader().group(next, &mut bytes);
            let group =
                group.unwrap_or_else(|error| panic!("what is visible is not there: {error}"));
            (next, records) = (group.end(), records + group.count);
        }
        thread::yield_now();
    }
    appending.join().expect("no panic");
    flushing.join().expect("no panic");
}

/// The power is cut at some moment: what was called durable until then is there.
fn a_log_and_a_power_cut() {
    let disk = SimDisk::new(1);
    let log = open_log(&disk);
    let flushing = {
        let log = Arc::clone(&log);
        thread::spawn(move || flush(&log, 2))
    };
    let cutting = {
        let (log, disk) = (Arc::clone(&log), disk.clone());
        thread::spawn(move || {
            let promised = log.durable();
            disk.crash(&mut Random::new(thread_rng().r#gen()));
            promised
        })
    };
    // A log that has lost its disk refuses the second: its flush has ended then.
    let _ = [append(&log), append(&log)];
    flushing.join().expect("no panic");
    let promised = cutting.join().expect("no panic");
    let there = read_log(&disk).tail.offset;
    assert!(there >= promised, "the log said durable {promised:?}, and there is {there:?}");
}

/// Two wait for what they have appended, while one flushes; the disk may fail.
fn writers_that_wait(fails: bool) {
    let disk = SimDisk::new(1);
    let log = open_log(&disk);
    if fails {
        disk.fail_next(Operation::Sync, 1, std::io::ErrorKind::Other);
    }
    let writers = [(); 2].map(|()| {
        let log = Arc::clone(&log);
        thread::spawn(move || {
            let before = log.durable();
            let outcome = append(&log).map(|receipt| block_on(receipt.wait()));
            let durable = outcome == Some(Durability::Durable);
            assert!(!durable || log.durable() > before, "it was told too early");
            durable
        })
    });
    flush(&log, 2);
    let durable = writers.map(|writer| writer.join().expect("no panic"));
    assert_eq!(durable, [!fails; 2]);
}

fn writers_of_a_good_disk() {
    writers_that_wait(false);
}

fn unit(place: u64) -> Unit {
    let time = Timestamp::from_millis(1000 + place);
    Unit { offset: Offset::new(place * 32 + 32), length: 100, tag_hash: 0, time }
}

fn open_queue(disk: &SimDisk, length: u64) -> ConsumeQueue {
    let queue = ConsumeQueue::open(Home::new(disk.root(), "topic".to_owned()), 0, 0, length);
    queue.unwrap_or_else(|error| panic!("what a checkpoint counts is not there: {error}"))
}

/// A queue with its first units in it, at rest.
fn queue(disk: &SimDisk) -> Arc<ConsumeQueue> {
    let queue = open_queue(disk, 0);
    let units: Vec<_> = (0..FIRST).map(unit).collect();
    queue.append(0, &units).expect("the disk works");
    queue.flush().expect("the disk works");
    disk.root().sync().expect("the disk works");
    Arc::new(queue)
}

/// Dispatch appends, over the end of a file; retention lets go of the file before; and a consumer reads.
fn a_queue_and_its_reader() {
    let queue = queue(&SimDisk::new(1));
    let dispatching = {
        let queue = Arc::clone(&queue);
        thread::spawn(move || {
            queue.append(FIRST, &[unit(FIRST)]).expect("the disk works");
            let units: Vec<_> = (FIRST + 1..FIRST + 4).map(unit).collect();
            queue.append(FIRST + 1, &units).expect("the disk works");
        })
    };
    let expiring = {
        let queue = Arc::clone(&queue);
        thread::spawn(move || {
            queue.expire(queue.committed());
            queue.release(queue.first()).expect("the disk works");
        })
    };
    let mut units = Vec::new();
    let mut next = FIRST;
    while next < FIRST + 4 {
        let first = queue.first();
        let read = queue.read(next, 8, &mut units);
        read.unwrap_or_else(|error| panic!("what is committed is not there: {error}"));
        for &read in &units {
            let expired = read.is_hole() && next < queue.first();
            assert!(expired || read == unit(next) && next >= first, "{next}: {read:?}");
            next += 1;
        }
        thread::yield_now();
    }
    dispatching.join().expect("no panic");
    expiring.join().expect("no panic");
}

/// Checkpoints are written while dispatch appends, as the store does it: the count is taken under dispatch's lock, the
/// files are synced without. Then the power is cut: what the last checkpoint counts is there.
fn a_queue_and_its_checkpoints() {
    let disk = SimDisk::new(1);
    let queue = queue(&disk);
    let dispatcher = Arc::new(Mutex::new(()));
    let dispatching = {
        let (queue, dispatcher) = (Arc::clone(&queue), Arc::clone(&dispatcher));
        thread::spawn(move || {
            let _alone = dispatcher.lock();
            queue.append(FIRST, &[unit(FIRST)]).expect("the disk works");
        })
    };
    let checkpoint = || {
        let alone = dispatcher.lock();
        let counted = queue.committed();
        drop(alone);
        queue.flush().expect("the disk works");
        counted
    };
    let before = checkpoint();
    let last = checkpoint();
    assert!(before <= last);
    dispatching.join().expect("no panic");
    disk.crash(&mut Random::new(thread_rng().r#gen()));
    let queue = open_queue(&disk, last);
    let mut units = Vec::new();
    queue.read(0, 1000, &mut units).expect("every unit that a checkpoint counts is there");
    assert_eq!(units, (0..last).map(unit).collect::<Vec<_>>());
}

#[test]
fn a_reader_sees_only_what_is_written_and_flushed() {
    holds(SMALL, a_log_and_its_reader);
}

#[test]
fn readers_told_before_the_flush_are_noticed() {
    notices(Fault::ToldBeforeFlush, "what is visible is not there", SMALL, a_log_and_its_reader);
}

#[test]
fn what_was_called_durable_is_there_after_a_power_cut() {
    holds(SMALL, a_log_and_a_power_cut);
}

#[test]
fn a_watermark_raised_before_the_flush_is_noticed() {
    notices(Fault::ToldBeforeFlush, "the log said durable", SMALL, a_log_and_a_power_cut);
}

#[test]
fn a_writer_that_waits_for_the_disk_is_woken() {
    holds(SMALL, writers_of_a_good_disk);
}

#[test]
fn a_wait_that_asks_to_be_told_after_its_look_is_noticed() {
    notices(Fault::AskedAfterLook, "deadlock", SMALL, writers_of_a_good_disk);
}

#[test]
fn an_answer_before_the_flush_is_noticed() {
    notices(Fault::AnswerBeforeFlush, "told too early", SMALL, writers_of_a_good_disk);
}

#[test]
fn a_writer_that_waits_for_a_disk_that_fails_is_woken() {
    holds(SMALL, || writers_that_wait(true));
}

#[test]
fn a_reader_of_a_queue_sees_only_units_that_are_written() {
    holds(SMALL, a_queue_and_its_reader);
}

#[test]
fn a_count_of_units_that_are_not_written_is_noticed() {
    notices(Fault::CommittedBeforeUnits, "committed is not there", SMALL, a_queue_and_its_reader);
}

#[test]
fn units_that_a_checkpoint_counts_are_there_after_a_power_cut() {
    holds(SMALL, a_queue_and_its_checkpoints);
}

#[test]
fn a_file_marked_before_it_is_written_is_noticed() {
    let said = "what a checkpoint counts is not there";
    notices(Fault::MarkedThenWritten, said, SMALL, a_queue_and_its_checkpoints);
}
