//! The requests of consumers and of whoever changes what waits.

use serde_json::json;
use timerlog::decoder::{Decoder, Judged};

use super::super::changes::other_moment;
use super::super::dead_letters::redrive_request;
use super::super::groups::{ack_request, extend_request, nack_request, receive_request};
use super::super::scheduled::cancel_asked;
use super::super::transactions::checks_request;
use super::{body, decoder, written};
use crate::message::Moment;
use crate::producer::WhenMatched;

pub(super) fn decoders() -> Vec<Decoder> {
    vec![
        decoder("receive", receives, judge_receive),
        decoder("ack", acks, judge_ack),
        decoder("nack", nacks, judge_nack),
        decoder("extend", extends, judge_extend),
        decoder("redrive", redrives, judge_redrive),
        decoder("checks", checks, judge_checks),
        decoder("reschedule", moves, judge_move),
        decoder("cancel", cancels, judge_cancel),
    ]
}

fn receives() -> Vec<Vec<u8>> {
    written(&[
        r#"{"topic":"orders","max":5,"wait":"10s","invisibleFor":"1m","tags":["a","b"]}"#,
        r#"{"topic":"orders"}"#,
    ])
}

fn judge_receive(bytes: &[u8]) -> Judged {
    let known = ["topic", "max", "wait", "invisibleFor", "tags"];
    body(bytes, &known, receive_request, |asked| {
        json!({
            "topic": asked.topic.as_str(),
            "max": asked.max,
            "wait": asked.wait_ms,
            "invisibleFor": asked.invisible_for_ms,
            "tags": asked.tags.as_ref().map(|filter| filter.tags()),
        })
    })
}

fn acks() -> Vec<Vec<u8>> {
    written(&[r#"{"receiptHandles":["a","b"]}"#, r#"{"receiptHandles":[]}"#])
}

fn judge_ack(bytes: &[u8]) -> Judged {
    body(bytes, &["receiptHandles"], ack_request, |handles| json!({ "receiptHandles": handles }))
}

fn nacks() -> Vec<Vec<u8>> {
    written(&[r#"{"receiptHandles":["a"],"delay":"5s"}"#, r#"{"receiptHandles":["a","a"]}"#])
}

fn judge_nack(bytes: &[u8]) -> Judged {
    body(
        bytes,
        &["receiptHandles", "delay"],
        nack_request,
        |(handles, delay_ms)| json!({ "receiptHandles": handles, "delay": delay_ms }),
    )
}

fn extends() -> Vec<Vec<u8>> {
    written(&[r#"{"receiptHandle":"a","invisibleFor":1000}"#])
}

fn judge_extend(bytes: &[u8]) -> Judged {
    let read = |json: &[u8]| {
        let (handle, lease_ms) = extend_request(json)?;
        Ok((handle.into_owned(), lease_ms))
    };
    body(
        bytes,
        &["receiptHandle", "invisibleFor"],
        read,
        |(handle, lease_ms)| json!({ "receiptHandle": handle, "invisibleFor": lease_ms }),
    )
}

fn redrives() -> Vec<Vec<u8>> {
    written(&[r#"{"ids":["a"],"topic":"orders"}"#, r#"{"topic":"%RETRY%g"}"#, "{}"])
}

fn judge_redrive(bytes: &[u8]) -> Judged {
    body(
        bytes,
        &["ids", "topic"],
        redrive_request,
        |(ids, topic)| json!({ "ids": ids, "topic": topic.as_ref().map(|topic| topic.as_str()) }),
    )
}

fn checks() -> Vec<Vec<u8>> {
    written(&[r#"{"max":10,"wait":"PT5S"}"#, "{}"])
}

fn judge_checks(bytes: &[u8]) -> Judged {
    body(
        bytes,
        &["max", "wait"],
        checks_request,
        |(max, wait_ms)| json!({ "max": max, "wait": wait_ms }),
    )
}

fn moves() -> Vec<Vec<u8>> {
    written(&[r#"{"deliverAt":"2026-09-21T22:13:20.0065+08:00"}"#, r#"{"delay":"1h30m"}"#])
}

fn judge_move(bytes: &[u8]) -> Judged {
    body(bytes, &["deliverAt", "delay"], other_moment, |moment| match moment {
        Moment::At(at) => json!({ "deliverAt": at.as_millis() }),
        Moment::After(ms) => json!({ "delay": ms }),
        // Nothing is moved so, and nothing reads it.
        Moment::Now => json!({ "now": true }),
        Moment::Level(level) => json!({ "delayLevel": level }),
    })
}

fn cancels() -> Vec<Vec<u8>> {
    written(&[
        r#"{"topic":"orders","key":"user-","tag":"unpaid","from":"2026-09-21T14:13:20Z","to":1790000000007,
            "dryRun":true,"cursor":"c"}"#,
        r#"{"topic":"orders"}"#,
    ])
}

fn judge_cancel(bytes: &[u8]) -> Judged {
    let known = ["topic", "key", "tag", "from", "to", "dryRun", "cursor"];
    body(bytes, &known, cancel_asked, |asked| {
        let query = &asked.query;
        json!({
            "topic": query.topic.as_ref().map(|topic| topic.as_str()),
            "key": query.key,
            "tag": query.tag,
            "from": query.from.map(|time| time.as_millis()),
            "to": query.to.map(|time| time.as_millis()),
            "dryRun": asked.when_matched == WhenMatched::Count,
            "cursor": asked.cursor,
        })
    })
}
