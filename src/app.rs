//! The parts put together: a server that starts, answers, and ends in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use timerlog::disk::Directory;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;

use crate::api::{Api, Limits, Server};
use crate::check_back::CheckBack;
use crate::clock::Clock;
use crate::config::{Config, Exposure};
use crate::metrics::Metrics;
use crate::outbound::{Outbound, OutboundSettings, SystemResolver};
use crate::service::{OpenError, Service, ServiceConfig, ServiceHandle};
use crate::shutdown::{Signal, Signals};

/// How long connections may take to finish at the end. With what the store needs after that, a
/// stop stays within the 10 s that most supervisors wait before they kill.
const CONNECTIONS_END: Duration = Duration::from_secs(7);

/// How often the figures are sorted into their buckets when nobody asks for them.
const TIDY_INTERVAL: Duration = Duration::from_secs(5);

/// What a server is given instead of reaching for it.
#[derive(Debug)]
pub struct World {
    pub directory: Arc<dyn Directory>,
    pub clock: Arc<dyn Clock>,
    /// 32 bytes that nobody can guess.
    pub random: [u8; 32],
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}: {cause}")]
    Listen { address: SocketAddr, cause: io::Error },
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// How a server that had started came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// In order: everything is answered and on the disk.
    Stopped(Signal),
    /// A second signal came before that was done. Nothing accepted is lost; the next start is longer.
    Hurried(Signal),
    /// The disk failed.
    StoreFailed { reason: String },
}

/// A server that answers.
#[derive(Debug)]
pub struct App {
    server: Server,
    service: Service,
    handle: ServiceHandle,
    tidying: JoinHandle<()>,
    check_back: JoinHandle<()>,
}

impl App {
    /// Listens at once, so that `/livez` and `/readyz` tell of a long recovery, and returns when
    /// the data directory is open and requests are taken.
    ///
    /// # Errors
    ///
    /// [`StartError`]; nothing listens then.
    pub async fn start(config: &Config, world: World) -> Result<Self, StartError> {
        let address = config.listen;
        let listen = |cause| StartError::Listen { address, cause };
        let listener = bind(address).map_err(listen)?;
        let metrics = Arc::new(Metrics::new());
        let outbound = Arc::new(outbound(config, listener.local_addr().map_err(listen)?));
        let api = Api::new(limits(config), Arc::clone(&metrics), Arc::clone(&outbound));
        let server = Server::start(listener, api.clone()).map_err(listen)?;
        if config.exposure == Exposure::Insecure {
            tracing::warn!(address = %server.address(), "listening for everyone, without authentication");
        }
        let clock = Arc::clone(&world.clock);
        let (service, handle) = open(service_config(config), world, Arc::clone(&metrics)).await?;
        api.open(service.clone());
        let tidying = tokio::spawn(tidy(metrics));
        let check_back = CheckBack { service: service.clone(), outbound, clock };
        let check_back = tokio::spawn(check_back.run());
        Ok(Self { server, service, handle, tidying, check_back })
    }

    /// Where it listens; the port is a real one, even when 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Ends in order: waiting receives are answered with nothing, what is under way is answered,
    /// then the store is brought to rest.
    pub async fn stop(self) {
        self.service.drain();
        self.tidying.abort();
        let calls = self.check_back.abort_handle();
        let ends = async { tokio::join!(self.server.end(), self.check_back) };
        if tokio::time::timeout(CONNECTIONS_END, ends).await.is_err() {
            tracing::warn!("some connections did not finish in time");
            calls.abort();
        }
        let handle = self.handle;
        if let Err(error) = tokio::task::spawn_blocking(move || handle.stop()).await {
            tracing::error!(%error, "the store did not stop in order");
        }
    }
}

/// Runs a server until it is told to stop. `announce` is called once, when it takes requests.
///
/// # Errors
///
/// When it cannot start.
pub async fn serve(
    config: &Config,
    world: World,
    signals: &mut Signals,
    announce: impl FnOnce(SocketAddr),
) -> Result<Ending, StartError> {
    let app = tokio::select! {
        app = App::start(config, world) => app?,
        // A kill while starting is a legal stop: nothing was accepted.
        signal = signals.next() => return Ok(Ending::Stopped(signal)),
    };
    announce(app.address());
    let signal = tokio::select! {
        reason = app.handle.failed() => {
            tracing::error!(%reason, "the store has failed");
            return Ok(Ending::StoreFailed { reason });
        }
        signal = signals.next() => signal,
    };
    tracing::info!(%signal, "stopping");
    tokio::select! {
        () = app.stop() => Ok(Ending::Stopped(signal)),
        signal = signals.next() => Ok(Ending::Hurried(signal)),
    }
}

async fn open(
    config: ServiceConfig,
    world: World,
    metrics: Arc<Metrics>,
) -> Result<(Service, ServiceHandle), OpenError> {
    let World { directory, clock, random } = world;
    let open = move || Service::open(&config, &directory, clock, metrics, &random);
    tokio::task::spawn_blocking(open).await.expect("opening does not panic and is not aborted")
}

async fn tidy(metrics: Arc<Metrics>) {
    let mut ticks = tokio::time::interval(TIDY_INTERVAL);
    loop {
        ticks.tick().await;
        metrics.tidy();
    }
}

fn service_config(config: &Config) -> ServiceConfig {
    ServiceConfig {
        flush: config.flush,
        segment_size: config.segment_size,
        topics: config.topics,
        queues_per_topic: config.queues_per_topic,
        checkpoint_interval_ms: config.checkpoint_interval_ms,
        retention_ms: config.retention_ms,
        disk_reserve: config.disk_reserve,
        levels: config.delay_levels.clone(),
        queued_appends: config.queued_appends,
        leases: config.leases,
    }
}

fn outbound(config: &Config, own: SocketAddr) -> Outbound {
    let settings = OutboundSettings {
        private_targets: config.private_targets,
        own_listeners: vec![own],
        extra_roots: Vec::new(),
    };
    Outbound::new(settings, Arc::new(SystemResolver))
        .expect("there are no roots of our own to be bad")
}

fn limits(config: &Config) -> Limits {
    Limits {
        body_bytes: config.max_body,
        connections: config.max_connections,
        waiting_receives: config.max_waiting_receives,
        request_bytes: config.max_request_memory,
        answer_bytes: config.max_answer_memory,
        header_bytes: config.max_header,
        deadlines: config.deadlines,
        queued_appends: config.queued_appends,
        leases: config.leases,
    }
}

/// Connections that the system holds for us until they are accepted. Of ten thousand clients that come at once the default
/// of a thousand turns many away, without a word.
const BACKLOG: u32 = 4096;

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restart finds connections of the last life that wait for their end.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
