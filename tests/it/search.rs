//! `GET /v1/topics/{topic}/messages?key=`: the messages of a topic by a key, newest first.

use axum::http::Method;
use horolog::client::Client;
use serde_json::{Value, json as value};

use crate::fixture::{TestServer, delete, get, id, json, post, receive, refusal, send, send_json};

async fn put(client: &mut Client, topic: &str, message: Value) -> String {
    id(&post(client, &format!("/v1/topics/{topic}/messages"), message.to_string()).await)
}

async fn search(client: &mut Client, topic: &str, query: &str) -> Value {
    let answer = get(client, &format!("/v1/topics/{topic}/messages?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", json(&answer));
    json(&answer)
}

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().expect("a list");
    items.iter().map(|item| item["messageId"].as_str().expect("text").to_owned()).collect()
}

#[tokio::test]
async fn a_malformed_search_is_refused() {
    let server = TestServer::start().await;
    let mut client = server.client();
    put(&mut client, "orders", value!({"body": 1, "keys": ["k"]})).await;
    let long = "k".repeat(256);
    for (path, status, code) in [
        ("/v1/topics/orders/messages".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/orders/messages?".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/orders/messages?key=".to_owned(), 400, "INVALID_REQUEST"),
        (format!("/v1/topics/orders/messages?key={long}"), 400, "INVALID_REQUEST"),
        ("/v1/topics/orders/messages?key=k&key=l".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/orders/messages?key=k&tag=t".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/orders/messages?key=k&limit=0".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/orders/messages?key=k&limit=1001".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/orders/messages?key=k&limit=-1".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/orders/messages?key=k&limit=ten".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/orders/messages?key=k&cursor=".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/orders/messages?key=k&cursor=AAAA".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/orders/messages?key=k&cursor=*".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/a%20b/messages?key=k".to_owned(), 400, "INVALID_REQUEST"),
        ("/v1/topics/nothing/messages?key=k".to_owned(), 404, "TOPIC_NOT_FOUND"),
    ] {
        let answer = get(&mut client, &path).await;
        assert_eq!(refusal(&answer), (status, code.to_owned()), "{path}");
    }
    let (path, headers) = ("/v1/topics/orders/messages?key=k", [("horolog-key", "k")]);
    let answer = send(&mut client, Method::GET, path, &headers, "").await;
    assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn pages_go_from_the_newest_to_the_oldest_and_miss_nothing() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let mut all = Vec::new();
    for number in 0..25 {
        let message = value!({"body": number, "delay": "1h", "keys": ["other", "k"]});
        all.push(put(&mut client, "orders", message).await);
        put(&mut client, "orders", value!({"body": number, "keys": ["other"]})).await;
    }
    all.reverse();
    for limit in [1, 7, 24, 25, 26, 1000] {
        let mut found = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = search(&mut client, "orders", &format!("key=k&limit={limit}{cursor}")).await;
            let on_it = ids(&page);
            assert!(on_it.len() <= limit, "{limit}: {}", on_it.len());
            found.extend(on_it);
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, all, "limit {limit}");
    }
    let page = search(&mut client, "orders", "key=nobody").await;
    assert_eq!(page, value!({"items": [], "nextCursor": null}));
    server.stop().await;
}

