//! Why a call has no answer, told apart by the one thing that matters: may the receiver have acted?

use std::io;
use std::net::SocketAddr;

use tokio_rustls::rustls;

use super::address::AddressError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// Nobody was handed anything, so it is safe to try again.
    #[error("the request was not sent: {0}")]
    NotSent(#[from] NotSent),
    /// The receiver may have got the request and acted.
    #[error("what became of the request is unknown: {0}")]
    Unknown(#[from] Unknown),
}

/// What went wrong before the request was handed over.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    #[error("the id of a request has visible ASCII characters only")]
    Id,
    #[error("cannot resolve {host}: {cause}")]
    Resolve { host: String, cause: io::Error },
    #[error("{host} has no address")]
    NoAddress { host: String },
    #[error("{host} is not called: {cause}")]
    Refused { host: String, cause: AddressError },
    #[error("cannot connect to {address}: {cause}")]
    Connect { address: SocketAddr, cause: io::Error },
    #[error("no TLS with {host} at {address}: {cause}")]
    Tls { host: String, address: SocketAddr, cause: io::Error },
    #[error("out of time while resolving the name")]
    ResolveTimeout,
    #[error("out of time while connecting to {address}")]
    ConnectTimeout { address: SocketAddr },
    #[error("out of time while agreeing on TLS with {address}")]
    TlsTimeout { address: SocketAddr },
}

/// What went wrong afterwards.
#[derive(Debug, thiserror::Error)]
pub enum Unknown {
    #[error("no whole answer within the time")]
    Timeout,
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("extra root number {number} is not a certificate: {cause}")]
    Root { number: usize, cause: rustls::Error },
}
