//! Calls to our users: the one door by which the server itself opens a connection to anybody.
//!
//! A user gives us a URL, and we call it from inside the network that the operator wants to protect. So
//! each call is judged twice, and nothing else in the server may connect to a URL that a user gave:
//!
//! ```text
//!   text ──> Target ─────────────> Outbound::post ──> resolve ──> judge ──> connect ──> TLS ──> POST ──> Reply
//!            scheme, port, host,                                  every     to the very address
//!            literal addresses                                    address   that was judged
//! ```
//!
//! - The first judgement is for the user, who is told at once what is wrong with a URL. The second is what
//!   protects: a name may mean another address at every look, so addresses are judged after the resolver
//!   spoke and before anything is opened, at each call, and the name is not looked up again in between.
//! - An address inside another (IPv4 in IPv6, in its several forms) is judged by the inner one.
//! - Redirects are answers like any other: to follow one would be to call a URL that nobody judged here.
//! - No proxy is taken from the environment: a proxy would resolve the name a second time, unjudged.
//! - Each call has a connection of its own. A kept one would save a handshake, but also outlive the judgement
//!   of its address, and whether a request on it was ever received is harder to say when it turns out closed.
//! - What goes wrong before the request is handed over is [`NotSent`]; after that it is [`Unknown`], and the
//!   receiver may have acted.

mod address;
mod connect;
mod error;
mod exchange;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod host;
mod reply;
mod resolve;
mod secret;
mod target;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
pub use tokio_rustls::rustls::pki_types::CertificateDer;

pub use address::{AddressError, Kind};
pub use error::{NotSent, OutboundError, SetupError, Unknown};
pub use host::HostError;
pub use reply::{MAX_REPLY_BYTES, Reply};
pub use resolve::{Resolve, Resolving, SystemResolver};
pub use secret::{Secret, SecretError};
pub use target::{MAX_TARGET_BYTES, Target, TargetError};

use crate::clock::Timestamp;
use crate::config::PrivateTargets;
use connect::{Connector, Tcp};
use exchange::{Progress, exchange};

/// What decides whom the server may call, and whom it believes.
#[derive(Clone, Debug)]
pub struct OutboundSettings {
    pub private_targets: PrivateTargets,
    /// Where this process listens: it never calls itself there, not even when private targets are allowed.
    pub own_listeners: Vec<SocketAddr>,
    /// Certificate authorities that are believed besides the public ones.
    pub extra_roots: Vec<CertificateDer<'static>>,
}

/// Calls targets over HTTP/1.1, on a connection of its own for each call.
#[derive(Debug)]
pub struct Outbound {
    connector: Connector,
}

impl Outbound {
    /// A client that asks `resolver` what a name means.
    ///
    /// # Errors
    ///
    /// When one of the extra roots is not a certificate.
    pub fn new(settings: OutboundSettings, resolver: Arc<dyn Resolve>) -> Result<Self, SetupError> {
        Ok(Self { connector: Connector::new(settings, resolver, Arc::new(Tcp))? })
    }

    /// Judges a URL, as [`Target::new`] does, by the settings of this client.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong with the URL, in words for the one who gave it.
    pub fn target(&self, url: &str) -> Result<Target, TargetError> {
        Target::new(url, self.private_targets())
    }

    /// Whether targets may be private, as [`Target::new`] wants to be told.
    pub fn private_targets(&self) -> PrivateTargets {
        self.connector.judge().private_targets()
    }

    /// Posts `body`, which is JSON, and reads the answer: of any status, and at most [`MAX_REPLY_BYTES`]
    /// of it.
    ///
    /// The request names itself `id` and says that it was made at `now`; with a `secret` it is signed as
    /// Standard Webhooks asks for. An `id` should stay the same when the same thing is posted again.
    /// All of it, with the answer's body, has to be done within `timeout`. Dropping the future closes the
    /// connection, and what became of the request is unknown then.
    ///
    /// # Errors
    ///
    /// [`OutboundError::NotSent`] when nobody was handed anything, [`OutboundError::Unknown`] when the
    /// receiver may have got the request.
    pub async fn post(
        &self,
        target: &Target,
        id: &str,
        now: Timestamp,
        secret: Option<&Secret>,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Reply, OutboundError> {
        let mut progress = Progress::Resolving;
        let request = exchange::request(target, id, now, secret, body)?;
        let call = async {
            let stream = self.connector.connect(target, timeout, &mut progress).await?;
            exchange(stream, request, now, &mut progress).await
        };
        match tokio::time::timeout(timeout, call).await {
            Ok(done) => done,
            Err(_) => Err(progress.out_of_time()),
        }
    }
}

#[cfg(test)]
mod tests;
