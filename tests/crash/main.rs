//! The real binary, killed and started again, against what it has promised.
//!
//! A child process serves; this process sends it load, kills it with SIGKILL at a random moment, starts
//! it again on the same data directory, and so on. Every operation goes into a [`ledger`] with what its
//! caller was told: ok, refused, or nothing, because the server was gone. At the end every topic is read
//! from the first message to the last, and the ledger is held against the promises ([`audit`]).
//!
//! A failure keeps the data directory and the server's log, and prints where they are and the seed of what
//! was sent. The seed does not decide which line of the server a kill hits; more rounds hit more lines:
//!
//! ```text
//! HOROLOG_CRASH_ROUNDS=1000 cargo test --release --test crash killed -- --nocapture
//! ```

#![expect(clippy::disallowed_methods, reason = "a test of processes looks at their files itself")]
#![expect(clippy::panic, reason = "a broken promise fails the test where it is seen")]
#![expect(clippy::print_stdout, reason = "the table, and what a failure has kept")]
#![expect(clippy::disallowed_types, reason = "it runs on real threads alone")]

mod audit;
mod consumer;
mod directories;
mod disks;
mod fsync;
mod full;
mod ledger;
mod load;
mod power;
mod rebuilt;
mod retry;
mod run;
mod scratch;
mod server;
mod traced;
mod wire;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use horolog::client::Client;
use tokio::task::JoinSet;

use crate::audit::{Audit, Report};
use crate::ledger::{Asked, Outcome};
use crate::load::TOPICS;
use crate::run::{AT_CHECKPOINT, Far, Run, SOON};
use crate::scratch::{Scratch, remove_derived, tree};
use crate::server::Server;
use crate::wire::Wanted;

const ROUNDS: u64 = 20;
/// Long polls of the load, at most, in milliseconds.
const WAIT: u64 = 200;
/// The exit code of a data directory that cannot be used.
const DATA_DIRECTORY: Option<i32> = Some(3);

fn check(report: &Report) {
    println!("{report}");
    let first = &report.violations[..report.violations.len().min(5)];
    assert!(first.is_empty(), "{} promises broken: {first:#?}", report.violations.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_under_load_at_any_moment_it_loses_nothing_and_fires_nothing_early_or_twice() {
    let rounds = run::number("HOROLOG_CRASH_ROUNDS").unwrap_or(ROUNDS);
    let mut run = Run::new(WAIT, &[]);
    for round in 0..rounds {
        match round % 5 {
            1 => run.live_and_be_killed(AT_CHECKPOINT).await,
            2 => run.live_and_be_killed_while_stopping().await,
            _ => run.live_and_be_killed(SOON).await,
        }
        if round % 5 == 4 {
            run.be_killed_in_recovery().await;
        }
    }
    let life = run.start().await;
    let report = run.audit(&life, "auditor", Far::Cancel).await;
    check(&report);
    // A run in which something never happened proves nothing about it.
    let Report { tally, kills, segments, .. } = report;
    let happened = [
        ("a kill in recovery", kills.in_recovery),
        ("a put without an answer", tally.puts_unknown),
        ("a cancel that was in time", tally.cancelled),
        ("a cancel that was too late", tally.told_delivered),
        ("a timer that fired", tally.fired),
        ("a put with a level", tally.leveled),
        ("an ack", tally.acked),
        ("a message that was given back", tally.nacked),
        ("a dead letter that was redriven", tally.redriven),
        ("a message that came again", tally.redelivered),
        ("a second segment", segments - 1),
    ];
    for (what, count) in happened.into_iter().filter(|_| rounds >= ROUNDS) {
        assert!(count > 0, "this never happened: {what}");
    }
}

/// Asynchronous flushes answer before the disk has synced. A power cut may cost some of it; the end of
/// the process may not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_with_asynchronous_flushes_it_loses_nothing_either() {
    let mut run = Run::new(WAIT, &["--flush", "async", "--flush-interval", "200ms"]);
    for _ in 0..4 {
        run.live_and_be_killed(SOON).await;
    }
    run.be_killed_in_recovery().await;
    let life = run.start().await;
    check(&run.audit(&life, "auditor", Far::Cancel).await);
}

/// Only the log and the key are the truth: all else is built again from them, and nobody can tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_derived_files_it_gives_the_same_answers() {
    let mut run = Run::new(WAIT, &[]);
    for _ in 0..3 {
        run.live_and_be_killed(SOON).await;
    }
    let life = run.start().await;
    let audited_from = run.ledger.now();
    check(&run.audit(&life, "before", Far::Leave).await);
    let found = |run: &Run, auditor| run.ledger.read(|entries| Audit::of(entries, auditor).found());
    let before = found(&run, "before");
    // These fire after the files are gone.
    let mut client = Client::new(life.address);
    for delay in 0..100 {
        run.load.put(&mut client, TOPICS[0], Asked::After(1000 + 10 * delay)).await;
    }
    life.server.kill();
    let removed = remove_derived(&run.scratch.data());
    assert!(removed >= 5, "queues, settled bits, timers and two checkpoints: only {removed} found");

    let life = run.start().await;
    // What the groups have acked does not come again; what they have not, does.
    check(&run.audit(&life, "after", Far::Leave).await);
    let after = found(&run, "after");
    for (place, message) in &before {
        assert_eq!(after.get(place), Some(message), "{place:?}");
    }
    let new: BTreeMap<_, _> =
        after.iter().filter(|(place, _)| !before.contains_key(place)).collect();
    assert!(new.len() >= 100, "only {} have fired since", new.len());
    let early = new.values().find(|message| message.fired_at.is_none_or(|at| at < audited_from));
    assert_eq!(early, None, "this was there before, and the first audit did not find it");
}

