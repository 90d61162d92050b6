//! Settings: from flags, then the environment, then a file, then defaults, all checked at start.
//!
//! Every setting has one name in three spellings: `--data-dir`, `HOROLOG_DATA_DIR`, and `data_dir`
//! in the file. They are read as text into [`Given`], so that each is parsed and refused in one
//! place, [`Config::new`], wherever it came from.

mod error;
mod given;
mod rule;

use std::net::SocketAddr;
use std::path::PathBuf;

pub use error::{ConfigError, SettingError};
pub use given::Given;

use rule::{Rule, between, levels, one_of, size_between, time_between};

use crate::message::LevelTable;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;

/// Most bytes of a body: an append group of the log has at most 8 MiB, and a message must fit.
const LARGEST_BODY: u64 = 4 * MIB;

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

/// The settings of a server, all of them good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub listen: SocketAddr,
    pub exposure: Exposure,
    pub data_dir: PathBuf,
    pub flush: Flush,
    pub segment_size: u64,
    pub checkpoint_interval_ms: u64,
    pub max_body: usize,
    pub max_connections: usize,
    pub max_waiting_receives: usize,
    pub max_request_memory: usize,
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
        let listen = LISTEN.read(given.listen.as_deref())?;
        let insecure = INSECURE_LISTEN.read(given.insecure_listen.as_deref())?;
        let exposure = match (listen.ip().is_loopback(), insecure) {
            (true, _) => Exposure::Loopback,
            (false, Switch::On) => Exposure::Insecure,
            (false, Switch::Off) => return Err(ConfigError::Exposed { listen }),
        };
        let interval_ms = FLUSH_INTERVAL.read(given.flush_interval.as_deref())?;
        let segment_size = SEGMENT_SIZE.read(given.segment_size.as_deref())?;
        let max_body = MAX_BODY.read(given.max_body.as_deref())?;
        if max_body > segment_size / 2 {
            return Err(ConfigError::BodyLargerThanSegment { max_body, segment_size });
        }
        Ok(Self {
            listen,
            exposure,
            data_dir: DATA_DIR.read(given.data_dir.as_deref())?,
            flush: match FLUSH.read(given.flush.as_deref())? {
                FlushWord::Sync => Flush::Sync,
                FlushWord::Async => Flush::Async { interval_ms },
            },
            segment_size,
            checkpoint_interval_ms: CHECKPOINT_INTERVAL
                .read(given.checkpoint_interval.as_deref())?,
            max_body: in_memory(max_body),
            max_connections: MAX_CONNECTIONS.read(given.max_connections.as_deref())?,
            max_waiting_receives: MAX_WAITING_RECEIVES
                .read(given.max_waiting_receives.as_deref())?,
            max_request_memory: in_memory(
                MAX_REQUEST_MEMORY.read(given.max_request_memory.as_deref())?,
            ),
            topics: match AUTO_CREATE_TOPICS.read(given.auto_create_topics.as_deref())? {
                Switch::On => TopicCreation::Automatic,
                Switch::Off => TopicCreation::Explicit,
            },
            queues_per_topic: QUEUES_PER_TOPIC.read(given.queues_per_topic.as_deref())?,
            delay_levels: DELAY_LEVELS.read(given.delay_levels.as_deref())?,
            private_targets: match ALLOW_PRIVATE_TARGETS
                .read(given.allow_private_targets.as_deref())?
            {
                Switch::On => PrivateTargets::Allowed,
                Switch::Off => PrivateTargets::Refused,
            },
            http_threads: HTTP_THREADS.read(given.http_threads.as_deref())?,
            log_format: LOG_FORMAT.read(given.log_format.as_deref())?,
            log_level: LOG_LEVEL.read(given.log_level.as_deref())?,
        })
    }
}

fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[derive(Clone, Copy, Debug)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug)]
enum FlushWord {
    Sync,
    Async,
}

const SWITCH: [(&str, Switch); 2] = [("true", Switch::On), ("false", Switch::Off)];

