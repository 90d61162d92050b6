//! Only the log and the key are the truth: what is looked up by key (timers, moves, idempotency keys, the
//! caller's keys) is found again when everything else is gone.

use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request};
use bytes::Bytes;
use horolog::client::{Answer, Client};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::run::Run;
use crate::scratch::remove_derived;

const TOPIC: &str = "/v1/topics/orders";

async fn send(
    client: &mut Client,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let mut request =
        Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::from(body)).expect("the request is well formed");
    let answer = client.send(request).await.expect("the server answers");
    assert!(answer.status.is_success(), "{path}: {answer:?}");
    answer
}

async fn value(client: &mut Client, method: Method, path: &str, body: Value) -> Value {
    send(client, method, path, &[], &body).await.json().expect("success")
}

fn id(value: &Value) -> String {
    value["messageId"].as_str().expect("an id is text").to_owned()
}

/// Everything that can be asked about what the test has made.
async fn all_answers(client: &mut Client, ids: &[String]) -> Vec<Value> {
    let mut paths: Vec<_> = ids.iter().map(|id| format!("/v1/messages/{id}?body=true")).collect();
    paths.push(format!("{TOPIC}/messages?key=k&limit=2"));
    paths.push(format!("{TOPIC}/messages?key=k"));
    paths.push(format!("{TOPIC}/timers/t"));
    paths.push(format!("{TOPIC}/timers/gone"));
    paths.push("/v1/topics/typed".to_owned());
    let mut answers = Vec::new();
    for path in paths {
        answers.push(value(client, Method::GET, &path, Value::Null).await);
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_found_by_a_key_is_found_when_only_the_log_is_left() {
    let mut run = Run::new(0, &[]);
    let life = run.start().await;
    let mut client = Client::new(life.address);
    let messages = format!("{TOPIC}/messages");
    let timer = format!("{TOPIC}/timers/t");
    let hour = json!({"bodyText": "x", "delay": "1h", "keys": ["k"]});
    let typed = json!({"type": "DELAY", "queues": 3, "retention": "7d"});
    value(&mut client, Method::PUT, "/v1/topics/typed", typed).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(id(&value(&mut client, Method::POST, &messages, hour.clone()).await));
    }
    let path = |place: usize| format!("/v1/messages/{}", ids[place]);
    for delay in 1..=50 {
        let moved = json!({"delay": format!("{delay}h")});
        value(&mut client, Method::PATCH, &path(0), moved).await;
    }
    value(&mut client, Method::POST, &format!("{}/deliver", path(1)), Value::Null).await;
    value(&mut client, Method::PATCH, &path(2), json!({"delay": "2h"})).await;
    value(&mut client, Method::POST, &format!("{}/deliver", path(2)), Value::Null).await;
    value(&mut client, Method::PATCH, &path(3), json!({"delay": "2h"})).await;
    value(&mut client, Method::DELETE, &path(3), Value::Null).await;
    for _ in 0..3 {
        ids.push(id(&value(&mut client, Method::PUT, &timer, hour.clone()).await));
    }
    let gone = format!("{TOPIC}/timers/gone");
    ids.push(id(&value(&mut client, Method::PUT, &gone, hour.clone()).await));
    value(&mut client, Method::DELETE, &gone, Value::Null).await;
    let once = [("idempotency-key", "once")];
    let first = send(&mut client, Method::POST, &messages, &once, &hour).await;
    ids.push(id(&first.json().expect("success")));
    // Dispatch has come to all of it, the messages fired by hand included, when they can be received.
    let mut received = 0;
    while received < 2 {
        let wanted = json!({"topic": "orders", "max": 10, "wait": "10s"});
        let answer = value(&mut client, Method::POST, "/v1/groups/g/receive", wanted).await;
        received += answer["messages"].as_array().expect("a list").len();
    }
    let before = all_answers(&mut client, &ids).await;
    life.server.kill();

    let remove: Option<fn(&std::path::Path) -> usize> = Some(remove_derived);
    for harm in [None, remove, None] {
        life_after(&mut run, harm, &ids, &before, &first, &hour).await;
    }
}

async fn life_after(
    run: &mut Run,
    harm: Option<fn(&std::path::Path) -> usize>,
    ids: &[String],
    before: &[Value],
    first: &Answer,
    message: &Value,
) {
    if let Some(harm) = harm {
        assert!(harm(&run.scratch.data()) > 0, "nothing was removed");
    }
    let life = run.start().await;
    let mut client = Client::new(life.address);
    assert_eq!(all_answers(&mut client, ids).await, before);
    let once = [("idempotency-key", "once")];
    let path = format!("{TOPIC}/messages");
    let again = send(&mut client, Method::POST, &path, &once, message).await;
    assert_eq!(again.body, first.body);
    assert!(again.headers.contains_key("idempotent-replayed"));
    life.server.kill();
}
