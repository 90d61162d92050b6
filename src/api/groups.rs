//! `POST /v1/groups/{group}/receive`, `.../ack`, `.../nack` and `.../extend`.

use std::borrow::Cow;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::SemaphorePermit;

use super::body::{self, Held};
use super::dto::{self, Ack, Acks, Message, Messages, Time};
use super::limits::{MAX_CONTROL_BYTES, MAX_HANDLES, MAX_RECEIVE, MAX_WAIT_MS};
use super::members::object;
use super::moment::duration;
use super::problem::{Code, Problem};
use super::query::{NoParameters, parameters};
use super::{Api, Segment, group_settings, json, raw_put, segment};
use crate::message::{GroupName, MAX_DELAY_MS, TopicName};
use crate::metrics::Route;
use crate::service::{AckOutcome, ReceiveRequest};

pub(super) async fn receive(State(api): State<Api>, group: Segment, request: Request) -> Response {
    let result = hand_out(&api, group, request).await;
    api.answer(Route::Receive, result)
}

async fn hand_out(api: &Api, group: Segment, request: Request) -> Result<Response, Problem> {
    let group = GroupName::writable(&segment(group)?)?;
    let held = control(api, request).await?;
    let request = receive_request(&held.bytes)?;
    drop(held);
    api.shared.answers.have_room()?;
    let service = api.service()?;
    let _waiting = if request.wait_ms > 0 { Some(Waiting::new(api)?) } else { None };
    let received = service.receive(&group, request).await?;
    let messages = received.iter().map(Message::from).collect();
    Ok(json(StatusCode::OK, &Messages { messages }))
}

/// A receive that may wait, counted for as long as it does.
pub(super) struct Waiting<'a> {
    api: &'a Api,
    _permit: SemaphorePermit<'a>,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(api: &'a Api) -> Result<Self, Problem> {
        let permit = api.shared.waiting.try_acquire().map_err(|_| {
            Problem::new(Code::TooManyWaiting, "as many receives are waiting as may; try again")
        })?;
        api.shared.metrics.waits();
        Ok(Self { api, _permit: permit })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.api.shared.metrics.waits_no_more();
    }
}

pub(super) fn receive_request(json: &[u8]) -> Result<ReceiveRequest, Problem> {
    let written: dto::ReceiveRequest<'_> = parse(json)?;
    let topic =
        TopicName::readable(&written.topic).map_err(|error| Problem::from(error).at("/topic"))?;
    let (max, wait_ms) = how_many(written.max, written.wait)?;
    let invisible_for_ms = match written.invisible_for {
        None => None,
        Some(lease) => Some(bounded_duration(lease, MAX_DELAY_MS, "/invisibleFor")?),
    };
    let tags = written.tags.map(|tags| group_settings::tags(tags, "/tags")).transpose()?;
    Ok(ReceiveRequest { topic, max, wait_ms, invisible_for_ms, tags })
}

/// How many are asked for, and how long that may wait.
pub(super) fn how_many(max: Option<u64>, wait: Option<&RawValue>) -> Result<(usize, u64), Problem> {
    let max = max.map_or(Ok(1), usize::try_from).unwrap_or(usize::MAX);
    if !(1..=MAX_RECEIVE).contains(&max) {
        return Err(Problem::invalid(format!("max is 1 to {MAX_RECEIVE}")).at("/max"));
    }
    let wait_ms = match wait {
        None => 0,
        Some(wait) => bounded_duration(wait, MAX_WAIT_MS, "/wait")?,
    };
    Ok((max, wait_ms))
}

pub(super) fn bounded_duration(
    raw: &RawValue,
    limit_ms: u64,
    pointer: &str,
) -> Result<u64, Problem> {
    match duration(&raw.into()) {
        Ok(ms) if ms <= limit_ms => Ok(ms),
        Ok(ms) => {
            let detail = format!("at most {limit_ms} ms are allowed, not {ms}");
            Err(Problem::invalid(detail).at(pointer))
        }
        Err(error) => Err(Problem::invalid(error.to_string()).at(pointer)),
    }
}

pub(super) async fn ack(State(api): State<Api>, group: Segment, request: Request) -> Response {
    let result = acknowledge(&api, group, request).await;
    api.answer(Route::Ack, result)
}

