//! `horolog pending` against a stand-in that answers with the shapes of the contract and notes what it was
//! asked.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json as value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::cli::{Ran, run_at};
use crate::fixture::TestServer;

pub(crate) struct StandIn {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl StandIn {
    /// Answers each request with the next of `answers`, all on one connection.
    pub(crate) async fn start(answers: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it listens"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&asked);
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("the command connects");
            for answer in answers {
                let path = request(&mut stream).await;
                notes.lock().expect("no panic").push(path);
                let body = answer.to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
                let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).await.expect("the command reads");
            }
        });
        Self { url, asked }
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> (Ran, Vec<String>) {
        let ran = run_at(&self.url, b"", arguments).await;
        (ran, std::mem::take(&mut self.asked.lock().expect("no panic")))
    }
}

/// Reads a request without a body; its path and query.
async fn request(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("the command sends a request"));
    }
    let head = String::from_utf8(head).expect("a head is ASCII");
    let mut line = head.split_whitespace();
    assert_eq!(line.next(), Some("GET"));
    line.next().expect("a path").to_owned()
}

fn item(number: u64) -> Value {
    value!({
        "messageId": format!("AAAAAAAAAArIAc0IpmIx{number:02}"),
        "topic": "order-timeouts",
        "state": "SCHEDULED",
        "keys": [format!("order-{number}"), "vip"],
        "tag": null,
        "properties": {},
        "messageGroup": null,
        "contentType": "application/json",
        "bornAt": "2098-12-31T23:00:00.000Z",
        "deliverAt": "2099-01-01T00:00:00.000Z",
    })
}

fn page(items: &[u64], next: Option<&str>) -> Value {
    let items: Vec<_> = items.iter().map(|&number| item(number)).collect();
    value!({"items": items, "nextCursor": next})
}

#[tokio::test]
async fn a_page_is_a_table_that_says_whether_there_may_be_more() {
    let server = StandIn::start(vec![page(&[1, 2], Some("next"))]).await;
    let (ran, asked) = server.run(&["pending"]).await;
    assert_eq!(asked, ["/v1/scheduled"]);
    let expected = "\
MESSAGE                 DELIVER AT                            TOPIC           KEYS
AAAAAAAAAArIAc0IpmIx01  2099-01-01T00:00:00.000Z  in 29m 59s  order-timeouts  order-1, vip
AAAAAAAAAArIAc0IpmIx02  2099-01-01T00:00:00.000Z  in 29m 59s  order-timeouts  order-2, vip
";
    assert_eq!(ran.output, expected);
    assert_eq!(ran.notes, "horolog: there may be more (--all)\n");
}

#[tokio::test]
async fn filters_go_to_the_server_as_they_are() {
    let server = StandIn::start(vec![page(&[], None)]).await;
    let from = "2098-12-31T23:00:00+01:00";
    let (ran, asked) = server
        .run(&[
            "pending", "--topic", "t", "--key", "order/1 ", "--tag", "é", "--from", from, "--to",
            "0", "--limit", "7",
        ])
        .await;
    let query =
        "topic=t&key=order%2F1%20&tag=%C3%A9&from=2098-12-31T23%3A00%3A00%2B01%3A00&to=0&limit=7";
    assert_eq!(asked, [format!("/v1/scheduled?{query}")]);
    assert_eq!(
        (ran.output, ran.notes),
        (String::new(), "horolog: nothing is pending\n".to_owned())
    );
}

#[tokio::test]
async fn all_pages_are_followed_also_past_an_empty_one() {
    let pages = || vec![page(&[1], Some("a/b")), page(&[], Some("c")), page(&[2, 3], None)];
    let server = StandIn::start(pages()).await;
    let (ran, asked) = server.run(&["pending", "--all"]).await;
    assert!(ran.outcome.is_ok() && ran.notes.is_empty(), "{ran:?}");
    assert_eq!(
        asked,
        [
            "/v1/scheduled?limit=1000",
            "/v1/scheduled?limit=1000&cursor=a%2Fb",
            "/v1/scheduled?limit=1000&cursor=c",
        ]
    );
    assert_eq!(ran.output.lines().filter(|line| line.contains("SCHEDULED")).count(), 0);
    assert_eq!(ran.output.matches("order-timeouts").count(), 3);

    let server = StandIn::start(pages()).await;
    let (ran, _) = server.run(&["pending", "--all", "--output", "json"]).await;
    let document: Value = serde_json::from_str(&ran.output).expect("one document");
    assert_eq!(document, value!({"items": [item(1), item(2), item(3)], "nextCursor": null}));

    let server = StandIn::start(pages()).await;
    let (ran, asked) = server.run(&["pending", "--output", "json"]).await;
    assert_eq!(asked.len(), 1);
    let document: Value = serde_json::from_str(&ran.output).expect("one document");
    assert_eq!(document, page(&[1], Some("a/b")), "a page as the server wrote it");
}

