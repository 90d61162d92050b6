//! What clients can make grow, at its bound: refused at once, told why and when to come again, and given
//! again when there is room.

use horolog::client::Answer;
use horolog::config::Given;
use serde_json::{Value, json as value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::fixture::{TestServer, get, json, post, refusal};
use crate::group_settings::put;
use crate::wire::talk;

const PUT: &str = "/v1/topics/orders/messages";
const RECEIVE: &str = "/v1/groups/workers/receive";

pub(crate) fn given(settings: &[(&str, &str)]) -> Given {
    let lines = settings.iter().map(|(key, setting)| format!("{key} = '{setting}'\n"));
    Given::from_toml(&lines.collect::<String>()).expect("these are settings")
}

async fn connect(server: &TestServer) -> TcpStream {
    TcpStream::connect(server.address()).await.expect("the server listens")
}

/// What comes until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset after the answer is a way to close, too.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// Status and code of a refusal that came over a bare connection, which must be a whole problem.
fn told(answer: &str) -> (u16, String) {
    assert!(answer.contains("\r\n\r\n"), "{answer:?}");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole answer");
    assert!(head.contains("\r\ncontent-type: application/problem+json"), "{answer}");
    assert!(head.contains("\r\nconnection: close"), "{answer}");
    assert!(head.contains(&format!("\r\ncontent-length: {}", body.len())), "{answer}");
    let problem: Value = serde_json::from_str(body).unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    assert_eq!(problem["status"], status, "{answer}");
    let again = head.contains("\r\nretry-after: 1");
    assert_eq!(again, status == 429 || status == 503, "{answer}");
    (status, problem["code"].as_str().unwrap_or_default().to_owned())
}

/// A refusal by 429 or 503, which must say when to come again.
pub(crate) fn overload(answer: &Answer) -> (u16, String) {
    assert_eq!(answer.headers.get("retry-after").expect("it is worth it"), "1");
    refusal(answer)
}

pub(crate) async fn refused(server: &TestServer, limit: &str) -> String {
    server.figure(&format!("horolog_refused_total{{limit=\"{limit}\"}}")).await
}

pub(crate) async fn until(server: &TestServer, figure: &str, expected: &str) {
    while server.figure(figure).await != expected {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn every_setting_that_bounds_something_is_listed() {
    let settings = [
        ("max_body", "2MiB", "bodyBytes", 2 << 20),
        ("max_connections", "11", "connections", 11),
        ("max_waiting_receives", "12", "waitingReceives", 12),
        ("max_request_memory", "17MiB", "requestBytesInMemory", 17 << 20),
        ("max_answer_memory", "18MiB", "answerBytesInMemory", 18 << 20),
        ("max_header", "9KiB", "headerBytes", 9 << 10),
        ("header_timeout", "21s", "headerTimeoutMs", 21_000),
        ("idle_timeout", "22s", "idleTimeoutMs", 22_000),
        ("body_timeout", "23s", "bodyTimeoutMs", 23_000),
        ("body_grace", "24s", "bodyGraceMs", 24_000),
        ("min_body_rate", "25", "bodyBytesPerSecond", 25),
        ("answer_timeout", "26s", "answerTimeoutMs", 26_000),
        ("max_queued_appends", "27", "queuedAppends", 27),
        ("max_queued_append_bytes", "28KiB", "queuedAppendBytes", 28 << 10),
        ("max_leases", "29", "leases", 29),
        ("max_leases_per_queue", "30", "queueLeases", 30),
    ];
    let pairs: Vec<_> = settings.iter().map(|&(key, setting, ..)| (key, setting)).collect();
    let server = TestServer::start_with(given(&pairs)).await;
    let limits = json(&get(&mut server.client(), "/v1/limits").await);
    for (key, _, name, expected) in settings {
        assert_eq!(limits[name], expected, "{key} in {limits}");
    }
    // Bounds that are no settings.
    for name in ["queueParkedMessages", "checkCalls", "hostCheckCalls", "checkAnswerBytes"] {
        assert!(limits[name].as_u64() > Some(0), "{name} in {limits}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_head_that_comes_too_slowly_is_cut_off_however_it_dawdles() {
    let server = TestServer::start_with(given(&[("header_timeout", "2s")])).await;
    let mut silent = connect(&server).await;
    let mut half = connect(&server).await;
    half.write_all(b"GET /livez HTTP/1.1\r\nHost: h\r\nX-Sl").await.expect("the server reads");
    // The second head of a connection is timed like the first, and bytes that trickle buy no time.
    let mut trickling = connect(&server).await;
    trickling.write_all(b"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("it reads");
    let mut first = [0; 17];
    trickling.read_exact(&mut first).await.expect("the server answers");
    assert_eq!(&first, b"HTTP/1.1 200 OK\r\n");
    let (mut reading, mut writing) = trickling.split();
    let mut answers = Vec::new();
    tokio::select! {
        _ = reading.read_to_end(&mut answers) => {}
        () = async {
            while writing.write_all(b"X").await.is_ok() {
                tokio::task::yield_now().await;
            }
            std::future::pending::<()>().await;
        } => {}
    }
    let answers = String::from_utf8_lossy(&answers);
    let (_, late) = answers.split_once("ok\n").expect("the first request was answered");
    // Those that trickle fast may come to the largest head first; that is a refusal, too.
    assert!([408, 431].contains(&told(late).0), "{late}");
    assert_eq!(told(&rest(&mut half).await), (408, "REQUEST_TIMEOUT".to_owned()));
    assert_eq!(rest(&mut silent).await, "", "it has asked for nothing");
    let counted: u64 = refused(&server, "header_time").await.parse().expect("a number");
    assert!((2..=3).contains(&counted), "{counted}");
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_idles_too_long_is_closed_without_a_word() {
    let server = TestServer::start_with(given(&[("idle_timeout", "1s")])).await;
    let mut stream = connect(&server).await;
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("the server reads");
    let answers = rest(&mut stream).await;
    assert!(answers.ends_with("\r\n\r\nok\n"), "{answers}");
    until(&server, "horolog_connections", "1").await;
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_is_refused_and_its_memory_given_back() {
    let server = TestServer::start_with(given(&[("body_grace", "1s")])).await;
    for length in ["Content-Length: 4000000", "Transfer-Encoding: chunked"] {
        let head =
            format!("POST {PUT} HTTP/1.1\r\nHost: h\r\nContent-Type: a/b\r\n{length}\r\n\r\n");
        let mut stream = connect(&server).await;
        stream.write_all(format!("{head}5\r\nx").as_bytes()).await.expect("the server reads");
        assert_eq!(told(&rest(&mut stream).await), (408, "REQUEST_TIMEOUT".to_owned()));
    }
    assert_eq!(refused(&server, "body_time").await, "2");
    assert_eq!(server.figure("horolog_request_bytes").await, "0");
    server.stop().await;
}

#[tokio::test]
async fn bodies_share_the_memory_that_is_set_aside_for_them() {
    let server = TestServer::start_with(given(&[("max_request_memory", "16MiB")])).await;
    let length = 4 << 20;
    let head = format!(
        "POST {PUT} HTTP/1.1\r\nHost: h\r\nContent-Type: a/b\r\nContent-Length: {length}\r\n\r\n"
    );
    let mut held = Vec::new();
    for announced in 1..=4 {
        let mut stream = connect(&server).await;
        stream.write_all(head.as_bytes()).await.expect("the server reads");
        until(&server, "horolog_request_bytes", &(announced * length).to_string()).await;
        held.push(stream);
    }
    let answer = post(&mut server.client(), PUT, r#"{"body":1}"#).await;
    assert_eq!(overload(&answer), (503, "OVERLOADED".to_owned()));
    assert_eq!(refused(&server, "request_memory").await, "1");
    // One that announces itself as large as the others does not have to send anything to be told.
    let answer = talk(&server, head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    // What was let in is let through, and then there is room again.
    let mut first = held.swap_remove(0);
    first.write_all(&vec![b'x'; length]).await.expect("the server reads");
    let mut answer = [0; 12];
    first.read_exact(&mut answer).await.expect("the server answers");
    assert_eq!(&answer, b"HTTP/1.1 201");
    put(&server, "orders", "again", None).await;
    drop(held);
    until(&server, "horolog_request_bytes", "0").await;
    server.stop().await;
}

#[tokio::test]
async fn connections_beyond_the_bound_are_told_so_whatever_they_have_sent() {
    let server = TestServer::start_with(given(&[("max_connections", "3")])).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut client = server.client();
        assert_eq!(get(&mut client, "/livez").await.status, 200);
        held.push(client);
    }
    let request = format!(
        "POST {PUT} HTTP/1.1\r\nHost: h\r\nContent-Type: a/b\r\nContent-Length: 100000\r\n\r\n{}",
        "x".repeat(100_000)
    );
    // Many at once, each with a request on its way: the answer must not be overtaken by a reset.
    let mut late = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (address, request) = (server.address(), request.clone());
        late.spawn(async move {
            let mut stream = TcpStream::connect(address).await.expect("the server listens");
            let (mut reading, mut writing) = stream.split();
            // The server need not read all of it.
            let sending = async { drop(writing.write_all(request.as_bytes()).await) };
            let mut answer = Vec::new();
            let (read, ()) = tokio::join!(reading.read_to_end(&mut answer), sending);
            read.expect("the connection is closed in order");
            String::from_utf8_lossy(&answer).into_owned()
        });
    }
    while let Some(answer) = late.join_next().await {
        let answer = answer.expect("the test did not panic");
        assert_eq!(told(&answer), (503, "OVERLOADED".to_owned()));
    }
    let mut client = held.pop().expect("three are held");
    let figures = get(&mut client, "/metrics").await;
    let figures = String::from_utf8_lossy(&figures.body).into_owned();
    assert!(figures.contains("horolog_refused_total{limit=\"connections\"} 50\n"), "{figures}");
    assert!(figures.contains("horolog_connections 3\n"), "{figures}");
    drop((held, client));
    // As soon as one is closed there is room; the server may see that a moment later.
    while !matches!(server.client().call(axum::http::Method::GET, "/livez").await, Ok(answer) if answer.status == 200)
    {
        tokio::task::yield_now().await;
    }
    server.stop().await;
}

/// A receive that waits, over a bare connection.
async fn waiting(server: &TestServer) -> TcpStream {
    let body = r#"{"topic":"orders","wait":"30s"}"#;
    let length = body.len();
    let mut stream = connect(server).await;
    let request =
        format!("POST {RECEIVE} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    stream
}

#[tokio::test]
async fn receives_that_wait_beyond_the_bound_are_refused_and_those_that_do_not_are_served() {
    let server = TestServer::start_with(given(&[("max_waiting_receives", "2")])).await;
    let (first, second) = (waiting(&server).await, waiting(&server).await);
    until(&server, "horolog_receives_waiting", "2").await;
    let mut client = server.client();
    let wait = r#"{"topic":"orders","wait":"1ms"}"#;
    let answer = post(&mut client, RECEIVE, wait).await;
    assert_eq!(overload(&answer), (429, "TOO_MANY_WAITING".to_owned()));
    assert_eq!(refused(&server, "waiting_receives").await, "1");
    let answer = post(&mut client, RECEIVE, r#"{"topic":"orders"}"#).await;
    assert_eq!((answer.status.as_u16(), json(&answer)), (200, value!({"messages": []})));
    drop(first);
    until(&server, "horolog_receives_waiting", "1").await;
    let third = waiting(&server).await;
    until(&server, "horolog_receives_waiting", "2").await;
    drop((second, third));
    server.stop().await;
}

pub(crate) async fn receive(server: &TestServer, group: &str, max: usize) -> Answer {
    let request = value!({"topic": "orders", "max": max, "wait": "20s"}).to_string();
    post(&mut server.client(), &format!("/v1/groups/{group}/receive"), request).await
}

pub(crate) async fn handles(server: &TestServer, group: &str, count: usize) -> Vec<String> {
    let mut handles = Vec::new();
    // A put may be answered a moment before it is readable.
    while handles.len() < count {
        let answer = receive(server, group, count - handles.len()).await;
        assert_eq!(answer.status, 200, "{}", json(&answer));
        let messages = json(&answer)["messages"].as_array().expect("a list").clone();
        assert!(!messages.is_empty(), "only {handles:?} came");
        let text = |message: &Value| message["receiptHandle"].as_str().expect("text").to_owned();
        handles.extend(messages.iter().map(text));
    }
    handles
}

async fn ack(server: &TestServer, group: &str, handle: &str) {
    let request = value!({"receiptHandles": [handle]}).to_string();
    let answer = post(&mut server.client(), &format!("/v1/groups/{group}/ack"), request).await;
    assert_eq!(json(&answer)["results"][0]["status"], "ok", "{}", json(&answer));
}

#[tokio::test]
async fn messages_that_are_out_have_a_bound_over_all_groups() {
    let server = TestServer::start_with(given(&[("max_leases", "3")])).await;
    for body in 0..5 {
        put(&server, "orders", &body.to_string(), None).await;
    }
    let first = handles(&server, "workers", 2).await;
    let other = handles(&server, "others", 1).await;
    for group in ["workers", "others"] {
        let answer = receive(&server, group, 1).await;
        assert_eq!(overload(&answer), (429, "TOO_MANY_LEASES".to_owned()));
    }
    assert_eq!(refused(&server, "leases").await, "2");
    assert_eq!(server.figure("horolog_leases").await, "3");
    ack(&server, "workers", &first[0]).await;
    handles(&server, "others", 1).await;
    let answer = receive(&server, "workers", 1).await;
    assert_eq!(overload(&answer), (429, "TOO_MANY_LEASES".to_owned()));
    ack(&server, "others", &other[0]).await;
    handles(&server, "workers", 1).await;
    server.stop().await;
}

#[tokio::test]
async fn messages_of_a_queue_that_are_out_to_a_group_have_a_bound() {
    let settings = [("max_leases_per_queue", "2"), ("queues_per_topic", "1")];
    let server = TestServer::start_with(given(&settings)).await;
    for body in 0..4 {
        put(&server, "orders", &body.to_string(), None).await;
    }
    let out = handles(&server, "workers", 2).await;
    let answer = receive(&server, "workers", 1).await;
    assert_eq!(overload(&answer), (429, "TOO_MANY_LEASES".to_owned()));
    // Another group has a bound of its own.
    handles(&server, "others", 2).await;
    ack(&server, "workers", &out[1]).await;
    handles(&server, "workers", 1).await;
    server.stop().await;
}

/// A connection that takes a few bytes ahead and no more.
async fn narrow(server: &TestServer) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("the system has sockets");
    socket.set_recv_buffer_size(4096).expect("a buffer may be small");
    socket.connect(server.address()).await.expect("the server listens")
}

/// Two messages of 4 MiB, and a request for both.
async fn large_answer(server: &TestServer) -> String {
    let mut client = server.client();
    for _ in 0..2 {
        let body = vec![b'x'; 4 << 20];
        let headers = [("content-type", "text/plain")];
        let answer =
            crate::fixture::send(&mut client, axum::http::Method::POST, PUT, &headers, body).await;
        assert_eq!(answer.status, 201, "{}", json(&answer));
    }
    let request = r#"{"topic":"orders","max":2,"wait":"20s"}"#;
    let length = request.len();
    format!("POST {RECEIVE} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{request}")
}

#[tokio::test]
async fn answers_that_nobody_reads_hold_memory_that_has_a_bound() {
    let settings = [("max_answer_memory", "1MiB"), ("queues_per_topic", "1")];
    let server = TestServer::start_with(given(&settings)).await;
    let request = large_answer(&server).await;
    put(&server, "others", "small", None).await;
    let mut reader = narrow(&server).await;
    reader.write_all(request.as_bytes()).await.expect("the server reads");
    while server.figure("horolog_answer_bytes").await == "0" {
        tokio::task::yield_now().await;
    }
    let mut client = server.client();
    let other = r#"{"topic":"others","wait":"20s"}"#;
    let answer = post(&mut client, RECEIVE, other).await;
    assert_eq!(overload(&answer), (503, "OVERLOADED".to_owned()));
    assert_eq!(refused(&server, "answer_memory").await, "1");
    // Puts have small answers, and go on.
    put(&server, "orders", "more", None).await;
    // Its client reads it after all, whole, and there is room again.
    let mut answer = Vec::new();
    while !answer.ends_with(b"]}") {
        assert_ne!(reader.read_buf(&mut answer).await.expect("it goes on"), 0);
    }
    until(&server, "horolog_answer_bytes", "0").await;
    let answer = post(&mut client, RECEIVE, other).await;
    assert_eq!(json(&answer)["messages"][0]["bodyText"], "small", "{}", json(&answer));
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_given_up() {
    let settings = [("answer_timeout", "1s"), ("queues_per_topic", "1")];
    let server = TestServer::start_with(given(&settings)).await;
    let request = large_answer(&server).await;
    let mut reader = narrow(&server).await;
    reader.write_all(request.as_bytes()).await.expect("the server reads");
    until(&server, "horolog_refused_total{limit=\"answer_time\"}", "1").await;
    until(&server, "horolog_answer_bytes", "0").await;
    drop(reader);
    server.stop().await;
}

#[tokio::test]
async fn a_head_that_makes_no_sense_is_refused_by_a_problem_too() {
    let server = TestServer::start().await;
    let long = "x".repeat(49 * 1024);
    let many = "X: y\r\n".repeat(101);
    let good = "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n";
    for (bytes, expected) in [
        ("NONSENSE\r\n\r\n".to_owned(), (400, "INVALID_REQUEST")),
        ("GET / HTTP/3.0\r\n\r\n".to_owned(), (400, "INVALID_REQUEST")),
        ("GET /livez HTTP/1.1\r\nno colon\r\n\r\n".to_owned(), (400, "INVALID_REQUEST")),
        ("GET /livez HTTP/1.1\r\nHost: a\0b\r\n\r\n".to_owned(), (400, "INVALID_REQUEST")),
        (
            "GET /livez HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\n".to_owned(),
            (400, "INVALID_REQUEST"),
        ),
        ("\u{16}\u{3}\u{1} a TLS hello\r\n\r\n".to_owned(), (400, "INVALID_REQUEST")),
        (format!("GET /livez HTTP/1.1\r\nX-Long: {long}\r\n\r\n"), (431, "HEADERS_TOO_LARGE")),
        (format!("GET /livez HTTP/1.1\r\n{many}\r\n"), (431, "HEADERS_TOO_LARGE")),
        (format!("GET /{long} HTTP/1.1\r\n\r\n"), (431, "HEADERS_TOO_LARGE")),
        // It never comes to an end, and is not kept until it does.
        ("X".repeat(2 << 20), (431, "HEADERS_TOO_LARGE")),
    ] {
        let start: String = bytes.chars().take(40).collect();
        let expected = (expected.0, expected.1.to_owned());
        assert_eq!(told(&talk(&server, bytes.as_bytes()).await), expected, "{start}");
        // The same, after an answered request.
        let mut stream = connect(&server).await;
        stream.write_all(good.as_bytes()).await.expect("the server reads");
        let mut first = Vec::new();
        while !first.ends_with(b"ok\n") {
            assert_ne!(stream.read_buf(&mut first).await.expect("it answers"), 0);
        }
        // The server need not read all of it.
        let _ = stream.write_all(bytes.as_bytes()).await;
        assert_eq!(told(&rest(&mut stream).await), expected, "{start}, second");
    }
    let none = "horolog_http_requests_total{route=\"none\",code=\"431\"}";
    assert_eq!(server.figure(none).await, "8");
    assert_eq!(refused(&server, "header_bytes").await, "8");
    server.stop().await;
}
