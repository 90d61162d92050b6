//! Connections: how many, how long a head may take, and how they end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::header::TRANSFER_ENCODING;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWrite;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tower::Service as _;

use super::Api;
use super::head::{Framing, Notes, Watched};
use super::limits::{Limits, MAX_FAREWELLS, MAX_HEADERS};
use super::linger::Lingering;
use super::problem::{Code, Problem};
use super::refused::{Refusals, Told};
use super::unread::Unread;
use crate::metrics::{Bound, Route};

/// How long to wait when the process has no file handle left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// How long a connection that is refused is given to ask for something.
const QUESTION: Duration = Duration::from_secs(2);

/// Whether connections go on after the answer they are working on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    Ending,
}

/// A listener that answers, until it is told to end.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    phase: watch::Sender<Phase>,
    listening: JoinHandle<()>,
    slots: Arc<Semaphore>,
    connections: usize,
}

impl Server {
    /// Answers on `listener` what `api` has to say, in tasks of the runtime that calls this.
    ///
    /// # Errors
    ///
    /// When the listener has no address, which means that it is not open.
    pub fn start(listener: TcpListener, api: Api) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let connections = api.shared.limits.connections();
        let slots = Arc::clone(&api.shared.connections);
        let (phase, watched) = watch::channel(Phase::Serving);
        let listening = tokio::spawn(listen(listener, api, Arc::clone(&slots), watched));
        Ok(Self { address, phase, listening, slots, connections })
    }

    /// Where it listens; the port is a real one, even when 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets each finish the answer it is working on, and returns when
    /// the last has ended. Dropping the future leaves the rest to end by themselves.
    pub async fn end(self) {
        self.phase.send_replace(Phase::Ending);
        // The listener's task ends by itself; that it was aborted before is no concern here.
        let _ = self.listening.await;
        let all = u32::try_from(self.connections).unwrap_or(u32::MAX);
        // Every slot is free again once every connection has ended; the semaphore is never closed.
        let _ = self.slots.acquire_many(all).await;
    }
}

async fn listen(
    listener: TcpListener,
    api: Api,
    slots: Arc<Semaphore>,
    mut phase: watch::Receiver<Phase>,
) {
    let http = http(&api.shared.limits);
    let farewells = Arc::new(Semaphore::new(MAX_FAREWELLS));
    let router = api.clone().router();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ending(&mut phase) => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                pause_after(&error, &mut phase).await;
                continue;
            }
        };
        match Arc::clone(&slots).try_acquire_owned() {
            Ok(slot) => {
                let ends = phase.clone();
                let connection = serve(http.clone(), stream, router.clone(), api.clone(), ends);
                tokio::spawn(hold(slot, connection));
            }
            Err(_) => {
                let told = Told::new(&api.shared.metrics);
                match Arc::clone(&farewells).try_acquire_owned() {
                    Ok(farewell) => drop(tokio::spawn(hold(farewell, refuse(stream, told)))),
                    Err(_) => told.refused(Bound::Connections),
                }
            }
        }
    }
}

/// The least that is read ahead of a connection, for bodies to come in pieces of some size.
const READ_AHEAD: usize = 64 * 1024;

fn http(limits: &Limits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        // The wait for the next request; a head on its way is timed by `head`.
        .header_read_timeout(Duration::from_millis(limits.deadlines.idle_ms))
        .max_header_size(limits.header_bytes)
        // Counts for a head that has not come to its end, too: there is no other bound for one.
        .max_buf_size(READ_AHEAD.max(2 * limits.header_bytes))
        .max_headers(MAX_HEADERS)
        .keep_alive(true);
    http
}

/// An error of one client that went away is nothing; out of file handles, wait for some to close.
async fn pause_after(error: &io::Error, phase: &mut watch::Receiver<Phase>) {
    let by_client = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    );
    if !by_client {
        tracing::warn!(%error, "cannot accept a connection");
        // Whichever comes first: the pause is over, or the server ends and the caller sees that.
        let _ = tokio::time::timeout(ACCEPT_PAUSE, ending(phase)).await;
    }
}

/// Returns when the server ends, or was dropped without an end.
async fn ending(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|now| *now == Phase::Ending).await;
}

/// Tells a client that it is one too many, and stays until it has read so. An answer before the question
/// would be no answer to many clients, so the question is waited for, shortly; it is not read.
async fn refuse(stream: TcpStream, told: Told) {
    let problem = Problem::new(Code::Overloaded, "as many connections are open as may")
        .by(Bound::Connections);
    told.answered(&problem);
    // One that asks nothing is told all the same.
    let _ = tokio::time::timeout(QUESTION, stream.readable()).await;
    // A client that is gone, or does not read, has lost nothing but this answer.
    if stream.try_write(&problem.written_whole()).is_ok() {
        let (mut stream, last) = Lingering::new(stream);
        last.was(problem.status());
        let _ = poll_fn(|context| Pin::new(&mut stream).poll_shutdown(context)).await;
    }
}

async fn hold(slot: OwnedSemaphorePermit, connection: impl Future<Output = ()>) {
    connection.await;
    drop(slot);
}

async fn serve(
    http: http1::Builder,
    stream: TcpStream,
    router: Router,
    api: Api,
    mut phase: watch::Receiver<Phase>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection was gone at once");
        return;
    }
    let told = Told::new(&api.shared.metrics);
    let deadlines = &api.shared.limits.deadlines;
    let stream = Unread::new(stream, Duration::from_millis(deadlines.answer_ms), told.clone());
    let (stream, last) = Lingering::new(stream);
    let (stream, asked) = Refusals::new(stream, last.clone(), told.clone());
    let (stream, notes) = Watched::new(stream, Duration::from_millis(deadlines.header_ms), told);
    let answer = service_fn(move |request| {
        let (router, api) = (router.clone(), api.clone());
        let (notes, last) = (notes.clone(), last.clone());
        asked.now();
        async move {
            let response = respond(router, &api, &notes, request).await;
            last.was(response.status());
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), answer));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = ending(&mut phase) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn respond(
    mut router: Router,
    api: &Api,
    notes: &Notes,
    request: Request<Incoming>,
) -> Response<Body> {
    if let Err(problem) = refuse_doubtful(&request, notes) {
        return api.answer(Route::None, Err(problem));
    }
    let Ok(response) = router.call(request.map(Body::new)).await;
    api.shared.answers.count(response).await
}

fn refuse_doubtful(request: &Request<Incoming>, notes: &Notes) -> Result<(), Problem> {
    if !request.headers().contains_key(TRANSFER_ENCODING) {
        return Ok(());
    }
    match notes.take() {
        Framing::Encoded => Ok(()),
        Framing::Doubtful => {
            Err(Problem::invalid("a request has Content-Length or Transfer-Encoding, not both")
                .closing())
        }
    }
}
