//! Health, version, figures, limits, and everything that is not there.

use axum::http::Method;

use crate::fixture::{TestServer, get, json, post, refusal, send};

#[tokio::test]
async fn the_server_tells_how_it_is() {
    let server = TestServer::start().await;
    let mut client = server.client();
    assert_eq!(get(&mut client, "/livez").await.body, "ok\n");
    assert_eq!(get(&mut client, "/readyz").await.body, "ok\n");
    assert_eq!(
        get(&mut client, "/readyz?verbose").await.body,
        "[+] http ok\n[+] store ok\n[+] quarantine empty\n[+] disk ok\nok\n"
    );
    assert_eq!(json(&get(&mut client, "/version").await)["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json(&get(&mut client, "/v1/limits").await)["bodyBytes"], 4 * 1024 * 1024);
    server.stop().await;
}

#[tokio::test]
async fn figures_count_what_happened() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for delay in ["0s", "1h", "1h"] {
        let message = format!("{{\"body\":1,\"delay\":\"{delay}\"}}");
        let answer = post(&mut client, "/v1/topics/orders/messages", message).await;
        assert_eq!(answer.status, 201);
    }
    assert_eq!(server.figure("horolog_messages_accepted_total").await, "3");
    // What waits is counted as the log is read, which is a moment after the answer.
    while server.figure("horolog_messages_pending").await != "2" {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.figure("horolog_delivery_early_total").await, "0");
    let puts = "horolog_http_requests_total{route=\"put_message\",code=\"201\"}";
    assert_eq!(server.figure(puts).await, "3");
    let answer = get(&mut client, "/metrics").await;
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_too() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for (method, path, status, code) in [
        (Method::GET, "/", 404, "NOT_FOUND"),
        (Method::GET, "/v1", 404, "NOT_FOUND"),
        (Method::GET, "/v2/limits", 404, "NOT_FOUND"),
        (Method::GET, "/livez/", 404, "NOT_FOUND"),
        (Method::POST, "/v1/topics//messages", 400, "INVALID_REQUEST"),
        (Method::POST, "/v1/topics/orders/messages/", 404, "NOT_FOUND"),
        (Method::DELETE, "/v1/topics/orders/messages", 405, "METHOD_NOT_ALLOWED"),
        (Method::PUT, "/v1/messages/x", 405, "METHOD_NOT_ALLOWED"),
        (Method::GET, "/v1/groups/g/receive", 405, "METHOD_NOT_ALLOWED"),
        (Method::POST, "/metrics", 405, "METHOD_NOT_ALLOWED"),
        (Method::GET, "/livez?x=1", 400, "INVALID_REQUEST"),
        (Method::GET, "/readyz?verbose=loud", 400, "INVALID_REQUEST"),
        (Method::GET, "/version?v", 400, "INVALID_REQUEST"),
        (Method::GET, "/metrics?name=x", 400, "INVALID_REQUEST"),
        (Method::GET, "/v1/limits?x", 400, "INVALID_REQUEST"),
    ] {
        let answer = send(&mut client, method.clone(), path, &[], "").await;
        assert_eq!(refusal(&answer), (status, code.to_owned()), "{method} {path}");
        if status == 405 {
            assert!(answer.headers.contains_key("allow"), "{method} {path}");
        }
    }
    let answer = send(&mut client, Method::GET, "/livez", &[("horolog-delay", "1s")], "").await;
    assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()));
    server.stop().await;
}
