//! Transactions: `POST /v1/topics/{topic}/transactions`, `/v1/transactions...`, and
//! `POST /v1/producer-groups/{group}/checks`.

use axum::extract::{Request, State};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::body::{self, stored_too_large};
use super::dto::{AttributesOut, BodyOut, Time};
use super::groups::{Waiting, control, how_many, no_body, parse};
use super::incoming::{Form, form};
use super::page::{self, Page};
use super::problem::Problem;
use super::query::{NoParameters, parameters};
use super::{Api, Segment, idempotency, json, json_put, messages, raw_put, segment};
use crate::message::{GroupName, TopicName};
use crate::metrics::Route;
use crate::service::{CheckView, Ended, TransactionQuery, TransactionState, TransactionView};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Prepared<'a> {
    transaction_id: &'a str,
    message_id: &'a str,
    state: &'static str,
}

pub(super) async fn prepare(State(api): State<Api>, topic: Segment, request: Request) -> Response {
    let result = accept(&api, topic, request).await;
    api.answer(Route::PrepareTransaction, result)
}

async fn accept(api: &Api, topic: Segment, request: Request) -> Result<Response, Problem> {
    let topic = TopicName::writable(&segment(topic)?)?;
    let NoParameters {} = parameters(request.uri())?;
    let service = api.service()?;
    let (head, body) = request.into_parts();
    if form(&head.headers) != Form::Json {
        return Err(Problem::invalid("a transaction is prepared in JSON: application/json"));
    }
    raw_put::refuse_headers(&head.headers)?;
    let limits = &api.shared.limits;
    let held = body::read(body, limits.json_put_bytes(), &api.shared.budget).await?;
    let targets = api.shared.outbound.private_targets();
    let (message, terms) = json_put::read_half(&held.bytes, &head.headers, targets)?;
    if message.body.len() > limits.body_bytes {
        return Err(stored_too_large(message.body.len(), limits.body_bytes));
    }
    let bound = idempotency::bound(&head, &held.bytes)?;
    let prepared = service.prepare(&topic, message, terms, bound).await?;
    let id = prepared.id.as_str();
    let state = state(TransactionState::Prepared);
    let answer = Prepared { transaction_id: id, message_id: id, state };
    let mut response = json(StatusCode::CREATED, &answer);
    response.headers_mut().insert(LOCATION, messages::location(id));
    Ok(idempotency::mark(response, prepared.replayed))
}

pub(super) const fn state(state: TransactionState) -> &'static str {
    match state {
        TransactionState::Prepared => "PREPARED",
        TransactionState::Committed => "COMMITTED",
        TransactionState::RolledBack => "ROLLED_BACK",
        TransactionState::Abandoned => "ABANDONED",
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StateOf<'a> {
    transaction_id: &'a str,
    state: &'static str,
}

pub(super) async fn commit(State(api): State<Api>, id: Segment, request: Request) -> Response {
    let result = end(&api, id, request, Ended::Committed).await;
    api.answer(Route::CommitTransaction, result)
}

pub(super) async fn roll_back(State(api): State<Api>, id: Segment, request: Request) -> Response {
    let result = end(&api, id, request, Ended::RolledBack).await;
    api.answer(Route::RollbackTransaction, result)
}

async fn end(api: &Api, id: Segment, request: Request, how: Ended) -> Result<Response, Problem> {
    let id = segment(id)?;
    no_body(api, request).await?;
    api.service()?.end_transaction(&id, how).await?;
    let ended = match how {
        Ended::Committed => TransactionState::Committed,
        Ended::RolledBack => TransactionState::RolledBack,
    };
    Ok(json(StatusCode::OK, &StateOf { transaction_id: &id, state: state(ended) }))
}

pub(super) async fn resume(State(api): State<Api>, id: Segment, request: Request) -> Response {
    let result = open_again(&api, id, request).await;
    api.answer(Route::ResumeTransaction, result)
}

async fn open_again(api: &Api, id: Segment, request: Request) -> Result<Response, Problem> {
    let id = segment(id)?;
    no_body(api, request).await?;
    api.service()?.resume_transaction(&id).await?;
    let state = state(TransactionState::Prepared);
    Ok(json(StatusCode::OK, &StateOf { transaction_id: &id, state }))
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Transaction<'a> {
    transaction_id: &'a str,
    message_id: &'a str,
    topic: &'a str,
    producer_group: &'a str,
    state: &'static str,
    prepared_at: Time,
    checks: u32,
    max_checks: u32,
    next_check_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abandoned_at: Option<Time>,
}

