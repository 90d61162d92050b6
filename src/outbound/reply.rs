//! What a receiver answered.

use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use jiff::fmt::rfc2822;

use crate::clock::Timestamp;

/// Most bytes of an answer that are read; what comes after them is left unread.
pub const MAX_REPLY_BYTES: usize = 64 << 10;

/// An answer, of whatever status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: StatusCode,
    /// How long the receiver asks to be left alone, from the moment of the request on.
    pub retry_after: Option<Duration>,
    /// The first [`MAX_REPLY_BYTES`] of it.
    pub body: Bytes,
}

/// Seconds, or a date (RFC 9110, 10.2.3); one in the past asks for nothing. What is neither is as if it
/// was not there.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().map(Duration::from_secs);
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let date = u64::try_from(date.as_millisecond()).ok().map(Timestamp::from_millis)?;
    Some(Duration::from_millis(date.since(now)))
}
