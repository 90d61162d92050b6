//! Changes of mind: `PATCH` and `DELETE /v1/messages/{id}`, `POST /v1/messages/{id}/deliver`.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::dto::{Cancelled, Delivered, Rescheduled, Time, state};
use super::groups::{control, no_body, parse};
use super::json_put::given;
use super::moment::{Asked, moment};
use super::problem::Problem;
use super::query::{NoParameters, parameters};
use super::{Api, Segment, json, raw_put, segment};
use crate::message::{Moment, State as MessageState};
use crate::metrics::Route;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Reschedule<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    deliver_at: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    delay: Option<&'a RawValue>,
}

pub(super) async fn reschedule(State(api): State<Api>, id: Segment, request: Request) -> Response {
    let result = move_to(&api, id, request).await;
    api.answer(Route::RescheduleMessage, result)
}

async fn move_to(api: &Api, id: Segment, request: Request) -> Result<Response, Problem> {
    let id = segment(id)?;
    let held = control(api, request).await?;
    let moment = other_moment(&held.bytes)?;
    let deliver_at = api.service()?.reschedule(&id, moment).await?;
    let rescheduled = Rescheduled { message_id: &id, deliver_at: Time(deliver_at) };
    Ok(json(StatusCode::OK, &rescheduled))
}

/// The moment that a message is to be moved to.
pub(super) fn other_moment(json: &[u8]) -> Result<Moment, Problem> {
    let asked: Reschedule<'_> = parse(json)?;
    let asked = Asked {
        deliver_at: asked.deliver_at.map(Into::into),
        delay: asked.delay.map(Into::into),
        delay_level: None,
    };
    match moment(&asked)? {
        Moment::Now => Err(Problem::invalid("one of deliverAt and delay is needed")),
        moment => Ok(moment),
    }
}

pub(super) async fn fire(State(api): State<Api>, id: Segment, request: Request) -> Response {
    let result = deliver(&api, id, request).await;
    api.answer(Route::DeliverMessage, result)
}

async fn deliver(api: &Api, id: Segment, request: Request) -> Result<Response, Problem> {
    let id = segment(id)?;
    no_body(api, request).await?;
    let fired_at = api.service()?.fire_now(&id).await?;
    let state = state(MessageState::Ready);
    let delivered = Delivered { message_id: &id, state, fired_at: Time(fired_at) };
    Ok(json(StatusCode::OK, &delivered))
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
