//! Where a queue waits for its group to acknowledge, the figures say so.

use axum::http::Method;
use serde_json::{Value, json as value};

use crate::fixture::{TestServer, json, post, receive, send_json};

/// Messages of one queue that may wait behind another one of their message group.
const PARKED: usize = 16_384;

async fn figure(server: &TestServer, bound: &str) -> String {
    server.figure(&format!("horolog_queues_at_bound{{bound=\"{bound}\"}}")).await
}

/// The head of a message group is not acknowledged, and one message more stands behind it than may be parked:
/// what stands behind that is not come to, of whatever message group, until the head is acknowledged.
#[tokio::test]
async fn a_queue_that_waits_behind_a_stuck_message_group_is_counted() {
    const LAST: usize = PARKED + 2;
    let server = TestServer::start().await;
    let mut client = server.client();
    let topic = r#"{"type":"FIFO","queues":1}"#;
    assert_eq!(send_json(&mut client, Method::PUT, "/v1/topics/orders", topic).await.status, 201);
    let group = r#"{"ordered":true}"#;
    assert_eq!(send_json(&mut client, Method::PUT, "/v1/groups/g", group).await.status, 201);
    let message_group = |number| if number == LAST { "another" } else { "stuck" };
    let message = |number| value!({"body": number, "messageGroup": message_group(number)});
    let messages: Vec<_> = (0..=LAST).map(message).collect();
    for messages in messages.chunks(1000) {
        let batch = value!({"messages": messages, "atomic": true}).to_string();
        let answer = post(&mut client, "/v1/topics/orders/messages/batch", batch).await;
        assert_eq!(answer.status, 201, "{}", json(&answer));
    }
    assert_eq!(figure(&server, "parked").await, "0");
    let head = received(&server, 1).await;
    // This one looks at all that may be looked at.
    let at_once = value!({"topic": "orders", "max": 256}).to_string();
    let answer = json(&post(&mut client, "/v1/groups/g/receive", at_once).await);
    assert_eq!(answer["messages"], value!([]));
    assert_eq!(figure(&server, "parked").await, "1");
    assert_eq!(figure(&server, "out").await, "0");

    ack(&server, &head[0]).await;
    let next = received(&server, 2).await;
    assert_eq!([&next[0]["body"], &next[1]["body"]], [&value!(1), &value!(LAST)]);
    ack(&server, &next[0]).await;
    assert_eq!(received(&server, 1).await[0]["body"], 2);
    assert_eq!(figure(&server, "parked").await, "0");
    server.stop().await;
}

/// So many messages, by their numbers.
async fn received(server: &TestServer, count: usize) -> Vec<Value> {
    let mut received = Vec::new();
    while received.len() < count {
        received.extend(receive(server, "g", "orders").await);
    }
    received.sort_by_key(|message| message["body"].as_u64());
    assert_eq!(received.len(), count, "{received:?}");
    received
}

async fn ack(server: &TestServer, message: &Value) {
    let ack = value!({"receiptHandles": [message["receiptHandle"]]}).to_string();
    let answer = json(&post(&mut server.client(), "/v1/groups/g/ack", ack).await);
    assert_eq!(answer["results"][0]["status"], "ok");
}