const LISTEN: Rule<SocketAddr> = Rule {
    key: "listen",
    default: "127.0.0.1:7400",
    allowed: "an IP address and a port, such as 127.0.0.1:7400",
    parse: |text| text.parse().ok(),
};
const INSECURE_LISTEN: Rule<Switch> = Rule {
    key: "insecure_listen",
    default: "false",
    allowed: "true or false",
    parse: |text| one_of(text, &SWITCH),
};
const DATA_DIR: Rule<PathBuf> = Rule {
    key: "data_dir",
    default: "./horolog-data",
    allowed: "the path of a directory",
    parse: |text| (!text.is_empty()).then(|| PathBuf::from(text)),
};
const FLUSH: Rule<FlushWord> = Rule {
    key: "flush",
    default: "sync",
    allowed: "sync or async",
    parse: |text| one_of(text, &[("sync", FlushWord::Sync), ("async", FlushWord::Async)]),
};
const FLUSH_INTERVAL: Rule<u64> = Rule {
    key: "flush_interval",
    default: "200ms",
    allowed: "a duration from 1ms to 10s",
    parse: |text| time_between(text, 1, 10 * SECOND),
};
const SEGMENT_SIZE: Rule<u64> = Rule {
    key: "segment_size",
    default: "1GiB",
    allowed: "a power of two from 1MiB to 1GiB",
    parse: |text| size_between(text, MIB, GIB).filter(|size| size.is_power_of_two()),
};
const CHECKPOINT_INTERVAL: Rule<u64> = Rule {
    key: "checkpoint_interval",
    default: "30s",
    allowed: "a duration from 1s to 1h",
    parse: |text| time_between(text, SECOND, HOUR),
};
const MAX_BODY: Rule<u64> = Rule {
    key: "max_body",
    default: "4MiB",
    allowed: "a size from 1KiB to 4MiB",
    parse: |text| size_between(text, KIB, LARGEST_BODY),
};
const MAX_CONNECTIONS: Rule<usize> = Rule {
    key: "max_connections",
    default: "20000",
    allowed: "a number from 1 to 1000000",
    parse: |text| between(text, 1, 1_000_000),
};
const MAX_WAITING_RECEIVES: Rule<usize> = Rule {
    key: "max_waiting_receives",
    default: "10000",
    allowed: "a number from 1 to 1000000",
    parse: |text| between(text, 1, 1_000_000),
};
const MAX_REQUEST_MEMORY: Rule<u64> = Rule {
    key: "max_request_memory",
    default: "256MiB",
    allowed: "a size from 16MiB to 64GiB",
    parse: |text| size_between(text, 16 * MIB, 64 * GIB),
};
const AUTO_CREATE_TOPICS: Rule<Switch> = Rule {
    key: "auto_create_topics",
    default: "true",
    allowed: "true or false",
    parse: |text| one_of(text, &SWITCH),
};
const QUEUES_PER_TOPIC: Rule<u16> = Rule {
    key: "queues_per_topic",
    default: "4",
    allowed: "a number from 1 to 256",
    parse: |text| between(text, 1, 256),
};
const DELAY_LEVELS: Rule<LevelTable> = Rule {
    key: "delay_levels",
    default: "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    allowed: "1 to 32 durations with spaces between them, each from 1ms to 36525d",
    parse: levels,
};
const ALLOW_PRIVATE_TARGETS: Rule<Switch> = Rule {
    key: "allow_private_targets",
    default: "false",
    allowed: "true or false",
    parse: |text| one_of(text, &SWITCH),
};
const HTTP_THREADS: Rule<usize> = Rule {
    key: "http_threads",
    default: "2",
    allowed: "a number from 1 to 256",
    parse: |text| between(text, 1, 256),
};
const LOG_FORMAT: Rule<LogFormat> = Rule {
    key: "log_format",
    default: "text",
    allowed: "text or json",
    parse: |text| one_of(text, &[("text", LogFormat::Text), ("json", LogFormat::Json)]),
};
const LOG_LEVEL: Rule<tracing::Level> = Rule {
    key: "log_level",
    default: "info",
    allowed: "error, warn, info, debug or trace",
    parse: |text| {
        one_of(
            text,
            &[
                ("error", tracing::Level::ERROR),
                ("warn", tracing::Level::WARN),
                ("info", tracing::Level::INFO),
                ("debug", tracing::Level::DEBUG),
                ("trace", tracing::Level::TRACE),
            ],
        )
    },
};

#[cfg(test)]
mod tests;
