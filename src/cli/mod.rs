//! The commands of a client: `horolog put`, `get`, `cancel`, `receive`, `pending`; `topics`, `groups`, `dlq`,
//! `tx`, which have commands of their own.
//!
//! ```text
//!   arguments ─> put, get, ... ─> remote ─> HTTP ─> answer ─┬─> table (terminal, far)
//!                                                           └─> JSON, as the server wrote it
//! ```
//!
//! Ground rules:
//!
//! - A command is a thin cover: it knows paths and member names, and no rule of the server's. What is
//!   wrong with a moment, a name or a limit, the server says.
//! - Standard output has what was asked for and nothing else; whatever else there is to say goes to
//!   standard error. With `--output json` standard output is one JSON document.
//! - What comes from a server is data: control characters do not reach the terminal.

mod arguments;
mod cancel;
mod dead_letters;
mod error;
mod far;
mod get;
mod groups;
mod message;
mod outgoing;
mod pages;
mod pending;
mod put;
mod receive;
mod remote;
mod table;
mod terminal;
mod topics;
mod transactions;
mod url;

use std::io;

pub use arguments::*;
pub use error::CliError;
pub use url::Url;

use crate::clock::Timestamp;

/// What a command is given instead of reaching for it.
pub struct Io<'a> {
    pub input: &'a mut dyn io::Read,
    pub output: &'a mut dyn io::Write,
    /// What is to be said beside the output.
    pub notes: &'a mut dyn io::Write,
    /// For how far away a moment is.
    pub now: &'a dyn Fn() -> Timestamp,
}

impl std::fmt::Debug for Io<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Io").finish_non_exhaustive()
    }
}

/// Runs a command to its end. A reader of the output that went away ends it in order.
///
/// # Errors
///
/// [`CliError`] says in one sentence what to tell the user.
pub async fn run(command: &Command, io: &mut Io<'_>) -> Result<(), CliError> {
    let outcome = match command {
        Command::Put(args) => put::run(args, io).await,
        Command::Get(args) => get::run(args, io).await,
        Command::Cancel(args) => cancel::run(args, io).await,
        Command::Receive(args) => receive::run(args, io).await,
        Command::Pending(args) => pending::run(args, io).await,
        Command::Topics(args) => topics::run(args, io).await,
        Command::Groups(args) => groups::run(args, io).await,
        Command::Dlq(args) => dead_letters::run(args, io).await,
        Command::Tx(args) => transactions::run(args, io).await,
    };
    match outcome {
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}
