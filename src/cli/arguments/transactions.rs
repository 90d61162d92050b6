//! What can be said to `tx`.

use clap::{Args, Subcommand};

use super::{Common, MessageArgs, Paging};

/// List transactions; begin, commit, roll back or resume one; see check-backs
///
/// A half message is kept, but nobody can read it until its transaction is committed. When no decision
/// comes, its producers are asked: these are check-backs. After the last of them the transaction is
/// abandoned. Without a command it lists transactions.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    after_help = "Example: which transactions were given up, and wait for somebody to look?\n  \
    horolog tx --state abandoned --all"
)]
pub struct TransactionsArgs {
    #[command(subcommand)]
    pub command: Option<TransactionsCommand>,

    #[command(flatten)]
    pub list: ListTransactionsArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub enum TransactionsCommand {
    List(ListTransactionsArgs),
    Show(ShowTransactionArgs),
    Begin(Box<BeginArgs>),
    /// Commit a transaction: its message is readable at once, or at its moment
    ///
    /// Committing again is no error. One that was rolled back or abandoned is not committed.
    #[command(
        verbatim_doc_comment,
        after_help = "Example: the order was written to the database\n  \
        horolog tx commit AAAAAAAAAArIAc0IpmIxcw"
    )]
    Commit(DecideArgs),
    /// Roll a transaction back: its message will never be readable
    ///
    /// Rolling back again is no error. One that was committed or abandoned is not rolled back.
    #[command(
        verbatim_doc_comment,
        after_help = "Example: the order could not be written to the database\n  \
        horolog tx rollback AAAAAAAAAArIAc0IpmIxcw"
    )]
    Rollback(DecideArgs),
    /// Open an abandoned transaction again: its check-backs begin anew
    #[command(
        verbatim_doc_comment,
        after_help = "Example: the producers were down for days, and are back\n  \
        horolog tx resume AAAAAAAAAArIAc0IpmIxcw"
    )]
    Resume(DecideArgs),
    Checks(ChecksArgs),
}

/// List transactions: the same as without a command
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: what is undecided in a topic?\n  \
    horolog tx list --state prepared --topic orders"
)]
pub struct ListTransactionsArgs {
    /// Only in this state: PREPARED, COMMITTED, ROLLED_BACK or ABANDONED
    #[arg(long)]
    pub state: Option<String>,

    /// Only of this topic
    #[arg(long)]
    pub topic: Option<String>,

    #[command(flatten)]
    pub paging: Paging,

    #[command(flatten)]
    pub common: Common,
}

/// Show a transaction: its state, and its check-backs
///
/// The message itself is shown by horolog get, under the same id.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: has it been decided?\n  \
    horolog tx show AAAAAAAAAArIAc0IpmIxcw"
)]
pub struct ShowTransactionArgs {
    /// The transaction's id
    pub id: String,

    #[command(flatten)]
    pub common: Common,
}

/// Of a command that a transaction is all there is to say to.
#[derive(Args, Clone, Debug)]
pub struct DecideArgs {
    /// The transaction's id
    pub id: String,

    #[command(flatten)]
    pub common: Common,
}

/// Begin a transaction with a half message, which nobody can read until it is committed
///
/// The body is taken as by horolog put. A message with a delay or a time is scheduled when it is
/// committed; when the moment has passed by then, it is readable at once.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    override_usage = "horolog tx begin [OPTIONS] --producer-group <GROUP> <TOPIC> <BODY>\n       \
        horolog tx begin [OPTIONS] --producer-group <GROUP> <TOPIC> --file <FILE>",
    after_help = "Example: an order that others hear of once it is in the database\n  \
    horolog tx begin orders '{\"order\": 17}' --producer-group shop --key order-17"
)]
pub struct BeginArgs {
    /// The topic; a server that makes topics by itself makes it
    pub topic: String,

    #[command(flatten)]
    pub message: MessageArgs,

    /// The producers that are asked when no decision comes
    #[arg(long, value_name = "GROUP")]
    pub producer_group: String,

    /// The first check-back comes after this long [default: 6s]
    #[arg(long, value_name = "DURATION")]
    pub check_after: Option<String>,

    /// Each further one comes after this long [default: 30s]
    #[arg(long, value_name = "DURATION")]
    pub check_interval: Option<String>,

    /// After this many check-backs it is abandoned [default: 15]
    #[arg(long, value_name = "COUNT")]
    pub max_checks: Option<u64>,

    /// After this long it is abandoned anyway [default: 72h]
    #[arg(long, value_name = "DURATION")]
    pub abandon_after: Option<String>,

    /// Post check-backs to this address
    #[arg(long, value_name = "URL")]
    pub check_url: Option<String>,

    /// Sign them with this secret
    #[arg(long, value_name = "SECRET", env = "HOROLOG_CHECK_SECRET", hide_env_values = true)]
    pub check_secret: Option<String>,

    /// A repetition within 24 hours stores nothing and answers the same
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,

    #[command(flatten)]
    pub common: Common,
}

/// Take the check-backs that wait for a group of producers
///
/// Answer each with horolog tx commit or horolog tx rollback, or not at all. What is taken here is
/// not handed to the producers themselves: they are asked when the check interval has passed.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: wait for the next transaction that is in doubt\n  \
    horolog tx checks shop --wait 30s"
)]
pub struct ChecksArgs {
    /// The group of producers
    #[arg(value_name = "PRODUCER_GROUP")]
    pub group: String,

    /// At most this many check-backs [default: 1; at most 256]
    #[arg(long, value_name = "COUNT")]
    pub max: Option<u64>,

    /// Wait this long for the first of them [default: 0s; at most 30s]
    #[arg(long, value_name = "DURATION")]
    pub wait: Option<String>,

    #[command(flatten)]
    pub common: Common,
}
