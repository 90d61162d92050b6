//! Durable batches of 100 messages of 1 KiB, against the disk itself: writes of 1 MiB one after the other, each with
//! `fdatasync`, on the same file system, in turns. The load comes from the same cores.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use horolog::clock::Clock;
use horolog::load::{Load, Until, run};
use http_body_util::Full;
use timerlog::disk::{Directory, OsDirectory};

use crate::process::Process;
use crate::rounds::{float, median};
use crate::table::{Figure, Verdict};
use crate::{AnyError, clock, data_directory, disk};

const CONNECTIONS: usize = 16;
const A_BATCH: u64 = 100;
const SIZE: usize = 1024;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(3);
const WARM_UP: Duration = Duration::from_secs(1);
/// What the disk is given at a time, and how much of the file it is written to.
const BLOCK: usize = 1 << 20;
const FILE: u64 = 256 << 20;
const MIB: f64 = 1_048_576.0;

#[derive(Clone, Copy, Debug)]
struct Round {
    batch: f64,
    disk: f64,
    sync_us: u64,
}

pub(crate) async fn take() -> Result<Vec<Figure>, AnyError> {
    let (data, probe) = (data_directory()?, data_directory()?);
    let horolog = Process::horolog(data.path())?;
    let batch = batch();
    send(horolog.address, &batch, WARM_UP).await?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let sync_us = disk::sync_us(probe.path(), &*clock())?;
        let batch = send(horolog.address, &batch, ROUND).await?;
        rounds.push(Round { batch, disk: blocks(probe.path(), &*clock())?, sync_us });
    }
    let of = |of: fn(&Round) -> f64| median(rounds.iter().map(of));
    let ratio = of(|round| round.batch / round.disk);
    let schedule = format!("{ROUNDS} of each, {} s, in turns", ROUND.as_secs());
    Ok(vec![
        Figure::new("settings", {
            format!(
                "{CONNECTIONS} connections, {A_BATCH} x {SIZE} bytes a request, NDJSON, flush = sync"
            )
        }),
        Figure::new("rounds", schedule),
        Figure::new("fdatasync of 8 KiB alone, p50", {
            format!("{:.0} us", of(|round| float(round.sync_us)))
        }),
        Figure::new("durable, as bodies", {
            format!("{:.0} MiB/s, {:.0} messages a second", of(|round| round.batch), {
                of(|round| round.batch) * MIB / float(SIZE as u64)
            })
        }),
        Figure::new("the disk, 1 MiB at a time", format!("{:.0} MiB/s", of(|round| round.disk))),
        Figure::new("batches / disk, median of the rounds", format!("{ratio:.2}"))
            .target("at least 0.50", Verdict::of(ratio >= 0.5)),
    ])
}

fn batch() -> Bytes {
    let line = format!("{{\"bodyText\":\"{}\"}}\n", "x".repeat(SIZE));
    line.repeat(usize::try_from(A_BATCH).expect("a hundred")).into()
}

/// MiB of bodies a second.
async fn send(address: SocketAddr, batch: &Bytes, duration: Duration) -> Result<f64, AnyError> {
    let batch = batch.clone();
    let load = Load {
        address,
        connections: CONNECTIONS,
        until: Until::Elapsed(duration),
        make: Arc::new(move |_| {
            Request::post("/v1/topics/batch/messages/batch")
                .header(CONTENT_TYPE, "application/x-ndjson")
                .body(Full::new(batch.clone()))
                .expect("the parts of the request are well formed")
        }),
    };
    let outcome = run(&load, clock()).await?;
    if outcome.refused > 0 {
        return Err(format!("{} batches were refused", outcome.refused).into());
    }
    Ok(outcome.rate() * float(A_BATCH * SIZE as u64) / MIB)
}

/// MiB a second into a file whose blocks are allocated, as the log's are.
fn blocks(directory: &Path, clock: &dyn Clock) -> Result<f64, AnyError> {
    let directory = OsDirectory::open(directory)?;
    let file = directory.create("blocks", FILE)?;
    let block = vec![0xa5; BLOCK];
    let (start, mut written) = (clock.now().monotonic, 0);
    let mut took = Duration::ZERO;
    while took < ROUND {
        file.write_at(written % FILE, &block)?;
        file.sync()?;
        written += BLOCK as u64;
        took = clock.now().monotonic.saturating_sub(start);
    }
    directory.remove("blocks")?;
    Ok(float(written) / MIB / took.as_secs_f64())
}
