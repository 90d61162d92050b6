//! `horolog verify` and `horolog rebuild`, on the data directory of a server that was killed.

#![expect(clippy::disallowed_methods, reason = "a test of processes looks at their files itself")]

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::process::{Running, horolog, kill, message, run, start, stop};

fn command(server: &Running, arguments: &[&str]) -> Value {
    let mut command = horolog(arguments);
    command.env("HOROLOG_URL", format!("http://{}", server.address)).args(["--output", "json"]);
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", message(&output));
    let text = output.stdout.split(|&byte| byte == b'\n').next().expect("one line");
    serde_json::from_slice(text).unwrap_or(Value::Null)
}

fn id(answer: &Value) -> String {
    answer["messageId"].as_str().expect("an id is text").to_owned()
}

fn offline(what: &str, data: &Path, more: &[&str]) -> Output {
    let path = data.to_str().expect("temporary files have plain names");
    run(horolog(&[what, path]).args(more))
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("commands write text")
}

/// A server that has a pending message, a cancelled one, one that was acknowledged, and one that was not.
fn used(data: &Path) -> [String; 4] {
    let server = start(data);
    let put = |body: &str, more: &[&str]| {
        id(&command(&server, &[&["put", "orders", body][..], more].concat()))
    };
    let pending = put("pending", &["--delay", "1h"]);
    let cancelled = put("cancelled", &["--delay", "1h"]);
    command(&server, &["cancel", &cancelled]);
    let acked = put("acked", &[]);
    let receive = ["receive", "--group", "g", "--topic", "orders", "--wait", "20s", "--ack"];
    let received = command(&server, &receive);
    assert!(received.to_string().contains(&acked), "{received}");
    let ready = put("ready", &[]);
    // Damage in the last group of all cannot be told from a torn tail.
    put("last", &["--delay", "2h"]);
    kill(server);
    [pending, cancelled, acked, ready]
}

fn lose_derived(data: &Path) {
    for entry in fs::read_dir(data).expect("it is there") {
        let path = entry.expect("it can be read").path();
        match path.file_name().and_then(|name| name.to_str()) {
            Some("commitlog" | "id.key" | "LOCK") => {}
            _ if path.is_dir() => fs::remove_dir_all(path).expect("it is ours"),
            _ => fs::remove_file(path).expect("it is ours"),
        }
    }
}

fn flip(data: &Path, at: usize) {
    flip_in(&data.join("commitlog/00000000000000000000"), at);
}

fn flip_in(file: &Path, at: usize) {
    let mut bytes = fs::read(file).expect("the file is there");
    bytes[at] ^= 4;
    fs::write(file, bytes).expect("it is ours");
}

#[test]
fn what_is_whole_is_said_to_be_and_what_is_rebuilt_is_what_was_there() {
    let data = tempfile::tempdir().expect("the test may write temporary files");
    let [pending, cancelled, acked, ready] = used(data.path());
    let verified = offline("verify", data.path(), &[]);
    assert_eq!(verified.status.code(), Some(0), "{}{}", text(&verified), message(&verified));
    assert!(text(&verified).ends_with("whole\n"), "{}", text(&verified));
    lose_derived(data.path());
    let rebuilt = offline("rebuild", data.path(), &[]);
    assert_eq!(rebuilt.status.code(), Some(0), "{}", message(&rebuilt));
    assert!(text(&rebuilt).contains("2 messages are pending, 0 damaged"), "{}", text(&rebuilt));
    let verified = offline("verify", data.path(), &["--output", "json"]);
    let report: Value = serde_json::from_slice(&verified.stdout).expect("one document");
    assert_eq!(report["whole"], true, "{report}");
    let units = report["derived"].as_array().expect("kinds").iter();
    let read = |kind: &str| {
        let found = units.clone().find(|found| found["kind"] == kind);
        found.and_then(|found| found["read"].as_u64()).unwrap_or(0)
    };
    let shown = text(&offline("verify", data.path(), &[]));
    assert!(shown.contains("records whole"), "{shown}");
    assert!(read("consumequeue") >= 4 && read("timerlog") >= 2, "{report}");
    // The header and the first record of the wheel's log.
    for at in [4, 60] {
        let near = data.path().join("timerlog/near/00000000000000000000");
        flip_in(&near, at);
        let verified = offline("verify", data.path(), &[]);
        assert_eq!(verified.status.code(), Some(1), "{}", text(&verified));
        let file = "timerlog/near/00000000000000000000";
        assert!(text(&verified).contains(file), "{}", text(&verified));
        flip_in(&near, at);
    }
    let server = start(data.path());
    let state = |id: &str| command(&server, &["get", id])["state"].clone();
    assert_eq!(state(&pending), "SCHEDULED");
    assert_eq!(state(&cancelled), "CANCELLED");
    let receive = ["receive", "--group", "g", "--topic", "orders", "--wait", "5s", "--max", "10"];
    let received = command(&server, &receive).to_string();
    assert!(received.contains(&ready), "{received}");
    assert!(!received.contains(&acked) && !received.contains(&pending), "{received}");
    stop(server);
}

