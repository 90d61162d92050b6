//! `horolog groups` against a server, and a list as a stand-in gives it.

use serde_json::json as value;

use crate::cli::run;
use crate::cli_pending::StandIn;
use crate::fixture::{TestServer, get, json, receive, receive_up_to_fence};

#[tokio::test]
async fn a_group_is_made_and_set_as_a_whole() {
    let server = TestServer::start().await;
    let made = run(
        &server,
        &[
            "groups",
            "set",
            "workers",
            "--ordered",
            "--max-attempts",
            "5",
            "--backoff",
            "1s,90s",
            "--backoff",
            "PT1H",
            "--invisible-for",
            "45s",
            "--start-from",
            "latest",
            "--tag",
            "orders=unpaid",
            "--tag",
            "orders=a=b",
            "--tag",
            "mails=due",
        ],
    )
    .await;
    let expected = "\
group          workers
ordered        yes
max attempts   5
backoff        1s,1m30s,1h
invisible for  45s
start from     latest
tags           mails: due
tags           orders: a=b, unpaid
";
    assert_eq!(made.output, expected, "{made:?}");
    assert_eq!(made.notes, "horolog: the group has received from no topic yet\n");
    let set = run(&server, &["groups", "set", "workers", "--max-attempts", "3"]).await;
    let lines: Vec<_> = set.output.lines().collect();
    assert!(lines.contains(&"max attempts   3"), "{set:?}");
    assert!(lines.contains(&"ordered        no"), "what is not said goes back: {set:?}");
    assert!(!set.output.contains("tags"), "{set:?}");
    assert!(set.notes.contains("was there already"), "{set:?}");
    let shown = run(&server, &["groups", "show", "workers"]).await;
    assert_eq!(shown.output, set.output);
    let as_json = run(&server, &["groups", "show", "workers", "--output", "json"]).await;
    assert_eq!(as_json.json(), json(&get(&mut server.client(), "/v1/groups/workers").await));
    server.stop().await;
}

#[tokio::test]
async fn a_group_is_shown_with_how_far_behind_it_is() {
    let server = TestServer::start().await;
    for body in ["a", "b", "fence"] {
        let put = run(&server, &["put", "orders", body]).await;
        assert!(put.outcome.is_ok(), "{put:?}");
    }
    assert_eq!(receive_up_to_fence(&server, "workers", "orders").await.len(), 2);
    let shown = run(&server, &["groups", "show", "workers"]).await;
    let table: Vec<_> = shown.output.lines().rev().take(3).collect();
    assert_eq!(table[1], "TOPIC   LAG  IN FLIGHT  OLDEST  DEAD LETTERS".to_owned().as_str());
    assert_eq!(table[2], "");
    let row: Vec<_> = table[0].split_whitespace().collect();
    assert_eq!(row[..3], ["orders", "3", "3"], "{shown:?}");
    assert_eq!(row.last(), Some(&"0"), "{shown:?}");
    assert_eq!(shown.notes, "");
    server.stop().await;
}

#[tokio::test]
async fn groups_are_listed_by_topic() {
    let progress = |topic: &str, lag: u64, oldest: Option<u64>| {
        value!({
            "topic": topic, "lag": lag, "inFlight": 2, "oldestUnackedAgeMs": oldest,
            "deadLetters": 1,
        })
    };
    let group = |name: &str, topics: Vec<serde_json::Value>| {
        value!({
            "group": name, "ordered": false, "maxAttempts": 16, "backoff": [1000],
            "invisibleFor": 30000, "startFrom": "earliest", "tags": {}, "topics": topics,
        })
    };
    let long = "t".repeat(40);
    let items = vec![
        group("idle", vec![]),
        group("workers", vec![progress("orders", 17, Some(61_000)), progress(&long, 2, None)]),
    ];
    let server = StandIn::start(vec![value!({"items": items, "nextCursor": "next"})]).await;
    let (ran, asked) = server.run(&["groups"]).await;
    assert_eq!(asked, ["/v1/groups"]);
    let gap = " ".repeat(long.len() - "orders".len());
    let expected = format!(
        "\
GROUP    TOPIC {gap}  LAG  IN FLIGHT  OLDEST  DEAD LETTERS
idle
workers  orders{gap}  17   2          1m 1s   1
workers  {long}  2    2                  1
"
    );
    assert_eq!(ran.output, expected);
    assert_eq!(ran.notes, "horolog: there may be more (--all)\n");
    let server = StandIn::start(vec![value!({"items": [], "nextCursor": null})]).await;
    let (ran, asked) = server.run(&["groups", "list", "--limit", "7"]).await;
    assert_eq!(asked, ["/v1/groups?limit=7"]);
    assert!(ran.notes.starts_with("horolog: there is no group"), "{ran:?}");
}

#[tokio::test]
async fn a_group_reads_again_from_where_it_is_set_to() {
    let server = TestServer::start().await;
    let made = run(&server, &["topics", "set", "orders", "--queues", "2"]).await;
    assert!(made.outcome.is_ok(), "{made:?}");
    for body in ["a", "b", "fence"] {
        // All of a message group are in one queue, in order.
        let put = run(&server, &["put", "orders", body, "--message-group", "g"]).await;
        assert!(put.outcome.is_ok(), "{put:?}");
    }
    let first = receive_up_to_fence(&server, "workers", "orders").await;
    let queue = first[0]["queueId"].as_u64().expect("a number");
    let reset = ["groups", "reset-offsets", "workers", "--topic", "orders"];
    let at_end = run(&server, &[&reset[..], &["--to", "latest"]].concat()).await;
    let offset = |number| if number == queue { 3 } else { 0 };
    let expected = format!("QUEUE  OFFSET\n0      {}\n1      {}\n", offset(0), offset(1));
    assert_eq!((at_end.output, at_end.notes), (expected, String::new()));
    for (place, expected) in [
        (vec!["--to".to_owned(), "earliest".to_owned()], &["a", "b", "fence"][..]),
        (vec!["--queue".to_owned(), format!("{queue}=1")], &["b", "fence"]),
        (vec!["--to".to_owned(), "2020-01-01T00:00:00Z".to_owned()], &["a", "b", "fence"]),
        (vec!["--to".to_owned(), "0".to_owned()], &["a", "b", "fence"]),
    ] {
        let place: Vec<_> = place.iter().map(String::as_str).collect();
        let ran = run(&server, &[&reset[..], &place, &["--output", "json"]].concat()).await;
        assert_eq!(ran.json()["topic"], "orders", "{ran:?}");
        let messages = receive(&server, "workers", "orders").await;
        let texts: Vec<_> = messages.iter().map(|message| &message["bodyText"]).collect();
        assert_eq!(texts, expected, "{place:?}");
    }
    let twice = [&reset[..], &["--queue", "0=0", "--queue", "0=1"]].concat();
    assert!(run(&server, &twice).await.error().ends_with("(INVALID_REQUEST)"));
    let beyond = run(&server, &[&reset[..], &["--queue", "0=9"]].concat()).await;
    assert!(beyond.error().ends_with("(INVALID_REQUEST)"), "{beyond:?}");
    server.stop().await;
}
