//! A server whose system calls fail or are slow, made so from outside by strace.
//!
//! strace counts the calls of each thread for itself, so the n-th fdatasync fails in whichever thread comes to its
//! n-th first; that is mostly the flush.

use std::path::PathBuf;
use std::process::Command;

use crate::disks;
use crate::scratch::Scratch;

/// strace, and what it is to do.
#[derive(Clone, Debug)]
pub(crate) struct Tracer {
    injection: String,
    log: PathBuf,
}

impl Tracer {
    /// `injection` as strace reads it: `fdatasync:error=EIO:when=7`. Why not, where there is no strace or it may not
    /// trace.
    pub(crate) fn new(scratch: &Scratch, injection: &str) -> Result<Self, String> {
        disks::run(Command::new("strace").args(["-qq", "-e", "trace=none", "true"]))?;
        Ok(Self {
            injection: format!("inject={injection}"),
            log: scratch.log().with_extension("strace"),
        })
    }

    /// The command that runs `binary` traced, as a child of the caller and not of strace.
    pub(crate) fn command(&self, binary: &str) -> Command {
        let mut command = Command::new("strace");
        command
            .args([
                "-D",
                "-f",
                "-y",
                "-qq",
                "-e",
                "trace=fdatasync,fallocate",
                "-e",
                &self.injection,
            ])
            .arg("-o")
            .arg(&self.log)
            .arg(binary);
        command
    }

    /// The calls that were traced, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// The file that an fdatasync of the log is about: `12 fdatasync(9</data/commitlog/0>) = 0`.
pub(crate) fn file_of(call: &str) -> Option<&str> {
    let (_, rest) = call.split_once("fdatasync(")?;
    let (_, rest) = rest.split_once('<')?;
    rest.split_once('>').map(|(path, _)| path)
}
