//! `POST /v1/topics/{topic}/transactions`, `/v1/transactions...`, `POST /v1/producer-groups/{group}/checks`.

use axum::http::Method;
use horolog::client::{Answer, Client};
use serde_json::{Value, json as value};

use crate::fixture::{self, TestServer, get, json, post, refusal, send};

const PREPARE: &str = "/v1/topics/orders/transactions";
const CHECKS: &str = "/v1/producer-groups/shop/checks";

fn half(mut more: Value) -> Value {
    let mut half = value!({"body": {"order": 1}, "producerGroup": "shop"});
    let more = more.as_object_mut().expect("fields");
    half.as_object_mut().expect("an object").append(more);
    half
}

async fn prepare(client: &mut Client, more: Value) -> String {
    let answer = post(client, PREPARE, half(more).to_string()).await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
    json(&answer)["transactionId"].as_str().expect("an id").to_owned()
}

async fn end(client: &mut Client, id: &str, how: &str) -> Answer {
    send(client, Method::POST, &format!("/v1/transactions/{id}/{how}"), &[], "").await
}

async fn receive(client: &mut Client, wait: &str) -> Vec<Value> {
    let request = value!({"topic": "orders", "max": 10, "wait": wait});
    let answer = post(client, "/v1/groups/g/receive", request.to_string()).await;
    json(&answer)["messages"].as_array().expect("messages").clone()
}

async fn state(client: &mut Client, id: &str) -> (String, String) {
    let of = |view: Value| view["state"].as_str().expect("a state").to_owned();
    let message = of(json(&get(client, &format!("/v1/messages/{id}")).await));
    (message, of(json(&get(client, &format!("/v1/transactions/{id}")).await)))
}

fn states(message: &str, transaction: &str) -> (String, String) {
    (message.to_owned(), transaction.to_owned())
}

