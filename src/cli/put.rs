//! `horolog put`: one message, or one timer.

use axum::http::header::IF_NONE_MATCH;
use axum::http::{HeaderValue, Method};
use serde::Deserialize;

use super::arguments::{Output, PutArgs};
use super::far::time;
use super::outgoing::{idempotency_key, message, read_body};
use super::remote::{Good, Remote, encoded, written};
use super::table::Facts;
use super::{CliError, Io};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accepted {
    message_id: String,
    topic: String,
    key: Option<String>,
    state: String,
    deliver_at: String,
    replaced: Option<String>,
}

pub(super) async fn run(args: &PutArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let body = read_body(&args.message, io.input)?;
    let message = message(&args.message, &body);
    let topic = encoded(&args.topic);
    let (method, path) = match &args.timer {
        None => (Method::POST, format!("/v1/topics/{topic}/messages")),
        Some(key) => (Method::PUT, format!("/v1/topics/{topic}/timers/{}", encoded(key))),
    };
    let mut headers = Vec::new();
    if args.create_only {
        headers.push((IF_NONE_MATCH, HeaderValue::from_static("*")));
    }
    if let Some(key) = &args.idempotency_key {
        headers.push(idempotency_key(key)?);
    }
    let mut remote = Remote::new(&args.common.url);
    let good = remote.send(method, &path, &headers, written(&message)).await?.good()?;
    show(args, &good, io)
}

fn show(args: &PutArgs, good: &Good, io: &mut Io<'_>) -> Result<(), CliError> {
    if args.common.output == Output::Json {
        good.note_replay(io.notes)?;
        return Ok(good.write(io.output)?);
    }
    let accepted: Accepted = good.read()?;
    let mut facts = Facts::default();
    facts.add("message", accepted.message_id);
    facts.add("topic", accepted.topic);
    facts.add_if("timer", accepted.key);
    facts.add("state", accepted.state);
    facts.add("deliver at", time(&accepted.deliver_at, (io.now)()));
    facts.add_if("replaced", accepted.replaced);
    facts.add_if("replayed", good.replayed());
    Ok(facts.write(io.output)?)
}
