//! The server from outside: over HTTP, and as a process.

mod batches;
mod change_races;
mod changes;
mod cli;
mod cli_pending;
mod cli_process;
mod dead_letters;
mod fixture;
mod group_settings;
mod groups;
mod idempotency;
mod levels;
mod limits;
mod long_poll;
mod messages;
mod offsets;
mod operating;
mod process;
mod puts;
mod scheduled;
mod search;
mod timer_races;
mod timers;
mod topic_deletion;
mod topics;
mod wire;
