//! What can be said to `topics`.

use clap::{Args, Subcommand};

use super::{Common, Paging};

/// List topics; show, set or delete one
///
/// Without a command it lists all topics by name, with how much is pending and how much is ready:
/// in their queues.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    after_help = "Example: a topic whose messages keep the order of their groups\n  \
    horolog topics set payments --type FIFO --queues 8 --retention 7d"
)]
pub struct TopicsArgs {
    #[command(subcommand)]
    pub command: Option<TopicsCommand>,

    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub enum TopicsCommand {
    /// List all topics by name: the same as without a command
    #[command(
        verbatim_doc_comment,
        after_help = "Example: all topics, for a program\n  \
        horolog topics list --all --output json"
    )]
    List(ListArgs),
    Show(ShowTopicArgs),
    Set(SetTopicArgs),
    Delete(DeleteTopicArgs),
}

/// Of a list that has no filters.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    #[command(flatten)]
    pub paging: Paging,

    #[command(flatten)]
    pub common: Common,
}

/// Show a topic: its settings, and what is in it
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: how much of the topic is pending?\n  \
    horolog topics show order-timeouts"
)]
pub struct ShowTopicArgs {
    /// The topic
    pub topic: String,

    #[command(flatten)]
    pub common: Common,
}

/// Create a topic, or set one that is there
///
/// What is not given stays as it is; on a new topic it is the server's default. The type is fixed once
/// the topic is there, and queues can only be added, to a FIFO topic not even that.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    visible_alias = "create",
    after_help = "Example: only messages that have a moment, kept for a week\n  \
    horolog topics set order-timeouts --type DELAY --retention 7d"
)]
pub struct SetTopicArgs {
    /// The topic
    pub topic: String,

    /// NORMAL, DELAY, FIFO, TRANSACTION, or MIXED, which takes all of these
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,

    /// How many queues it has
    #[arg(long, value_name = "COUNT")]
    pub queues: Option<u64>,

    /// How long its messages are kept: 7d, 12h, PT30M, or milliseconds
    #[arg(long, value_name = "DURATION")]
    pub retention: Option<String>,

    #[command(flatten)]
    pub common: Common,
}

/// Delete a topic: nothing of it is delivered from then on
///
/// One that has messages pending, or not yet acknowledged, is deleted only with --force.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: the topic of a test, with all that is pending\n  \
    horolog topics delete test-timeouts --force"
)]
pub struct DeleteTopicArgs {
    /// The topic
    pub topic: String,

    /// Also with messages pending or not acknowledged: they never come
    #[arg(long)]
    pub force: bool,

    #[command(flatten)]
    pub common: Common,
}
