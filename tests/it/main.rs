//! The server from outside: over HTTP, and as a process.

mod batches;
mod change_races;
mod changes;
mod cli;
mod cli_pending;
mod cli_process;
mod fixture;
mod groups;
mod idempotency;
mod messages;
mod operating;
mod process;
mod puts;
mod search;
mod timer_races;
mod timers;
mod topic_deletion;
mod topics;
mod wire;
