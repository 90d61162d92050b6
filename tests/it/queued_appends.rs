//! What waits for the disk, at its bound: new work is refused at once, and what was accepted goes on to its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use axum::http::Method;
use horolog::client::{Answer, Client};
use serde_json::json as value;
use timerlog::disk::sim::SimDisk;
use timerlog::disk::{Directory, Operation};

use crate::fixture::{TestServer, json, post, receive_up_to_fence, send};
use crate::group_settings::put;
use crate::limits::{given, handles, overload, refused, until};

const PUT: &str = "/v1/topics/orders/messages";
const PREPARE: &str = "/v1/topics/orders/transactions";
const ACK: &str = "/v1/groups/workers/ack";

/// A disk that stands still while it is told to.
struct Disk {
    disk: SimDisk,
    stands: Arc<AtomicBool>,
    go_on: mpsc::Sender<()>,
}

impl Disk {
    fn new() -> Self {
        let (disk, stands) = (SimDisk::new(1), Arc::new(AtomicBool::new(false)));
        let (go_on, wait) = mpsc::channel();
        let wait = parking_lot::Mutex::new(wait);
        let standing = Arc::clone(&stands);
        disk.on_operation(move |operation, path| {
            let flush = operation == Operation::Sync && path.starts_with("commitlog");
            if flush && standing.load(Ordering::SeqCst) {
                // It also goes on when the test is over.
                let _ = wait.lock().recv();
            }
        });
        Self { disk, stands, go_on }
    }

    fn root(&self) -> Arc<dyn Directory> {
        self.disk.root()
    }

    fn stand_still(&self) {
        self.stands.store(true, Ordering::SeqCst);
    }

    fn go_on(self) {
        self.stands.store(false, Ordering::SeqCst);
        drop(self.go_on);
    }
}

async fn put_one(address: SocketAddr, body: String) -> Answer {
    post(&mut Client::new(address), PUT, body).await
}

#[tokio::test]
async fn new_messages_are_refused_while_too_many_wait_for_the_disk_and_acks_are_not() {
    let disk = Disk::new();
    let settings = given(&[("max_queued_appends", "3")]);
    let server = TestServer::start_on_disk(settings, disk.root()).await;
    until(&server, "horolog_queued_appends", "0").await;
    put(&server, "orders", "out", None).await;
    until(&server, "horolog_queued_appends", "0").await;
    let out = handles(&server, "workers", 1).await;
    until(&server, "horolog_queued_appends", "0").await;
    disk.stand_still();
    let mut accepted = tokio::task::JoinSet::new();
    for number in 1..=3 {
        accepted.spawn(put_one(server.address(), format!("{{\"body\":{number}}}")));
        until(&server, "horolog_queued_appends", &number.to_string()).await;
    }
    for refused in 4..=6 {
        let answer = put_one(server.address(), format!("{{\"body\":{refused}}}")).await;
        assert_eq!(overload(&answer), (503, "OVERLOADED".to_owned()));
    }
    assert_eq!(refused(&server, "queued_appends").await, "3");
    // A message that was accepted can still be acknowledged; that waits for the disk, too.
    let request = value!({"receiptHandles": out}).to_string();
    let mut consumer = server.client();
    let ack = tokio::spawn(async move { post(&mut consumer, ACK, request).await });
    until(&server, "horolog_queued_appends", "4").await;
    disk.go_on();
    let ack = json(&ack.await.expect("the test did not panic"));
    assert_eq!(ack["results"][0]["status"], "ok", "{ack}");
    while let Some(answer) = accepted.join_next().await {
        assert_eq!(answer.expect("the test did not panic").status, 201);
    }
    until(&server, "horolog_queued_appends", "0").await;
    // There is room again; and what was refused is not there.
    put(&server, "orders", "fence", None).await;
    let received = crate::fixture::receive_up_to_fence(&server, "workers", "orders").await;
    let mut bodies: Vec<_> = received.iter().filter_map(|m| m["body"].as_u64()).collect();
    bodies.sort_unstable();
    assert_eq!(bodies, [1, 2, 3]);
    server.stop().await;
}

