//! `horolog pending`: what waits for its moment, listed or counted over time.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::arguments::{Output, PendingArgs};
use super::far::away;
use super::message::Message;
use super::remote::{Good, Remote, query};
use super::table::Table;
use super::{CliError, Io};

/// So many on a page when all pages are wanted: the most that there can be.
const LARGEST_PAGE: u64 = 1000;
/// The longest bar of the timeline, in columns.
const BAR: u64 = 40;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    items: Vec<T>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Timeline {
    buckets: Vec<Bucket>,
    complete: bool,
}

#[derive(Deserialize)]
struct Bucket {
    start: String,
    count: u64,
}

pub(super) async fn run(args: &PendingArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let mut remote = Remote::new(&args.common.url);
    match (args.timeline, args.common.output) {
        (true, _) => timeline(args, &mut remote, io).await,
        (false, Output::Table) => list(args, &mut remote, io).await,
        (false, Output::Json) if args.all => document(args, &mut remote, io).await,
        (false, Output::Json) => Ok(page(args, &mut remote, None).await?.write(io.output)?),
    }
}

async fn page(
    args: &PendingArgs,
    remote: &mut Remote,
    cursor: Option<&str>,
) -> Result<Good, CliError> {
    let limit = args.limit.or(args.all.then_some(LARGEST_PAGE)).map(|limit| limit.to_string());
    let query = query(&[
        ("topic", args.topic.as_deref()),
        ("key", args.key.as_deref()),
        ("tag", args.tag.as_deref()),
        ("from", args.from.as_deref()),
        ("to", args.to.as_deref()),
        ("limit", limit.as_deref()),
        ("cursor", cursor),
    ]);
    remote.get(&format!("/v1/scheduled{query}")).await
}

/// Tables, one a page, each written when it is there: there may be more than fits in memory.
async fn list(args: &PendingArgs, remote: &mut Remote, io: &mut Io<'_>) -> Result<(), CliError> {
    let mut cursor = None;
    let mut is_empty = true;
    loop {
        let good = page(args, remote, cursor.as_deref()).await?;
        let page: Page<Message> = good.read()?;
        let table = table(&page.items, io);
        is_empty &= table.is_empty();
        table.write(io.output)?;
        match page.next_cursor {
            Some(next) if args.all => cursor = Some(next),
            Some(_) => {
                writeln!(io.notes, "horolog: there may be more (--all)")?;
                return Ok(());
            }
            None if is_empty => return Ok(writeln!(io.notes, "horolog: nothing is pending")?),
            None => return Ok(()),
        }
    }
}

fn table(items: &[Message], io: &Io<'_>) -> Table<6> {
    let now = (io.now)();
    let mut table = Table::new(["MESSAGE", "DELIVER AT", "", "TOPIC", "TAG", "KEYS"]);
    for message in items {
        table.row([
            message.message_id.clone(),
            message.deliver_at.clone(),
            away(&message.deliver_at, now),
            message.topic.clone(),
            message.tag.clone().unwrap_or_default(),
            message.all_keys(),
        ]);
    }
    table
}

/// All pages as one, written as they come.
async fn document(
    args: &PendingArgs,
    remote: &mut Remote,
    io: &mut Io<'_>,
) -> Result<(), CliError> {
    let mut cursor = None;
    let mut separator = "";
    // Nothing is written before the first answer: a refusal leaves no half a document.
    let mut begin = "{\"items\":[";
    loop {
        let good = page(args, remote, cursor.as_deref()).await?;
        let page: Page<&RawValue> = good.read()?;
        write!(io.output, "{begin}")?;
        begin = "";
        for item in page.items {
            write!(io.output, "{separator}{item}")?;
            separator = ",";
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(writeln!(io.output, "],\"nextCursor\":null}}")?),
        }
    }
}

async fn timeline(
    args: &PendingArgs,
    remote: &mut Remote,
    io: &mut Io<'_>,
) -> Result<(), CliError> {
    let query = query(&[
        ("topic", args.topic.as_deref()),
        ("from", args.from.as_deref()),
        ("to", args.to.as_deref()),
        ("bucket", args.bucket.as_deref()),
    ]);
    let good = remote.get(&format!("/v1/scheduled/timeline{query}")).await?;
    if args.common.output == Output::Json {
        return Ok(good.write(io.output)?);
    }
    let Timeline { buckets, complete } = good.read()?;
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0);
    let now = (io.now)();
    let mut table = Table::new(["FROM", "", "COUNT", ""]);
    for Bucket { start, count } in buckets {
        let far = away(&start, now);
        table.row([start, far, count.to_string(), bar(count, most)]);
    }
    match table.is_empty() {
        true => writeln!(io.notes, "horolog: nothing is pending")?,
        false => table.write(io.output)?,
    }
    if !complete {
        writeln!(io.notes, "horolog: the count was given up in time: there is more than this")?;
    }
    Ok(())
}

/// A bar as long as `count` is large; at least a column when there is something.
fn bar(count: u64, most: u64) -> String {
    let columns = u128::from(count) * u128::from(BAR);
    let columns = columns.div_ceil(u128::from(most.max(1)));
    "#".repeat(usize::try_from(columns).expect("at most the longest bar"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        let lengths = [0, 1, 500, 999, 1000].map(|count| bar(count, 1000).len());
        assert_eq!(lengths, [0, 1, 20, 40, 40]);
        assert_eq!(bar(0, 0), "");
        assert_eq!(bar(u64::MAX, u64::MAX).len(), 40);
    }
}
