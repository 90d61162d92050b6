//! The nouns: what a message is before, in, and after the log. No I/O, no clock.

mod group_settings;
pub mod id;
mod level_table;
mod name;
pub mod offset;
pub mod record;
mod tag_filter;
pub mod timer_tag;
mod topic;

pub use group_settings::{GroupSettings, StartFrom};
pub use level_table::{LevelTable, MAX_LEVELS};
pub use name::{GroupName, MAX_NAME_LENGTH, NameError, TopicName};
pub use tag_filter::TagFilter;
pub use topic::{TopicSettings, TopicType};

use bytes::Bytes;

use crate::clock::Timestamp;

/// When a message is to be readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// As soon as it is durable.
    Now,
    /// At a moment on the wall clock; one that is not after now means now.
    At(Timestamp),
    /// So many milliseconds after it was accepted.
    After(u64),
    /// By a delay level, from 1; above the table it is the table's last.
    Level(u32),
}

/// The farthest a deadline may lie ahead: 100 years of 365.25 days, in milliseconds.
pub const MAX_DELAY_MS: u64 = 36_525 * 24 * 60 * 60 * 1000;

/// What a producer hands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    pub moment: Moment,
    pub attributes: Attributes,
    pub body: Bytes,
}

/// What travels with a body and comes out as it went in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The media type of the body, as the producer named it.
    pub content_type: String,
    pub tag: Option<String>,
    pub keys: Vec<String>,
    pub message_group: Option<String>,
    /// In the order they came; names are unique.
    pub properties: Vec<(String, String)>,
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for its moment.
    Scheduled,
    /// On its topic: put for now, or fired.
    Ready,
    Cancelled,
    /// A half message whose transaction is open.
    Prepared,
    RolledBack,
    /// Nobody answered for its transaction in time; that can be resumed.
    Abandoned,
}
