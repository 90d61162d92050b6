//! Commits of transactions, and messages of all 18 delay levels at once, against plain durable puts, in turns.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use horolog::client::Answer;
use horolog::load::{Load, Until, run};
use http_body_util::Full;
use serde_json::Value;

use crate::fan::fan;
use crate::process::Process;
use crate::rounds::{float, median};
use crate::table::{Figure, Verdict};
use crate::{AnyError, clock, data_directory, disk, put};

const CONNECTIONS: usize = 256;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(3);
const TRANSACTIONS: u64 = 20_000;
const LEVELS: u64 = 18;
const SIZE: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Round {
    put: f64,
    half: f64,
    commit: f64,
    levels: f64,
    sync_us: u64,
}

pub(crate) async fn take() -> Result<Vec<Figure>, AnyError> {
    let (data, probe) = (data_directory()?, data_directory()?);
    let horolog = Process::horolog(data.path())?;
    let address = horolog.address;
    put::send(address, CONNECTIONS, ROUND).await?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let sync_us = disk::sync_us(probe.path(), &*clock())?;
        let put = put::send(address, CONNECTIONS, ROUND).await?.rate();
        let halves = (0..TRANSACTIONS).collect();
        let prepared = fan(address, CONNECTIONS, halves, |_| half(), transaction).await?;
        let ended = fan(address, CONNECTIONS, prepared.answers, commit, |_| Ok(())).await?;
        let levels = levels(address).await?;
        rounds.push(Round { put, half: prepared.rate, commit: ended.rate, levels, sync_us });
    }
    let of = |of: fn(&Round) -> f64| median(rounds.iter().map(of));
    let (commit, levels) =
        (of(|round| round.commit / round.put), of(|round| round.levels / round.put));
    let share = |ratio: f64| format!("{ratio:.2}");
    Ok(vec![
        Figure::new("settings", {
            format!(
                "{CONNECTIONS} connections, {SIZE} bytes, flush = sync, {ROUNDS} rounds in turns"
            )
        }),
        Figure::new("fdatasync of 8 KiB alone, p50", {
            format!("{:.0} us", of(|round| float(round.sync_us)))
        }),
        Figure::new("durable put", format!("{:.0} /s", of(|round| round.put))),
        Figure::new("half messages prepared", format!("{:.0} /s", of(|round| round.half))),
        Figure::new("committed", format!("{:.0} /s", of(|round| round.commit))),
        Figure::new("put with a level, all 18 in turn", {
            format!("{:.0} /s", of(|round| round.levels))
        }),
        Figure::new("commit / put, median of the rounds", share(commit))
            .target("at least 0.80", Verdict::of(commit >= 0.8)),
        Figure::new("levels / put, median of the rounds", share(levels))
            .target("at least 0.80", Verdict::of(levels >= 0.8)),
    ])
}

fn half() -> Request<Full<Bytes>> {
    let body = format!(
        r#"{{"bodyText":"{}","producerGroup":"bench","checkAfter":"1h"}}"#,
        "x".repeat(SIZE)
    );
    Request::post("/v1/topics/bench/transactions")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body.into()))
        .expect("the parts of the request are well formed")
}

fn transaction(answer: &Answer) -> Result<String, AnyError> {
    let answer: Value = answer.json()?;
    Ok(answer["transactionId"].as_str().ok_or("a half message has no id")?.to_owned())
}

fn commit(id: &String) -> Request<Full<Bytes>> {
    Request::post(format!("/v1/transactions/{id}/commit"))
        .body(Full::default())
        .expect("an id makes a path")
}

async fn levels(address: SocketAddr) -> Result<f64, AnyError> {
    let body = Bytes::from(vec![b'x'; SIZE]);
    let load = Load {
        address,
        connections: CONNECTIONS,
        until: Until::Elapsed(ROUND),
        make: std::sync::Arc::new(move |number| {
            let mut request = horolog::load::raw_put("bench", body.clone());
            request.headers_mut().insert("horolog-delay-level", (number % LEVELS + 1).into());
            request
        }),
    };
    let outcome = run(&load, clock()).await?;
    if outcome.refused > 0 {
        return Err(format!("{} puts with a level were refused", outcome.refused).into());
    }
    Ok(outcome.rate())
}
