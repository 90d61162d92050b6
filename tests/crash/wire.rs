//! Requests of this test and their answers, as the API writes them.

use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use horolog::client::{Answer, Client, ClientError};
use http_body_util::Full;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use timerlog::disk::sim::Random;

use crate::ledger::{self, Accepted, Asked, Cancelled, Outcome, Place};

/// How a number's message is put, and so how it comes out.
enum Form {
    Binary,
    Text,
    Json,
}

fn form(number: u64) -> Form {
    match number % 3 {
        0 => Form::Binary,
        1 => Form::Text,
        _ => Form::Json,
    }
}

/// The body of message `number`: always the same bytes, mostly short, now and then long.
pub(crate) fn body(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    let longest = if random.once_in(40) { 60_000 } else { 2500 };
    let length = random.below(longest);
    let letters = |random: &mut Random| {
        let letter = |_| b'a' + u8::try_from(random.below(26)).expect("below 26");
        (0..length).map(letter).collect::<Vec<u8>>()
    };
    match form(number) {
        Form::Binary => (0..length).map(|_| random.next().to_le_bytes()[0]).collect(),
        Form::Text => letters(&mut random),
        Form::Json => [b"{ \"fill\" : \"", letters(&mut random).as_slice(), b"\" }"].concat(),
    }
}

/// Of every other message; an ordered group gets those of one message group in order.
pub(crate) fn message_group(number: u64) -> Option<String> {
    number.is_multiple_of(2).then(|| format!("message group {}", number / 2 % 7))
}

/// Puts message `number`; its key is the number.
pub(crate) async fn put(
    client: &mut Client,
    topic: &str,
    number: u64,
    asked: Asked,
) -> Outcome<Accepted> {
    let request = Request::post(format!("/v1/topics/{topic}/messages"));
    let request = match form(number) {
        Form::Json => {
            let moment = match asked {
                Asked::Now => String::new(),
                Asked::At(moment) => format!(", \"deliverAt\": {moment}"),
                Asked::After(delay) => format!(", \"delay\": {delay}"),
                Asked::Level(level) => format!(", \"delayLevel\": {level}"),
            };
            let order = message_group(number);
            let order = order.map_or(String::new(), |of| format!(", \"messageGroup\": \"{of}\""));
            let body = String::from_utf8(body(number)).expect("JSON is text");
            let json = format!("{{\"keys\": [\"{number}\"], \"body\": {body}{moment}{order}}}");
            request.header(CONTENT_TYPE, "application/json").body(Full::from(json))
        }
        raw => {
            let content_type = match raw {
                Form::Text => "text/plain",
                _ => "application/octet-stream",
            };
            let request = request.header(CONTENT_TYPE, content_type).header("horolog-key", number);
            let request = match asked {
                Asked::Now => request,
                Asked::At(moment) => request.header("horolog-deliver-at", moment),
                Asked::After(delay) => request.header("horolog-delay", delay),
                Asked::Level(level) => request.header("horolog-delay-level", level),
            };
            let request = match message_group(number) {
                Some(of) => request.header("horolog-message-group", of),
                None => request,
            };
            request.body(Full::from(body(number)))
        }
    };
    let request = request.expect("what this test sends is well-formed");
    let answer: Outcome<PutAnswer> = outcome(client.send(request).await);
    map(answer, |answer| Accepted {
        id: answer.message_id,
        deadline: match answer.state.as_str() {
            "SCHEDULED" => Some(millis(answer.deliver_at)),
            "READY" => None,
            state => panic!("message {number} was accepted as {state}"),
        },
    })
}

pub(crate) async fn cancel(client: &mut Client, id: &str) -> Outcome<Cancelled> {
    let answer = client.call(Method::DELETE, &format!("/v1/messages/{id}")).await;
    if let Ok(answer) = &answer
        && answer.status == StatusCode::CONFLICT
    {
        assert_eq!(code(answer), "ALREADY_DELIVERED");
        return Outcome::Ok(Cancelled::AlreadyDelivered);
    }
    map(outcome::<State>(answer), |answer| {
        assert_eq!(answer.state, "CANCELLED");
        Cancelled::Cancelled
    })
}

