//! `horolog serve` as a process: what it says, and how it ends.

use std::io::{BufRead, BufReader, Read as _};
use std::process::{Child, Command, Output, Stdio};

use horolog::client::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixture::get;

pub(crate) fn horolog(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_horolog"));
    command.args(arguments).env("HOROLOG_DISK_RESERVE", "1MiB").stdin(Stdio::null());
    command
}

pub(crate) fn run(command: &mut Command) -> Output {
    command.output().expect("the binary was built with this test")
}

pub(crate) fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server that has said where it listens.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: std::net::SocketAddr,
    output: BufReader<std::process::ChildStdout>,
}

pub(crate) fn start(data: &std::path::Path) -> Running {
    let data = data.to_str().expect("temporary paths are UTF-8");
    let mut command = horolog(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data]);
    running(command.args(["--segment-size", "16MiB"]))
}

fn running(command: &mut Command) -> Running {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary was built with this test");
    let mut output = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it says where it listens");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split(',').next());
    let address = address.and_then(|address| address.parse().ok());
    Running { child, address: address.expect("the line names the address"), output }
}

/// Ends it as a crash does.
pub(crate) fn kill(mut running: Running) {
    running.child.kill().expect("it runs");
    running.child.wait().expect("it was started here");
}

pub(crate) fn stop(mut running: Running) {
    terminate(&running);
    running.child.wait().expect("it was started here");
}

fn terminate(running: &Running) {
    let killed = Command::new("kill").arg(running.child.id().to_string()).status();
    assert!(killed.is_ok_and(|status| status.success()));
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_stops_in_order() {
    let data = tempfile::tempdir().expect("the test may write temporary files");
    let mut running = start(data.path());
    assert_eq!(get(&mut Client::new(running.address), "/readyz").await.status, 200);
    terminate(&running);
    let status = running.child.wait().expect("it was started here");
    assert_eq!(status.code(), Some(0));
    let mut rest = String::new();
    running.output.read_to_string(&mut rest).expect("its output has ended");
    assert_eq!(rest, "");
}

#[tokio::test]
async fn no_more_connections_are_taken_than_there_are_files_for() {
    let data = tempfile::tempdir().expect("the test may write temporary files");
    let data = data.path().to_str().expect("temporary paths are UTF-8");
    let serve = "ulimit -n 400 && exec \"$0\" serve --listen 127.0.0.1:0 --data-dir \"$1\"";
    let server = running(
        Command::new("sh")
            .args(["-c", serve, env!("CARGO_BIN_EXE_horolog"), data])
            .env("HOROLOG_DISK_RESERVE", "1MiB"),
    );
    let limits = get(&mut Client::new(server.address), "/v1/limits").await;
    assert_eq!(crate::fixture::json(&limits)["connections"], 300);
    // Each of them is answered, and further ones are told, not left to wait for a file.
    let mut clients = Vec::new();
    for _ in 0..300 {
        let mut client = Client::new(server.address);
        assert_eq!(get(&mut client, "/livez").await.status, 200);
        clients.push(client);
    }
    for _ in 0..50 {
        // Over a bare connection: the answer may come before a slow machine has asked.
        let mut stream = TcpStream::connect(server.address).await.expect("the server listens");
        let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n").await;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("the connection is closed in order");
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    }
    stop(server);
}

#[test]
fn settings_that_cannot_be_used_are_named_and_end_it_with_2() {
    for (arguments, word) in [
        (["--listen", "nowhere"], "HOROLOG_LISTEN"),
        (["--listen", "0.0.0.0:0"], "--insecure-listen"),
        (["--segment-size", "3MiB"], "power of two"),
        (["--config", "/no/such/file.toml"], "/no/such/file.toml"),
        (["--no-such-flag", "1"], "--no-such-flag"),
    ] {
        let output = run(horolog(&["serve"]).args(arguments));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", message(&output));
        assert!(message(&output).contains(word), "{arguments:?}: {}", message(&output));
    }
    let output = run(horolog(&["serve"]).env("HOROLOG_FLUSH", "maybe"));
    assert_eq!(output.status.code(), Some(2));
    assert!(message(&output).contains("HOROLOG_FLUSH"), "{}", message(&output));
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let folder = tempfile::tempdir().expect("the test may write temporary files");
    let file = tempfile::Builder::new().suffix(".toml").tempfile_in(folder.path());
    let mut file = file.expect("the test may write temporary files");
    std::io::Write::write_all(&mut file, b"flush = 'file'\n").expect("the disk has room");
    let path = file.path().to_str().expect("temporary paths are UTF-8").to_owned();
    let serve = || horolog(&["serve", "--config", &path]);
    assert!(message(&run(&mut serve())).contains("not \"file\""));
    let output = run(serve().env("HOROLOG_FLUSH", "environment"));
    assert!(message(&output).contains("not \"environment\""), "{}", message(&output));
    let output = run(serve().env("HOROLOG_FLUSH", "environment").args(["--flush", "flag"]));
    assert!(message(&output).contains("not \"flag\""), "{}", message(&output));
}

#[test]
fn an_address_that_is_taken_is_named_and_ends_it_with_4() {
    let data = tempfile::tempdir().expect("the test may write temporary files");
    let other = tempfile::tempdir().expect("the test may write temporary files");
    let mut running = start(data.path());
    let address = running.address.to_string();
    let other = other.path().to_str().expect("temporary paths are UTF-8");
    let output = run(&mut horolog(&["serve", "--listen", &address, "--data-dir", other]));
    assert_eq!(output.status.code(), Some(4), "{}", message(&output));
    assert!(message(&output).contains(&address), "{}", message(&output));
    terminate(&running);
    running.child.wait().expect("it was started here");
}

#[test]
fn a_data_directory_that_is_a_file_is_named_and_ends_it_with_3() {
    let file = tempfile::NamedTempFile::new().expect("the test may write temporary files");
    let path = file.path().to_str().expect("temporary paths are UTF-8");
    let output = run(&mut horolog(&["serve", "--listen", "127.0.0.1:0", "--data-dir", path]));
    assert_eq!(output.status.code(), Some(3), "{}", message(&output));
    assert!(message(&output).contains(path), "{}", message(&output));
}

#[test]
fn a_second_server_on_the_same_directory_is_refused_by_name_and_ends_with_3() {
    let data = tempfile::tempdir().expect("the test may write temporary files");
    let mut running = start(data.path());
    let path = data.path().to_str().expect("temporary paths are UTF-8");
    let output = run(&mut horolog(&["serve", "--listen", "127.0.0.1:0", "--data-dir", path]));
    assert_eq!(output.status.code(), Some(3), "{}", message(&output));
    for name in [path, &format!("held by process {}", running.child.id())] {
        assert!(message(&output).contains(name), "{name}: {}", message(&output));
    }
    terminate(&running);
    assert_eq!(running.child.wait().expect("it was started here").code(), Some(0));
}
