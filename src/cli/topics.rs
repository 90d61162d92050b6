//! `horolog topics`: what topics there are; one of them shown, set, deleted.

use axum::http::{Method, StatusCode};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::{
    DeleteTopicArgs, ListArgs, Output, SetTopicArgs, ShowTopicArgs, TopicsArgs, TopicsCommand,
};
use super::far::exact;
use super::pages::List;
use super::remote::{Good, Remote, encoded, object, query};
use super::table::{Facts, Table};
use super::terminal::plain;
use super::{CliError, Io};

#[derive(Deserialize)]
struct Topic {
    topic: String,
    r#type: String,
    retention: Option<u64>,
    pending: u64,
    ready: u64,
    queues: Vec<Queue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Queue {
    queue_id: u64,
    first_offset: u64,
    next_offset: u64,
}

pub(super) async fn run(args: &TopicsArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    match &args.command {
        None => list(&args.list, io).await,
        Some(TopicsCommand::List(args)) => list(args, io).await,
        Some(TopicsCommand::Show(args)) => show(args, io).await,
        Some(TopicsCommand::Set(args)) => set(args, io).await,
        Some(TopicsCommand::Delete(args)) => delete(args, io).await,
    }
}

fn path(topic: &str) -> String {
    format!("/v1/topics/{}", encoded(topic))
}

async fn list(args: &ListArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let list = List {
        path: "/v1/topics",
        parameters: &[],
        paging: args.paging,
        nothing: "there is no topic yet: the first put makes one",
    };
    list.show(&args.common, io, |topics: &[Topic], _| table(topics)).await
}

fn table(topics: &[Topic]) -> Table<6> {
    let heading = ["TOPIC", "TYPE", "QUEUES", "PENDING", "READY", "RETENTION"];
    let mut table = Table::of_names(1, heading);
    for topic in topics {
        table.row([
            topic.topic.clone(),
            topic.r#type.clone(),
            topic.queues.len().to_string(),
            topic.pending.to_string(),
            topic.ready.to_string(),
            topic.retention.map(exact).unwrap_or_default(),
        ]);
    }
    table
}

async fn show(args: &ShowTopicArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let good = Remote::new(&args.common.url).get(&path(&args.topic)).await?;
    write(&good, args.common.output, io)
}

fn write(good: &Good, output: Output, io: &mut Io<'_>) -> Result<(), CliError> {
    if output == Output::Json {
        return Ok(good.write(io.output)?);
    }
    let topic: Topic = good.read()?;
    let mut facts = Facts::default();
    facts.add("topic", topic.topic);
    facts.add("type", topic.r#type);
    facts.add("retention", topic.retention.map_or("the server's own".to_owned(), exact));
    facts.add("pending", topic.pending.to_string());
    facts.add("ready", topic.ready.to_string());
    facts.write(io.output)?;
    writeln!(io.output)?;
    let mut table = Table::new(["QUEUE", "FIRST OFFSET", "NEXT OFFSET"]);
    for Queue { queue_id, first_offset, next_offset } in topic.queues {
        table.row([queue_id, first_offset, next_offset].map(|number| number.to_string()));
    }
    Ok(table.write(io.output)?)
}

async fn set(args: &SetTopicArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let settings = object([
        // Types are written in capitals, which nobody should have to type.
        ("type", args.kind.as_ref().map(|kind| kind.to_ascii_uppercase().into())),
        ("queues", args.queues.map(Value::from)),
        ("retention", args.retention.clone().map(Value::from)),
    ]);
    let good = Remote::new(&args.common.url).put(&path(&args.topic), &settings).await?;
    write(&good, args.common.output, io)?;
    if good.status != StatusCode::CREATED {
        writeln!(io.notes, "horolog: the topic was there already; this is how it is set now")?;
    }
    Ok(())
}

async fn delete(args: &DeleteTopicArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let query = query(&[("force", args.force.then_some("true"))]);
    let path = format!("{}{query}", path(&args.topic));
    let mut remote = Remote::new(&args.common.url);
    remote.send(Method::DELETE, &path, &[], Bytes::new()).await?.good()?;
    // The server has nothing to say of a topic that is gone.
    match args.common.output {
        Output::Table => writeln!(io.output, "{}  DELETED", plain(&args.topic))?,
        Output::Json => {
            writeln!(io.output, "{}", json!({ "topic": args.topic, "state": "DELETED" }))?;
        }
    }
    Ok(())
}
