//! A server whose system calls fail or are slow, made so from outside by strace.
//!
//! strace counts the calls of each thread for itself, so the n-th fdatasync fails in whichever thread comes to its
//! n-th first; that is mostly the flush.

use std::collections::BTreeMap;
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
                "trace=fdatasync,fallocate,pread64",
                "-e",
                &self.injection,
            ])
            .arg("-o")
            .arg(&self.log)
            .arg(binary);
        command
    }

    /// The calls that were traced, in the order in which they began.
    pub(crate) fn calls(&self) -> Vec<String> {
        joined(&std::fs::read_to_string(&self.log).unwrap_or_default())
    }
}

/// A call during which another thread does one stands in two lines: put together here.
fn joined(text: &str) -> Vec<String> {
    let (mut calls, mut open): (Vec<String>, BTreeMap<&str, usize>) = Default::default();
    for line in text.lines() {
        let thread = line.split(' ').next().unwrap_or_default();
        if let Some((begun, _)) = line.split_once(" <unfinished ...>") {
            open.insert(thread, calls.len());
            calls.push(begun.to_owned());
        } else if let Some((_, rest)) = line.split_once(" resumed>") {
            let begun = open.remove(thread).expect("what is resumed was begun");
            calls[begun].push_str(rest);
        } else {
            calls.push(line.to_owned());
        }
    }
    calls
}

#[test]
fn a_call_in_two_lines_is_one() {
    let text = "7 fdatasync(9</d/log> <unfinished ...>\n8 fdatasync(4</d/other>) = 0\n\
                7 <... fdatasync resumed>) = -1 EIO (Input/output error) (INJECTED)\n";
    let calls = joined(text);
    let whole = "7 fdatasync(9</d/log>) = -1 EIO (Input/output error) (INJECTED)";
    assert_eq!(calls, [whole, "8 fdatasync(4</d/other>) = 0"]);
    assert_eq!(file_of(whole), Some("/d/log"));
}

/// The file that an fdatasync of the log is about: `12 fdatasync(9</data/commitlog/0>) = 0`.
pub(crate) fn file_of(call: &str) -> Option<&str> {
    let (_, rest) = call.split_once("fdatasync(")?;
    let (_, rest) = rest.split_once('<')?;
    rest.split_once('>').map(|(path, _)| path)
}
