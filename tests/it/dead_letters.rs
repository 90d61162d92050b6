//! `POST /v1/groups/{group}/nack`, `GET .../dlq` and `POST .../dlq/redrive`.

use axum::http::Method;
use serde_json::{Value, json as value};

use crate::fixture::{self, TestServer, get, json, post, refusal};

const NACK: &str = "/v1/groups/workers/nack";
const DLQ: &str = "/v1/groups/workers/dlq";
const REDRIVE: &str = "/v1/groups/workers/dlq/redrive";

async fn receive(server: &TestServer) -> Value {
    let request = r#"{"topic":"orders","wait":"20s"}"#;
    let answer = post(&mut server.client(), "/v1/groups/workers/receive", request.to_owned()).await;
    assert_eq!(answer.status, 200, "{}", json(&answer));
    json(&answer)["messages"][0].clone()
}

async fn set(server: &TestServer, settings: &str) -> (u16, Value) {
    let (path, settings) = ("/v1/groups/workers", settings.to_owned());
    let answer = fixture::send(&mut server.client(), Method::PUT, path, &[], settings).await;
    (answer.status.as_u16(), json(&answer))
}

async fn send(server: &TestServer, path: &str, body: &Value) -> Value {
    let answer = post(&mut server.client(), path, body.to_string()).await;
    assert_eq!(answer.status, 200, "{}", json(&answer));
    json(&answer)
}

async fn put_message(server: &TestServer, body: &str) {
    let answer = post(&mut server.client(), "/v1/topics/orders/messages", body.to_owned()).await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
}

