//! `delayLevel` and `Horolog-Delay-Level`: what is taken, by every door a message comes in, and what becomes
//! of it.

use axum::http::Method;
use horolog::config::Given;
use serde_json::{Value, json as value};

use crate::fixture::{TestServer, get, json, post, refusal, send};

const PATH: &str = "/v1/topics/orders/messages";

fn millis(time: &Value) -> i64 {
    let time: jiff::Timestamp = time.as_str().expect("a time").parse().expect("a time");
    time.as_millisecond()
}

/// By how much the message is delayed, as it is shown; 0 when it is ready.
async fn delay_of(server: &TestServer, id: &str) -> i64 {
    let view = json(&get(&mut server.client(), &format!("/v1/messages/{id}")).await);
    let delay = millis(&view["deliverAt"]) - millis(&view["bornAt"]);
    let state = if delay > 0 { "SCHEDULED" } else { "READY" };
    assert_eq!(view["state"], state, "{view}");
    delay
}

async fn put(server: &TestServer, message: &Value) -> String {
    let answer = post(&mut server.client(), PATH, message.to_string()).await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
    json(&answer)["messageId"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn a_level_in_json_is_a_whole_number_and_clamped_to_the_table() {
    let server = TestServer::start().await;
    let hours = 3_600_000;
    for (level, delay) in [
        ("0", 0),
        ("1", 1000),
        ("3", 10_000),
        ("17", hours),
        ("18", 2 * hours),
        ("19", 2 * hours),
        ("999", 2 * hours),
        ("99999999999999999999", 2 * hours),
    ] {
        let message = format!("{{\"body\":1,\"delayLevel\":{level}}}");
        let put = json(&post(&mut server.client(), PATH, message).await);
        let state = if delay > 0 { "SCHEDULED" } else { "READY" };
        assert_eq!(put["state"], state, "{level}: {put}");
        let id = put["messageId"].as_str().expect("an id");
        // Level 1 may have fired by now.
        if level != "1" {
            assert_eq!(delay_of(&server, id).await, delay, "{level}");
        }
        let view = json(&get(&mut server.client(), &format!("/v1/messages/{id}")).await);
        assert_eq!(view["deliverAt"], put["deliverAt"], "{level}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_level_that_is_none_is_refused_by_every_door_and_stores_nothing() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for members in [
        "\"delayLevel\":-1",
        "\"delayLevel\":1.5",
        "\"delayLevel\":1e1",
        "\"delayLevel\":\"3\"",
        "\"delayLevel\":null",
        "\"delayLevel\":true",
        "\"delayLevel\":[3]",
        "\"delayLevel\":3,\"delayLevel\":3",
        "\"delayLevel\":3,\"delay\":\"5s\"",
        "\"delayLevel\":3,\"deliverAt\":0",
        "\"delaylevel\":3",
    ] {
        let message = format!("{{\"body\":1,{members}}}");
        let answer = post(&mut client, PATH, message.clone()).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{members}");
        let timer = "/v1/topics/orders/timers/k";
        let headers = [("content-type", "application/json")];
        let answer = send(&mut client, Method::PUT, timer, &headers, message.clone()).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{members}");
    }
    let raw = ("content-type", "image/png");
    for headers in [
        [raw, ("horolog-delay-level", "-1")],
        [raw, ("horolog-delay-level", "+3")],
        [raw, ("horolog-delay-level", "1.5")],
        [raw, ("horolog-delay-level", "")],
        [raw, ("horolog-delay-level", "three")],
        [("horolog-delay-level", "3"), ("horolog-delay-level", "3")],
        [("horolog-delay-level", "3"), ("horolog-delay", "5s")],
        [("horolog-delay-level", "3"), ("horolog-deliver-at", "0")],
        [("content-type", "application/json"), ("horolog-delay-level", "3")],
    ] {
        let answer = send(&mut client, Method::POST, PATH, &headers, "{\"body\":1}").await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{headers:?}");
    }
    assert_eq!(server.figure("horolog_messages_accepted_total").await, "0");
    server.stop().await;
}

#[tokio::test]
async fn a_level_comes_by_header_in_a_batch_and_with_a_timer() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for (level, delay) in [("0", 0), ("3", 10_000), ("18", 7_200_000), ("40", 7_200_000)] {
        let headers = [("content-type", "image/png"), ("horolog-delay-level", level)];
        let answer = send(&mut client, Method::POST, PATH, &headers, "png").await;
        assert_eq!(answer.status, 201, "{}", json(&answer));
        let id = json(&answer)["messageId"].as_str().expect("an id").to_owned();
        assert_eq!(delay_of(&server, &id).await, delay, "{level}");
    }
    let batch = value!({"messages": [
        {"body": 1, "delayLevel": 4},
        {"body": 2, "delayLevel": "4"},
        {"body": 3, "delay": "20s"},
        {"body": 4, "delayLevel": 18},
    ]});
    let answer = json(&post(&mut client, &format!("{PATH}/batch"), batch.to_string()).await);
    let results = answer["results"].as_array().expect("a list");
    assert_eq!(results[1]["error"]["code"], "INVALID_REQUEST", "{answer}");
    for (index, delay) in [(0, 30_000), (2, 20_000), (3, 7_200_000)] {
        let id = results[index]["messageId"].as_str().expect("an id");
        assert_eq!(delay_of(&server, id).await, delay, "{index}");
    }
    let timer = "/v1/topics/orders/timers/order-17";
    let headers = [("content-type", "application/json")];
    let mut replaced = Value::Null;
    for (level, delay) in [(17, 3_600_000), (18, 7_200_000)] {
        let message = value!({"body": 1, "delayLevel": level}).to_string();
        let answer = json(&send(&mut client, Method::PUT, timer, &headers, message).await);
        assert_eq!(answer["replaced"], replaced, "{answer}");
        replaced = answer["messageId"].clone();
        assert_eq!(delay_of(&server, replaced.as_str().expect("an id")).await, delay);
    }
    server.stop().await;
}

#[tokio::test]
async fn what_waits_in_a_level_is_listed_cancelled_moved_and_fired() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let message = value!({"body": 1, "delayLevel": 18, "keys": ["k"], "tag": "t"});
    let (cancelled, moved) = (put(&server, &message).await, put(&server, &message).await);
    let (fired, bulk) = (put(&server, &message).await, put(&server, &message).await);
    let list = async |query: &str| {
        let page = json(&get(&mut server.client(), &format!("/v1/scheduled?{query}")).await);
        let items = page["items"].as_array().expect("a list").clone();
        items.iter().map(|item| item["messageId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = [cancelled.clone(), moved.clone(), fired.clone(), bulk.clone()];
    for query in ["", "topic=orders", "topic=orders&key=k&tag=t"] {
        assert_eq!(list(query).await, all, "{query}");
    }
    assert!(list("tag=u").await.is_empty());
    let timeline = json(&get(&mut client, "/v1/scheduled/timeline?bucket=30m").await);
    assert_eq!(timeline["complete"], true, "{timeline}");

    let path = |id: &str| format!("/v1/messages/{id}");
    for _ in 0..2 {
        let answer = send(&mut client, Method::DELETE, &path(&cancelled), &[], "").await;
        assert_eq!(json(&answer)["state"], "CANCELLED");
    }
    let headers = [("content-type", "application/json")];
    for (request, status) in [(r#"{"delayLevel":3}"#, 400), (r#"{"delay":"20m"}"#, 200)] {
        let answer = send(&mut client, Method::PATCH, &path(&moved), &headers, request).await;
        assert_eq!(answer.status, status, "{request}: {}", json(&answer));
    }
    assert_eq!(delay_of(&server, &moved).await / 60_000, 20);
    let deliver = format!("{}/deliver", path(&fired));
    assert_eq!(send(&mut client, Method::POST, &deliver, &[], "").await.status, 200);
    let view = json(&get(&mut client, &path(&fired)).await);
    assert_eq!(view["state"], "READY");
    assert!(view["firedAt"].as_str() < view["deliverAt"].as_str(), "{view}");
    assert_eq!(list("").await, [bulk, moved], "the levels first, then the wheel");

    let request = value!({"topic": "orders", "key": "k"}).to_string();
    let answer = json(&post(&mut client, "/v1/scheduled/cancel", request).await);
    assert_eq!((&answer["matched"], &answer["cancelled"]), (&value!(2), &value!(2)), "{answer}");
    assert!(list("").await.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn the_table_is_a_setting_and_a_level_releases_by_it() {
    let given = Given { delay_levels: Some("2h 40ms".to_owned()), ..Given::default() };
    let server = TestServer::start_with(given).await;
    let waits = put(&server, &value!({"body": "waits", "delayLevel": 1})).await;
    put(&server, &value!({"body": "comes", "delayLevel": 2})).await;
    let request = value!({"topic": "orders", "wait": "30s"}).to_string();
    let answer = json(&post(&mut server.client(), "/v1/groups/g/receive", request).await);
    let message = &answer["messages"][0];
    assert_eq!(message["body"], "comes", "{answer}");
    assert_eq!(millis(&message["deliverAt"]) - millis(&message["bornAt"]), 40);
    assert!(millis(&message["firedAt"]) >= millis(&message["deliverAt"]), "early: {message}");
    assert_eq!(delay_of(&server, &waits).await, 7_200_000);
    server.stop().await;
}

#[tokio::test]
async fn a_level_is_a_moment_and_its_topic_is_the_systems() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let headers = [("content-type", "application/json")];
    for (of, status) in [("NORMAL", 409), ("DELAY", 201), ("MIXED", 201)] {
        let topic = format!("/v1/topics/of-{of}");
        let made = value!({"type": of}).to_string();
        assert_eq!(send(&mut client, Method::PUT, &topic, &headers, made).await.status, 201);
        let message = value!({"body": 1, "delayLevel": 18}).to_string();
        let answer = post(&mut client, &format!("{topic}/messages"), message).await;
        assert_eq!(answer.status, status, "{of}: {}", json(&answer));
    }
    let system = "/v1/topics/SCHEDULE_TOPIC_XXXX/messages";
    let answer = post(&mut client, system, "{\"body\":1}").await;
    assert_eq!(refusal(&answer), (400, "RESERVED_NAME".to_owned()));
    let topics = json(&get(&mut client, "/v1/topics").await).to_string();
    assert!(!topics.contains("SCHEDULE_TOPIC"), "{topics}");
    server.stop().await;
}
