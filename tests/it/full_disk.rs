//! On a nearly full disk: what is refused, what goes on, and how to see it.

use axum::http::Method;
use horolog::client::{Answer, Client};
use horolog::config::Given;
use serde_json::json as value;
use timerlog::disk::sim::SimDisk;

use crate::fixture::{TestServer, delete, get, id, json, post, receive, refusal, send_json};

const RESERVE: u64 = 1 << 20;

async fn server_on(disk: &SimDisk) -> TestServer {
    let given = Given { disk_reserve: Some("1MiB".to_owned()), ..Given::default() };
    TestServer::start_on_disk(given, disk.root()).await
}

async fn until_pressure(server: &TestServer, expected: &str) {
    while server.figure("horolog_disk_pressure").await != expected {
        tokio::task::yield_now().await;
    }
}

fn has_ballast(disk: &SimDisk) -> bool {
    disk.files().contains(&"ballast".to_owned())
}

/// The disk has been looked at.
async fn until_ballast(disk: &SimDisk) {
    while !has_ballast(disk) {
        tokio::task::yield_now().await;
    }
}

async fn put(client: &mut Client, message: &str) -> Answer {
    post(client, "/v1/topics/orders/messages", message.to_owned()).await
}

#[tokio::test]
async fn everything_new_is_refused_by_507_and_taken_again_when_there_is_room() {
    let disk = SimDisk::new(1);
    let server = server_on(&disk).await;
    let mut client = server.client();
    id(&put(&mut client, r#"{"bodyText":"a"}"#).await);
    until_ballast(&disk).await;
    // Between the two watermarks: the ballast stays.
    disk.set_capacity(Some(disk.allocated() + RESERVE - 1));
    until_pressure(&server, "1").await;
    assert!(has_ballast(&disk));
    let timer = r#"{"bodyText":"a","delay":"1h"}"#;
    let half = r#"{"bodyText":"a","producerGroup":"shop"}"#;
    let new = [
        (Method::POST, "/v1/topics/orders/messages", r#"{"bodyText":"a"}"#),
        (Method::POST, "/v1/topics/orders/messages", timer),
        (Method::POST, "/v1/topics/orders/messages", r#"{"bodyText":"a","delayLevel":3}"#),
        (Method::POST, "/v1/topics/others/messages", r#"{"bodyText":"a"}"#),
        (
            Method::POST,
            "/v1/topics/orders/messages/batch",
            r#"{"messages":[{"bodyText":"a"}],"atomic":true}"#,
        ),
        // Not item by item: none of them can be taken.
        (Method::POST, "/v1/topics/orders/messages/batch", r#"{"messages":[{"bodyText":"a"}]}"#),
        (Method::PUT, "/v1/topics/orders/timers/key", timer),
        (Method::POST, "/v1/topics/orders/transactions", half),
        (Method::PUT, "/v1/topics/typed", r#"{"type":"NORMAL"}"#),
    ];
    for (count, (method, path, body)) in (1..).zip(&new) {
        let answer = send_json(&mut client, method.clone(), path, *body).await;
        assert_eq!(refusal(&answer), (507, "STORAGE_FULL".to_owned()), "{method} {path}");
        let figure = server.figure("horolog_refused_total{limit=\"disk_reserve\"}").await;
        assert_eq!(figure, count.to_string(), "{method} {path}");
    }
    disk.set_capacity(None);
    until_pressure(&server, "0").await;
    for (method, path, body) in new {
        let answer = send_json(&mut client, method.clone(), path, body).await;
        assert!(answer.status.is_success(), "{method} {path}: {}", json(&answer));
    }
    server.stop().await;
}

#[tokio::test]
async fn what_was_accepted_goes_on_to_its_end_on_what_the_ballast_gives_up() {
    let disk = SimDisk::new(1);
    let server = server_on(&disk).await;
    let mut client = server.client();
    let pending = id(&put(&mut client, r#"{"bodyText":"cancelled","delay":"1h"}"#).await);
    let moved = id(&put(&mut client, r#"{"bodyText":"moved","delay":"1h"}"#).await);
    let half = r#"{"bodyText":"committed","producerGroup":"shop"}"#;
    let half = json(&post(&mut client, "/v1/topics/orders/transactions", half).await);
    id(&put(&mut client, r#"{"bodyText":"fired","delay":"300ms"}"#).await);
    id(&put(&mut client, r#"{"bodyText":"given back"}"#).await);
    until_ballast(&disk).await;
    // The ballast of this test is smaller than the first file of a TimerLog.
    while server.figure("horolog_log_bytes_written_total{file=\"timerlog\"}").await == "0" {
        tokio::task::yield_now().await;
    }
    disk.set_capacity(Some(disk.allocated()));
    until_pressure(&server, "2").await;
    assert!(!has_ballast(&disk));

    let cancelled = delete(&mut client, &format!("/v1/messages/{pending}")).await;
    assert_eq!(json(&cancelled)["state"], "CANCELLED");
    let to = value!({"delay": 200}).to_string();
    let path = format!("/v1/messages/{moved}");
    let patched = send_json(&mut client, Method::PATCH, &path, to).await;
    assert_eq!(patched.status, 200, "{}", json(&patched));
    let transaction = half["transactionId"].as_str().expect("it was begun");
    let path = format!("/v1/transactions/{transaction}/commit");
    assert_eq!(post(&mut client, &path, "").await.status, 200);
    // By a group that makes itself.
    let mut left = vec!["committed", "fired", "given back", "given back", "moved"];
    let mut gave_back = false;
    while !left.is_empty() {
        for message in receive(&server, "workers", "orders").await {
            let text = message["bodyText"].as_str().expect("it was put as text");
            let place = left.iter().position(|wanted| *wanted == text);
            left.remove(place.unwrap_or_else(|| panic!("{text} came once too often")));
            let how = match text == "given back" && !gave_back {
                true => value!({"receiptHandles": [message["receiptHandle"]], "delay": 10}),
                false => value!({"receiptHandles": [message["receiptHandle"]]}),
            };
            let call = if how["delay"].is_null() { "ack" } else { "nack" };
            gave_back |= call == "nack";
            let path = format!("/v1/groups/workers/{call}");
            let answer = json(&post(&mut client, &path, how.to_string()).await);
            assert_eq!(answer["results"][0]["status"], "ok", "{answer}");
        }
    }
    assert_eq!(refusal(&put(&mut client, r#"{"bodyText":"a"}"#).await).0, 507);
    server.stop().await;
}

#[tokio::test]
async fn the_watermarks_are_listed_and_readiness_names_the_disk() {
    let disk = SimDisk::new(1);
    let server = server_on(&disk).await;
    let mut client = server.client();
    let limits = json(&get(&mut client, "/v1/limits").await);
    assert_eq!(limits["diskReserveBytes"], RESERVE);
    assert_eq!(limits["diskBallastBytes"], RESERVE / 2);
    until_ballast(&disk).await;
    let ready = get(&mut client, "/readyz?verbose").await;
    assert_eq!(ready.body, "[+] http ok\n[+] store ok\n[+] quarantine empty\n[+] disk ok\nok\n");

    disk.set_capacity(Some(disk.allocated() + RESERVE - 1));
    until_pressure(&server, "1").await;
    assert_eq!(server.figure("horolog_disk_free_bytes").await, (RESERVE - 1).to_string());
    let ready = get(&mut client, "/readyz?verbose").await;
    // Whoever routes by it goes on: messages are handed out.
    assert_eq!(ready.status, 200);
    let text = String::from_utf8_lossy(&ready.body);
    let line =
        "[-] disk the disk is nearly full: new messages are refused (1048575 bytes are free)";
    assert_eq!(
        text,
        format!("[+] http ok\n[+] store ok\n[+] quarantine empty\n{line}\nok, degraded\n")
    );
    assert_eq!(get(&mut client, "/readyz").await.body, "ok\n");
    server.stop().await;
}