#[tokio::test]
async fn a_malformed_request_is_refused() {
    let server = TestServer::start().await;
    let mut client = server.client();
    put_message(&server, r#"{"body":1}"#).await;
    receive(&server).await;
    for (path, body, status, code) in [
        (NACK, "", 400, "INVALID_REQUEST"),
        (NACK, "{}", 400, "INVALID_REQUEST"),
        (NACK, r#"{"receiptHandles":"h"}"#, 400, "INVALID_REQUEST"),
        (NACK, r#"{"receiptHandles":[],"after":1}"#, 400, "INVALID_REQUEST"),
        (NACK, r#"{"receiptHandles":[],"delay":"-1s"}"#, 400, "INVALID_REQUEST"),
        (NACK, r#"{"receiptHandles":[],"delay":true}"#, 400, "INVALID_REQUEST"),
        (NACK, r#"{"receiptHandles":[],"delay":9999999999999999}"#, 400, "INVALID_REQUEST"),
        ("/v1/groups/%25DLQ%25g/nack", r#"{"receiptHandles":[]}"#, 400, "RESERVED_NAME"),
        (REDRIVE, "", 400, "INVALID_REQUEST"),
        (REDRIVE, r#"{"id":"a"}"#, 400, "INVALID_REQUEST"),
        (REDRIVE, r#"{"ids":"a"}"#, 400, "INVALID_REQUEST"),
        (REDRIVE, r#"{"topic":"a b"}"#, 400, "INVALID_REQUEST"),
        (REDRIVE, r#"{"topic":"nowhere"}"#, 404, "TOPIC_NOT_FOUND"),
        ("/v1/groups/nobody/dlq/redrive", "{}", 404, "GROUP_NOT_FOUND"),
    ] {
        let answer = post(&mut client, path, body).await;
        assert_eq!(refusal(&answer), (status, code.to_owned()), "{path} {body}");
    }
    for (path, status, code) in [
        ("/v1/groups/nobody/dlq", 404, "GROUP_NOT_FOUND"),
        ("/v1/groups/workers/dlq?limit=0", 400, "INVALID_REQUEST"),
        ("/v1/groups/workers/dlq?limit=1001", 400, "INVALID_REQUEST"),
        ("/v1/groups/workers/dlq?cursor=x", 400, "INVALID_REQUEST"),
        ("/v1/groups/workers/dlq?page=1", 400, "INVALID_REQUEST"),
    ] {
        let answer = get(&mut client, path).await;
        assert_eq!(refusal(&answer), (status, code.to_owned()), "{path}");
    }
    let handles = format!("{{\"receiptHandles\":[{}\"h\"]}}", "\"h\",".repeat(1000));
    assert_eq!(refusal(&post(&mut client, NACK, handles).await).1, "BATCH_TOO_LARGE");
    let ids = format!("{{\"ids\":[{}\"h\"]}}", "\"h\",".repeat(1000));
    assert_eq!(refusal(&post(&mut client, REDRIVE, ids).await).1, "BATCH_TOO_LARGE");
    server.stop().await;
}

#[tokio::test]
async fn what_is_given_back_comes_again_then_dies_and_is_redriven() {
    let server = TestServer::start().await;
    assert_eq!(set(&server, r#"{"maxAttempts":2,"backoff":["1ms"]}"#).await.0, 201);
    put_message(&server, r#"{"body":{"order":17},"tag":"t"}"#).await;
    let first = receive(&server).await;
    assert_eq!(first["attempt"], 1);
    let handles = value!([first["receiptHandle"]]);
    let nacked = send(&server, NACK, &value!({"receiptHandles": handles})).await;
    assert_eq!(nacked["results"][0]["status"], "ok");
    // Twice is the same; and an ack comes too late.
    let again = send(&server, NACK, &value!({"receiptHandles": handles})).await;
    assert_eq!(again["results"][0]["status"], "ok");
    let acked = send(&server, "/v1/groups/workers/ack", &value!({"receiptHandles": handles})).await;
    assert_eq!(acked["results"][0]["status"], "INVALID_RECEIPT_HANDLE");

    let second = receive(&server).await;
    assert_eq!((&second["attempt"], &second["body"]), (&value!(2), &value!({"order": 17})));
    for same in ["messageId", "topic", "queueId", "queueOffset", "tag", "bornAt"] {
        assert_eq!(second[same], first[same], "{same}");
    }
    let handles = value!([second["receiptHandle"], "nonsense"]);
    let nacked = send(&server, NACK, &value!({"receiptHandles": handles, "delay": 0})).await;
    assert_eq!(nacked["results"][0]["status"], "ok");
    assert_eq!(nacked["results"][1]["status"], "INVALID_RECEIPT_HANDLE");

    let listed = json(&get(&mut server.client(), DLQ).await);
    let letter = &listed["items"][0];
    assert_eq!(letter["messageId"], first["messageId"], "{listed}");
    assert_eq!((&letter["attempts"], &letter["reason"]), (&value!(2), &value!("NACKED")));
    assert!(letter["deadAt"].is_string() && listed["nextCursor"].is_null(), "{listed}");
    let shown = json(&get(&mut server.client(), "/v1/groups/workers").await);
    assert_eq!(shown["topics"][0]["deadLetters"], 1, "{shown}");
    assert_eq!(shown["topics"][0]["lag"], 0, "{shown}");

    let ids = value!({"ids": [first["messageId"], "nonsense"], "topic": "orders"});
    assert_eq!(send(&server, REDRIVE, &value!({"ids": ["nonsense"]})).await["redriven"], 0);
    assert_eq!(send(&server, REDRIVE, &ids).await["redriven"], 1);
    assert_eq!(send(&server, REDRIVE, &value!({})).await["redriven"], 0, "once");
    let third = receive(&server).await;
    assert_eq!((&third["attempt"], &third["messageId"]), (&value!(1), &first["messageId"]));
    assert_eq!(json(&get(&mut server.client(), DLQ).await)["items"], value!([]));
    server.stop().await;
}

#[tokio::test]
async fn dead_letters_come_in_pages() {
    let server = TestServer::start().await;
    assert_eq!(set(&server, r#"{"maxAttempts":1}"#).await.0, 201);
    for order in 0..5 {
        put_message(&server, &format!("{{\"body\":{order}}}")).await;
        let handles = value!([receive(&server).await["receiptHandle"]]);
        send(&server, NACK, &value!({"receiptHandles": handles})).await;
    }
    let (mut seen, mut path) = (Vec::new(), format!("{DLQ}?limit=2"));
    loop {
        let page = json(&get(&mut server.client(), &path).await);
        let items = page["items"].as_array().expect("a page").clone();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|letter| letter["messageId"].clone()));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("{DLQ}?limit=2&cursor={cursor}");
    }
    seen.dedup();
    assert_eq!(seen.len(), 5);
    server.stop().await;
}

#[tokio::test]
async fn whether_a_group_is_ordered_is_fixed_once_it_reads() {
    let server = TestServer::start().await;
    assert_eq!(set(&server, r#"{"ordered":false}"#).await.0, 201);
    assert_eq!(set(&server, r#"{"ordered":true}"#).await.0, 200);
    for number in 0..2 {
        put_message(&server, &format!("{{\"body\":{number},\"messageGroup\":\"a\"}}")).await;
    }
    let first = receive(&server).await;
    assert_eq!(first["body"], 0);
    let (status, problem) = set(&server, r#"{"ordered":false}"#).await;
    assert_eq!((status, &problem["code"]), (409, &value!("GROUP_ORDER_FIXED")));
    assert_eq!(set(&server, r#"{"ordered":true,"maxAttempts":3}"#).await.0, 200);
    // A retry keeps its place before the one behind it.
    let handles = value!([first["receiptHandle"]]);
    send(&server, NACK, &value!({"receiptHandles": handles, "delay": "1ms"})).await;
    let second = receive(&server).await;
    assert_eq!((&second["body"], &second["attempt"]), (&value!(0), &value!(2)));
    let handles = value!([second["receiptHandle"]]);
    send(&server, "/v1/groups/workers/ack", &value!({"receiptHandles": handles})).await;
    assert_eq!(receive(&server).await["body"], 1);
    server.stop().await;
}
