//! A load generator: so many kept connections, each sending its next request when the answer to the
//! last one is there.
//!
//! Such a closed loop finds the rate a server can sustain. Latencies are those of a client that
//! waits its turn, so they grow with the number of connections and say little about a lightly
//! loaded server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use hdrhistogram::Histogram;
use http_body_util::Full;
use tokio::task::JoinSet;

use crate::client::{Client, ClientError};
use crate::clock::Clock;
use crate::sync::{AtomicU64, Ordering};

/// Makes the request with this number, counted from 0 over all connections.
pub type MakeRequest = Arc<dyn Fn(u64) -> Request<Full<Bytes>> + Send + Sync>;

/// When a load is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    Elapsed(Duration),
    Requests(u64),
}

/// What to send, and how.
#[derive(Clone)]
pub struct Load {
    pub address: SocketAddr,
    pub connections: usize,
    pub until: Until,
    pub make: MakeRequest,
}

impl fmt::Debug for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Load")
            .field("address", &self.address)
            .field("connections", &self.connections)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// A raw put of `body` on `topic`, readable at once.
///
/// # Panics
///
/// When `topic` cannot stand in a path as it is.
pub fn raw_put(topic: &str, body: Bytes) -> Request<Full<Bytes>> {
    Request::post(format!("/v1/topics/{topic}/messages"))
        .header(CONTENT_TYPE, "application/octet-stream")
        .body(Full::from(body))
        .expect("a topic's name without percent signs makes a path")
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Answers of success.
    pub succeeded: u64,
    /// Answers of any other status.
    pub refused: u64,
    pub elapsed: Duration,
    /// From sending a request to having its whole answer, in microseconds.
    pub latency_us: Histogram<u64>,
}

impl Outcome {
    /// Successful requests a second.
    #[expect(clippy::cast_precision_loss, reason = "counts of requests stay far below 2^53")]
    pub fn rate(&self) -> f64 {
        self.succeeded as f64 / self.elapsed.as_secs_f64()
    }
}

/// Sends the load and waits until it is over.
///
/// # Errors
///
/// The first failure of a connection: a load with holes says nothing.
pub async fn run(load: &Load, clock: Arc<dyn Clock>) -> Result<Outcome, ClientError> {
    let start = clock.now().monotonic;
    let numbers = Arc::new(AtomicU64::new(0));
    let mut connections = JoinSet::new();
    for _ in 0..load.connections {
        connections.spawn(connection(load.clone(), Arc::clone(&clock), Arc::clone(&numbers)));
    }
    let mut total =
        Outcome { succeeded: 0, refused: 0, elapsed: Duration::ZERO, latency_us: histogram() };
    while let Some(ended) = connections.join_next().await {
        let part = ended.expect("nobody aborts a connection, and it does not panic")?;
        total.succeeded += part.succeeded;
        total.refused += part.refused;
        total.latency_us.add(part.latency_us).expect("both histograms have the same bounds");
    }
    total.elapsed = clock.now().monotonic.saturating_sub(start);
    Ok(total)
}

struct Part {
    succeeded: u64,
    refused: u64,
    latency_us: Histogram<u64>,
}

async fn connection(
    load: Load,
    clock: Arc<dyn Clock>,
    numbers: Arc<AtomicU64>,
) -> Result<Part, ClientError> {
    let mut client = Client::new(load.address);
    let mut part = Part { succeeded: 0, refused: 0, latency_us: histogram() };
    let start = clock.now().monotonic;
    loop {
        let sent = clock.now().monotonic;
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let is_over = match load.until {
            Until::Elapsed(duration) => sent.saturating_sub(start) >= duration,
            Until::Requests(count) => number >= count,
        };
        if is_over {
            return Ok(part);
        }
        let answer = client.send((load.make)(number)).await?;
        let took = clock.now().monotonic.saturating_sub(sent);
        part.latency_us.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        if answer.status.is_success() {
            part.succeeded += 1;
        } else {
            part.refused += 1;
        }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("a minute in microseconds, to three digits")
}
