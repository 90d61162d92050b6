//! What can be said to `dlq`.

use clap::{ArgGroup, Args, Subcommand};

use super::topics::ListArgs;
use super::{Common, Paging};

/// List the dead letters of a group; redrive them
///
/// A dead letter is a message that the group was given as often as its settings say and never
/// acknowledged. It was given back (NACKED) or its lease ran out (LEASE_EXPIRED) at the last attempt.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "horolog dlq [OPTIONS] <GROUP>\n       \
        horolog dlq redrive [OPTIONS] <GROUP> <ID>...",
    after_help = "Example: what has the group given up on?\n  \
    horolog dlq order-service --all"
)]
pub struct DeadLettersArgs {
    #[command(subcommand)]
    pub command: Option<DeadLettersCommand>,

    /// The group
    #[arg(required = true)]
    pub group: Option<String>,

    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub enum DeadLettersCommand {
    List(ListDeadLettersArgs),
    Redrive(RedriveArgs),
}

/// List the dead letters of a group: the same as without a command
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: all of them, with everything that is known, for a program\n  \
    horolog dlq list order-service --all --output json"
)]
pub struct ListDeadLettersArgs {
    /// The group
    pub group: String,

    #[command(flatten)]
    pub paging: Paging,

    #[command(flatten)]
    pub common: Common,
}

/// Give dead letters to their group once more, with attempts counted from 1
///
/// The exit code is 1 when one of the ids is none of the group's dead letters; the others are redriven.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    group = ArgGroup::new("which").required(true).multiple(true),
    override_usage = "horolog dlq redrive [OPTIONS] <GROUP> <ID>...\n       \
        horolog dlq redrive [OPTIONS] <GROUP> --topic <TOPIC>\n       \
        horolog dlq redrive [OPTIONS] <GROUP> --everything",
    after_help = "Example: the consumer is repaired; let it have all that it has given up on\n  \
    horolog dlq redrive order-service --everything"
)]
pub struct RedriveArgs {
    /// The group
    pub group: String,

    /// The messages' ids
    #[arg(value_name = "ID", group = "which")]
    pub ids: Vec<String>,

    /// Only of this topic
    #[arg(long, group = "which")]
    pub topic: Option<String>,

    /// Everything that the group has given up on
    #[arg(long, group = "which", conflicts_with_all = ["ids", "topic"])]
    pub everything: bool,

    #[command(flatten)]
    pub common: Common,
}
