//! `POST /v1/topics/{topic}/messages`: what is taken, what is refused, and that a refusal leaves
//! nothing behind.

use axum::http::Method;
use horolog::config::Given;

use crate::fixture::{TestServer, get, json, post, refusal, send};

const PATH: &str = "/v1/topics/orders/messages";

fn nested(depth: usize) -> String {
    format!("{{\"body\":{}{}}}", "[".repeat(depth), "]".repeat(depth))
}

fn with(member: &str) -> String {
    format!("{{\"body\":1,{member}}}")
}

#[tokio::test]
async fn a_malformed_json_put_is_refused_by_its_code_and_stores_nothing() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let long = "x".repeat(256);
    let many_keys = format!("[{}\"k\"]", "\"k\",".repeat(128));
    let large_properties = format!("{{\"p\":\"{}\"}}", "x".repeat(32 * 1024));
    for (body, code) in [
        // Syntax and shape.
        (String::new(), "INVALID_REQUEST"),
        ("{".to_owned(), "INVALID_REQUEST"),
        ("[]".to_owned(), "INVALID_REQUEST"),
        ("[{\"a\":1},null,null,[],null,{},null,null,null,null]".to_owned(), "INVALID_REQUEST"),
        ("{\"body\":1}x".to_owned(), "INVALID_REQUEST"),
        ("{\"body\":01}".to_owned(), "INVALID_REQUEST"),
        ("{\"bodyText\":\"\u{1}\"}".to_owned(), "INVALID_REQUEST"),
        (with("\"dealy\":\"5s\""), "INVALID_REQUEST"),
        (with("\"topic\":\"x\""), "INVALID_REQUEST"),
        (with("\"body\":2"), "INVALID_REQUEST"),
        (nested(33), "INVALID_REQUEST"),
        (nested(200_000), "INVALID_REQUEST"),
        // The body.
        ("{}".to_owned(), "INVALID_REQUEST"),
        (with("\"bodyText\":\"a\""), "INVALID_REQUEST"),
        ("{\"bodyText\":1}".to_owned(), "INVALID_REQUEST"),
        ("{\"bodyBase64\":\"a\"}".to_owned(), "INVALID_REQUEST"),
        ("{\"bodyBase64\":\"*\"}".to_owned(), "INVALID_REQUEST"),
        // When.
        (with("\"delay\":\"5s\",\"deliverAt\":0"), "INVALID_REQUEST"),
        (with("\"delay\":\"5s\",\"delayLevel\":1"), "INVALID_REQUEST"),
        (with("\"delayLevel\":-1"), "INVALID_REQUEST"),
        (with("\"deliverAt\":null"), "INVALID_REQUEST"),
        (with("\"deliverAt\":true"), "INVALID_REQUEST"),
        (with("\"delay\":{}"), "INVALID_REQUEST"),
        (with("\"deliverAt\":-1"), "INVALID_DELIVERY_TIME"),
        (with("\"deliverAt\":1.5"), "INVALID_DELIVERY_TIME"),
        (with("\"deliverAt\":1e400"), "INVALID_DELIVERY_TIME"),
        (with("\"deliverAt\":18446744073709551615"), "INVALID_DELIVERY_TIME"),
        (with("\"deliverAt\":18446744073709551616"), "INVALID_DELIVERY_TIME"),
        (with("\"deliverAt\":\"next week\""), "INVALID_DELIVERY_TIME"),
        (with("\"deliverAt\":\"2026-10-01T12:00:00\""), "INVALID_DELIVERY_TIME"),
        (with("\"deliverAt\":\"9999-12-31T23:59:59Z\""), "INVALID_DELIVERY_TIME"),
        (with("\"delay\":-5"), "INVALID_DELIVERY_TIME"),
        (with("\"delay\":\"-5s\""), "INVALID_DELIVERY_TIME"),
        (with("\"delay\":\"5 parsecs\""), "INVALID_DELIVERY_TIME"),
        (with("\"delay\":0.5"), "INVALID_DELIVERY_TIME"),
        (with("\"delay\":\"36526d\""), "INVALID_DELIVERY_TIME"),
        (with("\"delay\":18446744073709551615"), "INVALID_DELIVERY_TIME"),
        (with("\"delay\":99999999999999999999"), "INVALID_DELIVERY_TIME"),
        // What goes with it.
        (with("\"tag\":\"\""), "INVALID_REQUEST"),
        (with(&format!("\"tag\":\"{long}\"")), "INVALID_REQUEST"),
        (with("\"tag\":1"), "INVALID_REQUEST"),
        (with("\"keys\":\"k\""), "INVALID_REQUEST"),
        (with("\"keys\":[\"\"]"), "INVALID_REQUEST"),
        (with(&format!("\"keys\":[\"{long}\"]")), "INVALID_REQUEST"),
        (with(&format!("\"keys\":{many_keys}")), "INVALID_REQUEST"),
        (with(&format!("\"messageGroup\":\"{long}\"")), "INVALID_REQUEST"),
        (with("\"properties\":[]"), "INVALID_REQUEST"),
        (with("\"properties\":{\"a\":1}"), "INVALID_REQUEST"),
        (with("\"properties\":{\"a\":\"1\",\"a\":\"2\"}"), "INVALID_REQUEST"),
        (with(&format!("\"properties\":{large_properties}")), "INVALID_REQUEST"),
    ] {
        let shown: String = body.chars().take(80).collect();
        let answer = post(&mut client, PATH, body).await;
        assert_eq!(refusal(&answer), (400, code.to_owned()), "{shown}");
    }
    assert_eq!(server.figure("horolog_messages_accepted_total").await, "0");
    server.stop().await;
}

