//! A client that does not read its answer: its connection is closed after a while.
//!
//! The operating system takes some of an answer ahead. When it takes no more and nothing goes on for the time
//! that is allowed, the client is gone, or wants to keep the answer in the server's memory.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::refused::Told;
use crate::metrics::Bound;

/// A connection whose writes must get somewhere.
#[derive(Debug)]
pub(super) struct Unread<S> {
    stream: S,
    allowed: Duration,
    /// Until when the write that waits must go on.
    deadline: Option<Pin<Box<Sleep>>>,
    told: Told,
}

impl<S> Unread<S> {
    pub(super) fn new(stream: S, allowed: Duration, told: Told) -> Self {
        Self { stream, allowed, deadline: None, told }
    }

    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let allowed = self.allowed;
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + allowed)));
        ready!(deadline.as_mut().poll(context));
        self.told.refused(Bound::AnswerTime);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads the answer")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unread<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unread<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.judge(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, pieces);
        this.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.judge(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const ALLOWED: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_take_long_as_long_as_it_goes_on() {
        let (ours, mut theirs) = tokio::io::duplex(1);
        let mut ours = Unread::new(ours, ALLOWED, Told::default());
        let answering = async { ours.write_all(b"answer").await.unwrap() };
        let reading = async {
            let mut byte = [0];
            for _ in 0..6 {
                let nothing = tokio::time::timeout(ALLOWED * 9 / 10, std::future::pending::<()>());
                nothing.await.unwrap_err();
                theirs.read_exact(&mut byte).await.unwrap();
            }
        };
        tokio::join!(answering, reading);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_nobody_reads_is_given_up() {
        let (ours, theirs) = tokio::io::duplex(1);
        let told = Told::default();
        let mut ours = Unread::new(ours, ALLOWED, told.clone());
        let late = ours.write_all(b"answer").await.unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        let listed = told.render();
        assert!(listed.contains("horolog_refused_total{limit=\"answer_time\"} 1"), "{listed}");
        drop(theirs);
    }
}
