//! Why a command fails, in a sentence for whoever typed it.

use std::io;
use std::path::PathBuf;

use super::Url;

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("no server at {url}: {cause}; start one with: horolog serve")]
    NoServer { url: Url, cause: io::Error },
    #[error("the name in {url} cannot be resolved: {cause}")]
    Resolve { url: Url, cause: io::Error },
    /// The request may have been carried out.
    #[error("no answer from {url}, so what became of the request is unknown: {cause}")]
    NoAnswer { url: Url, cause: hyper::Error },
    #[error("{detail} ({code})")]
    Refused { code: String, detail: String },
    #[error("{url} is not a Horolog server, or not one of this version: {reason}")]
    Foreign { url: Url, reason: String },
    #[error("cannot read {}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("cannot read standard input: {0}")]
    Input(io::Error),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// Each was told of by itself.
    #[error("{failed} of {of} messages were not cancelled")]
    NotCancelled { failed: usize, of: usize },
    #[error("{failed} of {of} messages were not redriven: they are no dead letters of the group")]
    NotRedriven { failed: u64, of: u64 },
    #[error("{failed} of {of} messages were not acknowledged and come again: {code}")]
    NotAcked { failed: usize, of: usize, code: String },
}