async fn acknowledge(api: &Api, group: Segment, request: Request) -> Result<Response, Problem> {
    let group = GroupName::writable(&segment(group)?)?;
    let held = control(api, request).await?;
    let handles = ack_request(&held.bytes)?;
    let outcomes = api.service()?.ack(&group, &handles).await?;
    Ok(outcomes_of(&handles, outcomes))
}

pub(super) fn ack_request(json: &[u8]) -> Result<Vec<String>, Problem> {
    let handles = parse::<dto::AckRequest>(json)?.receipt_handles;
    check_count(&handles)?;
    Ok(handles)
}

fn check_count(handles: &[String]) -> Result<(), Problem> {
    if handles.len() > MAX_HANDLES {
        let detail = format!("at most {MAX_HANDLES} receipt handles at once");
        return Err(Problem::new(Code::BatchTooLarge, detail).at("/receiptHandles"));
    }
    Ok(())
}

fn outcomes_of(handles: &[String], outcomes: Vec<AckOutcome>) -> Response {
    let results = handles
        .iter()
        .zip(outcomes)
        .map(|(receipt_handle, outcome)| Ack { receipt_handle, status: status(outcome) })
        .collect();
    json(StatusCode::OK, &Acks { results })
}

pub(super) async fn nack(State(api): State<Api>, group: Segment, request: Request) -> Response {
    let result = give_back(&api, group, request).await;
    api.answer(Route::Nack, result)
}

async fn give_back(api: &Api, group: Segment, request: Request) -> Result<Response, Problem> {
    let group = GroupName::writable(&segment(group)?)?;
    let held = control(api, request).await?;
    let (handles, delay_ms) = nack_request(&held.bytes)?;
    let outcomes = api.service()?.nack(&group, handles.clone(), delay_ms).await?;
    Ok(outcomes_of(&handles, outcomes))
}

/// The handles, and the delay in milliseconds if one is given.
pub(super) fn nack_request(json: &[u8]) -> Result<(Vec<String>, Option<u64>), Problem> {
    let written: dto::NackRequest<'_> = parse(json)?;
    check_count(&written.receipt_handles)?;
    let delay = written.delay.map(|delay| bounded_duration(delay, MAX_DELAY_MS, "/delay"));
    Ok((written.receipt_handles, delay.transpose()?))
}

const fn status(outcome: AckOutcome) -> &'static str {
    match outcome {
        AckOutcome::Ok => "ok",
        AckOutcome::InvalidReceiptHandle => Code::InvalidReceiptHandle.as_str(),
    }
}

pub(super) async fn extend(State(api): State<Api>, group: Segment, request: Request) -> Response {
    let result = prolong(&api, group, request).await;
    api.answer(Route::Extend, result)
}

async fn prolong(api: &Api, group: Segment, request: Request) -> Result<Response, Problem> {
    let group = GroupName::writable(&segment(group)?)?;
    let held = control(api, request).await?;
    let (handle, lease_ms) = extend_request(&held.bytes)?;
    let extended = api.service()?.extend(&group, &handle, lease_ms).await?;
    let invisible_until = Time(extended.invisible_until);
    Ok(json(StatusCode::OK, &dto::Extended { receipt_handle: &handle, invisible_until }))
}

/// The handle, and how long its lease is to last from now on, in milliseconds.
pub(super) fn extend_request(json: &[u8]) -> Result<(Cow<'_, str>, u64), Problem> {
    let written: dto::ExtendRequest<'_> = parse(json)?;
    let lease_ms = bounded_duration(written.invisible_for, MAX_DELAY_MS, "/invisibleFor")?;
    Ok((written.receipt_handle, lease_ms))
}

/// Reads a request whose body is a small piece of JSON, whatever content type it names.
pub(super) async fn control(api: &Api, request: Request) -> Result<Held, Problem> {
    let NoParameters {} = parameters(request.uri())?;
    raw_put::refuse_headers(request.headers())?;
    body::read(request.into_body(), MAX_CONTROL_BYTES, &api.shared.budget).await
}

/// The same of a request that takes none.
pub(super) async fn no_body(api: &Api, request: Request) -> Result<(), Problem> {
    let held = control(api, request).await?;
    if held.bytes.is_empty() { Ok(()) } else { Err(Problem::invalid("this request takes no body")) }
}

pub(super) fn parse<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    if json.is_empty() {
        return Err(Problem::invalid("the request has no body"));
    }
    object(json)
}
