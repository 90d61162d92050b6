//! What no well-behaved client sends: spoken over a bare connection.

use axum::http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixture::{TestServer, json, send};

/// Sends `bytes` and reads until the server closes the connection.
pub(crate) async fn talk(server: &TestServer, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address()).await.expect("the server listens");
    // What is refused need not be read to its end.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    // A reset after the answer is a way to close, too.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn head(headers: &str) -> String {
    format!("POST /v1/topics/orders/messages HTTP/1.1\r\nHost: h\r\n{headers}\r\n\r\n")
}

#[tokio::test]
async fn a_body_that_is_announced_too_large_is_refused_before_any_of_it_is_sent() {
    let server = TestServer::start().await;
    for (media_type, length) in [("image/png", 4 * 1024 * 1024 + 1), ("application/json", 1 << 30)]
    {
        let head = head(&format!("Content-Type: {media_type}\r\nContent-Length: {length}"));
        let answer = talk(&server, head.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.contains("\"BODY_TOO_LARGE\""), "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_batch_that_is_announced_too_large_is_told_so_as_a_batch() {
    let server = TestServer::start().await;
    for media_type in ["application/json", "application/x-ndjson"] {
        let head = head(&format!("Content-Type: {media_type}\r\nContent-Length: {}", 1 << 30));
        let head = head.replacen("/messages ", "/messages/batch ", 1);
        let answer = talk(&server, head.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.contains("\"BATCH_TOO_LARGE\""), "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_does_not_say_its_length_is_refused_as_soon_as_it_is_too_large() {
    let server = TestServer::start().await;
    let head = head("Content-Type: image/png\r\nTransfer-Encoding: chunked");
    let mut stream = TcpStream::connect(server.address()).await.expect("the server listens");
    let (mut reading, mut writing) = stream.split();
    writing.write_all(head.as_bytes()).await.expect("the server reads");
    // There is no last chunk: the answer has to come while the body goes on.
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
    let endless = async {
        while writing.write_all(&chunk).await.is_ok() {}
        std::future::pending::<()>().await;
    };
    let mut answer = vec![0; 4096];
    let length = tokio::select! {
        read = reading.read(&mut answer) => read.expect("an answer comes before the end"),
        () = endless => 0,
    };
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("\"BODY_TOO_LARGE\""), "{answer}");
    drop(stream);
    server.stop().await;
}

#[tokio::test]
async fn a_request_with_two_ways_to_tell_its_length_is_refused_and_the_connection_closed() {
    let server = TestServer::start().await;
    let smuggled = "0\r\n\r\nDELETE /v1/messages/x HTTP/1.1\r\nHost: h\r\n\r\n";
    for headers in [
        "Content-Type: a/b\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Type: a/b\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Type: a/b\r\ntransfer-encoding: chunked\r\ncontent-length: 0",
    ] {
        let answer = talk(&server, format!("{}{smuggled}", head(headers)).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("\"INVALID_REQUEST\""), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
    for headers in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: -5",
        "Content-Length: 5, 6",
        "Transfer-Encoding: identity",
    ] {
        let answer = talk(&server, format!("{}{smuggled}", head(headers)).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{headers}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{headers}: {answer}");
    }
    assert_eq!(server.figure("horolog_messages_accepted_total").await, "0");
    server.stop().await;
}

#[tokio::test]
async fn a_chunked_body_is_a_body_on_every_request_of_a_connection() {
    let server = TestServer::start().await;
    let chunked = head("Content-Type: text/plain\r\nTransfer-Encoding: chunked");
    let body = "11\r\ncontent-length: 3\r\n0\r\n\r\n";
    let mut stream = TcpStream::connect(server.address()).await.expect("the server listens");
    for _ in 0..3 {
        stream.write_all(format!("{chunked}{body}").as_bytes()).await.expect("the server reads");
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).await.expect("the server answers");
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    }
    drop(stream);
    server.stop().await;
}

#[tokio::test]
async fn headers_have_a_limit() {
    let server = TestServer::start().await;
    let long = head(&format!("X-Long: {}", "x".repeat(49 * 1024)));
    let answer = talk(&server, long.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let properties = "x".repeat(40 * 1024);
    let headers = [("content-type", "a/b"), ("x-long", properties.as_str())];
    let path = "/v1/topics/orders/messages";
    let answer = send(&mut server.client(), Method::POST, path, &headers, "x").await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
    server.stop().await;
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let given = horolog::config::Given {
        max_connections: Some("1".to_owned()),
        ..horolog::config::Given::default()
    };
    let server = TestServer::start_with(given).await;
    let mut first = server.client();
    assert_eq!(send(&mut first, Method::GET, "/livez", &[], "").await.status, 200);
    let answer = talk(&server, b"").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\"OVERLOADED\""), "{answer}");
    drop(first);
    server.stop().await;
}
