//! `POST /v1/groups/{group}/offsets/reset`.

use serde_json::{Value, json as value};

use crate::fixture::{TestServer, json, post, refusal};
use crate::group_settings::{put, receive, receive_all, texts};

const RESET: &str = "/v1/groups/workers/offsets/reset";

async fn reset(server: &TestServer, to: Value) -> Value {
    let body = value!({"topic": "orders", "to": to}).to_string();
    let answer = post(&mut server.client(), RESET, body).await;
    assert_eq!(answer.status, 200, "{to}: {}", json(&answer));
    let answer = json(&answer);
    assert_eq!(answer["topic"], "orders");
    answer["queues"].clone()
}

async fn ack(server: &TestServer, messages: &[Value]) -> Vec<Value> {
    let handles: Vec<_> = messages.iter().map(|message| &message["receiptHandle"]).collect();
    let body = value!({"receiptHandles": handles}).to_string();
    let answer = json(&post(&mut server.client(), "/v1/groups/workers/ack", body).await);
    let results = answer["results"].as_array().expect("a list").iter();
    results.map(|result| result["status"].clone()).collect()
}

fn queues(offsets: [u64; 4]) -> Value {
    let queues = (0..)
        .zip(offsets)
        .map(|(queue, offset): (u16, u64)| value!({"queueId": queue, "offset": offset}));
    queues.collect()
}

