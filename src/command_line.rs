//! What can be said on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use horolog::cli;
use horolog::config::Given;

/// A scheduling service: hand it a message and a moment, and at that moment, never before, the
/// message is readable on its topic.
#[derive(Parser)]
#[command(version, verbatim_doc_comment, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(Box<ServeArgs>),
    Demo(DemoArgs),
    Bench(BenchArgs),
    Verify(VerifyArgs),
    Rebuild(RebuildArgs),
    #[command(flatten)]
    Client(Box<cli::Command>),
}

#[derive(Args)]
#[command(
    about = "Run the server",
    long_about = "Run the server.\n\n\
        Each setting can also stand in a TOML file (data_dir = \"/var/lib/horolog\") or in the \
        environment; a flag wins over a variable, a variable over the file.",
    after_help = "Exit codes: 0 stopped in order, 2 the settings cannot be used, 3 the data \
        directory cannot be used, 4 the address cannot be used, 5 the disk failed, 6 a second \
        signal ended the process before it had stopped in order."
)]
pub(crate) struct ServeArgs {
    /// A TOML file with settings
    #[arg(long, env = "HOROLOG_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) given: Given,
}

/// Show it at work: ten thousand orders that time out unless they are paid
///
/// Needs nothing: it starts a server of its own on a temporary data directory, schedules and
/// cancels over HTTP, and checks what comes out. A second act has a thousand orders in transactions,
/// a shop that falls silent, and consumers that crash. Exit code 1 means that a promise was broken.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DemoArgs {
    /// How many orders; the second act has a tenth of them
    #[arg(long, default_value_t = 10_000)]
    pub(crate) orders: usize,
}

/// Read a data directory whole and say what is damaged
///
/// No server may have it open; nothing in it is changed. The log is read record by record. Of what is derived
/// from it the checkpoint's copies, the queues, the settled bits and the index are read; the timer's files are
/// only listed, since a start reads those.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Exit codes: 0 all is whole, 1 something is damaged, 3 the directory cannot be read."
)]
pub(crate) struct VerifyArgs {
    /// The data directory
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// table, to be read, or json, for programs
    #[arg(long, value_name = "FORMAT", default_value = "table", hide_possible_values = true)]
    pub(crate) output: cli::Output,
}

/// Make anew what is derived from the log of a data directory
///
/// No server may have it open. A start does the same by itself where it finds damage; this does it beforehand, and
/// the next start then has nothing to replay. Nothing fires meanwhile.
#[derive(Args)]
#[command(verbatim_doc_comment, after_help = "Exit codes: 0 done, 3 the directory cannot be used.")]
pub(crate) struct RebuildArgs {
    /// The data directory
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// Measure how many messages a second a running server stores
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Where the server listens
    #[arg(long, default_value = "127.0.0.1:7400", value_name = "ADDRESS:PORT")]
    pub(crate) address: SocketAddr,

    /// How many connections send, each its next message when the last is answered
    #[arg(long, default_value_t = 256)]
    pub(crate) connections: usize,

    /// Bytes of each message
    #[arg(long, default_value_t = 1024)]
    pub(crate) size: usize,

    /// How long
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
}
