//! `horolog groups`: who reads what, and how far they are; one of them shown, set, reset.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::arguments::{
    GroupsArgs, GroupsCommand, ListArgs, Output, ResetOffsetsArgs, SetGroupArgs, ShowGroupArgs,
};
use super::far::{duration, exact};
use super::outgoing::as_object;
use super::pages::List;
use super::remote::{Good, Remote, encoded, object};
use super::table::{Facts, Table};
use super::{CliError, Io};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    group: String,
    ordered: bool,
    max_attempts: u64,
    backoff: Vec<u64>,
    invisible_for: u64,
    start_from: String,
    tags: BTreeMap<String, Vec<String>>,
    topics: Vec<Progress>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    topic: String,
    lag: u64,
    in_flight: u64,
    oldest_unacked_age_ms: Option<u64>,
    dead_letters: u64,
}

#[derive(Deserialize)]
struct Reset {
    queues: Vec<Queue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Queue {
    queue_id: u64,
    offset: u64,
}

pub(super) async fn run(args: &GroupsArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    match &args.command {
        None => list(&args.list, io).await,
        Some(GroupsCommand::List(args)) => list(args, io).await,
        Some(GroupsCommand::Show(args)) => show(args, io).await,
        Some(GroupsCommand::Set(args)) => set(args, io).await,
        Some(GroupsCommand::ResetOffsets(args)) => reset(args, io).await,
    }
}

fn path(group: &str) -> String {
    format!("/v1/groups/{}", encoded(group))
}

async fn list(args: &ListArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let list = List {
        path: "/v1/groups",
        parameters: &[],
        paging: args.paging,
        nothing: "there is no group yet: the first receive makes one",
    };
    list.show(&args.common, io, |groups: &[Group], _| table(groups)).await
}

/// A row for each group and topic; one that has received from none has a row, too.
fn table(groups: &[Group]) -> Table<6> {
    let heading = ["GROUP", "TOPIC", "LAG", "IN FLIGHT", "OLDEST", "DEAD LETTERS"];
    let mut table = Table::of_names(2, heading);
    for Group { group, topics, .. } in groups {
        if topics.is_empty() {
            table.row([group.as_str(), "", "", "", "", ""].map(str::to_owned));
        }
        for progress in topics {
            let [topic, lag, in_flight, oldest, dead_letters] = cells(progress);
            table.row([group.clone(), topic, lag, in_flight, oldest, dead_letters]);
        }
    }
    table
}

fn cells(progress: &Progress) -> [String; 5] {
    [
        progress.topic.clone(),
        progress.lag.to_string(),
        progress.in_flight.to_string(),
        progress.oldest_unacked_age_ms.map(duration).unwrap_or_default(),
        progress.dead_letters.to_string(),
    ]
}

async fn show(args: &ShowGroupArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let good = Remote::new(&args.common.url).get(&path(&args.group)).await?;
    write(&good, args.common.output, io)
}

fn write(good: &Good, output: Output, io: &mut Io<'_>) -> Result<(), CliError> {
    if output == Output::Json {
        return Ok(good.write(io.output)?);
    }
    let group: Group = good.read()?;
    let mut facts = Facts::default();
    facts.add("group", group.group);
    facts.add("ordered", if group.ordered { "yes" } else { "no" });
    facts.add("max attempts", group.max_attempts.to_string());
    let backoff: Vec<_> = group.backoff.into_iter().map(exact).collect();
    facts.add("backoff", backoff.join(","));
    facts.add("invisible for", exact(group.invisible_for));
    facts.add("start from", group.start_from);
    for (topic, tags) in group.tags {
        facts.add("tags", format!("{topic}: {}", tags.join(", ")));
    }
    facts.write(io.output)?;
    if group.topics.is_empty() {
        return Ok(writeln!(io.notes, "horolog: the group has received from no topic yet")?);
    }
    writeln!(io.output)?;
    let heading = ["TOPIC", "LAG", "IN FLIGHT", "OLDEST", "DEAD LETTERS"];
    let mut table = Table::of_names(1, heading);
    for progress in &group.topics {
        table.row(cells(progress));
    }
    Ok(table.write(io.output)?)
}

async fn set(args: &SetGroupArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let good = Remote::new(&args.common.url).put(&path(&args.group), &settings(args)).await?;
    write(&good, args.common.output, io)?;
    if good.status != StatusCode::CREATED {
        writeln!(io.notes, "horolog: the group was there already; this is how it is set now")?;
    }
    Ok(())
}

fn settings(args: &SetGroupArgs) -> Value {
    let mut tags: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (topic, tag) in &args.tags {
        tags.entry(topic).or_default().push(tag);
    }
    object([
        ("ordered", args.ordered.then_some(true.into())),
        ("maxAttempts", args.max_attempts.map(Value::from)),
        ("backoff", (!args.backoff.is_empty()).then(|| args.backoff.clone().into())),
        ("invisibleFor", args.invisible_for.clone().map(Value::from)),
        ("startFrom", args.start_from.clone().map(Value::from)),
        ("tags", (!tags.is_empty()).then(|| json!(tags))),
    ])
}

#[derive(Serialize)]
struct ResetRequest<'a> {
    topic: &'a str,
    to: Place<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Place<'a> {
    Named(&'a str),
    Queues(#[serde(serialize_with = "as_object")] &'a [(String, u64)]),
}

async fn reset(args: &ResetOffsetsArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let to = args.to.as_deref().map_or(Place::Queues(&args.queues), Place::Named);
    let request = ResetRequest { topic: &args.topic, to };
    let path = format!("{}/offsets/reset", path(&args.group));
    let good = Remote::new(&args.common.url).post(&path, &request).await?;
    if args.common.output == Output::Json {
        return Ok(good.write(io.output)?);
    }
    let Reset { queues } = good.read()?;
    let mut table = Table::new(["QUEUE", "OFFSET"]);
    for Queue { queue_id, offset } in queues {
        table.row([queue_id.to_string(), offset.to_string()]);
    }
    Ok(table.write(io.output)?)
}
