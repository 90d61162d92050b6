//! A hundred thousand messages due in one second.

use std::sync::Arc;

use axum::http::Request;
use bytes::Bytes;
use horolog::clock::Clock;
use horolog::load::{Load, Until, raw_put, run};
use http_body_util::Full;

use crate::process::{Process, Watch};
use crate::table::{Figure, Verdict};
use crate::{AnyError, clock, consume, data_directory, pause};

const MESSAGES: u64 = 100_000;
const SIZE: usize = 1024;
const TOPIC: &str = "fire";
/// Time to hand all of them in before their second begins.
const AHEAD_MS: u64 = 45_000;
/// The server is left alone for so long before and after, so that only firing is measured.
const QUIET_MS: u64 = 1_000;

const LOGS: [&str; 3] = ["commitlog", "consumequeue", "timerlog"];

pub(crate) async fn take() -> Result<Vec<Figure>, AnyError> {
    let data = data_directory()?;
    let horolog = Process::horolog(data.path())?;
    let clock = clock();
    let second_ms = clock.now().wall.as_millis() + AHEAD_MS;
    schedule(&horolog, Arc::clone(&clock), second_ms).await?;
    let mut watch = Watch::new(&horolog);
    wait_until(&*clock, second_ms - QUIET_MS).await?;
    let before = logs(&mut watch).await?;
    wait_until(&*clock, second_ms).await?;
    watch.until("horolog_messages_fired_total", float(MESSAGES)).await?;
    let counted_ms = clock.now().wall.as_millis() - second_ms;
    pause(QUIET_MS).await;
    let after = logs(&mut watch).await?;
    let receiving = clock.now().monotonic;
    let count = usize::try_from(MESSAGES)?;
    let seen = consume::consume(horolog.address, TOPIC, count, Arc::clone(&clock)).await?;
    let received = clock.now().monotonic.saturating_sub(receiving);
    let last_ms = u64::try_from(seen.last_fired_ms)?.saturating_sub(second_ms);
    let written = before.iter().zip(&after).map(|(before, after)| after - before);
    let written: Vec<f64> = written.map(|bytes| bytes / float(MESSAGES)).collect();
    let total: f64 = written.iter().sum();
    let all = seen.ids.len() == count && seen.twice == 0;
    Ok(vec![
        Figure::new("messages due in one second", format!("{MESSAGES} of {SIZE} bytes")),
        Figure::new("last one fired, after that second began", format!("{last_ms} ms")),
        Figure::new("all readable, after that second began", format!("{counted_ms} ms"))
            .target("within 2000 ms", Verdict::of(counted_ms <= 2000 && all)),
        Figure::new("early, lost, twice", {
            format!("{}, {}, {}", seen.early, count - seen.ids.len(), seen.twice)
        })
        .target("0, 0, 0", Verdict::of(all && seen.early == 0)),
        Figure::new("lateness p50, p99, max", {
            let at = |quantile| seen.lateness.value_at_quantile(quantile);
            format!("{}, {}, {} ms", at(0.5), at(0.99), seen.lateness.max())
        }),
        Figure::new("written for each: commitlog, consumequeue, timerlog", {
            format!("{:.1}, {:.1}, {:.1} bytes", written[0], written[1], written[2])
        }),
        Figure::new("written for each, together", format!("{total:.1} bytes"))
            .target("at most 48", Verdict::of(total <= 48.0)),
        Figure::new("then received and acked by 4 consumers", {
            format!("{:.1} s", received.as_secs_f64())
        }),
    ])
}

async fn schedule(
    horolog: &Process,
    clock: Arc<dyn Clock>,
    second_ms: u64,
) -> Result<(), AnyError> {
    let body = Bytes::from(vec![b'x'; SIZE]);
    let load = Load {
        address: horolog.address,
        connections: 256,
        until: Until::Requests(MESSAGES),
        make: Arc::new(move |number| timed_put(TOPIC, second_ms + number % 1000, body.clone())),
    };
    let outcome = run(&load, Arc::clone(&clock)).await?;
    if outcome.succeeded != MESSAGES {
        return Err(format!("{} puts were refused", outcome.refused).into());
    }
    if clock.now().wall.as_millis() + QUIET_MS > second_ms {
        return Err("this machine takes too long to hand the messages in".into());
    }
    Ok(())
}

/// A raw put for a moment in milliseconds since 1970.
pub(crate) fn timed_put(topic: &str, deliver_at_ms: u64, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = raw_put(topic, body);
    request.headers_mut().insert("horolog-deliver-at", deliver_at_ms.into());
    request
}

async fn wait_until(clock: &dyn Clock, moment_ms: u64) -> Result<(), AnyError> {
    let now = clock.now().wall.as_millis();
    pause(moment_ms.checked_sub(now).ok_or("the moment has passed already")?).await;
    Ok(())
}

async fn logs(watch: &mut Watch) -> Result<Vec<f64>, AnyError> {
    let mut bytes = Vec::new();
    for log in LOGS {
        let line = format!("horolog_log_bytes_written_total{{file=\"{log}\"}}");
        bytes.push(watch.sum(&line).await?);
    }
    Ok(bytes)
}

#[expect(clippy::cast_precision_loss, reason = "counts of messages stay far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
