//! A message on its way in: in JSON, or raw with what goes with it in headers.

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;

use super::body::{self, Held, stored_too_large};
use super::problem::Problem;
use super::{Api, json_put, raw_put};
use crate::message::NewMessage;

/// A message that was read. The request's bytes stay counted against the budget as long as this is held.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) message: NewMessage,
    pub(super) held: Held,
}

/// The forms of a request that puts messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    NdJson,
    Raw,
}

pub(super) fn form(headers: &HeaderMap) -> Form {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Form::Raw };
    let media_type = value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
    let media_type = media_type.trim_ascii();
    if media_type.eq_ignore_ascii_case(json_put::JSON.as_bytes()) {
        Form::Json
    } else if media_type.eq_ignore_ascii_case(b"application/x-ndjson") {
        Form::NdJson
    } else {
        Form::Raw
    }
}

/// Reads the one message of a request.
pub(super) async fn read(api: &Api, headers: &HeaderMap, body: Body) -> Result<Incoming, Problem> {
    let limits = &api.shared.limits;
    let budget = &api.shared.budget;
    let incoming = match form(headers) {
        Form::Json => {
            raw_put::refuse_headers(headers)?;
            let held = body::read(body, limits.json_put_bytes(), budget).await?;
            Incoming { message: json_put::read(&held.bytes, headers)?, held }
        }
        Form::NdJson => {
            let detail = "this takes one message; send NDJSON to the batch below it, at .../batch";
            return Err(Problem::invalid(detail));
        }
        Form::Raw => {
            let (moment, attributes) = raw_put::read(headers)?;
            let held = body::read(body, limits.body_bytes, budget).await?;
            refuse_nothing(&held.bytes, headers)?;
            let message = NewMessage { moment, attributes, body: held.bytes.clone() };
            Incoming { message, held }
        }
    };
    let length = incoming.message.body.len();
    if length > limits.body_bytes {
        return Err(stored_too_large(length, limits.body_bytes));
    }
    Ok(incoming)
}

/// An empty body that has a type is a message; with neither, the body was forgotten.
fn refuse_nothing(body: &[u8], headers: &HeaderMap) -> Result<(), Problem> {
    if body.is_empty() && !headers.contains_key(CONTENT_TYPE) {
        return Err(Problem::invalid("the request has neither a body nor a content type"));
    }
    Ok(())
}
