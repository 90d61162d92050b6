//! A client that gets no answer sends its request again, under its idempotency key: one message each.

use std::ops::Range;

use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request};
use bytes::Bytes;
use horolog::client::{Answer, Client, ClientError};
use http_body_util::Full;
use serde::Deserialize;
use timerlog::disk::sim::Random;
use tokio::task::JoinSet;

use crate::run::{Run, SOON};

const WRITERS: u64 = 4;
const ROUNDS: u64 = 8;
const MESSAGES: &str = "/v1/topics/retried/messages";

/// One request, and what its first answer was.
#[derive(Clone, Debug)]
struct Sent {
    number: u64,
    answer: Option<Bytes>,
}

#[derive(Deserialize)]
struct Found {
    items: Vec<serde_json::Value>,
}

/// Every third is a batch of two, so that messages and their key have to go together.
fn is_batch(number: u64) -> bool {
    number.is_multiple_of(3)
}

async fn send(client: &mut Client, number: u64) -> Result<Answer, ClientError> {
    let message = format!("{{\"bodyText\":\"x\",\"keys\":[\"{number}\"],\"delay\":\"1h\"}}");
    let (path, body) = match is_batch(number) {
        true => (format!("{MESSAGES}/batch"), format!("{{\"messages\":[{message},{message}]}}")),
        false => (MESSAGES.to_owned(), message),
    };
    let request = Request::post(path)
        .header(CONTENT_TYPE, "application/json")
        .header("idempotency-key", format!("request-{number}"))
        .body(Full::from(body))
        .expect("the request is well formed");
    client.send(request).await
}

/// Sends requests one by one until the server is gone; the last one is without an answer.
async fn write(mut client: Client, numbers: Range<u64>) -> Vec<Sent> {
    let mut sent = Vec::new();
    for number in numbers {
        let answer = send(&mut client, number).await.ok();
        let over = answer.is_none();
        if let Some(answer) = &answer {
            assert!(answer.status.is_success(), "{number}: {answer:?}");
            assert!(!answer.headers.contains_key("idempotent-replayed"), "{number} is new");
        }
        sent.push(Sent { number, answer: answer.map(|answer| answer.body) });
        if over {
            break;
        }
    }
    sent
}

async fn count(client: &mut Client, number: u64) -> usize {
    let path = format!("{MESSAGES}?key={number}");
    let answer = client.call(Method::GET, &path).await.expect("the server answers");
    let found: Found = answer.json().expect("a page");
    found.items.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_sent_again_after_a_kill_under_its_key_makes_no_second_message() {
    let mut run = Run::new(0, &[]);
    let mut random = Random::new(run.scratch.seed());
    let mut all = Vec::new();
    let (mut unanswered, mut replayed) = (0, 0);
    for round in 0..ROUNDS {
        let life = run.start().await;
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let first = (round * WRITERS + writer) * 1_000_000;
            writers.spawn(write(Client::new(life.address), first..first + 1_000_000));
        }
        run.pass(SOON).await;
        life.server.kill();
        let sent: Vec<Sent> = writers.join_all().await.into_iter().flatten().collect();

        let life = run.start().await;
        let mut client = Client::new(life.address);
        // Those without an answer, and a few that had one.
        for sent in &sent {
            if sent.answer.is_some() && !random.once_in(10) {
                continue;
            }
            let again = send(&mut client, sent.number).await.expect("the server answers");
            assert!(again.status.is_success(), "{sent:?}: {again:?}");
            let is_replay = again.headers.contains_key("idempotent-replayed");
            match &sent.answer {
                Some(answer) => {
                    assert!(is_replay, "{sent:?} was answered, and is new now");
                    assert_eq!(&again.body, answer, "{sent:?}");
                }
                None => unanswered += 1,
            }
            replayed += usize::from(is_replay);
        }
        all.extend(sent);
        life.server.kill();
    }
    let life = run.start().await;
    let mut client = Client::new(life.address);
    for Sent { number, .. } in &all {
        let expected = if is_batch(*number) { 2 } else { 1 };
        assert_eq!(count(&mut client, *number).await, expected, "{number}");
    }
    assert!(unanswered > 0 && replayed > 0, "{unanswered} unanswered, {replayed} replayed");
    life.server.kill();
}
