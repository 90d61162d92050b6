//! The server from outside: over HTTP, and as a process.

mod fixture;
mod group_settings;
mod groups;
mod long_poll;
mod messages;
mod offsets;
mod operating;
mod process;
mod puts;
mod scheduled;
mod transactions;
mod wire;
