//! Servers as processes of their own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::http::Method;
use horolog::client::Client;

use crate::AnyError;
use crate::machine::{field, read};

/// Ticks a second, as Linux counts them towards programs.
const USER_HZ: u64 = 100;

/// A running server, killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Process {
    /// `horolog serve` with its default settings, on a free port and this directory.
    pub(crate) fn horolog(data: &Path) -> Result<Self, AnyError> {
        Self::horolog_with(data, &[])
    }

    /// The same, with settings that differ.
    pub(crate) fn horolog_with(data: &Path, settings: &[&str]) -> Result<Self, AnyError> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_horolog"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--data-dir"]);
        // What is measured is not how full this disk is.
        command.env("HOROLOG_DISK_RESERVE", "0");
        Self::start(command.arg(data).args(settings))
    }

    /// Starts `command`, whose first line has `http://ADDRESS` in it.
    pub(crate) fn start(command: &mut Command) -> Result<Self, AnyError> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("its output is piped")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address = line.split("http://").nth(1).ok_or("the server did not start")?;
        let address = address.split([',', '\n']).next().ok_or("the server did not say where")?;
        Ok(Self { address: address.parse()?, child })
    }

    /// A line of `/proc/PID/status`, in KiB.
    pub(crate) fn memory_kib(&self, name: &str) -> Result<u64, AnyError> {
        let status = read(&format!("/proc/{}/status", self.child.id()));
        let value = field(&status, name).ok_or("the process has no such line")?;
        Ok(value.trim_end_matches(" kB").parse()?)
    }

    /// The processor time that it has taken, in user and system mode.
    pub(crate) fn processor_time(&self) -> Result<Duration, AnyError> {
        let stat = read(&format!("/proc/{}/stat", self.child.id()));
        // What stands before the last bracket is the program's name, which may have spaces.
        let (_, rest) = stat.rsplit_once(')').ok_or("the process has no such file")?;
        let mut fields = rest.split_whitespace().skip(11);
        let mut ticks =
            || fields.next().ok_or("a field is missing")?.parse::<u64>().map_err(AnyError::from);
        let ticks = ticks()? + ticks()?;
        Ok(Duration::from_millis(ticks * 1000 / USER_HZ))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; its data is removed anyway.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads figures of a running server.
#[derive(Debug)]
pub(crate) struct Watch {
    client: Client,
}

impl Watch {
    pub(crate) fn new(process: &Process) -> Self {
        Self { client: Client::new(process.address) }
    }

    /// The sum over all lines of `/metrics` that begin so.
    pub(crate) async fn sum(&mut self, beginning: &str) -> Result<f64, AnyError> {
        let answer = self.client.call(Method::GET, "/metrics").await?;
        let text = String::from_utf8_lossy(&answer.body);
        let lines = text.lines().filter(|line| line.starts_with(beginning));
        Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// Waits until the figure has reached `least`, looking every few milliseconds.
    pub(crate) async fn until(&mut self, figure: &str, least: f64) -> Result<(), AnyError> {
        while self.sum(figure).await? < least {
            crate::pause(5).await;
        }
        Ok(())
    }
}
