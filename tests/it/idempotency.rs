//! `Idempotency-Key`: a request that comes again is answered as the first time, and stores nothing.

use axum::http::Method;
use horolog::client::{Answer, Client};
use serde_json::{Value, json as value};

use crate::fixture::{
    TestServer, delete, get, id, json, receive_up_to_fence, refusal, send, send_json,
};

const PATH: &str = "/v1/topics/orders/messages";
const BATCH: &str = "/v1/topics/orders/messages/batch";
const JSON: (&str, &str) = ("content-type", "application/json");

type Headers<'a> = &'a [(&'a str, &'a str)];

async fn put(client: &mut Client, path: &str, key: &str, body: &str) -> Answer {
    let headers = [JSON, ("idempotency-key", key)];
    send(client, Method::POST, path, &headers, body.to_owned()).await
}

fn is_replayed(answer: &Answer) -> bool {
    match answer.headers.get("idempotent-replayed") {
        None => false,
        Some(value) => {
            assert_eq!(value, "true");
            true
        }
    }
}

#[tokio::test]
async fn a_request_that_comes_again_is_answered_as_the_first_time() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let raw = [("content-type", "image/png"), ("horolog-delay", "1h"), ("horolog-tag", "t")];
    let ndjson = [("content-type", "application/x-ndjson")];
    let hour = r#"{"body":1,"delay":"1h"}"#;
    let batch =
        format!("{{\"messages\":[{hour},{{}},{{\"body\":1,\"delay\":\"36526d\"}},{hour}]}}");
    let atomic = format!("{{\"messages\":[{hour},{hour}],\"atomic\":true}}");
    let requests: [(&str, Headers<'_>, &str, u16, u64); 7] = [
        (PATH, &[JSON], hour, 201, 1),
        (PATH, &[JSON], r#"{"body":1}"#, 201, 1),
        (PATH, &raw, "\u{0}png", 201, 1),
        (PATH, &raw, "", 201, 1),
        (BATCH, &[JSON], &batch, 200, 2),
        (BATCH, &[JSON], &atomic, 201, 2),
        (BATCH, &ndjson, "{\"body\":1}\n{\"body\":2,\"delay\":\"1h\"}\n", 200, 2),
    ];
    let mut accepted = 0;
    for (number, (path, headers, body, status, count)) in requests.into_iter().enumerate() {
        let key = format!("key-{number}");
        let headers = [headers, &[("idempotency-key", key.as_str())]].concat();
        let first = send(&mut client, Method::POST, path, &headers, body.to_owned()).await;
        assert_eq!(first.status, status, "{number}: {}", json(&first));
        assert!(!is_replayed(&first), "{number}");
        accepted += count;
        for _ in 0..3 {
            let again = send(&mut client, Method::POST, path, &headers, body.to_owned()).await;
            assert_eq!((again.status, &again.body), (first.status, &first.body), "{number}");
            assert_eq!(again.headers.get("location"), first.headers.get("location"), "{number}");
            assert!(is_replayed(&again), "{number}");
        }
        let other = format!("{body} ");
        let reused = send(&mut client, Method::POST, path, &headers, other).await;
        // One more space is no other message, but it is another request.
        assert_eq!(refusal(&reused), (422, "IDEMPOTENCY_KEY_REUSED".to_owned()), "{number}");
    }
    let counted = server.figure("horolog_messages_accepted_total").await;
    assert_eq!(counted, accepted.to_string());
    server.stop().await;
}

#[tokio::test]
async fn a_key_belongs_to_its_path_and_to_one_request_there() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let one = r#"{"body":1}"#;
    let first = id(&put(&mut client, PATH, "k", one).await);
    let other_topic = put(&mut client, "/v1/topics/mails/messages", "k", one).await;
    assert!(!is_replayed(&other_topic));
    assert_ne!(id(&other_topic), first);
    let other_path = put(&mut client, BATCH, "k", r#"{"messages":[{"body":1}]}"#).await;
    assert_eq!(other_path.status, 200);
    assert!(!is_replayed(&other_path));
    let other_key = put(&mut client, PATH, "K", one).await;
    assert!(!is_replayed(&other_key), "keys have capitals");
    let raw = [("content-type", "text/plain"), ("idempotency-key", "k")];
    let answer = send(&mut client, Method::POST, PATH, &raw, one).await;
    assert_eq!(refusal(&answer), (422, "IDEMPOTENCY_KEY_REUSED".to_owned()));
    let again = put(&mut client, PATH, "k", one).await;
    assert_eq!(id(&again), first);
    server.stop().await;
}

#[tokio::test]
async fn a_key_that_is_none_is_refused_and_stores_nothing() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let long = "k".repeat(256);
    for keys in [
        vec![("idempotency-key", "")],
        vec![("idempotency-key", long.as_str())],
        vec![("idempotency-key", "a"), ("idempotency-key", "a")],
        vec![("idempotency-key", "a"), ("idempotency-key", "b")],
    ] {
        let headers = [vec![JSON], keys].concat();
        for (path, body) in [(PATH, r#"{"body":1}"#), (BATCH, r#"{"messages":[{"body":1}]}"#)] {
            let answer = send(&mut client, Method::POST, path, &headers, body).await;
            assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{path} {headers:?}");
        }
    }
    assert_eq!(server.figure("horolog_messages_accepted_total").await, "0");
    let longest = "k".repeat(255);
    assert_eq!(put(&mut client, PATH, &longest, r#"{"body":1}"#).await.status, 201);
    assert!(is_replayed(&put(&mut client, PATH, &longest, r#"{"body":1}"#).await));
    server.stop().await;
}

#[tokio::test]
async fn a_refused_request_does_not_bind_its_key() {
    let server = TestServer::start().await;
    let mut client = server.client();
    send_json(&mut client, Method::PUT, "/v1/topics/orders", r#"{"type":"NORMAL"}"#).await;
    let timed = r#"{"body":1,"delay":"1h"}"#;
    for (path, body, status, code) in [
        (PATH, "{".to_owned(), 400, "INVALID_REQUEST"),
        (PATH, r#"{"body":1,"delay":-1}"#.to_owned(), 400, "INVALID_DELIVERY_TIME"),
        (PATH, timed.to_owned(), 409, "TOPIC_TYPE_MISMATCH"),
        (BATCH, "{}".to_owned(), 400, "INVALID_REQUEST"),
        (
            BATCH,
            format!("{{\"messages\":[{{\"body\":1}},{timed}],\"atomic\":true}}"),
            409,
            "TOPIC_TYPE_MISMATCH",
        ),
    ] {
        let answer = put(&mut client, path, "k", &body).await;
        assert_eq!(refusal(&answer), (status, code.to_owned()), "{path} {body}");
    }
    // A batch of which nothing was stored binds nothing either.
    let nothing = put(&mut client, BATCH, "k", &format!("{{\"messages\":[{timed},{{}}]}}")).await;
    assert_eq!(nothing.status, 200);
    let first = put(&mut client, PATH, "k", r#"{"body":1}"#).await;
    assert_eq!(first.status, 201);
    let batch = put(&mut client, BATCH, "k", r#"{"messages":[{"body":1}]}"#).await;
    assert_eq!(batch.status, 200);
    assert!(!is_replayed(&first) && !is_replayed(&batch));
    assert_eq!(server.figure("horolog_messages_accepted_total").await, "2");
    server.stop().await;
}

#[tokio::test]
async fn two_that_come_at_once_make_one_message_and_get_one_answer() {
    const KEYS: usize = 100;
    let server = TestServer::start().await;
    let (mut one, mut other) = (server.client(), server.client());
    let mut answers = Vec::new();
    for number in 0..KEYS {
        let key = format!("key-{number}");
        let message = r#"{"bodyText":"x","delay":"100ms"}"#;
        let both =
            tokio::join!(put(&mut one, PATH, &key, message), put(&mut other, PATH, &key, message));
        assert_eq!((both.0.status.as_u16(), both.1.status.as_u16()), (201, 201));
        assert_eq!(both.0.body, both.1.body);
        assert_ne!(is_replayed(&both.0), is_replayed(&both.1), "one of them was the first");
        answers.push(id(&both.0));
    }
    assert_eq!(server.figure("horolog_messages_accepted_total").await, KEYS.to_string());
    put(&mut one, PATH, "fence", r#"{"bodyText":"fence","delay":"500ms"}"#).await;
    let received = receive_up_to_fence(&server, "workers", "orders").await;
    let mut came: Vec<_> = received.iter().map(|one| one["messageId"].as_str()).collect();
    let mut expected: Vec<_> = answers.iter().map(|id| Some(id.as_str())).collect();
    came.sort_unstable();
    expected.sort_unstable();
    assert_eq!(came, expected);
    server.stop().await;
}

#[tokio::test]
async fn two_different_requests_at_once_under_one_key_are_not_both_taken() {
    let server = TestServer::start().await;
    let (mut one, mut other) = (server.client(), server.client());
    for number in 0..50 {
        let key = format!("key-{number}");
        let (first, second) = tokio::join!(
            put(&mut one, PATH, &key, r#"{"body":1}"#),
            put(&mut other, PATH, &key, r#"{"body":2}"#)
        );
        let mut statuses = [first.status.as_u16(), second.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 422]);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_key_is_remembered_over_a_stop_and_a_start_and_after_its_message_is_over() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let soon = r#"{"bodyText":"fence","delay":"50ms"}"#;
    let hour = r#"{"bodyText":"x","delay":"1h"}"#;
    let batch = format!("{{\"messages\":[{hour},{{}},{hour}]}}");
    let fired = put(&mut client, PATH, "fired", soon).await;
    let cancelled = put(&mut client, PATH, "cancelled", hour).await;
    let many = put(&mut client, BATCH, "many", &batch).await;
    assert!(receive_up_to_fence(&server, "workers", "orders").await.is_empty());
    let path = format!("/v1/messages/{}", id(&cancelled));
    assert_eq!(delete(&mut client, &path).await.status, 200);
    let mut server = server;
    for _ in 0..2 {
        let mut client = server.client();
        for (path, key, body, first) in [
            (PATH, "fired", soon, &fired),
            (PATH, "cancelled", hour, &cancelled),
            (BATCH, "many", &batch, &many),
        ] {
            let again = put(&mut client, path, key, body).await;
            assert_eq!((again.status, &again.body), (first.status, &first.body), "{key}");
            assert!(is_replayed(&again), "{key}");
            let other = put(&mut client, path, key, &format!("{body} ")).await;
            assert_eq!(refusal(&other), (422, "IDEMPOTENCY_KEY_REUSED".to_owned()), "{key}");
        }
        // The answer is that of the first time; the message is where it is.
        let states = async |client: &mut Client| {
            let mut states = Vec::new();
            for answer in [&fired, &cancelled] {
                let view = json(&get(client, &format!("/v1/messages/{}", id(answer))).await);
                states.push(view["state"].clone());
            }
            Value::Array(states)
        };
        assert_eq!(states(&mut client).await, value!(["READY", "CANCELLED"]));
        server = server.restart().await;
    }
    server.stop().await;
}
