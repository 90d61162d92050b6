//! The HTTP door: it reads requests, asks the service, writes answers, and decides nothing else.
//!
//! ```text
//!   TcpStream ─> head ─> hyper ─> router ─> messages, groups, ... ─> Service
//!              (framing)  (server)           │          │
//!                                  body, json_put,   dto, problem
//!                                  raw_put, moment
//! ```
//!
//! Ground rules:
//!
//! - One file a resource. A handler checks the request whole before it asks the service, so a
//!   malformed request changes nothing.
//! - A refusal is a [`problem::Problem`]; which error of the service gets which code is decided in
//!   `error` and nowhere else.
//! - Everything a client can make grow has a bound in `limits`.
//! - No layers between router and handler: the way of a put is short, and each handler counts its
//!   own answer by [`Api::answer`].

mod answers;
mod batch;
mod body;
mod changes;
mod dead_letters;
mod dto;
mod error;
mod fields;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod group_settings;
mod groups;
mod head;
mod idempotency;
mod incoming;
mod json_put;
mod limits;
mod linger;
mod members;
mod messages;
mod moment;
mod offsets;
mod operating;
mod page;
mod problem;
mod query;
mod raw_put;
mod refused;
mod scheduled;
mod server;
mod timers;
mod topics;
mod trace;
mod transactions;
mod unread;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use tokio::sync::Semaphore;

pub use limits::Limits;
pub use server::Server;
pub(crate) use transactions::check_json;

use crate::metrics::{Metrics, Route};
use crate::outbound::Outbound;
use crate::service::{Readiness, Service};
use answers::Answers;
use body::{Budget, Pace};
use problem::{Code, Problem};

/// What every handler has at hand.
#[derive(Clone, Debug)]
pub struct Api {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Empty until the data directory is open: requests are answered before that, with 503.
    service: OnceLock<Service>,
    metrics: Arc<Metrics>,
    limits: Limits,
    budget: Budget,
    answers: Answers,
    /// One permit for each connection.
    connections: Arc<Semaphore>,
    /// One permit for each receive that may wait.
    waiting: Semaphore,
    /// Says which URLs the server may call.
    outbound: Arc<Outbound>,
}

impl Api {
    /// A door with nothing behind it yet: alive, and not ready.
    pub fn new(limits: Limits, metrics: Arc<Metrics>, outbound: Arc<Outbound>) -> Self {
        let shared = Shared {
            service: OnceLock::new(),
            metrics,
            limits,
            budget: Budget::new(limits.request_bytes, Pace::new(&limits.deadlines)),
            answers: Answers::new(limits.answer_bytes),
            connections: Arc::new(Semaphore::new(limits.connections())),
            waiting: Semaphore::new(limits.waiting_receives),
            outbound,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Opens the door to `service`. A second call changes nothing.
    pub fn open(&self, service: Service) {
        // The first service stays: there is one for each server.
        let _ = self.shared.service.set(service);
    }

    fn service(&self) -> Result<&Service, Problem> {
        let opening = || Problem::new(Code::NotReady, "the server is not ready: it is starting");
        self.shared.service.get().ok_or_else(opening)
    }

    fn readiness(&self) -> Readiness {
        match self.shared.service.get() {
            Some(service) => service.readiness(),
            None => Readiness::NotReady { reason: "it is starting".to_owned() },
        }
    }

    /// Turns what a handler decided into an answer, and counts it.
    fn answer(&self, route: Route, result: Result<Response, Problem>) -> Response {
        if let Some(bound) = result.as_ref().err().and_then(Problem::bound) {
            self.shared.metrics.refused(bound);
        }
        let response = result.unwrap_or_else(Problem::into_response);
        self.shared.metrics.http_request(route, response.status().as_u16());
        response
    }

    /// Everything the server answers to.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/v1/topics", get(topics::list))
            .route("/v1/topics/{topic}", get(topics::show).put(topics::set).delete(topics::delete))
            .route("/v1/topics/{topic}/messages", post(messages::put).get(messages::search))
            .route("/v1/topics/{topic}/messages/batch", post(batch::put))
            .route(
                "/v1/topics/{topic}/timers/{key}",
                get(timers::show).put(timers::put).delete(timers::cancel),
            )
            .route(
                "/v1/messages/{id}",
                get(messages::show).patch(changes::reschedule).delete(changes::cancel),
            )
            .route("/v1/messages/{id}/deliver", post(changes::fire))
            .route("/v1/groups", get(group_settings::list))
            .route("/v1/groups/{group}", get(group_settings::show).put(group_settings::set))
            .route("/v1/groups/{group}/offsets/reset", post(offsets::reset))
            .route("/v1/groups/{group}/receive", post(groups::receive))
            .route("/v1/groups/{group}/ack", post(groups::ack))
            .route("/v1/groups/{group}/nack", post(groups::nack))
            .route("/v1/groups/{group}/dlq", get(dead_letters::list))
            .route("/v1/groups/{group}/dlq/redrive", post(dead_letters::redrive))
            .route("/v1/groups/{group}/extend", post(groups::extend))
            .route("/v1/scheduled", get(scheduled::list))
            .route("/v1/scheduled/timeline", get(scheduled::timeline))
            .route("/v1/scheduled/cancel", post(scheduled::cancel))
            .route("/v1/topics/{topic}/transactions", post(transactions::prepare))
            .route("/v1/transactions", get(transactions::list))
            .route("/v1/transactions/{id}", get(transactions::show))
            .route("/v1/transactions/{id}/commit", post(transactions::commit))
            .route("/v1/transactions/{id}/rollback", post(transactions::roll_back))
            .route("/v1/transactions/{id}/resume", post(transactions::resume))
            .route("/v1/producer-groups/{group}/checks", post(transactions::checks))
            .route("/v1/limits", get(operating::limits))
            .route("/livez", get(operating::live))
            .route("/readyz", get(operating::ready))
            .route("/version", get(operating::version))
            .route("/metrics", get(operating::metrics))
            .fallback(unknown_path)
            .method_not_allowed_fallback(wrong_method)
            .with_state(self)
    }
}

/// A piece of the path, decoded; it may turn out not to be UTF-8.
type Segment = Result<Path<String>, PathRejection>;

/// Two pieces of the path.
type Segments = Result<Path<(String, String)>, PathRejection>;

fn segments(segments: Segments) -> Result<(String, String), Problem> {
    match segments {
        Ok(Path(both)) => Ok(both),
        Err(rejection) => Err(Problem::invalid(rejection.body_text())),
    }
}

fn segment(segment: Segment) -> Result<String, Problem> {
    match segment {
        Ok(Path(text)) => Ok(text),
        Err(rejection) => Err(Problem::invalid(rejection.body_text())),
    }
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let json = serde_json::to_vec(value).expect("what we write has text as its keys");
    let mut response = Response::new(Body::from(json));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(json_put::JSON));
    response
}

async fn unknown_path(State(api): State<Api>, uri: Uri) -> Response {
    let detail = format!("there is nothing at {}", uri.path());
    api.answer(Route::None, Err(Problem::new(Code::NotFound, detail)))
}

async fn wrong_method(State(api): State<Api>, method: Method, uri: Uri) -> Response {
    let detail = format!("{} does not take {method}", uri.path());
    api.answer(Route::None, Err(Problem::new(Code::MethodNotAllowed, detail)))
}
