//! JSON with the members of requests, of values that somebody could mean, and that nobody could.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};
use timerlog::decoder::{Decoder, Judged};

use super::{controls, messages, settings};

/// The members that the body of this name may have. All are tried with those of other bodies, too.
fn members(name: &str) -> &'static [&'static str] {
    match name {
        "put" => {
            &["body", "bodyText", "keys", "tag", "properties", "messageGroup", "deliverAt", "delay"]
        }
        "half" => &[
            "bodyBase64",
            "producerGroup",
            "checkAfter",
            "checkInterval",
            "maxChecks",
            "abandonAfter",
            "checkUrl",
            "checkSecret",
            "delayLevel",
        ],
        "batch" => &["messages", "atomic"],
        "receive" => &["topic", "max", "wait", "invisibleFor", "tags"],
        "ack" | "nack" => &["receiptHandles", "delay"],
        "extend" => &["receiptHandle", "invisibleFor"],
        "redrive" => &["ids", "topic"],
        "checks" => &["max", "wait"],
        "reschedule" => &["deliverAt", "delay"],
        "cancel" => &["topic", "key", "tag", "from", "to", "dryRun", "cursor"],
        "topic" => &["type", "queues", "retention"],
        "group_settings" => {
            &["ordered", "maxAttempts", "backoff", "invisibleFor", "startFrom", "tags"]
        }
        "offsets" => &["topic", "to"],
        _ => &[],
    }
}

/// As they stand in JSON: of every kind, at the bounds and beyond them.
#[rustfmt::skip]
const VALUES: [&str; 46] = [
    "null", "true", "false", "0", "1", "-1", "-0", "3", "1e3", "0.5", "255", "256", "257", "1000", "1001", "65536",
    "1790000000007", "18446744073709551615", "18446744073709551616", "1e400",
    r#""""#, r#""orders""#, r#""%DLQ%g""#, r#""..""#, r#""a/b""#, r#""\u0000""#, r#""\ud800""#, r#""30s""#,
    r#""PT1H""#, r#""-5s""#, r#""200y""#, r#""2026-09-21T14:13:20Z""#, r#""1969-12-31T23:59:59Z""#,
    r#""earliest""#, r#""latest""#, r#""FIFO""#, r#""AAE=""#, r#""https://shop.example/c""#,
    r#""http://localhost/c""#, r#""whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw""#,
    "[]", r#"["a","b"]"#, r#"[["a"],1]"#, "{}", r#"{"orders":["a"],"0":5}"#, r#"[{"body":1},{"body":2,"delay":"1s"}]"#,
];

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => select(&VALUES[..]).prop_map(str::to_owned),
        1 => any::<u64>().prop_map(|number| number.to_string()),
        1 => ".{0,40}".prop_map(|text| Value::from(text).to_string()),
        1 => vec(select(&VALUES[..]), 0..5).prop_map(|items| format!("[{}]", items.join(","))),
    ]
}

/// A body that is accepted, after some of its members were left out or given another value, and perhaps with one more,
/// which may be there twice then, or unknown.
fn object(decoder: &Decoder) -> impl Strategy<Value = String> + use<> {
    let samples: Vec<Map<String, Value>> = (decoder.samples)()
        .iter()
        .filter_map(|sample| serde_json::from_slice(sample).ok())
        .collect();
    let own = select(members(decoder.name));
    let any = prop_oneof![20 => own.clone(), 1 => select(&["typo", "", "topic", "delay"][..])];
    let left_out = vec(own.clone(), 0..3);
    let changed = vec((own, value()), 0..3);
    let more = vec((any, value()), 0..2);
    (select(samples), left_out, changed, more).prop_map(|(sample, left_out, changed, more)| {
        let kept = sample.iter().filter(|(name, _)| !left_out.contains(&name.as_str()));
        let mut members: BTreeMap<_, _> =
            kept.map(|(name, value)| (name.as_str(), value.to_string())).collect();
        members.extend(changed);
        let members = members.iter().map(|(name, value)| (*name, value));
        let members = members.chain(more.iter().map(|(name, value)| (*name, value)));
        let members = members.map(|(name, value)| format!("{name:?}:{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    })
}

fn judge(decoder: &Decoder, bytes: &[u8]) -> Judged {
    let mut judged = Ok(Judged::Refused);
    // A panic must not pass through the counter, which would go on counting.
    let judge = AssertUnwindSafe(|| decoder.try_bytes(bytes));
    let cost = allocation_counter::measure(|| judged = catch_unwind(judge));
    let judged = judged.unwrap_or_else(|panic| resume_unwind(panic));
    let (name, got, length) = (decoder.name, cost.bytes_max, bytes.len());
    assert!(got <= decoder.memory_max(length), "{name}: {got} bytes for an input of {length}");
    judged
}

fn bodies() -> Vec<Decoder> {
    let mut all = messages::decoders();
    all.extend(controls::decoders());
    all.extend(settings::decoders());
    all.retain(|decoder| !members(decoder.name).is_empty());
    all
}

#[test]
fn every_body_is_judged_whatever_its_members_say() {
    let bodies = bodies();
    assert_eq!(bodies.len(), 14, "a body without its members listed here");
    for decoder in bodies {
        let accepted = Cell::new(0);
        proptest!(ProptestConfig::with_cases(1024), |(json in object(&decoder))| {
            let is_accepted = judge(&decoder, json.as_bytes()) == Judged::Accepted;
            accepted.set(accepted.get() + u32::from(is_accepted));
        });
        assert!(accepted.get() > 0, "{}: nothing that was made up was accepted", decoder.name);
    }
}

/// What one body knows, another does not.
#[test]
fn every_body_is_tried_as_every_other() {
    for decoder in bodies() {
        for other in bodies() {
            for sample in (other.samples)() {
                judge(&decoder, &sample);
            }
        }
    }
}
