//! What the service answers, and why it does not.

use std::fmt::Display;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::commitlog::AppendError;
use crate::config::{Flush, TopicCreation};
use crate::consumer;
pub use crate::consumer::{AckOutcome, Extended, Received};
use crate::engine;
use crate::message::{Attributes, GroupName, GroupSettings, State, TagFilter, TopicName};
use crate::producer;
use crate::store::MakeError;

/// Why nothing can be done right now; nothing was stored.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unavailable {
    #[error("the server is not ready: {reason}")]
    NotReady { reason: String },
    #[error("too many writes are waiting for the disk; try again shortly")]
    Overloaded,
    #[error("the disk is too full for new messages")]
    StorageFull,
    /// The log could not be written: what became of the request is unknown.
    #[error("the store has failed and refuses writes: {reason}")]
    Failed { reason: String },
}

/// A message that is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub id: String,
    pub state: State,
    pub deliver_at: Timestamp,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum PutError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("the moment lies more than 100 years ahead")]
    TooFarAhead,
    #[error("there is no topic {topic}")]
    TopicNotFound { topic: TopicName },
}

/// What is known of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageView {
    pub id: String,
    pub topic: String,
    pub state: State,
    pub born_at: Timestamp,
    pub deliver_at: Timestamp,
    /// When it fired; `None` for one that has not, or was put for now.
    pub fired_at: Option<Timestamp>,
    pub attributes: Attributes,
    /// Only when it was asked for.
    pub body: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithBody {
    Yes,
    No,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum LookupError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no message with this id")]
    NotFound,
    #[error("the message is damaged on the disk: {reason}")]
    Damaged { reason: String },
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum CancelError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no message with this id")]
    NotFound,
    #[error("the message was already delivered")]
    AlreadyDelivered,
}

#[derive(Clone, Debug)]
pub struct ReceiveRequest {
    pub topic: TopicName,
    /// 1 to 256.
    pub max: usize,
    pub wait_ms: u64,
    /// How long the lease lasts; `None` is the group's own setting.
    pub invisible_for_ms: Option<u64>,
    /// Must be the group's filter for the topic, or becomes it; `None` is content with any.
    pub tags: Option<TagFilter>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no topic {topic}")]
    TopicNotFound { topic: TopicName },
    #[error("{reason}")]
    Mismatch { reason: String },
}

/// A group as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    pub name: String,
    pub settings: GroupSettings,
    /// The topics that it has begun with, by name.
    pub topics: Vec<TopicProgress>,
}

/// How far a group is with a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicProgress {
    pub topic: String,
    /// What is not acknowledged, in flight or not.
    pub lag: u64,
    pub in_flight: u64,
    /// `None` when nothing waits for the group.
    pub oldest_unacked_age_ms: Option<u64>,
    pub dead_letters: u64,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum GroupError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no group {group}")]
    NotFound { group: GroupName },
    #[error("{reason}")]
    Mismatch { reason: String },
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ResetOffsetsError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no group {group}")]
    GroupNotFound { group: GroupName },
    #[error("there is no topic {topic}")]
    TopicNotFound { topic: TopicName },
    #[error("the topic has no queue {queue}")]
    UnknownQueue { queue: u16 },
    #[error("queue {queue} ends at offset {end}, before {offset}")]
    BeyondEnd { queue: u16, offset: u64, end: u64 },
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ExtendError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("the receipt handle is not, or no longer, good")]
    InvalidReceiptHandle,
}

/// Whether the server takes requests, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    NotReady { reason: String },
}

/// How the store keeps what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    pub flush: Flush,
    /// The size of one segment of the CommitLog, in bytes.
    pub segment_size: u64,
    pub topics: TopicCreation,
    /// How many queues a topic has that makes itself.
    pub queues_per_topic: u16,
    pub checkpoint_interval_ms: u64,
}

/// Why a data directory was not opened; nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{path} cannot be used: {cause}")]
    Refused { path: String, cause: engine::OpenError },
    #[error("the operating system gives no more threads: {0}")]
    Threads(std::io::Error),
}

