//! The attributes of a message, inside its head: a row of fields.
//!
//! ```text
//! | field 1 | length 4 | bytes |  ...  to the end of the head
//! ```
//!
//! Fields 4 and 6 stand as often as it takes, the others at most once. A property is
//! `name length 2 | name | value`; what a timer replaces (10, only with 9) is
//! `cause 8 | deadline ms 8 | timer tag 8`. The terms of a transaction (11, in a half
//! message and in no other) are `check after ms 8 | check interval ms 8 | abandon after ms 8 | max checks 4 |
//! producer group`; with them may stand the URL where its producer is asked (12), and with that the secret that
//! the questions are signed with (13), in clear as bodies are. All text is UTF-8. Which fields are there is the message's
//! business; a number that is not known is an error, since it was written by a newer version.

use super::super::Attributes;
use super::super::offset::Offset;
use super::message::{CheckUrl, KeyedTimer, Replaced, Terms};
use super::{length_u32, read_u16, read_u32, read_u64};
use crate::clock::Timestamp;

const TOPIC: u8 = 1;
const CONTENT_TYPE: u8 = 2;
const TAG: u8 = 3;
const KEY: u8 = 4;
const MESSAGE_GROUP: u8 = 5;
const PROPERTY: u8 = 6;
const TRACEPARENT: u8 = 7;
const TRACESTATE: u8 = 8;
const TIMER_KEY: u8 = 9;
const REPLACES: u8 = 10;
const TERMS: u8 = 11;
const CHECK_URL: u8 = 12;
const CHECK_SECRET: u8 = 13;

const FIELD_HEADER: usize = 5;
const REPLACES_LENGTH: usize = 24;
/// Without the producer group.
const TERMS_LENGTH: usize = 28;

/// Why the fields cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributesError {
    #[error("a field reaches past the end of the head")]
    Short,
    #[error("field {field} is not known")]
    UnknownField { field: u8 },
    #[error("field {field} stands twice")]
    Twice { field: u8 },
    /// Each field has one place, and one way to say that there is nothing in it.
    #[error("field {field} is not where, or not as, it is written")]
    NotAsWritten { field: u8 },
    #[error("field {field} is not UTF-8")]
    NotText { field: u8 },
    #[error("field {field} has {got} bytes, not {expected}")]
    Length { field: u8, got: usize, expected: usize },
    #[error("the topic's name is missing")]
    NoTopic,
    #[error("it replaces a timer and has no timer's key")]
    NoTimerKey,
    #[error("it says where or how to ask for a transaction, and lacks the terms or the URL")]
    NoTerms,
}

/// Appends the fields to `head`.
pub(super) fn encode(
    topic: &str,
    attributes: &Attributes,
    timer: Option<&KeyedTimer>,
    terms: Option<&Terms>,
    head: &mut Vec<u8>,
) {
    put(head, TOPIC, &[topic.as_bytes()]);
    if !attributes.content_type.is_empty() {
        put(head, CONTENT_TYPE, &[attributes.content_type.as_bytes()]);
    }
    put_optional(head, TAG, attributes.tag.as_deref());
    for key in &attributes.keys {
        put(head, KEY, &[key.as_bytes()]);
    }
    put_optional(head, MESSAGE_GROUP, attributes.message_group.as_deref());
    for (name, value) in &attributes.properties {
        let length = u16::try_from(name.len()).expect("properties have 32 KiB together");
        put(head, PROPERTY, &[&length.to_le_bytes(), name.as_bytes(), value.as_bytes()]);
    }
    put_optional(head, TRACEPARENT, attributes.traceparent.as_deref());
    put_optional(head, TRACESTATE, attributes.tracestate.as_deref());
    if let Some(timer) = timer {
        put(head, TIMER_KEY, &[timer.key.as_bytes()]);
        if let Some(replaced) = &timer.replaces {
            let parts = [replaced.cause.get(), replaced.deadline.as_millis(), replaced.tag];
            put(head, REPLACES, &parts.map(u64::to_le_bytes).each_ref().map(<[u8; 8]>::as_slice));
        }
    }
    if let Some(terms) = terms {
        let times = [terms.check_after_ms, terms.check_interval_ms, terms.abandon_after_ms];
        let [after, interval, abandon] = times.map(u64::to_le_bytes);
        let (checks, group) = (terms.max_checks.to_le_bytes(), terms.producer_group.as_bytes());
        put(head, TERMS, &[&after, &interval, &abandon, &checks, group]);
        if let Some(CheckUrl { url, secret }) = &terms.check_url {
            put(head, CHECK_URL, &[url.as_bytes()]);
            put_optional(head, CHECK_SECRET, secret.as_deref());
        }
    }
}

/// An upper bound of what [`encode`] appends.
pub(super) fn encoded_length(
    topic: &str,
    attributes: &Attributes,
    timer: Option<&KeyedTimer>,
    terms: Option<&Terms>,
) -> usize {
    let optional =
        |text: &Option<String>| text.as_ref().map_or(0, |text| FIELD_HEADER + text.len());
    FIELD_HEADER * 2
        + topic.len()
        + attributes.content_type.len()
        + optional(&attributes.tag)
        + attributes.keys.iter().map(|key| FIELD_HEADER + key.len()).sum::<usize>()
        + optional(&attributes.message_group)
        + attributes
            .properties
            .iter()
            .map(|(name, value)| FIELD_HEADER + 2 + name.len() + value.len())
            .sum::<usize>()
        + optional(&attributes.traceparent)
        + optional(&attributes.tracestate)
        + timer.map_or(0, |timer| FIELD_HEADER * 2 + timer.key.len() + REPLACES_LENGTH)
        + terms.map_or(0, |terms| {
            let asked = terms.check_url.as_ref();
            let url = asked.map_or(0, |asked| FIELD_HEADER + asked.url.len());
            let secret = asked.map_or(0, |asked| optional(&asked.secret));
            FIELD_HEADER + TERMS_LENGTH + terms.producer_group.len() + url + secret
        })
}

