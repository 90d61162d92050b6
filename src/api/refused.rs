//! Refusals of a request that never came to a handler: hyper's own, with a problem put in their place.
//!
//! When the head of a request makes no sense, or is too long, hyper answers by itself, with a status and no
//! body, and has no place to say what the answer should be. It does so in one write, at a moment when no
//! handler has been asked; so that write is known here, and another one goes out instead. A request that a
//! client sends before it has the answer to the one before is the exception: both answers may leave in one
//! write, and then hyper's stands as it is.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::http::StatusCode;
use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::linger::LastAnswer;
use super::problem::{Code, Problem};
use crate::metrics::{Bound, Metrics, Route};
use crate::sync::{AtomicBool, Ordering};

/// Who counts what is refused on a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Told(Arc<Metrics>);

impl Told {
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        Self(Arc::clone(metrics))
    }

    /// A bound was met, and nobody is left to be told.
    pub(super) fn refused(&self, bound: Bound) {
        self.0.refused(bound);
    }

    /// A request is refused without a handler.
    pub(super) fn answered(&self, problem: &Problem) {
        self.0.http_request(Route::None, problem.status().as_u16());
        if let Some(bound) = problem.bound() {
            self.0.refused(bound);
        }
    }

    #[cfg(test)]
    pub(super) fn render(&self) -> String {
        self.0.render()
    }
}

/// Whether a handler was asked about the request that is under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked(Arc<AtomicBool>);

impl Asked {
    pub(super) fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A connection on which hyper's refusals are told as problems.
#[derive(Debug)]
pub(super) struct Refusals<S> {
    stream: S,
    asked: Asked,
    last: LastAnswer,
    told: Told,
    /// Something was written since something was read.
    wrote: bool,
    /// What is left of the problem that goes out instead.
    instead: Bytes,
}

impl<S> Refusals<S> {
    pub(super) fn new(stream: S, last: LastAnswer, told: Told) -> (Self, Asked) {
        let asked = Asked::default();
        let instead = Bytes::new();
        (Self { stream, asked: asked.clone(), last, told, wrote: false, instead }, asked)
    }

    /// The problem to be told instead of what hyper writes.
    fn problem(&mut self, bytes: &[u8]) -> Option<Bytes> {
        let first = !std::mem::replace(&mut self.wrote, true);
        if !first || self.asked.0.load(Ordering::Relaxed) {
            return None;
        }
        let status = refusal(bytes)?;
        let problem = match status {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
                Problem::new(Code::HeadersTooLarge, "the head of the request is too long")
            }
            StatusCode::URI_TOO_LONG => {
                Problem::new(Code::UriTooLong, "the path of the request is too long")
            }
            _ => Problem::invalid("the head of the request is not HTTP/1.1"),
        };
        self.last.was(status);
        self.told.answered(&problem);
        Some(problem.written_whole())
    }
}

/// The status of an answer that hyper made up: one of refusal, whole, and without a body.
fn refusal(bytes: &[u8]) -> Option<StatusCode> {
    let head = std::str::from_utf8(bytes).ok()?.strip_suffix("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse::<StatusCode>().ok()?;
    let mut lines = head.split("\r\n").skip(1);
    let bare = !head.contains("\r\n\r\n") && !head.contains("content-type");
    (status.is_client_error() && bare && lines.any(|line| line == "content-length: 0"))
        .then_some(status)
}

impl<S: AsyncWrite + Unpin> Refusals<S> {
    fn poll_instead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.instead.is_empty() {
            let written =
                ready!(Pin::new(&mut self.stream).poll_write(context, self.instead.chunk()))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.instead.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Refusals<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if this.wrote && buffer.filled().len() > before {
            // The next request begins.
            this.wrote = false;
            this.asked.0.store(false, Ordering::Relaxed);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Refusals<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_instead(context))?;
        if let Some(instead) = this.problem(bytes) {
            this.instead = instead;
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_instead(context))?;
        if let [only] = pieces
            && let Some(instead) = this.problem(only)
        {
            this.instead = instead;
            return Poll::Ready(Ok(only.len()));
        }
        this.wrote = true;
        Pin::new(&mut this.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_instead(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_instead(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const HYPERS: &[u8] =
        b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: now\r\n\r\n";

    #[test]
    fn only_what_hyper_makes_up_counts_as_its_refusal() {
        assert_eq!(refusal(HYPERS), Some(StatusCode::BAD_REQUEST));
        for other in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 10\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-type: a/b\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\nHTTP/1.1 400 B\r\n\r\n",
            "HTTP/1.1 4",
            "",
        ] {
            assert_eq!(refusal(other.as_bytes()), None, "{other}");
        }
    }

    #[tokio::test]
    async fn what_a_handler_answered_goes_out_as_it_is() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let (mut ours, asked) = Refusals::new(ours, LastAnswer::default(), Told::default());
        asked.now();
        ours.write_all(HYPERS).await.unwrap();
        // The next head, which hyper refuses.
        theirs.write_all(b"NONSENSE").await.unwrap();
        ours.read_exact(&mut [0; 8]).await.unwrap();
        ours.write_all(HYPERS).await.unwrap();
        ours.shutdown().await.unwrap();
        drop(ours);
        let mut answers = Vec::new();
        theirs.read_to_end(&mut answers).await.unwrap();
        let (first, second) = answers.split_at(HYPERS.len());
        assert_eq!(first, HYPERS);
        let second = String::from_utf8_lossy(second);
        assert!(second.contains("\"INVALID_REQUEST\""), "{second}");
        assert!(second.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{second}");
    }
}
