//! A minute of ten times what the server can sustain, over ten thousand connections, with clients among them
//! that dawdle, wait, and come when there is no room: what it costs in memory, what is refused, and whether
//! everything that was acknowledged is there.
//!
//! Arrivals are due by a clock and not by answers; each goes to the next connection that is free. So all
//! connections have a request under way all the time, and what no connection was free for is told, too.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::Request;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use bytes::Bytes;
use horolog::client::Client;
use horolog::load::{Load, Until, raw_put, run};
use http_body_util::Full;
use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::process::{Process, Watch};
use crate::table::{Figure, Verdict};
use crate::{AnyError, clock, data_directory, pause};

const CONNECTIONS: u64 = 10_000;
const TIMES: u64 = 10;
const SIZE: usize = 256;
const SUSTAINED: usize = 256;
const PROBE: Duration = Duration::from_secs(5);
/// Clients whose heads never come to an end, and such as wait for a message that does not come.
const DAWDLING: usize = 100;
const WAITING: usize = 100;
const SETTINGS: [&str; 8] = [
    "--max-connections",
    "10250",
    "--max-queued-appends",
    "2000",
    "--max-waiting-receives",
    "50",
    "--header-timeout",
    "2s",
];
const MEMORY_LIMIT_MB: u64 = 1000;
const TOPIC: &str = "overload";

/// What became of the arrivals.
#[derive(Debug, Default)]
struct Told {
    acknowledged: Vec<u64>,
    refused: Vec<u64>,
    by_status: BTreeMap<u16, u64>,
    /// Connections that ended without an answer, by how.
    unknown: BTreeMap<String, u64>,
    /// Refusals that do not say when to come again.
    without_retry_after: u64,
}

impl Told {
    fn add(&mut self, other: Self) {
        self.acknowledged.extend(other.acknowledged);
        self.refused.extend(other.refused);
        for (status, count) in other.by_status {
            *self.by_status.entry(status).or_default() += count;
        }
        for (how, count) in other.unknown {
            *self.unknown.entry(how).or_default() += count;
        }
        self.without_retry_after += other.without_retry_after;
    }
}

/// When arrivals are due, and until when.
#[derive(Clone, Debug)]
struct Schedule {
    rate: u64,
    start: Duration,
    length: Duration,
    next: Arc<AtomicU64>,
}

