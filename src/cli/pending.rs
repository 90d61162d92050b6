//! `horolog pending`: what waits for its moment, listed or counted over time.

use serde::Deserialize;

use super::arguments::{Output, PendingArgs};
use super::far::away;
use super::message::Message;
use super::pages::List;
use super::remote::{Remote, query};
use super::table::Table;
use super::{CliError, Io};
use crate::clock::Timestamp;

/// The longest bar of the timeline, in columns.
const BAR: u64 = 40;

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
    if args.timeline {
        return timeline(args, io).await;
    }
    let list = List {
        path: "/v1/scheduled",
        parameters: &[
            ("topic", args.topic.as_deref()),
            ("key", args.key.as_deref()),
            ("tag", args.tag.as_deref()),
            ("from", args.from.as_deref()),
            ("to", args.to.as_deref()),
        ],
        paging: args.paging,
        nothing: "nothing is pending",
    };
    list.show(&args.common, io, table).await
}

fn table(items: &[Message], now: Timestamp) -> Table<6> {
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

async fn timeline(args: &PendingArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let query = query(&[
        ("topic", args.topic.as_deref()),
        ("from", args.from.as_deref()),
        ("to", args.to.as_deref()),
        ("bucket", args.bucket.as_deref()),
    ]);
    let mut remote = Remote::new(&args.common.url);
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
