//! `PUT`, `GET` and `DELETE /v1/topics/{topic}/timers/{key}`: timers by the caller's own key.

use axum::extract::{Request, State};
use axum::http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LOCATION,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::dto::{Cancelled, PutTimer, Time, View, state};
use super::fields::{Label, check_label};
use super::messages::location;
use super::problem::Problem;
use super::query::{NoParameters, parameters};
use super::{Api, Segments, idempotency, incoming, json, raw_put, segments};
use crate::message::{State as MessageState, TopicName};
use crate::metrics::Route;
use crate::producer::IfExists;

pub(super) async fn put(State(api): State<Api>, path: Segments, request: Request) -> Response {
    let result = accept(&api, path, request).await;
    api.answer(Route::PutTimer, result)
}

async fn accept(api: &Api, path: Segments, request: Request) -> Result<Response, Problem> {
    let (topic, key) = segments(path)?;
    let topic = TopicName::writable(&topic)?;
    check_label(Label::Key, &key)?;
    let NoParameters {} = parameters(request.uri())?;
    let service = api.service()?;
    let (head, body) = request.into_parts();
    // The timer's key does what an idempotency key would.
    idempotency::refuse(&head)?;
    let if_exists = if_exists(&head.headers)?;
    let incoming = incoming::read(api, &head.headers, body).await?;
    let put = service.put_timer(&topic, &key, incoming.message, if_exists).await?;
    let status = match put.replaced {
        Some(_) => StatusCode::OK,
        None => StatusCode::CREATED,
    };
    let answer = PutTimer {
        message_id: &put.accepted.id,
        topic: topic.as_str(),
        key: &key,
        state: state(put.accepted.state),
        deliver_at: Time(put.accepted.deliver_at),
        replaced: put.replaced.as_deref(),
    };
    let mut response = json(status, &answer);
    response.headers_mut().insert(LOCATION, location(&put.accepted.id));
    Ok(response)
}

/// `If-None-Match: *` is the one condition there is: timers have no versions to match. Whoever gives
/// another one counts on it, so it is not passed over.
pub(super) fn if_exists(headers: &HeaderMap) -> Result<IfExists, Problem> {
    let other = || Problem::invalid("the only condition that can be given is If-None-Match: *");
    let unknown = [IF_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE];
    if unknown.iter().any(|name| headers.contains_key(name)) {
        return Err(other());
    }
    let mut values = headers.get_all(IF_NONE_MATCH).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(IfExists::Replace),
        (Some(value), None) if value.as_bytes().trim_ascii() == b"*" => Ok(IfExists::Refuse),
        _ => Err(other()),
    }
}

pub(super) async fn show(State(api): State<Api>, path: Segments, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = look_up(&api, path, &head).await;
    api.answer(Route::GetTimer, result)
}

async fn look_up(api: &Api, path: Segments, head: &Parts) -> Result<Response, Problem> {
    let (topic, key) = named(path, head)?;
    api.shared.answers.have_room()?;
    let view = api.service()?.timer(&topic, &key).await?;
    Ok(json(StatusCode::OK, &View::from(&view)))
}

pub(super) async fn cancel(State(api): State<Api>, path: Segments, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = call_off(&api, path, &head).await;
    api.answer(Route::CancelTimer, result)
}

async fn call_off(api: &Api, path: Segments, head: &Parts) -> Result<Response, Problem> {
    let (topic, key) = named(path, head)?;
    let id = api.service()?.cancel_timer(&topic, &key).await?;
    let state = state(MessageState::Cancelled);
    Ok(json(StatusCode::OK, &Cancelled { message_id: &id, state }))
}

fn named(path: Segments, head: &Parts) -> Result<(TopicName, String), Problem> {
    let (topic, key) = segments(path)?;
    let topic = TopicName::readable(&topic)?;
    check_label(Label::Key, &key)?;
    let NoParameters {} = parameters(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    Ok((topic, key))
}
