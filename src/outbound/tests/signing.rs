//! Signatures: the published vector, the published library, and secrets that do not show themselves.

use axum::http::{HeaderMap, HeaderName};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::clock::{Clock, SystemClock};

/// From the tests of the reference libraries.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn the_published_example_has_the_published_signature() {
    let secret: Secret = SECRET.parse().unwrap();
    let signature =
        secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b"{\"test\": 2432232314}");
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[tokio::test]
async fn a_signed_request_is_verified_by_the_published_library() {
    let (address, request) = receiver(ok("")).await;
    let now = SystemClock::new().now().wall;
    let secret: Secret = SECRET.parse().unwrap();
    let url = target(&format!("http://{address}/"));
    let body = Bytes::from_static(b"{\"state\":\"PREPARED\"}");
    local().post(&url, "msg_1", now, Some(&secret), body, LONG).await.unwrap();

    let request = request.await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let headers: HeaderMap = ["webhook-id", "webhook-timestamp", "webhook-signature"]
        .map(|name| (HeaderName::from_static(name), header(head, name).parse().unwrap()))
        .into_iter()
        .collect();
    let library = standardwebhooks::Webhook::new(SECRET).unwrap();
    library.verify(body.as_bytes(), &headers).unwrap();
    library.verify(b"{\"state\":\"COMMITTED\"}", &headers).unwrap_err();
}

#[test]
fn a_secret_is_24_to_64_bytes_in_base64_behind_its_prefix() {
    let secret = |length: usize| format!("whsec_{}", STANDARD.encode(vec![7; length]));
    for length in [24, 32, 64] {
        assert!(secret(length).parse::<Secret>().is_ok(), "{length}");
    }
    for (text, error) in [
        (secret(0), SecretError::Length { length: 0 }),
        (secret(23), SecretError::Length { length: 23 }),
        (secret(65), SecretError::Length { length: 65 }),
        (STANDARD.encode([7; 32]), SecretError::Prefix),
        (secret(32).to_uppercase(), SecretError::Prefix),
        (String::new(), SecretError::Prefix),
        (secret(32) + "!", SecretError::Base64),
        (secret(32).replace('=', ""), SecretError::Base64),
        (secret(24) + " ", SecretError::Base64),
    ] {
        assert_eq!(text.parse::<Secret>().unwrap_err(), error, "{text}");
        assert!(text.is_empty() || !error.to_string().contains(&text), "{error}");
    }
}

#[test]
fn a_secret_does_not_show_itself() {
    let secret: Secret = SECRET.parse().unwrap();
    assert_eq!(format!("{:?}", Some(secret)), "Some(Secret(secret))");
}

proptest! {
    #[test]
    fn signatures_are_those_of_the_published_library(
        key in proptest::collection::vec(any::<u8>(), 24..=64),
        id in "[A-Za-z0-9_-]{1,40}",
        seconds in 0_u32..,
        body in ".{0,200}",
    ) {
        let text = format!("whsec_{}", STANDARD.encode(&key));
        let ours = text.parse::<Secret>().unwrap().sign(&id, u64::from(seconds), body.as_bytes());
        let library = standardwebhooks::Webhook::new(&text).unwrap();
        let theirs = library.sign(&id, i64::from(seconds), body.as_bytes()).unwrap();
        prop_assert_eq!(ours, theirs);
    }
}
