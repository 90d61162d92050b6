//! Why the settings cannot be used. Each message names the setting in all its spellings, since the
//! reader may have set it by any of them.

use std::fmt;
use std::net::SocketAddr;

/// A setting has a value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    pub key: &'static str,
    pub value: String,
    pub allowed: &'static str,
}

impl fmt::Display for SettingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, allowed } = self;
        let flag = key.replace('_', "-");
        let variable = key.to_ascii_uppercase();
        write!(
            formatter,
            "{key} must be {allowed}, not {value:?} \
             (set by --{flag}, HOROLOG_{variable}, or {key} in the settings file)"
        )
    }
}

impl std::error::Error for SettingError {}

/// Why a server cannot be started with these settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error(
        "listen is {listen}, which others on the network can reach, and there is no \
         authentication: listen on 127.0.0.1, or accept that with --insecure-listen \
         (HOROLOG_INSECURE_LISTEN=true, or insecure_listen = true in the settings file)"
    )]
    Exposed { listen: SocketAddr },
    #[error(
        "max_body is {max_body} bytes, which is more than half of segment_size \
         ({segment_size} bytes): lower --max-body (HOROLOG_MAX_BODY, max_body) or raise \
         --segment-size (HOROLOG_SEGMENT_SIZE, segment_size)"
    )]
    BodyLargerThanSegment { max_body: u64, segment_size: u64 },
    #[error("the settings file: {reason}")]
    File { reason: String },
}
