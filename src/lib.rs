//! Horolog, a scheduling service: hand it a message and a moment, and at that moment the message is
//! readable on its topic.
//!
//! ```text
//!   api ─> service ─> producer ─> store (CommitLog, dispatch) ─> timer ─> store ─> consumer ─> service ─> api
//! ```
//!
//! Who may look at whom, strictly down this list: [`message`], [`clock`], [`config`], [`metrics`] ·
//! [`stage`] · [`commitlog`], [`consumequeue`] · [`store`] · [`timer`], [`consumer`] · [`producer`] ·
//! [`engine`] · [`service`] · [`api`] · [`app`].

pub mod api;
pub mod app;
pub mod client;
pub mod clock;
pub mod commitlog;
pub mod config;
pub mod consumequeue;
pub mod consumer;
pub mod demo;
pub mod engine;
pub mod load;
pub mod message;
pub mod metrics;
pub mod producer;
pub mod service;
pub mod shutdown;
pub mod stage;
pub mod store;
pub mod timer;
pub mod units;
