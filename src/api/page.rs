//! Lists, a page at a time: `limit` and `cursor` in, `items` and `nextCursor` out.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::problem::Problem;

/// Items of a page that does not say how many.
const DEFAULT_LIMIT: usize = 100;
/// Most items of a page.
pub(super) const MAX_LIMIT: usize = 1000;

/// What a request for a page says.
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
        let Some(text) = &self.limit else { return Ok(DEFAULT_LIMIT) };
        match text.parse() {
            Ok(limit) if (1..=MAX_LIMIT).contains(&limit) => Ok(limit),
            _ => Err(Problem::invalid(format!("limit is 1 to {MAX_LIMIT}"))),
        }
    }

    /// The name that the page before ended with.
    pub(super) fn after(&self) -> Result<Option<String>, Problem> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let name =
            URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|name| String::from_utf8(name).ok());
        let not_ours = || Problem::invalid("the cursor is not one that a list has given");
        name.map(Some).ok_or_else(not_ours)
    }
}

/// The cursor of the page that begins after `name`.
pub(super) fn cursor(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(name)
}
