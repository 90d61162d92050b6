//! `PUT`, `GET`, `DELETE /v1/topics/{topic}/timers/{key}`: one pending timer a key, always.

use axum::http::Method;
use horolog::client::{Answer, Client};
use serde_json::{Value, json as value};

use crate::fixture::{
    TestServer, delete, get, id, json, receive, receive_up_to_fence, refusal, send, send_json,
};

const PATH: &str = "/v1/topics/orders/timers/order-17";

async fn put(client: &mut Client, path: &str, message: &Value) -> Answer {
    send_json(client, Method::PUT, path, message.to_string()).await
}

async fn create(client: &mut Client, path: &str, message: &Value) -> Answer {
    let headers = [("content-type", "application/json"), ("if-none-match", "*")];
    send(client, Method::PUT, path, &headers, message.to_string()).await
}

async fn state(client: &mut Client, id: &str) -> String {
    let view = json(&get(client, &format!("/v1/messages/{id}")).await);
    view["state"].as_str().unwrap_or_default().to_owned()
}

async fn fire(client: &mut Client, id: &str) {
    let path = format!("/v1/messages/{id}/deliver");
    assert_eq!(send(client, Method::POST, &path, &[], "").await.status, 200);
}

#[tokio::test]
async fn a_malformed_timer_is_refused_and_leaves_the_one_that_waits() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let hour = value!({"body": 1, "delay": "1h"});
    let first = id(&put(&mut client, PATH, &hour).await);
    let good = hour.to_string();
    let json_type = ("content-type", "application/json");
    for (headers, body, code) in [
        (vec![json_type], "", "INVALID_REQUEST"),
        (vec![json_type], "{}", "INVALID_REQUEST"),
        (vec![json_type], r#"{"body":1,"dealy":"1h"}"#, "INVALID_REQUEST"),
        (vec![json_type], r#"{"body":1,"delay":"-1s"}"#, "INVALID_DELIVERY_TIME"),
        (vec![json_type], r#"{"body":1,"delay":"36526d"}"#, "INVALID_DELIVERY_TIME"),
        (vec![json_type, ("horolog-delay", "1s")], &good, "INVALID_REQUEST"),
        (vec![("content-type", "application/x-ndjson")], &good, "INVALID_REQUEST"),
        (vec![], "", "INVALID_REQUEST"),
        (vec![("content-type", "a/b"), ("horolog-dealy", "1s")], "x", "INVALID_REQUEST"),
        (vec![json_type, ("idempotency-key", "k")], &good, "INVALID_REQUEST"),
        (vec![json_type, ("if-none-match", "\"v1\"")], &good, "INVALID_REQUEST"),
        (vec![json_type, ("if-none-match", "")], &good, "INVALID_REQUEST"),
        (vec![json_type, ("if-none-match", "*, \"a\"")], &good, "INVALID_REQUEST"),
        (vec![json_type, ("if-none-match", "*"), ("if-none-match", "*")], &good, "INVALID_REQUEST"),
        (vec![json_type, ("if-match", "*")], &good, "INVALID_REQUEST"),
        (vec![json_type, ("if-match", "\"v1\"")], &good, "INVALID_REQUEST"),
        (vec![json_type, ("if-unmodified-since", "x")], &good, "INVALID_REQUEST"),
    ] {
        let answer = send(&mut client, Method::PUT, PATH, &headers, body.to_owned()).await;
        assert_eq!(refusal(&answer), (400, code.to_owned()), "{headers:?} {body}");
    }
    let long = format!("/v1/topics/orders/timers/{}", "k".repeat(256));
    for (method, path, status, code) in [
        (Method::PUT, long.as_str(), 400, "INVALID_REQUEST"),
        (Method::GET, &long, 400, "INVALID_REQUEST"),
        (Method::DELETE, &long, 400, "INVALID_REQUEST"),
        (Method::PUT, "/v1/topics/orders/timers/%FF", 400, "INVALID_REQUEST"),
        (Method::PUT, "/v1/topics/a%20b/timers/k", 400, "INVALID_REQUEST"),
        (Method::PUT, "/v1/topics/rmq_sys_wheel_timer/timers/k", 400, "RESERVED_NAME"),
        (Method::PUT, "/v1/topics/orders/timers/k?x=1", 400, "INVALID_REQUEST"),
        (Method::GET, "/v1/topics/orders/timers/k?x=1", 400, "INVALID_REQUEST"),
        (Method::DELETE, "/v1/topics/orders/timers/k?x=1", 400, "INVALID_REQUEST"),
        (Method::PUT, "/v1/topics/orders/timers", 404, "NOT_FOUND"),
        (Method::PUT, "/v1/topics/orders/timers/a/b", 404, "NOT_FOUND"),
        (Method::POST, PATH, 405, "METHOD_NOT_ALLOWED"),
        (Method::PATCH, PATH, 405, "METHOD_NOT_ALLOWED"),
    ] {
        let body = if method == Method::PUT { good.clone() } else { String::new() };
        let answer = send_json(&mut client, method.clone(), path, body).await;
        assert_eq!(refusal(&answer), (status, code.to_owned()), "{method} {path}");
    }
    assert_eq!(json(&get(&mut client, PATH).await)["messageId"], first.as_str());
    assert_eq!(state(&mut client, &first).await, "SCHEDULED");
    server.stop().await;
}

#[tokio::test]
async fn a_put_replaces_what_waits_under_its_key_and_says_what() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let hour = value!({"bodyText": "x", "delay": "1h", "tag": "t", "keys": ["customer-3"]});
    let first = put(&mut client, PATH, &hour).await;
    assert_eq!(first.status, 201);
    let first_id = id(&first);
    assert_eq!(first.headers["location"], format!("/v1/messages/{first_id}"));
    let answer = json(&first);
    assert_eq!(answer["topic"], "orders");
    assert_eq!(answer["key"], "order-17");
    assert_eq!(answer["state"], "SCHEDULED");
    assert!(answer["deliverAt"].is_string() && answer.get("replaced").is_none(), "{answer}");

    let second = put(&mut client, PATH, &hour).await;
    assert_eq!(second.status, 200);
    assert_eq!(json(&second)["replaced"], first_id.as_str());
    let second_id = id(&second);
    assert_ne!(second_id, first_id);
    assert_eq!(state(&mut client, &first_id).await, "CANCELLED");
    let view = json(&get(&mut client, PATH).await);
    assert_eq!(view["messageId"], second_id.as_str());
    assert_eq!(view["timerKey"], "order-17");
    assert_eq!(view["keys"], value!(["customer-3"]));
    assert_eq!(view, json(&get(&mut client, &format!("/v1/messages/{second_id}")).await));

    // The replaced one cannot be brought back.
    let path = format!("/v1/messages/{first_id}");
    let moved = send_json(&mut client, Method::PATCH, &path, r#"{"delay":"1s"}"#).await;
    assert_eq!(refusal(&moved), (409, "ALREADY_CANCELLED".to_owned()));
    // One that was moved is replaced where it is now.
    let path = format!("/v1/messages/{second_id}");
    let moved = send_json(&mut client, Method::PATCH, &path, r#"{"delay":"2h"}"#).await;
    assert_eq!(moved.status, 200);
    let third = put(&mut client, PATH, &hour).await;
    assert_eq!((third.status.as_u16(), &json(&third)["replaced"]), (200, &value!(second_id)));
    assert_eq!(state(&mut client, &second_id).await, "CANCELLED");
    server.stop().await;
}

#[tokio::test]
async fn what_was_replaced_never_comes_and_what_replaced_it_comes_once() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let replaced = value!({"bodyText": "replaced", "delay": "2s"});
    let last = value!({"bodyText": "last", "delay": "2200ms"});
    for key in 0..20 {
        let path = format!("/v1/topics/orders/timers/{key}");
        put(&mut client, &path, &replaced).await;
        put(&mut client, &path, &replaced).await;
        put(&mut client, &path, &last).await;
    }
    put(&mut client, PATH, &value!({"bodyText": "fence", "delay": "2500ms"})).await;
    let received = receive_up_to_fence(&server, "workers", "orders").await;
    assert_eq!(received.len(), 20, "{received:?}");
    assert!(received.iter().all(|message| message["bodyText"] == "last"), "{received:?}");
    server.stop().await;
}

#[tokio::test]
async fn create_only_looks_at_what_is_pending() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let hour = value!({"body": 1, "delay": "1h"});
    let first = create(&mut client, PATH, &hour).await;
    assert_eq!(first.status, 201);
    let exists = (412, "TIMER_EXISTS".to_owned());
    assert_eq!(refusal(&create(&mut client, PATH, &hour).await), exists);
    assert_eq!(json(&get(&mut client, PATH).await)["messageId"], id(&first).as_str());
    fire(&mut client, &id(&first)).await;
    let second = create(&mut client, PATH, &hour).await;
    assert_eq!(second.status, 201, "it fired: {}", json(&second));
    assert!(json(&second).get("replaced").is_none(), "what fired was not replaced");
    assert_eq!(delete(&mut client, PATH).await.status, 200);
    let third = create(&mut client, PATH, &hour).await;
    assert_eq!(third.status, 201, "it was cancelled: {}", json(&third));
    assert_eq!(refusal(&create(&mut client, PATH, &hour).await), exists);
    // One that is ready at once is not pending, and neither is there anything to replace.
    assert_eq!(put(&mut client, PATH, &value!({"body": 1})).await.status, 200);
    let fifth = put(&mut client, PATH, &hour).await;
    assert_eq!(fifth.status, 201, "{}", json(&fifth));
    server.stop().await;
}

#[tokio::test]
async fn a_timer_is_shown_and_cancelled_by_its_key() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let not_found = (404, "TIMER_NOT_FOUND".to_owned());
    assert_eq!(refusal(&get(&mut client, PATH).await), not_found, "there is no topic");
    assert_eq!(refusal(&delete(&mut client, PATH).await), not_found, "there is no topic");
    let other = "/v1/topics/orders/timers/order-18";
    let hour = value!({"body": 1, "delay": "1h", "keys": ["order-17"]});
    put(&mut client, other, &hour).await;
    assert_eq!(refusal(&get(&mut client, PATH).await), not_found, "a key is no timer's key");
    assert_eq!(refusal(&delete(&mut client, PATH).await), not_found);

    let first = id(&put(&mut client, PATH, &hour).await);
    for _ in 0..2 {
        let answer = delete(&mut client, PATH).await;
        assert_eq!(answer.status, 200);
        assert_eq!(json(&answer), value!({"messageId": first, "state": "CANCELLED"}));
    }
    let view = json(&get(&mut client, PATH).await);
    assert_eq!((&view["messageId"], &view["state"]), (&value!(first), &value!("CANCELLED")));
    let second = id(&put(&mut client, PATH, &hour).await);
    fire(&mut client, &second).await;
    let view = json(&get(&mut client, PATH).await);
    assert_eq!((&view["messageId"], &view["state"]), (&value!(second), &value!("READY")));
    assert_eq!(view["timerKey"], "order-17");
    assert!(view["firedAt"].is_string(), "{view}");
    assert_eq!(refusal(&delete(&mut client, PATH).await), (409, "ALREADY_DELIVERED".to_owned()));
    assert_eq!(json(&get(&mut client, other).await)["state"], "SCHEDULED");
    server.stop().await;
}

