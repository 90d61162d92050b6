//! `POST /v1/topics/{topic}/messages/batch`: many messages in one step, an answer for each.

use axum::http::Method;
use horolog::client::{Answer, Client};
use serde_json::{Value, json as value};

use crate::fixture::{
    TestServer, get, json, post, receive, receive_up_to_fence, refusal, send, send_json,
};

const PATH: &str = "/v1/topics/orders/messages/batch";
const NDJSON: [(&str, &str); 1] = [("content-type", "application/x-ndjson")];

async fn lines(client: &mut Client, path: &str, text: impl Into<bytes::Bytes>) -> Answer {
    send(client, Method::POST, path, &NDJSON, text).await
}

fn results(answer: &Answer) -> Vec<Value> {
    let value = json(answer);
    assert!(answer.status.is_success(), "{} {value}", answer.status);
    value["results"].as_array().expect("a list").clone()
}

fn batch(count: usize, message: &str, more: &str) -> String {
    let messages = vec![message; count].join(",");
    format!("{{\"messages\":[{messages}]{more}}}")
}

#[tokio::test]
async fn each_message_of_a_batch_has_its_own_moment_and_its_answer_in_order() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let messages = [
        r#"{"bodyText":"0","delay":"1h"}"#,
        r#"{"bodyText":"1"}"#,
        r#"{"bodyText":"2","deliverAt":"2099-01-01T00:00:00Z","keys":["k"],"tag":"t"}"#,
        r#"{"bodyText":"3","deliverAt":0,"properties":{"a":"b"}}"#,
        r#"{"body":[4],"messageGroup":"g","delay":250}"#,
    ];
    let as_json = format!("{{\"messages\":[{}]}}", messages.join(","));
    let mut answers = vec![post(&mut client, PATH, as_json).await];
    for text in [
        messages.join("\n"),
        messages.join("\n") + "\n",
        messages.join("\r\n") + "\r\n",
        format!("\n\n{}\n \t\n\r\n", messages.join("\n\n")),
    ] {
        answers.push(lines(&mut client, PATH, text).await);
    }
    for answer in &answers {
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["content-type"], "application/json");
        let results = results(answer);
        let states: Vec<_> = results.iter().map(|result| &result["state"]).collect();
        assert_eq!(states, ["SCHEDULED", "READY", "SCHEDULED", "READY", "SCHEDULED"]);
        assert_eq!(results[2]["deliverAt"], "2099-01-01T00:00:00.000Z");
        for (number, result) in results.iter().enumerate() {
            let id = result["messageId"].as_str().expect("an id is text");
            let view = json(&get(&mut client, &format!("/v1/messages/{id}?body=true")).await);
            assert_eq!(view["deliverAt"], result["deliverAt"]);
            match number {
                4 => assert_eq!(view["body"], value!([4])),
                _ => assert_eq!(view["bodyText"], number.to_string()),
            }
        }
    }
    let found = json(&get(&mut client, "/v1/topics/orders/messages?key=k").await);
    assert_eq!(found["items"].as_array().map(Vec::len), Some(answers.len()));
    server.stop().await;
}

