//! Messages on their way in: in JSON, many at once, with the terms of a transaction, raw by headers; and the headers
//! that go with any of them.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use timerlog::decoder::{Decoder, Judged};

use super::super::fields::MAX_KEYS;
use super::super::{batch, idempotency, incoming, json_put, raw_put, timers};
use super::{decoder, refused, without_nothing, written};
use crate::config::PrivateTargets;
use crate::message::record::Terms;
use crate::message::{Moment, NewMessage};

pub(super) fn decoders() -> Vec<Decoder> {
    vec![
        decoder("put", puts, judge_put),
        decoder("half", halves, judge_half),
        decoder("batch", batches, judge_batch),
        decoder("headers", headers, judge_headers),
        decoder("conditions", conditions, judge_conditions),
    ]
}

fn puts() -> Vec<Vec<u8>> {
    written(&[
        r#"{"body":{"order":[1,2.5e3,"a\u0062"]},"delay":"30m","keys":["k1","k2"],"tag":"t"}"#,
        r#"{"bodyText":"a\n\"b\" \u00e9","deliverAt":"2026-09-21T14:13:20Z","messageGroup":"g"}"#,
        r#"{"bodyBase64":"AAEC/w==","delayLevel":3,"properties":{"a":"b","c":"d"}}"#,
        r#"{"body":null}"#,
    ])
}

fn judge_put(bytes: &[u8]) -> Judged {
    match json_put::read(&Bytes::copy_from_slice(bytes), &HeaderMap::new()) {
        Ok(message) => {
            check_message(&message);
            Judged::Accepted
        }
        Err(problem) => refused(&problem),
    }
}

/// A message that was read, written plainly, is read as the same.
fn check_message(message: &NewMessage) {
    let plain = plain(message);
    let again = json_put::read(&plain.to_string().into(), &HeaderMap::new());
    assert!(again.is_ok(), "{plain} is refused: {again:?}");
    check_same(&again.expect("it is"), message);
}

fn plain(message: &NewMessage) -> Value {
    let attributes = &message.attributes;
    let properties: serde_json::Map<_, _> =
        attributes.properties.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    assert_eq!(
        properties.len(),
        attributes.properties.len(),
        "each property has a name of its own"
    );
    assert!(attributes.keys.len() <= MAX_KEYS);
    let mut plain = json!({
        "bodyBase64": STANDARD.encode(&message.body),
        "keys": attributes.keys,
        "tag": attributes.tag,
        "messageGroup": attributes.message_group,
        "properties": properties,
    });
    match message.moment {
        Moment::Now => {}
        Moment::At(at) => plain["deliverAt"] = json!(at.as_millis()),
        Moment::After(ms) => plain["delay"] = json!(ms),
        Moment::Level(level) => plain["delayLevel"] = json!(level),
    }
    plain
}

fn check_same(again: &NewMessage, message: &NewMessage) {
    assert_eq!((&again.body, again.moment), (&message.body, message.moment));
    let sorted = |of: &NewMessage| {
        let mut properties = of.attributes.properties.clone();
        properties.sort();
        properties
    };
    assert_eq!(sorted(again), sorted(message));
    assert_eq!(again.attributes.keys, message.attributes.keys);
    assert_eq!(again.attributes.tag, message.attributes.tag);
    assert_eq!(again.attributes.message_group, message.attributes.message_group);
}

fn halves() -> Vec<Vec<u8>> {
    written(&[
        r#"{"bodyText":"x","delay":"1h","producerGroup":"orders-service","checkAfter":"10s",
            "checkInterval":60000,"maxChecks":3,"abandonAfter":"P1D","keys":["k"],
            "checkUrl":"https://shop.example/checks","checkSecret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}"#,
        r#"{"body":{"a":1},"producerGroup":"g","checkUrl":"http://127.0.0.1:7401/"}"#,
        r#"{"bodyBase64":"AA==","producerGroup":"g"}"#,
    ])
}

/// A half message with its terms, written plainly, is read as the same; without its terms it is a message.
fn judge_half(bytes: &[u8]) -> Judged {
    let (json, headers) = (Bytes::copy_from_slice(bytes), HeaderMap::new());
    let strictly = json_put::read_half(&json, &headers, PrivateTargets::Refused);
    let (message, terms) = match json_put::read_half(&json, &headers, PrivateTargets::Allowed) {
        Ok(read) => read,
        Err(problem) => {
            assert!(strictly.is_err(), "only the other way round");
            return refused(&problem);
        }
    };
    if let Err(problem) = &strictly {
        assert!(terms.check_url.is_some(), "nothing else depends on it");
        refused(problem);
    }
    check_message(&message);
    let mut plain = plain(&message);
    let said = without_nothing(json_of(&terms));
    let terms_of = |json: &Value| json.as_object().cloned().into_iter().flatten();
    plain.as_object_mut().expect("a message is an object").extend(terms_of(&said));
    let plain = plain.to_string().into();
    let again = json_put::read_half(&plain, &headers, PrivateTargets::Allowed);
    assert!(again.is_ok(), "{plain:?} is refused: {again:?}");
    let (again, its_terms) = again.expect("it is");
    check_same(&again, &message);
    assert_eq!(its_terms, terms);
    assert!(json_put::read(&plain, &headers).is_err(), "a put has no terms");
    Judged::Accepted
}

