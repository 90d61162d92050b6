//! `horolog dlq` against a server.

use serde_json::{Value, json as value};

use crate::cli::run;
use crate::fixture::{TestServer, get, json, post, receive};

/// Puts a message with this key on a topic, which the group then gives up on.
async fn dead_letter(server: &TestServer, topic: &str, key: &str) -> String {
    let put = run(server, &["put", topic, "x", "--key", key, "--output", "json"]).await.json();
    let received = receive(server, "workers", topic).await;
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0]["messageId"], put["messageId"]);
    let handles = value!({"receiptHandles": [received[0]["receiptHandle"]]}).to_string();
    let nack = post(&mut server.client(), "/v1/groups/workers/nack", handles).await;
    assert_eq!(json(&nack)["results"][0]["status"], "ok", "{}", json(&nack));
    put["messageId"].as_str().expect("an id is text").to_owned()
}

async fn start() -> TestServer {
    let server = TestServer::start().await;
    let once = ["groups", "set", "workers", "--max-attempts", "1", "--invisible-for", "1h"];
    let set = run(&server, &once).await;
    assert!(set.outcome.is_ok(), "{set:?}");
    server
}

#[tokio::test]
async fn dead_letters_are_listed_with_attempts_and_reason() {
    let server = start().await;
    for list in [&["dlq", "workers"][..], &["dlq", "list", "workers"]] {
        let nothing = run(&server, list).await;
        assert!(nothing.outcome.is_ok() && nothing.output.is_empty(), "{nothing:?}");
        assert_eq!(nothing.notes, "horolog: the group has no dead letters\n");
    }
    let mut ids = Vec::new();
    for key in ["order-1", "order-2", "order-3"] {
        ids.push(dead_letter(&server, "orders", key).await);
    }
    let page = run(&server, &["dlq", "workers", "--limit", "1"]).await;
    let mut lines = page.output.lines();
    let heading: Vec<_> = lines.next().expect("a heading").split("  ").collect();
    let heading: Vec<_> =
        heading.into_iter().filter(|cell| !cell.is_empty()).map(str::trim).collect();
    assert_eq!(heading, ["MESSAGE", "TRIES", "REASON", "DEAD AT", "TOPIC", "KEYS"], "{page:?}");
    let row: Vec<_> = lines.next().expect("a row").split_whitespace().collect();
    let whole = json(&get(&mut server.client(), "/v1/groups/workers/dlq").await);
    let dead_at = whole["items"][0]["deadAt"].as_str().expect("a time");
    assert_eq!(row, [&ids[0], "1", "NACKED", dead_at, "orders", "order-1"], "{page:?}");
    assert_eq!(page.notes, "horolog: there may be more (--all)\n");
    for list in [&["dlq", "workers"][..], &["dlq", "list", "workers"]] {
        let all = [list, &["--limit", "1", "--all", "--output", "json"]].concat();
        let all = run(&server, &all).await.json();
        assert_eq!(all, whole);
        let listed = all["items"].as_array().expect("items").iter();
        let listed: Vec<_> = listed.map(|item| item["messageId"].clone()).collect();
        assert_eq!(Value::from(listed), Value::from(ids.clone()));
    }
    server.stop().await;
}

#[tokio::test]
async fn dead_letters_are_redriven_by_id_by_topic_or_all() {
    let server = start().await;
    let first = dead_letter(&server, "orders", "k").await;
    dead_letter(&server, "orders", "k").await;
    dead_letter(&server, "mails", "k").await;
    dead_letter(&server, "mails", "k").await;
    dead_letter(&server, "prints", "k").await;
    let redrive = ["dlq", "redrive", "workers"];
    let some = [&redrive[..], &[&first, &first, "no-such-id"]].concat();
    let some = run(&server, &some).await;
    let said = "1 of 2 messages were not redriven: they are no dead letters of the group";
    assert_eq!((some.error().as_str(), some.output.as_str()), (said, "redriven  1\n"));
    let again = receive(&server, "workers", "orders").await;
    assert_eq!(again.len(), 1, "{again:?}");
    assert_eq!((&again[0]["messageId"], &again[0]["attempt"]), (&value!(first), &value!(1)));
    // The id is of another topic than is asked for, so it is not redriven.
    let elsewhere = [&redrive[..], &[&first, "--topic", "mails"]].concat();
    assert!(run(&server, &elsewhere).await.error().starts_with("1 of 1 messages"));
    let topic = run(&server, &[&redrive[..], &["--topic", "mails"]].concat()).await;
    assert!(topic.outcome.is_ok(), "{topic:?}");
    assert_eq!((topic.output.as_str(), topic.notes.as_str()), ("redriven  2\n", ""));
    let rest = [&redrive[..], &["--everything", "--output", "json"]].concat();
    assert_eq!(run(&server, &rest).await.json(), value!({"redriven": 2}));
    let nothing = run(&server, &[&redrive[..], &["--everything"]].concat()).await;
    assert!(nothing.outcome.is_ok(), "{nothing:?}");
    assert_eq!(nothing.output, "redriven  0\n");
    let left = run(&server, &["dlq", "workers"]).await;
    assert_eq!(left.notes, "horolog: the group has no dead letters\n");
    server.stop().await;
}
