//! `POST /v1/topics/{topic}/messages`, `GET` and `DELETE /v1/messages/{id}`.

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Deserialize;

use super::body::{self, stored_too_large};
use super::dto::{Cancelled, Put, Time, View, state};
use super::problem::Problem;
use super::query::{NoParameters, parameters};
use super::{Api, Segment, json, json_put, raw_put, segment};
use crate::message::{NewMessage, State as MessageState, TopicName};
use crate::metrics::Route;
use crate::service::WithBody;

pub(super) async fn put(State(api): State<Api>, topic: Segment, request: Request) -> Response {
    let result = accept(&api, topic, request).await;
    api.answer(Route::PutMessage, result)
}

async fn accept(api: &Api, topic: Segment, request: Request) -> Result<Response, Problem> {
    let topic = TopicName::writable(&segment(topic)?)?;
    let NoParameters {} = parameters(request.uri())?;
    let service = api.service()?;
    let (head, body) = request.into_parts();
    refuse_idempotency_key(&head.headers)?;
    let limits = &api.shared.limits;
    let budget = &api.shared.budget;
    // The request's bytes stay counted against the budget until the answer is there.
    let held;
    let message = match form(&head.headers)? {
        Form::Json => {
            raw_put::refuse_headers(&head.headers)?;
            held = body::read(body, limits.json_put_bytes(), budget).await?;
            json_put::read(&held.bytes, &head.headers)?
        }
        Form::Raw => {
            let (moment, attributes) = raw_put::read(&head.headers)?;
            held = body::read(body, limits.body_bytes, budget).await?;
            refuse_nothing(&held.bytes, &head.headers)?;
            NewMessage { moment, attributes, body: held.bytes.clone() }
        }
    };
    if message.body.len() > limits.body_bytes {
        return Err(stored_too_large(message.body.len(), limits.body_bytes));
    }
    let accepted = service.put(&topic, message).await?;
    let mut response = json(
        StatusCode::CREATED,
        &Put {
            message_id: &accepted.id,
            topic: topic.as_str(),
            state: state(accepted.state),
            deliver_at: Time(accepted.deliver_at),
        },
    );
    let location = HeaderValue::try_from(format!("/v1/messages/{}", accepted.id))
        .expect("an id is made of letters and digits");
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// The two forms of a put.
enum Form {
    Json,
    Raw,
}

fn form(headers: &HeaderMap) -> Result<Form, Problem> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(Form::Raw) };
    let media_type = value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
    let media_type = media_type.trim_ascii();
    if media_type.eq_ignore_ascii_case(json_put::JSON.as_bytes()) {
        Ok(Form::Json)
    } else if media_type.eq_ignore_ascii_case(b"application/x-ndjson") {
        Err(Problem::invalid("this version takes one message at a time, not NDJSON"))
    } else {
        Ok(Form::Raw)
    }
}

/// An empty body that has a type is a message; with neither, the body was forgotten.
fn refuse_nothing(body: &[u8], headers: &HeaderMap) -> Result<(), Problem> {
    if body.is_empty() && !headers.contains_key(CONTENT_TYPE) {
        return Err(Problem::invalid("the request has neither a body nor a content type"));
    }
    Ok(())
}

/// A client that sends a key counts on it: storing its retry a second time would break that.
fn refuse_idempotency_key(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key("idempotency-key") {
        return Err(Problem::invalid("this version does not have idempotency keys yet"));
    }
    Ok(())
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShowParameters {
    #[serde(default)]
    body: bool,
}

pub(super) async fn show(State(api): State<Api>, id: Segment, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = look_up(&api, id, &head).await;
    api.answer(Route::GetMessage, result)
}

async fn look_up(api: &Api, id: Segment, head: &Parts) -> Result<Response, Problem> {
    let id = segment(id)?;
    let parameters: ShowParameters = parameters(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    let body = if parameters.body { WithBody::Yes } else { WithBody::No };
    let view = api.service()?.message(&id, body).await?;
    Ok(json(StatusCode::OK, &View::from(&view)))
}

pub(super) async fn cancel(State(api): State<Api>, id: Segment, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = call_off(&api, id, &head).await;
    api.answer(Route::CancelMessage, result)
}

async fn call_off(api: &Api, id: Segment, head: &Parts) -> Result<Response, Problem> {
    let id = segment(id)?;
    let NoParameters {} = parameters(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    api.service()?.cancel(&id).await?;
    let state = state(MessageState::Cancelled);
    Ok(json(StatusCode::OK, &Cancelled { message_id: &id, state }))
}
