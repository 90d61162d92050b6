//! `horolog tx`: half messages, and what becomes of them.

use axum::http::Method;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::arguments::{
    BeginArgs, ChecksArgs, DecideArgs, ListTransactionsArgs, Output, ShowTransactionArgs,
    TransactionsArgs, TransactionsCommand,
};
use super::far::{away, time};
use super::message::body;
use super::outgoing::{Message, idempotency_key, message, read_body};
use super::pages::List;
use super::remote::{Remote, encoded, object, written};
use super::table::{Facts, Table};
use super::terminal::plain;
use super::{CliError, Io};
use crate::clock::Timestamp;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Transaction {
    transaction_id: String,
    topic: String,
    producer_group: Option<String>,
    state: String,
    prepared_at: Option<String>,
    checks: u64,
    max_checks: Option<u64>,
    next_check_at: Option<String>,
    abandoned_at: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prepared {
    transaction_id: String,
    message_id: String,
    state: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decided {
    transaction_id: String,
    state: String,
}

#[derive(Deserialize)]
struct Checks {
    checks: Vec<Check>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    transaction_id: String,
    topic: String,
    #[serde(default)]
    keys: Vec<String>,
    tag: Option<String>,
    check: u64,
    body: Option<Box<RawValue>>,
    body_text: Option<String>,
    body_base64: Option<String>,
}

pub(super) async fn run(args: &TransactionsArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    match &args.command {
        None => list(&args.list, io).await,
        Some(TransactionsCommand::List(args)) => list(args, io).await,
        Some(TransactionsCommand::Show(args)) => show(args, io).await,
        Some(TransactionsCommand::Begin(args)) => begin(args, io).await,
        Some(TransactionsCommand::Commit(args)) => decide(args, "commit", io).await,
        Some(TransactionsCommand::Rollback(args)) => decide(args, "rollback", io).await,
        Some(TransactionsCommand::Resume(args)) => decide(args, "resume", io).await,
        Some(TransactionsCommand::Checks(args)) => checks(args, io).await,
    }
}

fn path(id: &str) -> String {
    format!("/v1/transactions/{}", encoded(id))
}

async fn list(args: &ListTransactionsArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    // States are written in capitals, which nobody should have to type.
    let state = args.state.as_ref().map(|state| state.to_ascii_uppercase());
    let list = List {
        path: "/v1/transactions",
        parameters: &[("state", state.as_deref()), ("topic", args.topic.as_deref())],
        paging: args.paging,
        nothing: "no transactions were found",
    };
    list.show(&args.common, io, table).await
}

fn table(transactions: &[Transaction], now: Timestamp) -> Table<7> {
    let mut table = Table::new([
        "TRANSACTION",
        "STATE",
        "PREPARED AT",
        "CHECKS",
        "NEXT CHECK",
        "TOPIC",
        "PRODUCERS",
    ]);
    for transaction in transactions {
        let next = transaction.next_check_at.as_deref();
        table.row([
            transaction.transaction_id.clone(),
            transaction.state.clone(),
            transaction.prepared_at.clone().unwrap_or_default(),
            transaction.checks_of(),
            next.map(|at| away(at, now)).unwrap_or_default(),
            transaction.topic.clone(),
            transaction.producer_group.clone().unwrap_or_default(),
        ]);
    }
    table
}

impl Transaction {
    /// `3 of 15`.
    fn checks_of(&self) -> String {
        let of = self.max_checks.map(|most| format!(" of {most}")).unwrap_or_default();
        format!("{}{of}", self.checks)
    }
}

async fn show(args: &ShowTransactionArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let good = Remote::new(&args.common.url).get(&path(&args.id)).await?;
    if args.common.output == Output::Json {
        return Ok(good.write(io.output)?);
    }
    let transaction: Transaction = good.read()?;
    let now = (io.now)();
    let mut facts = Facts::default();
    let checks = transaction.checks_of();
    facts.add("transaction", transaction.transaction_id);
    facts.add("topic", transaction.topic);
    facts.add_if("producers", transaction.producer_group);
    facts.add("state", transaction.state);
    facts.add_if("prepared at", transaction.prepared_at.map(|at| time(&at, now)));
    facts.add("checks", checks);
    facts.add_if("next check", transaction.next_check_at.map(|at| time(&at, now)));
    let given_up = transaction.abandoned_at.map(|at| time(&at, now));
    facts.add_if("abandoned", given_up.map(|at| format!("{at}, at the latest")));
    Ok(facts.write(io.output)?)
}

/// A half message, and how its producers are asked about it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Half<'a> {
    #[serde(flatten)]
    message: Message<'a>,
    producer_group: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    check_after: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check_interval: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_checks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abandon_after: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check_secret: Option<&'a str>,
}

fn half<'a>(args: &'a BeginArgs, body: &'a [u8]) -> Half<'a> {
    Half {
        message: message(&args.message, body),
        producer_group: &args.producer_group,
        check_after: args.check_after.as_deref(),
        check_interval: args.check_interval.as_deref(),
        max_checks: args.max_checks,
        abandon_after: args.abandon_after.as_deref(),
        check_url: args.check_url.as_deref(),
        // From the environment it may be there for another transaction, which has an address.
        check_secret: args.check_secret.as_deref().filter(|_| args.check_url.is_some()),
    }
}

async fn begin(args: &BeginArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let body = read_body(&args.message, io.input)?;
    let half = written(&half(args, &body));
    let path = format!("/v1/topics/{}/transactions", encoded(&args.topic));
    let key = args.idempotency_key.as_deref().map(idempotency_key).transpose()?;
    let mut remote = Remote::new(&args.common.url);
    let good = remote.send(Method::POST, &path, key.as_slice(), half).await?.good()?;
    if args.common.output == Output::Json {
        good.note_replay(io.notes)?;
        return Ok(good.write(io.output)?);
    }
    let prepared: Prepared = good.read()?;
    let mut facts = Facts::default();
    facts.add("transaction", prepared.transaction_id);
    facts.add("message", prepared.message_id);
    facts.add("topic", args.topic.as_str());
    facts.add("state", prepared.state);
    facts.add_if("replayed", good.replayed());
    Ok(facts.write(io.output)?)
}

async fn decide(args: &DecideArgs, what: &str, io: &mut Io<'_>) -> Result<(), CliError> {
    let path = format!("{}/{what}", path(&args.id));
    let mut remote = Remote::new(&args.common.url);
    let good = remote.send(Method::POST, &path, &[], Bytes::new()).await?.good()?;
    if args.common.output == Output::Json {
        return Ok(good.write(io.output)?);
    }
    let Decided { transaction_id, state } = good.read()?;
    Ok(writeln!(io.output, "{}  {}", plain(&transaction_id), plain(&state))?)
}

async fn checks(args: &ChecksArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let request =
        object([("max", args.max.map(Value::from)), ("wait", args.wait.clone().map(Value::from))]);
    let path = format!("/v1/producer-groups/{}/checks", encoded(&args.group));
    let good = Remote::new(&args.common.url).post(&path, &request).await?;
    if args.common.output == Output::Json {
        return Ok(good.write(io.output)?);
    }
    let Checks { checks } = good.read()?;
    if checks.is_empty() {
        return Ok(writeln!(io.notes, "horolog: no check-back came")?);
    }
    let mut table = Table::new(["TRANSACTION", "CHECK", "TOPIC", "KEYS", "TAG", "BODY"]);
    for check in checks {
        let body = body(check.body.as_deref(), check.body_text, check.body_base64);
        table.row([
            check.transaction_id,
            check.check.to_string(),
            check.topic,
            check.keys.join(", "),
            check.tag.unwrap_or_default(),
            body.unwrap_or_default(),
        ]);
    }
    table.write(io.output)?;
    Ok(writeln!(
        io.notes,
        "horolog: answer with: horolog tx commit ID, or: horolog tx rollback ID"
    )?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::cli::Command;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    fn begun(arguments: &[&str]) -> Value {
        let line = [&["horolog", "tx", "begin", "--producer-group", "shop"], arguments].concat();
        let Command::Tx(args) = Line::parse_from(line).command else { unreachable!("it is tx") };
        let Some(TransactionsCommand::Begin(args)) = args.command else { unreachable!("begin") };
        let body = read_body(&args.message, &mut &b"from input"[..]).unwrap();
        serde_json::from_slice(&written(&half(&args, &body))).unwrap()
    }

    #[test]
    fn a_half_message_says_what_was_given_and_no_more() {
        let least = json!({"bodyText": "x", "producerGroup": "shop"});
        assert_eq!(begun(&["orders", "x"]), least);
        let input = json!({"bodyText": "from input", "producerGroup": "shop"});
        assert_eq!(begun(&["orders", "-"]), input);
        assert_eq!(begun(&["orders", "x", "--check-secret", "s"]), least);
        let most = [
            "orders",
            "{\"a\":1}",
            "--key",
            "k",
            "--key",
            "l",
            "--tag",
            "t",
            "--property",
            "p=q=r",
            "--message-group",
            "g",
            "--delay",
            "30m",
            "--check-after",
            "10s",
            "--check-interval",
            "1m",
            "--max-checks",
            "3",
            "--abandon-after",
            "2h",
            "--check-url",
            "https://a/b",
            "--check-secret",
            "s",
        ];
        let expected = json!({
            "body": {"a": 1}, "keys": ["k", "l"], "tag": "t", "properties": {"p": "q=r"},
            "messageGroup": "g", "delay": "30m", "producerGroup": "shop", "checkAfter": "10s",
            "checkInterval": "1m", "maxChecks": 3, "abandonAfter": "2h",
            "checkUrl": "https://a/b", "checkSecret": "s",
        });
        assert_eq!(begun(&most), expected);
    }

    #[test]
    fn transactions_are_shown_with_what_is_known_of_them() {
        let transactions: Vec<Transaction> = serde_json::from_value(json!([
            {
                "transactionId": "AAAAAAAAAArIAc0IpmIxcw", "messageId": "AAAAAAAAAArIAc0IpmIxcw",
                "topic": "orders", "producerGroup": "shop", "state": "PREPARED",
                "preparedAt": "2099-01-01T00:00:00.000Z", "checks": 3, "maxChecks": 15,
                "nextCheckAt": "2099-01-01T00:01:30.000Z",
            },
            {
                "transactionId": "AAAAAAAAABJsNO8bHTiFvw", "topic": "orders", "state": "ABANDONED",
                "checks": 15, "nextCheckAt": null,
            },
        ]))
        .unwrap();
        let now = Timestamp::from_millis(4_070_908_860_000);
        let mut output = Vec::new();
        table(&transactions, now).write(&mut output).unwrap();
        let expected = "\
TRANSACTION             STATE      PREPARED AT               CHECKS   NEXT CHECK  TOPIC   PRODUCERS
AAAAAAAAAArIAc0IpmIxcw  PREPARED   2099-01-01T00:00:00.000Z  3 of 15  in 30s      orders  shop
AAAAAAAAABJsNO8bHTiFvw  ABANDONED                            15                   orders
";
        assert_eq!(String::from_utf8(output).unwrap(), expected);
    }
}
