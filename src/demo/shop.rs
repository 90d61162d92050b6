//! The shop: schedules a time-out for each order, and cancels it when the order is paid.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::book::Told;
use super::plan::Payment;
use super::{DemoError, PATIENCE_MS, Stage, TOPIC};
use crate::client::Client;
use crate::clock::Timestamp;
use crate::sync::Mutex;

/// How often the till is looked into.
const TILL_INTERVAL: Duration = Duration::from_millis(2);

/// Payments that will be made, by the millisecond.
#[derive(Debug, Default)]
pub(super) struct Till {
    payments: Mutex<BTreeMap<(Timestamp, usize), String>>,
}

impl Till {
    fn expect(&self, at: Timestamp, order: usize, message_id: String) {
        self.payments.lock().insert((at, order), message_id);
    }

    fn take(&self, now: Timestamp) -> Option<(usize, String)> {
        let mut payments = self.payments.lock();
        let first = payments.first_entry()?;
        let &(at, order) = first.key();
        (at <= now).then(|| (order, first.remove()))
    }

    fn is_empty(&self) -> bool {
        self.payments.lock().is_empty()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Put {
    message_id: String,
    deliver_at: jiff::Timestamp,
}

/// Schedules every order whose number is `worker` modulo `workers`.
pub(super) async fn schedule(
    stage: Arc<Stage>,
    till: Arc<Till>,
    worker: usize,
    workers: usize,
) -> Result<(), DemoError> {
    let mut client = Client::new(stage.address);
    let path = format!("/v1/topics/{TOPIC}/messages");
    for number in (worker..stage.book.len()).step_by(workers) {
        let order = stage.plan.order(number);
        let message = json!({
            "body": { "order": number, "then": "cancel if unpaid" },
            "keys": [format!("order-{number}")],
            "delay": order.timeout_ms,
        });
        let put: Put = client.post(&path, &message).await?.json()?;
        let deliver_at = timestamp(put.deliver_at);
        if let Payment::After(ms) = order.payment {
            // Counted from the moment the order runs out, so that a close race is a close one.
            let at = (deliver_at.as_millis() + ms).saturating_sub(order.timeout_ms);
            till.expect(Timestamp::from_millis(at), number, put.message_id);
        }
        stage.book.scheduled(number, deliver_at);
    }
    Ok(())
}

/// Cancels the time-outs of orders as they are paid.
pub(super) async fn collect_payments(stage: Arc<Stage>, till: Arc<Till>) -> Result<(), DemoError> {
    let mut client = Client::new(stage.address);
    let mut ticks = tokio::time::interval(TILL_INTERVAL);
    while !(stage.book.is_scheduled() && till.is_empty()) {
        while let Some((order, message_id)) = till.take(stage.now()) {
            cancel(&stage, &mut client, order, &message_id).await?;
        }
        if stage.book.is_scheduled() && stage.now().since(stage.book.last_moment()) > PATIENCE_MS {
            break;
        }
        ticks.tick().await;
    }
    Ok(())
}

async fn cancel(
    stage: &Stage,
    client: &mut Client,
    order: usize,
    message_id: &str,
) -> Result<(), DemoError> {
    let answer = client.call(Method::DELETE, &format!("/v1/messages/{message_id}")).await?;
    if answer.status == StatusCode::CONFLICT {
        stage.book.told(order, Told::AlreadyDelivered);
    } else {
        answer.json::<serde::de::IgnoredAny>()?;
        stage.book.told(order, Told::Cancelled);
    }
    Ok(())
}

/// The API writes no time before 1970; one that it did write would count as early.
pub(super) fn timestamp(time: jiff::Timestamp) -> Timestamp {
    Timestamp::from_millis(u64::try_from(time.as_millisecond()).unwrap_or(0))
}
