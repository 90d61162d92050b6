//! Reading a request body: never more of it than is allowed, never for longer than is fair, and
//! never more bodies at once than there is memory set aside for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use super::problem::{Code, Problem};

/// The longest that a body may take to arrive.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a body may take before the least rate counts.
const GRACE: Duration = Duration::from_secs(5);
/// The least rate at which a body must arrive after that, in bytes a second.
const LEAST_RATE: u64 = 1024;

/// How many bytes of request bodies are in memory, and how many may be.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    held: Arc<AtomicUsize>,
    limit: usize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self { held: Arc::new(AtomicUsize::new(0)), limit }
    }

    fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }
}

/// What one request holds of the budget, given back when it is dropped.
#[derive(Debug)]
struct Share {
    budget: Budget,
    bytes: usize,
}

impl Share {
    fn grow_to(&mut self, bytes: usize) -> Result<(), Problem> {
        let more = bytes.saturating_sub(self.bytes);
        let before = self.budget.held.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        if before.saturating_add(more) > self.budget.limit {
            return Err(Problem::new(
                Code::Overloaded,
                "too many request bodies are in memory; try again shortly",
            ));
        }
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A body that was read, and its share of the budget.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) bytes: Bytes,
    _share: Share,
}

/// Reads `body` whole.
///
/// A body that announces more than `limit` bytes is refused before a byte of it is read, one that
/// does not announce its length as soon as it goes past `limit`.
pub(super) async fn read(body: Body, limit: usize, budget: &Budget) -> Result<Held, Problem> {
    let announced = body.size_hint().exact();
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let allowed = announced.map_or(BODY_TIMEOUT, |length| {
        BODY_TIMEOUT.min(GRACE + Duration::from_secs(length / LEAST_RATE))
    });
    match tokio::time::timeout(allowed, collect(body, announced, limit, budget.share())).await {
        Ok(held) => held,
        Err(_) => Err(Problem::new(
            Code::RequestTimeout,
            format!("the body was not there within {} s", allowed.as_secs()),
        )),
    }
}

async fn collect(
    mut body: Body,
    announced: Option<u64>,
    limit: usize,
    mut share: Share,
) -> Result<Held, Problem> {
    let announced = announced.and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    share.grow_to(announced)?;
    // A small body comes in one piece, which is then handed on as it is.
    let mut only = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Problem::invalid(format!("the body ended early: {error}")).closing()
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let length = only.len() + joined.len() + data.len();
        if length > limit {
            return Err(too_large(limit));
        }
        share.grow_to(length)?;
        if only.is_empty() && joined.is_empty() {
            only = data;
        } else {
            if joined.is_empty() {
                joined.reserve(announced.max(2 * length));
                joined.extend_from_slice(&std::mem::take(&mut only));
            }
            joined.extend_from_slice(&data);
        }
    }
    let bytes = if joined.is_empty() { only } else { joined.freeze() };
    Ok(Held { bytes, _share: share })
}

fn too_large(limit: usize) -> Problem {
    Problem::new(Code::BodyTooLarge, format!("a request body here has at most {limit} bytes"))
}

/// The stored body is over the limit, though the request that carried it was not.
pub(super) fn stored_too_large(length: usize, limit: usize) -> Problem {
    Problem::new(
        Code::BodyTooLarge,
        format!("a message body has at most {limit} bytes, this one has {length}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(problem: Problem) -> u16 {
        use axum::response::IntoResponse;
        problem.into_response().status().as_u16()
    }

    #[tokio::test]
    async fn what_was_held_is_given_back() {
        let budget = Budget::new(10);
        let held = read(Body::from("12345678"), 100, &budget).await.unwrap();
        assert_eq!(held.bytes, "12345678");
        let refused = read(Body::from("12345678"), 100, &budget).await.unwrap_err();
        assert_eq!(status(refused), 503);
        drop(held);
        assert_eq!(budget.held.load(Ordering::Relaxed), 0);
        read(Body::from("12345678"), 100, &budget).await.unwrap();
    }

    #[tokio::test]
    async fn an_announced_length_over_the_limit_is_refused() {
        let refused = read(Body::from("12345678"), 7, &Budget::new(100)).await.unwrap_err();
        assert_eq!(status(refused), 413);
    }
}
