//! The client as its callers see it, over real sockets of this machine.
//!
//! No test leaves the machine: a [`Detour`] notes which address was to be dialed and dials the test's own.
//! Where time has to pass, the test's clock is paused once the other side has seen what it waits for.

mod addresses;
mod calls;
mod deadlines;
mod rebinding;
mod replies;
mod signing;
mod targets;
mod tls;

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::address::Judge;
use super::connect::{Dial, Dialing};
use super::*;
use crate::sync::Mutex;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_999);
const LONG: Duration = Duration::from_secs(30);
const PUBLIC: &str = "93.184.216.34";

/// Gives its answers in turn, and the last one for ever.
#[derive(Debug)]
struct Answers(Mutex<VecDeque<Vec<IpAddr>>>);

impl Answers {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(answers.iter().map(parse).collect())))
    }
}

impl Resolve for Answers {
    fn resolve<'a>(&'a self, _name: &'a str) -> Resolving<'a> {
        let mut answers = self.0.lock();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Box::pin(async move { Ok(answer.unwrap_or_default()) })
    }
}

/// Dials `to`, whatever it was asked to dial, and notes what that was.
#[derive(Debug)]
struct Detour {
    to: SocketAddr,
    dialed: Mutex<Vec<SocketAddr>>,
}

impl Detour {
    fn to(to: SocketAddr) -> Arc<Self> {
        Arc::new(Self { to, dialed: Mutex::new(Vec::new()) })
    }

    fn dialed(&self) -> Vec<String> {
        self.dialed.lock().iter().map(ToString::to_string).collect()
    }
}

impl Dial for Detour {
    fn dial(&self, address: SocketAddr) -> Dialing {
        self.dialed.lock().push(address);
        Box::pin(TcpStream::connect(self.to))
    }
}

fn settings(private_targets: PrivateTargets) -> OutboundSettings {
    OutboundSettings { private_targets, own_listeners: Vec::new(), extra_roots: Vec::new() }
}

/// A client that may call this machine, and whose every name means this machine.
fn local() -> Outbound {
    let resolver = Answers::new(&[&["127.0.0.1"]]);
    Outbound::new(settings(PrivateTargets::Allowed), resolver).unwrap()
}

fn with_dialer(
    settings: OutboundSettings,
    resolver: Arc<dyn Resolve>,
    dialer: Arc<dyn Dial>,
) -> Outbound {
    Outbound { connector: Connector::new(settings, resolver, dialer).unwrap() }
}

fn target(url: &str) -> Target {
    Target::new(url, PrivateTargets::Allowed).unwrap()
}

async fn post(outbound: &Outbound, target: &Target) -> Result<Reply, OutboundError> {
    outbound.post(target, "msg_1", NOW, None, Bytes::from_static(b"{}"), LONG).await
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Takes one request, which it gives back in the end, answers it with `answer`, and closes.
async fn receiver(answer: impl Into<Vec<u8>>) -> (SocketAddr, JoinHandle<String>) {
    let (listener, address) = listener().await;
    let answer = answer.into();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_request(&mut stream).await;
        // The client may have read enough before all of it was written.
        let _ = stream.write_all(&answer).await;
        request
    });
    (address, task)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    loop {
        let read = stream.read_buf(&mut bytes).await.unwrap();
        assert!(read > 0, "a request ended early: {bytes:?}");
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize = header(head, "content-length").parse().unwrap();
            if body.len() >= length {
                return text.into_owned();
            }
        }
    }
}

/// The value of the header in the text of a request.
fn header<'a>(request: &'a str, name: &str) -> &'a str {
    let lines = request.lines();
    let mut found = lines.filter_map(|line| line.split_once(": ")).filter(|(key, _)| *key == name);
    let (_, value) = found.next().unwrap_or_else(|| panic!("no {name}: {request}"));
    assert!(found.next().is_none(), "two of {name}: {request}");
    value
}

/// Shows that nobody connected: of the connections in the listener's queue the first is the one that is
/// made here.
async fn assert_nobody_came(listener: &TcpListener) {
    let own = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (_, first) = listener.accept().await.unwrap();
    assert_eq!(first, own.local_addr().unwrap());
}

fn not_sent(result: Result<Reply, OutboundError>) -> NotSent {
    match result {
        Err(OutboundError::NotSent(why)) => why,
        other => panic!("something may have been sent: {other:?}"),
    }
}

fn unknown(result: Result<Reply, OutboundError>) -> Unknown {
    match result {
        Err(OutboundError::Unknown(why)) => why,
        other => panic!("it should be unknown what became of it: {other:?}"),
    }
}
