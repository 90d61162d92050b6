//! `/v1/topics` and `/v1/topics/{topic}`: made, set, shown, listed; deletion is in `topic_deletion`.

use axum::http::Method;
use horolog::client::{Answer, Client};
use horolog::config::Given;
use serde_json::{Value, json as value};

use crate::fixture::{TestServer, get, json, post, receive, refusal, send, send_json};

async fn set(client: &mut Client, topic: &str, body: &str) -> Answer {
    send_json(client, Method::PUT, &format!("/v1/topics/{topic}"), body.to_owned()).await
}

async fn show(client: &mut Client, topic: &str) -> Value {
    let answer = get(client, &format!("/v1/topics/{topic}")).await;
    assert_eq!(answer.status, 200, "{}", json(&answer));
    json(&answer)
}

fn empty(topic: &str, of: &str, queues: u64, retention_ms: Option<u64>) -> Value {
    let queues: Vec<_> = (0..queues)
        .map(|queue| value!({"queueId": queue, "firstOffset": 0, "nextOffset": 0}))
        .collect();
    value!({
        "topic": topic, "type": of, "retention": retention_ms,
        "pending": 0, "ready": 0, "queues": queues,
    })
}

#[tokio::test]
async fn a_topic_is_made_with_what_is_said_and_defaults_for_the_rest() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for (topic, body, expected) in [
        ("b", "{}", empty("b", "MIXED", 4, None)),
        ("c", r#"{"type":"MIXED"}"#, empty("c", "MIXED", 4, None)),
        ("d", r#"{"type":"NORMAL","queues":1}"#, empty("d", "NORMAL", 1, None)),
        ("e", r#"{"type":"DELAY","retention":"7d"}"#, empty("e", "DELAY", 4, Some(604_800_000))),
        ("f", r#"{"type":"FIFO","queues":8}"#, empty("f", "FIFO", 8, None)),
        ("g", r#"{"type":"TRANSACTION","retention":1}"#, empty("g", "TRANSACTION", 4, Some(1))),
        ("h", r#"{"queues":1024}"#, empty("h", "MIXED", 1024, None)),
    ] {
        let made = set(&mut client, topic, body).await;
        assert_eq!(made.status, 201, "{body}: {}", json(&made));
        assert_eq!(json(&made), expected, "{body}");
        let again = set(&mut client, topic, body).await;
        assert_eq!(again.status, 200, "{body}");
        assert_eq!(json(&again), expected, "{body}");
        assert_eq!(show(&mut client, topic).await, expected, "{body}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_malformed_topic_is_refused_and_not_made() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for body in [
        "",
        "{",
        "[]",
        "null",
        r#"{"type":"mixed"}"#,
        r#"{"type":"QUEUE"}"#,
        r#"{"type":1}"#,
        r#"{"type":""}"#,
        r#"{"queues":0}"#,
        r#"{"queues":1025}"#,
        r#"{"queues":65536}"#,
        r#"{"queues":-1}"#,
        r#"{"queues":1.5}"#,
        r#"{"queues":"4"}"#,
        r#"{"retention":0}"#,
        r#"{"retention":"0s"}"#,
        r#"{"retention":-1}"#,
        r#"{"retention":"-1d"}"#,
        r#"{"retention":"401d"}"#,
        r#"{"retention":"long"}"#,
        r#"{"retention":true}"#,
        r#"{"retention":18446744073709551616}"#,
        r#"{"queus":4}"#,
        r#"{"queues":4,"queues":5}"#,
        r#"{"queues":4}x"#,
    ] {
        let answer = set(&mut client, "orders", body).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{body}");
    }
    let not_found = (404, "TOPIC_NOT_FOUND".to_owned());
    assert_eq!(refusal(&get(&mut client, "/v1/topics/orders").await), not_found);
    let long = "t".repeat(256);
    for (topic, code) in [
        ("..", "INVALID_REQUEST"),
        ("a%20b", "INVALID_REQUEST"),
        (long.as_str(), "INVALID_REQUEST"),
        ("orders?x=1", "INVALID_REQUEST"),
        ("%25RETRY%25g", "RESERVED_NAME"),
        ("rmq_sys_wheel_timer", "RESERVED_NAME"),
        ("RMQ_SYS_TRANS_HALF_TOPIC", "RESERVED_NAME"),
        ("SCHEDULE_TOPIC_XXXX", "RESERVED_NAME"),
    ] {
        let answer = set(&mut client, topic, "{}").await;
        assert_eq!(refusal(&answer), (400, code.to_owned()), "{topic}");
    }
    let headers = [("content-type", "application/json"), ("horolog-delay", "1s")];
    let answer = send(&mut client, Method::PUT, "/v1/topics/orders", &headers, "{}").await;
    assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()));
    for path in ["/v1/topics?limit=0", "/v1/topics?limit=1001", "/v1/topics?x=1"] {
        let answer = get(&mut client, path).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{path}");
    }
    assert_eq!(json(&get(&mut client, "/v1/topics").await)["items"], value!([]));
    server.stop().await;
}

#[tokio::test]
async fn queues_grow_a_type_stays_and_retention_changes() {
    let server = TestServer::start().await;
    let mut client = server.client();
    set(&mut client, "orders", r#"{"type":"NORMAL","queues":2,"retention":"1d"}"#).await;
    set(&mut client, "fifo", r#"{"type":"FIFO","queues":2}"#).await;
    for (topic, body, expected) in [
        ("orders", r#"{"queues":1}"#, Err("QUEUES_FIXED")),
        ("orders", r#"{"type":"FIFO"}"#, Err("TOPIC_TYPE_FIXED")),
        ("orders", r#"{"type":"MIXED","queues":5}"#, Err("TOPIC_TYPE_FIXED")),
        ("fifo", r#"{"queues":3}"#, Err("QUEUES_FIXED")),
        ("fifo", r#"{"queues":1}"#, Err("QUEUES_FIXED")),
        ("fifo", r#"{"type":"MIXED"}"#, Err("TOPIC_TYPE_FIXED")),
        ("fifo", r#"{"queues":2}"#, Ok(empty("fifo", "FIFO", 2, None))),
        ("fifo", r#"{"retention":"2d"}"#, Ok(empty("fifo", "FIFO", 2, Some(172_800_000)))),
        ("orders", "{}", Ok(empty("orders", "NORMAL", 2, Some(86_400_000)))),
        ("orders", r#"{"queues":5}"#, Ok(empty("orders", "NORMAL", 5, Some(86_400_000)))),
        ("orders", r#"{"type":"NORMAL"}"#, Ok(empty("orders", "NORMAL", 5, Some(86_400_000)))),
    ] {
        let answer = set(&mut client, topic, body).await;
        match expected {
            Err(code) => assert_eq!(refusal(&answer), (409, code.to_owned()), "{topic} {body}"),
            Ok(expected) => {
                assert_eq!(answer.status, 200, "{topic} {body}");
                assert_eq!(json(&answer), expected, "{topic} {body}");
            }
        }
    }
    let server = server.restart().await;
    let mut client = server.client();
    let expected = empty("orders", "NORMAL", 5, Some(86_400_000));
    assert_eq!(show(&mut client, "orders").await, expected);
    assert_eq!(show(&mut client, "fifo").await, empty("fifo", "FIFO", 2, Some(172_800_000)));
    server.stop().await;
}

#[tokio::test]
async fn what_is_put_before_and_after_its_queues_grow_is_all_received() {
    let server = TestServer::start().await;
    let mut client = server.client();
    set(&mut client, "orders", r#"{"queues":1}"#).await;
    let path = "/v1/topics/orders/messages/batch";
    let messages = |first: u64| {
        let bodies = (first..first + 20).map(|body| value!({"body": body}));
        value!({"messages": bodies.collect::<Vec<_>>()}).to_string()
    };
    assert_eq!(post(&mut client, path, messages(0)).await.status, 200);
    assert_eq!(set(&mut client, "orders", r#"{"queues":6}"#).await.status, 200);
    assert_eq!(post(&mut client, path, messages(20)).await.status, 200);
    let mut received = Vec::new();
    while received.len() < 40 {
        received.extend(receive(&server, "workers", "orders").await);
    }
    let mut bodies: Vec<_> = received.iter().map(|one| one["body"].as_u64()).collect();
    bodies.sort_unstable();
    assert_eq!(bodies, (0..40).map(Some).collect::<Vec<_>>());
    assert!(received.iter().any(|one| one["queueId"].as_u64() > Some(0)), "new queues are used");
    server.stop().await;
}

#[tokio::test]
async fn a_typed_topic_takes_its_own_kind_of_message_only() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let plain = r#"{"body":1}"#;
    let timed = r#"{"body":1,"delay":"1h"}"#;
    let grouped = r#"{"body":1,"messageGroup":"g"}"#;
    let both = r#"{"body":1,"messageGroup":"g","delay":"1h"}"#;
    let kinds = [plain, timed, grouped, both];
    for (of, takes) in [
        ("MIXED", [true, true, true, true]),
        ("NORMAL", [true, false, false, false]),
        ("DELAY", [false, true, false, false]),
        ("FIFO", [false, false, true, true]),
        ("TRANSACTION", [false, false, false, false]),
    ] {
        set(&mut client, of, &value!({"type": of}).to_string()).await;
        let messages = format!("/v1/topics/{of}/messages");
        let batch = format!("{messages}/batch");
        let mismatch = (409, "TOPIC_TYPE_MISMATCH".to_owned());
        for (number, (message, takes)) in kinds.into_iter().zip(takes).enumerate() {
            let timer = format!("/v1/topics/{of}/timers/{number}");
            let atomic = format!("{{\"messages\":[{message}],\"atomic\":true}}");
            for answer in [
                post(&mut client, &messages, message).await,
                send_json(&mut client, Method::PUT, &timer, message).await,
                post(&mut client, &batch, atomic).await,
            ] {
                match takes {
                    true => assert_eq!(answer.status, 201, "{of} {message}"),
                    false => assert_eq!(refusal(&answer), mismatch, "{of} {message}"),
                }
            }
        }
        let all = format!("{{\"messages\":[{}]}}", kinds.join(","));
        let answer = post(&mut client, &batch, all).await;
        assert_eq!(answer.status, 200);
        for (number, takes) in takes.into_iter().enumerate() {
            let result = &json(&answer)["results"][number];
            let code = if takes { Value::Null } else { value!("TOPIC_TYPE_MISMATCH") };
            assert_eq!(result["error"]["code"], code, "{of} {number}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_refused_message_makes_no_topic() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let far = r#"{"body":1,"delay":"36526d"}"#;
    for (method, path) in
        [(Method::POST, "/v1/topics/orders/messages"), (Method::PUT, "/v1/topics/orders/timers/k")]
    {
        let answer = send_json(&mut client, method.clone(), path, far).await;
        assert_eq!(refusal(&answer), (400, "INVALID_DELIVERY_TIME".to_owned()), "{method}");
        let topic = get(&mut client, "/v1/topics/orders").await;
        assert_eq!(refusal(&topic), (404, "TOPIC_NOT_FOUND".to_owned()), "{method}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_systems_own_topics_are_nobodys_business() {
    let server = TestServer::start().await;
    let mut client = server.client();
    post(&mut client, "/v1/topics/orders/messages", r#"{"body":1,"delay":"1h","keys":["k"]}"#)
        .await;
    let topic = "/v1/topics/rmq_sys_wheel_timer";
    for path in [topic.to_owned(), format!("{topic}/messages?key=k")] {
        let answer = get(&mut client, &path).await;
        assert_eq!(refusal(&answer), (404, "TOPIC_NOT_FOUND".to_owned()), "{path}");
    }
    let answer = get(&mut client, &format!("{topic}/timers/k")).await;
    assert_eq!(refusal(&answer), (404, "TIMER_NOT_FOUND".to_owned()));
    let listed = json(&get(&mut client, "/v1/topics").await);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
    server.stop().await;
}

#[tokio::test]
async fn topics_are_listed_by_name_page_by_page() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let mut names: Vec<_> = (0..25).map(|number| format!("topic-{number}")).collect();
    for name in &names {
        set(&mut client, name, r#"{"queues":1}"#).await;
    }
    post(&mut client, "/v1/topics/made.by-itself/messages", r#"{"body":1}"#).await;
    names.push("made.by-itself".to_owned());
    names.sort();
    for limit in [1, 7, 25, 26, 1000] {
        let mut found = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = get(&mut client, &format!("/v1/topics?limit={limit}{cursor}")).await;
            let page = json(&page);
            let items = page["items"].as_array().expect("a list");
            assert!(items.len() <= limit, "{limit}");
            found.extend(items.iter().map(|item| item["topic"].as_str().unwrap().to_owned()));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, names, "limit {limit}");
    }
    let page = json(&get(&mut client, "/v1/topics").await);
    assert_eq!(page["items"][1], show(&mut client, "topic-0").await);
    assert_eq!(page["items"][0]["type"], "MIXED");
    server.stop().await;
}

#[tokio::test]
async fn a_topic_counts_what_is_pending_and_what_is_ready() {
    let server = TestServer::start_with(Given {
        queues_per_topic: Some("2".to_owned()),
        ..Given::default()
    })
    .await;
    let mut client = server.client();
    let path = "/v1/topics/orders/messages";
    let mut pending = Vec::new();
    for _ in 0..3 {
        let answer = post(&mut client, path, r#"{"body":1,"delay":"1h"}"#).await;
        pending.push(crate::fixture::id(&answer));
    }
    for _ in 0..2 {
        post(&mut client, path, r#"{"body":1,"messageGroup":"g"}"#).await;
    }
    // Counted as the log is read, which is a moment after the answer.
    let counted = async |client: &mut Client, pending: u64, ready: u64| loop {
        let view = show(client, "orders").await;
        if (&view["pending"], &view["ready"]) == (&value!(pending), &value!(ready)) {
            return view;
        }
        tokio::task::yield_now().await;
    };
    let view = counted(&mut client, 3, 2).await;
    let queues = view["queues"].as_array().expect("a list");
    assert_eq!(queues.len(), 2);
    let next: Vec<_> = queues.iter().map(|queue| queue["nextOffset"].as_u64()).collect();
    assert!(next == [Some(0), Some(2)] || next == [Some(2), Some(0)], "a group has one queue");
    crate::fixture::delete(&mut client, &format!("/v1/messages/{}", pending[0])).await;
    let fire = format!("/v1/messages/{}/deliver", pending[1]);
    send(&mut client, Method::POST, &fire, &[], "").await;
    counted(&mut client, 1, 3).await;
    let server = server.restart().await;
    counted(&mut server.client(), 1, 3).await;
    server.stop().await;
}
