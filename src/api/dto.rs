//! The JSON that comes in and goes out, besides puts.

use std::borrow::Cow;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::json_put::{JSON, given};
use crate::clock::Timestamp;
use crate::message::record::DeathReason;
use crate::message::{Attributes, State};
use crate::service::{DeadLetterView, MessageView, Received};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReceiveRequest<'a> {
    #[serde(borrow)]
    pub(super) topic: Cow<'a, str>,
    pub(super) max: Option<u64>,
    #[serde(borrow)]
    pub(super) wait: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) invisible_for: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    pub(super) tags: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AckRequest {
    pub(super) receipt_handles: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NackRequest<'a> {
    pub(super) receipt_handles: Vec<String>,
    #[serde(borrow, default, deserialize_with = "given")]
    pub(super) delay: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RedriveRequest {
    pub(super) ids: Option<Vec<String>>,
    pub(super) topic: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExtendRequest<'a> {
    #[serde(borrow)]
    pub(super) receipt_handle: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) invisible_for: &'a RawValue,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Put<'a> {
    pub(super) message_id: &'a str,
    pub(super) topic: &'a str,
    pub(super) state: &'static str,
    pub(super) deliver_at: Time,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PutTimer<'a> {
    pub(super) message_id: &'a str,
    pub(super) topic: &'a str,
    pub(super) key: &'a str,
    pub(super) state: &'static str,
    pub(super) deliver_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replaced: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rescheduled<'a> {
    pub(super) message_id: &'a str,
    pub(super) deliver_at: Time,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delivered<'a> {
    pub(super) message_id: &'a str,
    pub(super) state: &'static str,
    pub(super) fired_at: Time,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cancelled<'a> {
    pub(super) message_id: &'a str,
    pub(super) state: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct View<'a> {
    message_id: &'a str,
    topic: &'a str,
    state: &'static str,
    #[serde(flatten)]
    attributes: AttributesOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timer_key: Option<&'a str>,
    born_at: Time,
    deliver_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    fired_at: Option<Time>,
    #[serde(flatten)]
    body: Option<BodyOut<'a>>,
}

impl<'a> From<&'a MessageView> for View<'a> {
    fn from(view: &'a MessageView) -> Self {
        Self {
            message_id: &view.id,
            topic: &view.topic,
            state: state(view.state),
            attributes: (&view.attributes).into(),
            timer_key: view.timer_key.as_deref(),
            born_at: Time(view.born_at),
            deliver_at: Time(view.deliver_at),
            fired_at: view.fired_at.map(Time),
            body: view.body.as_ref().map(|body| BodyOut::new(&view.attributes.content_type, body)),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeadLetter<'a> {
    #[serde(flatten)]
    message: View<'a>,
    queue_id: u16,
    queue_offset: u64,
    attempts: u32,
    reason: &'static str,
    dead_at: Time,
}

impl<'a> From<&'a DeadLetterView> for DeadLetter<'a> {
    fn from(letter: &'a DeadLetterView) -> Self {
        Self {
            message: (&letter.message).into(),
            queue_id: letter.queue,
            queue_offset: letter.queue_offset,
            attempts: letter.attempts,
            reason: match letter.reason {
                DeathReason::Nacked => "NACKED",
                DeathReason::LeaseExpired => "LEASE_EXPIRED",
            },
            dead_at: Time(letter.dead_at),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Redriven {
    pub(super) redriven: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Messages<'a> {
    pub(super) messages: Vec<Message<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message<'a> {
    message_id: &'a str,
    topic: &'a str,
    queue_id: u16,
    queue_offset: u64,
    #[serde(flatten)]
    attributes: AttributesOut<'a>,
    #[serde(flatten)]
    body: BodyOut<'a>,
    born_at: Time,
    deliver_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    fired_at: Option<Time>,
    attempt: u32,
    receipt_handle: &'a str,
    invisible_until: Time,
}

impl<'a> From<&'a Received> for Message<'a> {
    fn from(received: &'a Received) -> Self {
        Self {
            message_id: &received.message_id,
            topic: &received.topic,
            queue_id: received.queue,
            queue_offset: received.queue_offset,
            attributes: (&received.attributes).into(),
            body: BodyOut::new(&received.attributes.content_type, &received.body),
            born_at: Time(received.born_at),
            deliver_at: Time(received.deliver_at),
            fired_at: received.fired_at.map(Time),
            attempt: received.attempt,
            receipt_handle: &received.receipt_handle,
            invisible_until: Time(received.invisible_until),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Acks<'a> {
    pub(super) results: Vec<Ack<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ack<'a> {
    pub(super) receipt_handle: &'a str,
    pub(super) status: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Extended<'a> {
    pub(super) receipt_handle: &'a str,
    pub(super) invisible_until: Time,
}

pub(super) const fn state(state: State) -> &'static str {
    match state {
        State::Scheduled => "SCHEDULED",
        State::Ready => "READY",
        State::Cancelled => "CANCELLED",
        State::Prepared => "PREPARED",
        State::RolledBack => "ROLLED_BACK",
        State::Abandoned => "ABANDONED",
    }
}

/// RFC 3339 in UTC with milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time(pub(super) Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttributesOut<'a> {
    keys: &'a [String],
    tag: Option<&'a str>,
    #[serde(serialize_with = "as_object")]
    properties: &'a [(String, String)],
    message_group: Option<&'a str>,
    content_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<&'a str>,
}

impl<'a> From<&'a Attributes> for AttributesOut<'a> {
    fn from(attributes: &'a Attributes) -> Self {
        Self {
            keys: &attributes.keys,
            tag: attributes.tag.as_deref(),
            properties: &attributes.properties,
            message_group: attributes.message_group.as_deref(),
            content_type: &attributes.content_type,
            traceparent: attributes.traceparent.as_deref(),
            tracestate: attributes.tracestate.as_deref(),
        }
    }
}

fn as_object<S: Serializer>(
    properties: &[(String, String)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut object = serializer.serialize_map(Some(properties.len()))?;
    for (name, value) in properties {
        object.serialize_entry(name, value)?;
    }
    object.end()
}

/// A body the way it went in: JSON as a value, text as text, all else as base64.
#[derive(Debug)]
pub(super) enum BodyOut<'a> {
    Json(&'a RawValue),
    Text(&'a str),
    Binary(&'a [u8]),
}

impl<'a> BodyOut<'a> {
    pub(super) fn new(content_type: &str, bytes: &'a [u8]) -> Self {
        let media_type = content_type.split(';').next().unwrap_or("").trim_ascii();
        if media_type.eq_ignore_ascii_case(JSON)
            && let Ok(value) = serde_json::from_slice(bytes)
        {
            return Self::Json(value);
        }
        let is_text = media_type.get(..5).is_some_and(|kind| kind.eq_ignore_ascii_case("text/"));
        match std::str::from_utf8(bytes) {
            Ok(text) if is_text => Self::Text(text),
            _ => Self::Binary(bytes),
        }
    }
}

impl Serialize for BodyOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(1))?;
        match self {
            Self::Json(value) => object.serialize_entry("body", value)?,
            Self::Text(text) => object.serialize_entry("bodyText", text)?,
            Self::Binary(bytes) => object.serialize_entry("bodyBase64", &Base64(bytes))?,
        }
        object.end()
    }
}

struct Base64<'a>(&'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(content_type: &str, bytes: &[u8]) -> String {
        serde_json::to_string(&BodyOut::new(content_type, bytes)).unwrap()
    }

    #[test]
    fn a_body_comes_out_the_way_it_went_in() {
        assert_eq!(out("application/json", b"{ \"a\": 1.0 }"), r#"{"body":{ "a": 1.0 }}"#);
        assert_eq!(out("text/plain; charset=utf-8", "é".as_bytes()), r#"{"bodyText":"é"}"#);
        assert_eq!(out("Text/CSV", b""), r#"{"bodyText":""}"#);
        assert_eq!(out("image/png", b"\0\xff"), r#"{"bodyBase64":"AP8="}"#);
    }

    #[test]
    fn a_body_that_is_not_what_its_type_says_comes_out_as_base64() {
        assert_eq!(out("application/json", b"{"), r#"{"bodyBase64":"ew=="}"#);
        assert_eq!(out("text/plain", b"\xff"), r#"{"bodyBase64":"/w=="}"#);
    }
}
