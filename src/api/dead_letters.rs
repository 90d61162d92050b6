//! `GET /v1/groups/{group}/dlq` and `POST /v1/groups/{group}/dlq/redrive`.

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;

use super::dto::{DeadLetter, RedriveRequest, Redriven};
use super::groups::{control, parse};
use super::limits::MAX_HANDLES;
use super::page::{Page, limit};
use super::problem::{Code, Problem};
use super::query::parameters;
use super::{Api, Segment, json, raw_put, segment};
use crate::message::{GroupName, TopicName};
use crate::metrics::Route;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    limit: Option<String>,
    cursor: Option<String>,
}

pub(super) async fn list(State(api): State<Api>, group: Segment, request: Request) -> Response {
    let result = page(&api, group, request).await;
    api.answer(Route::ListDeadLetters, result)
}

async fn page(api: &Api, group: Segment, request: Request) -> Result<Response, Problem> {
    raw_put::refuse_headers(request.headers())?;
    let (max, cursor) = page_asked(request.uri())?;
    let group = GroupName::readable(&segment(group)?)?;
    api.shared.answers.have_room()?;
    let page = api.service()?.dead_letters(&group, cursor, max).await?;
    let items = page.letters.iter().map(DeadLetter::from).collect();
    Ok(json(StatusCode::OK, &Page { items, next_cursor: page.next_cursor }))
}

/// How many at most, and from where on.
pub(super) fn page_asked(uri: &Uri) -> Result<(usize, Option<String>), Problem> {
    let Parameters { limit: asked, cursor } = parameters(uri)?;
    Ok((limit(asked.as_deref())?, cursor))
}

pub(super) async fn redrive(State(api): State<Api>, group: Segment, request: Request) -> Response {
    let result = give_again(&api, group, request).await;
    api.answer(Route::RedriveDeadLetters, result)
}

async fn give_again(api: &Api, group: Segment, request: Request) -> Result<Response, Problem> {
    let group = GroupName::writable(&segment(group)?)?;
    let held = control(api, request).await?;
    let (ids, topic) = redrive_request(&held.bytes)?;
    drop(held);
    let redriven = api.service()?.redrive(&group, ids, topic).await?;
    Ok(json(StatusCode::OK, &Redriven { redriven }))
}

/// Which of the dead letters, and of which topic; what is not given is all.
pub(super) fn redrive_request(
    json: &[u8],
) -> Result<(Option<Vec<String>>, Option<TopicName>), Problem> {
    let RedriveRequest { ids, topic } = parse(json)?;
    if ids.as_ref().is_some_and(|ids| ids.len() > MAX_HANDLES) {
        let detail = format!("at most {MAX_HANDLES} ids at once");
        return Err(Problem::new(Code::BatchTooLarge, detail).at("/ids"));
    }
    let topic = topic.as_deref().map(TopicName::readable).transpose();
    let topic = topic.map_err(|error| Problem::from(error).at("/topic"))?;
    Ok((ids, topic))
}