fn put_optional(head: &mut Vec<u8>, field: u8, text: Option<&str>) {
    if let Some(text) = text {
        put(head, field, &[text.as_bytes()]);
    }
}

fn put(head: &mut Vec<u8>, field: u8, parts: &[&[u8]]) {
    let length = parts.iter().map(|part| part.len()).sum();
    head.push(field);
    head.extend_from_slice(&length_u32(length).to_le_bytes());
    for part in parts {
        head.extend_from_slice(part);
    }
}

/// All that the fields say.
pub(super) struct Fields {
    pub(super) topic: String,
    pub(super) attributes: Attributes,
    pub(super) timer: Option<KeyedTimer>,
    pub(super) terms: Option<Terms>,
}

/// Reads the fields back.
pub(super) fn decode(mut bytes: &[u8]) -> Result<Fields, AttributesError> {
    let mut topic = None;
    let mut timer_key = None;
    let mut replaces = None;
    let mut terms: Option<Terms> = None;
    let (mut check_url, mut check_secret) = (None, None);
    let mut content_type = None;
    let mut attributes = Attributes::default();
    let mut before = 0;
    while !bytes.is_empty() {
        let (field, value) = take(&mut bytes)?;
        if field < before || field == CONTENT_TYPE && value.is_empty() {
            return Err(AttributesError::NotAsWritten { field });
        }
        before = field;
        match field {
            TOPIC => once(&mut topic, field, text(field, value)?)?,
            CONTENT_TYPE => once(&mut content_type, field, text(field, value)?)?,
            TAG => once(&mut attributes.tag, field, text(field, value)?)?,
            KEY => attributes.keys.push(text(field, value)?),
            MESSAGE_GROUP => once(&mut attributes.message_group, field, text(field, value)?)?,
            PROPERTY => attributes.properties.push(property(value)?),
            TRACEPARENT => once(&mut attributes.traceparent, field, text(field, value)?)?,
            TRACESTATE => once(&mut attributes.tracestate, field, text(field, value)?)?,
            TIMER_KEY => once(&mut timer_key, field, text(field, value)?)?,
            REPLACES => once(&mut replaces, field, replaced(value)?)?,
            TERMS => once(&mut terms, field, terms_of(value)?)?,
            CHECK_URL => once(&mut check_url, field, text(field, value)?)?,
            CHECK_SECRET => once(&mut check_secret, field, text(field, value)?)?,
            field => return Err(AttributesError::UnknownField { field }),
        }
    }
    attributes.content_type = content_type.unwrap_or_default();
    let timer = match (timer_key, replaces) {
        (Some(key), replaces) => Some(KeyedTimer { key, replaces }),
        (None, None) => None,
        (None, Some(_)) => return Err(AttributesError::NoTimerKey),
    };
    match (&mut terms, check_url, check_secret) {
        (Some(terms), Some(url), secret) => terms.check_url = Some(CheckUrl { url, secret }),
        (_, None, None) => {}
        (None, Some(_), _) | (_, None, Some(_)) => return Err(AttributesError::NoTerms),
    }
    Ok(Fields { topic: topic.ok_or(AttributesError::NoTopic)?, attributes, timer, terms })
}

fn terms_of(value: &[u8]) -> Result<Terms, AttributesError> {
    let (fixed, group) = value.split_at_checked(TERMS_LENGTH).ok_or(AttributesError::Short)?;
    Ok(Terms {
        check_after_ms: read_u64(fixed, 0),
        check_interval_ms: read_u64(fixed, 8),
        abandon_after_ms: read_u64(fixed, 16),
        max_checks: read_u32(fixed, 24),
        producer_group: text(TERMS, group)?,
        check_url: None,
    })
}

fn replaced(value: &[u8]) -> Result<Replaced, AttributesError> {
    if value.len() != REPLACES_LENGTH {
        let (got, expected) = (value.len(), REPLACES_LENGTH);
        return Err(AttributesError::Length { field: REPLACES, got, expected });
    }
    Ok(Replaced {
        cause: Offset::new(read_u64(value, 0)),
        deadline: Timestamp::from_millis(read_u64(value, 8)),
        tag: read_u64(value, 16),
    })
}

fn take<'a>(bytes: &mut &'a [u8]) -> Result<(u8, &'a [u8]), AttributesError> {
    if bytes.len() < FIELD_HEADER {
        return Err(AttributesError::Short);
    }
    let length = read_u32(bytes, 1) as usize;
    let rest = &bytes[FIELD_HEADER..];
    if rest.len() < length {
        return Err(AttributesError::Short);
    }
    let field = bytes[0];
    *bytes = &rest[length..];
    Ok((field, &rest[..length]))
}

fn property(value: &[u8]) -> Result<(String, String), AttributesError> {
    if value.len() < 2 {
        return Err(AttributesError::Short);
    }
    let name_end = 2 + usize::from(read_u16(value, 0));
    if value.len() < name_end {
        return Err(AttributesError::Short);
    }
    Ok((text(PROPERTY, &value[2..name_end])?, text(PROPERTY, &value[name_end..])?))
}

fn text(field: u8, value: &[u8]) -> Result<String, AttributesError> {
    match std::str::from_utf8(value) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(AttributesError::NotText { field }),
    }
}

fn once<T>(slot: &mut Option<T>, field: u8, value: T) -> Result<(), AttributesError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(AttributesError::Twice { field }),
    }
}
