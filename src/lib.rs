//! Horolog, a scheduling service: hand it a message and a moment, and at that moment the message is
//! readable on its topic.
//!
//! ```text
//!   api ─> service ─> producer ─> store (CommitLog, dispatch) ─> timer, delay ─> store ─> consumer ─> service ─> api
//! ```
//!
//! Who may look at whom, strictly down this list: [`sync`], [`message`], [`clock`], [`config`], [`metrics`] ·
//! [`stage`] · [`commitlog`], [`consumequeue`], [`index`] · [`store`] · [`timer`], [`delay`], [`consumer`] ·
//! [`producer`] · [`transaction`], [`retention`], [`space`] · [`engine`], [`rebuild`] ·
//! [`service`] · [`api`] · [`check_back`] · [`app`]. Beside them, speaking HTTP only: [`client`] · [`cli`];
//! [`outbound`], by which the server calls its users; and [`offline`], for a data directory without a server.
//!
//! Decisions that are easy to miss, each argued in its room:
//!
//! - **Three settled bits a cause** ([`commitlog::settled`]): settled, and how. So *cancelled* is told from
//!   *delivered* in one look-up, with no index. Pages go through a journal, and a digest of each file
//!   gives away one that is missing or an older copy.
//! - **A delivery record has one `fired at`** and 12 bytes a message: cause, length, tag hash. With the tag
//!   hash there, dispatch writes a unit that a filter can use, and reads no message.
//! - **A unit points at the cause**, the record that gave the message its moment; for a plain put that is the
//!   message itself. When a message fired is found in its queue by binary search, not kept anywhere.
//! - **Near or far is decided by one number**, the far boundary that only re-filing moves
//!   ([`timerlog::TimerWheel::far_boundary`]), so a cancel always finds the ring its entry is in.
//! - **What gives a message its moment** is its own record, or its last reschedule: the settled bits say
//!   that a later one speaks for it, the index says which ([`producer`]). To fire now is no reschedule but a
//!   delivery, so the moment that was asked for stays.
//! - **A timer's record names the one it replaces**, and a request's idempotency key stands in the group of
//!   what it put: one turn, one group, all or nothing.
//! - **Nobody waits holding a lock.** Where a decision needs a record that is on its way to the disk, the
//!   operation says so and is made again when it is there.
//! - **A topic goes in two steps** ([`store`]): in the turn of its deletion it loses its name and no turn
//!   does anything for it any more; with dispatch it goes altogether, and what waited counts as dropped.
//! - **A delay level is a queue, not a slot** ([`delay`]): its head decides. Levels and their queues are told
//!   apart, so the table of levels can be changed while messages wait ([`store::Levels`]).
//! - **All that happens to an open transaction races for one settled bit** ([`producer`]): each record of its
//!   life settles the one before it, and a check counts when its record is durable.
//! - **Open transactions wait in the wheel, and nowhere else** ([`transaction`]): a check that nobody asks for
//!   is filed again and again, as a note that counts for nothing.
//! - **A lease that ran out is handed out again only when its record is durable**, so that attempts never go
//!   back over a restart ([`consumer`]).
//! - **The log is cleaned from its begin only** ([`retention`]): so no fact goes before what it settles, no record of
//!   settled bits is needed, and a log has no holes that could be damage. What still waits at the begin is appended
//!   again.
//! - **A message's first offset is its name for ever**, where it is read may change ([`store::Store::home`]): a move is a
//!   body and nothing else, and what gives it its moment is carried on by records that were there before.
//! - **Nothing is given up on a full disk** ([`space`]): who finds no room keeps what it was about to write and
//!   tries again. New work is refused before that, and a ballast makes way for what was accepted.
//! - **A wheel found damaged while running is condemned** ([`timer`]): the server ends, and the next start
//!   fills a new one from the timer topic.

#![cfg_attr(
    not(feature = "shuttle"),
    expect(clippy::disallowed_types, reason = "without the scheduler the room hands out these")
)]

pub mod api;
pub mod app;
pub mod check_back;
pub mod cli;
pub mod client;
pub mod clock;
mod clock_watch;
pub mod commitlog;
pub mod config;
pub mod consumequeue;
pub mod consumer;
pub mod delay;
pub mod demo;
pub mod engine;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod index;
pub mod load;
pub mod message;
pub mod metrics;
pub mod offline;
pub mod outbound;
pub mod producer;
pub mod rebuild;
pub mod retention;
pub mod service;
pub mod shutdown;
pub mod space;
pub mod stage;
pub mod store;
#[doc(hidden)]
pub mod sync;
pub mod timer;
pub mod transaction;
pub mod units;
