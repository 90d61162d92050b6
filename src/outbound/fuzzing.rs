//! What users give the server to call, and what those who are called answer, to be tried with text that means
//! nothing.

use axum::http::{HeaderMap, HeaderValue};
use timerlog::decoder::{Decoder, Judged, unsealed};

use super::reply::retry_after;
use super::{Secret, Target};
use crate::clock::Timestamp;
use crate::config::PrivateTargets;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

pub(crate) fn decoders() -> Vec<Decoder> {
    let decoder = |name, samples, judge| Decoder::new(name, samples, unsealed, judge);
    vec![
        decoder("target", targets as fn() -> _, judge_target as fn(&[u8]) -> _),
        decoder("secret", secrets, judge_secret),
        decoder("retry_after", pauses, judge_pause),
    ]
}

fn written(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn targets() -> Vec<Vec<u8>> {
    written(&[
        "https://shop.example/checks?of=1&b",
        "HTTPS://Shop.Example:8443?of=1",
        "https://93.184.215.14/",
        "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443/a/b",
        "http://127.0.0.1:7401/checks",
        "http://localhost",
    ])
}

/// A target is written as a URL that is the same target, and whoever may call none of its own network may call
/// nothing that others may not.
fn judge_target(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Refused };
    let public = Target::new(text, PrivateTargets::Refused).ok();
    let Ok(target) = Target::new(text, PrivateTargets::Allowed) else {
        assert_eq!(public, None, "{text}");
        return Judged::Refused;
    };
    assert!(public.as_ref().is_none_or(|public| *public == target), "{text}");
    let shown = target.to_string();
    assert_eq!(Target::new(&shown, PrivateTargets::Allowed).as_ref(), Ok(&target), "{text}");
    assert_eq!(Target::new(&shown, PrivateTargets::Refused).ok(), public, "{text}");
    Judged::Accepted
}

fn secrets() -> Vec<Vec<u8>> {
    written(&["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
}

/// A secret is written in one way, and does not show itself.
fn judge_secret(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Refused };
    let Ok(secret) = text.parse::<Secret>() else { return Judged::Refused };
    assert_eq!(secret.written(), text);
    assert_eq!(format!("{secret:?}"), "Secret(secret)");
    Judged::Accepted
}

fn pauses() -> Vec<Vec<u8>> {
    written(&["120", "Mon, 21 Sep 2026 15:13:20 GMT", "18446744073709551615"])
}

fn judge_pause(bytes: &[u8]) -> Judged {
    let Ok(value) = HeaderValue::from_bytes(bytes) else { return Judged::Refused };
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", value);
    let Some(pause) = retry_after(&headers, NOW) else { return Judged::Refused };
    headers.insert("retry-after", HeaderValue::from(pause.as_secs()));
    let whole = std::time::Duration::from_secs(pause.as_secs());
    assert_eq!(retry_after(&headers, NOW), Some(whole));
    Judged::Accepted
}