#[tokio::test]
async fn a_topic_has_a_plain_name_that_is_not_the_systems() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let long = "t".repeat(256);
    for (topic, code) in [
        ("..", "INVALID_REQUEST"),
        (".", "INVALID_REQUEST"),
        ("a%20b", "INVALID_REQUEST"),
        ("a%2Fb", "INVALID_REQUEST"),
        ("a%00", "INVALID_REQUEST"),
        ("%C3%A9", "INVALID_REQUEST"),
        ("%FF", "INVALID_REQUEST"),
        ("a:b", "INVALID_REQUEST"),
        (long.as_str(), "INVALID_REQUEST"),
        ("%25DLQ%25orders", "RESERVED_NAME"),
        ("rmq_sys_wheel_timer", "RESERVED_NAME"),
        ("RMQ_SYS_TRANS_HALF_TOPIC", "RESERVED_NAME"),
        ("SCHEDULE_TOPIC_XXXX", "RESERVED_NAME"),
    ] {
        let path = format!("/v1/topics/{topic}/messages");
        let answer = post(&mut client, &path, "{\"body\":1}").await;
        assert_eq!(refusal(&answer), (400, code.to_owned()), "{topic}");
    }
    for topic in ["...", "a.b-c_d%25", &long[..255]] {
        let path = format!("/v1/topics/{topic}/messages");
        let answer = post(&mut client, &path, "{\"body\":1}").await;
        assert_eq!(answer.status, 201, "{topic}: {}", json(&answer));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_malformed_raw_put_is_refused_and_stores_nothing() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let png = ("content-type", "image/png");
    for (headers, code) in [
        ([png, ("horolog-dealy", "5s")], "INVALID_REQUEST"),
        ([png, ("horolog-delay", "soon")], "INVALID_DELIVERY_TIME"),
        ([png, ("horolog-delay", "-1")], "INVALID_DELIVERY_TIME"),
        ([png, ("horolog-deliver-at", "-1")], "INVALID_DELIVERY_TIME"),
        ([png, ("horolog-deliver-at", "18446744073709551616")], "INVALID_DELIVERY_TIME"),
        ([png, ("horolog-delay-level", "-2")], "INVALID_REQUEST"),
        ([("horolog-delay-level", "2"), ("horolog-delay", "1s")], "INVALID_REQUEST"),
        ([png, ("horolog-tag", "")], "INVALID_REQUEST"),
        ([png, ("horolog-key", "")], "INVALID_REQUEST"),
        ([png, ("horolog-properties", "not base64")], "INVALID_REQUEST"),
        ([png, ("horolog-properties", "e30x")], "INVALID_REQUEST"),
        ([png, ("idempotency-key", "")], "INVALID_REQUEST"),
        ([("horolog-delay", "1s"), ("horolog-delay", "1s")], "INVALID_REQUEST"),
        ([("horolog-delay", "1s"), ("horolog-deliver-at", "1")], "INVALID_REQUEST"),
        ([("content-type", "application/json"), ("horolog-delay", "1s")], "INVALID_REQUEST"),
        ([("content-type", "application/x-ndjson"), ("accept", "*/*")], "INVALID_REQUEST"),
    ] {
        let answer = send(&mut client, Method::POST, PATH, &headers, "{\"body\":1}").await;
        assert_eq!(refusal(&answer), (400, code.to_owned()), "{headers:?}");
    }
    let nothing = send(&mut client, Method::POST, PATH, &[], "").await;
    assert_eq!(refusal(&nothing), (400, "INVALID_REQUEST".to_owned()));
    let parameter = format!("{PATH}?delay=5s");
    let answer = post(&mut client, &parameter, "{\"body\":1}").await;
    assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()));
    assert_eq!(server.figure("horolog_messages_accepted_total").await, "0");
    server.stop().await;
}

