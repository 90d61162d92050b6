//! Connections: how many, how long a head may take, and how they end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tower::Service as _;

use super::Api;
use super::head::{Framing, Notes, Watched};
use super::limits::{IDLE_TIMEOUT, MAX_HEADER_BYTES};
use super::linger::Lingering;
use super::problem::Problem;
use crate::metrics::Route;

/// Sent to a client that is one too many, before it has asked for anything.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\nretry-after: 1\r\nconnection: close\r\n\
    content-length: 157\r\n\r\n\
    {\"type\":\"urn:horolog:problem:OVERLOADED\",\"title\":\"The server is overloaded\",\
    \"status\":503,\"detail\":\"as many connections are open as may\",\"code\":\"OVERLOADED\"}\n";

/// How long to wait when the process has no file handle left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

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
        let connections = api.shared.limits.connections.min(Semaphore::MAX_PERMITS);
        let slots = Arc::new(Semaphore::new(connections));
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
    let http = http();
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
            Err(_) => refuse(&stream),
        }
    }
}

fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        // The wait for the next request; a head on its way is timed by `head`.
        .header_read_timeout(IDLE_TIMEOUT)
        .max_header_size(MAX_HEADER_BYTES)
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

fn refuse(stream: &TcpStream) {
    // A client that is gone, or does not read, has lost nothing but this answer.
    let _ = stream.try_write(TOO_MANY_CONNECTIONS);
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
    let (stream, last) = Lingering::new(stream);
    let (stream, notes) = Watched::new(stream);
    let answer = service_fn(move |request| {
        let (router, api) = (router.clone(), api.clone());
        let (notes, last) = (notes.clone(), last.clone());
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
    response
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_one_too_many_is_as_long_as_it_says() {
        let text = std::str::from_utf8(TOO_MANY_CONNECTIONS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        let problem: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(problem["code"], "OVERLOADED");
    }
}
