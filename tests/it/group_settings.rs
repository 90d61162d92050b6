//! `PUT /v1/groups/{group}`, `GET /v1/groups`, `GET /v1/groups/{group}`, and tags.

use axum::http::Method;
use horolog::client::Answer;
use serde_json::{Value, json as value};

use crate::fixture::{TestServer, get, json, post, refusal, send};

const GROUP: &str = "/v1/groups/workers";
const RECEIVE: &str = "/v1/groups/workers/receive";
const LONG_NAME: &str = "a-tag";

async fn set(server: &TestServer, path: &str, body: impl Into<String>) -> Answer {
    send(&mut server.client(), Method::PUT, path, &[], body.into()).await
}

/// A put that says which tag the message has.
pub(crate) async fn put(server: &TestServer, topic: &str, body: &str, tag: Option<&str>) {
    let message = value!({"bodyText": body, "tag": tag}).to_string();
    let path = format!("/v1/topics/{topic}/messages");
    let answer = post(&mut server.client(), &path, message).await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
}

/// The bodies that a receive brings.
pub(crate) async fn receive(server: &TestServer, group: &str, request: Value) -> Vec<Value> {
    let path = format!("/v1/groups/{group}/receive");
    let answer = post(&mut server.client(), &path, request.to_string()).await;
    assert_eq!(answer.status, 200, "{}", json(&answer));
    json(&answer)["messages"].as_array().expect("a list").clone()
}

/// Receives until `count` have come; a put may not be readable yet when it is answered.
pub(crate) async fn receive_all(
    server: &TestServer,
    group: &str,
    topic: &str,
    count: usize,
) -> Vec<Value> {
    let mut all = Vec::new();
    while all.len() < count {
        let request = value!({"topic": topic, "max": 256, "wait": "20s"});
        let received = receive(server, group, request).await;
        assert!(!received.is_empty(), "only {} of {count} came", all.len());
        all.extend(received);
    }
    all
}

pub(crate) fn texts(messages: &[Value]) -> Vec<&str> {
    let mut texts: Vec<_> =
        messages.iter().map(|message| message["bodyText"].as_str().expect("text")).collect();
    texts.sort_unstable();
    texts
}

