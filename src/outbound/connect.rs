//! From a target to an open connection, to an address that was judged.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::OutboundSettings;
use super::address::Judge;
use super::error::{NotSent, SetupError};
use super::exchange::Progress;
use super::host::Host;
use super::resolve::Resolve;
use super::target::{Scheme, Target};
use super::tls;

/// Most addresses of one name that are tried: a name with hundreds would make one call many.
const MAX_TRIES: usize = 4;

/// A connection, whatever it is made of.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(super) type Dialing = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// Opens a connection to an address. A trait of its own so that a test sees which addresses are dialed,
/// and none of them leaves the machine.
pub(super) trait Dial: fmt::Debug + Send + Sync {
    fn dial(&self, address: SocketAddr) -> Dialing;
}

#[derive(Debug)]
pub(super) struct Tcp;

impl Dial for Tcp {
    fn dial(&self, address: SocketAddr) -> Dialing {
        Box::pin(TcpStream::connect(address))
    }
}

pub(super) struct Connector {
    judge: Judge,
    resolver: Arc<dyn Resolve>,
    dialer: Arc<dyn Dial>,
    tls: TlsConnector,
}

impl fmt::Debug for Connector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connector")
            .field("judge", &self.judge)
            .field("resolver", &self.resolver)
            .field("dialer", &self.dialer)
            .finish_non_exhaustive()
    }
}

impl Connector {
    pub(super) fn new(
        settings: OutboundSettings,
        resolver: Arc<dyn Resolve>,
        dialer: Arc<dyn Dial>,
    ) -> Result<Self, SetupError> {
        let judge = Judge::new(settings.private_targets, settings.own_listeners);
        Ok(Self { judge, resolver, dialer, tls: tls::connector(settings.extra_roots)? })
    }

    pub(super) fn judge(&self) -> &Judge {
        &self.judge
    }

    /// Opens a connection over which a request can be sent. `timeout` is the whole call's: of it, each
    /// address gets its share, so that a dead one does not take the time of a good one.
    pub(super) async fn connect(
        &self,
        target: &Target,
        timeout: Duration,
        progress: &mut Progress,
    ) -> Result<Box<dyn Stream>, NotSent> {
        *progress = Progress::Resolving;
        let addresses = self.judged(target, self.resolve(&target.host).await?)?;
        let (address, stream) = self.dial(&addresses, timeout, progress).await?;
        match target.scheme {
            Scheme::Http => Ok(Box::new(stream)),
            Scheme::Https => {
                *progress = Progress::Securing { address };
                let secured = self.tls.connect(server_name(&target.host), stream).await;
                let host = || target.host.to_string();
                let stream =
                    secured.map_err(|cause| NotSent::Tls { host: host(), address, cause })?;
                Ok(Box::new(stream))
            }
        }
    }

    async fn resolve(&self, host: &Host) -> Result<Vec<IpAddr>, NotSent> {
        match host {
            Host::Address(address) => Ok(vec![*address]),
            Host::Name(name) => self
                .resolver
                .resolve(name)
                .await
                .map_err(|cause| NotSent::Resolve { host: name.clone(), cause }),
        }
    }

    /// The addresses that may be connected to. A name may have others besides: those are left out.
    fn judged(&self, target: &Target, found: Vec<IpAddr>) -> Result<Vec<SocketAddr>, NotSent> {
        let mut good = Vec::new();
        let mut refused = None;
        for ip in found {
            let address = SocketAddr::new(ip, target.port);
            match self.judge.judge(address, target.scheme) {
                Ok(()) => good.push(address),
                Err(cause) => {
                    refused.get_or_insert(cause);
                }
            }
        }
        good.truncate(MAX_TRIES);
        let host = || target.host.to_string();
        match refused {
            _ if !good.is_empty() => Ok(good),
            Some(cause) => Err(NotSent::Refused { host: host(), cause }),
            None => Err(NotSent::NoAddress { host: host() }),
        }
    }

    /// The first that answers, in the resolver's order; otherwise why the last did not.
    async fn dial(
        &self,
        addresses: &[SocketAddr],
        timeout: Duration,
        progress: &mut Progress,
    ) -> Result<(SocketAddr, TcpStream), NotSent> {
        let tries = u32::try_from(addresses.len()).expect("there are at most MAX_TRIES");
        let share = timeout / tries.max(1);
        let mut last = None;
        for address in addresses.iter().copied() {
            *progress = Progress::Connecting { address };
            match tokio::time::timeout(share, self.dialer.dial(address)).await {
                Ok(Ok(stream)) => match stream.set_nodelay(true) {
                    Ok(()) => return Ok((address, stream)),
                    Err(cause) => last = Some(NotSent::Connect { address, cause }),
                },
                Ok(Err(cause)) => last = Some(NotSent::Connect { address, cause }),
                Err(_) => last = Some(NotSent::ConnectTimeout { address }),
            }
        }
        Err(last.expect("a name without an address was refused before"))
    }
}

pub(super) fn server_name(host: &Host) -> ServerName<'static> {
    match host {
        Host::Address(address) => ServerName::from(*address),
        Host::Name(name) => ServerName::try_from(name.clone())
            .expect("a host's name has only the labels that DNS knows"),
    }
}
