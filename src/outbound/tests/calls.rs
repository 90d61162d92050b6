//! What a receiver gets, and what becomes of a call that goes wrong.

use tokio::net::TcpSocket;

use super::*;

/// An address that refuses connections for as long as the socket lives.
pub(super) fn bound_but_deaf() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[tokio::test]
async fn a_receiver_gets_a_post_with_the_headers_of_a_webhook() {
    let (address, request) = receiver(ok("")).await;
    let body = Bytes::from_static(b"{\"a\":1}");
    let url = target(&format!("http://hook.test:{}/a?b=c", address.port()));
    let reply = local().post(&url, "msg_1", NOW, None, body, LONG).await.unwrap();
    assert_eq!(reply.status, 200);
    let expected = format!(
        "POST /a?b=c HTTP/1.1\r\nhost: hook.test:{}\r\ncontent-type: application/json\r\n\
         user-agent: horolog/{}\r\nconnection: close\r\nwebhook-id: msg_1\r\n\
         webhook-timestamp: 1790000000\r\ncontent-length: 7\r\n\r\n{{\"a\":1}}",
        address.port(),
        env!("CARGO_PKG_VERSION"),
    );
    assert_eq!(request.await.unwrap(), expected);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let (elsewhere, there) = listener().await;
    for status in ["301 Moved", "302 Found", "303 Other", "307 Temporary", "308 Permanent"] {
        let location = format!("http://{there}/");
        let (address, request) = receiver(format!(
            "HTTP/1.1 {status}\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
        ))
        .await;
        let reply = post(&local(), &target(&format!("http://{address}/"))).await.unwrap();
        assert!(status.starts_with(reply.status.as_str()), "{status}: {reply:?}");
        request.await.unwrap();
    }
    assert_nobody_came(&elsewhere).await;
}

#[tokio::test]
async fn a_refused_connection_sent_nothing() {
    let (_socket, address) = bound_but_deaf();
    let why = not_sent(post(&local(), &target(&format!("http://{address}/"))).await);
    let NotSent::Connect { address: dialed, cause } = why else { panic!("{why}") };
    assert_eq!((dialed, cause.kind()), (address, io::ErrorKind::ConnectionRefused));
}

#[tokio::test]
async fn an_id_that_is_no_header_is_refused_before_anything_is_opened() {
    let (listener, address) = listener().await;
    let url = target(&format!("http://{address}/"));
    for id in ["a\r\nx: y", "a\0"] {
        let result = local().post(&url, id, NOW, None, Bytes::new(), LONG).await;
        assert!(matches!(not_sent(result), NotSent::Id), "{id:?}");
    }
    assert_nobody_came(&listener).await;
}

#[tokio::test]
async fn a_receiver_that_read_the_request_and_closed_may_have_acted() {
    let half_a_head = "HTTP/1.1 200 OK\r\ncontent-";
    let half_a_body = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
    for answer in ["", "no HTTP\r\n\r\n", half_a_head, half_a_body] {
        let (address, request) = receiver(answer).await;
        let why = unknown(post(&local(), &target(&format!("http://{address}/"))).await);
        assert!(matches!(why, Unknown::Broken(_)), "{answer:?}: {why}");
        request.await.unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_ends_with_the_connection_is_whole() {
    let (address, request) = receiver("HTTP/1.0 200 OK\r\n\r\nall of it").await;
    let reply = post(&local(), &target(&format!("http://{address}/"))).await.unwrap();
    assert_eq!(reply.body, "all of it");
    request.await.unwrap();
}

#[tokio::test]
async fn each_call_has_a_connection_of_its_own() {
    let (listener, address) = listener().await;
    let server = tokio::spawn(async move {
        let mut peers = Vec::new();
        let mut open = Vec::new();
        for _ in 0..2 {
            let (mut stream, peer) = listener.accept().await.unwrap();
            read_request(&mut stream).await;
            stream.write_all(ok("{}").as_bytes()).await.unwrap();
            peers.push(peer);
            open.push(stream);
        }
        peers
    });
    let (outbound, url) = (local(), target(&format!("http://{address}/")));
    for _ in 0..2 {
        post(&outbound, &url).await.unwrap();
    }
    let peers = server.await.unwrap();
    assert_ne!(peers[0], peers[1]);
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let (listener, address) = listener().await;
    let url = target(&format!("http://{address}/"));
    let outbound = local();
    let mut call = Box::pin(post(&outbound, &url));
    let mut stream = tokio::select! {
        result = call.as_mut() => panic!("nobody answered: {result:?}"),
        stream = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_request(&mut stream).await;
            stream
        } => stream,
    };
    drop(call);
    assert_eq!(stream.read(&mut [0; 16]).await.unwrap(), 0, "the end of the stream");
}
