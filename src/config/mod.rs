//! Settings: from flags, then the environment, then a file, then defaults, all checked at start.
//!
//! Every setting has one name in three spellings: `--data-dir`, `HOROLOG_DATA_DIR`, and `data_dir`
//! in the file. They are read as text into [`Given`], so that each is parsed and refused in one
//! place, [`Config::new`], wherever it came from.

mod error;
mod given;
mod rule;
mod rules;

use std::net::SocketAddr;
use std::path::PathBuf;

pub use error::{ConfigError, SettingError};
pub use given::Given;

use rules::{FlushWord, Switch};

use crate::message::LevelTable;

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// After it is on the disk.
    Sync,
    /// At once; what was accepted reaches the disk at most this much later.
    Async { interval_ms: u64 },
}

/// What a put on an unknown topic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicCreation {
    /// Makes the topic.
    Automatic,
    /// Is refused.
    Explicit,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// Who can reach the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// This machine only.
    Loopback,
    /// Anyone on the network, without authentication, as `--insecure-listen` asked for.
    Insecure,
}

/// What becomes of a URL that leads into a network of its owner, or to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateTargets {
    /// It is not called.
    Refused,
    /// It is called like any other, and may be plain `http`.
    Allowed,
}

/// How long clients may take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For the head of a request, from its first byte.
    pub header_ms: u64,
    /// For the next request of a connection to begin.
    pub idle_ms: u64,
    /// For the body of a request.
    pub body_ms: u64,
    /// For a body, before the least rate counts.
    pub body_grace_ms: u64,
    /// Bytes a second.
    pub least_body_rate: u64,
    /// For the next byte of an answer to be taken.
    pub answer_ms: u64,
}

/// What may wait for the disk before new messages are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedAppends {
    pub records: u64,
    pub bytes: u64,
}

impl Default for QueuedAppends {
    fn default() -> Self {
        Self { records: 100_000, bytes: 64 << 20 }
    }
}

/// How much of the disk is kept free for what was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskReserve {
    /// By the size of the disk and of the log's files.
    Auto,
    Bytes(u64),
}

/// How many messages may be out, or waiting in memory to be handed out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBounds {
    /// Of the server.
    pub all: usize,
    /// Of one queue, to one group.
    pub per_queue: usize,
}

impl Default for LeaseBounds {
    fn default() -> Self {
        Self { all: 1_000_000, per_queue: 100_000 }
    }
}

/// The settings of a server, all of them good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub listen: SocketAddr,
    pub exposure: Exposure,
    pub data_dir: PathBuf,
    pub flush: Flush,
    pub segment_size: u64,
    pub checkpoint_interval_ms: u64,
    pub retention_ms: u64,
    pub disk_reserve: DiskReserve,
    pub max_body: usize,
    pub max_connections: usize,
    pub max_waiting_receives: usize,
    pub max_request_memory: usize,
    pub max_answer_memory: usize,
    pub max_header: usize,
    pub deadlines: Deadlines,
    pub queued_appends: QueuedAppends,
    pub leases: LeaseBounds,
    pub topics: TopicCreation,
    pub queues_per_topic: u16,
    pub delay_levels: LevelTable,
    pub private_targets: PrivateTargets,
    pub http_threads: usize,
    pub log_format: LogFormat,
    pub log_level: tracing::Level,
}

