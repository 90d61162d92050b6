//! What it takes to look at a million pending messages, to find one among them, and to let them all go.

use std::fmt::Write;
use std::sync::Arc;

use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request};
use bytes::Bytes;
use horolog::client::Client;
use horolog::clock::Clock;
use horolog::load::{Load, Until, run};
use http_body_util::Full;

use crate::process::{Process, Watch};
use crate::table::{Figure, Verdict};
use crate::{AnyError, clock, data_directory};

const MESSAGES: u64 = 1_000_000;
const A_BATCH: u64 = 1000;
const CONNECTIONS: usize = 4;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
const TOPIC: &str = "orders";
const LIMIT_MS: u128 = 1000;

pub(crate) async fn take() -> Result<Vec<Figure>, AnyError> {
    let data = data_directory()?;
    let horolog = Process::horolog(data.path())?;
    let clock = clock();
    let first_ms = clock.now().wall.as_millis() + HOUR_MS;
    let load = Load {
        address: horolog.address,
        connections: CONNECTIONS,
        until: Until::Requests(MESSAGES / A_BATCH),
        make: Arc::new(move |number| batch(number, first_ms)),
    };
    let outcome = run(&load, Arc::clone(&clock)).await?;
    let rate = outcome.rate() * u64_to_f64(A_BATCH);
    let mut figures = vec![
        Figure::new("pending, one topic, over a day", MESSAGES.to_string()),
        Figure::new("handed in, 1000 a batch, 4 connections", format!("{rate:.0} /s")),
        Figure::new("refused", outcome.refused.to_string()),
    ];
    let end_ms = first_ms + DAY_MS;
    let day = format!("from={first_ms}&to={end_ms}&bucket=5m");
    let mut asked = Asked { client: Client::new(horolog.address), clock };
    let list = format!("/v1/scheduled?topic={TOPIC}");
    for (what, method, path) in [
        ("first page of the list", Method::GET, list.clone()),
        ("a page of 1000", Method::GET, format!("{list}&limit=1000")),
        ("timeline of a day", Method::GET, format!("/v1/scheduled/timeline?{day}")),
        (
            "the same of the topic",
            Method::GET,
            format!("/v1/scheduled/timeline?topic={TOPIC}&{day}"),
        ),
        (
            "one message by its key",
            Method::GET,
            format!("/v1/topics/{TOPIC}/messages?key=order-777777"),
        ),
        ("the topic and its counts", Method::GET, format!("/v1/topics/{TOPIC}")),
    ] {
        figures.push(asked.figure(what, method, &path, "").await?);
    }
    let cancel = format!(r#"{{"topic":"{TOPIC}"}}"#);
    let path = "/v1/scheduled/cancel";
    figures.push(asked.figure("10,000 cancelled in a call", Method::POST, path, &cancel).await?);
    let path = format!("/v1/topics/{TOPIC}?force=true");
    figures.push(asked.figure("the topic deleted with force", Method::DELETE, &path, "").await?);
    let pending = Watch::new(&horolog).sum("horolog_messages_pending").await?;
    figures.push(
        Figure::new("pending after that", format!("{pending:.0}"))
            .target("0", Verdict::of(format!("{pending:.0}") == "0")),
    );
    Ok(figures)
}

/// The lines of one batch: each message with a key of its own.
fn batch(number: u64, first_ms: u64) -> Request<Full<Bytes>> {
    let mut lines = String::new();
    for place in number * A_BATCH..(number + 1) * A_BATCH {
        let at = first_ms + place * DAY_MS / MESSAGES;
        // Writing to a string cannot fail.
        let _ = writeln!(
            lines,
            r#"{{"bodyText":"{place:128}","keys":["order-{place}"],"deliverAt":{at}}}"#
        );
    }
    Request::post(format!("/v1/topics/{TOPIC}/messages/batch"))
        .header(CONTENT_TYPE, "application/x-ndjson")
        .body(Full::new(lines.into()))
        .expect("the parts of the request are well formed")
}

/// One caller, and how long it waits.
struct Asked {
    client: Client,
    clock: Arc<dyn Clock>,
}

impl Asked {
    async fn figure(
        &mut self,
        what: &str,
        method: Method,
        path: &str,
        body: &str,
    ) -> Result<Figure, AnyError> {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?;
        let before = self.clock.now().monotonic;
        let answer = self.client.send(request).await?;
        let took = self.clock.now().monotonic.saturating_sub(before);
        if !answer.status.is_success() {
            return Err(format!("{what}: {}", String::from_utf8_lossy(&answer.body)).into());
        }
        let milliseconds = format!("{:.1} ms", took.as_secs_f64() * 1000.0);
        Ok(Figure::new(what, milliseconds)
            .target("under 1 s", Verdict::of(took.as_millis() < LIMIT_MS)))
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is a thousand")]
fn u64_to_f64(number: u64) -> f64 {
    number as f64
}