#[tokio::test]
async fn a_malformed_batch_is_refused_whole_by_its_code_and_stores_nothing() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let one = r#"{"body":1}"#;
    let json_type = ("content-type", "application/json");
    for (headers, body, status, code) in [
        (vec![json_type], String::new(), 400, "INVALID_REQUEST"),
        (vec![json_type], "{}".to_owned(), 400, "INVALID_REQUEST"),
        (vec![json_type], format!("[{one}]"), 400, "INVALID_REQUEST"),
        (vec![json_type], one.to_owned(), 400, "INVALID_REQUEST"),
        (vec![json_type], batch(0, one, ""), 400, "INVALID_REQUEST"),
        (vec![json_type], batch(0, one, ",\"atomic\":true"), 400, "INVALID_REQUEST"),
        (vec![json_type], "{\"messages\":null}".to_owned(), 400, "INVALID_REQUEST"),
        (vec![json_type], "{\"messages\":{}}".to_owned(), 400, "INVALID_REQUEST"),
        (vec![json_type], batch(1, one, "}"), 400, "INVALID_REQUEST"),
        (vec![json_type], batch(1, "{", ""), 400, "INVALID_REQUEST"),
        (vec![json_type], batch(1, one, ",\"atmoic\":true"), 400, "INVALID_REQUEST"),
        (vec![json_type], batch(1, one, ",\"atomic\":1"), 400, "INVALID_REQUEST"),
        (vec![json_type], batch(1, one, ",\"atomic\":null"), 400, "INVALID_REQUEST"),
        (vec![json_type], batch(1001, one, ""), 413, "BATCH_TOO_LARGE"),
        (vec![json_type], batch(1001, one, ",\"atomic\":true"), 413, "BATCH_TOO_LARGE"),
        (vec![json_type, ("horolog-delay", "1s")], batch(1, one, ""), 400, "INVALID_REQUEST"),
        (NDJSON.to_vec(), String::new(), 400, "INVALID_REQUEST"),
        (NDJSON.to_vec(), "\n\r\n \n".to_owned(), 400, "INVALID_REQUEST"),
        (NDJSON.to_vec(), [one; 1001].join("\n"), 413, "BATCH_TOO_LARGE"),
        (vec![("content-type", "text/plain")], one.to_owned(), 400, "INVALID_REQUEST"),
        (vec![("content-type", "application/jsonl")], one.to_owned(), 400, "INVALID_REQUEST"),
        (vec![], batch(1, one, ""), 400, "INVALID_REQUEST"),
    ] {
        let shown: String = body.chars().take(60).collect();
        let answer = send(&mut client, Method::POST, PATH, &headers, body).await;
        assert_eq!(refusal(&answer), (status, code.to_owned()), "{headers:?} {shown}");
    }
    for (path, code) in [
        ("/v1/topics/a%20b/messages/batch", "INVALID_REQUEST"),
        ("/v1/topics/SCHEDULE_TOPIC_XXXX/messages/batch", "RESERVED_NAME"),
        ("/v1/topics/orders/messages/batch?x=1", "INVALID_REQUEST"),
        ("/v1/topics/orders/messages/batch?atomic=maybe", "INVALID_REQUEST"),
        ("/v1/topics/orders/messages/batch?atomic=true", "INVALID_REQUEST"),
    ] {
        let answer = post(&mut client, path, batch(1, one, "")).await;
        assert_eq!(refusal(&answer), (400, code.to_owned()), "{path}");
    }
    assert_eq!(server.figure("horolog_messages_accepted_total").await, "0");
    let topic = get(&mut client, "/v1/topics/orders").await;
    assert_eq!(refusal(&topic), (404, "TOPIC_NOT_FOUND".to_owned()), "a refusal makes no topic");
    server.stop().await;
}

#[tokio::test]
async fn a_thousand_messages_fit_a_batch() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let one = r#"{"body":1,"delay":"1h"}"#;
    for (path, body, status, headers) in [
        (PATH, batch(1000, one, ""), 200, [("content-type", "application/json")]),
        (PATH, batch(1000, one, ",\"atomic\":true"), 201, [("content-type", "application/json")]),
        (PATH, [one; 1000].join("\n"), 200, NDJSON),
        (&format!("{PATH}?atomic=true"), [one; 1000].join("\n"), 201, NDJSON),
    ] {
        let answer = send(&mut client, Method::POST, path, &headers, body).await;
        assert_eq!(answer.status, status, "{}", json(&answer));
        let results = results(&answer);
        let ids: std::collections::BTreeSet<_> =
            results.iter().map(|one| one["messageId"].as_str()).collect();
        assert_eq!(ids.len(), 1000);
    }
    assert_eq!(server.figure("horolog_messages_accepted_total").await, "4000");
    server.stop().await;
}

