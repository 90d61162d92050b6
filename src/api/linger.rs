//! A close that lets the client read the answer first.
//!
//! When a body is refused half way, the client is still sending. A socket that is closed with bytes
//! unread resets the connection, and the reset overtakes the answer: the client sees a broken pipe
//! instead of its 413. So after the last answer the server says that it is done, and then reads and
//! drops what still comes, for a while. Only a refusal can come before its request has ended, so
//! only after one is this done; an idle connection is closed at once.

use std::future::Pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Timeout, timeout};

use crate::sync::{AtomicBool, Ordering};

/// How long a client may go on sending what nobody reads.
const PATIENCE: Duration = Duration::from_secs(2);

/// How much is dropped at a time.
const PIECE: usize = 4096;

/// What became of the last request on a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct LastAnswer(Arc<AtomicBool>);

impl LastAnswer {
    pub(super) fn was(&self, status: StatusCode) {
        let refused = status.is_client_error() || status.is_server_error();
        self.0.store(refused, Ordering::Relaxed);
    }

    fn was_refusal(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection whose shutdown after a refusal waits for the other side to end, too.
#[derive(Debug)]
pub(super) struct Lingering<S> {
    stream: S,
    last: LastAnswer,
    /// Set once our side is shut down.
    until: Option<Pin<Box<Timeout<Pending<()>>>>>,
}

impl<S> Lingering<S> {
    pub(super) fn new(stream: S) -> (Self, LastAnswer) {
        let last = LastAnswer::default();
        (Self { stream, last: last.clone(), until: None }, last)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Lingering<S> {
    fn poll_drop_input(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let until =
            self.until.get_or_insert_with(|| Box::pin(timeout(PATIENCE, std::future::pending())));
        let mut piece = [0; PIECE];
        while until.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut piece);
            // Whatever ends the other side, an end or an error, ends this one.
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                Ok(()) | Err(_) => return Poll::Ready(Ok(())),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.until.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        }
        if this.last.was_refusal() { this.poll_drop_input(context) } else { Poll::Ready(Ok(())) }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn after_a_refusal_what_the_other_side_still_sends_is_read() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let (mut ours, last) = Lingering::new(ours);
        let closing = async {
            last.was(StatusCode::PAYLOAD_TOO_LARGE);
            ours.write_all(b"refused").await.unwrap();
            ours.shutdown().await.unwrap();
        };
        let sending = async {
            theirs.write_all(&[b'x'; 10_000]).await.unwrap();
            let mut answer = Vec::new();
            theirs.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, b"refused");
            drop(theirs);
        };
        tokio::join!(closing, sending);
    }

    #[tokio::test]
    async fn otherwise_the_other_side_need_not_end() {
        let (ours, theirs) = tokio::io::duplex(16);
        let (mut ours, last) = Lingering::new(ours);
        last.was(StatusCode::CREATED);
        ours.shutdown().await.unwrap();
        drop(theirs);
    }
}
