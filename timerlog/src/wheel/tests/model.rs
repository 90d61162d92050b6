//! Any sequence of operations and crashes, against a plain map.
//!
//! The model is the caller: it has a source of filings that is never lost, a mark in it, and a
//! checkpoint file. What it demands of the wheel:
//!
//! - every entry that is neither settled nor cancelled is found by walking the two rings;
//! - no entry is in a slot that ends before its deadline;
//! - after a crash, slots, counts and chains are exactly what they were at the checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::checkpoint::{self, Format};
use crate::disk::sim::Random;
use crate::error::TimerError;

const FORMAT: Format = Format { magic: *b"a model.", version: 1 };
const START: u64 = 1000;
/// So many far slots that what was in range stays so when a crash sets the wheel back.
const CONFIG: Config = Config { far_slots: 512, ..SMALL };

fn create(disk: &SimDisk, read_time: u64) -> TimerWheel {
    TimerWheel::create(directory(disk), CONFIG, origin(read_time)).expect("create")
}

#[derive(Clone, Debug)]
enum Step {
    Add { ahead_ms: u64, count: u64 },
    Cancel { newest: usize },
    Settle,
    Skip { slots: u64 },
    Refile { budget: usize },
    SetBack { slots: u64 },
    Compact { records_max: usize },
    Snapshot,
    Checkpoint,
    Release,
    Kill,
    Crash { seed: u64 },
    CutAfter { changes: u64, seed: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let add =
        |ahead, count| (ahead, count).prop_map(|(ahead_ms, count)| Step::Add { ahead_ms, count });
    prop_oneof![
        4 => add(0_u64..200, 1_u64..60),
        4 => add(60_u64..700, 1_u64..60),
        3 => (0_usize..80).prop_map(|newest| Step::Cancel { newest }),
        6 => Just(Step::Settle),
        4 => (1_u64..9).prop_map(|slots| Step::Skip { slots }),
        6 => (1_usize..40).prop_map(|budget| Step::Refile { budget }),
        1 => (1_u64..30).prop_map(|slots| Step::SetBack { slots }),
        2 => (1_usize..200).prop_map(|records_max| Step::Compact { records_max }),
        2 => Just(Step::Snapshot),
        3 => Just(Step::Checkpoint),
        2 => Just(Step::Release),
        1 => Just(Step::Kill),
        1 => any::<u64>().prop_map(|seed| Step::Crash { seed }),
        1 => (1_u64..25, any::<u64>()).prop_map(|(changes, seed)| Step::CutAfter { changes, seed }),
    ]
}

struct Caller {
    disk: SimDisk,
    wheel: TimerWheel,
    /// All that was ever filed: what the log of a store would hold.
    source: Vec<Filing>,
    settled: BTreeSet<u64>,
    cancelled: BTreeSet<u64>,
    generation: u64,
    /// What the wheel was at each checkpoint.
    dumps: BTreeMap<u64, Dump>,
    /// What it was when the re-filing that is going on began.
    before_refiling: Dump,
    /// The newest durable checkpoint.
    durable: Option<TimerCheckpoint>,
    cut_seed: u64,
}

impl Caller {
    fn new() -> Self {
        let disk = SimDisk::new(1);
        let wheel = create(&disk, START);
        let before_refiling = dump(&wheel);
        Self {
            disk,
            wheel,
            source: Vec::new(),
            settled: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            generation: 0,
            dumps: BTreeMap::new(),
            before_refiling,
            durable: None,
            cut_seed: 0,
        }
    }

    fn run(&mut self, step: &Step) {
        if let Err(error) = self.apply(step) {
            assert!(self.disk.is_cut(), "{error}");
            self.disk.crash(&mut Random::new(self.cut_seed));
            self.recover();
        }
        if !self.disk.is_cut() {
            self.check();
        }
    }

    fn apply(&mut self, step: &Step) -> Result<(), TimerError> {
        match step {
            Step::Add { ahead_ms, count } => self.add(*ahead_ms, *count),
            Step::Cancel { newest } => self.cancel(*newest),
            Step::Settle => self.settle(),
            Step::Skip { slots } => {
                self.wheel.skip_empty(self.wheel.read_time() + slots);
                Ok(())
            }
            Step::Refile { budget } => self.refile(*budget),
            Step::SetBack { slots } => {
                self.wheel.step_back(self.wheel.read_time().saturating_sub(*slots));
                Ok(())
            }
            Step::Compact { records_max } => self.compact(*records_max),
            Step::Snapshot => self.wheel.snapshot(),
            Step::Checkpoint => self.checkpoint(),
            Step::Release => match self.durable {
                Some(durable) => self.wheel.release(&durable),
                None => Ok(()),
            },
            Step::Kill => {
                self.disk.kill();
                self.recover();
                Ok(())
            }
            Step::Crash { seed } => {
                self.disk.crash(&mut Random::new(*seed));
                self.recover();
                Ok(())
            }
            Step::CutAfter { changes, seed } => {
                self.disk.cut_after(*changes);
                self.cut_seed = *seed;
                Ok(())
            }
        }
    }

    fn file(&mut self, filings: Vec<Filing>) -> Result<(), TimerError> {
        let from = self.source.len();
        self.source.extend(filings);
        self.file_from(from)
    }

