//! Receive and ack of messages that are ready: batches of 32 by 16 consumers, each of a group's.

use std::sync::Arc;

use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request};
use bytes::Bytes;
use horolog::client::Client;
use horolog::load::{Load, Until, run};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;

use crate::process::Process;
use crate::rounds::{float, median};
use crate::table::{Figure, Verdict};
use crate::{AnyError, clock, data_directory, disk};

const MESSAGES: u64 = 200_000;
const A_BATCH: u64 = 1000;
const SIZE: usize = 128;
const CONSUMERS: usize = 16;
const AT_ONCE: usize = 32;
/// Each is a group of its own, which reads all of it from the start.
const ROUNDS: usize = 3;

#[derive(Deserialize)]
struct Received {
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    receipt_handle: String,
}

pub(crate) async fn take() -> Result<Vec<Figure>, AnyError> {
    let (data, probe) = (data_directory()?, data_directory()?);
    let horolog = Process::horolog(data.path())?;
    let mut client = Client::new(horolog.address);
    let topic = Request::builder().method(Method::PUT).uri("/v1/topics/ready");
    let topic = topic.header(CONTENT_TYPE, "application/json");
    client.send(topic.body(Full::from(r#"{"type":"MIXED","queues":16}"#))?).await?;
    let line = format!("{{\"bodyText\":\"{}\"}}\n", "x".repeat(SIZE));
    let batch = Bytes::from(line.repeat(usize::try_from(A_BATCH)?));
    let load = Load {
        address: horolog.address,
        connections: 4,
        until: Until::Requests(MESSAGES / A_BATCH),
        make: Arc::new(move |_| {
            Request::post("/v1/topics/ready/messages/batch")
                .header(CONTENT_TYPE, "application/x-ndjson")
                .body(Full::new(batch.clone()))
                .expect("the parts of the request are well formed")
        }),
    };
    if run(&load, clock()).await?.refused > 0 {
        return Err("the messages could not be handed in".into());
    }
    let (mut rates, mut syncs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        syncs.push(float(disk::sync_us(probe.path(), &*clock())?));
        rates.push(round_of(&horolog, round).await?);
    }
    let rate = median(rates);
    Ok(vec![
        Figure::new("settings", {
            format!(
                "{CONSUMERS} consumers, batches of {AT_ONCE}, {SIZE} bytes, 16 queues, flush = sync"
            )
        }),
        Figure::new("rounds", format!("{ROUNDS}, {MESSAGES} messages each")),
        Figure::new("fdatasync of 8 KiB alone, p50", format!("{:.0} us", median(syncs))),
        Figure::new("received and acked, median", format!("{rate:.0} /s"))
            .target("80,000 while fdatasync is under 500 us", Verdict::of(rate >= 80_000.0)),
    ])
}

async fn round_of(horolog: &Process, round: usize) -> Result<f64, AnyError> {
    let (address, clock) = (horolog.address, clock());
    let start = clock.now().monotonic;
    let mut consumers = JoinSet::new();
    for _ in 0..CONSUMERS {
        consumers.spawn(async move {
            let (mut client, mut count) = (Client::new(address), 0);
            let receive = format!("/v1/groups/round-{round}/receive");
            let ack = format!("/v1/groups/round-{round}/ack");
            loop {
                let wanted = json!({ "topic": "ready", "max": AT_ONCE });
                let Received { messages } = client.post(&receive, &wanted).await?.json()?;
                if messages.is_empty() {
                    return Ok::<u64, AnyError>(count);
                }
                count += messages.len() as u64;
                let handles: Vec<_> = messages.into_iter().map(|m| m.receipt_handle).collect();
                client.post(&ack, &json!({ "receiptHandles": handles })).await?;
            }
        });
    }
    let mut count = 0;
    while let Some(part) = consumers.join_next().await {
        count += part??;
    }
    if count < MESSAGES {
        return Err(format!("of {MESSAGES} messages only {count} were received").into());
    }
    Ok(float(count) / clock.now().monotonic.saturating_sub(start).as_secs_f64())
}
