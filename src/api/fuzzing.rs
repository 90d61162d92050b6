//! What the HTTP door reads, to be tried with bytes that mean nothing: times, moments, request bodies, headers.

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use timerlog::decoder::{Decoder, Judged, unsealed};

use super::members::object;
use super::moment::{Token, time};
use super::{batch, dto, group_settings, groups, json_put, raw_put};
use crate::config::{Config, Given};
use crate::message::{Moment, NewMessage};

pub(crate) fn decoders() -> Vec<Decoder> {
    let decoder = |name, samples, judge| Decoder { name, samples, seal: unsealed, judge };
    vec![
        decoder("time", times as fn() -> _, judge_time as fn(&[u8]) -> _),
        decoder("put", puts, judge_put),
        decoder("batch", batches, judge_batch),
        decoder("headers", headers, judge_headers),
        decoder("control", controls, judge_control),
        decoder("settings_file", settings, judge_settings),
    ]
}

fn written(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn accepted(is: bool) -> Judged {
    if is { Judged::Accepted } else { Judged::Refused }
}

fn times() -> Vec<Vec<u8>> {
    written(&[
        "1790000000007",
        "2026-09-21T14:13:20.007Z",
        "2026-09-21T22:13:20.0065+08:00",
        "0",
        "18446744073709551615",
        "9999-12-30T22:00:00.999999999Z",
    ])
}

/// What is read is written as any time is written, and read again as the same.
fn judge_time(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Refused };
    let Ok(read) = time(&Token::Text(text.into())) else { return Judged::Refused };
    let number = read.as_millis().to_string();
    assert_eq!(time(&Token::Number(&number)), Ok(read), "{text}");
    let shown = read.to_string();
    if let Ok(again) = time(&Token::Text(shown.as_str().into())) {
        assert_eq!(again, read, "{text} is written as {shown}");
    } else {
        // No calendar goes so far, but for parts of its last second; the API does not let such a moment in.
        assert!(read.as_millis() >= 253_402_207_200_000, "{text} is written as {shown}");
    }
    Judged::Accepted
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
        Err(_) => Judged::Refused,
    }
}

/// A message that was read, written plainly, is read as the same.
fn check_message(message: &NewMessage) {
    let attributes = &message.attributes;
    let properties: serde_json::Map<_, _> =
        attributes.properties.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    assert_eq!(
        properties.len(),
        attributes.properties.len(),
        "each property has a name of its own"
    );
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
    let again = json_put::read(&plain.to_string().into(), &HeaderMap::new());
    assert!(again.is_ok(), "{plain} is refused: {again:?}");
    let again = again.expect("it is");
    assert_eq!((&again.body, again.moment), (&message.body, message.moment));
    let sorted = |of: &NewMessage| {
        let mut properties = of.attributes.properties.clone();
        properties.sort();
        properties
    };
    assert_eq!(sorted(&again), sorted(message));
    assert_eq!(again.attributes.keys, attributes.keys);
    assert_eq!(again.attributes.tag, attributes.tag);
    assert_eq!(again.attributes.message_group, attributes.message_group);
}

fn batches() -> Vec<Vec<u8>> {
    let one = r#"{"messages":[{"body":1,"delay":"1h"},{"bodyText":"x"}],"atomic":true}"#;
    let lines = "{\"body\":1}\n\r\n{\"body\":{\"a\":[]},\"delay\":5}\n";
    written(&[one, lines])
}

fn judge_batch(bytes: &[u8]) -> Judged {
    let bytes = Bytes::copy_from_slice(bytes);
    let mut any = false;
    for message in batch::messages(&bytes) {
        check_message(&message);
        any = true;
    }
    accepted(any)
}

const HEADERS: [&str; 7] = [
    "content-type",
    "horolog-deliver-at",
    "horolog-delay",
    "horolog-delay-level",
    "horolog-key",
    "horolog-tag",
    "horolog-properties",
];

fn headers() -> Vec<Vec<u8>> {
    written(&["\nimage/png\n\n90s\n\norder-1\nunpaid\neyJBIjoiYiJ9", "\n\n\n\n7", "\n\n0\n"])
}

/// One line a header, after an empty one; an empty line is a header that is not there.
fn judge_headers(bytes: &[u8]) -> Judged {
    let mut headers = HeaderMap::new();
    let lines = bytes.split(|&byte| byte == b'\n').skip(1);
    for (line, name) in lines.zip(HEADERS) {
        if let Ok(value) = HeaderValue::from_bytes(line)
            && !line.is_empty()
        {
            headers.append(name, value);
        }
    }
    let Ok((moment, attributes)) = raw_put::read(&headers) else { return Judged::Refused };
    check_message(&NewMessage { moment, attributes, body: Bytes::from_static(b"raw") });
    Judged::Accepted
}

fn controls() -> Vec<Vec<u8>> {
    written(&[
        r#"{"topic":"orders","max":5,"wait":"10s","invisibleFor":"1m","tags":["a","b"]}"#,
        r#"{"receiptHandles":["a","b"]}"#,
        r#"{"receiptHandles":["a"],"delay":"5s"}"#,
        r#"{"receiptHandle":"a","invisibleFor":1000}"#,
        r#"{"ids":["a"],"topic":"orders"}"#,
    ])
}

/// The requests that carry no message. One that is read is an object, of which every member has a name that
/// is known, and has it once.
fn judge_control(bytes: &[u8]) -> Judged {
    fn reads<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
        object(bytes).ok()
    }
    let receive = reads::<dto::ReceiveRequest<'_>>(bytes);
    let is = receive.is_some()
        || reads::<dto::AckRequest>(bytes).is_some()
        || reads::<dto::NackRequest<'_>>(bytes).is_some()
        || reads::<dto::ExtendRequest<'_>>(bytes).is_some()
        || reads::<dto::RedriveRequest>(bytes).is_some();
    if let Some(receive) = receive {
        // Whatever it says, it is judged without a panic.
        drop(groups::receive_request(&receive));
    }
    if let Ok(raw) = serde_json::from_slice::<&serde_json::value::RawValue>(bytes) {
        drop(group_settings::tags(raw, "/tags"));
    }
    if is {
        let value: Value = serde_json::from_slice(bytes).expect("it was read as JSON");
        let known = [
            "topic",
            "max",
            "wait",
            "invisibleFor",
            "tags",
            "receiptHandles",
            "receiptHandle",
            "delay",
            "ids",
        ];
        let members = value.as_object().expect("nothing else is read as a request");
        assert!(members.keys().all(|name| known.contains(&name.as_str())), "{value}");
    }
    accepted(is)
}

fn settings() -> Vec<Vec<u8>> {
    written(&[
        "flush = 'async'\nflush_interval = '50ms'\nqueues_per_topic = 8\n",
        "listen = '127.0.0.1:0'\nmax_body = 65536\nauto_create_topics = false\ndelay_levels = '1s 2s'",
        "",
    ])
}

fn judge_settings(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Refused };
    let Ok(given) = Given::from_toml(text) else { return Judged::Refused };
    accepted(Config::new(&given).is_ok())
}
