//! Settings as they were written, before anybody looked whether they make sense.

use clap::Args;
use serde::{Deserialize, Deserializer};

use super::error::ConfigError;

/// What was given on the command line, in the environment, or in a file.
#[derive(Args, Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Given {
    /// Address and port of the HTTP API [default: 127.0.0.1:7400]
    #[arg(long, env = "HOROLOG_LISTEN", value_name = "ADDRESS:PORT")]
    #[serde(deserialize_with = "scalar")]
    pub listen: Option<String>,

    /// Allow an address that others can reach, without authentication
    #[arg(
        long,
        env = "HOROLOG_INSECURE_LISTEN",
        value_name = "true|false",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    #[serde(deserialize_with = "scalar")]
    pub insecure_listen: Option<String>,

    /// Where everything is kept [default: ./horolog-data]
    #[arg(long, env = "HOROLOG_DATA_DIR", value_name = "DIR")]
    #[serde(deserialize_with = "scalar")]
    pub data_dir: Option<String>,

    /// Answer a write when it is on the disk (sync), or at once (async) [default: sync]
    #[arg(long, env = "HOROLOG_FLUSH", value_name = "sync|async")]
    #[serde(deserialize_with = "scalar")]
    pub flush: Option<String>,

    /// With flush = async, how often the disk is brought up to date [default: 200ms]
    #[arg(long, env = "HOROLOG_FLUSH_INTERVAL", value_name = "TIME")]
    #[serde(deserialize_with = "scalar")]
    pub flush_interval: Option<String>,

    /// Size of one file of the CommitLog, a power of two [default: 1GiB]
    #[arg(long, env = "HOROLOG_SEGMENT_SIZE", value_name = "SIZE")]
    #[serde(deserialize_with = "scalar")]
    pub segment_size: Option<String>,

    /// How often a checkpoint is written, which makes the next start shorter [default: 30s]
    #[arg(long, env = "HOROLOG_CHECKPOINT_INTERVAL", value_name = "TIME")]
    #[serde(deserialize_with = "scalar")]
    pub checkpoint_interval: Option<String>,

    /// How long a delivered message waits for its readers, where its topic does not say so [default: 72h]
    #[arg(long, env = "HOROLOG_RETENTION", value_name = "TIME")]
    #[serde(deserialize_with = "scalar")]
    pub retention: Option<String>,

    /// Free space below which new messages are refused with 507, so that what was accepted has room to go on; auto goes by the size of the disk [default: auto]
    #[arg(long, env = "HOROLOG_DISK_RESERVE", value_name = "auto|SIZE")]
    #[serde(deserialize_with = "scalar")]
    pub disk_reserve: Option<String>,

    /// Largest body of a message, at most 4MiB [default: 4MiB]
    #[arg(long, env = "HOROLOG_MAX_BODY", value_name = "SIZE")]
    #[serde(deserialize_with = "scalar")]
    pub max_body: Option<String>,

    /// Most connections at a time; further ones are answered 503 [default: 20000]
    #[arg(long, env = "HOROLOG_MAX_CONNECTIONS", value_name = "COUNT")]
    #[serde(deserialize_with = "scalar")]
    pub max_connections: Option<String>,

    /// Most receives that wait at a time; further ones are answered 429 [default: 10000]
    #[arg(long, env = "HOROLOG_MAX_WAITING_RECEIVES", value_name = "COUNT")]
    #[serde(deserialize_with = "scalar")]
    pub max_waiting_receives: Option<String>,

    /// Most memory for request bodies; beyond it requests are answered 503 [default: 256MiB]
    #[arg(long, env = "HOROLOG_MAX_REQUEST_MEMORY", value_name = "SIZE")]
    #[serde(deserialize_with = "scalar")]
    pub max_request_memory: Option<String>,

    /// Most bytes of request line and headers together; beyond it, 431 [default: 48KiB]
    #[arg(long, env = "HOROLOG_MAX_HEADER", value_name = "SIZE")]
    #[serde(deserialize_with = "scalar")]
    pub max_header: Option<String>,

    /// How long the head of a request may be on its way; then 408 [default: 10s]
    #[arg(long, env = "HOROLOG_HEADER_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "scalar")]
    pub header_timeout: Option<String>,

    /// How long a connection may wait for its next request; then it is closed [default: 75s]
    #[arg(long, env = "HOROLOG_IDLE_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "scalar")]
    pub idle_timeout: Option<String>,

    /// How long the body of a request may be on its way; then 408 [default: 30s]
    #[arg(long, env = "HOROLOG_BODY_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "scalar")]
    pub body_timeout: Option<String>,

    /// How long a body may come as slowly as it likes; then the least rate counts [default: 5s]
    #[arg(long, env = "HOROLOG_BODY_GRACE", value_name = "TIME")]
    #[serde(deserialize_with = "scalar")]
    pub body_grace: Option<String>,

    /// The least bytes a second of a body, counted after the grace; below it, 408 [default: 1KiB]
    #[arg(long, env = "HOROLOG_MIN_BODY_RATE", value_name = "SIZE")]
    #[serde(deserialize_with = "scalar")]
    pub min_body_rate: Option<String>,

    /// How long a client may read nothing of its answer; then the connection is closed [default: 30s]
    #[arg(long, env = "HOROLOG_ANSWER_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "scalar")]
    pub answer_timeout: Option<String>,

    /// Most answers with messages in memory; beyond it requests are answered 503 [default: 256MiB]
    #[arg(long, env = "HOROLOG_MAX_ANSWER_MEMORY", value_name = "SIZE")]
    #[serde(deserialize_with = "scalar")]
    pub max_answer_memory: Option<String>,

    /// Most records that wait for the disk; beyond it, 503 for new messages [default: 100000]
    #[arg(long, env = "HOROLOG_MAX_QUEUED_APPENDS", value_name = "COUNT")]
    #[serde(deserialize_with = "scalar")]
    pub max_queued_appends: Option<String>,

    /// Most bytes that wait for the disk; beyond it, 503 for new messages [default: 64MiB]
    #[arg(long, env = "HOROLOG_MAX_QUEUED_APPEND_BYTES", value_name = "SIZE")]
    #[serde(deserialize_with = "scalar")]
    pub max_queued_append_bytes: Option<String>,

    /// Most messages that are out at a time; beyond it receives are answered 429 [default: 1000000]
    #[arg(long, env = "HOROLOG_MAX_LEASES", value_name = "COUNT")]
    #[serde(deserialize_with = "scalar")]
    pub max_leases: Option<String>,

    /// Most messages of one queue that are out to one group; then 429 [default: 100000]
    #[arg(long, env = "HOROLOG_MAX_LEASES_PER_QUEUE", value_name = "COUNT")]
    #[serde(deserialize_with = "scalar")]
    pub max_leases_per_queue: Option<String>,

    /// Whether a put on an unknown topic makes the topic [default: true]
    #[arg(long, env = "HOROLOG_AUTO_CREATE_TOPICS", value_name = "true|false")]
    #[serde(deserialize_with = "scalar")]
    pub auto_create_topics: Option<String>,

    /// How many queues a topic gets that makes itself [default: 4]
    #[arg(long, env = "HOROLOG_QUEUES_PER_TOPIC", value_name = "COUNT")]
    #[serde(deserialize_with = "scalar")]
    pub queues_per_topic: Option<String>,

    /// What the delay levels delay by, from level 1 on [default: 1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h]
    #[arg(long, env = "HOROLOG_DELAY_LEVELS", value_name = "TIMES")]
    #[serde(deserialize_with = "scalar")]
    pub delay_levels: Option<String>,

    /// Call URLs on loopback, private and link-local addresses, too, also by plain http [default: false]
    #[arg(
        long,
        env = "HOROLOG_ALLOW_PRIVATE_TARGETS",
        value_name = "true|false",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    #[serde(deserialize_with = "scalar")]
    pub allow_private_targets: Option<String>,

    /// Threads that serve HTTP; storage has its own [default: 2]
    #[arg(long, env = "HOROLOG_HTTP_THREADS", value_name = "COUNT")]
    #[serde(deserialize_with = "scalar")]
    pub http_threads: Option<String>,

    /// How log lines look [default: text]
    #[arg(long, env = "HOROLOG_LOG_FORMAT", value_name = "text|json")]
    #[serde(deserialize_with = "scalar")]
    pub log_format: Option<String>,

    /// The least important lines to log: error, warn, info, debug or trace [default: info]
    #[arg(long, env = "HOROLOG_LOG_LEVEL", value_name = "LEVEL")]
    #[serde(deserialize_with = "scalar")]
    pub log_level: Option<String>,
}