pub(crate) async fn take(seconds: u64) -> Result<Vec<Figure>, AnyError> {
    allow_many_files()?;
    let data = data_directory()?;
    let horolog = Process::horolog_with(data.path(), &SETTINGS)?;
    let address = horolog.address;
    let sustained = sustained(address).await?;
    let before = horolog.memory_kib("RssAnon")?;

    let schedule = Schedule {
        rate: sustained * TIMES,
        start: clock().now().monotonic,
        length: Duration::from_secs(seconds),
        next: Arc::default(),
    };
    let others = Arc::new(Mutex::new(BTreeMap::new()));
    let mut hostile = JoinSet::new();
    for _ in 0..DAWDLING {
        hostile.spawn(dawdle(address, Arc::clone(&others)));
    }
    for _ in 0..WAITING {
        hostile.spawn(wait(address, Arc::clone(&others)));
    }
    let mut producers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        producers.spawn(produce(address, schedule.clone()));
    }
    let (mut told, mut highest) = (Told::default(), before);
    loop {
        tokio::select! {
            ended = producers.join_next() => match ended {
                Some(part) => told.add(part?),
                None => break,
            },
            () = pause(250) => {
                hostile.spawn(come_late(address, Arc::clone(&others)));
                highest = highest.max(horolog.memory_kib("RssAnon")?);
            }
        }
    }
    hostile.shutdown().await;
    let mut watch = Watch::new(&horolog);
    while watch.sum("horolog_connections ").await? > 1.0
        || watch.sum("horolog_queued_appends ").await? > 0.0
    {
        pause(5).await;
    }
    let after = horolog.memory_kib("RssAnon")?;
    let counted = refusals(&mut watch).await?;
    let again = self::sustained(address).await?;
    let found = read_all(address, told.acknowledged.len()).await?;
    let lost = told.acknowledged.iter().filter(|number| !found.contains_key(number)).count();
    let ghosts = told.refused.iter().filter(|number| found.contains_key(number)).count();
    let twice = found.values().filter(|&&count| count > 1).count();

    let offered = schedule.rate * seconds;
    let sent = schedule.next.load(Ordering::Relaxed).min(offered);
    let megabytes = |kib: u64| format!("{} MB", kib * 1024 / 1_000_000);
    let late = others.lock().clone();
    let bounded = highest * 1024 / 1_000_000 < MEMORY_LIMIT_MB;
    Ok(vec![
        Figure::new(
            "settings",
            SETTINGS.chunks(2).map(|pair| pair.join(" ")).collect::<Vec<_>>().join("\n"),
        ),
        Figure::new("sustained before", format!("{sustained} /s of {SIZE} bytes")),
        Figure::new("offered", format!("{} /s for {seconds} s: {offered}", schedule.rate)),
        Figure::new("of them sent by 10,000 connections", sent.to_string()),
        Figure::new("puts answered, by status", format!("{:?}", told.by_status)),
        Figure::new("connections that failed, by how", {
            let lines = told.unknown.iter().map(|(how, count)| format!("{count}: {how}"));
            lines.collect::<Vec<_>>().join("\n")
        }),
        Figure::new("429 and 503 without Retry-After", told.without_retry_after.to_string())
            .target("0", Verdict::of(told.without_retry_after == 0)),
        Figure::new("others, by what they were and were told", {
            let lines = late.iter().map(|(who, count)| format!("{who}: {count}"));
            lines.collect::<Vec<_>>().join("\n")
        }),
        Figure::new("refused, by limit", counted),
        Figure::new("RssAnon before", megabytes(before)),
        Figure::new("RssAnon at most", megabytes(highest))
            .target("under 1000 MB", Verdict::of(bounded)),
        Figure::new("RssAnon after", megabytes(after)),
        Figure::new("sustained after", format!("{again} /s"))
            .target("at least 0.8 of before", Verdict::of(again * 10 >= sustained * 8)),
        Figure::new("acknowledged", told.acknowledged.len().to_string()),
        Figure::new("of them lost", lost.to_string()).target("0", Verdict::of(lost == 0)),
        Figure::new("refused, and there all the same", ghosts.to_string())
            .target("0", Verdict::of(ghosts == 0)),
        Figure::new("there twice", twice.to_string()).target("0", Verdict::of(twice == 0)),
    ])
}

/// How it failed, without the address.
fn error_kind(error: &horolog::client::ClientError) -> String {
    let text = error.to_string();
    match text.split_once("127.0.0.1:") {
        Some((before, after)) => {
            let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}the server{after}")
        }
        None => text,
    }
}

/// A connection is an open file, here and in the server, which inherits the limit.
fn allow_many_files() -> Result<(), AnyError> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    match limit.maximum {
        Some(most) if most < CONNECTIONS + 1000 => {
            Err(format!("{most} open files are allowed, which is too few").into())
        }
        _ => Ok(()),
    }
}

/// Messages a second by clients that wait for their answers.
async fn sustained(address: SocketAddr) -> Result<u64, AnyError> {
    let body = Bytes::from(vec![b'x'; SIZE]);
    let load = Load {
        address,
        connections: SUSTAINED,
        until: Until::Elapsed(PROBE),
        make: Arc::new(move |_| raw_put("sustained", body.clone())),
    };
    let outcome = run(&load, clock()).await?;
    Ok(outcome.succeeded / PROBE.as_secs())
}

fn put(number: u64) -> Request<Full<Bytes>> {
    let body = format!("{number:0SIZE$}");
    Request::post(format!("/v1/topics/{TOPIC}/messages"))
        .header(CONTENT_TYPE, "text/plain")
        .body(Full::from(body))
        .expect("this makes a request")
}

