//! The reminder service: is told when a customer is to be reminded. Some of its consumers crash, with
//! everything they have just been given; their leases run out, and others get it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::book::Delivery;
use super::plan::Consumer;
use super::{Body, GROUP, LEASE, Stage, TOPIC};
use crate::client::Client;
use crate::demo::DemoError;
use crate::demo::shop::timestamp;

#[derive(Deserialize)]
struct Received {
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    body: Body,
    queue_id: u64,
    queue_offset: u64,
    deliver_at: jiff::Timestamp,
    fired_at: Option<jiff::Timestamp>,
    attempt: u32,
    receipt_handle: String,
}

#[derive(Deserialize)]
struct Acked {
    results: Vec<Ack>,
}

#[derive(Deserialize)]
struct Ack {
    status: String,
}

/// Receives and acks until every order has come to its end and nothing more arrives, or until what is
/// missing must be given up. For a consumer that crashes a new one takes over.
pub(super) async fn remind_customers(stage: Arc<Stage>) -> Result<(), DemoError> {
    let mut client = Client::new(stage.address);
    loop {
        let was_over = stage.is_over();
        let messages = receive(&stage, &mut client).await?;
        if messages.is_empty() && was_over {
            return Ok(());
        }
        if messages.iter().any(|message| crashes_over(&stage, message)) {
            for message in &messages {
                stage.book.lost_with_consumer(message.body.order, stage.now());
            }
            client = Client::new(stage.address);
        } else if !messages.is_empty() {
            ack(&stage, &mut client, &messages).await?;
        }
    }
}

/// Only the first who gets it, or there would be nobody left.
fn crashes_over(stage: &Stage, message: &Message) -> bool {
    let consumer = stage.plan.order(message.body.order).consumer;
    consumer == Consumer::Crashes && message.attempt == 1
}

async fn receive(stage: &Stage, client: &mut Client) -> Result<Vec<Message>, DemoError> {
    let path = format!("/v1/groups/{GROUP}/receive");
    let wanted = json!({ "topic": TOPIC, "max": 16, "wait": "1s", "invisibleFor": LEASE });
    let answer = client.post(&path, &wanted).await?;
    let received_at = stage.now();
    let Received { messages } = answer.json()?;
    for message in &messages {
        let delivery = Delivery {
            deliver_at: timestamp(message.deliver_at),
            // All have a moment: one that does not say when it fired is as early as can be.
            fired_at: message.fired_at.map_or(timestamp(jiff::Timestamp::UNIX_EPOCH), timestamp),
            received_at,
            place: (message.queue_id, message.queue_offset),
        };
        stage.book.delivered(message.body.order, delivery);
    }
    Ok(messages)
}

async fn ack(stage: &Stage, client: &mut Client, messages: &[Message]) -> Result<(), DemoError> {
    let path = format!("/v1/groups/{GROUP}/ack");
    let handles: Vec<&str> = messages.iter().map(|m| m.receipt_handle.as_str()).collect();
    let acked: Acked = client.post(&path, &json!({ "receiptHandles": handles })).await?.json()?;
    for (message, Ack { status }) in messages.iter().zip(acked.results) {
        match status.as_str() {
            "ok" => stage.book.acked(message.body.order, stage.now()),
            // Its lease ran out: the message comes again, and is acknowledged then.
            _ => tracing::warn!(%status, "an ack was refused"),
        }
    }
    Ok(())
}
