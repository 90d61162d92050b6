//! The power fails, or the process, at any moment: what was called durable is there, and what was not
//! is there by whole turns or not at all.

use timerlog::disk::sim::Random;

use super::bench::{
    Bench, LARGE, SMALL, Told, acknowledged, all, at, put, some_message, whole_turns,
};
use super::*;

const ASYNC: FlushMode = FlushMode::Async { interval_ms: 40 };

/// Turns of one to four records, now and then a long one, and a flush after every few: enough for three
/// small segments. Ends when the log fails.
fn script(log: &CommitLog, random: &mut Random, turns: u64, told: &mut Vec<Told>) {
    for turn in 0..turns {
        let count = 1 + random.below(4);
        let longest = if random.once_in(9) { 12_000 } else { 700 };
        let records: Vec<_> = (0..count).map(|_| some_message(random, longest)).collect();
        match put(log, &records) {
            Ok(done) => told.push(done),
            Err(AppendError::Overloaded { .. }) => {}
            Err(_) => return,
        }
        if random.once_in(3) && log.flush(at(turn * 7)).is_err() {
            return;
        }
    }
}

/// One life on the disk, from opening to wherever the script comes to.
fn live(bench: &Bench, seed: u64, told: &mut Vec<Told>) -> Option<CommitLog> {
    let (recovered, _) = bench.recover().ok()?;
    let log = bench.grow(recovered);
    script(&log, &mut Random::new(seed), 60, told);
    Some(log)
}

/// Opens again and checks what is there against what was told and how far the log said it was durable;
/// drops from `told` what is gone.
fn check(bench: &Bench, told: &mut Vec<Told>, durable: Offset, must: usize, context: &str) {
    let (recovered, seen) = bench.recover().unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(recovered.damage, [], "{context}: a crash damages nothing");
    let kept = whole_turns(&seen, told, context);
    assert!(kept >= must, "{context}: {kept} turns are left of {must} acknowledged ones");
    assert!(recovered.tail.offset >= durable, "{context}: it ends before {durable}");
    told.truncate(kept);
}

#[test]
fn what_a_receipt_calls_durable_survives_every_power_cut() {
    for seed in 0..60 {
        for segment_size in [SMALL, LARGE] {
            let context = format!("seed {seed}, segments of {segment_size}");
            let bench = Bench::new(seed, segment_size, FlushMode::Sync);
            let mut told = Vec::new();
            for life in 0..3 {
                let shown = told.len();
                let log = live(&bench, seed * 3 + life, &mut told).expect("no fault was planned");
                let (durable, must) = (log.durable(), acknowledged(&told).max(shown));
                bench.disk.crash(&mut Random::new(seed + life * 1000));
                check(&bench, &mut told, durable, must, &format!("{context}, life {life}"));
            }
        }
    }
}

#[test]
fn all_that_was_written_survives_the_end_of_the_process() {
    for seed in 0..40 {
        for mode in [FlushMode::Sync, ASYNC] {
            let context = format!("seed {seed}, {mode:?}");
            let bench = Bench::new(seed, SMALL, mode);
            let mut told = Vec::new();
            for life in 0..3 {
                let log = live(&bench, seed * 3 + life, &mut told).expect("no fault was planned");
                let (visible, must) = (log.visible(), acknowledged(&told));
                bench.disk.kill();
                check(&bench, &mut told, visible, must, &format!("{context}, life {life}"));
            }
        }
    }
}

#[test]
fn in_async_mode_a_power_cut_costs_whole_turns_above_the_durable_watermark() {
    let mut lost = 0;
    for seed in 0..60 {
        let context = format!("seed {seed}");
        let bench = Bench::new(seed, SMALL, ASYNC);
        let mut told = Vec::new();
        for life in 0..3 {
            let shown = told.len();
            let log = live(&bench, seed * 3 + life, &mut told).expect("no fault was planned");
            let (durable, before) = (log.durable(), told.len());
            bench.disk.crash(&mut Random::new(seed + life * 1000));
            check(&bench, &mut told, durable, shown, &format!("{context}, life {life}"));
            lost += before - told.len();
        }
    }
    assert!(lost > 0, "the seeds must have cost something, or nothing was tested");
}

