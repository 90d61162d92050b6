//! `GET /v1/scheduled`, `GET /v1/scheduled/timeline`, `POST /v1/scheduled/cancel`.

use axum::http::Method;
use serde_json::{Value, json as value};

use crate::fixture::{TestServer, get, json, post, refusal, send};

const LIST: &str = "/v1/scheduled";
const TIMELINE: &str = "/v1/scheduled/timeline";
const CANCEL: &str = "/v1/scheduled/cancel";
const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;
/// 2100-01-01T00:00:00Z: far ahead of any clock, so in the far ring.
const FAR: u64 = 4_102_444_800_000;

async fn put(server: &TestServer, topic: &str, message: Value) -> String {
    let path = format!("/v1/topics/{topic}/messages");
    let answer = post(&mut server.client(), &path, message.to_string()).await;
    assert_eq!(answer.status, 201, "{}", json(&answer));
    json(&answer)["messageId"].as_str().expect("the put was answered with an id").to_owned()
}

/// All pages of the list, and how many there were.
async fn list(server: &TestServer, query: &str) -> (Vec<Value>, usize) {
    let mut client = server.client();
    let (mut items, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let answer = get(&mut client, &format!("{LIST}?{query}{cursor}")).await;
        let page = json(&answer);
        assert_eq!(answer.status, 200, "{page}");
        items.extend(page["items"].as_array().expect("a list").iter().cloned());
        pages += 1;
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (items, pages),
        }
    }
}

async fn ids(server: &TestServer, query: &str) -> Vec<String> {
    let (items, _) = list(server, query).await;
    items.iter().map(|item| item["messageId"].as_str().expect("an id").to_owned()).collect()
}

async fn bulk_cancel(server: &TestServer, request: Value) -> Value {
    let answer = post(&mut server.client(), CANCEL, request.to_string()).await;
    assert_eq!(answer.status, 200, "{}", json(&answer));
    json(&answer)
}

#[tokio::test]
async fn a_message_whose_put_was_answered_is_listed_as_it_is_shown_alone() {
    let server = TestServer::start().await;
    let message = value!({"body": 1, "delay": "1h", "keys": ["k"], "tag": "t"});
    let id = put(&server, "orders", message).await;
    put(&server, "orders", value!({"body": "ready"})).await;
    let (items, _) = list(&server, "").await;
    let alone = json(&get(&mut server.client(), &format!("/v1/messages/{id}")).await);
    assert_eq!(items, [alone]);
    assert_eq!(items[0]["state"], "SCHEDULED");
    server.stop().await;
}

