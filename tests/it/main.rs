//! The server from outside: over HTTP, and as a process.

#![expect(clippy::disallowed_types, reason = "it runs on real threads alone")]

mod batches;
mod bounds;
mod change_races;
mod changes;
mod check_back;
mod cli;
mod cli_dead_letters;
mod cli_errors;
mod cli_groups;
mod cli_pending;
mod cli_process;
mod cli_topics;
mod cli_tx;
mod dead_letters;
mod fixture;
mod full_disk;
mod group_settings;
mod groups;
mod idempotency;
mod levels;
mod limits;
mod long_poll;
mod messages;
mod offline;
mod offsets;
mod operating;
mod process;
mod puts;
mod queued_appends;
mod scheduled;
mod search;
mod timer_races;
mod timers;
mod topic_deletion;
mod topics;
mod transactions;
mod wire;