/// The heart of it: every change that a life makes to the disk is the one that the power fails at.
#[test]
fn the_power_may_fail_at_every_single_change() {
    for seed in 0..2 {
        for mode in [FlushMode::Sync, ASYNC] {
            let bench = Bench::new(seed, SMALL, mode);
            let before = bench.changes();
            live(&bench, seed, &mut Vec::new()).expect("no fault was planned");
            let changes = bench.changes() - before;
            assert!(changes > 20, "the script makes too few changes to tell anything");
            for cut in 1..=changes {
                for crash in 0..4 {
                    cut_and_check(seed, mode, cut, crash);
                }
            }
        }
    }
}

fn cut_and_check(seed: u64, mode: FlushMode, cut: u64, crash: u64) {
    let context = format!("seed {seed}, {mode:?}, cut at change {cut}, crash seed {crash}");
    let bench = Bench::new(seed, SMALL, mode);
    let mut told = Vec::new();
    bench.disk.cut_after(cut);
    let log = live(&bench, seed, &mut told);
    let durable = log.as_ref().map_or(Offset::ZERO, CommitLog::durable);
    let must = if mode == FlushMode::Sync { acknowledged(&told) } else { 0 };
    assert!(bench.disk.is_cut(), "{context}: the script has not come that far");
    bench.disk.crash(&mut Random::new(crash));
    check(&bench, &mut told, durable, must, &context);

    // A second life begins where the first ended.
    let shown = told.len();
    let log = live(&bench, seed + 100, &mut told).expect("no fault was planned");
    let (durable, must) = (log.durable(), acknowledged(&told).max(shown));
    let must = if mode == FlushMode::Sync { must } else { shown };
    bench.disk.crash(&mut Random::new(crash + 50));
    check(&bench, &mut told, durable, must, &format!("{context}, second life"));
}

/// After a kill the page cache shows what the disk may lack. Whoever was shown it must find it again, so
/// recovery writes it again; and the power may fail at every change of the recovery, too.
#[test]
fn what_a_recovery_showed_survives_the_power_cut_after_it() {
    for seed in 0..6 {
        let changes = killed(seed).0;
        for cut in 0..=changes {
            let context = format!("seed {seed}, cut at change {cut} of the recovery");
            let (_, bench, mut told) = killed(seed);
            if cut > 0 {
                bench.disk.cut_after(cut);
            }
            let shown = bench.recover().map(|(recovered, seen)| (recovered.tail.offset, seen));
            assert_eq!(shown.is_err(), cut > 0, "{context}");
            bench.disk.crash(&mut Random::new(seed + cut));
            let (tail, must) = match shown {
                Ok((tail, seen)) => (tail, whole_turns(&seen, &told, &context)),
                Err(_) => (Offset::ZERO, 0),
            };
            assert!(cut > 0 || must == told.len(), "{context}: a kill costs nothing");
            check(&bench, &mut told, tail, must, &context);
        }
    }
}

/// A log that was written and never synced, and whose process is gone; and how many changes its recovery
/// makes.
fn killed(seed: u64) -> (u64, Bench, Vec<Told>) {
    let build = || {
        let bench = Bench::new(seed, SMALL, FlushMode::Async { interval_ms: 1_000_000 });
        let mut told = Vec::new();
        let log = live(&bench, seed, &mut told).expect("no fault was planned");
        log.flush(at(0)).unwrap();
        bench.disk.kill();
        (bench, told)
    };
    let (bench, told) = build();
    let before = bench.changes();
    bench.recover().unwrap();
    let changes = bench.changes() - before;
    drop((bench, told));
    let (bench, told) = build();
    (changes, bench, told)
}

#[test]
fn the_same_seeds_leave_the_same_bytes() {
    let run = || {
        let bench = Bench::new(7, SMALL, FlushMode::Sync);
        let mut told = Vec::new();
        live(&bench, 7, &mut told).expect("no fault was planned");
        bench.disk.crash(&mut Random::new(7));
        bench.open();
        (bench.disk.fingerprint(), all(&told))
    };
    assert_eq!(run(), run());
}
