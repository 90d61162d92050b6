//! Horolog: hand it a message and a moment, and at that moment the message is readable on its topic.

pub mod clock;
pub mod commitlog;
pub mod consumequeue;
pub mod consumer;
pub mod message;
pub mod producer;
pub mod stage;
pub mod store;
pub mod timer;
