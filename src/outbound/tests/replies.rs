//! Answers: bounded, and with the wish to be left alone for a while.

use axum::http::HeaderMap;
use axum::http::header::RETRY_AFTER;

use super::*;
use crate::outbound::reply::retry_after;

async fn reply_to(answer: impl Into<Vec<u8>>) -> Result<Reply, OutboundError> {
    let (address, request) = receiver(answer).await;
    let reply = post(&local(), &target(&format!("http://{address}/"))).await;
    request.await.unwrap();
    reply
}

#[tokio::test]
async fn an_answer_of_any_status_is_a_reply() {
    for status in [200, 204, 400, 410, 429, 500, 503] {
        let head = format!("HTTP/1.1 {status} X\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n");
        let retry_after = Some(Duration::from_secs(7));
        let status = status.try_into().unwrap();
        assert_eq!(
            reply_to(head).await.unwrap(),
            Reply { status, retry_after, body: Bytes::new() }
        );
    }
}

#[tokio::test]
async fn of_a_body_the_first_64_kib_are_read() {
    for length in [0, 1, MAX_REPLY_BYTES - 1, MAX_REPLY_BYTES, MAX_REPLY_BYTES + 1, 10 << 20] {
        let body: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        let mut answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes();
        answer.extend_from_slice(&body);
        let reply = reply_to(answer).await.unwrap();
        let expected = &body[..length.min(MAX_REPLY_BYTES)];
        assert!(reply.body == expected, "of {length} bytes came {}", reply.body.len());
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_cut_and_its_connection_closed() {
    let (listener, address) = listener().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        while stream.write_all(&[b'a'; 4096]).await.is_ok() {}
    });
    let reply = post(&local(), &target(&format!("http://{address}/"))).await.unwrap();
    assert_eq!(reply.body.len(), MAX_REPLY_BYTES);
    // It writes for as long as somebody is there to read.
    server.await.unwrap();
}

#[tokio::test]
async fn a_head_without_an_end_is_no_answer() {
    let (listener, address) = listener().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\na: ").await.unwrap();
        while stream.write_all(&[b'a'; 4096]).await.is_ok() {}
    });
    let why = unknown(post(&local(), &target(&format!("http://{address}/"))).await);
    assert!(matches!(why, Unknown::Broken(_)), "{why}");
    server.await.unwrap();
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    // Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110.
    let date = Timestamp::from_millis(784_111_777_000);
    let earlier = Timestamp::from_millis(date.as_millis() - 90_500);
    for (value, now, expected) in [
        ("120", date, Some(Duration::from_secs(120))),
        (" 0 ", date, Some(Duration::ZERO)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", earlier, Some(Duration::from_millis(90_500))),
        ("Sun, 06 Nov 1994 08:49:37 GMT", date, Some(Duration::ZERO)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", NOW, Some(Duration::ZERO)),
        ("", date, None),
        ("-1", date, None),
        ("1.5", date, None),
        ("soon", date, None),
        ("99999999999999999999", date, None),
    ] {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
        assert_eq!(retry_after(&headers, now), expected, "{value:?}");
    }
    assert_eq!(retry_after(&HeaderMap::new(), date), None);
}
