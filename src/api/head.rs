//! Watches the bytes of request heads go by, for two things that hyper keeps to itself or mixes up.
//!
//! **Framing.** A request with both `Content-Length` and `Transfer-Encoding` is how one request is smuggled past
//! a proxy inside another. hyper follows the standard, lets the encoding win and drops the length
//! before anybody sees it; Horolog refuses such a request. So [`Watched`] notes, while hyper reads,
//! which of the two names the head had, and the server asks [`Notes::take`] about each request that
//! has a `Transfer-Encoding`.
//!
//! A head is looked for after each answer. One that a client sends without waiting for the answer
//! before it is not seen here; with a `Transfer-Encoding` it is then refused too, and without one
//! there is nothing to tell apart.
//!
//! **Time.** hyper has one time-out for the wait between two requests and for a head on its way. A
//! client keeps connections for longer than a head may take, so that wait is hyper's, and a head is
//! timed here: from its first byte, and for the first one from the beginning.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::problem::{Code, Problem};
use super::refused::Told;
use crate::metrics::Bound;
use crate::sync::{AtomicU8, Ordering};

#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;

const CONTENT_LENGTH: &[u8] = b"content-length";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding";
/// As much of a line as it takes to know either name and the colon behind it.
const LINE_START: usize = TRANSFER_ENCODING.len() + 1;

/// What the head of a request said about the length of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// `Transfer-Encoding` alone.
    Encoded,
    /// Both names, or a head that was not watched.
    Doubtful,
}

/// The notes on the last head that was watched.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Arc<AtomicU8>);

const SAW_LENGTH: u8 = 1;
const SAW_ENCODING: u8 = 2;

impl Notes {
    /// How a request with a `Transfer-Encoding` says that it is framed. Good for one request.
    pub(super) fn take(&self) -> Framing {
        match self.0.swap(0, Ordering::Relaxed) {
            SAW_ENCODING => Framing::Encoded,
            _ => Framing::Doubtful,
        }
    }
}

/// Where in a request the scan is.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Head,
    Behind,
}

/// Reads heads line by line, over any cuts between reads.
#[derive(Debug)]
struct Scan {
    place: Place,
    line: [u8; LINE_START],
    /// Bytes of the present line so far; only the first [`LINE_START`] are kept.
    length: usize,
    /// Lines with something in them, so that blank lines ahead of a request do not end its head.
    lines: usize,
}

impl Scan {
    const fn new() -> Self {
        Self { place: Place::Head, line: [0; LINE_START], length: 0, lines: 0 }
    }

    /// Whether anything of the head is there.
    fn has_begun(&self) -> bool {
        self.lines > 0 || self.length > 0
    }

    fn feed(&mut self, mut bytes: &[u8], notes: &AtomicU8) {
        while self.place == Place::Head && !bytes.is_empty() {
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            self.keep(piece);
            let Some(end) = end else { return };
            self.end_line(notes);
            bytes = &bytes[end + 1..];
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        let start = self.length.min(LINE_START);
        let kept = piece.len().min(LINE_START - start);
        self.line[start..start + kept].copy_from_slice(&piece[..kept]);
        self.length += piece.len();
    }

    fn end_line(&mut self, notes: &AtomicU8) {
        let line = &self.line[..self.length.min(LINE_START)];
        if line.is_empty() || line == b"\r" {
            if self.lines > 0 {
                self.place = Place::Behind;
            }
        } else {
            self.lines += 1;
            let is = |name: &[u8]| {
                line.len() > name.len()
                    && line[name.len()] == b':'
                    && line[..name.len()].eq_ignore_ascii_case(name)
            };
            if is(CONTENT_LENGTH) {
                notes.fetch_or(SAW_LENGTH, Ordering::Relaxed);
            } else if is(TRANSFER_ENCODING) {
                notes.fetch_or(SAW_ENCODING, Ordering::Relaxed);
            }
        }
        self.length = 0;
    }
}

/// A connection whose request heads are watched.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    scan: Scan,
    notes: Notes,
    allowed: Duration,
    /// When the head that is on its way must be there.
    deadline: Option<Pin<Box<Sleep>>>,
    told: Told,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, allowed: Duration, told: Told) -> (Self, Notes) {
        let notes = Notes::default();
        let deadline = Some(within(allowed));
        let scan = Scan::new();
        (Self { stream, scan, notes: notes.clone(), allowed, deadline, told }, notes)
    }

    /// Looks at what was read, and sets or lifts the deadline.
    fn read(&mut self, bytes: &[u8]) {
        if self.scan.place == Place::Head {
            self.scan.feed(bytes, &self.notes.0);
        }
        if self.scan.place == Place::Behind {
            self.deadline = None;
        } else if !bytes.is_empty() && self.deadline.is_none() {
            self.deadline = Some(within(self.allowed));
        }
    }

    /// After an answer the next request begins.
    fn answered(&mut self) {
        if self.scan.place == Place::Behind {
            self.scan = Scan::new();
            self.notes.0.store(0, Ordering::Relaxed);
        }
    }
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(deadline) = &mut self.deadline else { return Poll::Pending };
        ready!(deadline.as_mut().poll(context));
        let problem = Problem::new(Code::RequestTimeout, "the head of the request came too slowly")
            .by(Bound::HeaderTime);
        if self.scan.has_begun() {
            // There is room for it: nothing else was written. A client that is gone misses nothing.
            let _ = Pin::new(&mut self.stream).poll_write(context, &problem.written_whole());
            self.told.answered(&problem);
        } else {
            self.told.refused(Bound::HeaderTime);
        }
        let late = "the head of a request takes too long";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, late)))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        match Pin::new(&mut this.stream).poll_read(context, buffer) {
            Poll::Ready(read) => {
                this.read(&buffer.filled()[before..]);
                Poll::Ready(read)
            }
            Poll::Pending => this.poll_deadline(context),
        }
    }
}

