//! Many who wait for one group, and some who go away.

use serde_json::{Value, json as value};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::fixture::{TestServer, json, post};
use crate::group_settings::put;

const RECEIVE: &str = "/v1/groups/workers/receive";

async fn waiting(server: &TestServer, count: usize) {
    let count = count.to_string();
    while server.figure("horolog_receives_waiting").await != count {
        tokio::task::yield_now().await;
    }
}

fn poll(server: &TestServer, max: u64) -> JoinHandle<Vec<Value>> {
    let mut client = server.client();
    tokio::spawn(async move {
        let request = value!({"topic": "orders", "max": max, "wait": "30s"}).to_string();
        let answer = json(&post(&mut client, RECEIVE, request).await);
        answer["messages"].as_array().expect("a list").clone()
    })
}

/// A receive over a bare connection, to be closed.
async fn hanging(server: &TestServer) -> TcpStream {
    let body = r#"{"topic":"orders","wait":"30s","max":256}"#;
    let length = body.len();
    let request =
        format!("POST {RECEIVE} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}");
    let mut stream = TcpStream::connect(server.address()).await.expect("the server listens");
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    stream
}

#[tokio::test]
async fn a_caller_that_closed_its_connection_is_given_nothing() {
    let server = TestServer::start().await;
    let gone = hanging(&server).await;
    waiting(&server, 1).await;
    let next = poll(&server, 1);
    waiting(&server, 2).await;
    drop(gone);
    waiting(&server, 1).await;
    put(&server, "orders", "one", None).await;
    let received = next.await.expect("the task was not aborted");
    assert_eq!(received.len(), 1, "the one who went away has it");
    assert_eq!(received[0]["attempt"], 1);
    server.stop().await;
}

#[tokio::test]
async fn those_who_wait_share_what_comes() {
    let server = TestServer::start().await;
    // One that would take all there is, again and again, and eight that ask for one.
    let mut greedy = poll(&server, 256);
    waiting(&server, 1).await;
    let modest: Vec<_> = (0..8).map(|_| poll(&server, 1)).collect();
    waiting(&server, 9).await;
    let mut left = modest;
    let mut body = 0_u64;
    while !left.is_empty() {
        put(&server, "orders", &body.to_string(), None).await;
        body += 1;
        if greedy.is_finished() {
            assert!(!greedy.await.expect("not aborted").is_empty(), "woken for nothing");
            greedy = poll(&server, 256);
        }
        left.retain(|poll| !poll.is_finished());
        // Each round serves the oldest; the greedy one stands behind those who wait.
        assert!(body <= 1000, "{} were starved", left.len());
    }
    server.stop().await;
}
