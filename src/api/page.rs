//! Lists, a page at a time: `limit` and `cursor` in, `items` and `nextCursor` out.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::limits::{DEFAULT_PAGE, MAX_PAGE};
use super::problem::Problem;
use crate::message::TopicName;

/// What a request for a page of a list by name says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageParameters {
    limit: Option<String>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    /// `null` on the last page.
    pub(super) next_cursor: Option<String>,
}

impl PageParameters {
    pub(super) fn limit(&self) -> Result<usize, Problem> {
        limit(self.limit.as_deref())
    }

    /// The name that the page before ended with.
    pub(super) fn after(&self) -> Result<Option<String>, Problem> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let name =
            URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|name| String::from_utf8(name).ok());
        // What nothing can be called was in no page.
        let name = name.filter(|name| TopicName::readable(name).is_ok());
        let not_ours = || Problem::invalid("the cursor is not one that this list has given");
        name.map(Some).ok_or_else(not_ours)
    }
}

/// How many items a page may have.
pub(super) fn limit(asked: Option<&str>) -> Result<usize, Problem> {
    let Some(text) = asked else { return Ok(DEFAULT_PAGE) };
    match text.parse() {
        Ok(limit) if (1..=MAX_PAGE).contains(&limit) => Ok(limit),
        _ => Err(Problem::invalid(format!("limit is 1 to {MAX_PAGE}"))),
    }
}

/// The cursor of the page that begins after `name`.
pub(super) fn cursor(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(name)
}
