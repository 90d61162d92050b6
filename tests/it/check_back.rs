//! Check-back by `checkUrl`: the server asks the producer's server what became of a transaction.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::any;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use horolog::config::Given;
use parking_lot::Mutex;
use serde_json::{Value, json as value};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::fixture::{TestServer, get, json, post, refusal, send};

const PREPARE: &str = "/v1/topics/orders/transactions";

/// What came to the producer's server.
#[derive(Debug)]
struct Came {
    method: Method,
    headers: HeaderMap,
    body: Bytes,
}

type Answers = Arc<(Mutex<VecDeque<(StatusCode, String)>>, mpsc::UnboundedSender<Came>)>;

/// A producer's server that gives these answers, one after the other, and then none that decides anything.
async fn producer(answers: &[(StatusCode, &str)]) -> (SocketAddr, mpsc::UnboundedReceiver<Came>) {
    let (tell, came) = mpsc::unbounded_channel();
    let answers = answers.iter().map(|(status, body)| (*status, (*body).to_owned())).collect();
    let answers: Answers = Arc::new((Mutex::new(answers), tell));
    let router = Router::new().fallback(any(answer)).with_state(answers);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it listens");
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, came)
}

async fn answer(
    State(answers): State<Answers>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let _ = answers.1.send(Came { method, headers, body });
    answers.0.lock().pop_front().unwrap_or((StatusCode::OK, r#"{"state":"UNKNOWN"}"#.to_owned()))
}

async fn server() -> TestServer {
    let given = Given { allow_private_targets: Some("true".to_owned()), ..Given::default() };
    TestServer::start_with(given).await
}

async fn prepare(server: &TestServer, more: Value) -> String {
    let mut half = value!({
        "body": {"order": 1}, "producerGroup": "shop", "checkAfter": "100ms", "checkInterval": "100ms",
    });
    let mut more = more;
    let more = more.as_object_mut().expect("fields");
    half.as_object_mut().expect("an object").append(more);
    let answer = post(&mut server.client(), PREPARE, half.to_string()).await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
    json(&answer)["transactionId"].as_str().expect("an id").to_owned()
}

async fn transaction(server: &TestServer, id: &str) -> Value {
    json(&get(&mut server.client(), &format!("/v1/transactions/{id}")).await)
}

/// Asks until the transaction is in the state; the test's runner has the patience.
async fn comes_to(server: &TestServer, id: &str, state: &str) -> Value {
    loop {
        let view = transaction(server, id).await;
        if view["state"] == state {
            return view;
        }
    }
}

#[tokio::test]
async fn what_the_url_answers_is_what_becomes_of_the_transaction() {
    let answers = [(StatusCode::OK, r#"{"state":"COMMIT"}"#)];
    let (address, mut came) = producer(&answers).await;
    let server = server().await;
    let url = format!("http://{address}/checks?of=shop");
    let id = prepare(&server, value!({"checkUrl": url, "keys": ["k"]})).await;
    let asked = came.recv().await.expect("it is asked");
    assert_eq!(asked.method, Method::POST);
    assert_eq!(asked.headers["content-type"], "application/json");
    let question: Value = serde_json::from_slice(&asked.body).expect("JSON");
    assert_eq!(question["transactionId"], id.as_str());
    assert_eq!(question["topic"], "orders");
    assert_eq!(question["keys"], value!(["k"]));
    assert_eq!(question["body"], value!({"order": 1}));
    assert_eq!(question["check"], 1);
    comes_to(&server, &id, "COMMITTED").await;
    let request = r#"{"topic":"orders","max":10,"wait":"20s"}"#;
    let read = json(&post(&mut server.client(), "/v1/groups/g/receive", request).await);
    assert_eq!(read["messages"][0]["messageId"], id.as_str());
    server.stop().await;
}

#[tokio::test]
async fn a_question_is_signed_as_standard_webhooks_are() {
    // As some write JSON: with an escape where none is needed.
    let answers = [(StatusCode::OK, r#"{"state":"ROLL\u0042ACK"}"#)];
    let (address, mut came) = producer(&answers).await;
    let server = server().await;
    let key = [7_u8; 32];
    let secret = format!("whsec_{}", STANDARD.encode(key));
    let url = format!("http://{address}/");
    let id = prepare(&server, value!({"checkUrl": url, "checkSecret": secret})).await;
    let Came { headers, body, .. } = came.recv().await.expect("it is asked");
    let text = |name: &str| headers[name].to_str().expect("text").to_owned();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any key will do");
    mac.update(format!("{}.{}.", text("webhook-id"), text("webhook-timestamp")).as_bytes());
    mac.update(&body);
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(text("webhook-signature"), expected);
    assert!(text("webhook-id").contains(&id), "{headers:?}");
    comes_to(&server, &id, "ROLLED_BACK").await;
    let shown = transaction(&server, &id).await.to_string();
    assert!(!shown.contains("whsec_"), "{shown}");
    server.stop().await;
}

/// Whatever is no decision counts as none, and the checks come to their end.
#[tokio::test]
async fn an_answer_that_decides_nothing_has_counted() {
    let answers = [
        (StatusCode::OK, r#"{"state":"UNKNOWN"}"#),
        (StatusCode::OK, "COMMIT"),
        (StatusCode::INTERNAL_SERVER_ERROR, r#"{"state":"COMMIT"}"#),
        (StatusCode::OK, r#"{"state":"commit"}"#),
        (StatusCode::FOUND, r#"{"state":"COMMIT"}"#),
    ];
    let (address, mut came) = producer(&answers).await;
    let server = server().await;
    let url = format!("http://{address}/");
    let id = prepare(&server, value!({"checkUrl": url, "maxChecks": 5})).await;
    for check in 1..=5 {
        let asked = came.recv().await.expect("it is asked");
        let question: Value = serde_json::from_slice(&asked.body).expect("JSON");
        assert_eq!(question["check"], check);
    }
    let view = comes_to(&server, &id, "ABANDONED").await;
    assert_eq!(view["checks"], 5);
    server.stop().await;
}

/// A port where nobody listens: nobody was asked, so nothing has counted; and whoever can be reached is.
#[tokio::test]
async fn a_host_that_is_not_reached_costs_no_check_and_nobody_elses_time() {
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let gone_at = gone.local_addr().expect("it listens");
    drop(gone);
    let answers = [(StatusCode::OK, r#"{"state":"COMMIT"}"#)];
    let (address, _came) = producer(&answers).await;
    let server = server().await;
    let lost = value!({
        "checkUrl": format!("http://{gone_at}/"), "maxChecks": 1, "checkInterval": "20s",
    });
    let lost = prepare(&server, lost).await;
    let first = transaction(&server, &lost).await["nextCheckAt"].clone();
    let id = prepare(&server, value!({"checkUrl": format!("http://{address}/")})).await;
    comes_to(&server, &id, "COMMITTED").await;
    // While it is tried its only check is recorded and there is no next. Had it counted, it would end so.
    let view = loop {
        let view = transaction(&server, &lost).await;
        let waits = view["nextCheckAt"].is_string() && view["nextCheckAt"] != first;
        if waits || view["state"] != "PREPARED" {
            break view;
        }
    };
    assert_eq!((&view["state"], &view["checks"]), (&value!("PREPARED"), &value!(0)), "{view}");
    server.stop().await;
}

#[tokio::test]
async fn a_group_is_not_handed_what_is_asked_by_url() {
    let (address, mut came) = producer(&[]).await;
    let server = server().await;
    prepare(&server, value!({"checkUrl": format!("http://{address}/")})).await;
    came.recv().await.expect("it is asked");
    let checks = "/v1/producer-groups/shop/checks";
    let handed = json(&post(&mut server.client(), checks, r#"{"max":10,"wait":"0s"}"#).await);
    assert_eq!(handed, value!({"checks": []}));
    server.stop().await;
}

#[tokio::test]
async fn a_url_that_may_not_be_asked_is_refused() {
    let strict = TestServer::start().await;
    let cases = [
        ("http://example.com/check", "no https"),
        ("https://127.0.0.1/check", "loopback"),
        ("https://[::1]/check", "loopback"),
        ("https://10.0.0.1/check", "private"),
        ("https://169.254.169.254/latest/meta-data", "metadata"),
        ("https://0x7f000001/", "loopback, spelt otherwise"),
        ("https://user:secret@example.com/", "user"),
        ("ftp://example.com/", "scheme"),
        ("not a url", "none"),
    ];
    for (url, why) in cases {
        let half = value!({"body": 1, "producerGroup": "shop", "checkUrl": url}).to_string();
        let answer = post(&mut strict.client(), PREPARE, half).await;
        assert_eq!(refusal(&answer), (422, "URL_NOT_ALLOWED".to_owned()), "{why}: {url}");
    }
    let half = value!({"body": 1, "producerGroup": "shop", "checkUrl": "https://example.com/x"});
    let answer = post(&mut strict.client(), PREPARE, half.to_string()).await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
    for (more, pointer) in [
        (value!({"checkUrl": 1}), "/checkUrl"),
        (value!({"checkSecret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}), "/checkSecret"),
        (value!({"checkUrl": "https://example.com/", "checkSecret": "short"}), "/checkSecret"),
    ] {
        let mut half = value!({"body": 1, "producerGroup": "shop"});
        let mut more = more;
        let more = more.as_object_mut().expect("fields");
        half.as_object_mut().expect("an object").append(more);
        let answer =
            send(&mut strict.client(), Method::POST, PREPARE, &JSON, half.to_string()).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{half}");
        assert_eq!(json(&answer)["errors"][0]["pointer"], format!("#{pointer}"), "{half}");
    }
    strict.stop().await;
}

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