#[tokio::test]
async fn a_half_message_is_read_by_nobody_until_it_is_committed_and_then_once() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let answer = post(&mut client, PREPARE, half(value!({"keys": ["k"]})).to_string()).await;
    let prepared = json(&answer);
    let id = prepared["transactionId"].as_str().expect("an id").to_owned();
    let expected = value!({"transactionId": id, "messageId": id, "state": "PREPARED"});
    assert_eq!(prepared, expected);
    assert_eq!(answer.headers["location"], format!("/v1/messages/{id}"));
    assert_eq!(state(&mut client, &id).await, states("PREPARED", "PREPARED"));
    assert!(receive(&mut client, "0s").await.is_empty());
    let found = json(&get(&mut client, "/v1/topics/orders/messages?key=k").await);
    assert_eq!(found["items"][0]["state"], "PREPARED", "{found}");
    for _ in 0..2 {
        let answer = end(&mut client, &id, "commit").await;
        assert_eq!(json(&answer), value!({"transactionId": id, "state": "COMMITTED"}));
    }
    assert_eq!(state(&mut client, &id).await, states("READY", "COMMITTED"));
    let received = receive(&mut client, "10s").await;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0]["messageId"], id.as_str());
    assert_eq!(received[0]["body"], value!({"order": 1}));
    assert!(received[0].get("firedAt").is_none());
    assert!(receive(&mut client, "0s").await.is_empty());
    let otherwise = end(&mut client, &id, "rollback").await;
    assert_eq!(refusal(&otherwise), (409, "DECIDED_OTHERWISE".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn what_is_rolled_back_is_never_read() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let id = prepare(&mut client, value!({})).await;
    for _ in 0..2 {
        let answer = end(&mut client, &id, "rollback").await;
        assert_eq!(json(&answer), value!({"transactionId": id, "state": "ROLLED_BACK"}));
    }
    assert_eq!(state(&mut client, &id).await, states("ROLLED_BACK", "ROLLED_BACK"));
    let otherwise = end(&mut client, &id, "commit").await;
    assert_eq!(refusal(&otherwise), (409, "DECIDED_OTHERWISE".to_owned()));
    assert!(receive(&mut client, "0s").await.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn one_with_a_moment_is_scheduled_by_its_commit_like_any_other() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(prepare(&mut client, value!({"delay": "1h"})).await);
    }
    assert_eq!(json(&get(&mut client, "/v1/scheduled").await)["items"], value!([]));
    for id in &ids {
        assert_eq!(end(&mut client, id, "commit").await.status, 200);
        assert_eq!(state(&mut client, id).await, states("SCHEDULED", "COMMITTED"));
    }
    let listed = json(&get(&mut client, "/v1/scheduled?topic=orders").await);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(3), "{listed}");
    // Moved, fired, cancelled.
    let path = |index: usize| format!("/v1/messages/{}", ids[index]);
    let type_ = [("content-type", "application/json")];
    let moved = send(&mut client, Method::PATCH, &path(0), &type_, r#"{"delay":"2h"}"#).await;
    assert_eq!(moved.status, 200, "{}", json(&moved));
    let fired = send(&mut client, Method::POST, &format!("{}/deliver", path(1)), &[], "").await;
    assert_eq!(fired.status, 200, "{}", json(&fired));
    let cancelled = send(&mut client, Method::DELETE, &path(2), &[], "").await;
    assert_eq!(cancelled.status, 200, "{}", json(&cancelled));
    assert_eq!(state(&mut client, &ids[0]).await, states("SCHEDULED", "COMMITTED"));
    assert_eq!(state(&mut client, &ids[1]).await, states("READY", "COMMITTED"));
    assert_eq!(state(&mut client, &ids[2]).await, states("CANCELLED", "COMMITTED"));
    let fired = json(&get(&mut client, &path(1)).await);
    assert!(fired["firedAt"].is_string(), "{fired}");
    let received = receive(&mut client, "10s").await;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0]["messageId"], ids[1].as_str());
    for (id, how) in [(&ids[1], "rollback"), (&ids[2], "rollback")] {
        let answer = end(&mut client, id, how).await;
        assert_eq!(refusal(&answer), (409, "DECIDED_OTHERWISE".to_owned()));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_moment_that_has_passed_by_the_commit_means_now() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let id = prepare(&mut client, value!({"delay": "1ms", "checkAfter": "1h"})).await;
    // A look at the clock of the server: it has moved on once a later put shows a later time.
    loop {
        let view = json(&get(&mut client, &format!("/v1/messages/{id}")).await);
        let later = prepare(&mut client, value!({"checkAfter": "1h"})).await;
        let later = json(&get(&mut client, &format!("/v1/messages/{later}")).await);
        if later["bornAt"].as_str() > view["deliverAt"].as_str() {
            break;
        }
    }
    assert_eq!(end(&mut client, &id, "commit").await.status, 200);
    let view = json(&get(&mut client, &format!("/v1/messages/{id}")).await);
    assert_eq!(view["state"], "READY");
    assert!(view["firedAt"].is_string(), "{view}");
    assert_eq!(receive(&mut client, "10s").await.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn an_open_one_cannot_be_moved_fired_or_cancelled() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for more in [value!({}), value!({"delay": "1h"})] {
        let id = prepare(&mut client, more).await;
        let path = format!("/v1/messages/{id}");
        for (method, path, body) in [
            (Method::PATCH, path.clone(), r#"{"delay":"1h"}"#),
            (Method::DELETE, path.clone(), ""),
            (Method::POST, format!("{path}/deliver"), ""),
        ] {
            let type_ = [("content-type", "application/json")];
            let answer = send(&mut client, method.clone(), &path, &type_, body).await;
            let open = (409, "TRANSACTION_OPEN".to_owned());
            assert_eq!(refusal(&answer), open, "{method} {path}");
        }
        assert_eq!(state(&mut client, &id).await, states("PREPARED", "PREPARED"));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_producer_is_asked_and_its_answer_ends_it() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let more = value!({"checkAfter": "100ms", "keys": ["k"], "properties": {"a": "b"}});
    let id = prepare(&mut client, more).await;
    let view = json(&get(&mut client, &format!("/v1/transactions/{id}")).await);
    assert_eq!((&view["checks"], &view["maxChecks"]), (&value!(0), &value!(15)));
    assert!(view["nextCheckAt"].is_string(), "{view}");
    let answer = post(&mut client, CHECKS, r#"{"max":10,"wait":"10s"}"#).await;
    let answer = json(&answer);
    let checks = answer["checks"].as_array().expect("checks");
    assert_eq!(checks.len(), 1, "{answer}");
    let check = &checks[0];
    assert_eq!(check["transactionId"], id.as_str());
    assert_eq!(check["messageId"], id.as_str());
    assert_eq!(check["topic"], "orders");
    assert_eq!(check["keys"], value!(["k"]));
    assert_eq!(check["properties"], value!({"a": "b"}));
    assert_eq!(check["body"], value!({"order": 1}));
    assert_eq!(check["check"], 1);
    let view = json(&get(&mut client, &format!("/v1/transactions/{id}")).await);
    assert_eq!(view["checks"], 1, "{view}");
    assert_eq!(end(&mut client, &id, "commit").await.status, 200);
    assert_eq!(receive(&mut client, "10s").await.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn after_the_last_check_it_is_abandoned_and_can_be_resumed() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let more = value!({"checkAfter": "100ms", "checkInterval": "100ms", "maxChecks": 2});
    let id = prepare(&mut client, more).await;
    let not_yet = end(&mut client, &id, "resume").await;
    assert_eq!(refusal(&not_yet), (409, "TRANSACTION_NOT_ABANDONED".to_owned()));
    for round in 0..2 {
        for expected in 1..=2 {
            let answer = json(&post(&mut client, CHECKS, r#"{"wait":"10s"}"#).await);
            assert_eq!(answer["checks"][0]["check"], expected, "round {round}: {answer}");
        }
        let path = format!("/v1/transactions/{id}");
        while json(&get(&mut client, &path).await)["state"] != "ABANDONED" {
            tokio::task::yield_now().await;
        }
        assert_eq!(state(&mut client, &id).await, states("ABANDONED", "ABANDONED"));
        for how in ["commit", "rollback"] {
            let answer = end(&mut client, &id, how).await;
            assert_eq!(refusal(&answer), (410, "TRANSACTION_ABANDONED".to_owned()), "{how}");
        }
        let listed = json(&get(&mut client, "/v1/transactions?state=ABANDONED").await);
        assert_eq!(listed["items"][0]["transactionId"], id.as_str(), "{listed}");
        assert_eq!(listed["items"][0]["checks"], 2, "{listed}");
        let resumed = end(&mut client, &id, "resume").await;
        assert_eq!(json(&resumed), value!({"transactionId": id, "state": "PREPARED"}));
    }
    assert_eq!(end(&mut client, &id, "commit").await.status, 200);
    assert_eq!(receive(&mut client, "10s").await.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_list_is_of_what_the_query_names_page_by_page() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(prepare(&mut client, value!({})).await);
    }
    end(&mut client, &ids[1], "commit").await;
    end(&mut client, &ids[2], "rollback").await;
    let others = "/v1/topics/others/transactions";
    let other = json(&post(&mut client, others, half(value!({})).to_string()).await);
    ids.push(other["transactionId"].as_str().expect("an id").to_owned());
    // A half is listed once it is in its queue.
    let all = "/v1/transactions?limit=1000";
    while json(&get(&mut client, all).await)["items"].as_array().map(Vec::len) != Some(5) {
        tokio::task::yield_now().await;
    }
    for (query, expected) in [
        ("", &[0, 1, 2, 3, 4][..]),
        ("state=PREPARED&", &[0, 3, 4]),
        ("state=COMMITTED&", &[1]),
        ("state=ROLLED_BACK&", &[2]),
        ("state=ABANDONED&", &[]),
        ("topic=others&", &[4]),
        ("topic=orders&state=PREPARED&", &[0, 3]),
    ] {
        let expected: Vec<_> = expected.iter().map(|&index| ids[index].clone()).collect();
        let (mut listed, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/v1/transactions?{query}limit=2{cursor}");
            let page = json(&get(&mut client, &path).await);
            let items = page["items"].as_array().expect("items");
            assert!(items.len() <= 2);
            listed.extend(
                items.iter().map(|item| item["transactionId"].as_str().expect("an id").to_owned()),
            );
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(listed, expected, "{query}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_same_request_under_its_key_is_one_transaction() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    let body = half(value!({})).to_string();
    let first = send(&mut client, Method::POST, PREPARE, &headers, body.clone()).await;
    let again = send(&mut client, Method::POST, PREPARE, &headers, body).await;
    assert_eq!((first.status, again.status), (axum::http::StatusCode::CREATED, first.status));
    assert_eq!(json(&first), json(&again));
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let other = half(value!({"maxChecks": 1})).to_string();
    let other = send(&mut client, Method::POST, PREPARE, &headers, other).await;
    assert_eq!(refusal(&other), (422, "IDEMPOTENCY_KEY_REUSED".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn typed_topics_take_transactions_or_do_not() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for (of, takes) in [
        ("MIXED", true),
        ("TRANSACTION", true),
        ("NORMAL", false),
        ("DELAY", false),
        ("FIFO", false),
    ] {
        let topic = format!("/v1/topics/of-{of}");
        let type_ = [("content-type", "application/json")];
        let set = value!({"type": of}).to_string();
        assert_eq!(send(&mut client, Method::PUT, &topic, &type_, set).await.status, 201);
        let path = format!("{topic}/transactions");
        let answer = post(&mut client, &path, half(value!({"delay": "1h"})).to_string()).await;
        if takes {
            assert_eq!(answer.status, 201, "{of}");
        } else {
            assert_eq!(refusal(&answer), (409, "TOPIC_TYPE_MISMATCH".to_owned()), "{of}");
        }
    }
    let direct = post(&mut client, "/v1/topics/of-TRANSACTION/messages", r#"{"body":1}"#).await;
    assert_eq!(refusal(&direct), (409, "TOPIC_TYPE_MISMATCH".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn what_is_malformed_is_refused_and_nothing_is_stored() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for (more, pointer) in [
        (value!({"producerGroup": "a b"}), "/producerGroup"),
        (value!({"checkAfter": "99ms"}), "/checkAfter"),
        (value!({"checkAfter": null}), "/checkAfter"),
        (value!({"checkInterval": "99ms"}), "/checkInterval"),
        (value!({"checkInterval": "soon"}), "/checkInterval"),
        (value!({"maxChecks": 0}), "/maxChecks"),
        (value!({"maxChecks": 1001}), "/maxChecks"),
        (value!({"maxChecks": "1"}), "/maxChecks"),
        (value!({"maxChecks": null}), "/maxChecks"),
        (value!({"abandonAfter": "0s"}), "/abandonAfter"),
        (value!({"abandonAfter": "40000d"}), "/abandonAfter"),
    ] {
        let answer = post(&mut client, PREPARE, half(more.clone()).to_string()).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{more}");
        assert_eq!(json(&answer)["errors"][0]["pointer"], format!("#{pointer}"), "{more}");
    }
    for body in
        [r#"{"body":1}"#, r#"{"producerGroup":"g"}"#, r#"{"body":1,"producergroup":"g"}"#, ""]
    {
        let answer = post(&mut client, PREPARE, body).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{body}");
    }
    let raw = [("content-type", "text/plain")];
    let answer = send(&mut client, Method::POST, PREPARE, &raw, "x").await;
    assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()));
    let group = half(value!({"producerGroup": "rmq_sys_x"})).to_string();
    assert_eq!(
        refusal(&post(&mut client, PREPARE, group).await),
        (400, "RESERVED_NAME".to_owned())
    );
    // A put is no transaction.
    let put = post(&mut client, "/v1/topics/orders/messages", half(value!({})).to_string()).await;
    assert_eq!(refusal(&put), (400, "INVALID_REQUEST".to_owned()));
    for path in ["?state=OPEN", "?limit=0", "?cursor=x", "?nope=1", "?topic=a%20b"] {
        let answer = get(&mut client, &format!("/v1/transactions{path}")).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{path}");
    }
    let missing = get(&mut client, "/v1/transactions?topic=RMQ_SYS_TRANS_HALF_TOPIC").await;
    assert_eq!(refusal(&missing), (404, "TOPIC_NOT_FOUND".to_owned()));
    for body in [r#"{"max":0}"#, r#"{"max":257}"#, r#"{"wait":"31s"}"#, r#"{"what":1}"#, ""] {
        let answer = post(&mut client, CHECKS, body).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{body}");
    }
    assert_eq!(json(&get(&mut client, "/v1/transactions").await)["items"], value!([]));
    server.stop().await;
}

#[tokio::test]
async fn an_id_that_is_no_transactions_is_not_found() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let put = post(&mut client, "/v1/topics/orders/messages", r#"{"body":1}"#).await;
    let message = json(&put)["messageId"].as_str().expect("an id").to_owned();
    for id in [message.as_str(), "x", "AAAAAAAAAAAAAAAAAAAAAA"] {
        let not_found = (404, "TRANSACTION_NOT_FOUND".to_owned());
        for how in ["commit", "rollback", "resume"] {
            assert_eq!(refusal(&end(&mut client, id, how).await), not_found, "{how} {id}");
        }
        let answer = get(&mut client, &format!("/v1/transactions/{id}")).await;
        assert_eq!(refusal(&answer), not_found, "{id}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_topics_deletion_ends_its_transactions_and_the_holding_topics_are_read_by_nobody() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let id = prepare(&mut client, value!({"checkAfter": "100ms"})).await;
    let deleted = send(&mut client, Method::DELETE, "/v1/topics/orders?force=true", &[], "").await;
    assert_eq!(deleted.status, 204);
    for how in ["commit", "rollback"] {
        let answer = end(&mut client, &id, how).await;
        assert_eq!(refusal(&answer), (404, "TRANSACTION_NOT_FOUND".to_owned()), "{how}");
    }
    // What is put after it is readable: dispatch has come past the half message.
    let later = post(&mut client, "/v1/topics/later/messages", r#"{"body":1}"#).await;
    assert_eq!(later.status, 201);
    assert_eq!(fixture::receive(&server, "g", "later").await.len(), 1);
    // One half message, and nothing decided of it: where they stand can be looked at, and not read.
    for (topic, units) in [("RMQ_SYS_TRANS_HALF_TOPIC", 1), ("RMQ_SYS_TRANS_OP_HALF_TOPIC", 0)] {
        let answer = get(&mut client, &format!("/v1/topics/{topic}")).await;
        assert_eq!(json(&answer)["queues"][0]["nextOffset"], units, "{topic}");
        let request = value!({"topic": topic}).to_string();
        let answer = post(&mut client, "/v1/groups/g/receive", request).await;
        assert_eq!(refusal(&answer), (404, "TOPIC_NOT_FOUND".to_owned()), "{topic}");
    }
    server.stop().await;
}