#[tokio::test]
async fn a_timer_can_be_raw_and_comes_out_as_it_went_in() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let headers = [
        ("content-type", "image/png"),
        ("horolog-delay", "100ms"),
        ("horolog-tag", "t"),
        ("horolog-key", "a"),
    ];
    let path = "/v1/topics/pictures/timers/p";
    let answer = send(&mut client, Method::PUT, path, &headers, vec![0, 255]).await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
    let received = receive(&server, "workers", "pictures").await;
    assert_eq!(received.len(), 1);
    for (member, expected) in [
        ("messageId", value!(id(&answer))),
        ("bodyBase64", value!("AP8=")),
        ("contentType", value!("image/png")),
        ("tag", value!("t")),
        ("keys", value!(["a"])),
    ] {
        assert_eq!(received[0][member], expected, "{member} of {}", received[0]);
    }
    let view = json(&get(&mut client, path).await);
    assert_eq!((&view["state"], &view["timerKey"]), (&value!("READY"), &value!("p")));
    server.stop().await;
}

#[tokio::test]
async fn a_key_is_any_text_of_at_most_255_bytes() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let hour = value!({"body": 1, "delay": "1h"});
    let mut ids = std::collections::BTreeSet::new();
    for (key, encoded) in [
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("a b", "a%20b"),
        ("a+b", "a+b"),
        ("..", "%2E%2E"),
        ("?#&", "%3F%23%26"),
        ("é💥", "%C3%A9%F0%9F%92%A5"),
        (&"k".repeat(255), &"k".repeat(255)),
        (&"é".repeat(127), &"%C3%A9".repeat(127)),
    ] {
        let path = format!("/v1/topics/orders/timers/{encoded}");
        let answer = put(&mut client, &path, &hour).await;
        assert_eq!(answer.status, 201, "{key}: {}", json(&answer));
        assert_eq!(json(&answer)["key"], key);
        let view = json(&get(&mut client, &path).await);
        assert_eq!(view["timerKey"], key);
        assert_eq!(view["messageId"], id(&answer).as_str());
        ids.insert(id(&answer));
    }
    assert_eq!(ids.len(), 9, "each is a key of its own");
    server.stop().await;
}

