//! The order service: is told when an order was not paid in time, and would cancel it.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::book::Delivery;
use super::shop::timestamp;
use super::{DemoError, GROUP, PATIENCE_MS, Stage, TOPIC};
use crate::client::Client;

/// How often to look whether there is an order yet.
const OPENING_INTERVAL: Duration = Duration::from_millis(5);

#[derive(Deserialize)]
struct Received {
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    body: Body,
    deliver_at: jiff::Timestamp,
    fired_at: Option<jiff::Timestamp>,
    receipt_handle: String,
}

#[derive(Deserialize)]
struct Body {
    order: usize,
}

#[derive(Deserialize)]
struct Acked {
    results: Vec<Ack>,
}

#[derive(Deserialize)]
struct Ack {
    status: String,
}

/// Receives and acks until every order has come to its end and nothing more arrives, or until what
/// is missing must be given up.
pub(super) async fn cancel_unpaid_orders(stage: Arc<Stage>) -> Result<(), DemoError> {
    let mut client = Client::new(stage.address);
    let mut ticks = tokio::time::interval(OPENING_INTERVAL);
    // The first order makes the topic, and there is nothing to receive from before.
    while stage.book.tally().scheduled == 0 {
        ticks.tick().await;
    }
    loop {
        let settled_before = stage.book.is_settled();
        let received = receive(&stage, &mut client).await?;
        let given_up =
            stage.book.is_scheduled() && stage.now().since(stage.book.last_moment()) > PATIENCE_MS;
        if received == 0 && (settled_before || given_up) {
            return Ok(());
        }
    }
}

async fn receive(stage: &Stage, client: &mut Client) -> Result<usize, DemoError> {
    let path = format!("/v1/groups/{GROUP}/receive");
    let wanted = json!({ "topic": TOPIC, "max": 64, "wait": "1s" });
    let answer = client.post(&path, &wanted).await?;
    let received_at = stage.now();
    let Received { messages } = answer.json()?;
    if messages.is_empty() {
        return Ok(0);
    }
    for message in &messages {
        let delivery = Delivery {
            deliver_at: timestamp(message.deliver_at),
            // A message that does not say when it fired was never timed: as early as can be.
            fired_at: message.fired_at.map_or(timestamp(jiff::Timestamp::UNIX_EPOCH), timestamp),
            received_at,
        };
        stage.book.delivered(message.body.order, delivery);
    }
    ack(client, &messages).await?;
    Ok(messages.len())
}

async fn ack(client: &mut Client, messages: &[Message]) -> Result<(), DemoError> {
    let path = format!("/v1/groups/{GROUP}/ack");
    let handles: Vec<&str> = messages.iter().map(|m| m.receipt_handle.as_str()).collect();
    let acked: Acked = client.post(&path, &json!({ "receiptHandles": handles })).await?.json()?;
    for Ack { status } in acked.results.iter().filter(|ack| ack.status != "ok") {
        // Its lease ran out: the message comes again, and the book counts it as twice.
        tracing::warn!(%status, "an ack was refused");
    }
    Ok(())
}
