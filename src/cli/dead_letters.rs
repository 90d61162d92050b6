//! `horolog dlq`: what a group has given up on, listed and given to it once more.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::arguments::{
    Common, DeadLettersArgs, DeadLettersCommand, ListDeadLettersArgs, Output, Paging, RedriveArgs,
};
use super::pages::List;
use super::remote::{Remote, encoded, object};
use super::table::Table;
use super::{CliError, Io};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeadLetter {
    message_id: String,
    topic: String,
    keys: Vec<String>,
    attempts: u64,
    reason: String,
    dead_at: String,
}

#[derive(Deserialize)]
struct Redriven {
    redriven: u64,
}

pub(super) async fn run(args: &DeadLettersArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    match &args.command {
        None => {
            let group = args.group.as_ref().expect("it is required without a command");
            list(group, args.list.paging, &args.list.common, io).await
        }
        Some(DeadLettersCommand::List(ListDeadLettersArgs { group, paging, common })) => {
            list(group, *paging, common, io).await
        }
        Some(DeadLettersCommand::Redrive(args)) => redrive(args, io).await,
    }
}

async fn list(
    group: &str,
    paging: Paging,
    common: &Common,
    io: &mut Io<'_>,
) -> Result<(), CliError> {
    let path = format!("/v1/groups/{}/dlq", encoded(group));
    let nothing = "the group has no dead letters";
    let list = List { path: &path, parameters: &[], paging, nothing };
    list.show(common, io, |letters: &[DeadLetter], _| table(letters)).await
}

fn table(letters: &[DeadLetter]) -> Table<6> {
    let mut table = Table::new(["MESSAGE", "TRIES", "REASON", "DEAD AT", "TOPIC", "KEYS"]);
    for letter in letters {
        table.row([
            letter.message_id.clone(),
            letter.attempts.to_string(),
            letter.reason.clone(),
            letter.dead_at.clone(),
            letter.topic.clone(),
            letter.keys.join(", "),
        ]);
    }
    table
}

async fn redrive(args: &RedriveArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let path = format!("/v1/groups/{}/dlq/redrive", encoded(&args.group));
    let request = object([
        ("ids", (!args.ids.is_empty()).then(|| args.ids.clone().into())),
        ("topic", args.topic.clone().map(Value::from)),
    ]);
    let good = Remote::new(&args.common.url).post(&path, &request).await?;
    let Redriven { redriven } = good.read()?;
    match args.common.output {
        Output::Json => good.write(io.output)?,
        Output::Table => writeln!(io.output, "redriven  {redriven}")?,
    }
    // An id that was given twice is one message.
    let asked = args.ids.iter().collect::<BTreeSet<_>>().len() as u64;
    match asked.saturating_sub(redriven) {
        0 => Ok(()),
        failed => Err(CliError::NotRedriven { failed, of: asked }),
    }
}
