//! A message that is about to fire, moved, fired by hand and cancelled at once: what each was told holds.

use axum::http::Method;
use horolog::client::Client;
use serde_json::json as value;

use crate::fixture::{
    TestServer, delete, get, id, json, post, receive_up_to_fence, send, send_json,
};

const MESSAGES: usize = 150;
const PATH: &str = "/v1/topics/orders/messages";

async fn change(client: &mut Client, kind: usize, id: &str) -> u16 {
    let path = format!("/v1/messages/{id}");
    let answer = match kind {
        0 => send_json(client, Method::PATCH, &path, r#"{"delay":"15ms"}"#).await,
        1 => send(client, Method::POST, &format!("{path}/deliver"), &[], "").await,
        _ => delete(client, &path).await,
    };
    match answer.status.as_u16() {
        status @ (200 | 409) => status,
        status => unreachable!("{status} {}", json(&answer)),
    }
}

#[tokio::test]
async fn who_moves_fires_and_cancels_a_message_at_once_is_told_the_truth() {
    let server = TestServer::start().await;
    let mut clients = [server.client(), server.client(), server.client()];
    let mut told = Vec::new();
    for number in 0..MESSAGES {
        // Some fire by themselves in the middle of it, some would not for long.
        let delay = [3, 8, 3_600_000][number % 3];
        let message = value!({"bodyText": "x", "delay": delay}).to_string();
        let id = id(&post(&mut clients[0], PATH, message).await);
        let [mover, firer, canceller] = &mut clients;
        let answers =
            tokio::join!(change(mover, 0, &id), change(firer, 1, &id), change(canceller, 2, &id));
        told.push((id, answers));
    }
    post(&mut clients[0], PATH, r#"{"bodyText":"fence","delay":"600ms"}"#).await;
    let received = receive_up_to_fence(&server, "workers", "orders").await;
    for (id, (moved, fired, cancelled)) in &told {
        let came = received.iter().filter(|one| one["messageId"] == id.as_str()).count();
        let state =
            json(&get(&mut clients[0], &format!("/v1/messages/{id}")).await)["state"].clone();
        let told = format!("{id}: moved {moved}, fired {fired}, cancelled {cancelled}");
        // Whichever came first was the last.
        assert!(*fired != 200 || *cancelled != 200, "{told}");
        assert_eq!(came, usize::from(*cancelled != 200), "{told}");
        assert_eq!(state, if *cancelled == 200 { "CANCELLED" } else { "READY" }, "{told}");
    }
    // In a test of a race something has to have raced.
    for (what, count) in [
        ("cancelled", told.iter().filter(|(_, (_, _, cancelled))| *cancelled == 200).count()),
        ("fired by hand", told.iter().filter(|(_, (_, fired, _))| *fired == 200).count()),
        ("moved", told.iter().filter(|(_, (moved, _, _))| *moved == 200).count()),
    ] {
        assert!(count > 0, "none was {what}");
    }
    server.stop().await;
}
