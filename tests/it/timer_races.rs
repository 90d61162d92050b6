//! Timers of one key, put, cancelled and fired by many at once.

use axum::http::Method;
use horolog::client::{Answer, Client};
use serde_json::{Value, json as value};
use tokio::task::JoinSet;

use crate::fixture::{TestServer, delete, get, id, json, receive_up_to_fence, send_json};

const PATH: &str = "/v1/topics/orders/timers/order-17";

async fn put(client: &mut Client, path: &str, message: &Value) -> Answer {
    send_json(client, Method::PUT, path, message.to_string()).await
}

async fn state(client: &mut Client, id: &str) -> String {
    let view = json(&get(client, &format!("/v1/messages/{id}")).await);
    view["state"].as_str().unwrap_or_default().to_owned()
}

/// Eight writers, one key: each replaces whom it finds, and whoever is last stays.
#[tokio::test]
async fn of_many_concurrent_writers_of_a_key_one_stays_and_one_arrives() {
    const WRITERS: usize = 8;
    const PUTS: usize = 25;
    let server = TestServer::start().await;
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let mut client = server.client();
        writers.spawn(async move {
            let mut answers = Vec::new();
            for _ in 0..PUTS {
                let hour = value!({"bodyText": "x", "delay": "1h"});
                let answer = put(&mut client, PATH, &hour).await;
                let replaced = json(&answer)["replaced"].as_str().map(str::to_owned);
                answers.push((id(&answer), replaced));
            }
            answers
        });
    }
    let answers: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    assert_eq!(answers.len(), WRITERS * PUTS);
    // Each but the last was replaced by exactly one other.
    let mut replaced: Vec<_> =
        answers.iter().filter_map(|(_, replaced)| replaced.clone()).collect();
    assert_eq!(replaced.len(), answers.len() - 1);
    replaced.sort();
    replaced.dedup();
    assert_eq!(replaced.len(), answers.len() - 1);
    let mut client = server.client();
    let mut scheduled = Vec::new();
    for (id, _) in &answers {
        if state(&mut client, id).await == "SCHEDULED" {
            scheduled.push(id.clone());
        }
    }
    assert_eq!(scheduled.len(), 1, "{scheduled:?}");
    assert_eq!(json(&get(&mut client, PATH).await)["messageId"], scheduled[0].as_str());
    // All of them are brought forward: only one can be.
    for (id, _) in &answers {
        let path = format!("/v1/messages/{id}");
        let moved = send_json(&mut client, Method::PATCH, &path, r#"{"delay":"100ms"}"#).await;
        assert_eq!(moved.status == 200, *id == scheduled[0], "{}", json(&moved));
    }
    let fence = "/v1/topics/orders/timers/fence";
    put(&mut client, fence, &value!({"bodyText": "fence", "delay": "500ms"})).await;
    let received = receive_up_to_fence(&server, "workers", "orders").await;
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0]["messageId"], scheduled[0].as_str());
    server.stop().await;
}

/// Puts, cancels and firings of one key at once: what each was told stays true.
#[tokio::test]
async fn what_writers_and_cancellers_of_a_key_are_told_holds() {
    const ROUNDS: usize = 40;
    let server = TestServer::start().await;
    let (mut putter, mut canceller) = (server.client(), server.client());
    let puts = tokio::spawn(async move {
        let mut ids = Vec::new();
        for _ in 0..ROUNDS {
            let soon = value!({"bodyText": "x", "delay": "3ms"});
            let answer = put(&mut putter, PATH, &soon).await;
            ids.push((id(&answer), json(&answer)["replaced"].as_str().map(str::to_owned)));
        }
        ids
    });
    let cancels = tokio::spawn(async move {
        let mut cancelled = Vec::new();
        for _ in 0..ROUNDS {
            let answer = delete(&mut canceller, PATH).await;
            match answer.status.as_u16() {
                200 => cancelled.push(id(&answer)),
                404 | 409 => {}
                status => unreachable!("{status} {}", json(&answer)),
            }
        }
        cancelled
    });
    let puts = puts.await.expect("no panic");
    let cancelled = cancels.await.expect("no panic");
    let fence = "/v1/topics/orders/timers/fence";
    let mut client = server.client();
    put(&mut client, fence, &value!({"bodyText": "fence", "delay": "500ms"})).await;
    let received = receive_up_to_fence(&server, "workers", "orders").await;
    let mut came: Vec<_> =
        received.iter().map(|one| one["messageId"].as_str().unwrap().to_owned()).collect();
    came.sort();
    let count = came.len();
    came.dedup();
    assert_eq!(came.len(), count, "one came twice");
    let replaced: Vec<_> = puts.iter().filter_map(|(_, replaced)| replaced.as_ref()).collect();
    for (id, _) in &puts {
        let told_off = cancelled.contains(id) || replaced.contains(&id);
        assert_ne!(came.contains(id), told_off, "{id}: came or not, against what was told");
        let expected = if told_off { "CANCELLED" } else { "READY" };
        assert_eq!(state(&mut client, id).await, expected);
    }
    server.stop().await;
}