impl Unavailable {
    /// The store cannot be read: whoever reads the log of the server will find out why.
    pub(super) fn of(error: impl Display) -> Self {
        Self::Failed { reason: error.to_string() }
    }
}

impl From<AppendError> for Unavailable {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Overloaded { .. } => Self::Overloaded,
            AppendError::StorageFull => Self::StorageFull,
            AppendError::TooLong { .. } | AppendError::Failed(_) => Self::of(error),
        }
    }
}

impl From<MakeError> for Unavailable {
    fn from(error: MakeError) -> Self {
        match error {
            MakeError::Append(error) => error.into(),
            MakeError::Queue(_) | MakeError::TooMany => Self::of(error),
        }
    }
}

impl From<producer::PutError> for PutError {
    fn from(error: producer::PutError) -> Self {
        match error {
            producer::PutError::TooFarAhead => Self::TooFarAhead,
            producer::PutError::NoTopic(topic) => Self::TopicNotFound { topic },
            producer::PutError::Make(error) => Self::Unavailable(error.into()),
            producer::PutError::Append(error) => Self::Unavailable(error.into()),
        }
    }
}

impl From<producer::NotFound> for LookupError {
    fn from(error: producer::NotFound) -> Self {
        match error {
            producer::NotFound::Unknown => Self::NotFound,
            producer::NotFound::Read(error) => Self::Unavailable(Unavailable::of(error)),
        }
    }
}

impl From<producer::BodyError> for LookupError {
    fn from(error: producer::BodyError) -> Self {
        match error {
            producer::BodyError::Damaged(cause) => Self::Damaged { reason: cause.to_string() },
            producer::BodyError::Read(error) => Self::Unavailable(Unavailable::of(error)),
        }
    }
}

impl From<producer::NotFound> for CancelError {
    fn from(error: producer::NotFound) -> Self {
        match error {
            producer::NotFound::Unknown => Self::NotFound,
            producer::NotFound::Read(error) => Self::Unavailable(Unavailable::of(error)),
        }
    }
}

impl From<producer::CancelError> for CancelError {
    fn from(error: producer::CancelError) -> Self {
        match error {
            producer::CancelError::Append(error) => Self::Unavailable(error.into()),
            producer::CancelError::Settled(error) => Self::Unavailable(Unavailable::of(error)),
        }
    }
}

impl From<consumer::ReceiveError> for ReceiveError {
    fn from(error: consumer::ReceiveError) -> Self {
        Self::Unavailable(match error {
            consumer::ReceiveError::Append(error) => error.into(),
            consumer::ReceiveError::Queue(_) | consumer::ReceiveError::Read(_) => {
                Unavailable::of(error)
            }
        })
    }
}

impl From<MakeError> for ReceiveError {
    fn from(error: MakeError) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<consumer::SubscribeError> for ReceiveError {
    fn from(error: consumer::SubscribeError) -> Self {
        match error {
            consumer::SubscribeError::Mismatch { .. } => {
                Self::Mismatch { reason: error.to_string() }
            }
            consumer::SubscribeError::Append(error) => Self::Unavailable(error.into()),
        }
    }
}

impl From<consumer::SetError> for GroupError {
    fn from(error: consumer::SetError) -> Self {
        match error {
            consumer::SetError::Filter { .. } => Self::Mismatch { reason: error.to_string() },
            consumer::SetError::Make(error) => Self::Unavailable(error.into()),
            consumer::SetError::Append(error) => Self::Unavailable(error.into()),
        }
    }
}

impl From<consumer::ResetError> for ResetOffsetsError {
    fn from(error: consumer::ResetError) -> Self {
        match error {
            consumer::ResetError::UnknownQueue { queue } => Self::UnknownQueue { queue },
            consumer::ResetError::BeyondEnd { queue, offset, end } => {
                Self::BeyondEnd { queue, offset, end }
            }
            consumer::ResetError::Queue(error) => Self::Unavailable(Unavailable::of(error)),
            consumer::ResetError::Append(error) => Self::Unavailable(error.into()),
        }
    }
}
