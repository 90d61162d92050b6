//! What a million pending messages cost in memory.

use std::sync::Arc;

use bytes::Bytes;
use horolog::load::{Load, Until, run};

use crate::fire::timed_put;
use crate::process::{Process, Watch};
use crate::table::{Figure, Verdict};
use crate::{AnyError, clock, data_directory};

const MESSAGES: u64 = 1_000_000;
const SIZE: usize = 128;
const HOUR_MS: u64 = 3_600_000;
/// Spread over thirty days, so that both rings take part.
const SPREAD_MS: u64 = 30 * 24 * HOUR_MS;
const LIMIT_MB: u64 = 120;

pub(crate) async fn take() -> Result<Vec<Figure>, AnyError> {
    let data = data_directory()?;
    let horolog = Process::horolog(data.path())?;
    let idle_kib = horolog.memory_kib("RssAnon")?;
    let clock = clock();
    let first_ms = clock.now().wall.as_millis() + HOUR_MS;
    let body = Bytes::from(vec![b'x'; SIZE]);
    let step = SPREAD_MS / MESSAGES;
    let load = Load {
        address: horolog.address,
        connections: 256,
        until: Until::Requests(MESSAGES),
        // A large odd stride visits the days in no order.
        make: Arc::new(move |number| {
            let place = number.wrapping_mul(736_339) % MESSAGES;
            timed_put("memory", first_ms + place * step, body.clone())
        }),
    };
    let outcome = run(&load, Arc::clone(&clock)).await?;
    let pending = Watch::new(&horolog).sum("horolog_messages_pending").await?;
    let anonymous = megabytes(horolog.memory_kib("RssAnon")?);
    Ok(vec![
        Figure::new("pending messages", format!("{pending:.0} of {SIZE} bytes, over 30 days"))
            .target("1000000", Verdict::of(format!("{pending:.0}") == MESSAGES.to_string())),
        Figure::new("handed in at", format!("{:.0} /s", outcome.rate())),
        Figure::new("anonymous memory, idle", format!("{} MB", megabytes(idle_kib))),
        Figure::new("anonymous memory (RssAnon)", format!("{anonymous} MB"))
            .target("under 120 MB", Verdict::of(anonymous < LIMIT_MB)),
        Figure::new("mapped files (RssFile)", {
            format!("{} MB", megabytes(horolog.memory_kib("RssFile")?))
        }),
        Figure::new("refused", outcome.refused.to_string()),
    ])
}

const fn megabytes(kib: u64) -> u64 {
    kib * 1024 / 1_000_000
}
