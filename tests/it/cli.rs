//! The commands of a client, run in this process against a server.

#![expect(clippy::panic, reason = "a broken promise fails the test where it is seen")]

use clap::Parser;
use horolog::cli::{self, CliError, Io};
use horolog::clock::Timestamp;
use serde_json::{Value, json as value};

use crate::fixture::{TestServer, get, json, receive};

#[derive(Parser)]
pub(crate) struct Line {
    #[command(subcommand)]
    command: cli::Command,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) outcome: Result<(), CliError>,
    pub(crate) output: String,
    pub(crate) notes: String,
}

impl Ran {
    pub(crate) fn error(&self) -> String {
        self.outcome.as_ref().expect_err("it was to fail").to_string()
    }

    pub(crate) fn json(&self) -> Value {
        assert!(self.outcome.is_ok(), "{self:?}");
        assert!(self.output.ends_with('\n'), "{self:?}");
        serde_json::from_str(&self.output).expect("standard output is one document")
    }
}

/// 2098-12-31T23:30:00.500Z: half an hour, almost, before the moment that these tests ask for.
const NOW: u64 = 4_070_907_000_500;
const AT: &str = "2099-01-01T00:00:00Z";

/// Runs a command against the server at `url`, which goes before the first option.
pub(crate) async fn run_at(url: &str, input: &[u8], arguments: &[&str]) -> Ran {
    let is_option = |argument: &&str| argument.starts_with('-');
    let place = arguments.iter().position(is_option).unwrap_or(arguments.len());
    let (words, options) = arguments.split_at(place);
    let line = [&["horolog"], words, &["--url", url], options].concat();
    let Line { command } = Line::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"));
    let (mut output, mut notes) = (Vec::new(), Vec::new());
    let mut io = Io {
        input: &mut &*input,
        output: &mut output,
        notes: &mut notes,
        now: &|| Timestamp::from_millis(NOW),
    };
    let outcome = cli::run(&command, &mut io).await;
    let text = |bytes| String::from_utf8(bytes).expect("commands write text");
    Ran { outcome, output: text(output), notes: text(notes) }
}

pub(crate) async fn run(server: &TestServer, arguments: &[&str]) -> Ran {
    run_at(&format!("http://{}", server.address()), b"", arguments).await
}

/// The facts of a block, by their names.
fn fact<'a>(ran: &'a Ran, name: &str) -> &'a str {
    let value = ran.output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("  "));
    value.unwrap_or_else(|| panic!("no {name} in {ran:?}")).trim_start()
}

