//! Flushes that fail, and flushes that are slow.
//!
//! What a failed fdatasync leaves on the disk nobody knows: the kernel may have dropped the pages, and a second call
//! would answer as if it had not. So the server answers nobody any more, ends with a code of its own, and syncs that
//! file never again; what was acknowledged before is there at the next start.
//!
//! ```text
//! HOROLOG_FAILED_FLUSHES=100 cargo test --release --test crash failed_flush -- --nocapture
//! HOROLOG_SLOW_FLUSHES=1 cargo test --release --test crash slow_flushes -- --nocapture
//! ```

use std::time::Duration;

use axum::http::Method;
use horolog::client::Client;
use timerlog::disk::sim::Random;

use crate::check;
use crate::disks::skipped;
use crate::ledger::Asked;
use crate::load::TOPICS;
use crate::run::{self, Far, Life, Run};
use crate::server::{Killed, Server};
use crate::traced::{Tracer, file_of};
use crate::wire;

/// Failed flushes in one run of the test, one a life.
const FAILURES: u64 = 4;
/// The exit code of a disk that failed, and of a data directory that cannot be opened.
const DISK: i32 = 5;
const DATA_DIRECTORY: i32 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failed_flush_it_answers_nobody_ends_and_has_lost_nothing_it_acknowledged() {
    let mut run = Run::new(200, &[]);
    let life = run.start().await;
    life.server.kill();
    let mut random = Random::new(run.scratch.seed());
    let failures = run::number("HOROLOG_FAILED_FLUSHES").unwrap_or(FAILURES);
    let mut while_running = 0;
    for round in 0..failures {
        // The first of them fails while the server starts.
        let nth = if round == 0 { 1 } else { 2 + random.below(300) };
        let injection = format!("fdatasync:error=EIO:when={nth}");
        let tracer = match Tracer::new(&run.scratch, &injection) {
            Ok(tracer) => tracer,
            Err(why) => return skipped(&why),
        };
        let mut server = Server::spawn_traced(&run.scratch, &tracer);
        let ready = server.ready().await;
        if let Some(address) = ready {
            let running = run.load.start(address);
            run.load.stop(running).await;
            while_running += 1;
        }
        let status = server.ended().await;
        let expected = if ready.is_some() { DISK } else { DATA_DIRECTORY };
        assert_eq!(status.code(), Some(expected), "flush {nth}: {}", run.scratch.logged());
        no_second_sync(&tracer, nth);
    }
    println!("{failures} flushes failed, {while_running} of them under load");
    assert!(while_running > 0, "no flush has failed under load");
    let life = run.start().await;
    check(&run.audit(&life, "auditor", Far::Cancel).await);
    life.server.kill();
}

/// After the call that failed there is none for the same file.
fn no_second_sync(tracer: &Tracer, nth: u64) {
    let calls = tracer.calls();
    let failed = calls.iter().position(|call| call.contains("EIO"));
    let failed = failed.unwrap_or_else(|| panic!("flush {nth} has not failed: {calls:#?}"));
    let file = file_of(&calls[failed]).expect("a traced call names its file");
    let again = calls[failed + 1..].iter().find(|call| file_of(call) == Some(file));
    assert_eq!(again, None, "{file} was synced again after {}", calls[failed]);
}

/// Records that were flushed, and in how many flushes.
async fn grouped(client: &mut Client) -> (u64, u64) {
    let records = wire::figure(client, "horolog_group_records_sum").await;
    (records, wire::figure(client, "horolog_group_records_count").await)
}

/// How long a flush takes, in milliseconds.
fn delays() -> &'static [u64] {
    if run::number("HOROLOG_SLOW_FLUSHES").is_some() { &[50, 1000] } else { &[50] }
}

/// Each flush takes long, and so covers all that came meanwhile; nobody is told before it is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_flushes_are_shared_and_cost_nothing_but_time() {
    let mut run = Run::new(200, &[]);
    let life = run.start().await;
    life.server.kill();
    for &delay in delays() {
        // A start of what is there needs fewer of any thread.
        let when = if delay < 1000 { "" } else { ":when=20+" };
        let injection = format!("fdatasync:delay_enter={}{when}", delay * 1000);
        let tracer = match Tracer::new(&run.scratch, &injection) {
            Ok(tracer) => tracer,
            Err(why) => return skipped(&why),
        };
        let mut server = Server::spawn_traced(&run.scratch, &tracer);
        let address = server.ready().await.expect("it starts, slowly");
        let mut client = Client::new(address);
        let mut running = run.load.start(address);
        // By then the flushes are over that are not delayed.
        run.keep_up(&mut running, Duration::from_secs(2)).await;
        let before = grouped(&mut client).await;
        run.keep_up(&mut running, Duration::from_millis(2000 + 3 * delay)).await;
        let after = grouped(&mut client).await;
        let (records, flushes) = (after.0 - before.0, after.1 - before.1);
        assert_eq!(server.kill(), Killed::Running, "{}", run.scratch.logged());
        run.load.stop(running).await;
        println!("{records} records in {flushes} flushes of {delay} ms");
        assert!(
            flushes > 0 && records > 2 * flushes,
            "{records} in {flushes} flushes: they are not shared"
        );
    }
    let life = run.start().await;
    check(&run.audit(&life, "auditor", Far::Cancel).await);
    life.server.kill();
}

