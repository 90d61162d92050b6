//! `horolog cancel`: messages by their ids, or a timer by its key.

use axum::http::Method;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::arguments::{CancelArgs, Output};
use super::remote::{Refusal, Remote, Reply, encoded};
use super::table::Table;
use super::terminal::plain;
use super::{CliError, Io};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled {
    message_id: String,
    state: String,
}

/// Several answers as one document.
#[derive(Default, Serialize)]
struct Results {
    results: Vec<Outcome>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome {
    /// As the server wrote it.
    Cancelled(Box<RawValue>),
    #[serde(rename_all = "camelCase")]
    Refused { message_id: String, error: Box<RawValue> },
}

pub(super) async fn run(args: &CancelArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let mut remote = Remote::new(&args.common.url);
    match (&args.topic, &args.timer, args.ids.as_slice()) {
        (Some(topic), Some(timer), _) => {
            let path = format!("/v1/topics/{}/timers/{}", encoded(topic), encoded(timer));
            one(&mut remote, &path, args.common.output, io).await
        }
        (_, _, [id]) => one(&mut remote, &path(id), args.common.output, io).await,
        (_, _, ids) => several(&mut remote, ids, args.common.output, io).await,
    }
}

fn path(id: &str) -> String {
    format!("/v1/messages/{}", encoded(id))
}

async fn one(
    remote: &mut Remote,
    path: &str,
    output: Output,
    io: &mut Io<'_>,
) -> Result<(), CliError> {
    let good = remote.send(Method::DELETE, path, &[], Bytes::new()).await?.good()?;
    if output == Output::Json {
        return Ok(good.write(io.output)?);
    }
    let Cancelled { message_id, state } = good.read()?;
    Ok(writeln!(io.output, "{}  {}", plain(&message_id), plain(&state))?)
}

/// Cancels one after the other. When the server is gone in between, what was done is shown before that is
/// told.
async fn several(
    remote: &mut Remote,
    ids: &[String],
    output: Output,
    io: &mut Io<'_>,
) -> Result<(), CliError> {
    let mut table = Table::new(["MESSAGE", "RESULT"]);
    let mut all = Results::default();
    let mut failed = 0;
    let mut end = Ok(());
    for id in ids {
        match remote.send(Method::DELETE, &path(id), &[], Bytes::new()).await {
            Ok(Reply::Done(good)) => {
                let cancelled: Cancelled = good.read()?;
                table.row([cancelled.message_id, cancelled.state]);
                all.results.push(Outcome::Cancelled(good.read()?));
            }
            Ok(Reply::Refused(refusal)) => {
                failed += 1;
                writeln!(io.notes, "horolog: {}: {}", plain(id), CliError::from(refusal.clone()))?;
                let Refusal { json, code, .. } = refusal;
                table.row([id.clone(), code]);
                let error = serde_json::from_slice(&json).expect("it was read as JSON before");
                all.results.push(Outcome::Refused { message_id: id.clone(), error });
            }
            Err(error) => {
                end = Err(error);
                break;
            }
        }
    }
    match output {
        Output::Table => table.write(io.output)?,
        Output::Json => {
            let json = serde_json::to_string(&all).expect("what we write has text as its keys");
            writeln!(io.output, "{json}")?;
        }
    }
    end?;
    match failed {
        0 => Ok(()),
        failed => Err(CliError::NotCancelled { failed, of: ids.len() }),
    }
}