#[tokio::test]
async fn settings_that_cannot_be_are_refused_and_pointed_at() {
    let server = TestServer::start().await;
    let many_tags = value!({"tags": {"orders": vec!["t"; 65]}}).to_string();
    let long_tag = value!({"tags": {"orders": ["t", "x".repeat(256)]}}).to_string();
    let many_steps = value!({"backoff": vec!["1s"; 65]}).to_string();
    let topics = (0..257).map(|topic| (format!("t{topic}"), value!([LONG_NAME])));
    let many_topics = value!({"tags": Value::Object(topics.collect())}).to_string();
    for (body, pointer) in [
        ("", ""),
        ("[]", ""),
        ("{", ""),
        (r#"{"maxAttempt":1}"#, "#/maxAttempt"),
        (r#"{"a/b~c":1}"#, "#/a~1b~0c"),
        (r#"{"ordered":true,"ordered":true}"#, "#/ordered"),
        (r#"{"ordered":1}"#, "#/ordered"),
        (r#"{"ordered":null}"#, "#/ordered"),
        (r#"{"maxAttempts":0}"#, "#/maxAttempts"),
        (r#"{"maxAttempts":-1}"#, "#/maxAttempts"),
        (r#"{"maxAttempts":1001}"#, "#/maxAttempts"),
        (r#"{"maxAttempts":1.5}"#, "#/maxAttempts"),
        (r#"{"maxAttempts":"3"}"#, "#/maxAttempts"),
        (r#"{"maxAttempts":null}"#, "#/maxAttempts"),
        (r#"{"backoff":"1s"}"#, "#/backoff"),
        (r#"{"backoff":[]}"#, "#/backoff"),
        (r#"{"backoff":["1s","soon"]}"#, "#/backoff/1"),
        (r#"{"backoff":["-1s"]}"#, "#/backoff/0"),
        (r#"{"backoff":["1s",true]}"#, "#/backoff/1"),
        (r#"{"backoff":["31d"]}"#, "#/backoff/0"),
        (many_steps.as_str(), "#/backoff"),
        (r#"{"invisibleFor":0}"#, "#/invisibleFor"),
        (r#"{"invisibleFor":"13h"}"#, "#/invisibleFor"),
        (r#"{"invisibleFor":"PT"}"#, "#/invisibleFor"),
        (r#"{"invisibleFor":18446744073709551616}"#, "#/invisibleFor"),
        (r#"{"startFrom":"now"}"#, "#/startFrom"),
        (r#"{"startFrom":0}"#, "#/startFrom"),
        (r#"{"tags":["a"]}"#, "#/tags"),
        (r#"{"tags":null}"#, "#/tags"),
        (r#"{"tags":{"orders":"a"}}"#, "#/tags/orders"),
        (r#"{"tags":{"orders":[]}}"#, "#/tags/orders"),
        (r#"{"tags":{"orders":[1]}}"#, "#/tags/orders"),
        (r#"{"tags":{"orders":["a",""]}}"#, "#/tags/orders/1"),
        (r#"{"tags":{"a b":["a"]}}"#, "#/tags/a b"),
        (many_tags.as_str(), "#/tags/orders"),
        (long_tag.as_str(), "#/tags/orders/1"),
        (many_topics.as_str(), "#/tags"),
    ] {
        let answer = set(&server, GROUP, body).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{body}");
        let errors = json(&answer)["errors"].clone();
        let at = errors[0]["pointer"].as_str().unwrap_or_default();
        assert_eq!(at, pointer, "{body}: {errors}");
    }
    let reserved = r#"{"tags":{"SCHEDULE_TOPIC_XXXX":["a"]}}"#;
    for (path, body) in [(GROUP, reserved), ("/v1/groups/%25RETRY%25g", "{}")] {
        let answer = set(&server, path, body).await;
        assert_eq!(refusal(&answer), (400, "RESERVED_NAME".to_owned()), "{path}");
    }
    let answer = set(&server, "/v1/groups/workers?x=1", "{}").await;
    assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()));
    let answer = get(&mut server.client(), GROUP).await;
    assert_eq!(refusal(&answer), (404, "GROUP_NOT_FOUND".to_owned()), "nothing was made");
    server.stop().await;
}

#[tokio::test]
async fn a_put_sets_a_group_whole() {
    let server = TestServer::start().await;
    let defaults = value!({
        "group": "workers", "ordered": false, "maxAttempts": 16, "invisibleFor": 30_000,
        "backoff": [10_000, 30_000, 60_000, 120_000, 180_000, 240_000, 300_000, 360_000, 420_000,
            480_000, 540_000, 600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000],
        "startFrom": "earliest", "tags": {}, "topics": [],
    });
    let answer = set(&server, GROUP, "{}").await;
    assert_eq!((answer.status.as_u16(), json(&answer)), (201, defaults.clone()));
    let all = value!({
        "ordered": true, "maxAttempts": 1000, "backoff": ["1s", 0, "PT1M", "30d"],
        "invisibleFor": "12h", "startFrom": "latest", "tags": {"orders": ["b", "a", "b"]},
    });
    let shown = value!({
        "group": "workers", "ordered": true, "maxAttempts": 1000,
        "backoff": [1000, 0, 60_000, 2_592_000_000_u64], "invisibleFor": 43_200_000,
        "startFrom": "latest", "tags": {"orders": ["a", "b"]}, "topics": [],
    });
    for _ in 0..2 {
        let answer = set(&server, GROUP, all.to_string()).await;
        assert_eq!((answer.status.as_u16(), json(&answer)), (200, shown.clone()));
        assert_eq!(json(&get(&mut server.client(), GROUP).await), shown);
    }
    // What is shown can be put, but for what is no setting; what is missing takes its default.
    let mut again = shown.clone();
    for read_only in ["group", "topics"] {
        again.as_object_mut().expect("an object").remove(read_only);
    }
    assert_eq!(json(&set(&server, GROUP, again.to_string()).await), shown);
    let answer = set(&server, GROUP, "{}").await;
    assert_eq!((answer.status.as_u16(), json(&answer)), (200, defaults));
    server.stop().await;
}

#[tokio::test]
async fn a_groups_own_lease_time_counts_for_new_leases() {
    let server = TestServer::start().await;
    set(&server, GROUP, r#"{"invisibleFor":"2h"}"#).await;
    put(&server, "orders", "one", None).await;
    let received = &receive_all(&server, "workers", "orders", 1).await[0];
    let hour: jiff::Timestamp = received["bornAt"].as_str().unwrap().parse().unwrap();
    let until: jiff::Timestamp = received["invisibleUntil"].as_str().unwrap().parse().unwrap();
    assert!(until.duration_since(hour) >= jiff::SignedDuration::from_hours(2), "{received}");
    server.stop().await;
}

#[tokio::test]
async fn groups_are_listed_by_name_a_page_at_a_time() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let empty = json(&get(&mut client, "/v1/groups").await);
    assert_eq!(empty, value!({"items": [], "nextCursor": null}));
    for name in ["c", "a", "e", "b", "d"] {
        set(&server, &format!("/v1/groups/{name}"), "{}").await;
    }
    let (mut seen, mut path) = (Vec::new(), "/v1/groups?limit=2".to_owned());
    loop {
        let page = json(&get(&mut client, &path).await);
        let items = page["items"].as_array().expect("a list");
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|item| item["group"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/v1/groups?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e"]);
    for query in
        ["limit=0", "limit=1001", "limit=x", "limit=-1", "cursor=!", "limits=1", "cursor=_w"]
    {
        let answer = get(&mut client, &format!("/v1/groups?{query}")).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{query}");
    }
    let answer = get(&mut client, "/v1/groups/a?x=1").await;
    assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()));
    for name in ["nobody", "%25RETRY%25a"] {
        let answer = get(&mut client, &format!("/v1/groups/{name}")).await;
        assert_eq!(refusal(&answer), (404, "GROUP_NOT_FOUND".to_owned()), "{name}");
    }
    let answer = send(&mut client, Method::DELETE, "/v1/groups/a", &[], "").await;
    assert_eq!(refusal(&answer), (405, "METHOD_NOT_ALLOWED".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn a_group_shows_its_lag_and_what_is_in_flight() {
    let server = TestServer::start().await;
    for body in ["1", "2", "3"] {
        put(&server, "orders", body, None).await;
    }
    let received = receive_all(&server, "workers", "orders", 3).await;
    let shown = json(&get(&mut server.client(), GROUP).await);
    let topic = &shown["topics"][0];
    assert_eq!((&topic["topic"], &topic["lag"]), (&value!("orders"), &value!(3)), "{shown}");
    assert_eq!((&topic["inFlight"], &topic["deadLetters"]), (&value!(3), &value!(0)), "{shown}");
    assert!(topic["oldestUnackedAgeMs"].is_u64(), "{shown}");
    let handles: Vec<_> = received.iter().map(|message| &message["receiptHandle"]).collect();
    let ack = value!({"receiptHandles": handles}).to_string();
    post(&mut server.client(), "/v1/groups/workers/ack", ack).await;
    // An ack is answered when it is durable, and counted when dispatch has come to it.
    let idle = value!({
        "topic": "orders", "lag": 0, "inFlight": 0, "oldestUnackedAgeMs": null, "deadLetters": 0,
    });
    while json(&get(&mut server.client(), GROUP).await)["topics"][0] != idle {}
    server.stop().await;
}

#[tokio::test]
async fn tags_are_set_by_the_first_receive_and_by_no_other() {
    let server = TestServer::start().await;
    for (body, tag) in [("paid", Some("paid")), ("late", Some("late")), ("none", None)] {
        put(&server, "orders", body, tag).await;
    }
    let wants = |tags: Value| value!({"topic": "orders", "max": 10, "wait": "20s", "tags": tags});
    let received = receive(&server, "workers", wants(value!(["paid", "paid"]))).await;
    assert_eq!(texts(&received), ["paid"]);
    let mismatch = (409, "SUBSCRIPTION_MISMATCH".to_owned());
    for other in [value!(["late"]), value!(["paid", "late"])] {
        let request = wants(other.clone()).to_string();
        let answer = post(&mut server.client(), RECEIVE, request).await;
        assert_eq!(refusal(&answer), mismatch, "{other}");
        let settings = value!({"tags": {"orders": other}}).to_string();
        assert_eq!(refusal(&set(&server, GROUP, settings).await), mismatch, "{other}");
    }
    // The same set, and none at all, are content with the filter that is there.
    put(&server, "orders", "more", Some("paid")).await;
    assert_eq!(texts(&receive_all(&server, "workers", "orders", 1).await), ["more"]);
    for body in [r#"{"maxAttempts":3}"#, r#"{"tags":{"orders":["paid"]}}"#] {
        let answer = set(&server, GROUP, body).await;
        assert_eq!(answer.status, 200, "{body}");
        assert_eq!(json(&answer)["tags"], value!({"orders": ["paid"]}), "{body}");
    }
    // A group that began without a filter has none for good.
    receive(&server, "all", value!({"topic": "orders"})).await;
    let request = wants(value!(["late"])).to_string();
    let answer = post(&mut server.client(), "/v1/groups/all/receive", request).await;
    assert_eq!(refusal(&answer), mismatch);
    for tags in [value!([]), value!([1]), value!("paid"), value!(null), value!([""])] {
        let answer = post(&mut server.client(), RECEIVE, wants(tags.clone()).to_string()).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{tags}");
        assert!(json(&answer)["errors"][0]["pointer"].as_str().unwrap().starts_with("#/tags"));
    }
    server.stop().await;
}

#[tokio::test]
async fn tags_that_were_put_count_from_the_first_receive_on() {
    let server = TestServer::start().await;
    set(&server, GROUP, r#"{"tags":{"orders":["late"]}}"#).await;
    // Nothing was read by it yet: it can still be changed.
    let answer = set(&server, GROUP, r#"{"tags":{"orders":["paid"]}}"#).await;
    assert_eq!(json(&answer)["tags"], value!({"orders": ["paid"]}));
    for (body, tag) in [("late", Some("late")), ("none", None), ("paid", Some("paid"))] {
        put(&server, "orders", body, tag).await;
    }
    let other = value!({"topic": "orders", "tags": ["late"]}).to_string();
    let answer = post(&mut server.client(), RECEIVE, other).await;
    assert_eq!(refusal(&answer), (409, "SUBSCRIPTION_MISMATCH".to_owned()));
    assert_eq!(texts(&receive_all(&server, "workers", "orders", 1).await), ["paid"]);
    // What the filter leaves out is consumed: only what is out is behind.
    loop {
        receive(&server, "workers", value!({"topic": "orders"})).await;
        let shown = json(&get(&mut server.client(), GROUP).await);
        if shown["topics"][0]["lag"] == 1 {
            assert_eq!(shown["topics"][0]["inFlight"], 1);
            break;
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_group_that_starts_from_the_latest_gets_what_comes_after_its_first_receive() {
    let server = TestServer::start().await;
    set(&server, GROUP, r#"{"startFrom":"latest"}"#).await;
    put(&server, "orders", "before", None).await;
    assert_eq!(receive(&server, "workers", value!({"topic": "orders"})).await, [] as [Value; 0]);
    put(&server, "orders", "after", None).await;
    assert_eq!(texts(&receive_all(&server, "workers", "orders", 1).await), ["after"]);
    // Where it has begun stays; another topic is begun with anew.
    set(&server, GROUP, r#"{"startFrom":"earliest"}"#).await;
    assert_eq!(receive(&server, "workers", value!({"topic": "orders"})).await, [] as [Value; 0]);
    put(&server, "refunds", "from the begin", None).await;
    assert_eq!(texts(&receive_all(&server, "workers", "refunds", 1).await), ["from the begin"]);
    server.stop().await;
}