#[tokio::test]
async fn a_message_is_put_and_shown() {
    let server = TestServer::start().await;
    let put = run(
        &server,
        &[
            "put",
            "orders",
            r#"{"order": 17}"#,
            "--at",
            AT,
            "--key",
            "order-17",
            "--key",
            "vip",
            "--tag",
            "unpaid",
            "--property",
            "a=b=c",
            "--property",
            "z=",
            "--message-group",
            "g",
        ],
    )
    .await;
    assert!(put.outcome.is_ok() && put.notes.is_empty(), "{put:?}");
    assert_eq!(fact(&put, "topic     "), "orders");
    assert_eq!(fact(&put, "state     "), "SCHEDULED");
    assert_eq!(fact(&put, "deliver at"), "2099-01-01T00:00:00.000Z  in 29m 59s");
    let id = fact(&put, "message   ").to_owned();
    let shown = run(&server, &["get", &id, "--body"]).await;
    let expected = [
        ("message   ", id.as_str()),
        ("topic     ", "orders"),
        ("state     ", "SCHEDULED"),
        ("keys      ", "order-17, vip"),
        ("tag       ", "unpaid"),
        ("group     ", "g"),
        ("type      ", "application/json"),
        ("deliver at", "2099-01-01T00:00:00.000Z  in 29m 59s"),
        ("property  ", "a=b=c"),
        ("body      ", r#"{"order": 17}"#),
    ];
    for (name, value) in expected {
        assert_eq!(fact(&shown, name), value, "{shown:?}");
    }
    assert!(shown.output.lines().all(|line| line.len() <= 100), "{}", shown.output);
    let as_json = run(&server, &["get", &id, "--output", "json"]).await;
    let path = format!("/v1/messages/{id}");
    assert_eq!(as_json.json(), json(&get(&mut server.client(), &path).await));
    assert!(!as_json.output.contains("\"body\""), "it was not asked for");
    server.stop().await;
}

#[tokio::test]
async fn a_body_is_json_text_or_bytes_from_where_it_is_given() {
    let server = TestServer::start().await;
    let url = format!("http://{}", server.address());
    let file = tempfile::NamedTempFile::new().expect("the test may write temporary files");
    std::io::Write::write_all(&mut file.as_file(), b"\x00\xff").expect("the disk has room");
    let path = file.path().to_str().expect("temporary paths are UTF-8");
    for (arguments, input, member, body, content_type) in [
        (vec!["17"], "", "bodyText", value!("17"), "text/plain; charset=utf-8"),
        (vec![""], "", "bodyText", value!(""), "text/plain; charset=utf-8"),
        (
            vec!["--", "--delay=1h"],
            "",
            "bodyText",
            value!("--delay=1h"),
            "text/plain; charset=utf-8",
        ),
        (vec!["[1.50]"], "", "body", value!([1.5]), "application/json"),
        (vec!["-"], "{\"a\": 1}\n", "body", value!({"a": 1}), "application/json"),
        (vec!["-"], "a\nb\n", "bodyText", value!("a\nb\n"), "text/plain; charset=utf-8"),
        (vec!["--file", path], "", "bodyBase64", value!("AP8="), "application/octet-stream"),
    ] {
        let arguments = [vec!["put", "t", "--output", "json"], arguments].concat();
        let put = run_at(&url, input.as_bytes(), &arguments).await.json();
        let id = put["messageId"].as_str().expect("an id is text");
        let shown = run(&server, &["get", id, "--body", "--output", "json"]).await.json();
        assert_eq!(shown[member], body, "{arguments:?}");
        assert_eq!(shown["contentType"], content_type, "{arguments:?}");
    }
    let missing = run(&server, &["put", "t", "--file", "/no/such/file"]).await;
    assert!(missing.error().contains("/no/such/file"), "{missing:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_request_under_an_idempotency_key_says_when_it_is_answered_again() {
    let server = TestServer::start().await;
    let arguments = ["put", "orders", "x", "--at", AT, "--idempotency-key", "k"];
    let first = run(&server, &arguments).await;
    assert!(!first.output.contains("replayed"), "{first:?}");
    let again = run(&server, &arguments).await;
    assert!(again.output.starts_with(&first.output), "{again:?}");
    assert!(fact(&again, "replayed  ").starts_with("yes"), "{again:?}");
    let as_json = run(&server, &[&arguments[..], &["--output", "json"]].concat()).await;
    assert!(as_json.json()["messageId"].is_string());
    assert!(as_json.notes.contains("earlier request"), "{as_json:?}");
    let other = run(&server, &["put", "orders", "y", "--idempotency-key", "k"]).await;
    assert!(other.error().ends_with("(IDEMPOTENCY_KEY_REUSED)"), "{other:?}");
    let bad = run(&server, &["put", "orders", "y", "--idempotency-key", "a\nb"]).await;
    assert!(bad.error().ends_with("(INVALID_REQUEST)"), "{bad:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_timer_is_put_replaced_and_cancelled_by_its_key() {
    let server = TestServer::start().await;
    let put = ["put", "orders", "x", "--at", AT, "--timer", "order/17 é"];
    let first = run(&server, &put).await;
    assert_eq!(fact(&first, "timer     "), "order/17 é");
    let exists = run(&server, &[&put[..], &["--create-only"]].concat()).await;
    assert!(exists.error().ends_with("(TIMER_EXISTS)"), "{exists:?}");
    let second = run(&server, &put).await;
    assert_eq!(fact(&second, "replaced  "), fact(&first, "message   "));
    let shown = run(&server, &["get", fact(&second, "message   ")]).await;
    assert_eq!(fact(&shown, "timer     "), "order/17 é");
    for _ in 0..2 {
        let timer = ["cancel", "--topic", "orders", "--timer", "order/17 é"];
        let cancelled = run(&server, &timer).await;
        assert_eq!(cancelled.output, format!("{}  CANCELLED\n", fact(&second, "message   ")));
    }
    let unknown = run(&server, &["cancel", "--topic", "orders", "--timer", "nobody"]).await;
    assert!(unknown.error().ends_with("(TIMER_NOT_FOUND)"), "{unknown:?}");
    server.stop().await;
}

#[tokio::test]
async fn messages_are_cancelled_and_each_that_was_not_is_told() {
    let server = TestServer::start().await;
    let put = async |arguments: &[&str]| {
        let arguments = [&["put", "orders", "x", "--output", "json"], arguments].concat();
        run(&server, &arguments).await.json()["messageId"].as_str().unwrap().to_owned()
    };
    let (one, two) = (put(&["--at", AT]).await, put(&["--at", AT]).await);
    let ready = put(&[]).await;
    let single = run(&server, &["cancel", &one]).await;
    assert_eq!((single.output, single.notes), (format!("{one}  CANCELLED\n"), String::new()));
    let single = run(&server, &["cancel", &one, "--output", "json"]).await;
    assert_eq!(single.json(), value!({"messageId": one, "state": "CANCELLED"}));
    let late = run(&server, &["cancel", &ready]).await;
    assert_eq!(late.error(), "the message was already delivered (ALREADY_DELIVERED)");
    assert_eq!(late.output, "");

    let several = run(&server, &["cancel", &one, &ready, "no-such-id", &two]).await;
    assert_eq!(several.error(), "2 of 4 messages were not cancelled");
    let results: Vec<_> =
        several.output.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    let expected = ["RESULT", "CANCELLED", "ALREADY_DELIVERED", "MESSAGE_NOT_FOUND", "CANCELLED"];
    assert_eq!(results, expected, "{several:?}");
    assert_eq!(several.notes.lines().count(), 2, "{several:?}");
    let document = run(&server, &["cancel", &ready, &two, "--output", "json"]).await;
    let document: Value = serde_json::from_str(&document.output).expect("one document");
    assert_eq!(document["results"][0]["messageId"], ready.as_str());
    assert_eq!(document["results"][0]["error"]["code"], "ALREADY_DELIVERED");
    assert_eq!(document["results"][1], value!({"messageId": two, "state": "CANCELLED"}));
    server.stop().await;
}

#[tokio::test]
async fn messages_are_received_and_acknowledged_when_that_is_asked_for() {
    let server = TestServer::start().await;
    let get_one = ["receive", "--group", "workers", "--topic", "orders"];
    let nothing = run(&server, &get_one).await;
    assert!(nothing.outcome.is_ok() && nothing.output.is_empty(), "{nothing:?}");
    assert!(nothing.notes.contains("no message"), "{nothing:?}");
    let nothing = run(&server, &[&get_one[..], &["--ack", "--output", "json"]].concat()).await;
    assert_eq!(nothing.json(), value!({"messages": []}));

    for number in 0..3 {
        let body = format!("{{\"order\": {number}, \"note\": \"\\u001b[2J\"}}");
        run(&server, &["put", "orders", &body, "--key", "k", "--tag", "t"]).await;
    }
    run(&server, &["put", "orders", "bell \u{7}"]).await;
    let mut seen = 0;
    while seen < 4 {
        let more = ["--max", "9", "--wait", "20s", "--invisible-for", "1h", "--ack"];
        let ran = run(&server, &[&get_one[..], &more].concat()).await;
        assert!(ran.outcome.is_ok() && ran.notes.is_empty(), "{ran:?}");
        assert!(ran.output.starts_with("MESSAGE "), "{ran:?}");
        assert!(ran.output.lines().all(|line| line.chars().count() <= 100), "{}", ran.output);
        assert!(!ran.output.contains(['\u{1b}', '\u{7}']), "{ran:?}");
        seen += ran.output.lines().count() - 1;
    }
    assert_eq!(seen, 4);
    run(&server, &["put", "orders", "last"]).await;
    let more = ["--wait", "20s", "--invisible-for", "0s"];
    let kept = run(&server, &[&get_one[..], &more].concat()).await;
    assert!(kept.output.contains("last"), "{kept:?}");
    assert!(kept.notes.contains("not acknowledged"), "{kept:?}");
    let again = receive(&server, "workers", "orders").await;
    assert_eq!(again.len(), 1, "what was acknowledged does not come again: {again:?}");
    assert_eq!(again[0]["bodyText"], "last");
    server.stop().await;
}

#[tokio::test]
async fn a_group_receives_by_its_tags() {
    let server = TestServer::start().await;
    for (body, tag) in [("paid", "paid"), ("unpaid", "unpaid")] {
        let put = run(&server, &["put", "orders", body, "--tag", tag]).await;
        assert!(put.outcome.is_ok(), "{put:?}");
    }
    let receive = ["receive", "--group", "g", "--topic", "orders", "--max", "8", "--wait", "20s"];
    let by = |tag| [&receive[..], &["--tag", tag]].concat();
    let received = run(&server, &[by("unpaid"), vec!["--output", "json"]].concat()).await.json();
    let messages = received["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), 1, "{received}");
    assert_eq!(messages[0]["bodyText"], "unpaid");
    assert!(run(&server, &by("paid")).await.error().contains("SUBSCRIPTION_MISMATCH"));
    server.stop().await;
}
