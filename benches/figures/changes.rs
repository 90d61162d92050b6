//! Cancels by id and by key with many pending, against durable puts of the same kind; and what the server does when
//! nothing is to be done.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use horolog::client::{Answer, Client};
use horolog::load::{Load, Until, run};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::fan::fan;
use crate::process::{Process, Watch};
use crate::rounds::{float, median};
use crate::table::{Figure, Verdict};
use crate::{AnyError, clock, data_directory, disk, pause};

/// Pending messages, when no number says otherwise: `-- changes 10000000` takes ten million.
pub(crate) const PENDING: u64 = 1_000_000;
const A_BATCH: u64 = 1000;
const CONNECTIONS: usize = 256;
const ROUNDS: u64 = 5;
const A_ROUND: u64 = 20_000;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
const POLLS: usize = 100;
const IDLE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
struct Round {
    put: f64,
    by_id: f64,
    put_key: f64,
    by_key: f64,
    sync_us: u64,
}

pub(crate) async fn take(pending: u64) -> Result<Vec<Figure>, AnyError> {
    let (data, probe) = (data_directory()?, data_directory()?);
    let horolog = Process::horolog(data.path())?;
    let address = horolog.address;
    let first_ms = clock().now().wall.as_millis() + HOUR_MS;
    let load = Load {
        address,
        connections: 4,
        until: Until::Requests(pending / A_BATCH),
        make: Arc::new(move |number| batch(number, first_ms, pending)),
    };
    let handed_in = run(&load, clock()).await?;
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let sync_us = disk::sync_us(probe.path(), &*clock())?;
        let numbers: Vec<u64> = (round * A_ROUND..(round + 1) * A_ROUND).collect();
        let put = fan(address, CONNECTIONS, numbers.clone(), |_| plain_put(), id).await?;
        let by_id = fan(address, CONNECTIONS, put.answers, cancel, |_| Ok(())).await?;
        let put_key = fan(address, CONNECTIONS, numbers.clone(), put_key, |_| Ok(())).await?;
        let by_key = fan(address, CONNECTIONS, numbers, cancel_key, |_| Ok(())).await?;
        let (put, by_id, put_key, by_key) = (put.rate, by_id.rate, put_key.rate, by_key.rate);
        rounds.push(Round { put, by_id, put_key, by_key, sync_us });
    }
    let left = Watch::new(&horolog).sum("horolog_messages_pending").await?;
    let busy = idle(&horolog).await?;
    let of = |of: fn(&Round) -> f64| median(rounds.iter().map(of));
    let (by_id, by_key) =
        (of(|round| round.by_id / round.put), of(|round| round.by_key / round.put_key));
    Ok(vec![
        Figure::new("settings", {
            format!(
                "{CONNECTIONS} connections, flush = sync, {ROUNDS} rounds of {A_ROUND} in turns"
            )
        }),
        Figure::new("pending", format!("{left:.0} over a day"))
            .target("what was handed in", Verdict::of(format!("{left:.0}") == pending.to_string())),
        Figure::new("handed in, 1000 a batch, 4 connections", {
            format!("{:.0} /s", handed_in.rate() * float(A_BATCH))
        }),
        Figure::new("fdatasync of 8 KiB alone, p50", {
            format!("{:.0} us", of(|round| float(round.sync_us)))
        }),
        Figure::new("put for later, cancelled by id", {
            format!("{:.0} /s, {:.0} /s", of(|round| round.put), of(|round| round.by_id))
        }),
        Figure::new("timer put, cancelled by key", {
            format!("{:.0} /s, {:.0} /s", of(|round| round.put_key), of(|round| round.by_key))
        }),
        Figure::new("cancel by id / put, median of the rounds", format!("{by_id:.2}"))
            .target("at least 1", Verdict::of(by_id >= 1.0)),
        Figure::new("cancel by key / timer put, median of the rounds", format!("{by_key:.2}"))
            .target("at least 1", Verdict::of(by_key >= 1.0)),
        Figure::new("RssAnon", format!("{} MB", horolog.memory_kib("RssAnon")? * 1024 / 1_000_000)),
        Figure::new("processor while idle, with 100 waiting receives", {
            format!("{:.2} % of a core", busy * 100.0)
        })
        .target("under 1 %", Verdict::of(busy < 0.01)),
    ])
}

/// The share of a core that the server takes while receives wait for what does not come.
async fn idle(horolog: &Process) -> Result<f64, AnyError> {
    let address = horolog.address;
    let mut polls = JoinSet::new();
    for number in 0..POLLS {
        polls.spawn(async move {
            let mut client = Client::new(address);
            let path = format!("/v1/groups/idle-{number}/receive");
            loop {
                let wanted = json!({ "topic": "quiet", "wait": "30s" });
                client.post(&path, &wanted).await?.json::<Value>()?;
            }
            #[expect(unreachable_code, reason = "it says what the task ends with")]
            Ok::<(), AnyError>(())
        });
    }
    // Until what the changes left to do is done: filing, merges, a checkpoint.
    pause(40_000).await;
    let clock = clock();
    let (before, start) = (horolog.processor_time()?, clock.now().monotonic);
    pause(u64::try_from(IDLE.as_millis())?).await;
    let took = horolog.processor_time()?.saturating_sub(before);
    let passed = clock.now().monotonic.saturating_sub(start);
    if let Some(ended) = polls.try_join_next() {
        ended??;
    }
    Ok(took.as_secs_f64() / passed.as_secs_f64())
}

fn batch(number: u64, first_ms: u64, pending: u64) -> Request<Full<Bytes>> {
    let mut lines = String::new();
    for place in number * A_BATCH..(number + 1) * A_BATCH {
        // A large odd stride visits the day in no order.
        let at = first_ms + place.wrapping_mul(736_339) % pending * DAY_MS / pending;
        // Writing to a string cannot fail.
        let _ = writeln!(lines, r#"{{"bodyText":"{place:128}","deliverAt":{at}}}"#);
    }
    Request::post("/v1/topics/pending/messages/batch")
        .header(CONTENT_TYPE, "application/x-ndjson")
        .body(Full::new(lines.into()))
        .expect("the parts of the request are well formed")
}

fn plain_put() -> Request<Full<Bytes>> {
    let mut request = horolog::load::raw_put("later", Bytes::from_static(&[b'x'; 128]));
    request.headers_mut().insert("horolog-delay", "12h".parse().expect("a header"));
    request
}

fn id(answer: &Answer) -> Result<String, AnyError> {
    let answer: Value = answer.json()?;
    Ok(answer["messageId"].as_str().ok_or("a message has no id")?.to_owned())
}

fn cancel(id: &String) -> Request<Full<Bytes>> {
    Request::delete(format!("/v1/messages/{id}")).body(Full::default()).expect("an id makes a path")
}

fn put_key(number: &u64) -> Request<Full<Bytes>> {
    let body = format!(r#"{{"bodyText":"{number:128}","delay":"12h"}}"#);
    Request::put(format!("/v1/topics/keyed/timers/order-{number}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body.into()))
        .expect("the parts of the request are well formed")
}

fn cancel_key(number: &u64) -> Request<Full<Bytes>> {
    Request::delete(format!("/v1/topics/keyed/timers/order-{number}"))
        .body(Full::default())
        .expect("a number makes a path")
}
