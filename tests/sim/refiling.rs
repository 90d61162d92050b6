//! Pages of what is pending while a far slot is re-filed: at every step of it, with every size of a page.
//!
//! A far slot moves into the near ring in several steps, newest entries first, and the near slots that they
//! go to come before it in the list. A walk that had come into the far slot would miss what moves behind
//! its back, and a walk that came to it later would show what moved twice.

use std::collections::BTreeSet;

use horolog::clock::{Clock, Timestamp};
use horolog::message::Moment;
use horolog::producer::{self, Query};

use crate::bench::{Bench, START};

/// Far slots of 64 s. One cancel at most is remembered while one is re-filed, so that each further one
/// makes it a pass longer.
const WHEEL: timerlog::Config = timerlog::Config {
    precision_ms: 1000,
    near_slots: 256,
    far_slots: 64,
    segment_size: 12_288,
    cancels_max: 1,
};
const FAR_SLOT: u64 = 64_000;
const ENQUEUE_PUT: usize = 3;

/// A wheel with entries near, in the far slot that is re-filed next, and in the two after it.
struct Setting {
    bench: Bench,
    pending: BTreeSet<u64>,
}

fn setting() -> Setting {
    let mut bench = Bench::with_wheel(WHEEL);
    // The far slot that is re-filed when the read time has come to the next far slot's time.
    let begin = (START / FAR_SLOT + 2) * FAR_SLOT;
    let mut pending = BTreeSet::new();
    let mut cancelled = Vec::new();
    let ahead = [FAR_SLOT / 2 + 40_000, begin - START, begin - START + FAR_SLOT];
    for (index, after) in (0..12).flat_map(|index| ahead.map(|after| (index, after))) {
        let answer = bench.put(Moment::After(after + index % 3 * 1500), "waits");
        // One in three of the far slot in question is cancelled, while it is still far.
        if after == ahead[1] && index % 3 == 0 {
            cancelled.push(bench.id(&answer));
        } else {
            pending.insert(answer.offset.get());
        }
    }
    bench.settle();
    for id in cancelled {
        let found = producer::find(&bench.engine.store, &id).expect("it is there");
        let now = bench.clock.now().wall;
        producer::cancel(&bench.engine.store, &found, now).expect("the log has room");
    }
    bench.settle();
    Setting { bench, pending }
}

impl Setting {
    fn page(&self, cursor: Option<&str>, limit: usize) -> (Vec<u64>, Option<String>) {
        let deadlines = Timestamp::from_millis(0)..Timestamp::from_millis(u64::MAX);
        let query = Query { topic_id: None, key: None, tag: None, deadlines };
        let (engine, clock) = (&self.bench.engine, &*self.bench.clock);
        let page =
            producer::list_scheduled(&engine.store, &engine.pending, &query, cursor, limit, clock);
        let page = page.expect("the wheel can be read").answer;
        (page.items.iter().map(|item| item.found.offset.get()).collect(), page.next)
    }

    /// All pages; after page `at` re-filing becomes due, and `steps` of it are made after each page.
    fn walk(&mut self, limit: usize, at: usize, steps: usize) -> (Vec<u64>, usize) {
        let (mut listed, mut cursor, mut refiled) = (Vec::new(), None, 0);
        for page in 0.. {
            let (items, next) = self.page(cursor.as_deref(), limit);
            listed.extend(items);
            let Some(next) = next else { break };
            cursor = Some(next);
            if page == at {
                self.make_refiling_due();
            }
            if page >= at {
                refiled += (0..steps).filter(|_| self.bench.step(ENQUEUE_PUT)).count();
            }
        }
        (listed, refiled)
    }

    /// Lets the read time come to the next far slot's time, with nothing due yet, and stops short of
    /// the re-filing.
    fn make_refiling_due(&mut self) {
        let next = (START / FAR_SLOT + 1) * FAR_SLOT;
        self.bench.clock.advance((next - self.bench.wall()).max(1));
        for stage in (0..self.bench.stages.len()).filter(|stage| *stage != ENQUEUE_PUT) {
            while self.bench.step(stage) {}
        }
    }
}

#[test]
fn nothing_is_missed_or_given_twice_however_far_the_refiling_is_between_two_pages() {
    let mut partly = 0;
    for limit in [1, 2, 3, 5, 8, 13, 40] {
        for at in 0..36_usize.div_ceil(limit) {
            for steps in 0..4 {
                let mut setting = setting();
                let (listed, refiled) = setting.walk(limit, at, steps);
                let unique: BTreeSet<_> = listed.iter().copied().collect();
                assert_eq!(unique, setting.pending, "limit {limit}, at {at}, {steps} steps");
                assert_eq!(listed.len(), unique.len(), "limit {limit}, at {at}, {steps} steps");
                partly += refiled;
            }
        }
    }
    assert!(partly > 0, "nothing was re-filed");
}

#[test]
fn what_is_put_while_its_far_slot_is_refiled_is_listed_at_each_step_of_it() {
    let mut setting = setting();
    setting.make_refiling_due();
    let begin = (START / FAR_SLOT + 2) * FAR_SLOT;
    let mut steps = 0;
    loop {
        let at = Timestamp::from_millis(begin + steps * 100);
        let answer = setting.bench.put(Moment::At(at), "late");
        // Flush, dispatch, and the first stage; the second one files it and makes a step of re-filing.
        for stage in 0..ENQUEUE_PUT {
            while setting.bench.step(stage) {}
        }
        setting.bench.step(ENQUEUE_PUT);
        setting.pending.insert(answer.offset.get());
        for limit in [1, 4, 1000] {
            let (listed, _) = setting.walk(limit, usize::MAX, 0);
            let unique: BTreeSet<_> = listed.iter().copied().collect();
            assert_eq!(unique, setting.pending, "limit {limit}, after {steps} steps");
            assert_eq!(listed.len(), unique.len(), "limit {limit}, after {steps} steps");
        }
        steps += 1;
        if !setting.bench.step(ENQUEUE_PUT) {
            break;
        }
    }
    assert!(steps > 2, "the re-filing had {steps} steps only");
}