    fn file_from(&mut self, from: usize) -> Result<(), TimerError> {
        match self.wheel.file(&self.source[from..]) {
            Ok(()) => {
                self.wheel.set_mark(self.source.len() as u64);
                Ok(())
            }
            Err(FileError::Timer(error)) => Err(error),
            Err(error @ FileError::BeyondRange { .. }) => panic!("{error}"),
        }
    }

    fn add(&mut self, ahead_ms: u64, count: u64) -> Result<(), TimerError> {
        let now = self.wheel.read_time() * 10;
        let first = self.source.len() as u64;
        let filing = |n: u64| {
            let deadline = (now + ahead_ms + n * 7 % 50).saturating_sub(20);
            Filing::add(entry(deadline, (first + n) * 32))
        };
        self.file((0..count).map(filing).collect())
    }

    fn cancel(&mut self, newest: usize) -> Result<(), TimerError> {
        let adds = self.source.iter().rev().filter(|filing| filing.kind == EntryKind::Add);
        match adds.clone().nth(newest).copied() {
            Some(filing) if !self.settled.contains(&filing.entry.offset) => {
                self.cancelled.insert(filing.entry.offset);
                self.file(vec![Filing::cancel(filing.entry)])
            }
            _ => Ok(()),
        }
    }

    fn settle(&mut self) -> Result<(), TimerError> {
        let slot = self.wheel.read_time();
        let walked = self.wheel.slot(slot).map(|state| state.last);
        let mut seen = Vec::new();
        if let Some(last) = walked {
            self.wheel.reader().walk(last, None, slot, |record| seen.push(record.entry))?;
        }
        if self.wheel.advance(slot, walked) == Advance::Moved {
            self.settled.extend(seen.iter().map(|entry| entry.offset));
        }
        Ok(())
    }

    fn refile(&mut self, budget: usize) -> Result<(), TimerError> {
        let before = dump(&self.wheel);
        let was_going = self.wheel.refiling.is_some();
        let settled = &self.settled;
        let result = self.wheel.refile(budget, &mut |entry| settled.contains(&entry.offset));
        if self.wheel.refiling.is_some() && !was_going {
            let boundary = self.wheel.far_boundary();
            self.before_refiling = Dump { boundary, ..before };
        }
        result.map(drop)
    }

    fn compact(&mut self, records_max: usize) -> Result<(), TimerError> {
        let settled = &self.settled;
        let mut skip = |entry: &Entry| settled.contains(&entry.offset);
        self.wheel.rewrite_oldest(records_max, &mut skip).map(drop)
    }

    fn checkpoint(&mut self) -> Result<(), TimerError> {
        self.wheel.flush()?;
        let present = dump(&self.wheel);
        let going = self.wheel.refiling.is_some();
        let state = if going { self.before_refiling.clone() } else { present };
        let checkpoint = self.wheel.checkpoint();
        self.generation += 1;
        self.dumps.insert(self.generation, state);
        let root = self.disk.root();
        checkpoint::write(&*root, FORMAT, self.generation, &checkpoint.encode())?;
        self.durable = Some(checkpoint);
        Ok(())
    }

    fn recover(&mut self) {
        let copies = checkpoint::read(&*self.disk.root(), FORMAT).expect("readable");
        assert!(copies.damaged.is_empty(), "{:?}", copies.damaged);
        let from = match copies.newest {
            None => {
                self.wheel = create(&self.disk, self.wheel.read_time());
                self.durable = None;
                0
            }
            Some(stored) => {
                let payload = stored.payload.try_into().expect("of its size");
                let checkpoint = TimerCheckpoint::decode(&payload).expect("sound");
                self.wheel =
                    TimerWheel::open(directory(&self.disk), CONFIG, &checkpoint).expect("open");
                assert_eq!(dump(&self.wheel), self.dumps[&stored.generation]);
                assert!(self.wheel.recovery().damaged.is_empty());
                self.generation = stored.generation;
                self.durable = Some(checkpoint);
                usize::try_from(checkpoint.mark).expect("small")
            }
        };
        self.file_from(from).expect("the power is on");
    }

    fn check(&self) {
        let wheel = &self.wheel;
        let mut found = BTreeSet::new();
        for (slot, state) in wheel.slots_in(0..u64::MAX) {
            assert!(slot >= wheel.read_time());
            let visit = |record: &crate::Record| {
                assert!(record.entry.deadline / 10 <= slot, "it would come early");
                found.insert(record.entry.offset);
            };
            wheel.reader().walk(state.last, None, slot, visit).expect("walk");
        }
        for (far_slot, state) in wheel.far_slots_in(0..u64::MAX) {
            assert!(far_slot * 4 >= wheel.far_boundary());
            for step in wheel.reader().far().chain(far_slot, state.last, None) {
                let record = step.expect("walk").1;
                assert_eq!(record.entry.deadline / 40, far_slot);
                found.insert(record.entry.offset);
            }
        }
        for filing in &self.source {
            let offset = filing.entry.offset;
            let over = self.settled.contains(&offset) || self.cancelled.contains(&offset);
            assert!(over || found.contains(&offset), "{filing:?} is missing");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn nothing_unsettled_is_ever_missed(steps in prop::collection::vec(step(), 1..120)) {
        let mut caller = Caller::new();
        for step in &steps {
            caller.run(step);
        }
    }
}
