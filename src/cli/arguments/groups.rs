//! What can be said to `groups`.

use clap::{ArgGroup, Args, Subcommand};

use super::topics::ListArgs;
use super::{Common, pair};

/// List groups and how far behind they are; show, set or reset one
///
/// Without a command it lists every group with every topic that it has received from.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    after_help = "Example: is anybody behind, or giving up on messages?\n  \
    horolog groups --all"
)]
pub struct GroupsArgs {
    #[command(subcommand)]
    pub command: Option<GroupsCommand>,

    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub enum GroupsCommand {
    /// List all groups by name: the same as without a command
    #[command(
        verbatim_doc_comment,
        after_help = "Example: all groups, for a program\n  \
        horolog groups list --all --output json"
    )]
    List(ListArgs),
    Show(ShowGroupArgs),
    Set(SetGroupArgs),
    ResetOffsets(ResetOffsetsArgs),
}

/// Show a group: its settings, and by topic how far behind it is
///
/// Lag counts what is not acknowledged yet, also what is in flight: leased to a member.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: how long has the oldest message waited?\n  \
    horolog groups show order-service"
)]
pub struct ShowGroupArgs {
    /// The group
    pub group: String,

    #[command(flatten)]
    pub common: Common,
}

/// Create a group, or set one that is there
///
/// The settings are set as a whole: what is not given goes back to its default, also on a group that
/// is there. Only the tags of a topic that the group has received from are fixed, and stay. The last
/// wait of a backoff is for all attempts that follow.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    visible_alias = "create",
    after_help = "Example: give up after 5 attempts, and wait longer before each\n  \
    horolog groups set order-service --max-attempts 5 --backoff 1s,10s,1m,10m"
)]
pub struct SetGroupArgs {
    /// The group
    pub group: String,

    /// One message of a message group at a time, in order
    #[arg(long)]
    pub ordered: bool,

    /// After this many attempts a message is a dead letter [default: 16]
    #[arg(long, value_name = "COUNT")]
    pub max_attempts: Option<u64>,

    /// Wait so long before attempt 2, 3 and so on, commas between
    #[arg(long, value_name = "DURATIONS", value_delimiter = ',')]
    pub backoff: Vec<String>,

    /// How long a lease lasts, if a receive says nothing [default: 30s]
    #[arg(long, value_name = "DURATION")]
    pub invisible_for: Option<String>,

    /// In a topic new to it: earliest or latest [default: earliest]
    #[arg(long, value_name = "PLACE")]
    pub start_from: Option<String>,

    /// Of this topic only messages with this tag; can be repeated
    #[arg(long = "tag", value_name = "TOPIC=TAG", value_parser = topic_tag)]
    pub tags: Vec<(String, String)>,

    #[command(flatten)]
    pub common: Common,
}

/// Let a group read a topic again, or skip, from any place
///
/// What the group has acknowledged after that place comes again; what it has not acknowledged before it
/// never comes. Receipt handles that are out become invalid.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    group = ArgGroup::new("place").required(true),
    override_usage = "horolog groups reset-offsets [OPTIONS] --topic <TOPIC> --to <PLACE> <GROUP>\n       \
        horolog groups reset-offsets [OPTIONS] --topic <TOPIC> --queue <QUEUE=OFFSET>... <GROUP>",
    after_help = "Example: everything since noon once more\n  \
    horolog groups reset-offsets order-service --topic order-timeouts --to 2026-12-01T12:00:00Z"
)]
pub struct ResetOffsetsArgs {
    /// The group
    pub group: String,

    /// The topic
    #[arg(long)]
    pub topic: String,

    /// earliest, latest, or a time: RFC 3339, or epoch milliseconds
    #[arg(long, value_name = "PLACE", group = "place")]
    pub to: Option<String>,

    /// This queue to this offset, the others stay; can be repeated
    #[arg(
        long = "queue",
        value_name = "QUEUE=OFFSET",
        value_parser = queue_offset,
        conflicts_with = "to",
        group = "place"
    )]
    pub queues: Vec<(String, u64)>,

    #[command(flatten)]
    pub common: Common,
}

fn topic_tag(text: &str) -> Result<(String, String), String> {
    pair(text, "the tag of a topic is written TOPIC=TAG")
}

fn queue_offset(text: &str) -> Result<(String, u64), String> {
    let expected = "the offset of a queue is written QUEUE=OFFSET, both whole numbers";
    let (queue, offset) = pair(text, expected)?;
    Ok((queue, offset.parse().map_err(|_| expected.to_owned())?))
}