impl Config {
    /// Checks every setting; what was not given has its default.
    ///
    /// # Errors
    ///
    /// The first setting that cannot be used, with its value and what is allowed.
    pub fn new(given: &Given) -> Result<Self, ConfigError> {
        let listen = rules::LISTEN.read(given.listen.as_deref())?;
        let insecure = rules::INSECURE_LISTEN.read(given.insecure_listen.as_deref())?;
        let exposure = match (listen.ip().is_loopback(), insecure) {
            (true, _) => Exposure::Loopback,
            (false, Switch::On) => Exposure::Insecure,
            (false, Switch::Off) => return Err(ConfigError::Exposed { listen }),
        };
        let interval_ms = rules::FLUSH_INTERVAL.read(given.flush_interval.as_deref())?;
        let segment_size = rules::SEGMENT_SIZE.read(given.segment_size.as_deref())?;
        let max_body = rules::MAX_BODY.read(given.max_body.as_deref())?;
        if max_body > segment_size / 2 {
            return Err(ConfigError::BodyLargerThanSegment { max_body, segment_size });
        }
        Ok(Self {
            listen,
            exposure,
            data_dir: rules::DATA_DIR.read(given.data_dir.as_deref())?,
            flush: match rules::FLUSH.read(given.flush.as_deref())? {
                FlushWord::Sync => Flush::Sync,
                FlushWord::Async => Flush::Async { interval_ms },
            },
            segment_size,
            checkpoint_interval_ms: rules::CHECKPOINT_INTERVAL
                .read(given.checkpoint_interval.as_deref())?,
            retention_ms: rules::RETENTION.read(given.retention.as_deref())?,
            disk_reserve: rules::DISK_RESERVE.read(given.disk_reserve.as_deref())?,
            max_body: in_memory(max_body),
            max_connections: rules::MAX_CONNECTIONS.read(given.max_connections.as_deref())?,
            max_waiting_receives: rules::MAX_WAITING_RECEIVES
                .read(given.max_waiting_receives.as_deref())?,
            max_request_memory: in_memory(
                rules::MAX_REQUEST_MEMORY.read(given.max_request_memory.as_deref())?,
            ),
            max_answer_memory: in_memory(
                rules::MAX_ANSWER_MEMORY.read(given.max_answer_memory.as_deref())?,
            ),
            max_header: in_memory(rules::MAX_HEADER.read(given.max_header.as_deref())?),
            deadlines: deadlines(given)?,
            queued_appends: QueuedAppends {
                records: rules::MAX_QUEUED_APPENDS.read(given.max_queued_appends.as_deref())?,
                bytes: rules::MAX_QUEUED_APPEND_BYTES
                    .read(given.max_queued_append_bytes.as_deref())?,
            },
            leases: LeaseBounds {
                all: rules::MAX_LEASES.read(given.max_leases.as_deref())?,
                per_queue: rules::MAX_LEASES_PER_QUEUE
                    .read(given.max_leases_per_queue.as_deref())?,
            },
            topics: match rules::AUTO_CREATE_TOPICS.read(given.auto_create_topics.as_deref())? {
                Switch::On => TopicCreation::Automatic,
                Switch::Off => TopicCreation::Explicit,
            },
            queues_per_topic: rules::QUEUES_PER_TOPIC.read(given.queues_per_topic.as_deref())?,
            delay_levels: rules::DELAY_LEVELS.read(given.delay_levels.as_deref())?,
            private_targets: match rules::ALLOW_PRIVATE_TARGETS
                .read(given.allow_private_targets.as_deref())?
            {
                Switch::On => PrivateTargets::Allowed,
                Switch::Off => PrivateTargets::Refused,
            },
            http_threads: rules::HTTP_THREADS.read(given.http_threads.as_deref())?,
            log_format: rules::LOG_FORMAT.read(given.log_format.as_deref())?,
            log_level: rules::LOG_LEVEL.read(given.log_level.as_deref())?,
        })
    }
}

fn deadlines(given: &Given) -> Result<Deadlines, SettingError> {
    Ok(Deadlines {
        header_ms: rules::HEADER_TIMEOUT.read(given.header_timeout.as_deref())?,
        idle_ms: rules::IDLE_TIMEOUT.read(given.idle_timeout.as_deref())?,
        body_ms: rules::BODY_TIMEOUT.read(given.body_timeout.as_deref())?,
        body_grace_ms: rules::BODY_GRACE.read(given.body_grace.as_deref())?,
        least_body_rate: rules::MIN_BODY_RATE.read(given.min_body_rate.as_deref())?,
        answer_ms: rules::ANSWER_TIMEOUT.read(given.answer_timeout.as_deref())?,
    })
}

fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
