//! A raw message: the request body is the body, and what goes with it comes in `Horolog-*` headers.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::fields::{Label, MAX_LABEL_LENGTH, Properties, check_keys, check_label};
use super::moment::{Asked, Token, moment};
use super::problem::Problem;
use super::trace::Trace;
use crate::message::{Attributes, Moment};

/// Headers that are ours begin so; `http` keeps names in lower case.
const PREFIX: &str = "horolog-";

/// base64url, with or without its padding.
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Refuses every `Horolog-*` header, for requests that take none.
pub(super) fn refuse_headers(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.keys().find(|name| name.as_str().starts_with(PREFIX)) {
        Some(name) => Err(Problem::invalid(format!("the header {name} does not belong here"))),
        None => Ok(()),
    }
}

/// What the headers say of a raw message: all but its body.
pub(super) fn read(headers: &HeaderMap) -> Result<(Moment, Attributes), Problem> {
    let mut asked = Asked::default();
    let mut attributes =
        Attributes { content_type: content_type(headers)?, ..Attributes::default() };
    for (name, value) in headers {
        let Some(field) = name.as_str().strip_prefix(PREFIX) else { continue };
        match field {
            "deliver-at" => asked.deliver_at = Some(token(headers, name, value)?),
            "delay" => asked.delay = Some(token(headers, name, value)?),
            // In a header a number has no quotes to tell it from text.
            "delay-level" => asked.delay_level = Some(Token::Number(once(headers, name, value)?)),
            "key" => attributes.keys.push(text(name, value)?.to_owned()),
            "tag" => {
                let tag = once(headers, name, value)?;
                check_label(Label::Tag, tag)?;
                attributes.tag = Some(tag.to_owned());
            }
            "message-group" => {
                let group = once(headers, name, value)?;
                check_label(Label::MessageGroup, group)?;
                attributes.message_group = Some(group.to_owned());
            }
            "properties" => attributes.properties = properties(once(headers, name, value)?)?,
            _ => return Err(Problem::invalid(format!("there is no header {name}"))),
        }
    }
    check_keys(&attributes.keys)?;
    let Trace { traceparent, tracestate } = Trace::of(headers);
    attributes.traceparent = traceparent;
    attributes.tracestate = tracestate;
    Ok((moment(&asked)?, attributes))
}

fn content_type(headers: &HeaderMap) -> Result<String, Problem> {
    let Some(value) = headers.get(axum::http::header::CONTENT_TYPE) else {
        return Ok("application/octet-stream".to_owned());
    };
    match value.to_str() {
        Ok(text) if text.len() <= MAX_LABEL_LENGTH => Ok(text.to_owned()),
        _ => Err(Problem::invalid(format!(
            "a content type is printable ASCII of at most {MAX_LABEL_LENGTH} bytes"
        ))),
    }
}

fn token<'a>(
    headers: &HeaderMap,
    name: &HeaderName,
    value: &'a HeaderValue,
) -> Result<Token<'a>, Problem> {
    Ok(Token::Text(Cow::Borrowed(once(headers, name, value)?)))
}

fn once<'a>(
    headers: &HeaderMap,
    name: &HeaderName,
    value: &'a HeaderValue,
) -> Result<&'a str, Problem> {
    if headers.get_all(name).iter().nth(1).is_some() {
        return Err(Problem::invalid(format!("the header {name} is given twice")));
    }
    text(name, value)
}

fn text<'a>(name: &HeaderName, value: &'a HeaderValue) -> Result<&'a str, Problem> {
    std::str::from_utf8(value.as_bytes())
        .map_err(|_| Problem::invalid(format!("the header {name} is not UTF-8")))
}

fn properties(encoded: &str) -> Result<Vec<(String, String)>, Problem> {
    let refused = |reason: String| {
        Problem::invalid(format!("Horolog-Properties is base64url of a JSON object: {reason}"))
    };
    let json = BASE64_URL.decode(encoded).map_err(|error| refused(error.to_string()))?;
    let properties: Properties =
        serde_json::from_slice(&json).map_err(|error| refused(error.to_string()))?;
    Ok(properties.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for &(name, value) in pairs {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn headers_say_everything_but_the_body() {
        let (moment, attributes) = read(&headers(&[
            ("content-type", "image/png"),
            ("horolog-delay", "90s"),
            ("horolog-key", "order-1"),
            ("horolog-key", "user-2"),
            ("horolog-tag", "unpaid"),
            ("horolog-message-group", "g"),
            ("horolog-properties", "eyJBIjoiYiJ9"),
        ]))
        .unwrap();
        assert_eq!(moment, Moment::After(90_000));
        assert_eq!(attributes.content_type, "image/png");
        assert_eq!(attributes.keys, ["order-1", "user-2"]);
        assert_eq!(attributes.tag.as_deref(), Some("unpaid"));
        assert_eq!(attributes.message_group.as_deref(), Some("g"));
        assert_eq!(attributes.properties, [("A".to_owned(), "b".to_owned())]);
    }

    #[test]
    fn a_header_that_is_unknown_repeated_or_wrong_is_refused() {
        for pairs in [
            [("horolog-dealy", "90s"), ("content-type", "a/b")],
            [("horolog-delay", "90s"), ("horolog-delay", "90s")],
            [("horolog-delay", "90s"), ("horolog-deliver-at", "0")],
            [("horolog-tag", ""), ("content-type", "a/b")],
            [("horolog-properties", "!"), ("content-type", "a/b")],
            [("horolog-properties", "W10="), ("content-type", "a/b")],
        ] {
            assert!(read(&headers(&pairs)).is_err(), "{pairs:?}");
        }
    }
}
