//! A message as it is sent: its body from where it is given, and all else that the arguments say of it.

use std::io::Read;
use std::path::Path;

use axum::http::{HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::CliError;
use super::arguments::MessageArgs;

/// Standard input, as the body.
const STDIN: &str = "-";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message<'a> {
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

/// Pairs as an object. A name that is given twice stays so: the server refuses it.
pub(super) fn as_object<T: Serialize, S: Serializer>(
    pairs: &[(String, T)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (name, value)))
}

/// The header under which a repetition of a request is known.
pub(super) fn idempotency_key(key: &str) -> Result<(HeaderName, HeaderValue), CliError> {
    let value = HeaderValue::try_from(key).map_err(|_| CliError::Refused {
        code: "INVALID_REQUEST".to_owned(),
        detail: "an idempotency key has no control characters".to_owned(),
    })?;
    Ok((HeaderName::from_static("idempotency-key"), value))
}

/// Reads the body from where it is given.
pub(super) fn read_body(args: &MessageArgs, input: &mut dyn Read) -> Result<Vec<u8>, CliError> {
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

/// The message that `args` describe, whose body was read before.
pub(super) fn message<'a>(args: &'a MessageArgs, body: &'a [u8]) -> Message<'a> {
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
