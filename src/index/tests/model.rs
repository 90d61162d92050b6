//! Any sequence of calls and crashes, against a plain set.
//!
//! The model is the caller: it has a log, of which a crash takes what was not flushed, and a checkpoint,
//! which is a manifest and how much of the log was inserted before it. What it demands: at every moment
//! each key has exactly the offsets that the log says, newest first, none of them lost, none of them from
//! what the log lost.

use proptest::prelude::*;

use super::*;

const KEYS: u64 = 7;

#[derive(Clone, Debug)]
enum Step {
    Insert { key: u64, count: u64, rotate: usize },
    InsertAgain { newest: usize, count: usize },
    Work { steps: usize },
    Checkpoint(Fate),
    Flush,
    Forget { share: u64 },
    LookUp { key: u64, share: u64 },
    Kill,
    Crash { seed: u64 },
    CutAfter { changes: u64, seed: u64 },
}

/// What becomes of a checkpoint after its capture.
#[derive(Clone, Copy, Debug)]
enum Fate {
    NeverWritten,
    Written,
    WrittenAndConfirmed,
}

fn step() -> impl Strategy<Value = Step> {
    let insert = (0..KEYS, 1_u64..60, 0_usize..60).prop_map(|(key, count, rotate)| Step::Insert {
        key,
        count,
        rotate,
    });
    let again = (0_usize..300, 0_usize..100)
        .prop_map(|(newest, count)| Step::InsertAgain { newest, count });
    let fate = prop_oneof![
        1 => Just(Fate::NeverWritten),
        1 => Just(Fate::Written),
        3 => Just(Fate::WrittenAndConfirmed),
    ];
    prop_oneof![
        12 => insert,
        1 => again,
        10 => (1_usize..12).prop_map(|steps| Step::Work { steps }),
        4 => fate.prop_map(Step::Checkpoint),
        2 => Just(Step::Flush),
        1 => (0_u64..100).prop_map(|share| Step::Forget { share }),
        6 => (0..KEYS, 0_u64..110).prop_map(|(key, share)| Step::LookUp { key, share }),
        1 => Just(Step::Kill),
        2 => any::<u64>().prop_map(|seed| Step::Crash { seed }),
        2 => (1_u64..40, any::<u64>())
            .prop_map(|(changes, seed)| Step::CutAfter { changes, seed }),
    ]
}

#[derive(Debug, Default)]
struct Checkpoint {
    manifest: Option<Vec<u8>>,
    upto: usize,
}

struct Caller {
    disk: SimDisk,
    index: Index,
    /// Key and offset of each record, offsets ascending.
    log: Vec<(u64, Offset)>,
    flushed: usize,
    floor: Offset,
    checkpoint: Checkpoint,
    /// What the next power cut leaves is decided by this.
    seed: u64,
}

impl Caller {
    fn new() -> Self {
        let disk = SimDisk::new(1);
        let index = empty(&disk);
        Self {
            disk,
            index,
            log: Vec::new(),
            flushed: 0,
            floor: Offset::ZERO,
            checkpoint: Checkpoint::default(),
            seed: 0,
        }
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Insert { key, count, rotate } => self.insert(key, count, rotate),
            Step::InsertAgain { newest, count } => {
                let from = self.log.len().saturating_sub(newest);
                self.log[from..].iter().take(count).for_each(|&(of, offset)| {
                    self.index.insert(key(of), offset);
                });
            }
            Step::Work { steps } => self.work(steps),
            Step::Checkpoint(fate) => self.checkpoint(fate),
            Step::Flush => self.flushed = self.log.len(),
            Step::Forget { share } => {
                self.floor = self.floor.max(self.share_of_log(share));
                self.index.forget_below(self.floor);
            }
            Step::LookUp { key, share } => self.check_key(key, Some(self.share_of_log(share))),
            Step::Kill => self.restart(None),
            Step::Crash { seed } => self.restart(Some(seed)),
            Step::CutAfter { changes, seed } => {
                self.seed = seed;
                self.disk.cut_after(changes);
            }
        }
    }

    fn share_of_log(&self, percent: u64) -> Offset {
        let end = self.log.last().map_or(0, |(_, offset)| offset.get());
        Offset::new(end * percent / 100)
    }

    /// `count` records, most of them of `of`, inserted in an order that is not quite the log's.
    fn insert(&mut self, of: u64, count: u64, rotate: usize) {
        let end = self.log.last().map_or(Offset::ZERO, |(_, offset)| offset.plus(32));
        let mut records: Vec<_> = (0..count)
            .map(|n| (if n % 3 == 2 { n % KEYS } else { of }, end.plus(n * 96)))
            .collect();
        self.log.extend(&records);
        let middle = rotate % records.len();
        records.rotate_left(middle);
        self.insert_all(&records);
    }

    fn insert_all(&mut self, records: &[(u64, Offset)]) {
        for &(of, offset) in records {
            if !self.index.has_room() && self.index.step().is_err() {
                // The log has the rest: the restart inserts it.
                return self.restart_after_cut();
            }
            self.index.insert(key(of), offset);
        }
    }

    fn work(&mut self, steps: usize) {
        for _ in 0..steps {
            if self.index.step().is_err() {
                return self.restart_after_cut();
            }
        }
    }

    fn checkpoint(&mut self, fate: Fate) {
        let upto = self.log.len();
        let Ok(manifest) = self.index.capture() else { return self.restart_after_cut() };
        if matches!(fate, Fate::NeverWritten) {
            return;
        }
        self.flushed = upto;
        self.checkpoint = Checkpoint { manifest: Some(manifest), upto };
        if matches!(fate, Fate::WrittenAndConfirmed) {
            self.index.checkpointed();
        }
    }

    fn restart_after_cut(&mut self) {
        assert!(self.disk.is_cut(), "an error without a cut");
        self.restart(Some(self.seed));
    }

    /// Ends the process, or the power too, and starts again from the last checkpoint.
    fn restart(&mut self, power_cut: Option<u64>) {
        match power_cut {
            None => self.disk.kill(),
            Some(seed) => {
                let mut random = Random::new(seed);
                self.disk.crash(&mut random);
                let unflushed = (self.log.len() - self.flushed) as u64;
                let kept = usize::try_from(random.below(unflushed + 1)).unwrap();
                self.log.truncate(self.flushed + kept);
            }
        }
        self.flushed = self.log.len();
        self.index = open(&self.disk, self.checkpoint.manifest.as_deref())
            .expect("all that a checkpoint lists is there, whole");
        self.index.forget_below(self.floor);
        let later = self.log[self.checkpoint.upto..].to_vec();
        self.insert_all(&later);
    }

    fn check_key(&self, of: u64, below: Option<Offset>) {
        let is_in = |offset: Offset| offset >= self.floor && below.is_none_or(|b| offset < b);
        let newest_first = self.log.iter().rev();
        let expected: Vec<_> = newest_first
            .filter(|&&(other, offset)| other == of && is_in(offset))
            .map(|&(_, offset)| offset)
            .collect();
        let found: Result<Vec<_>, _> = self.index.newest_first(key(of), below).collect();
        match found {
            Ok(found) => assert_eq!(found, expected, "key {of} below {below:?}"),
            Err(error) => assert!(self.disk.is_cut(), "{error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_key_always_has_what_the_log_says(steps in prop::collection::vec(step(), 1..150)) {
        let mut caller = Caller::new();
        for step in &steps {
            caller.run(step);
        }
        (0..KEYS).for_each(|of| caller.check_key(of, None));
        caller.restart(Some(1));
        (0..KEYS).for_each(|of| caller.check_key(of, None));
    }
}