#[tokio::test]
async fn a_reset_that_cannot_be_is_refused() {
    let server = TestServer::start().await;
    put(&server, "orders", "one", None).await;
    receive_all(&server, "workers", "orders", 1).await;
    for (body, pointer) in [
        ("", ""),
        ("{}", "#/topic"),
        (r#"{"topic":"orders"}"#, "#/to"),
        (r#"{"to":"latest"}"#, "#/topic"),
        (r#"{"topic":1,"to":"latest"}"#, "#/topic"),
        (r#"{"topic":"a b","to":"latest"}"#, "#/topic"),
        (r#"{"topic":"orders","to":"latest","x":1}"#, "#/x"),
        (r#"{"topic":"orders","to":"begin"}"#, "#/to"),
        (r#"{"topic":"orders","to":null}"#, "#/to"),
        (r#"{"topic":"orders","to":[0]}"#, "#/to"),
        (r#"{"topic":"orders","to":-1}"#, "#/to"),
        (r#"{"topic":"orders","to":1.5}"#, "#/to"),
        (r#"{"topic":"orders","to":"2026-02-30T00:00:00Z"}"#, "#/to"),
        (r#"{"topic":"orders","to":{}}"#, "#/to"),
        (r#"{"topic":"orders","to":{"a":0}}"#, "#/to/a"),
        (r#"{"topic":"orders","to":{"00":0}}"#, "#/to/00"),
        (r#"{"topic":"orders","to":{"-1":0}}"#, "#/to/-1"),
        (r#"{"topic":"orders","to":{"65536":0}}"#, "#/to/65536"),
        (r#"{"topic":"orders","to":{"0":0,"0":0}}"#, "#/to/0"),
        (r#"{"topic":"orders","to":{"0":"0"}}"#, "#/to/0"),
        (r#"{"topic":"orders","to":{"0":-1}}"#, "#/to/0"),
        (r#"{"topic":"orders","to":{"0":0,"4":0}}"#, "#/to/4"),
        (r#"{"topic":"orders","to":{"0":2}}"#, "#/to/0"),
        (r#"{"topic":"orders","to":{"3":18446744073709551615}}"#, "#/to/3"),
    ] {
        let answer = post(&mut server.client(), RESET, body).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{body}");
        let errors = json(&answer)["errors"].clone();
        assert_eq!(errors[0]["pointer"].as_str().unwrap_or_default(), pointer, "{body}: {errors}");
    }
    let latest = r#"{"topic":"orders","to":"latest"}"#;
    let no_topic = r#"{"topic":"refunds","to":"latest"}"#;
    let system = r#"{"topic":"rmq_sys_wheel_timer","to":"earliest"}"#;
    for (path, body, expected) in [
        ("/v1/groups/others/offsets/reset", latest, (404, "GROUP_NOT_FOUND")),
        (RESET, no_topic, (404, "TOPIC_NOT_FOUND")),
        (RESET, system, (404, "TOPIC_NOT_FOUND")),
        ("/v1/groups/%25RETRY%25g/offsets/reset", latest, (400, "RESERVED_NAME")),
        ("/v1/groups/workers/offsets/reset?x=1", latest, (400, "INVALID_REQUEST")),
    ] {
        let answer = post(&mut server.client(), path, body).await;
        assert_eq!(refusal(&answer), (expected.0, expected.1.to_owned()), "{path} {body}");
    }
    server.stop().await;
}

#[tokio::test]
async fn after_a_reset_everything_from_there_on_comes_again() {
    let server = TestServer::start().await;
    for body in ["0", "1", "2", "3", "4"] {
        put(&server, "orders", body, None).await;
    }
    let first = receive_all(&server, "workers", "orders", 5).await;
    assert_eq!(ack(&server, &first).await, ["ok"; 5]);
    let end = |of: &[Value]| {
        let mut ends = [0; 4];
        for message in of {
            let queue = usize::try_from(message["queueId"].as_u64().unwrap()).unwrap();
            ends[queue] = ends[queue].max(message["queueOffset"].as_u64().unwrap() + 1);
        }
        ends
    };
    let ends = end(&first);

    assert_eq!(reset(&server, value!("earliest")).await, queues([0; 4]));
    assert_eq!(ack(&server, &first).await, ["INVALID_RECEIPT_HANDLE"; 5]);
    let again = receive_all(&server, "workers", "orders", 5).await;
    assert_eq!(texts(&again), ["0", "1", "2", "3", "4"]);
    assert!(again.iter().all(|message| message["attempt"] == 1), "{again:?}");
    assert_eq!(ack(&server, &again[..1]).await, ["ok"]);

    assert_eq!(reset(&server, value!("latest")).await, queues(ends));
    let nothing = receive(&server, "workers", value!({"topic": "orders", "max": 10})).await;
    assert_eq!(nothing, [] as [Value; 0]);

    assert_eq!(reset(&server, value!(0)).await, queues([0; 4]));
    assert_eq!(reset(&server, value!("2026-01-01T00:00:00+01:00")).await, queues([0; 4]));
    assert_eq!(reset(&server, value!("2200-01-01T00:00:00Z")).await, queues(ends));
    // One queue; the others stay.
    let queue = again[0]["queueId"].as_u64().unwrap();
    let mut expected = ends;
    expected[usize::try_from(queue).unwrap()] = 0;
    assert_eq!(reset(&server, value!({queue.to_string(): 0})).await, queues(expected));
    let count = again.iter().filter(|message| message["queueId"] == queue).count();
    let of_queue = receive_all(&server, "workers", "orders", count).await;
    assert!(of_queue.iter().all(|message| message["queueId"] == queue), "{of_queue:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_reset_voids_the_handles_of_its_topic_and_no_others() {
    let server = TestServer::start().await;
    for topic in ["orders", "refunds"] {
        put(&server, topic, topic, None).await;
    }
    let order = receive_all(&server, "workers", "orders", 1).await;
    let refund = receive_all(&server, "workers", "refunds", 1).await;
    let queue = order[0]["queueId"].as_u64().unwrap();
    // Another queue than the message's: its handle is void all the same, and it comes again.
    let other = ((queue + 1) % 4).to_string();
    reset(&server, value!({other: 0})).await;
    let extend = value!({"receiptHandle": order[0]["receiptHandle"], "invisibleFor": "1m"});
    let answer = post(&mut server.client(), "/v1/groups/workers/extend", extend.to_string()).await;
    assert_eq!(refusal(&answer), (409, "INVALID_RECEIPT_HANDLE".to_owned()));
    assert_eq!(ack(&server, &order).await, ["INVALID_RECEIPT_HANDLE"]);
    assert_eq!(ack(&server, &refund).await, ["ok"]);
    let again = receive_all(&server, "workers", "orders", 1).await;
    assert_eq!(ack(&server, &again).await, ["ok"]);
    server.stop().await;
}

/// An operator sets the place before the consumers start.
#[tokio::test]
async fn offsets_can_be_reset_before_the_first_receive() {
    let server = TestServer::start().await;
    put(&server, "orders", "before", Some("paid")).await;
    let made = axum::http::Method::PUT;
    crate::fixture::send(&mut server.client(), made, "/v1/groups/workers", &[], "{}").await;
    reset(&server, value!("latest")).await;
    put(&server, "orders", "late", Some("late")).await;
    put(&server, "orders", "paid", Some("paid")).await;
    let request = value!({"topic": "orders", "max": 9, "wait": "20s", "tags": ["paid"]});
    assert_eq!(texts(&receive(&server, "workers", request).await), ["paid"]);
    server.stop().await;
}

#[tokio::test]
async fn a_reset_ends_a_long_poll_with_what_can_be_read_again() {
    let server = TestServer::start().await;
    put(&server, "orders", "one", None).await;
    let first = receive_all(&server, "workers", "orders", 1).await;
    assert_eq!(ack(&server, &first).await, ["ok"]);
    let mut client = server.client();
    let waiting = tokio::spawn(async move {
        let request = r#"{"topic":"orders","wait":"30s"}"#;
        json(&post(&mut client, "/v1/groups/workers/receive", request).await)
    });
    while server.figure("horolog_receives_waiting").await != "1" {}
    reset(&server, value!("earliest")).await;
    let answer = waiting.await.expect("the task was not aborted");
    assert_eq!(answer["messages"][0]["bodyText"], "one");
    server.stop().await;
}
