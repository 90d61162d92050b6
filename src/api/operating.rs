//! `/livez`, `/readyz`, `/version`, `/metrics` and `GET /v1/limits`.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::problem::{Code, Problem};
use super::query::{NoParameters, parameters};
use super::{Api, json, raw_put};
use crate::metrics::{Held, Route};
use crate::service::Readiness;

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
    let result = plain(&request).and_then(|parameters| readiness(&api, &parameters));
    api.answer(Route::Ready, result)
}

fn readiness(api: &Api, parameters: &ReadyParameters) -> Result<Response, Problem> {
    let verbose = match parameters.verbose.as_deref() {
        None | Some("false") => false,
        Some("" | "true") => true,
        Some(_) => return Err(Problem::invalid("verbose is true, false or nothing")),
    };
    match api.readiness() {
        Readiness::Ready if verbose => {
            Ok(text(TEXT, "[+] http ok\n[+] store ok\n[+] disk ok\nok\n"))
        }
        Readiness::Degraded { part, reason } if verbose => {
            let lines = format!("[+] http ok\n[+] store ok\n[-] {part} {reason}\nok, degraded\n");
            Ok(text(TEXT, lines))
        }
        // Whoever sends traffic by this answer goes on: messages are handed out and acknowledged.
        Readiness::Ready | Readiness::Degraded { .. } => Ok(text(TEXT, "ok\n")),
        Readiness::NotReady { reason } => {
            Err(Problem::new(Code::NotReady, format!("the server is not ready: {reason}")))
        }
    }
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
