//! The second act: orders in transactions, a shop that falls silent, and consumers that crash.
//!
//! ```text
//!   shop ──── begin; commit, roll back, or silence ──> server <── receive, ack, or crash ── reminder service
//!   check handler ──── take check-backs, answer ────────^                                        │
//!     └──────────────────── told ─────────────────────> Book <─────────────── got ───────────────┘
//! ```
//!
//! What was committed must fire once, never before its commit or its moment, and reach a consumer that
//! acknowledges it, whoever crashed with it before; what was rolled back must never come.

mod book;
mod plan;
mod reminders;
mod report;
mod shop;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::Method;
use axum::http::Request;
use http_body_util::Full;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::task::JoinSet;

use super::progress::Progress;
use super::report::{Verdict, thousands};
use super::{DemoError, PATIENCE_MS};
use crate::client::Client;
use crate::clock::{Clock, Timestamp};
use book::Book;
use plan::Plan;

const TOPIC: &str = "reminders";
const GROUP: &str = "reminder-service";
const PRODUCERS: &str = "shop";

/// When the server begins to ask, and how often.
const CHECK_AFTER: &str = "1s";
const CHECK_INTERVAL: &str = "2s";
/// How long a consumer has to acknowledge.
const LEASE: &str = "2s";

/// Connections of the shop, of those who answer for it, and long polls of the reminder service.
const SHOPS: usize = 16;
const HANDLERS: usize = 2;
const CONSUMERS: usize = 4;

/// What the parts of the act share.
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

    fn after(&self, ms: u64) -> Timestamp {
        Timestamp::from_millis(self.now().as_millis() + ms)
    }

    /// Every order has come to its end, or what is missing must be given up.
    fn is_over(&self) -> bool {
        self.book.is_settled() || self.now().since(self.book.last_news()) > PATIENCE_MS
    }
}

/// The body of every message.
#[derive(Deserialize)]
struct Body {
    order: usize,
}

pub(super) async fn show(
    orders: usize,
    clock: &Arc<dyn Clock>,
    address: SocketAddr,
    seed: u64,
    output: &mut impl io::Write,
) -> Result<Verdict, DemoError> {
    writeln!(
        output,
        "\nThen {} orders in transactions: nobody reads one before it is committed. One in ten is\n\
         rolled back; of one in ten the shop says nothing more, and is asked. Some consumers crash.\n",
        thousands(orders)
    )?;
    let plan = Plan::new(orders, seed);
    let stage =
        Arc::new(Stage { clock: Arc::clone(clock), address, plan, book: Book::new(orders) });
    make_topic(&stage).await?;
    play(&stage, output).await?;
    report::print(&stage.book, output)
}

/// Consumers are there before the first order, and want to have a topic.
async fn make_topic(stage: &Stage) -> Result<(), DemoError> {
    let mut request = Request::new(Full::from(json!({ "type": "TRANSACTION" }).to_string()));
    *request.method_mut() = Method::PUT;
    *request.uri_mut() = format!("/v1/topics/{TOPIC}").parse().expect("the name is a constant");
    Client::new(stage.address).send(request).await?.json::<IgnoredAny>()?;
    Ok(())
}

async fn play(stage: &Arc<Stage>, output: &mut impl io::Write) -> Result<(), DemoError> {
    let mut parts = JoinSet::new();
    for worker in 0..SHOPS {
        parts.spawn(shop::take_orders(Arc::clone(stage), worker, SHOPS));
    }
    for _ in 0..HANDLERS {
        parts.spawn(shop::answer_checks(Arc::clone(stage)));
    }
    for _ in 0..CONSUMERS {
        parts.spawn(reminders::remind_customers(Arc::clone(stage)));
    }
    Progress::start(stage.book.len()).follow(&mut parts, &stage.book, output).await
}
