//! The commands as processes: exit codes, standard output and standard error, and where the server is from
//! the environment.

use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::process::{horolog, message, run, start, stop};

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("commands write text")
}

#[test]
fn a_message_goes_from_put_to_receive_by_commands_alone() {
    let data = tempfile::tempdir().expect("the test may write temporary files");
    let server = start(data.path());
    let url = format!("http://{}", server.address);
    let command = |arguments: &[&str]| {
        let mut command = horolog(arguments);
        command.env("HOROLOG_URL", &url);
        command
    };
    let mut put = command(&["put", "orders", "-", "--delay", "200ms", "--output", "json"]);
    let put = put.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut put = put.expect("the binary was built with this test");
    let mut input = put.stdin.take().expect("it is piped");
    input.write_all(b"{\"order\": 17}").expect("the command reads");
    drop(input);
    let put = put.wait_with_output().expect("it was started here");
    assert_eq!(put.status.code(), Some(0), "{}", message(&put));
    let accepted: Value = serde_json::from_slice(&put.stdout).expect("one document");
    let id = accepted["messageId"].as_str().expect("an id is text");

    let get_one = ["receive", "--group", "g", "--topic", "orders", "--wait", "20s", "--ack"];
    let received = run(&mut command(&get_one));
    assert_eq!(received.status.code(), Some(0), "{}", message(&received));
    assert!(text(&received).contains(id) && text(&received).contains("{\"order\": 17}"));
    assert_eq!(message(&received), "");

    let late = run(&mut command(&["cancel", id]));
    assert_eq!(late.status.code(), Some(1));
    assert_eq!(text(&late), "");
    let said = "horolog: the message was already delivered (ALREADY_DELIVERED)\n";
    assert_eq!(message(&late), said);
    // What stands on the command line wins over the environment.
    let elsewhere = run(&mut command(&["get", id, "--url", "http://127.0.0.1:1"]));
    assert_eq!(elsewhere.status.code(), Some(1));
    let said = message(&elsewhere);
    assert!(said.starts_with("horolog: no server at http://127.0.0.1:1: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    stop(server);
}

#[test]
fn what_is_wrong_with_the_command_line_ends_it_with_2() {
    for arguments in [
        &["put", "orders"][..],
        &["put", "orders", "x", "--url", "nowhere"],
        &["cancel"],
        &["pending", "--output", "xml"],
    ] {
        let output = run(&mut horolog(arguments));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", message(&output));
        assert_eq!(text(&output), "", "{arguments:?}");
    }
}

#[test]
fn every_command_has_help_with_an_example_of_itself() {
    let commands = [
        "put",
        "get",
        "cancel",
        "receive",
        "pending",
        "topics",
        "topics list",
        "topics show",
        "topics set",
        "topics delete",
        "groups",
        "groups list",
        "groups show",
        "groups set",
        "groups reset-offsets",
        "dlq",
        "dlq list",
        "dlq redrive",
        "tx",
        "tx list",
        "tx show",
        "tx begin",
        "tx commit",
        "tx rollback",
        "tx resume",
        "tx checks",
    ];
    for (command, flag) in commands.iter().flat_map(|one| [(one, "-h"), (one, "--help")]) {
        let words: Vec<_> = command.split(' ').chain([flag]).collect();
        let output = run(&mut horolog(&words));
        assert_eq!(output.status.code(), Some(0), "{command} {flag}");
        let help = text(&output);
        assert!(help.contains("Example: "), "{help}");
        assert!(help.contains(&format!("\n  horolog {command} ")), "{help}");
        let long = help.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{command}");
    }
}