/// SIGTERM is not a kill: what is under way is answered, and nobody waits for a long poll to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn told_to_stop_under_load_it_answers_long_polls_and_ends_in_order_within_ten_seconds() {
    const POLLS: usize = 10;
    let mut run = Run::new(0, &["--max-waiting-receives", "10"]);
    let mut life = run.start().await;
    let mut client = Client::new(life.address);
    run.load.put(&mut client, "quiet", Asked::After(60_000)).await;
    let wanted = Wanted { topic: "quiet", max: 1, wait: 30_000, invisible_for: 1000 };
    let mut polls = JoinSet::new();
    for _ in 0..POLLS {
        let mut client = Client::new(life.address);
        polls.spawn(async move {
            loop {
                // The one that asks whether all wait may be in the way.
                match wire::receive(&mut client, "sleepers", wanted).await {
                    Outcome::Refused(why) if why == "TOO_MANY_WAITING" => {}
                    outcome => return outcome,
                }
            }
        });
    }
    // One more is refused as soon as all of them wait.
    let one_more = Wanted { wait: 1, ..wanted };
    let refused = async {
        while !matches!(
            wire::receive(&mut client, "sleepers", one_more).await,
            Outcome::Refused(why) if why == "TOO_MANY_WAITING"
        ) {}
    };
    tokio::time::timeout(Duration::from_secs(10), refused).await.expect("ten polls wait");

    let mut running = run.load.start(life.address);
    run.keep_up(&mut running, Duration::from_millis(300)).await;
    life.server.terminate();
    let ended = tokio::time::timeout(Duration::from_secs(10), life.server.ended()).await;
    let status = ended.expect("it ends within ten seconds");
    assert_eq!(status.code(), Some(0), "{}", run.scratch.logged());
    run.load.stop(running).await;
    while let Some(poll) = polls.join_next().await {
        match poll.expect("a poll does not panic") {
            Outcome::Ok(messages) => assert!(messages.is_empty(), "{messages:?}"),
            outcome => panic!("a waiting receive was answered {outcome:?}"),
        }
    }

    let life = run.start().await;
    let report = run.audit(&life, "auditor", Far::Cancel).await;
    check(&report);
    assert!(report.tally.puts_ok > 10, "that was no load");
}

