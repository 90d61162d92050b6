//! `GET` and `DELETE /v1/messages/{id}`.

use axum::http::Method;

use crate::fixture::{TestServer, get, json, post, refusal, send};

async fn put(server: &TestServer, body: &str) -> String {
    let answer = post(&mut server.client(), "/v1/topics/orders/messages", body.to_owned()).await;
    json(&answer)["messageId"].as_str().expect("the put was answered with an id").to_owned()
}

#[tokio::test]
async fn a_message_is_shown_with_its_body_only_when_that_is_asked_for() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let id = put(&server, r#"{"body":{"a":[1.50]},"delay":"1h","keys":["k"]}"#).await;
    let view = json(&get(&mut client, &format!("/v1/messages/{id}")).await);
    assert_eq!(view["messageId"], id.as_str());
    assert_eq!(view["state"], "SCHEDULED");
    assert_eq!(view["keys"], serde_json::json!(["k"]));
    assert_eq!(view["tag"], serde_json::Value::Null);
    assert_eq!(view["contentType"], "application/json");
    assert!(view.get("body").is_none() && view.get("firedAt").is_none(), "{view}");
    assert!(view["bornAt"].as_str() < view["deliverAt"].as_str(), "{view}");
    let answer = get(&mut client, &format!("/v1/messages/{id}?body=true")).await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(text.contains(r#""body":{"a":[1.50]}"#), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn a_cancelled_message_stays_cancelled_and_a_delivered_one_delivered() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let pending = format!("/v1/messages/{}", put(&server, r#"{"body":1,"delay":"1h"}"#).await);
    for _ in 0..2 {
        let answer = send(&mut client, Method::DELETE, &pending, &[], "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(json(&answer)["state"], "CANCELLED");
    }
    assert_eq!(json(&get(&mut client, &pending).await)["state"], "CANCELLED");
    let ready = format!("/v1/messages/{}", put(&server, r#"{"body":1}"#).await);
    let answer = send(&mut client, Method::DELETE, &ready, &[], "").await;
    assert_eq!(refusal(&answer), (409, "ALREADY_DELIVERED".to_owned()));
    assert_eq!(json(&get(&mut client, &ready).await)["state"], "READY");
    server.stop().await;
}

#[tokio::test]
async fn an_id_that_is_not_ours_is_not_found() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let id = put(&server, r#"{"body":1,"delay":"1h"}"#).await;
    let mut tampered = id.clone().into_bytes();
    for byte in &mut tampered {
        *byte = if *byte == b'0' { b'1' } else { b'0' };
    }
    let tampered = String::from_utf8_lossy(&tampered).into_owned();
    let longer = format!("{id}0");
    let huge = "f".repeat(4000);
    for foreign in ["x", "0", "%2e%2e", "%00", "%F0%9F%92%A5", &id[1..], &longer, &tampered, &huge]
    {
        let path = format!("/v1/messages/{foreign}");
        for method in [Method::GET, Method::DELETE] {
            let answer = send(&mut client, method.clone(), &path, &[], "").await;
            let not_found = (404, "MESSAGE_NOT_FOUND".to_owned());
            assert_eq!(refusal(&answer), not_found, "{method} {foreign}");
        }
    }
    assert_eq!(json(&get(&mut client, &format!("/v1/messages/{id}")).await)["state"], "SCHEDULED");
    server.stop().await;
}

#[tokio::test]
async fn a_parameter_or_header_that_nobody_knows_is_refused() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let path = format!("/v1/messages/{}", put(&server, r#"{"body":1,"delay":"1h"}"#).await);
    for (method, path, headers) in [
        (Method::GET, format!("{path}?bdoy=true"), vec![]),
        (Method::GET, format!("{path}?body=maybe"), vec![]),
        (Method::GET, format!("{path}?body=true&body=true"), vec![]),
        (Method::DELETE, format!("{path}?force=true"), vec![]),
        (Method::DELETE, path.clone(), vec![("horolog-delay", "1s")]),
    ] {
        let answer = send(&mut client, method.clone(), &path, &headers, "").await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{method} {path}");
    }
    assert_eq!(json(&get(&mut client, &path).await)["state"], "SCHEDULED");
    server.stop().await;
}