#[tokio::test]
async fn a_key_of_one_topic_is_another_on_another() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let hour = value!({"body": 1, "delay": "1h"});
    let one = id(&put(&mut client, "/v1/topics/a/timers/k", &hour).await);
    let other = put(&mut client, "/v1/topics/b/timers/k", &hour).await;
    assert_eq!(other.status, 201);
    assert_eq!(delete(&mut client, "/v1/topics/b/timers/k").await.status, 200);
    assert_eq!(state(&mut client, &one).await, "SCHEDULED");
    server.stop().await;
}

#[tokio::test]
async fn a_timer_is_replaced_after_a_restart_as_before() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let hour = value!({"body": 1, "delay": "1h"});
    let first = id(&put(&mut client, PATH, &hour).await);
    let second = id(&put(&mut client, PATH, &hour).await);
    let server = server.restart().await;
    let mut client = server.client();
    assert_eq!(json(&get(&mut client, PATH).await)["messageId"], second.as_str());
    assert_eq!(state(&mut client, &first).await, "CANCELLED");
    let third = put(&mut client, PATH, &hour).await;
    assert_eq!(json(&third)["replaced"], second.as_str());
    let server = server.restart().await;
    assert_eq!(state(&mut server.client(), &second).await, "CANCELLED");
    assert_eq!(state(&mut server.client(), &id(&third)).await, "SCHEDULED");
    server.stop().await;
}
