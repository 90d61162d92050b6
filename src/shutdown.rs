//! The signals that ask the process to end.

use std::fmt;
use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// What was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Terminate,
    Interrupt,
}

impl fmt::Display for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        })
    }
}

/// SIGTERM and SIGINT, which no longer end the process by themselves.
#[derive(Debug)]
pub struct Signals {
    terminate: Stream,
    interrupt: Stream,
}

impl Signals {
    /// Starts to listen. From here on the caller is responsible for ending the process.
    ///
    /// # Errors
    ///
    /// When the operating system does not allow it.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next one. Dropping the future loses none.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.interrupt.recv() => Signal::Interrupt,
        }
    }
}
