//! What can be said to `put`, `get`, `cancel`, `receive` and `pending`.

use std::path::PathBuf;

use clap::Args;

use super::{Common, Paging, property};

/// Put a message on a topic, ready at once or at a moment
///
/// The body is text, unless it is a JSON object or array, which is kept as JSON; what is not UTF-8 is
/// kept as bytes. A body that begins with a hyphen goes after all options and --.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    override_usage = "horolog put [OPTIONS] <TOPIC> <BODY>\n       \
        horolog put [OPTIONS] <TOPIC> --file <FILE>",
    after_help = "Example: cancel order 17 unless it is paid within 30 minutes\n  \
    horolog put order-timeouts '{\"order\": 17}' --delay 30m --key order-17"
)]
pub struct PutArgs {
    /// The topic; a server that makes topics by itself makes it
    pub topic: String,

    #[command(flatten)]
    pub message: MessageArgs,

    /// A repetition within 24 hours stores nothing and answers the same
    #[arg(long, value_name = "KEY", conflicts_with = "timer")]
    pub idempotency_key: Option<String>,

    /// Put it as this key's timer, in place of the one that is pending
    #[arg(long, value_name = "KEY")]
    pub timer: Option<String>,

    /// Fail when a timer is pending under the key, instead of replacing it
    #[arg(long, requires = "timer")]
    pub create_only: bool,

    #[command(flatten)]
    pub common: Common,
}

/// A message: its body, its moment, and what it is found by
#[derive(Args, Clone, Debug)]
pub struct MessageArgs {
    /// The body, or - to read it from standard input
    #[arg(conflicts_with = "file", required_unless_present = "file")]
    pub body: Option<String>,

    /// Read the body from a file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Deliver after this long: 90s, 1h30m, PT30M, or milliseconds
    #[arg(long, value_name = "DURATION", conflicts_with = "at")]
    pub delay: Option<String>,

    /// Deliver at this time: RFC 3339 with offset, or epoch milliseconds
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,

    /// A key to find the message by; can be repeated
    #[arg(long = "key", value_name = "KEY")]
    pub keys: Vec<String>,

    /// A tag that receivers can filter by
    #[arg(long)]
    pub tag: Option<String>,

    /// A property; can be repeated
    #[arg(long = "property", value_name = "NAME=VALUE", value_parser = property)]
    pub properties: Vec<(String, String)>,

    /// Keep this message in order with the others of its group
    #[arg(long, value_name = "GROUP")]
    pub message_group: Option<String>,
}

/// Show what is known of a message
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: has it been delivered, and what was in it?\n  \
    horolog get AAAAAAAAAArIAc0IpmIxcw --body"
)]
pub struct GetArgs {
    /// The message's id
    pub id: String,

    /// Show the body, too
    #[arg(long)]
    pub body: bool,

    #[command(flatten)]
    pub common: Common,
}

/// Cancel messages that are pending: they will never be delivered
///
/// Cancelling again is no error. The exit code is 1 when one of them was not cancelled: it was
/// delivered already, or there is none with this id. With more than one id, JSON output is
/// {"results": [...]}, in the order of the ids.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    override_usage = "horolog cancel [OPTIONS] <ID>...\n       \
        horolog cancel [OPTIONS] --topic <TOPIC> --timer <KEY>",
    after_help = "Example: order 17 was paid in time\n  \
    horolog cancel --topic order-timeouts --timer order-17"
)]
pub struct CancelArgs {
    /// The messages' ids
    #[arg(
        value_name = "ID",
        required_unless_present = "timer",
        conflicts_with_all = ["topic", "timer"]
    )]
    pub ids: Vec<String>,

    /// The topic of the timer to cancel
    #[arg(long, requires = "timer")]
    pub topic: Option<String>,

    /// The timer's key
    #[arg(long, value_name = "KEY", requires = "topic")]
    pub timer: Option<String>,

    #[command(flatten)]
    pub common: Common,
}

/// Receive messages of a topic as a member of a group
///
/// What is received is leased to the group; unless it is acknowledged it comes again when the lease
/// ends. Receipt handles, to acknowledge by oneself, are in the JSON output.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: wait for the next message, show it, and be done with it\n  \
    horolog receive --group order-service --topic order-timeouts --wait 30s --ack"
)]
pub struct ReceiveArgs {
    /// The group; one that is new reads from the earliest message
    #[arg(long)]
    pub group: String,

    /// The topic
    #[arg(long)]
    pub topic: String,

    /// At most this many messages [default: 1; at most 256]
    #[arg(long, value_name = "COUNT")]
    pub max: Option<u64>,

    /// Wait this long for the first of them [default: 0s; at most 30s]
    #[arg(long, value_name = "DURATION")]
    pub wait: Option<String>,

    /// Acknowledge them once they are written to standard output
    #[arg(long)]
    pub ack: bool,

    /// How long the lease lasts [default: the group's own]
    #[arg(long, value_name = "DURATION")]
    pub invisible_for: Option<String>,

    /// Only with this tag; can be repeated; fixed at the first receive
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,

    #[command(flatten)]
    pub common: Common,
}

/// List what waits for its moment, or count it over time
///
/// What is near is sorted to the second, what is far to three days.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: everything of order 17 that is pending in the next day\n  \
    horolog pending --topic order-timeouts --key order-17 --to 2026-12-01T00:00:00Z --all"
)]
pub struct PendingArgs {
    /// Only of this topic
    #[arg(long)]
    pub topic: Option<String>,

    /// Only with a key that begins so
    #[arg(long, conflicts_with = "timeline")]
    pub key: Option<String>,

    /// Only with this tag
    #[arg(long, conflicts_with = "timeline")]
    pub tag: Option<String>,

    /// Only from this moment on, inclusive: RFC 3339, or epoch milliseconds
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,

    /// Only before this moment
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,

    #[command(flatten)]
    pub paging: Paging,

    /// Count what is pending by time instead of listing it
    #[arg(long, conflicts_with_all = ["limit", "all"])]
    pub timeline: bool,

    /// How long each bucket of the timeline is [default: 60s]
    #[arg(long, value_name = "DURATION", requires = "timeline")]
    pub bucket: Option<String>,

    #[command(flatten)]
    pub common: Common,
}
