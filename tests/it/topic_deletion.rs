//! `DELETE /v1/topics/{topic}`: what is deleted never comes, not even what was pending (USERS.md, 4).

use axum::http::Method;
use horolog::client::{Answer, Client};
use serde_json::json as value;

use crate::fixture::{
    TestServer, delete, get, id, json, post, receive, receive_up_to_fence, refusal, send, send_json,
};

const TOPIC: &str = "/v1/topics/orders";
const PATH: &str = "/v1/topics/orders/messages";

async fn put(client: &mut Client, message: &str) -> Answer {
    let answer = post(client, PATH, message.to_owned()).await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
    answer
}

fn not_empty(answer: &Answer) -> String {
    assert_eq!(refusal(answer), (409, "TOPIC_NOT_EMPTY".to_owned()));
    json(answer)["detail"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn an_empty_topic_is_deleted_once() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let not_found = (404, "TOPIC_NOT_FOUND".to_owned());
    assert_eq!(refusal(&delete(&mut client, TOPIC).await), not_found);
    send_json(&mut client, Method::PUT, TOPIC, "{}").await;
    for path in [
        format!("{TOPIC}?force=maybe"),
        format!("{TOPIC}?force="),
        format!("{TOPIC}?force=1"),
        format!("{TOPIC}?force=true&force=true"),
        format!("{TOPIC}?froce=true"),
    ] {
        let answer = delete(&mut client, &path).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{path}");
    }
    let headers = [("horolog-delay", "1s")];
    let answer = send(&mut client, Method::DELETE, TOPIC, &headers, "").await;
    assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()));
    for (topic, code) in [("rmq_sys_wheel_timer", "RESERVED_NAME"), ("a%20b", "INVALID_REQUEST")] {
        let answer = delete(&mut client, &format!("/v1/topics/{topic}?force=true")).await;
        assert_eq!(refusal(&answer), (400, code.to_owned()), "{topic}");
    }
    let deleted = delete(&mut client, TOPIC).await;
    assert_eq!((deleted.status.as_u16(), deleted.body.len()), (204, 0));
    assert_eq!(refusal(&delete(&mut client, TOPIC).await), not_found);
    assert_eq!(refusal(&get(&mut client, TOPIC).await), not_found);
    let search = get(&mut client, &format!("{PATH}?key=k")).await;
    assert_eq!(refusal(&search), not_found);
    assert_eq!(json(&get(&mut client, "/v1/topics").await)["items"], value!([]));
    let server = server.restart().await;
    assert_eq!(refusal(&get(&mut server.client(), TOPIC).await), not_found);
    server.stop().await;
}

