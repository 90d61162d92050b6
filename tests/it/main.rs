//! The server from outside: over HTTP, and as a process.

mod fixture;
mod groups;
mod messages;
mod operating;
mod process;
mod puts;
mod scheduled;
mod wire;
