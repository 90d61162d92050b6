//! How much memory answers take until their clients have read them.
//!
//! A receive may answer with megabytes, and a client that reads slowly keeps them here. So an answer of
//! some size is counted until its last byte is handed to the operating system; and while too much is
//! counted, what would answer with more is refused before it is looked at.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::http::Response;
use bytes::Bytes;
use http_body_util::BodyExt;

use super::problem::{Code, Problem};
use crate::metrics::Bound;
use crate::sync::{AtomicUsize, Ordering};

/// What is not worth counting: the number of connections bounds how many there are.
const SMALL: u64 = 4096;

/// Answers that are on their way.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    bytes: Arc<AtomicUsize>,
    limit: usize,
}

impl Answers {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Arc::default(), limit }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Refuses what may have a large answer while there is no room for one. To be asked before anything is
    /// read, leased or changed: an answer that is there is never thrown away.
    pub(super) fn have_room(&self) -> Result<(), Problem> {
        if self.bytes() < self.limit {
            return Ok(());
        }
        let detail = "too many answers are in memory, which their clients do not read; try again";
        Err(Problem::new(Code::Overloaded, detail).by(Bound::AnswerMemory))
    }

    /// The same answer, counted until it is sent.
    pub(super) async fn count(&self, response: Response<Body>) -> Response<Body> {
        if response.size_hint().exact().is_none_or(|length| length <= SMALL) {
            return response;
        }
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.expect("our answers are in memory, whole").to_bytes();
        Response::from_parts(head, Body::from(Bytes::from_owner(Counted::new(self, bytes))))
    }
}

/// The network's side keeps the bytes themselves, not the body they came in; so the count hangs on them.
struct Counted {
    answers: Answers,
    bytes: Bytes,
}

impl Counted {
    fn new(answers: &Answers, bytes: Bytes) -> Self {
        answers.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        Self { answers: answers.clone(), bytes }
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.answers.bytes.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_large_answer_counts_as_long_as_any_of_its_bytes_is_kept() {
        let answers = Answers::new(5000);
        let small = answers.count(Response::new(Body::from(vec![b'x'; 4096]))).await;
        assert_eq!((answers.bytes(), answers.have_room().is_ok()), (0, true));
        let large = answers.count(Response::new(Body::from(vec![b'x'; 5000]))).await;
        assert_eq!((answers.bytes(), answers.have_room().is_ok()), (5000, false));
        let kept = large.into_body().collect().await.unwrap().to_bytes();
        let part = kept.slice(10..11);
        drop((kept, small));
        assert_eq!(answers.bytes(), 5000);
        drop(part);
        assert_eq!((answers.bytes(), answers.have_room().is_ok()), (0, true));
    }
}
