//! `/v1/topics` and `/v1/topics/{topic}`: what there is, made, set, deleted.

use std::borrow::Cow;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::groups::{control, parse};
use super::limits::MAX_QUEUES;
use super::moment::duration;
use super::page::{Page, PageParameters, cursor};
use super::problem::Problem;
use super::query::{NoParameters, parameters};
use super::{Api, Segment, json, raw_put, segment};
use crate::message::{TopicName, TopicType};
use crate::metrics::Route;
use crate::service::TopicView;
use crate::store::{Force, TopicChange};

/// The longest retention that a topic may ask for: 400 days, in milliseconds.
const MAX_RETENTION_MS: u64 = 400 * 24 * 60 * 60 * 1000;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted<'a> {
    #[serde(borrow)]
    r#type: Option<Cow<'a, str>>,
    queues: Option<u64>,
    #[serde(borrow)]
    retention: Option<&'a RawValue>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Topic<'a> {
    topic: &'a str,
    r#type: &'static str,
    /// In milliseconds; `null` is the server's own.
    retention: Option<u64>,
    pending: u64,
    ready: u64,
    queues: Vec<Queue>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Queue {
    queue_id: usize,
    first_offset: u64,
    next_offset: u64,
}

impl<'a> From<&'a TopicView> for Topic<'a> {
    fn from(view: &'a TopicView) -> Self {
        let queues = view.queues.iter().enumerate();
        let queues = queues.map(|(queue_id, &(first_offset, next_offset))| Queue {
            queue_id,
            first_offset,
            next_offset,
        });
        Self {
            topic: &view.name,
            r#type: type_name(view.settings.of),
            retention: view.settings.retention_ms,
            pending: view.pending,
            ready: view.queues.iter().map(|(first, next)| next - first).sum(),
            queues: queues.collect(),
        }
    }
}

pub(super) const fn type_name(of: TopicType) -> &'static str {
    match of {
        TopicType::Mixed => "MIXED",
        TopicType::Normal => "NORMAL",
        TopicType::Delay => "DELAY",
        TopicType::Fifo => "FIFO",
        TopicType::Transaction => "TRANSACTION",
    }
}

pub(super) async fn set(State(api): State<Api>, topic: Segment, request: Request) -> Response {
    let result = make(&api, topic, request).await;
    api.answer(Route::SetTopic, result)
}

async fn make(api: &Api, topic: Segment, request: Request) -> Result<Response, Problem> {
    let topic = TopicName::writable(&segment(topic)?)?;
    let held = control(api, request).await?;
    let wanted = change(&held.bytes)?;
    let (view, made) = api.service()?.set_topic(&topic, wanted).await?;
    let status = if made { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &Topic::from(&view)))
}

pub(super) fn change(json: &[u8]) -> Result<TopicChange, Problem> {
    let wanted: Wanted<'_> = parse(json)?;
    let of = wanted.r#type.as_deref().map(type_of).transpose()?;
    let queues = wanted.queues.map(|queues| match u16::try_from(queues) {
        Ok(queues @ 1..=MAX_QUEUES) => Ok(queues),
        _ => {
            let detail = format!("a topic has 1 to {MAX_QUEUES} queues, not {queues}");
            Err(Problem::invalid(detail).at("/queues"))
        }
    });
    let retention = wanted.retention.map(|raw| {
        let bad =
            |detail: String| Problem::invalid(format!("retention: {detail}")).at("/retention");
        match duration(&raw.into()) {
            Ok(ms @ 1..=MAX_RETENTION_MS) => Ok(ms),
            Ok(_) => Err(bad("it is more than nothing and at most 400 days".to_owned())),
            Err(error) => Err(bad(error.to_string())),
        }
    });
    Ok(TopicChange { of, queues: queues.transpose()?, retention_ms: retention.transpose()? })
}

fn type_of(name: &str) -> Result<TopicType, Problem> {
    TopicType::ALL.into_iter().find(|&of| type_name(of) == name).ok_or_else(|| {
        let detail =
            format!("a topic is of type NORMAL, DELAY, FIFO, TRANSACTION or MIXED, not {name:?}");
        Problem::invalid(detail).at("/type")
    })
}

pub(super) async fn list(State(api): State<Api>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = all(&api, &head);
    api.answer(Route::ListTopics, result)
}

fn all(api: &Api, head: &Parts) -> Result<Response, Problem> {
    let parameters: PageParameters = parameters(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    let (limit, after) = (parameters.limit()?, parameters.after()?);
    let mut topics = api.service()?.topics()?;
    topics.retain(|topic| after.as_ref().is_none_or(|after| topic.name > *after));
    let more = topics.len() > limit;
    topics.truncate(limit);
    let page = Page {
        items: topics.iter().map(Topic::from).collect(),
        next_cursor: topics.last().filter(|_| more).map(|last| cursor(&last.name)),
    };
    Ok(json(StatusCode::OK, &page))
}

pub(super) async fn show(State(api): State<Api>, topic: Segment, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = look_up(&api, topic, &head);
    api.answer(Route::GetTopic, result)
}

fn look_up(api: &Api, topic: Segment, head: &Parts) -> Result<Response, Problem> {
    let topic = TopicName::readable(&segment(topic)?)?;
    let NoParameters {} = parameters(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    let view = api.service()?.topic(&topic)?;
    Ok(json(StatusCode::OK, &Topic::from(&view)))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteParameters {
    #[serde(default)]
    force: bool,
}

pub(super) async fn delete(State(api): State<Api>, topic: Segment, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = remove(&api, topic, &head).await;
    api.answer(Route::DeleteTopic, result)
}

async fn remove(api: &Api, topic: Segment, head: &Parts) -> Result<Response, Problem> {
    let topic = TopicName::writable(&segment(topic)?)?;
    let force = force(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    api.service()?.delete_topic(&topic, force).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

pub(super) fn force(uri: &Uri) -> Result<Force, Problem> {
    let parameters: DeleteParameters = parameters(uri)?;
    Ok(if parameters.force { Force::Yes } else { Force::No })
}
