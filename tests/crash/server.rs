//! One life of the real binary: a child process, from its start to its end.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::scratch::{Scratch, entries};
use crate::traced::Tracer;

const BINARY: &str = env!("CARGO_BIN_EXE_horolog");

/// Long past anything a healthy server needs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Small files and frequent checkpoints, so that a second of load meets all of them.
const SETTINGS: [&str; 12] = [
    "--listen",
    "127.0.0.1:0",
    "--segment-size",
    "1MiB",
    "--max-body",
    "256KiB",
    "--checkpoint-interval",
    "1s",
    "--queues-per-topic",
    "2",
    "--log-format",
    "text",
];

/// A process that is killed, if it is still there, when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    announced: Option<oneshot::Receiver<String>>,
    /// Ends when the process has closed its output, which it does by ending.
    closed: JoinHandle<()>,
}

/// What a kill has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Killed {
    Running,
    Ended(ExitStatus),
}

impl Server {
    /// Starts the binary on the scratch's data directory.
    pub(crate) fn spawn(scratch: &Scratch, more: &[&str]) -> Self {
        Self::spawn_by(Command::new(BINARY), scratch, more)
    }

    /// The same, with some of its system calls tampered with.
    pub(crate) fn spawn_traced(scratch: &Scratch, tracer: &Tracer) -> Self {
        Self::spawn_by(tracer.command(BINARY), scratch, &[])
    }

    fn spawn_by(mut command: Command, scratch: &Scratch, more: &[&str]) -> Self {
        let log = std::fs::File::options().create(true).append(true).open(scratch.log());
        for (name, _) in std::env::vars_os() {
            // Settings of whoever runs the test are not this server's.
            if name.to_string_lossy().starts_with("HOROLOG_") {
                command.env_remove(name);
            }
        }
        // Small, as its other files are; a flag may say otherwise.
        let mut child = command
            .env("HOROLOG_DISK_RESERVE", "1MiB")
            .arg("serve")
            .args(SETTINGS)
            .arg("--data-dir")
            .arg(scratch.data())
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.expect("the log can be written"))
            .spawn()
            .expect("the binary was built with the test");
        let stdout = child.stdout.take().expect("it is piped");
        let (announce, announced) = oneshot::channel();
        let closed = tokio::task::spawn_blocking(move || listen(stdout, announce));
        Self { child, announced: Some(announced), closed }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the line that says where it listens; `None` when the process ended before it.
    pub(crate) async fn ready(&mut self) -> Option<SocketAddr> {
        let announced = self.announced.as_mut().expect("a server becomes ready once");
        let line = tokio::time::timeout(PATIENCE, announced).await;
        let line = line.expect("the server neither listens nor ends").ok()?;
        self.announced = None;
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split_once(','));
        let (address, _) = address.unwrap_or_else(|| panic!("what does this mean: {line:?}"));
        Some(address.parse().expect("an address and a port"))
    }

    /// `kill -9`, and the process is gone when this returns; how it ended, should it have been faster.
    pub(crate) fn kill(mut self) -> Killed {
        let killed = self.child.kill();
        killed.expect("a process that nobody has waited for can be killed");
        let status = self.child.wait().expect("a child can be waited for");
        match status.signal() {
            Some(9) => Killed::Running,
            _ => Killed::Ended(status),
        }
    }

    /// Stops every thread; none of them is in the midst of a call when this returns.
    pub(crate) fn halt(&self) {
        let kill = format!("kill -STOP {}", self.pid());
        let status = Command::new("sh").args(["-c", &kill]).status().expect("there is a shell");
        assert!(status.success(), "{kill}: {status}");
        let tasks = format!("/proc/{}/task", self.pid());
        let is_stopped = |task: std::path::PathBuf| {
            let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        };
        while !entries(tasks.as_ref()).into_iter().all(is_stopped) {
            std::thread::yield_now();
        }
    }

    pub(crate) fn terminate(&self) {
        let kill = format!("kill -TERM {}", self.pid());
        let status = Command::new("sh").args(["-c", &kill]).status().expect("there is a shell");
        assert!(status.success(), "{kill}: {status}");
    }

    /// Waits until it has ended by itself. Dropping the future loses nothing.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let closed = tokio::time::timeout(PATIENCE, &mut self.closed).await;
        closed.expect("the server does not end").expect("the reader does not panic");
        self.child.wait().expect("a child can be waited for")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // When it has ended there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(stdout: ChildStdout, announce: oneshot::Sender<String>) {
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    if stdout.read_line(&mut line).is_ok_and(|length| length > 0) {
        // Whoever killed it may not be interested any more.
        let _ = announce.send(line);
    } else {
        drop(announce);
    }
    let _ = stdout.read_to_end(&mut Vec::new());
}
