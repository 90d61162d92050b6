//! `POST /v1/groups/{group}/offsets/reset`.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;

use super::groups::{control, parse};
use super::members::{Member, Members};
use super::moment::{Token, time};
use super::problem::Problem;
use super::{Api, Segment, json, segment};
use crate::consumer::ResetTo;
use crate::message::{GroupName, TopicName};
use crate::metrics::Route;

pub(super) async fn reset(State(api): State<Api>, group: Segment, request: Request) -> Response {
    let result = move_to(&api, group, request).await;
    api.answer(Route::ResetOffsets, result)
}

async fn move_to(api: &Api, group: Segment, request: Request) -> Result<Response, Problem> {
    let group = GroupName::writable(&segment(group)?)?;
    let held = control(api, request).await?;
    let (topic, to) = asked(&held.bytes)?;
    drop(held);
    let stands = api.service()?.reset_offsets(&group, &topic, to).await?;
    let queues = (0..).zip(stands).map(|(queue_id, offset)| Queue { queue_id, offset });
    Ok(json(StatusCode::OK, &Reset { topic: topic.as_str(), queues: queues.collect() }))
}

/// Of which topic, and where to.
pub(super) fn asked(json: &[u8]) -> Result<(TopicName, ResetTo), Problem> {
    let written: Members<'_> = parse(json)?;
    let (mut topic, mut to) = (None, None);
    for member in written.at("")? {
        match &*member.name {
            "topic" => {
                let name = TopicName::readable(&member.read::<String>()?);
                topic = Some(name.map_err(|error| Problem::from(error).at(&member.pointer))?);
            }
            "to" => to = Some(place(&member)?),
            _ => return Err(member.unknown()),
        }
    }
    let missing = |what| Problem::invalid(format!("{what} is missing")).at(&format!("/{what}"));
    Ok((topic.ok_or_else(|| missing("topic"))?, to.ok_or_else(|| missing("to"))?))
}

fn place(member: &Member<'_>) -> Result<ResetTo, Problem> {
    if member.value.get().starts_with('{') {
        return offsets(member.value, &member.pointer).map(ResetTo::Queues);
    }
    let token = Token::from(member.value);
    match &token {
        Token::Text(text) if text == "earliest" => return Ok(ResetTo::Earliest),
        Token::Text(text) if text == "latest" => return Ok(ResetTo::Latest),
        _ => {}
    }
    let detail = |error| format!("to is earliest, latest, a time or an offset by queue: {error}");
    time(&token).map(ResetTo::Time).map_err(|error| member.refuse(detail(error)))
}

fn offsets(value: &RawValue, pointer: &str) -> Result<BTreeMap<u16, u64>, Problem> {
    let mut offsets = BTreeMap::new();
    for queue in Members::of(value, pointer)? {
        // One spelling for each queue, so that none is given twice.
        let id = queue.name.parse::<u16>().ok().filter(|id| id.to_string() == queue.name);
        let id = id.ok_or_else(|| queue.refuse("a queue is named by its number"))?;
        let offset = queue.read().map_err(|_| queue.refuse("an offset is a whole number"))?;
        offsets.insert(id, offset);
    }
    match offsets.is_empty() {
        true => Err(Problem::invalid("no queue is named").at(pointer)),
        false => Ok(offsets),
    }
}

/// Where the group now stands, in all queues of the topic.
#[derive(Debug, Serialize)]
struct Reset<'a> {
    topic: &'a str,
    queues: Vec<Queue>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Queue {
    queue_id: u16,
    offset: u64,
}