#[tokio::test]
async fn a_message_that_is_malformed_is_told_so_and_the_others_are_taken() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let large = format!("{{\"bodyText\":\"{}\"}}", "x".repeat((4 << 20) + 1));
    let items = [
        (r#"{"bodyText":"a"}"#, None),
        (r#"{"bodyText":"b","dealy":"1s"}"#, Some((400, "INVALID_REQUEST"))),
        (r#"{"bodyText":"b","delay":"-1s"}"#, Some((400, "INVALID_DELIVERY_TIME"))),
        (r#"{"bodyText":"b","delay":"36526d"}"#, Some((400, "INVALID_DELIVERY_TIME"))),
        (&large, Some((413, "BODY_TOO_LARGE"))),
        ("{}", Some((400, "INVALID_REQUEST"))),
        ("null", Some((400, "INVALID_REQUEST"))),
        ("[]", Some((400, "INVALID_REQUEST"))),
        (r#"{"bodyText":"c","delay":"1h"}"#, None),
    ];
    let texts: Vec<_> = items.iter().map(|(text, _)| *text).collect();
    let as_json = format!("{{\"messages\":[{}]}}", texts.join(","));
    let answers = [
        post(&mut client, PATH, as_json).await,
        lines(&mut client, PATH, texts.join("\n")).await,
        // In JSON a line like this would be the whole batch's fault.
        lines(&mut client, PATH, format!("{}\n{{", texts.join("\n"))).await,
    ];
    for answer in &answers {
        assert_eq!(answer.status, 200);
        let results = results(answer);
        for ((text, expected), result) in items.iter().zip(&results) {
            let text: String = text.chars().take(60).collect();
            let error = &result["error"];
            match expected {
                None => assert!(result["messageId"].is_string() && error.is_null(), "{result}"),
                Some((status, code)) => {
                    let told = (error["status"].as_u64(), error["code"].as_str());
                    assert_eq!(told, (Some(*status), Some(*code)), "{text}: {result}");
                    for member in ["type", "title", "detail"] {
                        assert!(error[member].is_string(), "{member} of {result}");
                    }
                    assert!(result.get("messageId").is_none(), "{result}");
                }
            }
        }
    }
    let last = results(&answers[2]);
    assert_eq!(last[9]["error"]["code"], "INVALID_REQUEST");
    let accepted = (2 * answers.len()).to_string();
    assert_eq!(server.figure("horolog_messages_accepted_total").await, accepted);
    server.stop().await;
}

#[tokio::test]
async fn a_batch_of_nothing_but_malformed_messages_makes_no_topic() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for item in ["{}", r#"{"body":1,"delay":"36526d"}"#] {
        let answer = post(&mut client, PATH, batch(2, item, "")).await;
        assert_eq!(answer.status, 200);
        assert!(results(&answer).iter().all(|result| result["error"].is_object()));
        let topic = get(&mut client, "/v1/topics/orders").await;
        assert_eq!(refusal(&topic), (404, "TOPIC_NOT_FOUND".to_owned()), "{item}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_atomic_batch_is_taken_whole_or_not_at_all_and_points_at_what_is_wrong() {
    let server = TestServer::start().await;
    let mut client = server.client();
    send_json(&mut client, Method::PUT, "/v1/topics/normal", r#"{"type":"NORMAL"}"#).await;
    let good = r#"{"bodyText":"a"}"#;
    for (topic, bad, status, code, pointer) in [
        ("orders", r#"{"body":1,"dealy":"1s"}"#, 400, "INVALID_REQUEST", "#/messages/3"),
        ("orders", "{}", 400, "INVALID_REQUEST", "#/messages/3"),
        ("orders", r#"{"body":1,"tag":""}"#, 400, "INVALID_REQUEST", "#/messages/3/tag"),
        ("orders", r#"{"body":1,"delay":-1}"#, 400, "INVALID_DELIVERY_TIME", "#/messages/3/delay"),
        ("orders", r#"{"body":1,"delay":"36526d"}"#, 400, "INVALID_DELIVERY_TIME", "#/messages/3"),
        ("normal", r#"{"body":1,"delay":"1h"}"#, 409, "TOPIC_TYPE_MISMATCH", "#/messages/3"),
    ] {
        let items = [good, good, good, bad, good, bad];
        let path = format!("/v1/topics/{topic}/messages/batch");
        let as_json = format!("{{\"messages\":[{}],\"atomic\":true}}", items.join(","));
        for answer in [
            post(&mut client, &path, as_json).await,
            lines(&mut client, &format!("{path}?atomic=true"), items.join("\n")).await,
        ] {
            assert_eq!(refusal(&answer), (status, code.to_owned()), "{bad}");
            let problem = json(&answer);
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
            assert_eq!(problem["errors"].as_array().map(Vec::len), Some(1), "{problem}");
        }
    }
    assert_eq!(server.figure("horolog_messages_accepted_total").await, "0");
    let path = "/v1/topics/orders/messages/batch";
    let answer = post(&mut client, path, batch(6, good, ",\"atomic\":true")).await;
    assert_eq!(answer.status, 201);
    let received = receive(&server, "workers", "orders").await;
    assert!(!received.is_empty() && received.iter().all(|message| message["bodyText"] == "a"));
    server.stop().await;
}

#[tokio::test]
async fn the_bodies_of_a_batch_have_a_limit_together() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let of = |bytes: usize| format!("{{\"bodyText\":\"{}\"}}", "x".repeat(bytes));
    const MIB: usize = 1 << 20;
    for (items, more, status) in [
        (vec![of(MIB); 4], ",\"atomic\":true", 201),
        (vec![of(MIB), of(MIB), of(MIB), of(MIB + 1)], ",\"atomic\":true", 413),
        (vec![of(MIB); 6], "", 200),
        (vec![of(MIB); 7], "", 413),
    ] {
        let body = format!("{{\"messages\":[{}]{more}}}", items.join(","));
        let answer = post(&mut client, PATH, body).await;
        if status == 413 {
            assert_eq!(refusal(&answer), (413, "BATCH_TOO_LARGE".to_owned()));
        } else {
            assert_eq!(answer.status, status, "{}", json(&answer));
        }
    }
    // Names and properties are no bodies, but they have to fit one group of the log all the same.
    let properties = format!("{{\"p\":\"{}\"}}", "x".repeat(32_000));
    let message = format!("{{\"body\":1,\"properties\":{properties}}}");
    let answer = post(&mut client, PATH, batch(400, &message, "")).await;
    assert_eq!(refusal(&answer), (413, "BATCH_TOO_LARGE".to_owned()));
    assert_eq!(server.figure("horolog_messages_accepted_total").await, "10");
    server.stop().await;
}

#[tokio::test]
async fn a_batch_costs_one_flush() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let figure = async |name: &str| {
        let value = server.figure(name).await;
        value.parse::<f64>().expect("a number")
    };
    let flushes = "horolog_group_records_count";
    let records = "horolog_group_records_sum";
    // A flush is counted a moment after those who wait for it have gone on.
    let counted = async |sum: f64| {
        while figure(records).await < sum {
            tokio::task::yield_now().await;
        }
    };
    send_json(&mut client, Method::PUT, "/v1/topics/orders", "{}").await;
    // The topic, and what the server has written at its start, which may not be counted yet either.
    counted(2.0).await;
    let before = (figure(flushes).await, figure(records).await);
    let answer = post(&mut client, PATH, batch(1000, r#"{"body":1,"delay":"1h"}"#, "")).await;
    assert_eq!(answer.status, 200);
    counted(before.1 + 1000.0).await;
    assert_eq!(figure(flushes).await, before.0 + 1.0);
    assert_eq!(figure(records).await, before.1 + 1000.0);
    server.stop().await;
}

#[tokio::test]
async fn every_message_of_a_batch_comes_once_at_its_moment() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let messages: Vec<_> = (0..200)
        .map(|number| value!({"bodyText": "x", "delay": 100 + number, "keys": ["k"]}))
        .collect();
    let made = results(&post(&mut client, PATH, value!({"messages": messages}).to_string()).await);
    post(&mut client, "/v1/topics/orders/messages", r#"{"bodyText":"fence","delay":"800ms"}"#)
        .await;
    let received = receive_up_to_fence(&server, "workers", "orders").await;
    let mut came: Vec<_> = received.iter().map(|one| one["messageId"].as_str()).collect();
    let mut expected: Vec<_> = made.iter().map(|one| one["messageId"].as_str()).collect();
    came.sort_unstable();
    expected.sort_unstable();
    assert_eq!(came, expected);
    for message in &received {
        assert!(message["firedAt"].as_str() >= message["deliverAt"].as_str(), "early: {message}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_batch_in_a_server_that_makes_no_topics_needs_one() {
    let given = horolog::config::Given {
        auto_create_topics: Some("false".to_owned()),
        ..horolog::config::Given::default()
    };
    let server = TestServer::start_with(given).await;
    let mut client = server.client();
    let body = batch(2, r#"{"body":1}"#, "");
    let answer = post(&mut client, PATH, body.clone()).await;
    assert_eq!(refusal(&answer), (404, "TOPIC_NOT_FOUND".to_owned()));
    let timer = "/v1/topics/orders/timers/k";
    let answer = send_json(&mut client, Method::PUT, timer, r#"{"body":1}"#).await;
    assert_eq!(refusal(&answer), (404, "TOPIC_NOT_FOUND".to_owned()));
    let made = send_json(&mut client, Method::PUT, "/v1/topics/orders", "{}").await;
    assert_eq!(made.status, 201);
    assert_eq!(post(&mut client, PATH, body).await.status, 200);
    let answer = send_json(&mut client, Method::PUT, timer, r#"{"body":1}"#).await;
    assert_eq!(answer.status, 201);
    server.stop().await;
}