impl<'a> From<&'a TransactionView> for Transaction<'a> {
    fn from(view: &'a TransactionView) -> Self {
        Self {
            transaction_id: &view.id,
            message_id: &view.id,
            topic: &view.topic,
            producer_group: &view.producer_group,
            state: state(view.state),
            prepared_at: Time(view.prepared_at),
            checks: view.checks,
            max_checks: view.max_checks,
            next_check_at: view.next_check_at.map(Time),
            abandoned_at: view.abandoned_at.map(Time),
        }
    }
}

pub(super) async fn show(State(api): State<Api>, id: Segment, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = look_up(&api, id, &head).await;
    api.answer(Route::GetTransaction, result)
}

async fn look_up(api: &Api, id: Segment, head: &Parts) -> Result<Response, Problem> {
    let id = segment(id)?;
    let NoParameters {} = parameters(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    let view = api.service()?.transaction(&id).await?;
    Ok(json(StatusCode::OK, &Transaction::from(&view)))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListParameters {
    state: Option<String>,
    topic: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

pub(super) async fn list(State(api): State<Api>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let result = pages(&api, &head).await;
    api.answer(Route::ListTransactions, result)
}

async fn pages(api: &Api, head: &Parts) -> Result<Response, Problem> {
    let query = list_asked(&head.uri)?;
    raw_put::refuse_headers(&head.headers)?;
    api.shared.answers.have_room()?;
    let found = api.service()?.transactions(query).await?;
    let items = found.items.iter().map(Transaction::from).collect();
    Ok(json(StatusCode::OK, &Page { items, next_cursor: found.cursor }))
}

pub(super) fn list_asked(uri: &Uri) -> Result<TransactionQuery, Problem> {
    let asked: ListParameters = parameters(uri)?;
    let topic = asked.topic.as_deref().map(TopicName::readable).transpose()?;
    let wanted = match asked.state.as_deref() {
        None => None,
        Some("PREPARED") => Some(TransactionState::Prepared),
        Some("COMMITTED") => Some(TransactionState::Committed),
        Some("ROLLED_BACK") => Some(TransactionState::RolledBack),
        Some("ABANDONED") => Some(TransactionState::Abandoned),
        Some(_) => {
            let detail = "state is PREPARED, COMMITTED, ROLLED_BACK or ABANDONED";
            return Err(Problem::invalid(detail));
        }
    };
    let limit = page::limit(asked.limit.as_deref())?;
    Ok(TransactionQuery { topic, state: wanted, limit, cursor: asked.cursor })
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChecksRequest<'a> {
    max: Option<u64>,
    #[serde(borrow)]
    wait: Option<&'a RawValue>,
}

#[derive(Debug, Serialize)]
struct Checks<'a> {
    checks: Vec<Check<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Check<'a> {
    transaction_id: &'a str,
    message_id: &'a str,
    topic: &'a str,
    #[serde(flatten)]
    attributes: AttributesOut<'a>,
    #[serde(flatten)]
    body: BodyOut<'a>,
    check: u32,
}

impl<'a> From<&'a CheckView> for Check<'a> {
    fn from(view: &'a CheckView) -> Self {
        Self {
            transaction_id: &view.id,
            message_id: &view.id,
            topic: &view.topic,
            attributes: (&view.attributes).into(),
            body: BodyOut::new(&view.attributes.content_type, &view.body),
            check: view.check,
        }
    }
}

/// A check as JSON: the same for a caller who asks for it and for a URL that is asked.
pub(crate) fn check_json(view: &CheckView) -> Bytes {
    let json = serde_json::to_vec(&Check::from(view)).expect("it has text for keys");
    json.into()
}

pub(super) async fn checks(State(api): State<Api>, group: Segment, request: Request) -> Response {
    let result = hand_out(&api, group, request).await;
    api.answer(Route::TakeChecks, result)
}

async fn hand_out(api: &Api, group: Segment, request: Request) -> Result<Response, Problem> {
    let group = GroupName::writable(&segment(group)?)?;
    let held = control(api, request).await?;
    let (max, wait_ms) = checks_request(&held.bytes)?;
    drop(held);
    api.shared.answers.have_room()?;
    let service = api.service()?;
    let _waiting = if wait_ms > 0 { Some(Waiting::new(api)?) } else { None };
    let views = service.checks(&group, max, wait_ms).await?;
    let checks = views.iter().map(Check::from).collect();
    Ok(json(StatusCode::OK, &Checks { checks }))
}

/// How many checks, and how long the answer may wait for one, in milliseconds.
pub(super) fn checks_request(json: &[u8]) -> Result<(usize, u64), Problem> {
    let ChecksRequest { max, wait } = parse(json)?;
    how_many(max, wait)
}
