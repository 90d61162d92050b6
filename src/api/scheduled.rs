//! `GET /v1/scheduled`, `GET /v1/scheduled/timeline`, `POST /v1/scheduled/cancel`.

use std::borrow::Cow;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::dto::{Time, View};
use super::fields::{Label, check_label};
use super::groups::{control, parse};
use super::limits::{DEFAULT_PAGE, MAX_PAGE};
use super::moment::{Token, duration, time};
use super::problem::Problem;
use super::query::parameters;
use super::{Api, json, raw_put};
use crate::clock::Timestamp;
use crate::message::TopicName;
use crate::metrics::Route;
use crate::producer::WhenMatched;
use crate::service::{ScheduledQuery, TimelineRequest};

/// The length of a bucket unless it is given.
const BUCKET_MS: u64 = 60_000;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListParameters {
    topic: Option<String>,
    key: Option<String>,
    tag: Option<String>,
    from: Option<String>,
    to: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    items: Vec<View<'a>>,
    next_cursor: Option<&'a str>,
}

pub(super) async fn list(State(api): State<Api>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = look_through(&api, &head).await;
    api.answer(Route::ListScheduled, result)
}

async fn look_through(api: &Api, head: &Parts) -> Result<Response, Problem> {
    let ListAsked { query, limit, cursor } = list_asked(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    api.shared.answers.have_room()?;
    let page = api.service()?.scheduled(&query, cursor, limit).await?;
    let items = page.items.iter().map(View::from).collect();
    let next_cursor = page.next_cursor.as_deref();
    Ok(json(StatusCode::OK, &Page { items, next_cursor }))
}

/// Which page of which messages.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListAsked {
    pub(super) query: ScheduledQuery,
    pub(super) limit: usize,
    pub(super) cursor: Option<String>,
}

pub(super) fn list_asked(uri: &Uri) -> Result<ListAsked, Problem> {
    let given: ListParameters = parameters(uri)?;
    let limit = given.limit.map_or(Ok(DEFAULT_PAGE), usize::try_from).unwrap_or(usize::MAX);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::invalid(format!("limit is 1 to {MAX_PAGE}")));
    }
    let query = ScheduledQuery {
        topic: given.topic.as_deref().map(TopicName::readable).transpose()?,
        key: label(Label::Key, given.key)?,
        tag: label(Label::Tag, given.tag)?,
        from: moment("from", given.from.as_deref())?,
        to: moment("to", given.to.as_deref())?,
    };
    Ok(ListAsked { query, limit, cursor: given.cursor })
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimelineParameters {
    topic: Option<String>,
    from: Option<String>,
    to: Option<String>,
    bucket: Option<String>,
}

#[derive(Debug, Serialize)]
struct Bucket {
    start: Time,
    count: u64,
}

#[derive(Debug, Serialize)]
struct Timeline {
    buckets: Vec<Bucket>,
    complete: bool,
}

pub(super) async fn timeline(State(api): State<Api>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = count(&api, &head).await;
    api.answer(Route::Timeline, result)
}

async fn count(api: &Api, head: &Parts) -> Result<Response, Problem> {
    let request = timeline_request(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    let timeline = api.service()?.timeline(&request).await?;
    let buckets = timeline.buckets.iter();
    let buckets = buckets.map(|b| Bucket { start: Time(b.start), count: b.count }).collect();
    Ok(json(StatusCode::OK, &Timeline { buckets, complete: timeline.complete }))
}

pub(super) fn timeline_request(uri: &Uri) -> Result<TimelineRequest, Problem> {
    let given: TimelineParameters = parameters(uri)?;
    let bucket_ms = match given.bucket.as_deref() {
        None => BUCKET_MS,
        Some(text) => {
            duration(&token(text)).map_err(|error| Problem::invalid(format!("bucket: {error}")))?
        }
    };
    Ok(TimelineRequest {
        topic: given.topic.as_deref().map(TopicName::readable).transpose()?,
        from: moment("from", given.from.as_deref())?,
        to: moment("to", given.to.as_deref())?,
        bucket_ms,
    })
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CancelRequest<'a> {
    #[serde(borrow)]
    topic: Cow<'a, str>,
    key: Option<String>,
    tag: Option<String>,
    #[serde(borrow)]
    from: Option<&'a RawValue>,
    #[serde(borrow)]
    to: Option<&'a RawValue>,
    #[serde(default)]
    dry_run: bool,
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled<'a> {
    matched: u64,
    cancelled: u64,
    already_delivered: u64,
    next_cursor: Option<&'a str>,
}

pub(super) async fn cancel(State(api): State<Api>, request: Request) -> Response {
    let result = call_off(&api, request).await;
    api.answer(Route::CancelScheduled, result)
}

async fn call_off(api: &Api, request: Request) -> Result<Response, Problem> {
    let held = control(api, request).await?;
    let CancelAsked { query, cursor, when_matched } = cancel_asked(&held.bytes)?;
    let done = api.service()?.cancel_scheduled(&query, cursor, when_matched).await?;
    Ok(json(
        StatusCode::OK,
        &Cancelled {
            matched: done.matched,
            cancelled: done.cancelled,
            already_delivered: done.already_delivered,
            next_cursor: done.next_cursor.as_deref(),
        },
    ))
}

/// Which messages are to be cancelled, from where on, and whether they are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CancelAsked {
    pub(super) query: ScheduledQuery,
    pub(super) cursor: Option<String>,
    pub(super) when_matched: WhenMatched,
}

pub(super) fn cancel_asked(json: &[u8]) -> Result<CancelAsked, Problem> {
    let given: CancelRequest<'_> = parse(json)?;
    let topic = TopicName::writable(&given.topic);
    let raw = |name, raw: Option<&RawValue>| match raw {
        None => Ok(None),
        Some(raw) => moment_of(name, &raw.into()).map(Some),
    };
    let query = ScheduledQuery {
        topic: Some(topic.map_err(|error| Problem::from(error).at("/topic"))?),
        key: label(Label::Key, given.key).map_err(|problem| problem.at("/key"))?,
        tag: label(Label::Tag, given.tag).map_err(|problem| problem.at("/tag"))?,
        from: raw("from", given.from).map_err(|problem| problem.at("/from"))?,
        to: raw("to", given.to).map_err(|problem| problem.at("/to"))?,
    };
    let when_matched = if given.dry_run { WhenMatched::Count } else { WhenMatched::Cancel };
    Ok(CancelAsked { query, cursor: given.cursor, when_matched })
}

fn label(label: Label, text: Option<String>) -> Result<Option<String>, Problem> {
    if let Some(text) = &text {
        check_label(label, text)?;
    }
    Ok(text)
}

fn moment(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    text.map(|text| moment_of(name, &token(text))).transpose()
}

fn moment_of(name: &str, token: &Token<'_>) -> Result<Timestamp, Problem> {
    time(token).map_err(|error| Problem::invalid(format!("{name}: {error}")))
}

fn token(text: &str) -> Token<'_> {
    Token::Text(Cow::Borrowed(text))
}