#[tokio::test]
async fn every_way_to_say_when_is_understood() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for (moment, state) in [
        ("\"tag\":\"now\"", "READY"),
        ("\"delay\":0", "READY"),
        ("\"delay\":\"0s\"", "READY"),
        ("\"delayLevel\":0", "READY"),
        ("\"deliverAt\":0", "READY"),
        ("\"deliverAt\":\"2001-09-09T01:46:40Z\"", "READY"),
        ("\"delay\":3600000", "SCHEDULED"),
        ("\"delay\":\"90m\"", "SCHEDULED"),
        ("\"delay\":\"1h30m\"", "SCHEDULED"),
        ("\"delay\":\"PT30M\"", "SCHEDULED"),
        ("\"delay\":\"30d\"", "SCHEDULED"),
        ("\"delay\":\"36525d\"", "SCHEDULED"),
        ("\"deliverAt\":\"2077-07-07T07:07:07+08:00\"", "SCHEDULED"),
    ] {
        let answer = post(&mut client, PATH, with(moment)).await;
        let put = json(&answer);
        assert_eq!(answer.status, 201, "{moment}: {put}");
        assert_eq!(put["state"], state, "{moment}: {put}");
        assert_eq!(put["topic"], "orders");
        let id = put["messageId"].as_str().expect("an id is text");
        assert_eq!(answer.headers["location"], format!("/v1/messages/{id}"));
    }
    let answer = post(&mut client, PATH, with("\"deliverAt\":\"2077-07-07T07:07:07+08:00\"")).await;
    assert_eq!(json(&answer)["deliverAt"], "2077-07-06T23:07:07.000Z");
    let answer = post(&mut client, PATH, with("\"deliverAt\":3392752027007")).await;
    assert_eq!(json(&answer)["deliverAt"], "2077-07-05T23:07:07.007Z");
    server.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_by_the_size_it_is_stored_in() {
    let given = Given { max_body: Some("1KiB".to_owned()), ..Given::default() };
    let server = TestServer::start_with(given).await;
    let mut client = server.client();
    let (fits, over) = ("x".repeat(1024), "x".repeat(1025));
    for (form, fits, over) in [
        ("bodyText", format!("\"{fits}\""), format!("\"{over}\"")),
        // 1024 and 1026 bytes, which are a third longer in base64.
        ("bodyBase64", format!("\"{}A==\"", "A".repeat(1365)), format!("\"{}\"", "A".repeat(1368))),
        ("body", format!("\"{}\"", &fits[2..]), format!("\"{}\"", &fits[1..])),
    ] {
        let answer = post(&mut client, PATH, format!("{{\"{form}\":{fits}}}")).await;
        assert_eq!(answer.status, 201, "{form}: {}", json(&answer));
        let answer = post(&mut client, PATH, format!("{{\"{form}\":{over}}}")).await;
        assert_eq!(refusal(&answer), (413, "BODY_TOO_LARGE".to_owned()), "{form}");
    }
    let raw = [("content-type", "image/png")];
    assert_eq!(send(&mut client, Method::POST, PATH, &raw, fits).await.status, 201);
    let answer = send(&mut client, Method::POST, PATH, &raw, over).await;
    assert_eq!(refusal(&answer), (413, "BODY_TOO_LARGE".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn a_put_on_an_unknown_topic_is_refused_when_topics_do_not_make_themselves() {
    let given = Given { auto_create_topics: Some("false".to_owned()), ..Given::default() };
    let server = TestServer::start_with(given).await;
    let answer = post(&mut server.client(), PATH, "{\"body\":1}").await;
    assert_eq!(refusal(&answer), (404, "TOPIC_NOT_FOUND".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn what_a_raw_put_says_in_headers_comes_back_as_fields() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let headers = [
        ("content-type", "image/png"),
        ("horolog-delay", "1h"),
        ("horolog-key", "order-17"),
        ("horolog-key", "customer-4"),
        ("horolog-tag", "unpaid"),
        ("horolog-message-group", "customer-4"),
        ("horolog-properties", "eyJUcmllcyI6IjMifQ"),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("tracestate", "a=1"),
    ];
    let answer = send(&mut client, Method::POST, PATH, &headers, vec![0x89, 0x50, 0xff]).await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
    let id = json(&answer)["messageId"].as_str().expect("an id is text").to_owned();
    let view = json(&get(&mut client, &format!("/v1/messages/{id}?body=true")).await);
    for (field, value) in [
        ("keys", serde_json::json!(["order-17", "customer-4"])),
        ("tag", "unpaid".into()),
        ("messageGroup", "customer-4".into()),
        ("properties", serde_json::json!({"Tries": "3"})),
        ("contentType", "image/png".into()),
        ("bodyBase64", "iVD/".into()),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
        ("tracestate", "a=1".into()),
        ("state", "SCHEDULED".into()),
    ] {
        assert_eq!(view[field], value, "{field} of {view}");
    }
    server.stop().await;
}