#[test]
fn a_flipped_bit_in_the_log_is_named_and_nothing_is_changed() {
    let data = tempfile::tempdir().expect("the test may write temporary files");
    used(data.path());
    let log = fs::read(data.path().join("commitlog/00000000000000000000")).expect("the log");
    let at = log.windows(7).position(|bytes| bytes == b"pending").expect("the body is there");
    flip(data.path(), at);
    let before = fs::read(data.path().join("commitlog/00000000000000000000")).expect("the log");
    let verified = offline("verify", data.path(), &[]);
    assert_eq!(verified.status.code(), Some(1), "{}", text(&verified));
    let said = text(&verified);
    assert!(said.contains("DAMAGED   commitlog/00000000000000000000 at "), "{said}");
    let after = fs::read(data.path().join("commitlog/00000000000000000000")).expect("the log");
    assert!(before == after, "verify has changed the log");
    flip(data.path(), at);
    let verified = offline("verify", data.path(), &[]);
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified));
}

#[test]
fn what_was_set_aside_is_listed_by_the_server_and_by_verify() {
    let data = tempfile::tempdir().expect("the test may write temporary files");
    let [_, _, _, ready] = used(data.path());
    let log = fs::read(data.path().join("commitlog/00000000000000000000")).expect("the log");
    let at = log.windows(5).rposition(|bytes| bytes == b"ready").expect("the body is there");
    flip(data.path(), at);
    let server = start(data.path());
    // What comes after it is served, itself it is not.
    let later = id(&command(&server, &["put", "orders", "later"]));
    let receive = ["receive", "--group", "g", "--topic", "orders", "--wait", "5s", "--max", "10"];
    let received = command(&server, &receive).to_string();
    assert!(received.contains(&later) && !received.contains(&ready), "{received}");
    let ready = read(&server, "/readyz?verbose");
    assert!(ready.contains("[!] quarantine 1 damaged"), "{ready}");
    assert!(ready.contains("commitlog/00000000000000000000 at "), "{ready}");
    assert!(read(&server, "/metrics").contains("\nhorolog_quarantined_total 1\n"));
    stop(server);
    let verified = offline("verify", data.path(), &[]);
    assert_eq!(verified.status.code(), Some(1));
    assert!(text(&verified).contains("SET ASIDE commitlog/"), "{}", text(&verified));
}

/// A GET, by a runtime of its own.
fn read(server: &Running, path: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let mut client = horolog::client::Client::new(server.address);
        let body = crate::fixture::get(&mut client, path).await.body;
        String::from_utf8(body.to_vec()).expect("text")
    })
}

#[test]
fn a_directory_that_is_open_or_none_is_refused() {
    let data = tempfile::tempdir().expect("the test may write temporary files");
    let empty = tempfile::tempdir().expect("the test may write temporary files");
    let server = start(data.path());
    for what in ["verify", "rebuild"] {
        let open = offline(what, data.path(), &[]);
        assert_eq!(open.status.code(), Some(3), "{what}");
        let said = message(&open);
        assert!(said.contains("another process has the data directory"), "{said}");
        let none = offline(what, empty.path(), &[]);
        assert_eq!(none.status.code(), Some(3), "{what}");
        assert!(message(&none).contains("is no data directory"), "{}", message(&none));
        let nowhere = offline(what, &empty.path().join("nowhere"), &[]);
        assert_eq!(nowhere.status.code(), Some(3), "{what}");
        assert!(message(&nowhere).contains("there is no directory"), "{}", message(&nowhere));
    }
    assert_eq!(fs::read_dir(empty.path()).expect("it is there").count(), 0, "something was made");
    stop(server);
}
