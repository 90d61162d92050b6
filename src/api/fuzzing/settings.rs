//! What topics, groups and the server are set to, and where a group is set to.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;
use timerlog::decoder::{Decoder, Judged};

use super::super::group_settings::settings;
use super::super::offsets::asked;
use super::super::topics::{change, type_name};
use super::{body, decoder, written};
use crate::config::{Config, Given};
use crate::consumer::ResetTo;
use crate::message::{StartFrom, TagFilter};

pub(super) fn decoders() -> Vec<Decoder> {
    vec![
        decoder("topic", topics, judge_topic),
        decoder("group_settings", groups, judge_group),
        decoder("offsets", resets, judge_reset),
        // Whoever starts the server writes it; the parser lists all that is wrong with it before it says so.
        decoder("settings_file", files, judge_file).costing(4096),
    ]
}

fn topics() -> Vec<Vec<u8>> {
    written(&[r#"{"type":"FIFO","queues":8,"retention":"P3D"}"#, r#"{"type":"TRANSACTION"}"#, "{}"])
}

fn judge_topic(bytes: &[u8]) -> Judged {
    body(bytes, &["type", "queues", "retention"], change, |change| {
        json!({
            "type": change.of.map(type_name),
            "queues": change.queues,
            "retention": change.retention_ms,
        })
    })
}

fn groups() -> Vec<Vec<u8>> {
    written(&[
        r#"{"ordered":true,"maxAttempts":3,"backoff":["1s",5000,"PT1M"],"invisibleFor":"45s",
            "startFrom":"latest","tags":{"orders":["paid","late"],"refunds":["x"]}}"#,
        "{}",
    ])
}

fn judge_group(bytes: &[u8]) -> Judged {
    let known = ["ordered", "maxAttempts", "backoff", "invisibleFor", "startFrom", "tags"];
    body(bytes, &known, settings, |settings| {
        let tags: BTreeMap<_, _> =
            settings.filters.iter().map(|(topic, filter)| (topic, filter.tags())).collect();
        assert!(!settings.filters.values().any(TagFilter::admits_everything));
        json!({
            "ordered": settings.ordered,
            "maxAttempts": settings.max_attempts,
            "backoff": settings.backoff_ms,
            "invisibleFor": settings.invisible_for_ms,
            "startFrom": match settings.start_from {
                StartFrom::Earliest => "earliest",
                StartFrom::Latest => "latest",
            },
            "tags": tags,
        })
    })
}

fn resets() -> Vec<Vec<u8>> {
    written(&[
        r#"{"topic":"orders","to":"earliest"}"#,
        r#"{"to":"latest","topic":"orders"}"#,
        r#"{"topic":"orders","to":"2026-09-21T14:13:20.007Z"}"#,
        r#"{"topic":"orders","to":{"0":17,"65535":18446744073709551615}}"#,
    ])
}

fn judge_reset(bytes: &[u8]) -> Judged {
    body(bytes, &["topic", "to"], asked, |(topic, to)| {
        let to = match to {
            ResetTo::Earliest => json!("earliest"),
            ResetTo::Latest => json!("latest"),
            ResetTo::Time(time) => json!(time.as_millis()),
            ResetTo::Queues(offsets) => json!(offsets),
        };
        json!({ "topic": topic.as_str(), "to": to })
    })
}

fn files() -> Vec<Vec<u8>> {
    written(&[
        "flush = 'async'\nflush_interval = '50ms'\nqueues_per_topic = 8\n",
        "listen = '127.0.0.1:0'\nmax_body = 65536\nauto_create_topics = false\ndelay_levels = '1s 2s'",
        "",
    ])
}

/// A number or a truth value means what it means as text.
fn judge_file(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Refused };
    let Ok(given) = Given::from_toml(text) else { return Judged::Refused };
    let table: toml::Table = toml::from_str(text).expect("it was read as TOML");
    let mut plain = String::new();
    for (name, value) in table {
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(truth) => truth.to_string(),
            other => unreachable!("{name} was read as {other:?}"),
        };
        // But for one character the escapes of JSON are those of TOML.
        let value = json!(value).to_string().replace('\u{7f}', "\\u007f");
        let _ = writeln!(plain, "{name} = {value}");
    }
    assert_eq!(Given::from_toml(&plain).ok(), Some(given.clone()), "{plain}");
    if Config::new(&given).is_ok() { Judged::Accepted } else { Judged::Refused }
}
