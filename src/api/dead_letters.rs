//! `GET /v1/groups/{group}/dlq` and `POST /v1/groups/{group}/dlq/redrive`.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::dto::{DeadLetter, RedriveRequest, Redriven};
use super::groups::{control, parse};
use super::limits::MAX_HANDLES;
use super::operating::plain;
use super::page::{Page, limit};
use super::problem::{Code, Problem};
use super::{Api, Segment, json, segment};
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
    let Parameters { limit: asked, cursor } = plain(&request)?;
    let group = GroupName::readable(&segment(group)?)?;
    let max = limit(asked.as_deref())?;
    api.shared.answers.have_room()?;
    let page = api.service()?.dead_letters(&group, cursor, max).await?;
    let items = page.letters.iter().map(DeadLetter::from).collect();
    Ok(json(StatusCode::OK, &Page { items, next_cursor: page.next_cursor }))
}

pub(super) async fn redrive(State(api): State<Api>, group: Segment, request: Request) -> Response {
    let result = give_again(&api, group, request).await;
    api.answer(Route::RedriveDeadLetters, result)
}

async fn give_again(api: &Api, group: Segment, request: Request) -> Result<Response, Problem> {
    let group = GroupName::writable(&segment(group)?)?;
    let held = control(api, request).await?;
    let RedriveRequest { ids, topic } = parse(&held)?;
    drop(held);
    if ids.as_ref().is_some_and(|ids| ids.len() > MAX_HANDLES) {
        let detail = format!("at most {MAX_HANDLES} ids at once");
        return Err(Problem::new(Code::BatchTooLarge, detail).at("/ids"));
    }
    let topic = topic.as_deref().map(TopicName::readable).transpose();
    let topic = topic.map_err(|error| Problem::from(error).at("/topic"))?;
    let redriven = api.service()?.redrive(&group, ids, topic).await?;
    Ok(json(StatusCode::OK, &Redriven { redriven }))
}
