//! `horolog tx` against a server.

use serde_json::{Value, json as value};

use crate::cli::{Ran, run};
use crate::fixture::{TestServer, get, json, receive_up_to_fence};

/// The facts of a block, by their names.
fn fact<'a>(ran: &'a Ran, name: &str) -> &'a str {
    let lines = ran.output.lines().filter_map(|line| line.split_once("  "));
    let mut named = lines.filter(|(found, _)| *found == name).map(|(_, fact)| fact.trim_start());
    named.next().unwrap_or_default()
}

/// Begins a transaction that is not asked about while a test lasts, unless `more` says otherwise.
async fn begin(server: &TestServer, topic: &str, body: &str, more: &[&str]) -> String {
    let begin = ["tx", "begin", topic, body, "--producer-group", "shop", "--output", "json"];
    let begun = run(server, &[&begin[..], more].concat()).await.json();
    begun["transactionId"].as_str().expect("an id is text").to_owned()
}

async fn listed(server: &TestServer, arguments: &[&str]) -> Vec<Value> {
    let list = [&["tx"], arguments, &["--output", "json"]].concat();
    let document = run(server, &list).await.json();
    let items = document["items"].as_array().expect("items");
    items.iter().map(|item| item["transactionId"].clone()).collect()
}

#[tokio::test]
async fn a_half_message_is_begun_shown_and_committed() {
    let server = TestServer::start().await;
    let begun = run(
        &server,
        &["tx", "begin", "orders", "half", "--producer-group", "shop", "--check-after", "1h"],
    )
    .await;
    assert!(begun.outcome.is_ok() && begun.notes.is_empty(), "{begun:?}");
    let id = fact(&begun, "transaction");
    let expected = format!(
        "transaction  {id}\nmessage      {id}\ntopic        orders\nstate        PREPARED\n"
    );
    assert_eq!(begun.output, expected);
    let shown = run(&server, &["tx", "show", id]).await;
    assert_eq!(fact(&shown, "transaction"), id, "{shown:?}");
    assert_eq!(fact(&shown, "topic"), "orders", "{shown:?}");
    assert_eq!(fact(&shown, "producers"), "shop", "{shown:?}");
    assert_eq!(fact(&shown, "state"), "PREPARED", "{shown:?}");
    assert_eq!(fact(&shown, "checks"), "0 of 15", "{shown:?}");
    let known = json(&get(&mut server.client(), &format!("/v1/transactions/{id}")).await);
    let next = known["nextCheckAt"].as_str().expect("a time");
    assert!(fact(&shown, "next check").starts_with(next), "{shown:?}");
    let given_up = known["abandonedAt"].as_str().expect("a time");
    let abandoned = fact(&shown, "abandoned");
    assert!(abandoned.starts_with(given_up) && abandoned.ends_with(", at the latest"), "{shown:?}");
    let as_json = run(&server, &["tx", "show", id, "--output", "json"]).await;
    assert_eq!(as_json.json(), known);

    for _ in 0..2 {
        let committed = run(&server, &["tx", "commit", id]).await;
        assert!(committed.outcome.is_ok(), "{committed:?}");
        assert_eq!(committed.output, format!("{id}  COMMITTED\n"));
    }
    let otherwise = run(&server, &["tx", "rollback", id]).await;
    assert!(otherwise.error().ends_with("(DECIDED_OTHERWISE)"), "{otherwise:?}");
    assert_eq!(otherwise.output, "");
    let put = run(&server, &["put", "orders", "fence"]).await;
    assert!(put.outcome.is_ok(), "{put:?}");
    let received = receive_up_to_fence(&server, "workers", "orders").await;
    let texts: Vec<_> = received.iter().map(|message| &message["bodyText"]).collect();
    assert_eq!(texts, ["half"]);
    server.stop().await;
}

