//! Consumers that receive and ack, and write down what they saw.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use hdrhistogram::Histogram;
use horolog::client::Client;
use horolog::clock::Clock;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;

use crate::AnyError;

const CONSUMERS: usize = 4;

#[derive(Deserialize)]
struct Received {
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    message_id: String,
    deliver_at: jiff::Timestamp,
    fired_at: jiff::Timestamp,
    receipt_handle: String,
}

/// What all consumers saw together.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) ids: HashSet<String>,
    pub(crate) twice: usize,
    pub(crate) early: usize,
    pub(crate) last_fired_ms: i64,
    /// Fired minus asked, in milliseconds.
    pub(crate) lateness: Histogram<u64>,
    /// In a consumer's hands minus asked, in milliseconds.
    pub(crate) received: Histogram<u64>,
}

impl Seen {
    fn new() -> Result<Self, AnyError> {
        Ok(Self {
            ids: HashSet::new(),
            twice: 0,
            early: 0,
            last_fired_ms: 0,
            lateness: Histogram::new_with_bounds(1, 3_600_000, 3)?,
            received: Histogram::new_with_bounds(1, 3_600_000, 3)?,
        })
    }

    fn note(&mut self, message: Message, now_ms: i64) {
        let (asked, fired) =
            (message.deliver_at.as_millisecond(), message.fired_at.as_millisecond());
        self.early += usize::from(fired < asked || now_ms < asked);
        self.last_fired_ms = self.last_fired_ms.max(fired);
        self.lateness.saturating_record(u64::try_from(fired - asked).unwrap_or(0));
        self.received.saturating_record(u64::try_from(now_ms - asked).unwrap_or(0));
        self.twice += usize::from(!self.ids.insert(message.message_id));
    }
}

/// Receives from `topic` until `count` messages were seen, or none comes for ten seconds.
pub(crate) async fn consume(
    address: SocketAddr,
    topic: &'static str,
    count: usize,
    clock: Arc<dyn Clock>,
) -> Result<Seen, AnyError> {
    let seen = Arc::new(parking_lot::Mutex::new(Seen::new()?));
    let mut consumers = JoinSet::new();
    for _ in 0..CONSUMERS {
        let (seen, clock) = (Arc::clone(&seen), Arc::clone(&clock));
        consumers.spawn(async move {
            let mut client = Client::new(address);
            while seen.lock().ids.len() < count {
                let wanted = json!({ "topic": topic, "max": 256, "wait": "10s" });
                let answer = client.post("/v1/groups/bench/receive", &wanted).await?;
                let now_ms = i64::try_from(clock.now().wall.as_millis())?;
                let Received { messages } = answer.json()?;
                if messages.is_empty() {
                    break;
                }
                let handles: Vec<&str> =
                    messages.iter().map(|message| message.receipt_handle.as_str()).collect();
                let ack = json!({ "receiptHandles": handles });
                client.post("/v1/groups/bench/ack", &ack).await?;
                let mut seen = seen.lock();
                messages.into_iter().for_each(|message| seen.note(message, now_ms));
            }
            Ok::<(), AnyError>(())
        });
    }
    // When the count is reached, those that still wait have nothing to wait for.
    while let Some(ended) = consumers.join_next().await {
        ended??;
        if seen.lock().ids.len() >= count {
            consumers.abort_all();
            break;
        }
    }
    let mut nothing = Seen::new()?;
    std::mem::swap(&mut nothing, &mut *seen.lock());
    Ok(nothing)
}
