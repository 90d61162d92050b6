//! What is finished gives back its room.

use std::sync::Arc;

use horolog::clock::{Clock, ManualClock, Timestamp};
use horolog::message::Moment;
use timerlog::disk::sim::SimDisk;

use crate::bench::{Bench, START};

/// Bytes in the files of the TimerLogs and their snapshots.
fn timer_files(disk: &SimDisk) -> (usize, u64) {
    let of_timer = |path: &String| path.starts_with("timerlog/");
    let files: Vec<_> = disk.files().into_iter().filter(of_timer).collect();
    let bytes = files.iter().map(|path| disk.content(path).len() as u64).sum();
    (files.len(), bytes)
}

/// A year of timers, of which most are due in a minute and one in fifty in half a year: the files of the timer
/// hold what waits, and what was filed since the last snapshots, and not all that ever was.
#[test]
fn the_room_of_what_has_fired_comes_back() {
    const DAY: u64 = 86_400_000;
    let wheel = timerlog::Config {
        near_slots: 256,
        far_slots: 1 << 20,
        segment_size: 12_288,
        ..timerlog::Config::default()
    };
    let disk = SimDisk::new(1);
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let mut bench = Bench::open_with_wheel(&disk, Arc::clone(&clock), wheel);
    let (mut put, mut most) = (0_u64, 0);
    for day in 0..365 {
        for index in 0..100 {
            let after = if index % 50 == 0 { 180 * DAY } else { 60_000 };
            bench.put(Moment::After(after), "x");
            put += 1;
        }
        bench.settle();
        // No jump: less than an hour at a time.
        for _ in 0..48 {
            bench.clock.advance(DAY / 48);
            bench.settle();
        }
        bench.engine.rest(clock.now()).expect("a checkpoint");
        if day >= 10 {
            most = most.max(timer_files(&disk).1);
        }
        if day % 100 == 50 {
            drop(bench);
            disk.kill();
            bench = Bench::open_with_wheel(&disk, Arc::clone(&clock), wheel);
        }
    }
    let waiting = bench.engine.store.pending();
    assert_eq!(waiting, 358, "of {put}");
    assert!(most < 100_000, "{most} bytes at the most, {:?} at the end", timer_files(&disk));
}
