//! Reading a request body: never more of it than is allowed, never for longer than is fair, and
//! never more bodies at once than there is memory set aside for.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::problem::{Code, Problem};
use crate::config::Deadlines;
use crate::metrics::Bound;
use crate::sync::{AtomicUsize, Ordering};

/// How fast a body must come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    total: Duration,
    grace: Duration,
    /// Bytes a second.
    least_rate: u64,
}

impl Pace {
    pub(super) fn new(deadlines: &Deadlines) -> Self {
        Self {
            total: Duration::from_millis(deadlines.body_ms),
            grace: Duration::from_millis(deadlines.body_grace_ms),
            least_rate: deadlines.least_body_rate,
        }
    }

    /// By when more than `received` bytes must be there, after the head. Each byte buys the time that it takes
    /// at the least rate, so that a body which is announced long is not thereby allowed to trickle.
    fn allows(self, received: usize) -> Duration {
        let bought = (received as u64).saturating_mul(1000) / self.least_rate;
        self.total.min(self.grace.saturating_add(Duration::from_millis(bought)))
    }
}

/// How many bytes of request bodies are in memory, how many may be, and how fast they must come.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    held: Arc<AtomicUsize>,
    limit: usize,
    pace: Pace,
}

impl Budget {
    pub(super) fn new(limit: usize, pace: Pace) -> Self {
        Self { held: Arc::new(AtomicUsize::new(0)), limit, pace }
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
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
            let detail = "too many request bodies are in memory; try again shortly";
            return Err(Problem::new(Code::Overloaded, detail).by(Bound::RequestMemory));
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
    collect(body, announced, limit, budget.share()).await
}

async fn collect(
    mut body: Body,
    announced: Option<u64>,
    limit: usize,
    mut share: Share,
) -> Result<Held, Problem> {
    let start = Instant::now();
    let pace = share.budget.pace;
    let announced = announced.and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    share.grow_to(announced)?;
    // A small body comes in one piece, which is then handed on as it is.
    let mut only = Bytes::new();
    let mut joined = BytesMut::new();
    loop {
        let received = only.len() + joined.len();
        let allowed = pace.allows(received);
        let frame = timeout_at(start + allowed, body.frame()).await;
        let frame = frame.map_err(|_| too_slow(received, allowed))?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| {
            Problem::invalid(format!("the body ended early: {error}")).closing()
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let length = received + data.len();
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

fn too_slow(received: usize, allowed: Duration) -> Problem {
    let allowed = allowed.as_millis();
    let detail = format!("the body came too slowly: {received} bytes within {allowed} ms");
    Problem::new(Code::RequestTimeout, detail)
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
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use hyper::body::Frame;

    use super::*;

    const PACE: Pace =
        Pace { total: Duration::from_secs(30), grace: Duration::from_secs(5), least_rate: 1024 };

    fn budget(limit: usize) -> Budget {
        Budget::new(limit, PACE)
    }

    /// A body of which so many bytes come each second, the first at once.
    struct Trickle {
        left: usize,
        bytes_a_second: usize,
        ticks: tokio::time::Interval,
    }

    impl Trickle {
        fn body(length: usize, bytes_a_second: usize) -> Body {
            let ticks = tokio::time::interval(Duration::from_secs(1));
            Body::new(Self { left: length, bytes_a_second, ticks })
        }
    }

    impl HttpBody for Trickle {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            ready!(self.ticks.poll_tick(context));
            let piece = self.bytes_a_second.min(self.left);
            self.left -= piece;
            Poll::Ready(Some(Ok(Frame::data(vec![b'x'; piece].into()))))
        }
    }

    fn status(problem: Problem) -> u16 {
        use axum::response::IntoResponse;
        problem.into_response().status().as_u16()
    }

    #[tokio::test]
    async fn what_was_held_is_given_back() {
        let budget = budget(10);
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
        let refused = read(Body::from("12345678"), 7, &budget(100)).await.unwrap_err();
        assert_eq!(status(refused), 413);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_keeps_to_the_least_rate_is_read_and_one_that_falls_behind_is_not() {
        for (length, rate, expected) in [
            // Six seconds and more of grace and bought time; the last byte after 19 s.
            (20 * 1024, 1024, Ok(20 * 1024)),
            (4 * 1024, 1023, Ok(4 * 1024)),
            // 500 bytes a second: after some ten seconds it is behind.
            (20 * 1024, 500, Err(408)),
            (100, 1, Err(408)),
            // Fast enough, and longer than any body may take.
            (40 * 1100, 1100, Err(408)),
        ] {
            let budget = budget(1 << 20);
            let read = read(Trickle::body(length, rate), 1 << 20, &budget).await;
            let read = read.map(|held| held.bytes.len()).map_err(status);
            assert_eq!(read, expected, "{length} bytes, {rate} a second");
            assert_eq!(budget.held(), 0);
        }
    }
}
