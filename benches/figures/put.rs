//! Durable puts of 1 KiB from 256 connections, against an empty handler under the same load in the
//! same run, in turns, so that a slow minute of the machine is slow for both.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use horolog::load::{Load, Outcome, Until, raw_put, run};

use crate::process::Process;
use crate::table::{Figure, Verdict};
use crate::{AnyError, clock, data_directory, disk, empty};

const CONNECTIONS: usize = 256;
const SIZE: usize = 1024;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(4);
const WARM_UP: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
struct Round {
    put: f64,
    put_p99_us: u64,
    empty: f64,
    sync_us: u64,
}

pub(crate) async fn take() -> Result<Vec<Figure>, AnyError> {
    let data = data_directory()?;
    let probe = data_directory()?;
    let horolog = Process::horolog(data.path())?;
    let empty = empty::start()?;
    send(horolog.address, WARM_UP).await?;
    send(empty.address, WARM_UP).await?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let sync_us = disk::sync_us(probe.path(), &*clock())?;
        let put = send(horolog.address, ROUND).await?;
        let handler = send(empty.address, ROUND).await?;
        rounds.push(Round {
            put: put.rate(),
            put_p99_us: put.latency_us.value_at_quantile(0.99),
            empty: handler.rate(),
            sync_us,
        });
    }
    let put = median(&rounds, |round| round.put);
    let empty = median(&rounds, |round| round.empty);
    let ratio = put / empty;
    let settings = format!("{CONNECTIONS} connections, {SIZE} bytes, flush = sync");
    let schedule = format!("{ROUNDS} of each, {} s, in turns", ROUND.as_secs());
    let p99 = median(&rounds, |round| count(round.put_p99_us)) / 1000.0;
    Ok(vec![
        Figure::new("settings", settings),
        Figure::new("rounds", schedule),
        Figure::new("fdatasync of 8 KiB alone, p50", {
            format!("{:.0} us", median(&rounds, |round| count(round.sync_us)))
        }),
        Figure::new("empty handler, median", format!("{empty:.0} /s")),
        Figure::new("durable put, median", format!("{put:.0} /s")),
        Figure::new("durable put, p99", format!("{p99:.1} ms")),
        Figure::new("put / empty handler", format!("{ratio:.2}"))
            .target("at least 0.50", Verdict::of(ratio >= 0.5)),
    ])
}

async fn send(address: SocketAddr, duration: Duration) -> Result<Outcome, AnyError> {
    let body = Bytes::from(vec![b'x'; SIZE]);
    let load = Load {
        address,
        connections: CONNECTIONS,
        until: Until::Elapsed(duration),
        make: Arc::new(move |_| raw_put("bench", body.clone())),
    };
    let outcome = run(&load, clock()).await?;
    if outcome.refused > 0 {
        return Err(format!("{} requests were refused", outcome.refused).into());
    }
    Ok(outcome)
}

fn median(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of a round stay far below 2^53")]
fn count(number: u64) -> f64 {
    number as f64
}
