//! `horolog put`: one message, or one timer.

use std::io::Read;
use std::path::Path;

use axum::http::header::IF_NONE_MATCH;
use axum::http::{HeaderName, HeaderValue, Method};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::arguments::{Output, PutArgs};
use super::far::time;
use super::remote::{Good, Remote, encoded};
use super::table::Facts;
use super::{CliError, Io};

/// Standard input, as the body.
const STDIN: &str = "-";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    keys: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<&'a str>,
    #[serde(skip_serializing_if = "<[(String, String)]>::is_empty", serialize_with = "as_object")]
    properties: &'a [(String, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    message_group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deliver_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<&'a str>,
}

/// A name that is given twice stays so: the server refuses it.
fn as_object<S: Serializer>(
    properties: &[(String, String)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(properties.iter().map(|(name, value)| (name, value)))
}

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
    let body = body(args, io.input)?;
    let message = message(args, &body);
    let json = serde_json::to_vec(&message).expect("what we write has text as its keys");
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
        headers.push((HeaderName::from_static("idempotency-key"), header(key)?));
    }
    let mut remote = Remote::new(&args.common.url);
    let good = remote.send(method, &path, &headers, json.into()).await?.good()?;
    show(args, &good, io)
}

fn show(args: &PutArgs, good: &Good, io: &mut Io<'_>) -> Result<(), CliError> {
    let replayed = good.headers.contains_key("idempotent-replayed");
    if args.common.output == Output::Json {
        if replayed {
            writeln!(io.notes, "horolog: answered as an earlier request under the key was")?;
        }
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
    facts.add_if("replayed", replayed.then_some("yes: an earlier request under the key stored it"));
    Ok(facts.write(io.output)?)
}

fn header(key: &str) -> Result<HeaderValue, CliError> {
    HeaderValue::try_from(key).map_err(|_| CliError::Refused {
        code: "INVALID_REQUEST".to_owned(),
        detail: "an idempotency key has no control characters".to_owned(),
    })
}

fn body(args: &PutArgs, input: &mut dyn Read) -> Result<Vec<u8>, CliError> {
    match (&args.body, &args.file) {
        (Some(body), _) if body == STDIN => {
            let mut bytes = Vec::new();
            input.read_to_end(&mut bytes).map_err(CliError::Input)?;
            Ok(bytes)
        }
        (Some(body), _) => Ok(body.clone().into_bytes()),
        (None, Some(path)) => file(path),
        (None, None) => unreachable!("one of them is required"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the user's own file, not one of the server's")]
fn file(path: &Path) -> Result<Vec<u8>, CliError> {
    std::fs::read(path).map_err(|cause| CliError::File { path: path.to_owned(), cause })
}

fn message<'a>(args: &'a PutArgs, body: &'a [u8]) -> Message<'a> {
    let text = std::str::from_utf8(body).ok();
    let json = text.and_then(json);
    Message {
        body: json,
        body_text: text.filter(|_| json.is_none()),
        body_base64: text.is_none().then(|| STANDARD.encode(body)),
        keys: &args.keys,
        tag: args.tag.as_deref(),
        properties: &args.properties,
        message_group: args.message_group.as_deref(),
        deliver_at: args.at.as_deref(),
        delay: args.delay.as_deref(),
    }
}

/// `text` as JSON, when it is an object or an array. A number or a word could as well be text.
fn json(text: &str) -> Option<&RawValue> {
    let looks_so = text.trim_ascii_start().starts_with(['{', '[']);
    looks_so.then(|| serde_json::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_arrays_are_json_and_all_else_is_text() {
        for text in ["{}", " [1, 2.50]\n", "{\"a\":[{}]}"] {
            assert_eq!(json(text).map(RawValue::get), Some(text.trim()), "{text}");
        }
        for text in ["", "17", "true", "\"x\"", "{", "{a}", "[1]x", "hello {}"] {
            assert!(json(text).is_none(), "{text}");
        }
    }
}
