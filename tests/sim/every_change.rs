//! The power goes, or the process, at each change of the disk: between any two writes, syncs, renames.
//!
//! A seed scripts what happens. The same script is run again and again, cut one change later each time. What was
//! answered before the cut must hold after it, whatever became of the rest. Scripts are taken until together
//! they append every kind of record.
//!
//! Many more scripts, of all seeds up to a number:
//!
//! ```text
//! HOROLOG_SIM_SCRIPTS=50 cargo test --test sim many_scripts
//! ```

use std::collections::BTreeSet;

use horolog::commitlog::records;
use horolog::message::offset::Offset;
use horolog::message::record::Kind;

use crate::number;
use crate::world::World;

const OPERATIONS: usize = 300;
/// What is appended while nothing is damaged.
const KINDS: [Kind; 20] = [
    Kind::Message,
    Kind::HalfMessage,
    Kind::Reschedule,
    Kind::Cancel,
    Kind::Delivery,
    Kind::Commit,
    Kind::Rollback,
    Kind::Ack,
    Kind::Nack,
    Kind::LeaseExpired,
    Kind::IdempotencyKey,
    Kind::TopicSet,
    Kind::TopicDeleted,
    Kind::GroupSet,
    Kind::OffsetsReset,
    Kind::Check,
    Kind::Resume,
    Kind::Abandon,
    Kind::DeadLetter,
    Kind::Redrive,
];

fn scripted(seed: u64) -> World {
    let mut world = World::new(seed);
    world.scripted = true;
    world
}

/// The kinds of records that the script appends, by number, and how often it changes the disk.
fn whole(seed: u64) -> (BTreeSet<u8>, u64) {
    let mut world = scripted(seed);
    world.run_script(OPERATIONS).expect("every promise holds");
    let changes = world.disk.counters().changes();
    let log = world.engine().store.log();
    let (mut kinds, mut at, mut bytes) = (BTreeSet::new(), Offset::ZERO, Vec::new());
    while at < log.durable() {
        let header = log.reader().group(at, &mut bytes).expect("a group of the log");
        for record in records(&header, &bytes, log.reader().secrets()) {
            kinds.insert(record.expect("a record of the log").header.kind as u8);
        }
        at = header.end();
    }
    (kinds, changes)
}

/// Scripts that together append records of all kinds; each adds one to those before it.
fn scripts() -> Vec<u64> {
    let mut missing: BTreeSet<u8> = KINDS.iter().map(|kind| *kind as u8).collect();
    let mut scripts = Vec::new();
    for seed in 0..2000 {
        let before = missing.len();
        let (kinds, _) = whole(seed);
        missing.retain(|kind| !kinds.contains(kind));
        if missing.len() < before {
            scripts.push(seed);
        }
        if missing.is_empty() {
            return scripts;
        }
    }
    panic!("no script appends records of the kinds {missing:?}");
}

/// Cuts the script at the changes that leave `remainder` when divided by `of`. Answers how many these are.
fn cut(seed: u64, remainder: u64, of: u64) -> u64 {
    let (_, changes) = whole(seed);
    let mut cuts = 0;
    for cut in (1..=changes).filter(|cut| cut % of == remainder) {
        let mut world = scripted(seed);
        world.disk.cut_after(cut);
        if let Err(violation) = world.run_script(OPERATIONS).and_then(|()| world.audit()) {
            panic!("script {seed}, cut at change {cut} of {changes}: {violation}");
        }
        assert!(world.lives() > 0, "script {seed} has not come to change {cut}");
        cuts += 1;
    }
    cuts
}

macro_rules! cut {
    ($($name:ident: $remainder:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let cuts: u64 = scripts().into_iter().map(|seed| cut(seed, $remainder, 4)).sum();
                println!("{cuts} cuts");
            }
        )*
    };
}

// Of four, so that the test runner spreads them over the cores.
cut! {
    what_was_answered_before_a_cut_at_change_4n_holds: 0;
    what_was_answered_before_a_cut_at_change_4n_and_1_holds: 1;
    what_was_answered_before_a_cut_at_change_4n_and_2_holds: 2;
    what_was_answered_before_a_cut_at_change_4n_and_3_holds: 3;
}

#[test]
fn many_scripts() {
    let seeds = number("HOROLOG_SIM_SCRIPTS").unwrap_or(1);
    let cuts: u64 = (0..seeds).map(|seed| cut(seed, 0, 1)).sum();
    println!("{cuts} cuts of {seeds} scripts");
}
