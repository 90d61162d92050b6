//! Horolog, a scheduling service: hand it a message and a moment, and at that moment the message is
//! readable on its topic.

pub mod api;
pub mod app;
pub mod client;
pub mod clock;
pub mod config;
pub mod demo;
pub mod load;
pub mod message;
pub mod metrics;
pub mod service;
pub mod shutdown;
pub mod units;
