//! `POST /v1/groups/{group}/receive`, `.../ack`, `.../extend`.

use serde_json::{Value, json as value};

use crate::fixture::{TestServer, json, post, refusal};

const RECEIVE: &str = "/v1/groups/workers/receive";
const ACK: &str = "/v1/groups/workers/ack";
const EXTEND: &str = "/v1/groups/workers/extend";

async fn put(server: &TestServer, body: &str) {
    let answer = post(&mut server.client(), "/v1/topics/orders/messages", body.to_owned()).await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
}

/// Receives one message of the topic, which must be there.
async fn receive_one(server: &TestServer, request: &str) -> Value {
    let answer = post(&mut server.client(), RECEIVE, request.to_owned()).await;
    assert_eq!(answer.status, 200, "{}", json(&answer));
    json(&answer)["messages"][0].clone()
}

#[tokio::test]
async fn a_malformed_receive_is_refused() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for (path, body, code) in [
        (RECEIVE, "", "INVALID_REQUEST"),
        (RECEIVE, "{}", "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":1}"#, "INVALID_REQUEST"),
        // The values of its members, in the order of their declaration.
        (RECEIVE, r#"["orders",1,null,null,null]"#, "INVALID_REQUEST"),
        (ACK, r#"[["h"]]"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":""}"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":"a b"}"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":"orders","mx":1}"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":"orders","max":0}"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":"orders","max":257}"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":"orders","max":-1}"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":"orders","wait":"31s"}"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":"orders","wait":30001}"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":"orders","wait":-1}"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":"orders","wait":"long"}"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":"orders","invisibleFor":"-1s"}"#, "INVALID_REQUEST"),
        (RECEIVE, r#"{"topic":"orders","invisibleFor":18446744073709551615}"#, "INVALID_REQUEST"),
        ("/v1/groups/a%20b/receive", r#"{"topic":"orders"}"#, "INVALID_REQUEST"),
        ("/v1/groups/%25RETRY%25g/receive", r#"{"topic":"orders"}"#, "RESERVED_NAME"),
        (ACK, "", "INVALID_REQUEST"),
        (ACK, "{}", "INVALID_REQUEST"),
        (ACK, r#"{"receiptHandles":"h"}"#, "INVALID_REQUEST"),
        (ACK, r#"{"receiptHandles":[1]}"#, "INVALID_REQUEST"),
        (ACK, r#"{"receiptHandle":"h"}"#, "INVALID_REQUEST"),
        (EXTEND, "{}", "INVALID_REQUEST"),
        (EXTEND, r#"{"receiptHandle":"h"}"#, "INVALID_REQUEST"),
        (EXTEND, r#"{"receiptHandle":"h","invisibleFor":"-1s"}"#, "INVALID_REQUEST"),
        (EXTEND, r#"{"receiptHandle":"h","invisibleFor":"1s","x":1}"#, "INVALID_REQUEST"),
    ] {
        let answer = post(&mut client, path, body).await;
        assert_eq!(refusal(&answer), (400, code.to_owned()), "{path} {body}");
    }
    let handles = format!("{{\"receiptHandles\":[{}\"h\"]}}", "\"h\",".repeat(1000));
    let answer = post(&mut client, ACK, handles).await;
    assert_eq!(refusal(&answer), (413, "BATCH_TOO_LARGE".to_owned()));
    let answer = post(&mut client, ACK, vec![b' '; 1024 * 1024 + 1]).await;
    assert_eq!(refusal(&answer), (413, "BODY_TOO_LARGE".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn a_message_is_received_leased_and_acked() {
    let server = TestServer::start().await;
    let mut client = server.client();
    put(&server, r#"{"body":{"order":17},"tag":"t","properties":{"a":"b"}}"#).await;
    let message = receive_one(&server, r#"{"topic":"orders","wait":"10s"}"#).await;
    assert_eq!(message["body"], value!({"order": 17}));
    assert_eq!(message["tag"], "t");
    assert_eq!(message["properties"], value!({"a": "b"}));
    assert_eq!(message["attempt"], 1);
    assert_eq!(message["topic"], "orders");
    assert!(message["queueId"].is_u64() && message["queueOffset"].is_u64(), "{message}");
    assert!(message["invisibleUntil"].as_str() > message["bornAt"].as_str(), "{message}");
    assert!(message.get("firedAt").is_none(), "it was never timed: {message}");

    let leased = post(&mut client, RECEIVE, r#"{"topic":"orders"}"#).await;
    assert_eq!(json(&leased), value!({"messages": []}));

    let handle = message["receiptHandle"].clone();
    let extend = value!({"receiptHandle": handle, "invisibleFor": "1m"}).to_string();
    let extended = json(&post(&mut client, EXTEND, extend.clone()).await);
    assert_eq!(extended["receiptHandle"], handle);
    assert!(extended["invisibleUntil"].as_str() > message["invisibleUntil"].as_str());

    let ack = value!({"receiptHandles": [handle, "foreign"]}).to_string();
    for _ in 0..2 {
        let answer = post(&mut client, ACK, ack.clone()).await;
        assert_eq!(
            json(&answer),
            value!({"results": [
                {"receiptHandle": handle, "status": "ok"},
                {"receiptHandle": "foreign", "status": "INVALID_RECEIPT_HANDLE"},
            ]})
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_receipt_handle_is_good_for_its_own_group_and_untouched_only() {
    let server = TestServer::start().await;
    let mut client = server.client();
    put(&server, r#"{"bodyText":"x"}"#).await;
    let message = receive_one(&server, r#"{"topic":"orders","wait":"10s"}"#).await;
    let handle = message["receiptHandle"].as_str().expect("a handle is text").to_owned();
    let last = if handle.ends_with('1') { "2" } else { "1" };
    let tampered = format!("{}{last}", &handle[..handle.len() - 1]);
    for (group, handle) in [
        ("others", handle.as_str()),
        ("workers", &tampered),
        ("workers", ""),
        ("workers", "\u{1}é"),
    ] {
        let extend = value!({"receiptHandle": handle, "invisibleFor": "1m"}).to_string();
        let answer = post(&mut client, &format!("/v1/groups/{group}/extend"), extend).await;
        let invalid = (409, "INVALID_RECEIPT_HANDLE".to_owned());
        assert_eq!(refusal(&answer), invalid, "{group} {handle}");
        let ack = value!({"receiptHandles": [handle]}).to_string();
        let answer = json(&post(&mut client, &format!("/v1/groups/{group}/ack"), ack).await);
        assert_eq!(answer["results"][0]["status"], "INVALID_RECEIPT_HANDLE", "{group} {handle}");
    }
    let extend = value!({"receiptHandle": handle, "invisibleFor": "1m"}).to_string();
    assert_eq!(post(&mut client, EXTEND, extend).await.status, 200);
    server.stop().await;
}

/// What waits for its moment stands in a holding topic, which has a name like any other: a receive of it
/// handed messages out before they were due.
#[tokio::test]
async fn nobody_receives_from_a_holding_topic_what_is_not_due() {
    let server = TestServer::start().await;
    put(&server, r#"{"bodyText":"x","delay":"1h"}"#).await;
    while server.figure("horolog_messages_pending").await != "1" {}
    for topic in ["rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC"] {
        let request = value!({"topic": topic, "max": 10}).to_string();
        let answer = post(&mut server.client(), RECEIVE, request).await;
        assert_eq!(refusal(&answer), (404, "TOPIC_NOT_FOUND".to_owned()), "{topic}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_answer_is_bounded_in_bytes_and_the_rest_comes_with_the_next() {
    let server = TestServer::start().await;
    let large = format!(r#"{{"bodyText":"{}"}}"#, "x".repeat(3 << 20));
    for _ in 0..4 {
        put(&server, &large).await;
    }
    let mut counts = Vec::new();
    while counts.iter().sum::<usize>() < 4 {
        let request = r#"{"topic":"orders","max":256,"wait":"10s"}"#.to_owned();
        let answer = json(&post(&mut server.client(), RECEIVE, request).await);
        let messages = answer["messages"].as_array().expect("a list").clone();
        assert!(messages.iter().all(|message| message["attempt"] == 1), "given back unseen");
        counts.push(messages.len());
    }
    // 8 MiB and the body that passes them, at most.
    assert!(counts.iter().all(|count| (1..=3).contains(count)), "{counts:?}");
    assert_eq!(counts.iter().sum::<usize>(), 4);
    server.stop().await;
}

#[tokio::test]
async fn a_timed_message_ends_a_long_poll_at_its_moment_and_not_before() {
    let server = TestServer::start().await;
    put(&server, r#"{"bodyText":"x","delay":"300ms"}"#).await;
    let early = post(&mut server.client(), RECEIVE, r#"{"topic":"orders"}"#).await;
    assert_eq!(json(&early), value!({"messages": []}));
    let message = receive_one(&server, r#"{"topic":"orders","wait":"20s"}"#).await;
    assert_eq!(message["bodyText"], "x");
    assert!(message["firedAt"].as_str() >= message["deliverAt"].as_str(), "{message}");
    server.stop().await;
}

#[tokio::test]
async fn waiting_receives_end_with_nothing_when_the_server_stops() {
    let server = TestServer::start().await;
    put(&server, r#"{"bodyText":"x","delay":"1h"}"#).await;
    let mut client = server.client();
    let waiting = tokio::spawn(async move {
        post(&mut client, RECEIVE, r#"{"topic":"orders","wait":"30s"}"#).await
    });
    while server.figure("horolog_receives_waiting").await != "1" {
        tokio::task::yield_now().await;
    }
    server.stop().await;
    let answer = waiting.await.expect("the task was not aborted");
    assert_eq!(answer.status, 200);
    assert_eq!(json(&answer), value!({"messages": []}));
}

#[tokio::test]
async fn one_receive_too_many_is_told_to_come_back() {
    let given = horolog::config::Given {
        max_waiting_receives: Some("1".to_owned()),
        ..horolog::config::Given::default()
    };
    let server = TestServer::start_with(given).await;
    put(&server, r#"{"bodyText":"x","delay":"1h"}"#).await;
    let mut client = server.client();
    let waiting = tokio::spawn(async move {
        post(&mut client, RECEIVE, r#"{"topic":"orders","wait":"30s"}"#).await
    });
    while server.figure("horolog_receives_waiting").await != "1" {
        tokio::task::yield_now().await;
    }
    let mut client = server.client();
    let answer = post(&mut client, RECEIVE, r#"{"topic":"orders","wait":"1s"}"#).await;
    assert_eq!(refusal(&answer), (429, "TOO_MANY_WAITING".to_owned()));
    assert_eq!(answer.headers["retry-after"], "1");
    let answer = post(&mut client, RECEIVE, r#"{"topic":"orders"}"#).await;
    assert_eq!(answer.status, 200, "one that does not wait is no trouble");
    server.stop().await;
    assert_eq!(waiting.await.expect("the task was not aborted").status, 200);
}
