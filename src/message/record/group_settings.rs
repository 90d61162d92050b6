//! The settings of a group: the body of kind 17 (all but the lease time, which is in its head).
//!
//! ```text
//! body   0         1       2      4              8         12        16
//!        +---------+-------+------+--------------+---------+---------+- - - - - - -+- - - - -+
//!        | ordered | start | zero | max attempts | backoff | filters | backoff ms  | filters |
//!        |         | from  |      |              | count   | count   | 8 each      |         |
//!        +---------+-------+------+--------------+---------+---------+- - - - - - -+- - - - -+
//! filter topic: length 2, bytes; tags: count 2, each: length 2, bytes
//! ```
//!
//! *ordered* is 0 or 1; *start from* is 1 (earliest) or 2 (latest). Filters are sorted by topic, each topic
//! once; tags likewise.

use super::tags::{self, Rest};
use super::{RecordError, length_u32};
use crate::message::{GroupSettings, StartFrom};

const EARLIEST: u8 = 1;
const LATEST: u8 = 2;

/// All but the lease time.
pub fn encode(settings: &GroupSettings) -> Vec<u8> {
    let start_from = match settings.start_from {
        StartFrom::Earliest => EARLIEST,
        StartFrom::Latest => LATEST,
    };
    let mut out = vec![u8::from(settings.ordered), start_from, 0, 0];
    out.extend_from_slice(&settings.max_attempts.to_le_bytes());
    out.extend_from_slice(&length_u32(settings.backoff_ms.len()).to_le_bytes());
    out.extend_from_slice(&length_u32(settings.filters.len()).to_le_bytes());
    for ms in &settings.backoff_ms {
        out.extend_from_slice(&ms.to_le_bytes());
    }
    for (topic, filter) in &settings.filters {
        tags::put_text(topic, &mut out);
        tags::encode(filter, &mut out);
    }
    out
}

/// All but the lease time, which is left at its default.
///
/// # Errors
///
/// [`RecordError`] when `body` does not follow the format.
pub fn decode(body: &[u8]) -> Result<GroupSettings, RecordError> {
    let mut rest = Rest(body);
    let [ordered, start_from, zero @ ..] = rest.take::<4>()?;
    if zero != [0; 2] {
        return Err(RecordError::NotZero);
    }
    let mut settings = GroupSettings {
        ordered: match ordered {
            0 => false,
            1 => true,
            _ => return Err(RecordError::Head("a group is ordered or not")),
        },
        start_from: match start_from {
            EARLIEST => StartFrom::Earliest,
            LATEST => StartFrom::Latest,
            _ => return Err(RecordError::Head("where a group starts from is not known")),
        },
        max_attempts: u32::from_le_bytes(rest.take()?),
        backoff_ms: Vec::new(),
        ..GroupSettings::default()
    };
    let backoff = u32::from_le_bytes(rest.take()?);
    let filters = u32::from_le_bytes(rest.take()?);
    for _ in 0..backoff {
        settings.backoff_ms.push(rest.u64()?);
    }
    for _ in 0..filters {
        let topic = rest.text()?;
        let filter = rest.filter()?;
        if settings.filters.last_key_value().is_some_and(|(last, _)| *last >= topic) {
            return Err(RecordError::Head("filters are sorted by topic, and each is there once"));
        }
        settings.filters.insert(topic, filter);
    }
    rest.end()?;
    Ok(settings)
}
