//! What can be said to the commands.

mod dead_letters;
mod groups;
mod messages;
mod topics;
mod transactions;

use clap::{Args, Subcommand, ValueEnum};

use super::Url;
pub use dead_letters::{DeadLettersArgs, DeadLettersCommand, ListDeadLettersArgs, RedriveArgs};
pub use groups::{GroupsArgs, GroupsCommand, ResetOffsetsArgs, SetGroupArgs, ShowGroupArgs};
pub use messages::{CancelArgs, GetArgs, MessageArgs, PendingArgs, PutArgs, ReceiveArgs};
pub use topics::{
    DeleteTopicArgs, ListArgs, SetTopicArgs, ShowTopicArgs, TopicsArgs, TopicsCommand,
};
pub use transactions::{
    BeginArgs, ChecksArgs, DecideArgs, ListTransactionsArgs, ShowTransactionArgs, TransactionsArgs,
    TransactionsCommand,
};

/// The commands that speak to a running server.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    Put(PutArgs),
    Get(GetArgs),
    Cancel(CancelArgs),
    Receive(ReceiveArgs),
    Pending(PendingArgs),
    Topics(TopicsArgs),
    Groups(GroupsArgs),
    Dlq(DeadLettersArgs),
    Tx(TransactionsArgs),
}

/// How a command shows what it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Table,
    Json,
}

/// Where the server is, and how to show what it says.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// The server
    #[arg(
        long,
        env = "HOROLOG_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:7400",
        hide_env_values = true
    )]
    pub url: Url,

    /// table, to be read, or json, for programs
    #[arg(long, value_name = "FORMAT", default_value = "table", hide_possible_values = true)]
    pub output: Output,
}

/// How much of a list to show.
#[derive(Args, Clone, Copy, Debug)]
pub struct Paging {
    /// So many on a page [default: 100; at most 1000]
    #[arg(long, value_name = "COUNT")]
    pub limit: Option<u64>,

    /// All pages, not only the first
    #[arg(long)]
    pub all: bool,
}

fn property(text: &str) -> Result<(String, String), String> {
    pair(text, "a property is written NAME=VALUE")
}

/// The two sides of the first `=`.
fn pair(text: &str, expected: &str) -> Result<(String, String), String> {
    let (left, right) = text.split_once('=').ok_or(expected)?;
    Ok((left.to_owned(), right.to_owned()))
}