impl Given {
    /// The settings in the text of a TOML file.
    ///
    /// # Errors
    ///
    /// When it is not TOML, or has a key that is no setting.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text)
            .map_err(|error| ConfigError::File { reason: error.to_string().trim_end().to_owned() })
    }

    /// These settings, and those of `file` where they have none.
    #[must_use]
    pub fn or(self, file: Self) -> Self {
        Self {
            listen: self.listen.or(file.listen),
            insecure_listen: self.insecure_listen.or(file.insecure_listen),
            data_dir: self.data_dir.or(file.data_dir),
            flush: self.flush.or(file.flush),
            flush_interval: self.flush_interval.or(file.flush_interval),
            segment_size: self.segment_size.or(file.segment_size),
            checkpoint_interval: self.checkpoint_interval.or(file.checkpoint_interval),
            retention: self.retention.or(file.retention),
            disk_reserve: self.disk_reserve.or(file.disk_reserve),
            max_body: self.max_body.or(file.max_body),
            max_connections: self.max_connections.or(file.max_connections),
            max_waiting_receives: self.max_waiting_receives.or(file.max_waiting_receives),
            max_request_memory: self.max_request_memory.or(file.max_request_memory),
            max_header: self.max_header.or(file.max_header),
            header_timeout: self.header_timeout.or(file.header_timeout),
            idle_timeout: self.idle_timeout.or(file.idle_timeout),
            body_timeout: self.body_timeout.or(file.body_timeout),
            body_grace: self.body_grace.or(file.body_grace),
            min_body_rate: self.min_body_rate.or(file.min_body_rate),
            answer_timeout: self.answer_timeout.or(file.answer_timeout),
            max_answer_memory: self.max_answer_memory.or(file.max_answer_memory),
            max_queued_appends: self.max_queued_appends.or(file.max_queued_appends),
            max_queued_append_bytes: self.max_queued_append_bytes.or(file.max_queued_append_bytes),
            max_leases: self.max_leases.or(file.max_leases),
            max_leases_per_queue: self.max_leases_per_queue.or(file.max_leases_per_queue),
            auto_create_topics: self.auto_create_topics.or(file.auto_create_topics),
            queues_per_topic: self.queues_per_topic.or(file.queues_per_topic),
            delay_levels: self.delay_levels.or(file.delay_levels),
            allow_private_targets: self.allow_private_targets.or(file.allow_private_targets),
            http_threads: self.http_threads.or(file.http_threads),
            log_format: self.log_format.or(file.log_format),
            log_level: self.log_level.or(file.log_level),
        }
    }
}

/// In a file a number or a truth value may stand without quotes.
fn scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "text, a whole number, true or false")]
    enum Scalar {
        Text(String),
        Number(i64),
        Truth(bool),
    }
    Ok(Some(match Scalar::deserialize(deserializer)? {
        Scalar::Text(text) => text,
        Scalar::Number(number) => number.to_string(),
        Scalar::Truth(truth) => truth.to_string(),
    }))
}