#[tokio::test]
async fn bytes_that_wait_for_the_disk_have_a_bound_of_their_own() {
    let disk = Disk::new();
    let settings = given(&[("max_queued_append_bytes", "1MiB")]);
    let server = TestServer::start_on_disk(settings, disk.root()).await;
    put(&server, "orders", "first", None).await;
    until(&server, "horolog_queued_append_bytes", "0").await;
    disk.stand_still();
    let large = format!("{{\"bodyText\":\"{}\"}}", "x".repeat(1 << 20));
    let accepted = tokio::spawn(put_one(server.address(), large));
    until(&server, "horolog_queued_appends", "1").await;
    let answer = put_one(server.address(), r#"{"body":1}"#.to_owned()).await;
    assert_eq!(overload(&answer), (503, "OVERLOADED".to_owned()));
    disk.go_on();
    assert_eq!(accepted.await.expect("the test did not panic").status, 201);
    until(&server, "horolog_queued_append_bytes", "0").await;
    put(&server, "orders", "again", None).await;
    server.stop().await;
}

/// Whoever holds a transaction open, or a message, is done with it also while nothing new is taken; and messages that
/// are there are handed out.
#[tokio::test]
async fn at_the_bound_transactions_end_and_messages_are_handed_out() {
    let disk = Disk::new();
    let settings = given(&[("max_queued_appends", "2")]);
    let server = TestServer::start_on_disk(settings, disk.root()).await;
    // What is answered, or written by the start, may be counted as waiting for a moment more.
    until(&server, "horolog_queued_appends", "0").await;
    // The group's first receive makes it known; that waits for the disk.
    put(&server, "orders", "0", None).await;
    handles(&server, "workers", 1).await;
    until(&server, "horolog_queued_appends", "0").await;
    put(&server, "orders", "1", None).await;
    until(&server, "horolog_queued_appends", "0").await;
    let mut client = server.client();
    let mut transactions = Vec::new();
    for body in [2, 3] {
        let half = value!({"body": body, "producerGroup": "shop"}).to_string();
        let answer = json(&post(&mut client, PREPARE, half).await);
        let id = answer["transactionId"].as_str().expect("an id");
        transactions.push(format!("/v1/transactions/{id}"));
        until(&server, "horolog_queued_appends", "0").await;
    }
    disk.stand_still();
    let mut accepted = tokio::task::JoinSet::new();
    for number in 1..=2 {
        accepted.spawn(put_one(server.address(), format!("{{\"body\":{}}}", number * 10)));
        until(&server, "horolog_queued_appends", &number.to_string()).await;
    }
    let mut ended = tokio::task::JoinSet::new();
    for (count, (id, how)) in transactions.iter().zip(["commit", "rollback"]).enumerate() {
        let (mut client, path) = (server.client(), format!("{id}/{how}"));
        ended.spawn(async move { send(&mut client, Method::POST, &path, &[], "").await });
        until(&server, "horolog_queued_appends", &(count + 3).to_string()).await;
        // Nor has that made room for anything new.
        let answer = put_one(server.address(), "{\"body\":30}".to_owned()).await;
        assert_eq!(overload(&answer), (503, "OVERLOADED".to_owned()));
        let half = value!({"body": 30, "producerGroup": "shop"}).to_string();
        let answer = post(&mut server.client(), PREPARE, half).await;
        assert_eq!(overload(&answer), (503, "OVERLOADED".to_owned()));
    }
    assert_eq!(handles(&server, "workers", 1).await.len(), 1);
    disk.go_on();
    while let Some(answer) = accepted.join_next().await {
        assert_eq!(answer.expect("the test did not panic").status, 201);
    }
    while let Some(answer) = ended.join_next().await {
        assert_eq!(answer.expect("the test did not panic").status, 200);
    }
    until(&server, "horolog_queued_appends", "0").await;
    put(&server, "orders", "fence", None).await;
    let received = receive_up_to_fence(&server, "others", "orders").await;
    let mut bodies: Vec<_> = received.iter().filter_map(|m| m["body"].as_u64()).collect();
    bodies.sort_unstable();
    // What `put` puts are texts.
    assert_eq!(bodies, [2, 10, 20]);
    server.stop().await;
}
