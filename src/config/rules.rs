//! The rule of each setting: its name, its default, and what is allowed.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::rule::{Rule, between, levels, one_of, size_between, time_between};
use super::{DiskReserve, LogFormat};
use crate::message::LevelTable;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;

/// Most bytes of a body: an append group of the log has at most 8 MiB, and a message must fit.
const LARGEST_BODY: u64 = 4 * MIB;

#[derive(Clone, Copy, Debug)]
pub(super) enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum FlushWord {
    Sync,
    Async,
}

const SWITCH: [(&str, Switch); 2] = [("true", Switch::On), ("false", Switch::Off)];

pub(super) const LISTEN: Rule<SocketAddr> = Rule {
    key: "listen",
    default: "127.0.0.1:7400",
    allowed: "an IP address and a port, such as 127.0.0.1:7400",
    parse: |text| text.parse().ok(),
};
pub(super) const INSECURE_LISTEN: Rule<Switch> = Rule {
    key: "insecure_listen",
    default: "false",
    allowed: "true or false",
    parse: |text| one_of(text, &SWITCH),
};
pub(super) const DATA_DIR: Rule<PathBuf> = Rule {
    key: "data_dir",
    default: "./horolog-data",
    allowed: "the path of a directory",
    parse: |text| (!text.is_empty()).then(|| PathBuf::from(text)),
};
pub(super) const FLUSH: Rule<FlushWord> = Rule {
    key: "flush",
    default: "sync",
    allowed: "sync or async",
    parse: |text| one_of(text, &[("sync", FlushWord::Sync), ("async", FlushWord::Async)]),
};
pub(super) const FLUSH_INTERVAL: Rule<u64> = Rule {
    key: "flush_interval",
    default: "200ms",
    allowed: "a duration from 1ms to 10s",
    parse: |text| time_between(text, 1, 10 * SECOND),
};
pub(super) const SEGMENT_SIZE: Rule<u64> = Rule {
    key: "segment_size",
    default: "1GiB",
    allowed: "a power of two from 1MiB to 1GiB",
    parse: |text| size_between(text, MIB, GIB).filter(|size| size.is_power_of_two()),
};
pub(super) const CHECKPOINT_INTERVAL: Rule<u64> = Rule {
    key: "checkpoint_interval",
    default: "30s",
    allowed: "a duration from 1s to 1h",
    parse: |text| time_between(text, SECOND, HOUR),
};
pub(super) const RETENTION: Rule<u64> = Rule {
    key: "retention",
    default: "72h",
    allowed: "a duration from 1s to 400d",
    parse: |text| time_between(text, SECOND, 400 * 24 * HOUR),
};
pub(super) const DISK_RESERVE: Rule<DiskReserve> = Rule {
    key: "disk_reserve",
    default: "auto",
    allowed: "auto, or a size from 0 to 1024GiB",
    parse: |text| match text {
        "auto" => Some(DiskReserve::Auto),
        size => size_between(size, 0, 1024 * GIB).map(DiskReserve::Bytes),
    },
};
pub(super) const MAX_BODY: Rule<u64> = Rule {
    key: "max_body",
    default: "4MiB",
    allowed: "a size from 1KiB to 4MiB",
    parse: |text| size_between(text, KIB, LARGEST_BODY),
};
pub(super) const MAX_CONNECTIONS: Rule<usize> = Rule {
    key: "max_connections",
    default: "20000",
    allowed: "a number from 1 to 1000000",
    parse: |text| between(text, 1, 1_000_000),
};
pub(super) const MAX_WAITING_RECEIVES: Rule<usize> = Rule {
    key: "max_waiting_receives",
    default: "10000",
    allowed: "a number from 1 to 1000000",
    parse: |text| between(text, 1, 1_000_000),
};
pub(super) const MAX_REQUEST_MEMORY: Rule<u64> = Rule {
    key: "max_request_memory",
    default: "256MiB",
    allowed: "a size from 16MiB to 64GiB",
    parse: |text| size_between(text, 16 * MIB, 64 * GIB),
};
pub(super) const MAX_HEADER: Rule<u64> = Rule {
    key: "max_header",
    default: "48KiB",
    allowed: "a size from 8KiB to 1MiB",
    parse: |text| size_between(text, 8 * KIB, MIB),
};
pub(super) const HEADER_TIMEOUT: Rule<u64> = Rule {
    key: "header_timeout",
    default: "10s",
    allowed: "a duration from 1ms to 1h",
    parse: |text| time_between(text, 1, HOUR),
};
pub(super) const IDLE_TIMEOUT: Rule<u64> = Rule {
    key: "idle_timeout",
    default: "75s",
    allowed: "a duration from 1ms to 24h",
    parse: |text| time_between(text, 1, 24 * HOUR),
};
pub(super) const BODY_TIMEOUT: Rule<u64> = Rule {
    key: "body_timeout",
    default: "30s",
    allowed: "a duration from 1ms to 1h",
    parse: |text| time_between(text, 1, HOUR),
};
pub(super) const BODY_GRACE: Rule<u64> = Rule {
    key: "body_grace",
    default: "5s",
    allowed: "a duration from 1ms to 1h",
    parse: |text| time_between(text, 1, HOUR),
};
pub(super) const MIN_BODY_RATE: Rule<u64> = Rule {
    key: "min_body_rate",
    default: "1KiB",
    allowed: "a size from 1 to 1GiB",
    parse: |text| size_between(text, 1, GIB),
};
pub(super) const ANSWER_TIMEOUT: Rule<u64> = Rule {
    key: "answer_timeout",
    default: "30s",
    allowed: "a duration from 1ms to 1h",
    parse: |text| time_between(text, 1, HOUR),
};
pub(super) const MAX_ANSWER_MEMORY: Rule<u64> = Rule {
    key: "max_answer_memory",
    default: "256MiB",
    allowed: "a size from 1MiB to 64GiB",
    parse: |text| size_between(text, MIB, 64 * GIB),
};
pub(super) const MAX_QUEUED_APPENDS: Rule<u64> = Rule {
    key: "max_queued_appends",
    default: "100000",
    allowed: "a number from 1 to 100000000",
    parse: |text| between(text, 1, 100_000_000),
};
pub(super) const MAX_QUEUED_APPEND_BYTES: Rule<u64> = Rule {
    key: "max_queued_append_bytes",
    default: "64MiB",
    allowed: "a size from 1KiB to 64GiB",
    parse: |text| size_between(text, KIB, 64 * GIB),
};
pub(super) const MAX_LEASES: Rule<usize> = Rule {
    key: "max_leases",
    default: "1000000",
    allowed: "a number from 1 to 1000000000",
    parse: |text| between(text, 1, 1_000_000_000),
};
pub(super) const MAX_LEASES_PER_QUEUE: Rule<usize> = Rule {
    key: "max_leases_per_queue",
    default: "100000",
    allowed: "a number from 1 to 10000000",
    parse: |text| between(text, 1, 10_000_000),
};
pub(super) const AUTO_CREATE_TOPICS: Rule<Switch> = Rule {
    key: "auto_create_topics",
    default: "true",
    allowed: "true or false",
    parse: |text| one_of(text, &SWITCH),
};
pub(super) const QUEUES_PER_TOPIC: Rule<u16> = Rule {
    key: "queues_per_topic",
    default: "4",
    allowed: "a number from 1 to 256",
    parse: |text| between(text, 1, 256),
};
pub(super) const DELAY_LEVELS: Rule<LevelTable> = Rule {
    key: "delay_levels",
    default: "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    allowed: "1 to 32 durations with spaces between them, each from 1ms to 36525d",
    parse: levels,
};
pub(super) const ALLOW_PRIVATE_TARGETS: Rule<Switch> = Rule {
    key: "allow_private_targets",
    default: "false",
    allowed: "true or false",
    parse: |text| one_of(text, &SWITCH),
};
pub(super) const HTTP_THREADS: Rule<usize> = Rule {
    key: "http_threads",
    default: "2",
    allowed: "a number from 1 to 256",
    parse: |text| between(text, 1, 256),
};
pub(super) const LOG_FORMAT: Rule<LogFormat> = Rule {
    key: "log_format",
    default: "text",
    allowed: "text or json",
    parse: |text| one_of(text, &[("text", LogFormat::Text), ("json", LogFormat::Json)]),
};
pub(super) const LOG_LEVEL: Rule<tracing::Level> = Rule {
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