/// Takes the next arrival when the last one is answered, and waits until it is due.
async fn produce(address: SocketAddr, schedule: Schedule) -> Told {
    let clock = clock();
    let mut client = Client::new(address);
    let mut told = Told::default();
    loop {
        let passed = clock.now().monotonic.saturating_sub(schedule.start);
        let number = schedule.next.fetch_add(1, Ordering::Relaxed);
        let due = Duration::from_micros(number * 1_000_000 / schedule.rate);
        if passed >= schedule.length || due >= schedule.length {
            return told;
        }
        if let Some(early) = due.checked_sub(passed) {
            pause(u64::try_from(early.as_millis()).unwrap_or(u64::MAX)).await;
        }
        let answer = match client.send(put(number)).await {
            Ok(answer) => answer,
            Err(error) => {
                *told.unknown.entry(error_kind(&error)).or_default() += 1;
                client = Client::new(address);
                continue;
            }
        };
        let status = answer.status.as_u16();
        *told.by_status.entry(status).or_default() += 1;
        if answer.status.is_success() {
            told.acknowledged.push(number);
        } else {
            told.refused.push(number);
            let says_when = answer.headers.contains_key(RETRY_AFTER);
            told.without_retry_after += u64::from(matches!(status, 429 | 503) && !says_when);
        }
    }
}

type Counts = Arc<Mutex<BTreeMap<String, u64>>>;

fn note(counts: &Counts, who: &str, answer: &[u8]) {
    let answer = String::from_utf8_lossy(answer);
    let status = answer.split(' ').nth(1).unwrap_or("nothing").to_owned();
    *counts.lock().entry(format!("{who} {status}")).or_default() += 1;
}

/// Sends heads that never come to an end.
async fn dawdle(address: SocketAddr, counts: Counts) {
    loop {
        let Ok(mut stream) = TcpStream::connect(address).await else { continue };
        let mut answer = Vec::new();
        if stream.write_all(b"GET /livez HTTP/1.1\r\nX-").await.is_ok() {
            let _ = stream.read_to_end(&mut answer).await;
        }
        note(&counts, "slow heads", &answer);
    }
}

/// Waits for a message that does not come.
async fn wait(address: SocketAddr, counts: Counts) {
    let mut client = Client::new(address);
    loop {
        let wanted = json!({ "topic": "nothing", "wait": "10s" });
        let answer = client.post("/v1/groups/idle/receive", &wanted).await;
        let status = answer.map_or_else(|_| "nothing".to_owned(), |a| a.status.as_str().to_owned());
        note(&counts, "long polls", format!("HTTP {status}").as_bytes());
        pause(1000).await;
    }
}

/// Comes all at once, with many others, when there may be no room.
async fn come_late(address: SocketAddr, counts: Counts) {
    let mut all = JoinSet::new();
    for _ in 0..100 {
        all.spawn(async move {
            let Ok(mut stream) = TcpStream::connect(address).await else { return Vec::new() };
            let request = b"GET /livez HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
            let mut answer = Vec::new();
            if stream.write_all(request).await.is_ok() {
                let _ = stream.read_to_end(&mut answer).await;
            }
            answer
        });
    }
    while let Some(answer) = all.join_next().await {
        note(&counts, "late connections", &answer.unwrap_or_default());
    }
}

async fn refusals(watch: &mut Watch) -> Result<String, AnyError> {
    let mut text = Vec::new();
    for limit in ["connections", "header_time", "waiting_receives", "queued_appends"] {
        let count = watch.sum(&format!("horolog_refused_total{{limit=\"{limit}\"}}")).await?;
        text.push(format!("{limit} {count:.0}"));
    }
    Ok(text.join("\n"))
}

#[derive(Deserialize)]
struct Received {
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    body_text: String,
    receipt_handle: String,
}

/// How often each number is on the topic.
async fn read_all(address: SocketAddr, least: usize) -> Result<BTreeMap<u64, u64>, AnyError> {
    let mut client = Client::new(address);
    let mut found = BTreeMap::new();
    loop {
        // Everything is readable once a receive finds nothing, as long as nothing is out.
        let wait = if found.len() < least { "10s" } else { "0s" };
        let wanted = json!({ "topic": TOPIC, "max": 256, "wait": wait });
        let answer = client.post("/v1/groups/audit/receive", &wanted).await?;
        let Received { messages } = answer.json()?;
        if messages.is_empty() {
            return Ok(found);
        }
        let handles: Vec<&str> = messages.iter().map(|m| m.receipt_handle.as_str()).collect();
        client.post("/v1/groups/audit/ack", &json!({ "receiptHandles": handles })).await?;
        for message in &messages {
            *found.entry(message.body_text.parse()?).or_default() += 1;
        }
    }
}
