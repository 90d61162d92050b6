//! Five hundred firings a second for twenty seconds, received as they fire.

use std::sync::Arc;

use bytes::Bytes;
use horolog::load::{Load, Until, run};

use crate::fire::timed_put;
use crate::process::{Process, Watch};
use crate::table::{Figure, Verdict};
use crate::{AnyError, clock, consume, data_directory};

const MESSAGES: u64 = 10_000;
const EVERY_MS: u64 = 2;
const AHEAD_MS: u64 = 15_000;
const TOPIC: &str = "rate";

pub(crate) async fn take() -> Result<Vec<Figure>, AnyError> {
    let data = data_directory()?;
    let horolog = Process::horolog(data.path())?;
    let clock = clock();
    let start_ms = clock.now().wall.as_millis() + AHEAD_MS;
    let body = Bytes::from(vec![b'x'; 1024]);
    let load = Load {
        address: horolog.address,
        connections: 256,
        until: Until::Requests(MESSAGES),
        make: Arc::new(move |number| timed_put(TOPIC, start_ms + number * EVERY_MS, body.clone())),
    };
    let outcome = run(&load, Arc::clone(&clock)).await?;
    if outcome.refused > 0 || clock.now().wall.as_millis() > start_ms {
        return Err("the messages could not be handed in in time".into());
    }
    let mut watch = Watch::new(&horolog);
    // The first receive is to find something: consumers give up after ten quiet seconds.
    watch.until("horolog_messages_fired_total", 1.0).await?;
    let count = usize::try_from(MESSAGES)?;
    let seen = consume::consume(horolog.address, TOPIC, count, Arc::clone(&clock)).await?;
    let early = seen.early + counted(watch.sum("horolog_delivery_early_total").await?);
    let missing = count - seen.ids.len();
    let at = |quantile| seen.lateness.value_at_quantile(quantile);
    let p99 = at(0.99);
    let received = |quantile| seen.received.value_at_quantile(quantile);
    Ok(vec![
        Figure::new("firings", format!("{} a second for 20 s", 1000 / EVERY_MS)),
        Figure::new("early", early.to_string()).target("0", Verdict::of(early == 0)),
        Figure::new("lost, twice", format!("{missing}, {}", seen.twice))
            .target("0, 0", Verdict::of(missing == 0 && seen.twice == 0)),
        Figure::new("lateness p50, p99, max", {
            format!("{}, {p99}, {} ms", at(0.5), seen.lateness.max())
        })
        .target("p99 within 10 ms", Verdict::of(p99 <= 10)),
        Figure::new("in a consumer's hands p50, p99, max", {
            format!("{}, {}, {} ms", received(0.5), received(0.99), seen.received.max())
        }),
    ])
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a counter is a whole number"
)]
fn counted(value: f64) -> usize {
    value as usize
}
