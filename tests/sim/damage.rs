//! Every file that is derived from the log, damaged in every way: alone, with one of another kind, and all together.
//!
//! A script of all that can happen leaves a data directory with files of every kind. The process ends, files are damaged,
//! the server starts, and the model's audit follows: nothing is missing, early, twice or back, and at the end all
//! derived files are deleted and the same is there again.
//!
//! More scripts:
//!
//! ```text
//! HOROLOG_SIM_DAMAGES=20 cargo test --test sim many_damages
//! ```

use std::collections::BTreeMap;

use timerlog::disk::sim::SimDisk;

use crate::number;
use crate::operations::DERIVED;
use crate::world::World;

const OPERATIONS: usize = 350;
/// Where the older copies are from.
const EARLIER: usize = 220;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Deleted,
    Emptied,
    Halved,
    /// The last 32 bytes are gone.
    Shortened,
    Lengthened,
    Zeroed,
    /// One bit, at so many tenths of the file.
    Flipped(u64),
    /// As it was earlier; deleted, when it was not there.
    Older,
}

const DAMAGES: [Damage; 11] = [
    Damage::Deleted,
    Damage::Emptied,
    Damage::Halved,
    Damage::Shortened,
    Damage::Lengthened,
    Damage::Zeroed,
    Damage::Flipped(0),
    Damage::Flipped(3),
    Damage::Flipped(6),
    Damage::Flipped(9),
    Damage::Older,
];

/// How it is said that something derived is damaged.
const DAMAGE_FOUND: [&str; 3] = ["of the index is damaged", "is not there", "has to be rebuilt"];

type Copies = BTreeMap<String, Vec<u8>>;

/// A world whose script has ended, and copies of its derived files from before that.
fn ended(seed: u64) -> (World, Copies) {
    let mut world = World::new(seed);
    world.scripted = true;
    world.start().expect("an empty disk is opened");
    let mut copies = Copies::new();
    for index in 0..OPERATIONS {
        if let Err(violation) = world.operation() {
            panic!("script {seed}, operation {index}: {violation}");
        }
        world.hear_answers();
        if index == EARLIER || index == OPERATIONS - 40 {
            // Checkpoints take turns in two files.
            let now = horolog::clock::Clock::now(&*world.clock);
            world.engine().rest(now).expect("the disk works");
            world.hear_answers();
        }
        if index == EARLIER {
            copies = derived(&world.disk)
                .into_iter()
                .map(|path| (path.clone(), world.disk.content(&path)))
                .collect();
        }
    }
    world.stop();
    world.disk.kill();
    (world, copies)
}

fn derived(disk: &SimDisk) -> Vec<String> {
    let mut files = disk.files();
    files.retain(|path| kind(path).is_some());
    files
}

/// Which of the kinds the file is.
fn kind(path: &str) -> Option<&'static str> {
    DERIVED.into_iter().find(|name| path.starts_with(name))
}

fn damage(disk: &SimDisk, copies: &Copies, path: &str, damage: Damage) {
    let older = copies.get(path);
    match damage {
        Damage::Deleted => disk.remove_tree(path),
        Damage::Older if older.is_none() => disk.remove_tree(path),
        _ => disk.edit(path, |bytes| match damage {
            Damage::Emptied => bytes.clear(),
            Damage::Halved => bytes.truncate(bytes.len() / 2),
            Damage::Shortened => bytes.truncate(bytes.len().saturating_sub(32)),
            Damage::Lengthened => bytes.extend([0xff; 64]),
            Damage::Zeroed => bytes.fill(0),
            Damage::Flipped(tenths) if !bytes.is_empty() => {
                let tenths = usize::try_from(tenths).expect("at most nine");
                let at = bytes.len() * tenths / 10;
                bytes[at] ^= 4;
            }
            Damage::Flipped(_) => {}
            Damage::Older => bytes.clone_from(older.expect("it was there earlier")),
            Damage::Deleted => unreachable!("it is removed above"),
        }),
    }
}

/// Runs the script, damages what `choose` says of the derived files, and audits.
fn case(seed: u64, what: &str, choose: impl Fn(&[String]) -> Vec<(String, Damage)>) {
    let (mut world, copies) = ended(seed);
    for (path, how) in choose(&derived(&world.disk)) {
        damage(&world.disk, &copies, &path, how);
    }
    let mut outcome = world.start().and_then(|()| world.audit());
    // What a start does not look at is found when it is read, and said. The next checkpoint leaves it out, or fails and
    // ends the server; the next start builds it anew.
    let found = |violation: &String| DAMAGE_FOUND.iter().any(|text| violation.contains(text));
    if outcome.as_ref().is_err_and(found) {
        let now = horolog::clock::Clock::now(&*world.clock);
        // The index's work removes the file; the wheel's and the queues' are marked already.
        let _ = world.settle();
        let _ = world.engine().rest(now);
        world.stop();
        world.disk.kill();
        outcome = world.start().and_then(|()| world.audit());
    }
    if let Err(violation) = outcome {
        panic!("script {seed}, {what}: {violation}");
    }
}

fn files_of(seed: u64) -> Vec<String> {
    derived(&ended(seed).0.disk)
}

fn each_alone(seed: u64, remainder: usize, of: usize) {
    for (index, path) in files_of(seed).iter().enumerate() {
        if index % of != remainder {
            continue;
        }
        for how in DAMAGES {
            case(seed, &format!("{path} {how:?}"), |_| vec![(path.clone(), how)]);
        }
    }
}

/// All files of two kinds at once, and all files of all kinds.
fn together(seed: u64) {
    for how in DAMAGES {
        for (index, one) in DERIVED.iter().enumerate() {
            for other in &DERIVED[index..] {
                case(seed, &format!("all of {one} and {other} {how:?}"), |files| {
                    let chosen = files.iter().filter(|path| {
                        kind(path).is_some_and(|kind| kind == *one || kind == *other)
                    });
                    chosen.map(|path| (path.clone(), how)).collect()
                });
            }
        }
        case(seed, &format!("everything {how:?}"), |files| {
            files.iter().map(|path| (path.clone(), how)).collect()
        });
    }
}

#[test]
fn the_script_leaves_several_files_of_every_kind() {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for path in files_of(1) {
        *count.entry(kind(&path).expect("it is derived")).or_default() += 1;
    }
    println!("{count:?}");
    for name in DERIVED {
        let least = if name.starts_with("checkpoint") { 1 } else { 2 };
        assert!(count.get(name).copied().unwrap_or(0) >= least, "{name}: {count:?}");
    }
}

#[test]
fn any_derived_file_may_be_damaged_in_any_way_first_half() {
    each_alone(1, 0, 2);
}

#[test]
fn any_derived_file_may_be_damaged_in_any_way_second_half() {
    each_alone(1, 1, 2);
}

#[test]
fn all_derived_files_of_two_kinds_or_of_all_may_be_damaged_at_once() {
    together(1);
}

#[test]
fn many_damages() {
    let seeds = number("HOROLOG_SIM_DAMAGES").unwrap_or(0);
    for seed in 100..100 + seeds {
        each_alone(seed, 0, 1);
        together(seed);
    }
}
