//! A message in JSON: what `POST` takes with `application/json`.

use std::borrow::Cow;

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::fields::{Label, Properties, check_keys, check_label};
use super::members::object;
use super::moment::{Asked, duration, moment};
use super::problem::{Code, Problem};
use super::trace::Trace;
use crate::config::PrivateTargets;
use crate::message::record::{CheckUrl, Terms};
use crate::message::{Attributes, GroupName, MAX_DELAY_MS, NewMessage};
use crate::outbound::{Secret, Target};

/// How deep a JSON body may nest.
pub(super) const MAX_DEPTH: usize = 32;

pub(super) const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const BINARY: &str = "application/octet-stream";

/// The terms of a transaction that says nothing else.
const CHECK_AFTER_MS: u64 = 6000;
const CHECK_INTERVAL_MS: u64 = 30_000;
const MAX_CHECKS: u32 = 15;
const ABANDON_AFTER_MS: u64 = 72 * 60 * 60 * 1000;
/// The shortest of these times, and the most checks.
const SHORTEST_MS: u64 = 100;
const MOST_CHECKS: u32 = 1000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    body_text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    body_base64: Option<Cow<'a, str>>,
    #[serde(default)]
    keys: Vec<String>,
    tag: Option<String>,
    #[serde(default)]
    properties: Properties,
    message_group: Option<String>,
    #[serde(borrow, default, deserialize_with = "given")]
    deliver_at: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    delay: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    delay_level: Option<&'a RawValue>,
    /// From here on what a transaction has, and nothing else.
    #[serde(borrow)]
    producer_group: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "given")]
    check_after: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    check_interval: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    max_checks: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    abandon_after: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    check_url: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    check_secret: Option<&'a RawValue>,
}

/// Keeps null apart from nothing: `"body": null` is a body, and `"deliverAt": null` is a mistake
/// that must not mean now.
pub(super) fn given<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a message from `json`. Its body is a piece of `json` where that is possible.
pub(super) fn read(json: &Bytes, headers: &HeaderMap) -> Result<NewMessage, Problem> {
    let written = parse(json)?;
    if let Some(field) = written.field_of_a_transaction() {
        return Err(Problem::invalid(format!("unknown field `{field}`: this is no transaction")));
    }
    message(json, written, headers)
}

/// Reads a half message, and the terms of its transaction. `targets` says which URLs may be asked.
pub(super) fn read_half(
    json: &Bytes,
    headers: &HeaderMap,
    targets: PrivateTargets,
) -> Result<(NewMessage, Terms), Problem> {
    let written = parse(json)?;
    let terms = written.terms(targets)?;
    Ok((message(json, written, headers)?, terms))
}

fn parse(json: &[u8]) -> Result<Written<'_>, Problem> {
    if json.is_empty() {
        return Err(Problem::invalid("the request has no body"));
    }
    object(json)
}

impl Written<'_> {
    fn field_of_a_transaction(&self) -> Option<&'static str> {
        let given = [
            (self.producer_group.is_some(), "producerGroup"),
            (self.check_after.is_some(), "checkAfter"),
            (self.check_interval.is_some(), "checkInterval"),
            (self.max_checks.is_some(), "maxChecks"),
            (self.abandon_after.is_some(), "abandonAfter"),
            (self.check_url.is_some(), "checkUrl"),
            (self.check_secret.is_some(), "checkSecret"),
        ];
        given.into_iter().find(|(given, _)| *given).map(|(_, field)| field)
    }

    fn terms(&self, targets: PrivateTargets) -> Result<Terms, Problem> {
        let group = self.producer_group.as_deref();
        let group = group.ok_or_else(|| {
            Problem::invalid("a transaction needs a producerGroup").at("/producerGroup")
        })?;
        let group = GroupName::writable(group)
            .map_err(|error| Problem::from(error).at("/producerGroup"))?;
        Ok(Terms {
            producer_group: group.as_str().to_owned(),
            check_after_ms: time(self.check_after, CHECK_AFTER_MS, "/checkAfter")?,
            check_interval_ms: time(self.check_interval, CHECK_INTERVAL_MS, "/checkInterval")?,
            max_checks: max_checks(self.max_checks)?,
            abandon_after_ms: time(self.abandon_after, ABANDON_AFTER_MS, "/abandonAfter")?,
            check_url: self.check_url(targets)?,
        })
    }

    fn check_url(&self, targets: PrivateTargets) -> Result<Option<CheckUrl>, Problem> {
        let Some(url) = self.check_url else {
            return match self.check_secret {
                None => Ok(None),
                Some(_) => {
                    Err(Problem::invalid("a checkSecret needs a checkUrl").at("/checkSecret"))
                }
            };
        };
        let url = text_of(url, "/checkUrl")?;
        Target::new(&url, targets).map_err(|error| {
            Problem::new(Code::UrlNotAllowed, error.to_string()).at("/checkUrl")
        })?;
        let secret = self.check_secret.map(|secret| text_of(secret, "/checkSecret")).transpose()?;
        if let Some(secret) = &secret {
            secret
                .parse::<Secret>()
                .map_err(|error| Problem::invalid(error.to_string()).at("/checkSecret"))?;
        }
        Ok(Some(CheckUrl { url, secret }))
    }
}

fn text_of(given: &RawValue, pointer: &str) -> Result<String, Problem> {
    serde_json::from_str(given.get())
        .map_err(|_| Problem::invalid("a text is expected here").at(pointer))
}

