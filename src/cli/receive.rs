//! `horolog receive`: messages of a topic, as a member of a group.

use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::{Output, ReceiveArgs};
use super::far::away;
use super::message::Message;
use super::remote::{Remote, encoded, object};
use super::table::Table;
use super::{CliError, Io};

#[derive(Deserialize)]
struct Received {
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Acked {
    results: Vec<Ack>,
}

#[derive(Deserialize)]
struct Ack {
    status: String,
}

pub(super) async fn run(args: &ReceiveArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let mut remote = Remote::new(&args.common.url);
    let group = encoded(&args.group);
    let good = remote.post(&format!("/v1/groups/{group}/receive"), &request(args)).await?;
    let Received { messages } = good.read()?;
    match args.common.output {
        Output::Json => good.write(io.output)?,
        Output::Table => show(&messages, io)?,
    }
    if messages.is_empty() {
        return Ok(());
    }
    if !args.ack {
        if let (Output::Table, Some(until)) = (args.common.output, &messages[0].invisible_until) {
            let far = away(until, (io.now)());
            writeln!(io.notes, "horolog: not acknowledged (--ack): these come again {far}")?;
        }
        return Ok(());
    }
    // Who acknowledges has seen: what is not written yet is not acknowledged.
    io.output.flush()?;
    let handles: Vec<_> = messages.iter().filter_map(|one| one.receipt_handle.clone()).collect();
    let path = format!("/v1/groups/{group}/ack");
    let good = remote.post(&path, &json!({ "receiptHandles": handles })).await?;
    let Acked { results } = good.read()?;
    let mut failed = results.iter().filter(|result| result.status != "ok");
    match failed.next() {
        None => Ok(()),
        Some(first) => Err(CliError::NotAcked {
            failed: 1 + failed.count(),
            of: results.len(),
            code: first.status.clone(),
        }),
    }
}

fn request(args: &ReceiveArgs) -> Value {
    object([
        ("topic", Some(args.topic.clone().into())),
        ("max", args.max.map(Value::from)),
        ("wait", args.wait.clone().map(Value::from)),
        ("invisibleFor", args.invisible_for.clone().map(Value::from)),
        ("tags", (!args.tags.is_empty()).then(|| args.tags.clone().into())),
    ])
}

fn show(messages: &[Message], io: &mut Io<'_>) -> Result<(), CliError> {
    if messages.is_empty() {
        return Ok(writeln!(io.notes, "horolog: no message came")?);
    }
    let now = (io.now)();
    let mut table = Table::new(["MESSAGE", "TRY", "DUE", "", "KEYS", "TAG", "BODY"]);
    for message in messages {
        table.row([
            message.message_id.clone(),
            message.attempt.map(|attempt| attempt.to_string()).unwrap_or_default(),
            message.deliver_at.clone(),
            away(&message.deliver_at, now),
            message.all_keys(),
            message.tag.clone().unwrap_or_default(),
            message.body().unwrap_or_default(),
        ]);
    }
    Ok(table.write(io.output)?)
}
