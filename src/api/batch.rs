//! `POST /v1/topics/{topic}/messages/batch`: many messages in one step, as JSON or one a line.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::body::{self, stored_too_large};
use super::dto::{Time, state};
use super::incoming::{Form, form};
use super::limits::{MAX_ATOMIC_BYTES, MAX_BATCH, MAX_BATCH_BYTES};
use super::members::object;
use super::problem::{Code, Problem, Written};
use super::query::parameters;
use super::{Api, Segment, idempotency, json, json_put, raw_put, segment};
use crate::message::{NewMessage, TopicName};
use crate::metrics::Route;
use crate::producer::{Atomic, Refusal, Request as Puts};
use crate::service::{Accepted, PutError};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(default)]
    atomic: bool,
}

/// NDJSON has no room for what is said of the whole, so that is a parameter.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    atomic: Option<bool>,
}

#[derive(Serialize)]
struct Results<'a> {
    results: Vec<ItemOut<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ItemOut<'a> {
    #[serde(rename_all = "camelCase")]
    Accepted {
        message_id: &'a str,
        state: &'static str,
        deliver_at: Time,
    },
    Refused {
        error: Written<'a>,
    },
}

/// A batch that was read: each message, or why it is none.
struct Read {
    messages: Vec<Result<NewMessage, Problem>>,
    atomic: Atomic,
}

pub(super) async fn put(State(api): State<Api>, topic: Segment, request: Request) -> Response {
    let result = accept(&api, topic, request).await;
    api.answer(Route::PutBatch, result)
}

async fn accept(api: &Api, topic: Segment, request: Request) -> Result<Response, Problem> {
    let topic = TopicName::writable(&segment(topic)?)?;
    let asked: Parameters = parameters(request.uri())?;
    let service = api.service()?;
    let (head, body) = request.into_parts();
    raw_put::refuse_headers(&head.headers)?;
    let limits = &api.shared.limits;
    let form = form(&head.headers);
    let held = body::read(body, limits.batch_request_bytes(), &api.shared.budget).await;
    let held = held.map_err(Problem::of_batch)?;
    let mut read = match form {
        Form::Json => read_json(&held.bytes, &head.headers, &asked)?,
        Form::NdJson => read_lines(&held.bytes, &head.headers, &asked),
        Form::Raw => {
            let detail = "a batch is application/json or application/x-ndjson";
            return Err(Problem::invalid(detail));
        }
    };
    check_count(read.messages.len())?;
    for message in &mut read.messages {
        if let Ok(stored) = message
            && stored.body.len() > limits.body_bytes
        {
            *message = Err(stored_too_large(stored.body.len(), limits.body_bytes));
        }
    }
    check_bytes(&read)?;
    if read.atomic == Atomic::Yes
        && let Some(index) = read.messages.iter().position(Result::is_err)
    {
        let problem = read.messages.swap_remove(index).expect_err("it was found to be one");
        return Err(problem.within(&format!("/messages/{index}")));
    }
    let bound = idempotency::bound(&head, &held.bytes)?;
    let items = read.messages.iter().map(|message| message.as_ref().ok().cloned());
    let puts = Puts { items: items.collect(), atomic: read.atomic, bound };
    let puts = service.put_all(&topic, puts).await.map_err(problem)?;
    let response = answer(&puts.items, read);
    Ok(idempotency::mark(response, puts.replayed))
}

fn answer(items: &[Result<Accepted, Refusal>], read: Read) -> Response {
    // What is wrong with a malformed item, the request says; with the others, the service.
    let outcomes = items.iter().zip(read.messages).map(|(item, message)| match (item, message) {
        (Ok(accepted), _) => Ok(accepted),
        (Err(_), Err(problem)) => Err(problem),
        (Err(refusal), Ok(_)) => Err(Problem::from(*refusal)),
    });
    let outcomes: Vec<Result<&Accepted, Problem>> = outcomes.collect();
    let results = outcomes.iter().map(|outcome| match outcome {
        Ok(accepted) => ItemOut::Accepted {
            message_id: &accepted.id,
            state: state(accepted.state),
            deliver_at: Time(accepted.deliver_at),
        },
        Err(problem) => ItemOut::Refused { error: problem.written() },
    });
    let status = match read.atomic {
        Atomic::Yes => StatusCode::CREATED,
        Atomic::No => StatusCode::OK,
    };
    json(status, &Results { results: results.collect() })
}

fn problem(error: PutError) -> Problem {
    match error {
        PutError::Refused { index, refusal } => {
            Problem::from(refusal).within(&format!("/messages/{index}"))
        }
        error => error.into(),
    }
}

fn read_json(json: &Bytes, headers: &HeaderMap, asked: &Parameters) -> Result<Read, Problem> {
    if json.is_empty() {
        return Err(Problem::invalid("the request has no body"));
    }
    if asked.atomic.is_some() {
        return Err(Problem::invalid("in JSON, atomic stands in the body"));
    }
    let batch: Batch<'_> = object(json)?;
    check_count(batch.messages.len())?;
    let read = |raw: &&RawValue| json_put::read(&json.slice_ref(raw.get().as_bytes()), headers);
    let messages = batch.messages.iter().map(read).collect();
    Ok(Read { messages, atomic: if batch.atomic { Atomic::Yes } else { Atomic::No } })
}

/// One message a line; empty lines are none.
fn read_lines(lines: &Bytes, headers: &HeaderMap, asked: &Parameters) -> Read {
    let messages = written_lines(lines).map(|line| json_put::read(&lines.slice_ref(line), headers));
    let messages = messages.collect();
    Read { messages, atomic: if asked.atomic == Some(true) { Atomic::Yes } else { Atomic::No } }
}

fn written_lines(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = lines.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    // One more than there may be is enough to refuse them all.
    lines.filter(|line| !line.is_empty()).take(MAX_BATCH + 1)
}

/// The messages as they stand in `bytes`, whatever the form. To be read one after the other: what all of a
/// batch cost together is bounded by how many there may be.
#[cfg(any(test, fuzzing))]
pub(super) fn items(bytes: &[u8]) -> Result<Vec<&[u8]>, Problem> {
    if let Ok(batch) = object::<Batch<'_>>(bytes) {
        check_count(batch.messages.len())?;
        return Ok(batch.messages.iter().map(|raw| raw.get().as_bytes()).collect());
    }
    let lines: Vec<_> = written_lines(bytes).collect();
    check_count(lines.len())?;
    Ok(lines)
}

#[cfg(any(test, fuzzing))]
pub(super) fn is_atomic(uri: &axum::http::Uri) -> Result<Option<bool>, Problem> {
    parameters::<Parameters>(uri).map(|asked| asked.atomic)
}

fn check_count(count: usize) -> Result<(), Problem> {
    match count {
        0 => Err(Problem::invalid("a batch has at least one message")),
        1..=MAX_BATCH => Ok(()),
        _ => {
            let detail = format!("a batch has at most {MAX_BATCH} messages");
            Err(Problem::new(Code::BatchTooLarge, detail))
        }
    }
}

fn check_bytes(read: &Read) -> Result<(), Problem> {
    let bytes: usize = read.messages.iter().flatten().map(|message| message.body.len()).sum();
    let limit = match read.atomic {
        Atomic::Yes => MAX_ATOMIC_BYTES,
        Atomic::No => MAX_BATCH_BYTES,
    };
    if bytes > limit {
        let detail = format!("the bodies of such a batch have at most {limit} bytes, not {bytes}");
        return Err(Problem::new(Code::BatchTooLarge, detail));
    }
    Ok(())
}