fn time(given: Option<&RawValue>, default_ms: u64, pointer: &str) -> Result<u64, Problem> {
    let Some(raw) = given else { return Ok(default_ms) };
    match duration(&raw.into()) {
        Ok(ms) if (SHORTEST_MS..=MAX_DELAY_MS).contains(&ms) => Ok(ms),
        Ok(ms) => {
            let detail = format!("{SHORTEST_MS} to {MAX_DELAY_MS} ms are allowed, not {ms}");
            Err(Problem::invalid(detail).at(pointer))
        }
        Err(error) => Err(Problem::invalid(error.to_string()).at(pointer)),
    }
}

fn max_checks(given: Option<&RawValue>) -> Result<u32, Problem> {
    let Some(raw) = given else { return Ok(MAX_CHECKS) };
    match raw.get().parse() {
        Ok(checks) if (1..=MOST_CHECKS).contains(&checks) => Ok(checks),
        _ => Err(Problem::invalid(format!("maxChecks is 1 to {MOST_CHECKS}")).at("/maxChecks")),
    }
}

fn message(json: &Bytes, written: Written<'_>, headers: &HeaderMap) -> Result<NewMessage, Problem> {
    let moment = moment(&Asked {
        deliver_at: written.deliver_at.map(Into::into),
        delay: written.delay.map(Into::into),
        delay_level: written.delay_level.map(Into::into),
    })?;
    check_keys(&written.keys).map_err(|problem| problem.at("/keys"))?;
    if let Some(tag) = &written.tag {
        check_label(Label::Tag, tag).map_err(|problem| problem.at("/tag"))?;
    }
    if let Some(group) = &written.message_group {
        check_label(Label::MessageGroup, group).map_err(|problem| problem.at("/messageGroup"))?;
    }
    let (body, content_type) = body(json, written.body, written.body_text, written.body_base64)?;
    let Trace { traceparent, tracestate } = Trace::of(headers);
    Ok(NewMessage {
        moment,
        attributes: Attributes {
            content_type: content_type.to_owned(),
            tag: written.tag,
            keys: written.keys,
            message_group: written.message_group,
            properties: written.properties.0,
            traceparent,
            tracestate,
        },
        body,
    })
}

fn body(
    json: &Bytes,
    value: Option<&RawValue>,
    text: Option<Cow<'_, str>>,
    base64: Option<Cow<'_, str>>,
) -> Result<(Bytes, &'static str), Problem> {
    match (value, text, base64) {
        (Some(value), None, None) => {
            if is_deeper_than(MAX_DEPTH, value.get().as_bytes()) {
                let detail = format!("a JSON body nests at most {MAX_DEPTH} deep");
                return Err(Problem::invalid(detail).at("/body"));
            }
            Ok((json.slice_ref(value.get().as_bytes()), JSON))
        }
        (None, Some(Cow::Borrowed(text)), None) => Ok((json.slice_ref(text.as_bytes()), TEXT)),
        (None, Some(Cow::Owned(text)), None) => Ok((text.into(), TEXT)),
        (None, None, Some(base64)) => match STANDARD.decode(base64.as_bytes()) {
            Ok(bytes) => Ok((bytes.into(), BINARY)),
            Err(error) => Err(Problem::invalid(format!("not base64: {error}")).at("/bodyBase64")),
        },
        (None, None, None) => {
            Err(Problem::invalid("a message needs a body: one of body, bodyText and bodyBase64"))
        }
        _ => Err(Problem::invalid("only one of body, bodyText and bodyBase64 can be given")),
    }
}

/// Whether arrays and objects in `json`, which must be valid, nest deeper than `limit`.
fn is_deeper_than(limit: usize, json: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => {
                            bytes.next();
                        }
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<NewMessage, Problem> {
        super::read(&Bytes::copy_from_slice(json.as_bytes()), &HeaderMap::new())
    }

    #[test]
    fn a_json_body_is_stored_as_the_bytes_it_was_written_in() {
        for body in
            ["null", "{ \"b\" : 1.0e0, \"a\":[ ] }", "\"\\u00e9\"", "12345678901234567890123"]
        {
            let message = read(&format!("{{\"body\": {body} }}")).unwrap();
            assert_eq!(message.body, body.as_bytes(), "{body}");
            assert_eq!(message.attributes.content_type, "application/json");
        }
    }

    #[test]
    fn text_and_base64_are_stored_decoded() {
        let text = read(r#"{"bodyText":"a\n\u00e9"}"#).unwrap();
        assert_eq!(text.body, "a\né".as_bytes());
        assert_eq!(text.attributes.content_type, "text/plain; charset=utf-8");
        let binary = read(r#"{"bodyBase64":"AP8="}"#).unwrap();
        assert_eq!(binary.body, [0, 255].as_slice());
        assert_eq!(binary.attributes.content_type, "application/octet-stream");
        assert!(read(r#"{"bodyText":""}"#).unwrap().body.is_empty());
    }

    #[test]
    fn depth_is_counted_outside_of_text_only() {
        let nested =
            |depth: usize| format!("{{\"body\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(&nested(32)).is_ok());
        assert!(read(&nested(33)).is_err());
        assert!(read(&nested(1_000_000)).is_err());
        let text = format!("{{\"body\":\"\\\"{}\"}}", "[".repeat(100));
        assert!(read(&text).is_ok());
        let wide = format!("{{\"body\":[{}[]]}}", "[],".repeat(100));
        assert!(read(&wide).is_ok());
    }
}