fn within(allowed: Duration) -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep_until(Instant::now() + allowed))
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.answered();
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.answered();
        Pin::new(&mut this.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

    fn framing(head: &str, cut: usize) -> Framing {
        let (mut scan, notes) = (Scan::new(), Notes::default());
        let (start, rest) = head.as_bytes().split_at(cut);
        scan.feed(start, &notes.0);
        scan.feed(rest, &notes.0);
        notes.take()
    }

    #[test]
    fn both_names_are_seen_wherever_a_read_cuts_the_head() {
        let both = "\r\nPOST / HTTP/1.1\r\ncontent-LENGTH: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
        let one =
            "\r\nPOST / HTTP/1.1\r\nX-Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
        for cut in 0..both.len() {
            assert_eq!(framing(both, cut), Framing::Doubtful, "{cut}");
        }
        for cut in 0..one.len() {
            assert_eq!(framing(one, cut), Framing::Encoded, "{cut}");
        }
    }

    #[test]
    fn what_comes_behind_the_head_is_not_part_of_it() {
        let head = "POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n5\ncontent-length: 3\n";
        assert_eq!(framing(head, 20), Framing::Encoded);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_is_timed_and_the_wait_for_the_next_one_is_not() {
        let (ours, theirs) = tokio::io::duplex(1024);
        let (mut watched, _) = Watched::new(ours, HEADER_TIMEOUT, Told::default());
        let mut client = theirs;
        let mut buffer = [0; 64];
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        assert_eq!(AsyncReadExt::read(&mut watched, &mut buffer).await.unwrap(), 18);
        watched.write_all(b"an answer").await.unwrap();
        // Nothing comes for much longer than a head may take: that is no fault.
        let idle =
            tokio::time::timeout(HEADER_TIMEOUT * 3, AsyncReadExt::read(&mut watched, &mut buffer));
        idle.await.unwrap_err();
        // The next head begins, and does not come to its end.
        client.write_all(b"GET / HT").await.unwrap();
        assert_eq!(AsyncReadExt::read(&mut watched, &mut buffer).await.unwrap(), 8);
        let late = AsyncReadExt::read(&mut watched, &mut buffer).await.unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(watched);
        let mut answers = Vec::new();
        client.read_to_end(&mut answers).await.unwrap();
        let answers = String::from_utf8_lossy(&answers);
        assert!(answers.starts_with("an answerHTTP/1.1 408 Request Timeout\r\n"), "{answers}");
        assert!(answers.contains("\"REQUEST_TIMEOUT\""), "{answers}");
    }

    #[test]
    fn notes_are_good_for_one_request() {
        let notes = Notes::default();
        Scan::new().feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", &notes.0);
        assert_eq!(notes.take(), Framing::Encoded);
        assert_eq!(notes.take(), Framing::Doubtful);
    }
}