/// A start that cannot read what is there says which file, and changes nothing: the next one has it all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_fails_ends_the_start_and_the_next_one_has_everything() {
    let mut run = Run::new(200, &[]);
    let Life { server, address } = run.start().await;
    let mut running = run.load.start(address);
    run.keep_up(&mut running, Duration::from_secs(2)).await;
    assert_eq!(server.kill(), Killed::Running);
    run.load.stop(running).await;
    let (mut ended, mut started) = (0, 0);
    // The first ones are the loader's, of the program itself.
    for nth in [8, 12, 16, 24, 32, 48, 64, 96, 128, 256] {
        let injection = format!("pread64:error=EIO:when={nth}");
        let tracer = match Tracer::new(&run.scratch, &injection) {
            Ok(tracer) => tracer,
            Err(why) => return skipped(&why),
        };
        let mut server = Server::spawn_traced(&run.scratch, &tracer);
        if server.ready().await.is_some() {
            started += 1;
            server.kill();
            continue;
        }
        let status = server.ended().await;
        assert_eq!(status.code(), Some(DATA_DIRECTORY), "{nth}: {}", run.scratch.logged());
        let calls = tracer.calls();
        let failed = calls.iter().find(|call| call.contains("EIO")).expect("a read has failed");
        let file = failed.split(['<', '>']).nth(1).expect("a traced call names its file");
        let name = file.rsplit('/').next().unwrap_or(file);
        let logged = run.scratch.logged();
        assert!(logged.contains(name) && logged.contains("Input/output"), "{file}: {logged}");
        ended += 1;
    }
    println!("{ended} starts ended at a read that failed, {started} needed fewer reads");
    assert!(ended > 2, "{ended} starts ended, {started} did not");
    let life = run.start().await;
    check(&run.audit(&life, "auditor", Far::Cancel).await);
    life.server.kill();
}

/// A disk that hangs is told of, by name, before anybody has to guess.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_flush_hangs_readiness_says_so() {
    let mut run = Run::new(200, &[]);
    let life = run.start().await;
    life.server.kill();
    // A start of what is there needs fewer of any thread.
    let tracer = match Tracer::new(&run.scratch, "fdatasync:delay_enter=8000000:when=20+") {
        Ok(tracer) => tracer,
        Err(why) => return skipped(&why),
    };
    let mut server = Server::spawn_traced(&run.scratch, &tracer);
    let address = server.ready().await.expect("it starts");
    let running = run.load.start(address);
    let mut client = Client::new(address);
    let said = async {
        loop {
            let answer = client.call(Method::GET, "/readyz?verbose").await.expect("it is up");
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            if text.contains("has been flushing for") {
                return (answer.status, text);
            }
        }
    };
    let said = tokio::time::timeout(Duration::from_secs(60), said).await;
    let (status, said) = said.expect("a flush of eight seconds is told of");
    assert!(status.is_success() && said.contains("[-] disk "), "{status}: {said}");
    assert_eq!(server.kill(), Killed::Running, "{}", run.scratch.logged());
    run.load.stop(running).await;
    let life = run.start().await;
    check(&run.audit(&life, "auditor", Far::Cancel).await);
    life.server.kill();
}

/// A disk that has no room for a file, for a while: some of it is refused, nothing of it is forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_find_no_room_are_made_later_and_nothing_is_lost_meanwhile() {
    let mut run = Run::new(200, &[]);
    let life = run.start().await;
    life.server.kill();
    let (mut refused, mut started) = (0, 0);
    for when in ["1", "1..3", "2..6", "1+"] {
        let injection = format!("fallocate:error=ENOSPC:when={when}");
        let tracer = match Tracer::new(&run.scratch, &injection) {
            Ok(tracer) => tracer,
            Err(why) => return skipped(&why),
        };
        let mut server = Server::spawn_traced(&run.scratch, &tracer);
        if let Some(address) = server.ready().await {
            started += 1;
            let mut running = run.load.start(address);
            run.keep_up(&mut running, Duration::from_secs(2)).await;
            assert_eq!(server.kill(), Killed::Running, "{}", run.scratch.logged());
            run.load.stop(running).await;
        } else {
            let status = server.ended().await;
            assert_eq!(status.code(), Some(DATA_DIRECTORY), "{when}: {}", run.scratch.logged());
        }
        refused += tracer.calls().iter().filter(|call| call.contains("ENOSPC")).count();
    }
    println!("{refused} files found no room, in {started} lives");
    assert!(started > 0 && refused > 4, "{refused} refusals in {started} lives");
    let Life { server, address } = run.start().await;
    let mut client = Client::new(address);
    run.load.put(&mut client, TOPICS[0], Asked::After(10)).await;
    check(&run.audit(&Life { server, address }, "auditor", Far::Cancel).await);
}