#[tokio::test]
async fn the_list_goes_by_slots_near_and_then_far_and_newest_first_within_one() {
    let server = TestServer::start().await;
    let mut expected = Vec::new();
    for (slot, at) in [(3, FAR + 5 * DAY), (1, FAR - 20 * 365 * DAY), (2, FAR), (0, 0)] {
        for body in 0..3 {
            let message = match at {
                0 => value!({"body": body, "delay": "1h"}),
                at => value!({"body": body, "deliverAt": at + body}),
            };
            expected.push((slot, put(&server, "orders", message).await));
        }
    }
    // Those an hour ahead may lie in two seconds, the earlier of them first.
    expected.reverse();
    expected.sort_by_key(|(slot, _)| *slot);
    let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).collect();
    for limit in [1, 2, 5, 1000] {
        let (items, pages) = list(&server, &format!("limit={limit}")).await;
        let listed: Vec<_> =
            items.iter().map(|item| item["messageId"].as_str().expect("an id")).collect();
        assert_eq!(listed[3..], expected[3..], "limit {limit}");
        let mut near = [listed[0], listed[1], listed[2]];
        let mut sent = [&*expected[0], &*expected[1], &*expected[2]];
        near.sort_unstable();
        sent.sort_unstable();
        assert_eq!(near, sent);
        assert!(pages >= 12_usize.div_ceil(limit), "{pages} pages of {limit}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_list_is_of_what_the_query_names() {
    let server = TestServer::start().await;
    let a = value!({"body": 1, "deliverAt": FAR, "keys": ["order-17", "x"], "tag": "a"});
    let b = value!({"body": 1, "deliverAt": FAR + 1, "keys": ["order-18"], "tag": "b"});
    let c = value!({"body": 1, "deliverAt": FAR + 2, "tag": "a"});
    let a = put(&server, "orders", a).await;
    let b = put(&server, "orders", b).await;
    let c = put(&server, "others", c).await;
    let all = [&c, &b, &a];
    for (query, expected) in [
        (String::new(), &all[..]),
        ("topic=orders".into(), &[&b, &a][..]),
        ("topic=others".into(), &[&c]),
        ("key=order-".into(), &[&b, &a]),
        ("key=order-17".into(), &[&a]),
        ("key=rder".into(), &[]),
        ("tag=a".into(), &[&c, &a]),
        ("tag=a&topic=orders".into(), &[&a]),
        ("tag=A".into(), &[]),
        (format!("from={}", FAR + 1), &[&c, &b]),
        (format!("to={}", FAR + 1), &[&a]),
        (format!("from={}&to={}", FAR + 1, FAR + 2), &[&b]),
        ("from=2100-01-01T00:00:00.002Z".into(), &[&c]),
        ("from=2100-01-01T01:00:00.001%2B01:00".into(), &[&c, &b]),
        ("to=2099-12-31T23:59:59Z".into(), &[]),
    ] {
        let expected: Vec<_> = expected.iter().map(|id| (*id).clone()).collect();
        assert_eq!(ids(&server, &query).await, expected, "{query}");
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_cancelled_or_fired_is_pending_no_more() {
    let server = TestServer::start().await;
    let gone = put(&server, "orders", value!({"body": 1, "delay": "1h"})).await;
    let stays = put(&server, "orders", value!({"body": 2, "delay": "1h"})).await;
    put(&server, "orders", value!({"body": 3, "delay": "50ms"})).await;
    let mut client = server.client();
    let answer = send(&mut client, Method::DELETE, &format!("/v1/messages/{gone}"), &[], "").await;
    assert_eq!(answer.status, 200);
    let request = r#"{"topic":"orders","wait":"20s"}"#;
    let received = json(&post(&mut client, "/v1/groups/g/receive", request).await);
    assert_eq!(received["messages"][0]["body"], 3);
    assert_eq!(ids(&server, "").await, [stays]);
    server.stop().await;
}

#[tokio::test]
async fn pages_go_on_while_what_they_showed_is_cancelled() {
    let server = TestServer::start().await;
    let mut all = Vec::new();
    for index in 0..20 {
        let message = value!({"body": index, "deliverAt": FAR + index % 4 * DAY * 4});
        all.push(put(&server, "orders", message).await);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    let mut client = server.client();
    loop {
        let page = json(&get(&mut client, &format!("{LIST}?limit=3{cursor}")).await);
        for item in page["items"].as_array().expect("a list") {
            let id = item["messageId"].as_str().expect("an id");
            let path = format!("/v1/messages/{id}");
            assert_eq!(send(&mut client, Method::DELETE, &path, &[], "").await.status, 200);
            seen.push(id.to_owned());
        }
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    all.sort();
    seen.sort();
    assert_eq!(seen, all);
    assert_eq!(ids(&server, "").await, Vec::<String>::new());
    server.stop().await;
}

/// A page is bounded in bytes: a thousand messages may carry 32 MiB of properties.
#[tokio::test]
async fn a_page_of_heavy_messages_is_short_and_the_rest_comes_with_the_next() {
    let server = TestServer::start().await;
    let heavy = "x".repeat(32_000);
    for index in 0..150 {
        let message = value!({"body": index, "deliverAt": FAR, "properties": {"p": heavy}});
        put(&server, "orders", message).await;
    }
    let (items, pages) = list(&server, "limit=1000").await;
    assert_eq!(items.len(), 150);
    assert!(pages > 1, "4.8 MB of properties in one page");
    server.stop().await;
}

#[tokio::test]
async fn a_malformed_query_is_refused() {
    let server = TestServer::start().await;
    let mut client = server.client();
    put(&server, "orders", value!({"body": 1, "deliverAt": FAR})).await;
    put(&server, "orders", value!({"body": 1, "deliverAt": FAR})).await;
    let page = json(&get(&mut client, &format!("{LIST}?limit=1&topic=orders")).await);
    let cursor = page["nextCursor"].as_str().expect("there is a second page").to_owned();
    let turned = |at: usize| {
        let mut bytes = cursor.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).expect("base64")
    };
    let bad = (400, "INVALID_REQUEST");
    let unknown = (404, "TOPIC_NOT_FOUND");
    let long = "x".repeat(256);
    for (query, expected) in [
        ("limit=0".to_owned(), bad),
        ("limit=1001".into(), bad),
        ("limit=-1".into(), bad),
        ("limit=many".into(), bad),
        ("lmit=1".into(), bad),
        ("limit=1&limit=2".into(), bad),
        ("key=".into(), bad),
        (format!("key={long}"), bad),
        ("tag=".into(), bad),
        ("topic=".into(), bad),
        ("topic=a%20b".into(), bad),
        ("topic=nobody".into(), unknown),
        ("topic=rmq_sys_wheel_timer".into(), unknown),
        ("from=yesterday".into(), bad),
        ("from=-1".into(), bad),
        ("from=1.5".into(), bad),
        ("to=99999999999999999999".into(), bad),
        ("from=5&to=5".into(), bad),
        ("from=5&to=4".into(), bad),
        ("cursor=".into(), bad),
        ("cursor=AAAA".into(), bad),
        ("topic=orders&cursor=%F0%9F%92%A5".into(), bad),
        (format!("topic=orders&cursor={}", turned(0)), bad),
        (format!("topic=orders&cursor={}", turned(30)), bad),
        (format!("topic=orders&cursor={}", turned(cursor.len() - 1)), bad),
        (format!("topic=orders&cursor={cursor}A"), bad),
        (format!("topic=orders&cursor={}", &cursor[1..]), bad),
        (format!("cursor={cursor}"), bad),
        (format!("topic=orders&to=9&cursor={cursor}"), bad),
    ] {
        let answer = get(&mut client, &format!("{LIST}?{query}")).await;
        let (status, code) = expected;
        assert_eq!(refusal(&answer), (status, code.to_owned()), "{query}");
    }
    for query in [
        "limit=1000".to_owned(),
        "topic=orders&from=1".into(),
        format!("topic=orders&cursor={cursor}"),
        format!("topic=orders&limit=7&cursor={cursor}"),
        format!("key={}", &long[1..]),
    ] {
        let answer = get(&mut client, &format!("{LIST}?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", json(&answer));
    }
    let answer = send(&mut client, Method::GET, LIST, &[("horolog-delay", "1s")], "").await;
    assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()));
    let answer = send(&mut client, Method::DELETE, LIST, &[], "").await;
    assert_eq!(refusal(&answer), (405, "METHOD_NOT_ALLOWED".to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn the_cursor_of_another_server_is_no_cursor() {
    let one = TestServer::start().await;
    let page = {
        put(&one, "orders", value!({"body": 1, "deliverAt": FAR})).await;
        put(&one, "orders", value!({"body": 1, "deliverAt": FAR})).await;
        json(&get(&mut one.client(), &format!("{LIST}?limit=1")).await)
    };
    one.stop().await;
    let cursor = page["nextCursor"].as_str().expect("there is a second page");
    let other = TestServer::start_with_random([8; 32]).await;
    let answer = get(&mut other.client(), &format!("{LIST}?cursor={cursor}")).await;
    assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()));
    other.stop().await;
}

#[tokio::test]
async fn a_timeline_counts_what_is_due_in_each_bucket() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let now = put(&server, "orders", value!({"body": 1, "deliverAt": FAR - 100 * DAY})).await;
    let born = json(&get(&mut client, &format!("/v1/messages/{now}")).await);
    // Whole minutes from the next on, well within the near ring.
    let born: jiff::Timestamp = born["bornAt"].as_str().expect("a time").parse().expect("a time");
    let born = u64::try_from(born.as_millisecond()).expect("after 1970");
    let from = (born / MINUTE + 2) * MINUTE;
    for (topic, at) in
        [("orders", 0), ("orders", 59_999), ("others", MINUTE), ("orders", 3 * MINUTE)]
    {
        put(&server, topic, value!({"body": 1, "deliverAt": from + at})).await;
    }
    let cancelled = put(&server, "orders", value!({"body": 1, "deliverAt": from})).await;
    let path = format!("/v1/messages/{cancelled}");
    assert_eq!(send(&mut client, Method::DELETE, &path, &[], "").await.status, 200);
    for (query, expected) in [
        (format!("from={from}&to={}", from + 4 * MINUTE), &[2, 1, 0, 1][..]),
        (format!("from={from}&to={}&topic=orders", from + 4 * MINUTE), &[2, 0, 0, 1]),
        (format!("from={from}&to={}&topic=others", from + 4 * MINUTE), &[0, 1, 0, 0]),
        (format!("from={from}&to={}&bucket=2m", from + 4 * MINUTE), &[3, 1]),
        (format!("from={from}&to={}&bucket=PT3M", from + 4 * MINUTE), &[3, 1]),
        (format!("from={from}&to={}&bucket=180000", from + 3 * MINUTE), &[3]),
        (format!("from={}&to={}", FAR - 104 * DAY, FAR), &[]),
        (format!("from={}&to={}&bucket=30d", FAR - 104 * DAY, FAR), &[1, 0, 0, 0]),
        (format!("from={}&to={}&bucket=30d&topic=orders", FAR - 104 * DAY, FAR), &[1, 0, 0, 0]),
    ] {
        let answer = get(&mut client, &format!("{TIMELINE}?{query}")).await;
        if expected.is_empty() {
            assert_eq!(refusal(&answer), (400, "INVALID_REQUEST".to_owned()), "too many: {query}");
            continue;
        }
        let timeline = json(&answer);
        assert_eq!(timeline["complete"], true, "{query}");
        let buckets = timeline["buckets"].as_array().expect("a list").clone();
        let counts: Vec<_> =
            buckets.iter().map(|b| b["count"].as_u64().expect("a count")).collect();
        assert_eq!(counts, expected, "{query}");
    }
    let default = json(&get(&mut client, TIMELINE).await);
    let buckets = default["buckets"].as_array().expect("a list");
    assert_eq!(buckets.len(), 60);
    let sum: u64 = buckets.iter().map(|b| b["count"].as_u64().expect("a count")).sum();
    assert_eq!(sum, 4, "an hour from now, in minutes: {default}");
    server.stop().await;
}

#[tokio::test]
async fn a_malformed_timeline_is_refused() {
    let server = TestServer::start().await;
    let mut client = server.client();
    let bad = (400, "INVALID_REQUEST");
    for (query, (status, code)) in [
        ("bucket=999ms", bad),
        ("bucket=0", bad),
        ("bucket=-1s", bad),
        ("bucket=soon", bad),
        ("from=0&to=1000001&bucket=1s", bad),
        ("from=7&to=7", bad),
        ("from=7&to=6", bad),
        ("from=soon", bad),
        ("limit=5", bad),
        ("topic=a%20b", bad),
        ("topic=nobody", (404, "TOPIC_NOT_FOUND")),
    ] {
        let answer = get(&mut client, &format!("{TIMELINE}?{query}")).await;
        assert_eq!(refusal(&answer), (status, code.to_owned()), "{query}");
    }
    let answer = get(&mut client, &format!("{TIMELINE}?from=0&to=1000000&bucket=1s")).await;
    assert_eq!(json(&answer)["buckets"].as_array().map(Vec::len), Some(1000));
    server.stop().await;
}

#[tokio::test]
async fn a_bulk_cancel_ends_what_it_names_and_nothing_else() {
    let server = TestServer::start().await;
    let mut left = Vec::new();
    for index in 0..6 {
        let keys = [format!("order-{index}")];
        let message = value!({"body": 1, "deliverAt": FAR + index, "keys": keys, "tag": "t"});
        left.push(put(&server, "orders", message).await);
    }
    let other = put(&server, "others", value!({"body": 1, "deliverAt": FAR})).await;
    let done = |matched: u64, cancelled: u64| value!({"matched": matched, "cancelled": cancelled, "alreadyDelivered": 0, "nextCursor": null});
    let dry = value!({"topic": "orders", "dryRun": true});
    assert_eq!(bulk_cancel(&server, dry).await, done(6, 0));
    assert_eq!(ids(&server, "topic=orders").await.len(), 6);
    for (request, count, gone) in [
        (value!({"topic": "orders", "tag": "u"}), 0, None),
        (value!({"topic": "orders", "key": "order-5"}), 1, Some(5)),
        (value!({"topic": "orders", "key": "order-5"}), 0, None),
        (value!({"topic": "orders", "from": FAR + 4, "tag": "t"}), 1, Some(4)),
        (value!({"topic": "orders", "to": "2100-01-01T00:00:00.001Z"}), 1, Some(0)),
    ] {
        assert_eq!(bulk_cancel(&server, request.clone()).await, done(count, count), "{request}");
        if let Some(gone) = gone {
            let path = format!("/v1/messages/{}", left[gone]);
            assert_eq!(json(&get(&mut server.client(), &path).await)["state"], "CANCELLED");
        }
    }
    assert_eq!(bulk_cancel(&server, value!({"topic": "orders"})).await, done(3, 3));
    assert_eq!(ids(&server, "").await, [other]);
    assert_eq!(server.figure("horolog_messages_cancelled_total").await, "6");
    server.stop().await;
}

#[tokio::test]
async fn a_malformed_bulk_cancel_is_refused_and_cancels_nothing() {
    let server = TestServer::start().await;
    let id = put(&server, "orders", value!({"body": 1, "deliverAt": FAR})).await;
    let bad = (400, "INVALID_REQUEST");
    for (request, (status, code)) in [
        ("", bad),
        ("{}", bad),
        ("[]", bad),
        (r#"{"topic":1}"#, bad),
        (r#"{"topic":"a b"}"#, bad),
        (r#"{"topic":"rmq_sys_wheel_timer"}"#, (400, "RESERVED_NAME")),
        (r#"{"topic":"nobody"}"#, (404, "TOPIC_NOT_FOUND")),
        (r#"{"topic":"orders","keys":"k"}"#, bad),
        (r#"{"topic":"orders","key":""}"#, bad),
        (r#"{"topic":"orders","tag":""}"#, bad),
        (r#"{"topic":"orders","from":"soon"}"#, bad),
        (r#"{"topic":"orders","from":{}}"#, bad),
        (r#"{"topic":"orders","from":2,"to":2}"#, bad),
        (r#"{"topic":"orders","dryRun":1}"#, bad),
        (r#"{"topic":"orders","limit":1}"#, bad),
        (r#"{"topic":"orders","cursor":"AAAA"}"#, bad),
    ] {
        let answer = post(&mut server.client(), CANCEL, request).await;
        assert_eq!(refusal(&answer), (status, code.to_owned()), "{request}");
    }
    assert_eq!(ids(&server, "").await, [id]);
    server.stop().await;
}