/// The state that the server says a message is in.
pub(crate) async fn state(client: &mut Client, id: &str) -> String {
    let answer = client.call(Method::GET, &format!("/v1/messages/{id}")).await;
    match outcome::<State>(answer) {
        Outcome::Ok(State { state }) => state,
        Outcome::Refused(why) => why,
        Outcome::Unknown => panic!("no answer about {id}"),
    }
}

/// What a receive asks for, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub topic: &'a str,
    pub max: u64,
    pub wait: u64,
    pub invisible_for: u64,
}

pub(crate) async fn receive(
    client: &mut Client,
    group: &str,
    wanted: Wanted<'_>,
) -> Outcome<Vec<Received>> {
    let Wanted { topic, max, wait, invisible_for } = wanted;
    let asked = serde_json::json!({
        "topic": topic, "max": max, "wait": wait, "invisibleFor": invisible_for,
    });
    let answer = client.post(&format!("/v1/groups/{group}/receive"), &asked).await;
    map(outcome::<Messages>(answer), |answer| answer.messages)
}

/// One outcome a handle.
pub(crate) async fn ack(client: &mut Client, group: &str, handles: &[&str]) -> Vec<Outcome<()>> {
    let asked = serde_json::json!({ "receiptHandles": handles });
    let answer = client.post(&format!("/v1/groups/{group}/ack"), &asked).await;
    each(handles, outcome(answer))
}

/// Gives messages back, for `delay` milliseconds; one outcome a handle.
pub(crate) async fn nack(
    client: &mut Client,
    group: &str,
    handles: &[&str],
    delay: u64,
) -> Vec<Outcome<()>> {
    let asked = serde_json::json!({ "receiptHandles": handles, "delay": delay });
    let answer = client.post(&format!("/v1/groups/{group}/nack"), &asked).await;
    each(handles, outcome(answer))
}

fn each(handles: &[&str], answer: Outcome<Acks>) -> Vec<Outcome<()>> {
    match answer {
        Outcome::Ok(Acks { results }) => {
            assert_eq!(results.len(), handles.len(), "one result a handle");
            let one = |ack: AckAnswer| match ack.status.as_str() {
                "ok" => Outcome::Ok(()),
                _ => Outcome::Refused(ack.status),
            };
            results.into_iter().map(one).collect()
        }
        Outcome::Refused(why) => vec![Outcome::Refused(why); handles.len()],
        Outcome::Unknown => vec![Outcome::Unknown; handles.len()],
    }
}

pub(crate) async fn extend(
    client: &mut Client,
    group: &str,
    handle: &str,
    invisible_for: u64,
) -> Outcome<serde::de::IgnoredAny> {
    let asked = serde_json::json!({ "receiptHandle": handle, "invisibleFor": invisible_for });
    outcome(client.post(&format!("/v1/groups/{group}/extend"), &asked).await)
}

