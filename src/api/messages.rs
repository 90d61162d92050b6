//! `POST` and `GET /v1/topics/{topic}/messages`, `GET /v1/messages/{id}`.

use axum::extract::{Request, State};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;

use super::dto::{Put, Time, View, state};
use super::fields::{Label, check_label};
use super::page::{self, Page};
use super::problem::Problem;
use super::query::{NoParameters, parameters};
use super::{Api, Segment, idempotency, incoming, json, raw_put, segment};
use crate::message::TopicName;
use crate::metrics::Route;
use crate::producer::{Atomic, Request as Puts};
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
    let incoming = incoming::read(api, &head.headers, body).await?;
    let bound = idempotency::bound(&head, &incoming.held.bytes)?;
    let items = vec![Some(incoming.message)];
    let puts = service.put_all(&topic, Puts { items, atomic: Atomic::Yes, bound }).await?;
    let replayed = puts.replayed;
    let accepted = puts.items.into_iter().next().expect("an answer for each item")?;
    let put = Put {
        message_id: &accepted.id,
        topic: topic.as_str(),
        state: state(accepted.state),
        deliver_at: Time(accepted.deliver_at),
    };
    let mut response = json(StatusCode::CREATED, &put);
    response.headers_mut().insert(LOCATION, location(&accepted.id));
    Ok(idempotency::mark(response, replayed))
}

/// Where a message is to be looked at.
pub(super) fn location(id: &str) -> HeaderValue {
    HeaderValue::try_from(format!("/v1/messages/{id}"))
        .expect("an id is made of letters and digits")
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
    let body = with_body(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    api.shared.answers.have_room()?;
    let view = api.service()?.message(&id, body).await?;
    Ok(json(StatusCode::OK, &View::from(&view)))
}

pub(super) fn with_body(uri: &Uri) -> Result<WithBody, Problem> {
    let parameters: ShowParameters = parameters(uri)?;
    Ok(if parameters.body { WithBody::Yes } else { WithBody::No })
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchParameters {
    key: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

pub(super) async fn search(State(api): State<Api>, topic: Segment, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = find(&api, topic, &head).await;
    api.answer(Route::SearchMessages, result)
}

async fn find(api: &Api, topic: Segment, head: &Parts) -> Result<Response, Problem> {
    let topic = TopicName::readable(&segment(topic)?)?;
    let SearchAsked { key, limit, cursor } = search_asked(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    let found = api.service()?.search(&topic, &key, cursor.as_deref(), limit).await?;
    let page =
        Page { items: found.messages.iter().map(View::from).collect(), next_cursor: found.next };
    Ok(json(StatusCode::OK, &page))
}

/// Which page of the messages with which key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SearchAsked {
    pub(super) key: String,
    pub(super) limit: usize,
    pub(super) cursor: Option<String>,
}

pub(super) fn search_asked(uri: &Uri) -> Result<SearchAsked, Problem> {
    let parameters: SearchParameters = parameters(uri)?;
    let key = parameters.key.ok_or_else(|| Problem::invalid("the parameter key is missing"))?;
    check_label(Label::Key, &key)?;
    let limit = page::limit(parameters.limit.as_deref())?;
    Ok(SearchAsked { key, limit, cursor: parameters.cursor })
}
