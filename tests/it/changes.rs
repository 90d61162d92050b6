//! `PATCH /v1/messages/{id}`, `POST .../deliver`, `DELETE`: a message that waits is moved, fired, called off.

use axum::http::Method;
use horolog::client::Client;
use serde_json::{Value, json as value};

use crate::fixture::{
    TestServer, delete, get, id, json, post, receive, receive_up_to_fence, refusal, send, send_json,
};

const PATH: &str = "/v1/topics/orders/messages";

async fn put(client: &mut Client, message: Value) -> String {
    id(&post(client, PATH, message.to_string()).await)
}

async fn patch(client: &mut Client, id: &str, change: &str) -> horolog::client::Answer {
    send_json(client, Method::PATCH, &format!("/v1/messages/{id}"), change.to_owned()).await
}

async fn fire(client: &mut Client, id: &str) -> horolog::client::Answer {
    send(client, Method::POST, &format!("/v1/messages/{id}/deliver"), &[], "").await
}

async fn view(client: &mut Client, id: &str) -> Value {
    json(&get(client, &format!("/v1/messages/{id}")).await)
}

#[tokio::test]
async fn a_malformed_move_is_refused_and_moves_nothing() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let id = put(&mut client, value!({"body": 1, "delay": "1h"})).await;
    let before = view(&mut client, &id).await;
    for (change, code) in [
        ("", "INVALID_REQUEST"),
        ("{}", "INVALID_REQUEST"),
        ("[]", "INVALID_REQUEST"),
        ("{", "INVALID_REQUEST"),
        (r#"{"delay":"1s"}x"#, "INVALID_REQUEST"),
        (r#"{"delay":"1s","deliverAt":0}"#, "INVALID_REQUEST"),
        (r#"{"delay":"1s","delay":"2s"}"#, "INVALID_REQUEST"),
        (r#"{"delayLevel":1}"#, "INVALID_REQUEST"),
        (r#"{"delay":"1s","tag":"t"}"#, "INVALID_REQUEST"),
        (r#"{"delay":null}"#, "INVALID_REQUEST"),
        (r#"{"deliverAt":null}"#, "INVALID_REQUEST"),
        (r#"{"deliverAt":true}"#, "INVALID_REQUEST"),
        (r#"{"delay":[]}"#, "INVALID_REQUEST"),
        (r#"{"delay":-1}"#, "INVALID_DELIVERY_TIME"),
        (r#"{"delay":"-5s"}"#, "INVALID_DELIVERY_TIME"),
        (r#"{"delay":"soon"}"#, "INVALID_DELIVERY_TIME"),
        (r#"{"delay":0.5}"#, "INVALID_DELIVERY_TIME"),
        (r#"{"delay":"36526d"}"#, "INVALID_DELIVERY_TIME"),
        (r#"{"delay":18446744073709551616}"#, "INVALID_DELIVERY_TIME"),
        (r#"{"deliverAt":-1}"#, "INVALID_DELIVERY_TIME"),
        (r#"{"deliverAt":18446744073709551615}"#, "INVALID_DELIVERY_TIME"),
        (r#"{"deliverAt":"2026-10-01T12:00:00"}"#, "INVALID_DELIVERY_TIME"),
    ] {
        let answer = patch(&mut client, &id, change).await;
        assert_eq!(refusal(&answer), (400, code.to_owned()), "{change}");
    }
    let path = format!("/v1/messages/{id}");
    for (path, headers) in
        [(format!("{path}?force=true"), vec![]), (path.clone(), vec![("horolog-delay", "1s")])]
    {
        let headers = [vec![("content-type", "application/json")], headers].concat();
        let change = r#"{"delay":"2h"}"#;
        let answer = send(&mut client, Method::PATCH, &path, &headers, change).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{path} {headers:?}");
    }
    assert_eq!(view(&mut client, &id).await, before);
    server.stop().await;
}

#[tokio::test]
async fn a_move_answers_the_new_moment_and_so_does_every_look() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let id = put(&mut client, value!({"body": 1, "delay": "1h", "keys": ["k"]})).await;
    let at = "2099-01-01T00:00:00.000Z";
    for change in [
        value!({"deliverAt": "2099-01-01T00:00:00Z"}),
        value!({"deliverAt": "2099-01-01T02:00:00+02:00"}),
        value!({"deliverAt": 4_070_908_800_000_u64}),
    ] {
        let answer = patch(&mut client, &id, &change.to_string()).await;
        assert_eq!(answer.status, 200, "{change}");
        assert_eq!(json(&answer), value!({"messageId": id, "deliverAt": at}), "{change}");
        let view = view(&mut client, &id).await;
        assert_eq!((&view["state"], &view["deliverAt"]), (&value!("SCHEDULED"), &value!(at)));
        let found = json(&get(&mut client, &format!("{PATH}?key=k")).await);
        assert_eq!(found["items"], value!([view]));
    }
    // Earlier than it was, and by a delay: from now, not from the moment it had.
    let moved = json(&patch(&mut client, &id, r#"{"delay":"PT1H"}"#).await);
    assert!(moved["deliverAt"].as_str() < Some(at), "{moved}");
    assert_eq!(view(&mut client, &id).await["deliverAt"], moved["deliverAt"]);
    server.stop().await;
}

#[tokio::test]
async fn what_is_over_cannot_be_moved_fired_or_cancelled_and_the_refusal_says_why() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let ready = put(&mut client, value!({"body": 1})).await;
    let past = put(&mut client, value!({"body": 1, "deliverAt": 0})).await;
    let fired = put(&mut client, value!({"body": 1, "delay": "1h"})).await;
    assert_eq!(fire(&mut client, &fired).await.status, 200);
    let cancelled = put(&mut client, value!({"body": 1, "delay": "1h"})).await;
    assert_eq!(delete(&mut client, &format!("/v1/messages/{cancelled}")).await.status, 200);
    let moved = put(&mut client, value!({"body": 1, "delay": "1h"})).await;
    assert_eq!(patch(&mut client, &moved, r#"{"delay":"2h"}"#).await.status, 200);
    assert_eq!(delete(&mut client, &format!("/v1/messages/{moved}")).await.status, 200);
    for (id, state, code) in [
        (&ready, "READY", "ALREADY_DELIVERED"),
        (&past, "READY", "ALREADY_DELIVERED"),
        (&fired, "READY", "ALREADY_DELIVERED"),
        (&cancelled, "CANCELLED", "ALREADY_CANCELLED"),
        (&moved, "CANCELLED", "ALREADY_CANCELLED"),
    ] {
        let conflict = (409, code.to_owned());
        let answer = patch(&mut client, id, r#"{"delay":"1h"}"#).await;
        assert_eq!(refusal(&answer), conflict, "move {id}");
        assert_eq!(refusal(&fire(&mut client, id).await), conflict, "fire {id}");
        let answer = delete(&mut client, &format!("/v1/messages/{id}")).await;
        if state == "CANCELLED" {
            assert_eq!(answer.status, 200);
            assert_eq!(json(&answer), value!({"messageId": id, "state": "CANCELLED"}));
        } else {
            assert_eq!(refusal(&answer), conflict, "cancel {id}");
        }
        assert_eq!(view(&mut client, id).await["state"], state);
    }
    server.stop().await;
}

#[tokio::test]
async fn an_id_that_is_not_ours_is_neither_moved_nor_fired() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let id = put(&mut client, value!({"body": 1, "delay": "1h"})).await;
    for foreign in ["x", "%2e%2e", "%F0%9F%92%A5", &id[1..], &format!("{id}0"), &"f".repeat(4000)] {
        let not_found = (404, "MESSAGE_NOT_FOUND".to_owned());
        let moved = patch(&mut client, foreign, r#"{"delay":"1s"}"#).await;
        assert_eq!(refusal(&moved), not_found, "{foreign}");
        assert_eq!(refusal(&fire(&mut client, foreign).await), not_found, "{foreign}");
        let cancelled = delete(&mut client, &format!("/v1/messages/{foreign}")).await;
        assert_eq!(refusal(&cancelled), not_found, "{foreign}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_moved_message_comes_once_under_its_id_at_the_moment_it_was_moved_to() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let later = put(&mut client, value!({"bodyText": "later", "delay": "1s"})).await;
    let moved = json(&patch(&mut client, &later, r#"{"delay":"1500ms"}"#).await);
    let earlier = put(&mut client, value!({"bodyText": "earlier", "delay": "1h"})).await;
    let hurried = json(&patch(&mut client, &earlier, r#"{"delay":"200ms"}"#).await);
    let now = put(&mut client, value!({"bodyText": "now", "delay": "1h"})).await;
    assert_eq!(patch(&mut client, &now, r#"{"delay":0}"#).await.status, 200);
    put(&mut client, value!({"bodyText": "fence", "delay": "2s"})).await;
    let received = receive_up_to_fence(&server, "workers", "orders").await;
    let ids: Vec<_> = received.iter().map(|message| message["messageId"].as_str()).collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    let mut expected = [Some(&*later), Some(&*earlier), Some(&*now)];
    expected.sort_unstable();
    assert_eq!(sorted, expected, "{received:?}");
    for (id, moved) in [(&later, &moved), (&earlier, &hurried)] {
        let message = received.iter().find(|message| message["messageId"] == id.as_str());
        let message = message.expect("it was received");
        assert_eq!(message["deliverAt"], moved["deliverAt"]);
        assert!(message["firedAt"].as_str() >= moved["deliverAt"].as_str(), "early: {message}");
    }
    server.stop().await;
}

/// An auction's end, put off by every bid (USERS.md, 8): one pending entry, one delivery.
#[tokio::test]
async fn a_message_moved_a_thousand_times_is_pending_once_and_comes_once() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let id = put(&mut client, value!({"bodyText": "auction", "delay": "1h"})).await;
    for second in 0..1000 {
        let change = value!({"delay": format!("{}s", 3600 + second % 7)}).to_string();
        assert_eq!(patch(&mut client, &id, &change).await.status, 200);
    }
    let last = json(&patch(&mut client, &id, r#"{"delay":"300ms"}"#).await);
    put(&mut client, value!({"bodyText": "fence", "delay": "800ms"})).await;
    let received = receive_up_to_fence(&server, "workers", "orders").await;
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0]["messageId"], id.as_str());
    assert_eq!(received[0]["deliverAt"], last["deliverAt"]);
    assert_eq!(received[0]["attempt"], 1);
    while server.figure("horolog_messages_pending").await != "0" {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.figure("horolog_messages_fired_total").await, "2");
    server.stop().await;
}

#[tokio::test]
async fn a_message_that_is_fired_by_hand_keeps_the_moment_it_was_asked_for() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let id = put(&mut client, value!({"bodyText": "x", "delay": "1h"})).await;
    let asked = view(&mut client, &id).await["deliverAt"].clone();
    let path = format!("/v1/messages/{id}/deliver");
    for body in ["{}", "x"] {
        let answer = post(&mut client, &path, body).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{body}");
    }
    let answer = send(&mut client, Method::POST, &format!("{path}?now=1"), &[], "").await;
    assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()));
    assert_eq!(view(&mut client, &id).await["state"], "SCHEDULED");

    let fired = fire(&mut client, &id).await;
    assert_eq!(fired.status, 200);
    let fired = json(&fired);
    assert_eq!((&fired["messageId"], &fired["state"]), (&value!(id), &value!("READY")));
    assert_eq!(refusal(&fire(&mut client, &id).await), (409, "ALREADY_DELIVERED".to_owned()));
    let view = view(&mut client, &id).await;
    assert_eq!(view["state"], "READY");
    assert_eq!(view["deliverAt"], asked, "what was asked stays");
    assert_eq!(view["firedAt"], fired["firedAt"], "and this tells the truth");
    assert!(view["firedAt"].as_str() < asked.as_str(), "{view}");
    let received = receive(&server, "workers", "orders").await;
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0]["messageId"], id.as_str());
    assert_eq!(received[0]["firedAt"], fired["firedAt"]);
    assert_eq!(received[0]["deliverAt"], asked);
    server.stop().await;
}

#[tokio::test]
async fn a_message_moved_and_then_fired_by_hand_tells_both_truths_after_a_restart_too() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let id = put(&mut client, value!({"bodyText": "x", "delay": "1h"})).await;
    let waiting = put(&mut client, value!({"bodyText": "y", "delay": "1h"})).await;
    let moved = json(&patch(&mut client, &id, r#"{"delay":"2h"}"#).await);
    let still = json(&patch(&mut client, &waiting, r#"{"delay":"3h"}"#).await);
    let fired = json(&fire(&mut client, &id).await);
    let server = server.restart().await;
    let mut client = server.client();
    let view_of_fired = view(&mut client, &id).await;
    assert_eq!(view_of_fired["state"], "READY");
    assert_eq!(view_of_fired["deliverAt"], moved["deliverAt"]);
    assert_eq!(view_of_fired["firedAt"], fired["firedAt"]);
    let view_of_waiting = view(&mut client, &waiting).await;
    assert_eq!(view_of_waiting["state"], "SCHEDULED");
    assert_eq!(view_of_waiting["deliverAt"], still["deliverAt"]);
    assert_eq!(fire(&mut client, &waiting).await.status, 200);
    let mut received = Vec::new();
    while received.len() < 2 {
        received.extend(receive(&server, "workers", "orders").await);
    }
    assert_eq!(received.len(), 2, "{received:?}");
    server.stop().await;
}