#[tokio::test]
async fn a_cursor_is_good_for_a_search_of_the_server_that_gave_it_only() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for topic in ["a", "b", "c"] {
        for number in 0..3 {
            put(&mut client, topic, value!({"body": number, "keys": ["k", "l"]})).await;
        }
    }
    let cursor = |page: Value| page["nextCursor"].as_str().expect("there is more").to_owned();
    let own = cursor(search(&mut client, "a", "key=k&limit=1").await);
    let of_topics = cursor(json(&get(&mut client, "/v1/topics?limit=1").await));
    let last = if own.ends_with('A') { 'B' } else { 'A' };
    let damaged = format!("{}{last}", &own[..own.len() - 1]);
    let of_other_topic = cursor(search(&mut client, "b", "key=k&limit=1").await);
    let of_other_key = cursor(search(&mut client, "a", "key=l&limit=1").await);
    for foreign in
        [&of_topics, &of_other_topic, &of_other_key, &damaged, &own[1..], &format!("{own}{own}")]
    {
        let path = format!("/v1/topics/a/messages?key=k&cursor={foreign}");
        let answer = get(&mut client, &path).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{foreign}");
    }
    for foreign in [own.as_str(), "", "*", "A", "AAAA", "Li4"] {
        let answer = get(&mut client, &format!("/v1/topics?cursor={foreign}")).await;
        assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "{foreign}");
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_found_says_where_it_stands_now() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let message = value!({"body": 1, "delay": "1h", "keys": ["k"], "tag": "t"});
    let mut made = Vec::new();
    for _ in 0..4 {
        made.push(put(&mut client, "orders", message.clone()).await);
    }
    let [waits, cancelled, moved, fired] = &made[..] else { unreachable!("four were put") };
    assert_eq!(delete(&mut client, &format!("/v1/messages/{cancelled}")).await.status, 200);
    let change = r#"{"deliverAt":"2099-01-01T00:00:00Z"}"#;
    let path = format!("/v1/messages/{moved}");
    assert_eq!(send_json(&mut client, Method::PATCH, &path, change).await.status, 200);
    let path = format!("/v1/messages/{fired}/deliver");
    assert_eq!(send(&mut client, Method::POST, &path, &[], "").await.status, 200);
    let mut expected = Vec::new();
    for id in made.iter().rev() {
        expected.push(json(&get(&mut client, &format!("/v1/messages/{id}")).await));
    }
    let page = search(&mut client, "orders", "key=k").await;
    assert_eq!(page["items"], Value::Array(expected));
    let states: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["READY", "SCHEDULED", "CANCELLED", "SCHEDULED"]);
    assert!(page["items"][0]["firedAt"].is_string(), "{page}");
    assert_eq!(page["items"][1]["deliverAt"], "2099-01-01T00:00:00.000Z");
    assert_eq!(page["items"][3]["messageId"], waits.as_str());

    // The timer's own doing.
    let message = value!({"body": 1, "delay": "100ms", "keys": ["soon"]});
    let soon = put(&mut client, "mails", message).await;
    assert_eq!(receive(&server, "g", "mails").await.len(), 1);
    let page = search(&mut client, "mails", "key=soon").await;
    assert_eq!(ids(&page), [soon]);
    assert_eq!(page["items"][0]["state"], "READY");
    assert!(page["items"][0]["firedAt"].as_str() >= page["items"][0]["deliverAt"].as_str());
    server.stop().await;
}

#[tokio::test]
async fn a_key_belongs_to_its_topic_and_can_have_any_letters() {
    let server = TestServer::start().await;
    let mut client = server.client();
    for (key, encoded) in [
        ("k", "k"),
        ("order/17", "order%2F17"),
        ("a b&c=d", "a%20b%26c%3Dd"),
        ("50%", "50%25"),
        ("é💥", "%C3%A9%F0%9F%92%A5"),
        (&"k".repeat(255), &"k".repeat(255)),
    ] {
        let one = put(&mut client, "orders", value!({"body": 1, "keys": [key]})).await;
        let other = put(&mut client, "mails", value!({"body": 1, "keys": [key]})).await;
        for (topic, id) in [("orders", one), ("mails", other)] {
            let page = search(&mut client, topic, &format!("key={encoded}")).await;
            assert_eq!(ids(&page), [id], "{topic} {key}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_timer_is_found_by_its_key_among_what_has_the_key_too_once() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let plain = put(&mut client, "orders", value!({"body": 1, "keys": ["k"]})).await;
    let path = "/v1/topics/orders/timers/k";
    let timer = value!({"body": 1, "delay": "1h", "keys": ["k"]}).to_string();
    let first = id(&send_json(&mut client, Method::PUT, path, timer.clone()).await);
    let second = id(&send_json(&mut client, Method::PUT, path, timer).await);
    let page = search(&mut client, "orders", "key=k").await;
    assert_eq!(ids(&page), [second, first, plain]);
    let states: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["SCHEDULED", "CANCELLED", "READY"]);
    server.stop().await;
}

#[tokio::test]
async fn what_was_found_before_a_restart_is_found_after_it() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let mut all = Vec::new();
    for number in 0..20 {
        let message = value!({"body": number, "delay": "1h", "keys": ["k", format!("k{number}")]});
        all.push(put(&mut client, "orders", message).await);
    }
    let first = search(&mut client, "orders", "key=k&limit=5").await;
    let server = server.restart().await;
    let mut client = server.client();
    all.reverse();
    let cursor = first["nextCursor"].as_str().expect("there is more");
    let rest = search(&mut client, "orders", &format!("key=k&cursor={cursor}")).await;
    assert_eq!([ids(&first), ids(&rest)].concat(), all);
    assert_eq!(ids(&search(&mut client, "orders", "key=k3").await), [all[16].clone()]);
    server.stop().await;
}
