//! Durable puts of 1 KiB from 256 connections, against an empty handler under the same load in the
//! same run, in turns, so that a slow minute of the machine is slow for both.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use horolog::load::{Load, Outcome, Until, raw_put, run};

use crate::process::Process;
use crate::rounds::{float, median};
use crate::table::{Figure, Verdict};
use crate::{AnyError, clock, data_directory, disk, empty};

const CONNECTIONS: usize = 256;
/// Fewer, taken once each beside it.
const FEWER: [usize; 3] = [1, 16, 64];
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
    let bare = empty::start()?;
    send(horolog.address, CONNECTIONS, WARM_UP).await?;
    send(bare.address, CONNECTIONS, WARM_UP).await?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let sync_us = disk::sync_us(probe.path(), &*clock())?;
        let put = send(horolog.address, CONNECTIONS, ROUND).await?;
        let handler = send(bare.address, CONNECTIONS, ROUND).await?;
        rounds.push(Round {
            put: put.rate(),
            put_p99_us: put.latency_us.value_at_quantile(0.99),
            empty: handler.rate(),
            sync_us,
        });
    }
    let of = |of: fn(&Round) -> f64| median(rounds.iter().map(of));
    let (put, empty) = (of(|round| round.put), of(|round| round.empty));
    let ratio = of(|round| round.put / round.empty);
    let mut fewer = Vec::new();
    for connections in FEWER {
        let put = send(horolog.address, connections, WARM_UP).await?;
        let handler = send(bare.address, connections, WARM_UP).await?;
        let p50 = float(put.latency_us.value_at_quantile(0.5)) / 1000.0;
        let (put, ratio) = (put.rate(), put.rate() / handler.rate());
        let what = format!("{connections} connections: put, p50, put / empty handler");
        fewer.push(Figure::new(what, format!("{put:.0} /s, {p50:.2} ms, {ratio:.2}")));
    }
    let settings = format!("{CONNECTIONS} connections, {SIZE} bytes, flush = sync");
    let schedule = format!("{ROUNDS} of each, {} s, in turns", ROUND.as_secs());
    let p99 = of(|round| float(round.put_p99_us)) / 1000.0;
    let mut figures = vec![
        Figure::new("settings", settings),
        Figure::new("rounds", schedule),
        Figure::new("fdatasync of 8 KiB alone, p50", {
            format!("{:.0} us", of(|round| float(round.sync_us)))
        }),
        Figure::new("empty handler, median", format!("{empty:.0} /s")),
        Figure::new("durable put, median", format!("{put:.0} /s")),
        Figure::new("durable put, p99", format!("{p99:.1} ms")),
        Figure::new("put / empty handler, median of the rounds", format!("{ratio:.2}"))
            .target("at least 0.70", Verdict::of(ratio >= 0.7)),
    ];
    figures.extend(fewer);
    Ok(figures)
}

pub(crate) async fn send(
    address: SocketAddr,
    connections: usize,
    duration: Duration,
) -> Result<Outcome, AnyError> {
    let body = Bytes::from(vec![b'x'; SIZE]);
    let load = Load {
        address,
        connections,
        until: Until::Elapsed(duration),
        make: Arc::new(move |_| raw_put("bench", body.clone())),
    };
    let outcome = run(&load, clock()).await?;
    if outcome.refused > 0 {
        return Err(format!("{} requests were refused", outcome.refused).into());
    }
    Ok(outcome)
}
