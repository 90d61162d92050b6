//! `horolog topics` against a server.

use serde_json::json as value;

use crate::cli::{Ran, run};
use crate::fixture::{TestServer, get, json};

fn told(ran: &Ran) -> (&str, &str) {
    assert!(ran.outcome.is_ok(), "{ran:?}");
    (&ran.output, &ran.notes)
}

/// Schedules a message, and waits until it is counted: that is a little after it is accepted.
async fn schedule(server: &TestServer, topic: &str) {
    let put = run(server, &["put", topic, "x", "--at", "2099-01-01T00:00:00Z"]).await;
    assert!(put.outcome.is_ok(), "{put:?}");
    let show = ["topics", "show", topic, "--output", "json"];
    while run(server, &show).await.json()["pending"] == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_topic_is_made_set_and_shown() {
    let server = TestServer::start().await;
    let made = run(
        &server,
        &["topics", "create", "orders", "--type", "delay", "--queues", "2", "--retention", "36h"],
    )
    .await;
    let expected = "\
topic      orders
type       DELAY
retention  1d12h
pending    0
ready      0

QUEUE  FIRST OFFSET  NEXT OFFSET
0      0             0
1      0             0
";
    assert_eq!(told(&made), (expected, ""));
    let set = run(&server, &["topics", "set", "orders", "--queues", "3"]).await;
    let (output, notes) = told(&set);
    assert!(output.contains("retention  1d12h\n") && output.contains("\n2      0 "), "{output}");
    assert_eq!(notes, "horolog: the topic was there already; this is how it is set now\n");
    schedule(&server, "orders").await;
    let shown = run(&server, &["topics", "show", "orders"]).await;
    assert!(told(&shown).0.contains("pending    1\n"), "{shown:?}");
    let as_json = run(&server, &["topics", "show", "orders", "--output", "json"]).await;
    assert_eq!(as_json.json(), json(&get(&mut server.client(), "/v1/topics/orders").await));
    let fixed = run(&server, &["topics", "set", "orders", "--type", "FIFO"]).await;
    assert!(fixed.error().ends_with("(TOPIC_TYPE_FIXED)"), "{fixed:?}");
    let fewer = run(&server, &["topics", "set", "orders", "--queues", "1"]).await;
    assert!(fewer.error().ends_with("(QUEUES_FIXED)"), "{fewer:?}");
    server.stop().await;
}

#[tokio::test]
async fn topics_are_listed_by_name_to_their_end() {
    let server = TestServer::start().await;
    let nothing = run(&server, &["topics"]).await;
    let (output, notes) = told(&nothing);
    assert!(output.is_empty() && notes.starts_with("horolog: there is no topic"), "{nothing:?}");
    let long = "n".repeat(120);
    for (topic, of) in [("b", "FIFO"), ("a", "MIXED"), (long.as_str(), "NORMAL")] {
        let made = run(&server, &["topics", "set", topic, "--type", of]).await;
        assert_eq!(told(&made).1, "");
    }
    schedule(&server, "a").await;
    let page = run(&server, &["topics", "--limit", "2"]).await;
    let expected = "\
TOPIC  TYPE   QUEUES  PENDING  READY
a      MIXED  4       1        0
b      FIFO   4       0        0
";
    assert_eq!(told(&page), (expected, "horolog: there may be more (--all)\n"));
    for list in [&["topics"][..], &["topics", "list"]] {
        let all = run(&server, &[list, &["--limit", "1", "--all"]].concat()).await;
        let names = told(&all).0.lines().filter(|line| !line.starts_with("TOPIC"));
        let names: Vec<_> = names.filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(names, ["a", "b", &long], "a name is there to be copied");
        let all = [list, &["--limit", "1", "--all", "--output", "json"]].concat();
        let whole = json(&get(&mut server.client(), "/v1/topics").await);
        assert_eq!(run(&server, &all).await.json(), whole);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_topic_is_deleted_and_with_force_what_is_pending_too() {
    let server = TestServer::start().await;
    schedule(&server, "orders").await;
    let refused = run(&server, &["topics", "delete", "orders"]).await;
    assert!(refused.error().ends_with("(TOPIC_NOT_EMPTY)"), "{refused:?}");
    assert_eq!(refused.output, "");
    let deleted = run(&server, &["topics", "delete", "orders", "--force"]).await;
    assert_eq!(told(&deleted), ("orders  DELETED\n", ""));
    let gone = run(&server, &["topics", "show", "orders"]).await;
    assert!(gone.error().ends_with("(TOPIC_NOT_FOUND)"), "{gone:?}");
    let made = run(&server, &["topics", "set", "orders"]).await;
    assert!(made.outcome.is_ok(), "{made:?}");
    let deleted = run(&server, &["topics", "delete", "orders", "--output", "json"]).await;
    assert_eq!(deleted.json(), value!({"topic": "orders", "state": "DELETED"}));
    server.stop().await;
}
