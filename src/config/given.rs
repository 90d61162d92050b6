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
            max_body: self.max_body.or(file.max_body),
            max_connections: self.max_connections.or(file.max_connections),
            max_waiting_receives: self.max_waiting_receives.or(file.max_waiting_receives),
            max_request_memory: self.max_request_memory.or(file.max_request_memory),
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