#[tokio::test]
async fn a_timeline_is_drawn() {
    let timeline = value!({
        "buckets": [
            {"start": "2098-12-31T23:31:00.000Z", "count": 200},
            {"start": "2098-12-31T23:32:00.000Z", "count": 0},
            {"start": "2098-12-31T23:33:00.000Z", "count": 50},
        ],
        "complete": false,
    });
    let server = StandIn::start(vec![timeline.clone(), timeline.clone()]).await;
    let (ran, asked) =
        server.run(&["pending", "--timeline", "--topic", "t", "--bucket", "60s"]).await;
    assert_eq!(asked, ["/v1/scheduled/timeline?topic=t&bucket=60s"]);
    let expected = format!(
        "\
FROM                                COUNT
2098-12-31T23:31:00.000Z  in 59s    200    {}
2098-12-31T23:32:00.000Z  in 1m 59s  0
2098-12-31T23:33:00.000Z  in 2m 59s  50     {}
",
        "#".repeat(40),
        "#".repeat(10)
    );
    let squeezed = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(squeezed(&ran.output), squeezed(&expected));
    assert!(ran.notes.contains("more than this"), "{ran:?}");
}

#[tokio::test]
async fn what_a_server_has_pending_is_listed_to_its_end_and_counted() {
    let server = TestServer::start().await;
    let url = format!("http://{}", server.address());
    for number in 0..5 {
        let (body, key) = (number.to_string(), format!("order-{number}"));
        let tag = if number % 2 == 0 { "even" } else { "odd" };
        let put =
            ["put", "orders", &body, "--at", "2099-01-01T00:00:00Z", "--key", &key, "--tag", tag];
        let put = run_at(&url, b"", &put).await;
        assert!(put.outcome.is_ok(), "{put:?}");
    }
    let page = run_at(&url, b"", &["pending", "--topic", "orders", "--limit", "2"]).await;
    assert!(page.outcome.is_ok(), "{page:?}");
    assert_eq!(page.output.matches("orders").count(), 2, "{page:?}");
    let all = ["pending", "--topic", "orders", "--limit", "2", "--all", "--output", "json"];
    let all = run_at(&url, b"", &all).await;
    let items: Value = serde_json::from_str(&all.output).expect("one document");
    assert_eq!(items["items"].as_array().map(Vec::len), Some(5), "{all:?}");
    let odd = ["pending", "--topic", "orders", "--tag", "odd", "--all", "--output", "json"];
    let odd: Value = serde_json::from_str(&run_at(&url, b"", &odd).await.output).expect("JSON");
    assert_eq!(odd["items"].as_array().map(Vec::len), Some(2));
    let timeline = [
        "pending",
        "--timeline",
        "--from",
        "2098-12-31T00:00:00Z",
        "--to",
        "2099-01-02T00:00:00Z",
        "--bucket",
        "1d",
        "--topic",
        "orders",
        "--output",
        "json",
    ];
    let timeline = run_at(&url, b"", &timeline).await;
    let counted: Value = serde_json::from_str(&timeline.output).expect("one document");
    let counts: Vec<_> = counted["buckets"].as_array().expect("buckets").iter().collect();
    assert_eq!(counts.len(), 2, "{counted}");
    assert_eq!((&counts[0]["count"], &counts[1]["count"]), (&0.into(), &5.into()), "{counted}");
    let nothing = run_at(&url, b"", &["pending", "--topic", "none"]).await;
    assert!(nothing.outcome.is_err_and(|error| error.to_string().contains("TOPIC_NOT_FOUND")));
    server.stop().await;
}
