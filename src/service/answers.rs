//! What the service answers, and why it does not.

use std::fmt::Display;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::commitlog::AppendError;
use crate::config::{DiskReserve, Flush, LeaseBounds, QueuedAppends, TopicCreation};
use crate::consumer;
pub use crate::consumer::{AckOutcome, Extended, Received};
use crate::engine;
use crate::message::record::{DamageReason, DeathReason};
use crate::message::{
    Attributes, GroupName, GroupSettings, LevelTable, State, TagFilter, TopicName, TopicSettings,
};
use crate::producer::{self, Refusal};
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

/// What became of a request that puts messages, item by item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Puts {
    pub items: Vec<Result<Accepted, Refusal>>,
    /// The request came again, under its idempotency key, and is answered as the first time.
    pub replayed: bool,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum PutError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The only message, or one that its whole batch stands or falls with.
    #[error("{refusal}")]
    Refused { index: usize, refusal: Refusal },
    #[error("there is no topic {topic}")]
    TopicNotFound { topic: TopicName },
    #[error("the idempotency key was used for another request within the last 24 hours")]
    KeyReused,
    #[error("the messages do not fit one group of the log, which has 8 MiB")]
    TooLarge,
}

/// What is known of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageView {
    pub id: String,
    pub topic: String,
    pub state: State,
    pub born_at: Timestamp,
    pub deliver_at: Timestamp,
    /// When it fired; `None` for one that has not, or was ready at once.
    pub fired_at: Option<Timestamp>,
    pub attributes: Attributes,
    /// The key under which it was put as a timer.
    pub timer_key: Option<String>,
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

/// Why a message that was asked to change did not.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ChangeError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no message with this id")]
    NotFound,
    #[error("the message was already delivered")]
    AlreadyDelivered,
    #[error("the message was already cancelled")]
    AlreadyCancelled,
    #[error("the moment lies more than 100 years ahead")]
    TooFarAhead,
    #[error("the transaction of the message is not decided")]
    TransactionOpen,
}

/// Some of the messages with a key, newest first.
#[derive(Clone, Debug)]
pub struct SearchPage {
    pub messages: Vec<MessageView>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum SearchError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no topic {topic}")]
    TopicNotFound { topic: TopicName },
    #[error("this is no cursor of this search")]
    BadCursor,
}

/// A dead letter of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterView {
    pub message: MessageView,
    pub queue: u16,
    pub queue_offset: u64,
    pub attempts: u32,
    pub reason: DeathReason,
    pub dead_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct DeadLetterPage {
    pub letters: Vec<DeadLetterView>,
    pub next_cursor: Option<String>,
}

/// Why dead letters were not listed or redriven.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DeadLettersError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no group {group}")]
    GroupNotFound { group: GroupName },
    #[error("there is no topic {topic}")]
    TopicNotFound { topic: TopicName },
    #[error("the cursor is not one that this list has given")]
    InvalidCursor,
}

/// A timer that is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerAccepted {
    pub accepted: Accepted,
    /// The id of the one that waited under the key before.
    pub replaced: Option<String>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum TimerError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error(transparent)]
    Put(#[from] PutError),
    #[error("a timer waits under the key already")]
    Exists,
    #[error("no timer was put under the key")]
    NotFound,
    #[error("the timer was already delivered")]
    AlreadyDelivered,
}

/// What is known of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicView {
    pub name: String,
    pub settings: TopicSettings,
    /// Messages that wait for their moment.
    pub pending: u64,
    /// Of each queue the first offset that is kept, and the next to be given.
    pub queues: Vec<(u64, u64)>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum TopicError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no topic {topic}")]
    NotFound { topic: TopicName },
    #[error("topic {topic} has a type, which cannot be changed")]
    TypeFixed { topic: TopicName },
    #[error("topic {topic} has {has} queues; queues can only be added, and to a FIFO topic none")]
    QueuesFixed { topic: TopicName, has: u16 },
    #[error(
        "{pending} messages wait for their moment and {unacked} for an acknowledgement; delete with \
         force to lose them"
    )]
    NotEmpty { pending: u64, unacked: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
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
    #[error("as many messages are out as may, to be acknowledged first; try again")]
    TooManyOut,
}

/// A damaged stretch of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    pub file: String,
    pub at: u64,
    pub length: u64,
    pub reason: DamageReason,
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
    #[error("{reason}")]
    OrderFixed { reason: String },
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
    /// It takes requests, and not all of them, or not as fast as it should.
    Degraded {
        part: &'static str,
        reason: String,
    },
    NotReady {
        reason: String,
    },
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
    /// How long messages wait for their readers on a topic that does not say so itself.
    pub retention_ms: u64,
    /// What of the disk is kept free for what was accepted.
    pub disk_reserve: DiskReserve,
    pub levels: LevelTable,
    pub queued_appends: QueuedAppends,
    pub leases: LeaseBounds,
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
            AppendError::Overloaded { .. } | AppendError::IndexBehind => Self::Overloaded,
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
            producer::PutError::Refused { index, refusal } => Self::Refused { index, refusal },
            producer::PutError::NoTopic(topic) => Self::TopicNotFound { topic },
            producer::PutError::KeyReused => Self::KeyReused,
            producer::PutError::Look(error) => Self::Unavailable(Unavailable::of(error)),
            producer::PutError::Make(error) => Self::Unavailable(error.into()),
            producer::PutError::Append(AppendError::TooLong { .. }) => Self::TooLarge,
            producer::PutError::Append(error) => Self::Unavailable(error.into()),
        }
    }
}

impl From<producer::PutError> for TimerError {
    fn from(error: producer::PutError) -> Self {
        Self::Put(error.into())
    }
}

impl From<producer::LookError> for Unavailable {
    fn from(error: producer::LookError) -> Self {
        Self::of(error)
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

impl From<producer::NotFound> for ChangeError {
    fn from(error: producer::NotFound) -> Self {
        match error {
            producer::NotFound::Unknown => Self::NotFound,
            producer::NotFound::Read(error) => Self::Unavailable(Unavailable::of(error)),
        }
    }
}

impl From<producer::ChangeError> for ChangeError {
    fn from(error: producer::ChangeError) -> Self {
        match error {
            producer::ChangeError::Unknown => Self::NotFound,
            producer::ChangeError::TooFarAhead => Self::TooFarAhead,
            producer::ChangeError::TransactionOpen => Self::TransactionOpen,
            producer::ChangeError::Look(error) => Self::Unavailable(Unavailable::of(error)),
            producer::ChangeError::Append(error) => Self::Unavailable(error.into()),
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
            consumer::SetError::OrderFixed => Self::OrderFixed { reason: error.to_string() },
            consumer::SetError::Filter { .. } => Self::Mismatch { reason: error.to_string() },
            consumer::SetError::Make(error) => Self::Unavailable(error.into()),
            consumer::SetError::Append(error) => Self::Unavailable(error.into()),
        }
    }
}

impl From<consumer::NackError> for Unavailable {
    fn from(error: consumer::NackError) -> Self {
        match error {
            consumer::NackError::Append(error) => error.into(),
            consumer::NackError::Make(error) => error.into(),
            consumer::NackError::Origin(error) => Self::of(error),
        }
    }
}

impl From<consumer::DeadLettersError> for Unavailable {
    fn from(error: consumer::DeadLettersError) -> Self {
        match error {
            consumer::DeadLettersError::Append(error) => error.into(),
            consumer::DeadLettersError::Make(error) => error.into(),
            consumer::DeadLettersError::Queue(_) | consumer::DeadLettersError::Origin(_) => {
                Self::of(error)
            }
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
