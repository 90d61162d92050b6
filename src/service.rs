//! Horolog as one value: what every door (HTTP now, others later) calls.
//!
//! Each call answers when what it decided is durable.

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::message::{Attributes, GroupName, NewMessage, State, TopicName};

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
}

/// One message, leased to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub message_id: String,
    pub topic: String,
    pub queue: u16,
    pub queue_offset: u64,
    pub attributes: Attributes,
    pub body: Bytes,
    pub born_at: Timestamp,
    pub deliver_at: Timestamp,
    pub fired_at: Option<Timestamp>,
    /// From 1.
    pub attempt: u32,
    pub receipt_handle: String,
    pub invisible_until: Timestamp,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("there is no topic {topic}")]
    TopicNotFound { topic: TopicName },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOutcome {
    Ok,
    InvalidReceiptHandle,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extended {
    pub invisible_until: Timestamp,
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

#[derive(Clone, Debug)]
pub struct Service {}

impl Service {
    pub async fn put(&self, topic: &TopicName, message: NewMessage) -> Result<Accepted, PutError>;
    pub async fn message(&self, id: &str, body: WithBody) -> Result<MessageView, LookupError>;
    pub async fn cancel(&self, id: &str) -> Result<(), CancelError>;
    /// Dropping the future gives nothing away: a lease is granted only when the answer is taken.
    pub async fn receive(&self, group: &GroupName, request: ReceiveRequest) -> Result<Vec<Received>, ReceiveError>;
    /// One outcome a handle, in order.
    pub async fn ack(&self, group: &GroupName, handles: &[String]) -> Result<Vec<AckOutcome>, Unavailable>;
    pub async fn extend(&self, group: &GroupName, handle: &str, invisible_for_ms: u64) -> Result<Extended, ExtendError>;
    pub fn readiness(&self) -> Readiness;
    /// Makes waiting receives answer with nothing and refuses new work.
    pub fn drain(&self);
}
