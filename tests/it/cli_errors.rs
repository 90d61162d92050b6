//! What a command says when it cannot be done: by the server, by the command line, or with no server.

use clap::Parser;

use crate::cli::{Line, run, run_at};
use crate::fixture::TestServer;

#[tokio::test]
async fn what_the_server_refuses_is_told_by_detail_and_code() {
    let server = TestServer::start().await;
    for (arguments, code) in [
        (vec!["put", "orders", "x", "--delay=-5s"], "INVALID_DELIVERY_TIME"),
        (vec!["put", "orders", "x", "--at", "tomorrow"], "INVALID_DELIVERY_TIME"),
        (vec!["put", "a b", "x"], "INVALID_REQUEST"),
        (vec!["put", "rmq_sys_x", "x"], "RESERVED_NAME"),
        (vec!["put", "orders", "x", "--property", "a=1", "--property", "a=2"], "INVALID_REQUEST"),
        (vec!["get", "x"], "MESSAGE_NOT_FOUND"),
        (vec!["get", "../../livez"], "MESSAGE_NOT_FOUND"),
        (vec!["cancel", "x"], "MESSAGE_NOT_FOUND"),
        (vec!["receive", "--group", "g", "--topic", "t", "--max", "257"], "INVALID_REQUEST"),
        (vec!["receive", "--group", "a b", "--topic", "t"], "INVALID_REQUEST"),
        (vec!["topics", "--limit", "0"], "INVALID_REQUEST"),
        (vec!["topics", "show", "t"], "TOPIC_NOT_FOUND"),
        (vec!["topics", "show", "../../livez"], "INVALID_REQUEST"),
        (vec!["topics", "delete", "t"], "TOPIC_NOT_FOUND"),
        (vec!["topics", "set", "t", "--type", "QUEUE"], "INVALID_REQUEST"),
        (vec!["topics", "set", "t", "--queues", "0"], "INVALID_REQUEST"),
        (vec!["topics", "set", "t", "--retention", "long"], "INVALID_REQUEST"),
        (vec!["topics", "set", "rmq_sys_x"], "RESERVED_NAME"),
        (vec!["groups", "--limit", "1001"], "INVALID_REQUEST"),
        (vec!["groups", "show", "g"], "GROUP_NOT_FOUND"),
        (vec!["groups", "set", "g", "--max-attempts", "0"], "INVALID_REQUEST"),
        (vec!["groups", "set", "g", "--backoff", "1s,soon"], "INVALID_REQUEST"),
        (vec!["groups", "set", "g", "--invisible-for", "0s"], "INVALID_REQUEST"),
        (vec!["groups", "set", "g", "--start-from", "middle"], "INVALID_REQUEST"),
        (vec!["groups", "set", "g", "--tag", "a b=t"], "INVALID_REQUEST"),
        (vec!["groups", "reset-offsets", "g", "--topic", "t", "--to", "latest"], "GROUP_NOT_FOUND"),
        (vec!["groups", "reset-offsets", "g", "--topic", "t", "--to", "now"], "INVALID_REQUEST"),
        (vec!["dlq", "g"], "GROUP_NOT_FOUND"),
        (vec!["dlq", "redrive", "g", "--everything"], "GROUP_NOT_FOUND"),
    ] {
        let ran = run(&server, &arguments).await;
        let error = ran.error();
        assert!(error.ends_with(&format!(" ({code})")), "{arguments:?}: {error}");
        assert_eq!(ran.output, "", "{arguments:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn of_several_values_the_one_that_is_refused_is_named() {
    let server = TestServer::start().await;
    let set = ["groups", "set", "g", "--invisible-for", "1h", "--backoff", "1s,soon"];
    let error = run(&server, &set).await.error();
    assert!(error.starts_with("backoff/1: not a duration"), "{error}");
    let begin = ["tx", "begin", "t", "x", "--producer-group", "g", "--check-after", "1ms"];
    let error = run(&server, &begin).await.error();
    assert!(error.starts_with("checkAfter: 100 to "), "{error}");
    let put = run(&server, &["put", "t", "x", "--delay", "soon"]).await.error();
    assert!(put.starts_with("delay: not a duration"), "it is not named twice: {put}");
    server.stop().await;
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_sent() {
    for arguments in [
        &["put"][..],
        &["put", "t"],
        &["put", "t", "x", "--file", "f"],
        &["put", "t", "x", "--delay", "1s", "--at", "0"],
        // A slip in an option must not become a body that is delivered now.
        &["put", "t", "--dealy=30m"],
        &["put", "t", "x", "--create-only"],
        &["put", "t", "x", "--timer", "k", "--idempotency-key", "i"],
        &["put", "t", "x", "--property", "a"],
        &["put", "t", "x", "--url", "127.0.0.1:7400"],
        &["put", "t", "x", "--url", "https://a"],
        &["put", "t", "x", "--output", "xml"],
        &["get"],
        &["get", "a", "b"],
        &["cancel"],
        &["cancel", "--topic", "t"],
        &["cancel", "--timer", "k"],
        &["cancel", "a", "--topic", "t", "--timer", "k"],
        &["receive", "--group", "g"],
        &["receive", "--topic", "t"],
        &["receive", "--group", "g", "--topic", "t", "--max", "-1"],
        &["pending", "--bucket", "60s"],
        &["pending", "--timeline", "--all"],
        &["pending", "--timeline", "--key", "k"],
        &["pending", "--timeline", "--limit", "1"],
        &["topics", "shwo", "t"],
        &["topics", "show"],
        &["topics", "--all", "show", "t"],
        &["topics", "set"],
        &["topics", "set", "t", "--queues", "many"],
        // One at a time: what is deleted should be looked at.
        &["topics", "delete", "a", "b"],
        &["groups", "set", "g", "--tag", "unpaid"],
        &["groups", "reset-offsets", "g", "--to", "earliest"],
        &["groups", "reset-offsets", "g", "--topic", "t"],
        &["groups", "reset-offsets", "g", "--topic", "t", "--to", "0", "--queue", "0=0"],
        &["groups", "reset-offsets", "g", "--topic", "t", "--queue", "0"],
        &["groups", "reset-offsets", "g", "--topic", "t", "--queue", "0=x"],
        &["dlq"],
        &["dlq", "g", "redrive"],
        &["dlq", "redrive"],
        // A slip must not redrive everything.
        &["dlq", "redrive", "g"],
        &["dlq", "redrive", "g", "id", "--everything"],
        &["dlq", "redrive", "g", "--topic", "t", "--everything"],
        &["tx", "--state", "PREPARED", "show", "id"],
        &["tx", "begin", "t", "x"],
        &["tx", "begin", "t", "--producer-group", "g"],
        &["tx", "begin", "t", "x", "--producer-group", "g", "--delay", "1s", "--at", "0"],
        &["tx", "begin", "t", "x", "--producer-group", "g", "--timer", "k"],
        &["tx", "commit"],
        // Each is a decision of its own.
        &["tx", "commit", "a", "b"],
        &["tx", "abort", "a"],
        &["tx", "checks"],
    ] {
        let refused = Line::try_parse_from([&["horolog"], arguments].concat());
        assert_eq!(refused.err().map(|error| error.exit_code()), Some(2), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_in_one_sentence() {
    let server = TestServer::start().await;
    let url = format!("http://{}", server.address());
    server.stop().await;
    let ran = run_at(&url, b"", &["get", "x"]).await;
    let error = ran.error();
    assert!(error.starts_with(&format!("no server at {url}: ")), "{error}");
    assert!(error.contains("refused") && error.lines().count() == 1, "{error}");
}
