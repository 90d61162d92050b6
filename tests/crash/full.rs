//! A disk that fills up under load.
//!
//! New work is refused before what was accepted has no room. Here the disk is left without a byte twice: at first
//! the ballast makes way, and timers fire, are received, acknowledged and cancelled as before; then even that
//! room is taken, and all that is asked is that nothing breaks. When there is room again nobody has to help.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::Method;
use horolog::client::Client;

use crate::audit::Audit;
use crate::check;
use crate::consumer;
use crate::disks::{Disk, skipped};
use crate::ledger::{Asked, Cancelled, Entry, Outcome};
use crate::load::{self, TOPICS};
use crate::run::{Far, Life, Run};
use crate::wire::{self, Wanted};

/// Room for the 48 MiB of a TimerLog, the log, and the load of some seconds.
const SIZE: &str = "200m";
const SETTINGS: [&str; 2] = ["--disk-reserve", "32MiB"];
/// Timers that come due while the disk is full.
const TIMERS: u64 = 200;
const SLACK: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_new_work_is_refused_the_rest_goes_on_and_with_room_it_recovers_by_itself() {
    let disk = match Disk::in_memory(SIZE) {
        Ok(disk) => disk,
        Err(why) => return skipped(&why),
    };
    let mut run = Run::new(200, &SETTINGS);
    run.scratch.put_data(disk.path().join("data"));
    let life = run.start().await;
    let mut client = Client::new(life.address);
    let mut running = run.load.start(life.address);
    run.keep_up(&mut running, Duration::from_secs(2)).await;

    let due = run.put_timers(&mut client, 3000).await;
    let far = run.put_timers(&mut client, 600_000).await;
    disk.shrink();
    let filled_at = run.ledger.now();
    until("puts are refused", async || run.put_once(&mut client).await == *"STORAGE_FULL").await;
    println!("puts are refused {} ms after the disk was full", run.ledger.now() - filled_at);
    // A put meets the end of the disk itself; the look that tells of it comes at most a quarter of a second later.
    until("readiness says so", async || ready(&mut client).await.contains("[-] disk ")).await;
    assert!(wire::figure(&mut client, "horolog_disk_pressure").await >= 1);

    for &number in far.iter().take(20) {
        let id = run.id_of(number);
        let cancelled = load::cancel(&run.ledger, &mut client, number, &id).await;
        assert_eq!(cancelled, Outcome::Ok(Cancelled::Cancelled), "{}", run.scratch.logged());
    }
    run.receive_and_ack(&life, &due).await;
    println!("{TIMERS} timers were received and acknowledged on a full disk");

    // Nothing at all is left, not even what the ballast took.
    let taken = disk.fill("more");
    run.keep_up(&mut running, Duration::from_secs(3)).await;
    println!("{taken} bytes more were taken, and the server goes on");

    disk.empty("more");
    disk.remount(&format!("size={SIZE}")).expect("a tmpfs can grow");
    let emptied_at = run.ledger.now();
    until("puts are taken again", async || run.put_once(&mut client).await == *"ok").await;
    println!("puts are taken {} ms after there was room", run.ledger.now() - emptied_at);
    until("the ballast is there", async || disk.path().join("data/ballast").exists()).await;
    until("readiness is well", async || ready(&mut client).await.contains("[+] disk ok")).await;
    assert_eq!(wire::figure(&mut client, "horolog_disk_pressure").await, 0);
    run.keep_up(&mut running, Duration::from_secs(1)).await;
    life.server.kill();
    run.load.stop(running).await;

    let life = run.start().await;
    check(&run.audit(&life, "auditor", Far::Cancel).await);
    life.server.kill();
}

impl Run {
    /// Puts timers that are due in about `after` milliseconds; their numbers.
    async fn put_timers(&self, client: &mut Client, after: u64) -> Vec<u64> {
        let mut ids = BTreeSet::new();
        for delay in 0..TIMERS {
            let put = self.load.put(client, TOPICS[0], Asked::After(after + delay)).await;
            let Outcome::Ok(accepted) = put else { panic!("a put was answered {put:?}") };
            ids.insert(accepted.id);
        }
        self.ledger.read(|entries| {
            let puts = entries.iter().filter_map(|entry| match entry {
                Entry::Put(put) => Some((put.number, put.accepted()?)),
                _ => None,
            });
            puts.filter(|(_, accepted)| ids.contains(&accepted.id)).map(|put| put.0).collect()
        })
    }

    fn id_of(&self, number: u64) -> String {
        let id = self.ledger.read(|entries| {
            entries.iter().find_map(|entry| match entry {
                Entry::Put(put) if put.number == number => Some(put.accepted()?.id.clone()),
                _ => None,
            })
        });
        id.expect("it was accepted")
    }

    /// One put, and what it was answered: `ok` or a code.
    async fn put_once(&self, client: &mut Client) -> String {
        match self.load.put(client, TOPICS[0], Asked::Now).await {
            Outcome::Ok(_) => "ok".to_owned(),
            Outcome::Refused(why) => why,
            Outcome::Unknown => panic!("a put was not answered: {}", self.scratch.logged()),
        }
    }

    /// Reads as a group of its own until each of these was there, and acknowledges all.
    async fn receive_and_ack(&self, life: &Life, numbers: &[u64]) {
        let mut client = Client::new(life.address);
        let group = "on-a-full-disk";
        let mut missing: BTreeSet<u64> = numbers.iter().copied().collect();
        let all = async {
            while !missing.is_empty() {
                let wanted =
                    Wanted { topic: TOPICS[0], max: 256, wait: 100, invisible_for: 60_000 };
                let received = consumer::receive(&self.ledger, &mut client, group, wanted).await;
                let Outcome::Ok(held) = received else {
                    panic!("received {received:?}: {}", self.scratch.logged())
                };
                missing.retain(|number| held.iter().all(|held| held.number != *number));
                let handles: Vec<_> = held.iter().map(|held| held.handle.as_str()).collect();
                if handles.is_empty() {
                    continue;
                }
                let acked = wire::ack(&mut client, group, &handles).await;
                let refused = acked.iter().find(|outcome| **outcome != Outcome::Ok(()));
                assert_eq!(refused, None, "{}", self.scratch.logged());
            }
        };
        let in_time = tokio::time::timeout(SLACK, all).await;
        assert!(
            in_time.is_ok(),
            "{} timers did not come: {}",
            missing.len(),
            self.scratch.logged()
        );
        let audited = self.ledger.read(|entries| Audit::of(entries, group).found().len());
        assert!(audited >= numbers.len());
    }
}

/// Asks again and again; a server that never says so fails the test.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let asking = async { while !holds().await {} };
    assert!(tokio::time::timeout(SLACK, asking).await.is_ok(), "not in {SLACK:?}: {what}");
}

async fn ready(client: &mut Client) -> String {
    let answer = client.call(Method::GET, "/readyz?verbose").await.expect("the server is up");
    String::from_utf8_lossy(&answer.body).into_owned()
}
