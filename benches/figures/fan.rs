//! Many connections that take items from one list, each the next one when its answer is there.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::Request;
use bytes::Bytes;
use horolog::client::{Answer, Client};
use http_body_util::Full;
use tokio::task::JoinSet;

use crate::{AnyError, clock};

/// What was answered, in no order, and how many a second.
pub(crate) struct Fanned<R> {
    pub(crate) answers: Vec<R>,
    pub(crate) rate: f64,
}

/// Sends `make` of each item; `read` reads its answer, which must be a success.
pub(crate) async fn fan<I, R>(
    address: SocketAddr,
    connections: usize,
    items: Vec<I>,
    make: fn(&I) -> Request<Full<Bytes>>,
    read: fn(&Answer) -> Result<R, AnyError>,
) -> Result<Fanned<R>, AnyError>
where
    I: Send + Sync + 'static,
    R: Send + 'static,
{
    let clock = clock();
    let start = clock.now().monotonic;
    let (items, next) = (Arc::new(items), Arc::new(AtomicUsize::new(0)));
    let mut all = JoinSet::new();
    for _ in 0..connections {
        let (items, next) = (Arc::clone(&items), Arc::clone(&next));
        all.spawn(async move {
            let (mut client, mut answers) = (Client::new(address), Vec::new());
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                let answer = client.send(make(item)).await?;
                if !answer.status.is_success() {
                    let text = String::from_utf8_lossy(&answer.body).into_owned();
                    return Err(AnyError::from(text));
                }
                answers.push(read(&answer)?);
            }
            Ok(answers)
        });
    }
    let mut answers = Vec::with_capacity(items.len());
    while let Some(part) = all.join_next().await {
        answers.extend(part??);
    }
    let took = clock.now().monotonic.saturating_sub(start);
    #[expect(clippy::cast_precision_loss, reason = "counts of a round stay far below 2^53")]
    let count = answers.len() as f64;
    Ok(Fanned { answers, rate: count / took.as_secs_f64() })
}
