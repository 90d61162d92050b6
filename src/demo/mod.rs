//! `horolog demo`: ten thousand orders, each to be cancelled if it is not paid in time; and then a thousand
//! in transactions ([`transactions`]).
//!
//! ```text
//!   shop ──── POST, with a delay ──> server <── receive, ack ── order service
//!     └─ DELETE, when it is paid ───────^                            │
//!     └──────────────── told ──────────> Book <────── got ───────────┘
//! ```
//!
//! The server is the one that `horolog serve` runs, in this process, on a directory that is removed
//! afterwards. The demo speaks to it over HTTP only, writes down what it was told and what it got,
//! and judges that at the end: whatever was not cancelled must have come once, and never early.

mod book;
mod dice;
mod plan;
mod progress;
mod report;
mod scratch;
mod service;
mod shop;
mod transactions;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use timerlog::disk::DiskError;
use tokio::task::JoinSet;

use crate::app::{App, StartError, World};
use crate::client::ClientError;
use crate::clock::{Clock, Timestamp};
use crate::config::{Config, ConfigError, Given};
use crate::shutdown::Signal;
use book::Book;
use plan::Plan;
use progress::Progress;
pub use report::Verdict;
use scratch::Scratch;

const TOPIC: &str = "order-timeouts";
const GROUP: &str = "order-service";

/// Connections of the shop that schedule, and that pay.
const SCHEDULERS: usize = 64;
const PAYERS: usize = 16;
/// Long polls of the order service.
const CONSUMERS: usize = 4;

/// The second act has this part of the orders, and at least this many.
const SECOND_ACT: usize = 10;

/// How long after the last moment a message is given up as lost.
const PATIENCE_MS: u64 = 10_000;

/// Why the demo could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("ended by {signal}")]
    Interrupted { signal: Signal },
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// What the parts of the demo share.
#[derive(Debug)]
struct Stage {
    clock: Arc<dyn Clock>,
    address: SocketAddr,
    plan: Plan,
    book: Book,
}

impl Stage {
    fn now(&self) -> Timestamp {
        self.clock.now().wall
    }
}

/// Shows the demo and says how it went. When `interrupted` comes first, cleans up and ends.
///
/// # Errors
///
/// When it could not be carried through; a broken promise is no error but a [`Verdict`].
pub async fn run(
    orders: usize,
    clock: Arc<dyn Clock>,
    random: [u8; 32],
    interrupted: impl Future<Output = Signal>,
    output: &mut impl io::Write,
) -> Result<Verdict, DemoError> {
    let seed = crate::message::record::read_u64(&random, 0);
    let scratch = Scratch::make(seed)?;
    let given = Given {
        listen: Some("127.0.0.1:0".to_owned()),
        // It is over in a minute: nothing is worth keeping room for.
        disk_reserve: Some("0".to_owned()),
        ..Given::default()
    };
    let world = World { directory: scratch.directory(), clock: Arc::clone(&clock), random };
    let app = App::start(&Config::new(&given)?, world).await?;
    writeln!(output, "A server of its own on http://{}, data in {scratch}", app.address())?;
    let outcome = tokio::select! {
        outcome = show(orders, &clock, app.address(), seed, output) => outcome,
        signal = interrupted => Err(DemoError::Interrupted { signal }),
    };
    app.stop().await;
    outcome
}

async fn show(
    orders: usize,
    clock: &Arc<dyn Clock>,
    address: SocketAddr,
    seed: u64,
    output: &mut impl io::Write,
) -> Result<Verdict, DemoError> {
    writeln!(
        output,
        "\nFirst, {} orders, each to be paid within 1 to 20 s; about half are.\n",
        report::thousands(orders)
    )?;
    let stage = Arc::new(Stage {
        clock: Arc::clone(clock),
        address,
        plan: Plan::new(orders, seed),
        book: Book::new(orders),
    });
    play(&stage, output).await?;
    let first = report::print(&stage.book, output)?;
    let orders = (orders / SECOND_ACT).max(SECOND_ACT);
    let second = transactions::show(orders, clock, address, seed, output).await?;
    Ok(first.and(second))
}

async fn play(stage: &Arc<Stage>, output: &mut impl io::Write) -> Result<(), DemoError> {
    let mut shop = JoinSet::new();
    let till = Arc::new(shop::Till::default());
    for worker in 0..SCHEDULERS {
        shop.spawn(shop::schedule(Arc::clone(stage), Arc::clone(&till), worker, SCHEDULERS));
    }
    for _ in 0..PAYERS {
        shop.spawn(shop::collect_payments(Arc::clone(stage), Arc::clone(&till)));
    }
    for _ in 0..CONSUMERS {
        shop.spawn(service::cancel_unpaid_orders(Arc::clone(stage)));
    }
    Progress::start(stage.book.len()).follow(&mut shop, &stage.book, output).await
}