#[tokio::test]
async fn a_topic_with_something_pending_is_kept_unless_it_is_forced() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let pending = id(&put(&mut client, r#"{"body":1,"delay":"1h"}"#).await);
    let detail = not_empty(&delete(&mut client, TOPIC).await);
    assert!(detail.contains("1 message"), "{detail}");
    not_empty(&delete(&mut client, &format!("{TOPIC}?force=false")).await);
    let view = json(&get(&mut client, &format!("/v1/messages/{pending}")).await);
    assert_eq!(view["state"], "SCHEDULED");
    assert_eq!(delete(&mut client, &format!("/v1/messages/{pending}")).await.status, 200);
    // Cancelled just now: the deletion waits for it to be counted.
    assert_eq!(delete(&mut client, TOPIC).await.status, 204);
    server.stop().await;
}

#[tokio::test]
async fn a_topic_with_something_unacknowledged_is_kept_unless_it_is_forced() {
    let server = TestServer::start().await;
    let mut client = server.client();
    put(&mut client, r#"{"bodyText":"a"}"#).await;
    let received = receive(&server, "workers", "orders").await;
    put(&mut client, r#"{"bodyText":"b"}"#).await;
    not_empty(&delete(&mut client, TOPIC).await);
    let second = receive(&server, "workers", "orders").await;
    for message in received.iter().chain(&second) {
        not_empty(&delete(&mut client, TOPIC).await);
        let ack = value!({"receiptHandles": [message["receiptHandle"]]}).to_string();
        let answer = json(&post(&mut client, "/v1/groups/workers/ack", ack).await);
        assert_eq!(answer["results"][0]["status"], "ok");
    }
    // Acknowledged just now: the deletion waits for that to be counted, too.
    assert_eq!(delete(&mut client, TOPIC).await.status, 204);
    // What no group has ever read holds nobody up.
    put(&mut client, r#"{"bodyText":"c"}"#).await;
    assert_eq!(delete(&mut client, TOPIC).await.status, 204);
    server.stop().await;
}

#[tokio::test]
async fn nothing_of_a_deleted_topic_arrives_and_its_successor_begins_empty() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let mut old = Vec::new();
    for message in [
        r#"{"bodyText":"old, ready"}"#,
        r#"{"bodyText":"old, soon","delay":"300ms","keys":["k"]}"#,
        r#"{"bodyText":"old, later","delay":"1h","keys":["k"]}"#,
    ] {
        old.push(id(&put(&mut client, message).await));
    }
    let timer = "/v1/topics/orders/timers/t";
    let message = r#"{"bodyText":"old, timer","delay":"300ms"}"#;
    old.push(id(&send_json(&mut client, Method::PUT, timer, message).await));
    let moved = format!("/v1/messages/{}", old[2]);
    let answer = send_json(&mut client, Method::PATCH, &moved, r#"{"delay":"300ms"}"#).await;
    assert_eq!(answer.status, 200);
    let received = receive(&server, "workers", "orders").await;
    assert_eq!(received[0]["bodyText"], "old, ready");
    assert_eq!(delete(&mut client, &format!("{TOPIC}?force=true")).await.status, 204);
    let timer_view = get(&mut client, timer).await;
    assert_eq!(refusal(&timer_view), (404, "TIMER_NOT_FOUND".to_owned()));

    put(&mut client, r#"{"bodyText":"new"}"#).await;
    put(&mut client, r#"{"bodyText":"fence","delay":"800ms"}"#).await;
    let fresh = receive_up_to_fence(&server, "workers", "orders").await;
    assert_eq!(fresh.len(), 1, "{fresh:?}");
    assert_eq!(fresh[0]["bodyText"], "new");
    assert_eq!(fresh[0]["queueOffset"], 0);

    let not_found = (404, "MESSAGE_NOT_FOUND".to_owned());
    for id in &old {
        let path = format!("/v1/messages/{id}");
        assert_eq!(refusal(&get(&mut client, &path).await), not_found, "{id}");
        assert_eq!(refusal(&delete(&mut client, &path).await), not_found, "{id}");
        let answer = send_json(&mut client, Method::PATCH, &path, r#"{"delay":"1s"}"#).await;
        assert_eq!(refusal(&answer), not_found, "{id}");
        let fire = format!("{path}/deliver");
        let answer = send(&mut client, Method::POST, &fire, &[], "").await;
        assert_eq!(refusal(&answer), not_found, "{id}");
    }
    assert_eq!(refusal(&get(&mut client, timer).await), (404, "TIMER_NOT_FOUND".to_owned()));
    let found = json(&get(&mut client, &format!("{PATH}?key=k")).await);
    assert_eq!(found["items"], value!([]));
    let ack = value!({"receiptHandles": [received[0]["receiptHandle"]]}).to_string();
    let answer = json(&post(&mut client, "/v1/groups/workers/ack", ack).await);
    assert_eq!(answer["results"][0]["status"], "INVALID_RECEIPT_HANDLE");

    // A timer of the same key is a new one, and may be created.
    let headers = [("content-type", "application/json"), ("if-none-match", "*")];
    let created = send(&mut client, Method::PUT, timer, &headers, message).await;
    assert_eq!(created.status, 201);
    server.stop().await;
}

#[tokio::test]
async fn what_was_deleted_stays_so_over_a_restart() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let old = id(&put(&mut client, r#"{"bodyText":"old","delay":"300ms"}"#).await);
    assert_eq!(delete(&mut client, &format!("{TOPIC}?force=true")).await.status, 204);
    send_json(&mut client, Method::PUT, TOPIC, r#"{"type":"DELAY","queues":1}"#).await;
    let server = server.restart().await;
    let mut client = server.client();
    let view = json(&get(&mut client, TOPIC).await);
    assert_eq!((&view["type"], &view["pending"]), (&value!("DELAY"), &value!(0)));
    put(&mut client, r#"{"bodyText":"fence","delay":"600ms"}"#).await;
    assert!(receive_up_to_fence(&server, "workers", "orders").await.is_empty());
    let path = format!("/v1/messages/{old}");
    assert_eq!(refusal(&get(&mut client, &path).await), (404, "MESSAGE_NOT_FOUND".to_owned()));
    server.stop().await;
}

/// Who waits for a topic's messages when it is deleted goes on waiting until its time is over.
#[tokio::test]
async fn a_receive_that_waits_while_its_topic_is_deleted_gets_nothing_of_it() {
    let server = TestServer::start().await;
    put(&mut server.client(), r#"{"bodyText":"old","delay":"1s"}"#).await;
    let mut client = server.client();
    let waiting = tokio::spawn(async move {
        let request = r#"{"topic":"orders","wait":"2s"}"#;
        post(&mut client, "/v1/groups/workers/receive", request).await
    });
    while server.figure("horolog_receives_waiting").await != "1" {
        tokio::task::yield_now().await;
    }
    assert_eq!(delete(&mut server.client(), &format!("{TOPIC}?force=true")).await.status, 204);
    let answer = waiting.await.expect("no panic");
    match answer.status.as_u16() {
        200 => assert_eq!(json(&answer), value!({"messages": []})),
        _ => assert_eq!(refusal(&answer), (404, "TOPIC_NOT_FOUND".to_owned())),
    }
    server.stop().await;
}