fn json_of(terms: &Terms) -> Value {
    let url = terms.check_url.as_ref();
    json!({
        "producerGroup": terms.producer_group,
        "checkAfter": terms.check_after_ms,
        "checkInterval": terms.check_interval_ms,
        "maxChecks": terms.max_checks,
        "abandonAfter": terms.abandon_after_ms,
        "checkUrl": url.map(|url| &url.url),
        "checkSecret": url.and_then(|url| url.secret.as_ref()),
    })
}

fn batches() -> Vec<Vec<u8>> {
    let one = r#"{"messages":[{"body":1,"delay":"1h"},{"bodyText":"x"}],"atomic":true}"#;
    let lines = "{\"body\":1}\n\r\n{\"body\":{\"a\":[]},\"delay\":5}\n";
    written(&[one, lines])
}

/// Accepted is what has a message in it.
fn judge_batch(bytes: &[u8]) -> Judged {
    let items = match batch::items(bytes) {
        Ok(items) => items,
        Err(problem) => return refused(&problem),
    };
    let judged = items.into_iter().map(judge_put);
    judged.fold(Judged::Refused, |all, one| if one == Judged::Accepted { one } else { all })
}

const HEADERS: [&str; 9] = [
    "content-type",
    "horolog-deliver-at",
    "horolog-delay",
    "horolog-delay-level",
    "horolog-key",
    "horolog-tag",
    "horolog-properties",
    "horolog-message-group",
    "horolog-key",
];

fn headers() -> Vec<Vec<u8>> {
    written(&["\nimage/png\n\n90s\n\norder-1\nunpaid\neyJBIjoiYiJ9\ng\nk", "\n\n\n\n7", "\n\n0\n"])
}

/// One line a header, after an empty one; an empty line is a header that is not there.
fn judge_headers(bytes: &[u8]) -> Judged {
    let headers = headers_of(bytes, &HEADERS);
    match raw_put::read(&headers) {
        Ok((moment, attributes)) => {
            check_message(&NewMessage { moment, attributes, body: Bytes::from_static(b"raw") });
            Judged::Accepted
        }
        Err(problem) => refused(&problem),
    }
}

fn headers_of(bytes: &[u8], names: &[&'static str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let lines = bytes.split(|&byte| byte == b'\n').skip(1);
    for (line, &name) in lines.zip(names) {
        if let Ok(value) = HeaderValue::from_bytes(line)
            && !line.is_empty()
        {
            headers.append(name, value);
        }
    }
    headers
}

const CONDITIONS: [&str; 7] = [
    "content-type",
    "idempotency-key",
    "if-none-match",
    "traceparent",
    "tracestate",
    "idempotency-key",
    "if-match",
];

fn conditions() -> Vec<Vec<u8>> {
    written(&[
        "\napplication/json; charset=utf-8\nkey-1\n*\n00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\na=1",
        "\nApplication/X-NDJSON\nkey-1\n\n",
    ])
}

/// Headers that stand beside any message: each is understood, refused, or means nothing, and says the same twice.
fn judge_conditions(bytes: &[u8]) -> Judged {
    let headers = headers_of(bytes, &CONDITIONS);
    let _ = incoming::form(&headers);
    let head = |headers: &HeaderMap| -> Parts {
        let mut request = Request::post("/v1/topics/orders/messages").body(()).expect("a request");
        *request.headers_mut() = headers.clone();
        request.into_parts().0
    };
    let key = idempotency::bound(&head(&headers), bytes);
    let condition = timers::if_exists(&headers);
    for problem in [key.as_ref().err(), condition.as_ref().err()].into_iter().flatten() {
        refused(problem);
    }
    let Ok(Some(bound)) = key else { return Judged::Refused };
    let again = idempotency::bound(&head(&headers), bytes).ok().flatten();
    assert_eq!(again, Some(bound));
    let other = idempotency::bound(&head(&headers), b"another body").ok().flatten();
    assert!(other.is_some_and(|other| other.key == bound.key && other.request != bound.request));
    if condition.is_ok() { Judged::Accepted } else { Judged::Refused }
}