#[tokio::test]
async fn what_is_rolled_back_is_never_received() {
    let server = TestServer::start().await;
    let id = begin(&server, "orders", "half", &["--check-after", "1h"]).await;
    for _ in 0..2 {
        let rolled_back = run(&server, &["tx", "rollback", &id, "--output", "json"]).await;
        assert_eq!(rolled_back.json(), value!({"transactionId": id, "state": "ROLLED_BACK"}));
    }
    let put = run(&server, &["put", "orders", "fence"]).await;
    assert!(put.outcome.is_ok(), "{put:?}");
    assert!(receive_up_to_fence(&server, "workers", "orders").await.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn one_with_a_moment_is_pending_once_it_is_committed() {
    let server = TestServer::start().await;
    let later = ["--check-after", "1h", "--at", "2099-01-01T00:00:00Z", "--key", "order-17"];
    let id = begin(&server, "orders", "{\"order\": 17}", &later).await;
    assert_eq!(run(&server, &["pending"]).await.notes, "horolog: nothing is pending\n");
    assert!(run(&server, &["tx", "commit", &id]).await.outcome.is_ok());
    let pending = run(&server, &["pending", "--key", "order-17"]).await;
    assert!(pending.output.contains(&id), "{pending:?}");
    assert!(run(&server, &["get", &id]).await.output.contains("SCHEDULED"));
    server.stop().await;
}

#[tokio::test]
async fn a_request_that_comes_again_under_its_key_begins_nothing() {
    let server = TestServer::start().await;
    let begin = ["tx", "begin", "orders", "x", "--producer-group", "shop", "--check-after", "1h"];
    let begin = [&begin[..], &["--idempotency-key", "k"]].concat();
    let first = run(&server, &begin).await;
    let again = run(&server, &begin).await;
    assert!(again.output.starts_with(&first.output), "{again:?}");
    assert!(fact(&again, "replayed").starts_with("yes"), "{again:?}");
    assert_eq!(fact(&first, "replayed"), "");
    let as_json = run(&server, &[&begin[..], &["--output", "json"]].concat()).await;
    assert!(as_json.notes.contains("earlier request"), "{as_json:?}");
    assert_eq!(as_json.json()["transactionId"], fact(&first, "transaction"));
    server.stop().await;
}

#[tokio::test]
async fn transactions_are_listed_by_state_and_topic() {
    let server = TestServer::start().await;
    let nothing = run(&server, &["tx"]).await;
    assert_eq!(
        (nothing.output.as_str(), nothing.notes.as_str()),
        ("", "horolog: no transactions were found\n")
    );
    let mut ids = Vec::new();
    for topic in ["orders", "orders", "mails"] {
        ids.push(begin(&server, topic, "x", &["--check-after", "1h"]).await);
    }
    assert!(run(&server, &["tx", "commit", &ids[1]]).await.outcome.is_ok());
    // A half message is listed a little after it is accepted.
    while listed(&server, &["--all"]).await.len() < ids.len() {
        tokio::task::yield_now().await;
    }
    for (arguments, expected) in [
        (&[][..], &[0, 1, 2][..]),
        (&["--limit", "1", "--all"], &[0, 1, 2]),
        (&["--state", "prepared"], &[0, 2]),
        (&["--state", "COMMITTED"], &[1]),
        (&["--topic", "mails"], &[2]),
        (&["--topic", "orders", "--state", "prepared"], &[0]),
        (&["--state", "abandoned"], &[]),
    ] {
        let expected: Vec<Value> = expected.iter().map(|&place| value!(ids[place])).collect();
        assert_eq!(listed(&server, arguments).await, expected, "{arguments:?}");
        let list = [&["list"], arguments].concat();
        assert_eq!(listed(&server, &list).await, expected, "{list:?}");
    }
    let page = run(&server, &["tx", "--limit", "1"]).await;
    let mut lines = page.output.lines();
    let heading = lines.next().expect("a heading");
    assert!(heading.starts_with("TRANSACTION             STATE     PREPARED AT "), "{heading}");
    let row = lines.next().expect("a row");
    assert!(row.starts_with(&format!("{}  PREPARED  ", ids[0])), "{row}");
    assert!(row.ends_with("  orders  shop"), "{row}");
    assert_eq!(page.notes, "horolog: there may be more (--all)\n");
    server.stop().await;
}

#[tokio::test]
async fn a_check_back_is_taken_and_what_is_not_answered_is_resumed() {
    let server = TestServer::start().await;
    let nothing = run(&server, &["tx", "checks", "shop"]).await;
    assert_eq!(
        (nothing.output.as_str(), nothing.notes.as_str()),
        ("", "horolog: no check-back came\n")
    );
    let soon = ["--check-after", "100ms", "--check-interval", "100ms", "--max-checks", "1"];
    let id =
        begin(&server, "orders", "{\"order\": 17}", &[&soon[..], &["--key", "k"]].concat()).await;
    let taken = run(&server, &["tx", "checks", "shop", "--max", "9", "--wait", "20s"]).await;
    let expected = format!(
        "\
TRANSACTION             CHECK  TOPIC   KEYS  BODY
{id}  1      orders  k     {{\"order\": 17}}
"
    );
    assert_eq!(taken.output, expected, "{taken:?}");
    assert!(taken.notes.contains("horolog tx commit ID"), "{taken:?}");
    // Nothing is answered, and there was but one check.
    while listed(&server, &["--state", "abandoned"]).await.is_empty() {
        tokio::task::yield_now().await;
    }
    let late = run(&server, &["tx", "commit", &id]).await;
    assert!(late.error().ends_with("(TRANSACTION_ABANDONED)"), "{late:?}");
    let resumed = run(&server, &["tx", "resume", &id]).await;
    assert_eq!(resumed.output, format!("{id}  PREPARED\n"), "{resumed:?}");
    let again = run(&server, &["tx", "checks", "shop", "--wait", "20s", "--output", "json"]).await;
    let again = again.json();
    assert_eq!(again["checks"][0]["transactionId"], value!(id));
    assert_eq!(again["checks"][0]["check"], 1, "checks are counted from zero again");
    server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_decided_is_told() {
    let server = TestServer::start().await;
    let id = begin(&server, "orders", "x", &["--check-after", "1h"]).await;
    let half = ["tx", "begin", "orders", "x", "--producer-group", "shop"];
    for (arguments, code) in [
        (vec!["tx", "show", "x"], "TRANSACTION_NOT_FOUND"),
        (vec!["tx", "show", "../messages/x"], "TRANSACTION_NOT_FOUND"),
        (vec!["tx", "commit", "x"], "TRANSACTION_NOT_FOUND"),
        (vec!["tx", "rollback", "x"], "TRANSACTION_NOT_FOUND"),
        (vec!["tx", "resume", "x"], "TRANSACTION_NOT_FOUND"),
        (vec!["tx", "resume", &id], "TRANSACTION_NOT_ABANDONED"),
        (vec!["cancel", &id], "TRANSACTION_OPEN"),
        (vec!["tx", "--state", "open"], "INVALID_REQUEST"),
        (vec!["tx", "--topic", "nowhere"], "TOPIC_NOT_FOUND"),
        (vec!["tx", "checks", "a b"], "INVALID_REQUEST"),
        (vec!["tx", "checks", "shop", "--wait", "31s"], "INVALID_REQUEST"),
        ([&half[..], &["--check-after", "1ms"]].concat(), "INVALID_REQUEST"),
        ([&half[..], &["--max-checks", "0"]].concat(), "INVALID_REQUEST"),
        ([&half[..], &["--delay=-1s"]].concat(), "INVALID_DELIVERY_TIME"),
    ] {
        let ran = run(&server, &arguments).await;
        let error = ran.error();
        assert!(error.ends_with(&format!(" ({code})")), "{arguments:?}: {error}");
        assert_eq!(ran.output, "", "{arguments:?}");
    }
    server.stop().await;
}
