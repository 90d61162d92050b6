//! `/livez`, `/readyz`, `/version`, `/metrics` and `GET /v1/limits`.

use std::fmt::Write as _;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::Response;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::problem::{Code, Problem};
use super::query::{NoParameters, parameters};
use super::{Api, json, raw_put};
use crate::metrics::{Held, Route};
use crate::service::{Readiness, SetAside};

const TEXT: &str = "text/plain; charset=utf-8";
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The process runs and answers.
pub(super) async fn live(State(api): State<Api>, request: Request) -> Response {
    let answer = |NoParameters {}| text(TEXT, "ok\n");
    api.answer(Route::Live, plain(&request).map(answer))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadyParameters {
    /// `?verbose` and `?verbose=true` both ask for the list of checks.
    verbose: Option<String>,
}

/// The server takes requests.
pub(super) async fn ready(State(api): State<Api>, request: Request) -> Response {
    let headers = raw_put::refuse_headers(request.headers());
    let asked = headers.and_then(|()| checks_asked(request.uri()));
    api.answer(Route::Ready, asked.and_then(|checks| readiness(&api, checks)))
}

/// Whether the checks are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    Listed,
    LeftOut,
}

pub(super) fn checks_asked(uri: &Uri) -> Result<Checks, Problem> {
    let ReadyParameters { verbose } = parameters(uri)?;
    match verbose.as_deref() {
        None | Some("false") => Ok(Checks::LeftOut),
        Some("" | "true") => Ok(Checks::Listed),
        Some(_) => Err(Problem::invalid("verbose is true, false or nothing")),
    }
}

fn readiness(api: &Api, checks: Checks) -> Result<Response, Problem> {
    let verbose = checks == Checks::Listed;
    match api.readiness() {
        Readiness::Ready if verbose => {
            Ok(text(TEXT, format!("{HTTP_AND_STORE}{}[+] disk ok\nok\n", set_aside(api))))
        }
        Readiness::Degraded { part, reason } if verbose => {
            let aside = set_aside(api);
            Ok(text(TEXT, format!("{HTTP_AND_STORE}{aside}[-] {part} {reason}\nok, degraded\n")))
        }
        // Whoever sends traffic by this answer goes on: messages are handed out and acknowledged.
        Readiness::Ready | Readiness::Degraded { .. } => Ok(text(TEXT, "ok\n")),
        Readiness::NotReady { reason } => {
            Err(Problem::new(Code::NotReady, format!("the server is not ready: {reason}")))
        }
    }
}

const HTTP_AND_STORE: &str = "[+] http ok\n[+] store ok\n";

/// Stretches listed: the metric counts all.
const LISTED_MAX: usize = 100;

/// What is damaged is no reason to be not ready: all else is served.
fn set_aside(api: &Api) -> String {
    let Ok(service) = api.service() else { return String::new() };
    let (count, listed) = service.quarantined();
    if count == 0 {
        return "[+] quarantine empty\n".to_owned();
    }
    let mut lines = format!("[!] quarantine {count} damaged stretches of the log are set aside\n");
    for SetAside { file, at, length, reason } in listed.iter().rev().take(LISTED_MAX) {
        let _ = writeln!(lines, "    {file} at {at}, {length} bytes: {reason}");
    }
    lines
}

#[derive(Serialize)]
struct Version {
    name: &'static str,
    version: &'static str,
}

pub(super) async fn version(State(api): State<Api>, request: Request) -> Response {
    let version = Version { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };
    let answer = |NoParameters {}| json(StatusCode::OK, &version);
    api.answer(Route::Version, plain(&request).map(answer))
}

pub(super) async fn metrics(State(api): State<Api>, request: Request) -> Response {
    let answer = |NoParameters {}| text(PROMETHEUS_TEXT, figures(&api));
    api.answer(Route::Metrics, plain(&request).map(answer))
}

/// Some figures are asked for when somebody looks; the others were counted as it happened.
fn figures(api: &Api) -> String {
    let metrics = &api.shared.metrics;
    let connections = api.shared.limits.connections() - api.shared.connections.available_permits();
    metrics.set_held(Held::Connections, connections);
    metrics.set_held(Held::RequestBytes, api.shared.budget.held());
    metrics.set_held(Held::AnswerBytes, api.shared.answers.bytes());
    if let Ok(service) = api.service() {
        service.refresh_metrics();
    }
    metrics.render()
}

pub(super) async fn limits(State(api): State<Api>, request: Request) -> Response {
    let disk = api.service().ok().map(|service| service.disk_marks());
    let answer = |NoParameters {}| json(StatusCode::OK, &api.shared.limits.written(disk));
    api.answer(Route::Limits, plain(&request).map(answer))
}

/// The parameters of a request that has nothing else to say.
pub(super) fn plain<T: DeserializeOwned + Default>(request: &Request) -> Result<T, Problem> {
    raw_put::refuse_headers(request.headers())?;
    parameters(request.uri())
}

fn text(content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