/// Makes the group what it is to be.
pub(crate) async fn set_group(client: &mut Client, group: &str, settings: serde_json::Value) {
    let request = Request::put(format!("/v1/groups/{group}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::from(settings.to_string()))
        .expect("what this test sends is well-formed");
    let answer = client.send(request).await.expect("the server is up");
    assert!(answer.status.is_success(), "{group} is set to {settings}: {answer:?}");
}

/// Makes all dead letters of the group readable again, and answers how many.
pub(crate) async fn redrive(client: &mut Client, group: &str) -> Outcome<u64> {
    let asked = serde_json::json!({});
    let answer = client.post(&format!("/v1/groups/{group}/dlq/redrive"), &asked).await;
    map(outcome(answer), |Redriven { redriven }| redriven)
}

/// What the group is behind, and its dead letters, by what the server says of all topics together.
pub(crate) async fn behind(client: &mut Client, group: &str) -> (u64, u64) {
    let answer = client.call(Method::GET, &format!("/v1/groups/{group}")).await;
    let Outcome::Ok(Group { topics }) = outcome(answer) else { panic!("{group} is not there") };
    topics.iter().fold((0, 0), |(lag, dead), topic| (lag + topic.lag, dead + topic.dead_letters))
}

/// How many messages the server says are waiting for their moment.
pub(crate) async fn pending(client: &mut Client) -> u64 {
    figure(client, "horolog_messages_pending").await
}

/// What the server counts under this name.
pub(crate) async fn figure(client: &mut Client, name: &str) -> u64 {
    let answer = client.call(Method::GET, "/metrics").await.expect("the server is up");
    let text = String::from_utf8(answer.body.to_vec()).expect("metrics are text");
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).expect("the figure is there, a whole number")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PutAnswer {
    message_id: String,
    state: String,
    deliver_at: jiff::Timestamp,
}

#[derive(Deserialize)]
struct Redriven {
    redriven: u64,
}

#[derive(Deserialize)]
struct Group {
    topics: Vec<Progress>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    lag: u64,
    dead_letters: u64,
}

#[derive(Deserialize)]
struct State {
    state: String,
}

#[derive(Deserialize)]
struct Messages {
    messages: Vec<Received>,
}

#[derive(Deserialize)]
struct Acks {
    results: Vec<AckAnswer>,
}

#[derive(Deserialize)]
struct AckAnswer {
    status: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Received {
    message_id: String,
    topic: String,
    queue_id: u16,
    queue_offset: u64,
    keys: Vec<String>,
    body: Option<Box<RawValue>>,
    body_text: Option<String>,
    body_base64: Option<String>,
    deliver_at: jiff::Timestamp,
    fired_at: Option<jiff::Timestamp>,
    pub attempt: u32,
    pub receipt_handle: String,
}

impl Received {
    pub(crate) fn number(&self) -> u64 {
        match self.keys.as_slice() {
            [key] => key.parse().unwrap_or_else(|_| panic!("nobody sent the key {key}")),
            keys => panic!("nobody sent the keys {keys:?}"),
        }
    }

    pub(crate) fn delivery(&self, group: &str, began: usize, at: u64) -> ledger::Delivery {
        let number = self.number();
        let bytes = match (&self.body, &self.body_text, &self.body_base64) {
            (Some(json), None, None) => Bytes::copy_from_slice(json.get().as_bytes()),
            (None, Some(text), None) => Bytes::copy_from_slice(text.as_bytes()),
            (None, None, Some(base64)) => STANDARD.decode(base64).expect("base64").into(),
            _ => panic!("message {number} came with no body, or with several"),
        };
        ledger::Delivery {
            group: group.to_owned(),
            began,
            received_at: at,
            number,
            id: self.message_id.clone(),
            place: Place {
                topic: self.topic.clone(),
                queue: self.queue_id,
                offset: self.queue_offset,
            },
            deliver_at: millis(self.deliver_at),
            fired_at: self.fired_at.map(millis),
            attempt: self.attempt,
            body: match bytes == body(number) {
                true => ledger::Bytes::AsSent,
                false => ledger::Bytes::Others,
            },
        }
    }
}

/// What an answer means to whoever asked.
fn outcome<T: DeserializeOwned>(answer: Result<Answer, ClientError>) -> Outcome<T> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error @ ClientError::Connect { .. }) => return Outcome::Refused(error.to_string()),
        Err(_) => return Outcome::Unknown,
    };
    match answer.status {
        status if status.is_success() => Outcome::Ok(answer.json().expect("as the API says")),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::INSUFFICIENT_STORAGE => {
            Outcome::Refused(code(&answer))
        }
        status if status.is_server_error() => Outcome::Unknown,
        _ => Outcome::Refused(code(&answer)),
    }
}

fn code(answer: &Answer) -> String {
    #[derive(Deserialize)]
    struct Problem {
        code: String,
    }
    let problem: Problem = serde_json::from_slice(&answer.body).expect("a refusal has a code");
    problem.code
}

fn map<T, U>(outcome: Outcome<T>, change: impl FnOnce(T) -> U) -> Outcome<U> {
    match outcome {
        Outcome::Ok(value) => Outcome::Ok(change(value)),
        Outcome::Refused(why) => Outcome::Refused(why),
        Outcome::Unknown => Outcome::Unknown,
    }
}

fn millis(time: jiff::Timestamp) -> u64 {
    u64::try_from(time.as_millisecond()).expect("no time is before 1970")
}