/// Starts a server that is expected to refuse, and answers how it ended and what it said.
async fn refusal(scratch: &Scratch) -> (ExitStatus, String) {
    let said_before = scratch.logged().len();
    let mut server = Server::spawn(scratch, &[]);
    assert_eq!(server.ready().await, None, "it was to refuse");
    let status = server.ended().await;
    (status, scratch.logged().split_off(said_before))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_the_same_data_directory_is_refused_by_the_first_ones_number() {
    let mut run = Run::new(WAIT, &[]);
    let life = run.start().await;
    let refused = tokio::time::timeout(Duration::from_secs(60), refusal(&run.scratch)).await;
    let (status, said) = refused.expect("it is refused, and does not wait for the first one");
    assert_eq!(status.code(), DATA_DIRECTORY, "{said}");
    let holder = format!("process {}", life.server.pid());
    assert!(said.contains(&holder), "{said:?} does not name {holder}");
    let data = run.scratch.data().display().to_string();
    assert!(said.contains(&data), "{said:?} does not name {data}");
    // The first has not noticed, and its lock ends with it, however it ends.
    let mut client = Client::new(life.address);
    run.load.put(&mut client, TOPICS[0], Asked::Now).await;
    life.server.kill();
    let life = run.start().await;
    let report = run.audit(&life, "auditor", Far::Leave).await;
    check(&report);
    assert_eq!(report.tally.puts_ok, 1);
}

fn edit_key(data: &Path, change: fn(&mut Vec<u8>)) {
    let path = data.join("id.key");
    let mut key = std::fs::read(&path).expect("a data directory has a key");
    change(&mut key);
    std::fs::write(path, key).expect("the key can be written");
}

/// A directory with these files, where the data directory was.
fn in_place_of(data: &Path, files: &[(&str, &str)]) {
    std::fs::remove_dir_all(data).expect("the server is down");
    std::fs::create_dir(data).expect("there is nothing of that name");
    for (name, text) in files {
        std::fs::write(data.join(name), text).expect("the directory can be written");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_or_damaged_data_directory_is_refused_by_name_and_left_as_it_is() {
    type Harm = fn(&Path);
    let cases: [(&str, &[&str], Harm); 7] = [
        ("a foreign file", &["thesis.doc", "not a Horolog data directory"], |data| {
            in_place_of(data, &[("thesis.doc", "chapter one")]);
        }),
        ("another program's directory", &["CURRENT", "not a Horolog data directory"], |data| {
            in_place_of(data, &[("CURRENT", "MANIFEST-000001"), ("LOCK", "theirs")]);
        }),
        ("a log without its key", &["id.key", "backup"], |data| {
            std::fs::remove_file(data.join("id.key")).unwrap();
        }),
        ("a key that is short", &["id.key", "its length is wrong"], |data| {
            edit_key(data, |key| key.truncate(63));
        }),
        ("a key with a flipped bit", &["id.key", "its crc is wrong"], |data| {
            edit_key(data, |key| key[20] ^= 1);
        }),
        ("a key that is something else", &["id.key", "does not begin as one"], |data| {
            edit_key(data, |key| key.fill(b'x'));
        }),
        ("a key of a newer version", &["format 9", "newer version"], |data| {
            edit_key(data, |key| key[8] = 9);
        }),
    ];
    for (case, words, harm) in cases {
        let mut run = Run::new(WAIT, &[]);
        let life = run.start().await;
        let mut client = Client::new(life.address);
        run.load.put(&mut client, TOPICS[0], Asked::Now).await;
        life.server.kill();
        let data = run.scratch.data();
        harm(&data);
        let before = tree(&data);
        let (status, said) = refusal(&run.scratch).await;
        assert_eq!(status.code(), DATA_DIRECTORY, "{case}: {said}");
        for word in words.iter().chain(&[&*data.display().to_string()]) {
            assert!(said.contains(word), "{case}: {said:?} does not say {word:?}");
        }
        let after = tree(&data);
        let names = |tree: &BTreeMap<_, _>| tree.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&after), names(&before), "{case}");
        for (path, bytes) in before {
            assert!(after[&path] == bytes, "{case}: {} was changed", path.display());
        }
    }
}
