//! Pages of lists: how many items, and where to go on.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::limits::{DEFAULT_PAGE, MAX_PAGE};
use super::problem::Problem;
use crate::message::TopicName;

/// How many items a page may have.
pub(super) fn limit(asked: Option<u64>) -> Result<usize, Problem> {
    let limit = asked.map_or(DEFAULT_PAGE, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    if limit == 0 || limit > MAX_PAGE {
        return Err(Problem::invalid(format!("limit is 1 to {MAX_PAGE}, not {limit}")));
    }
    Ok(limit)
}

/// A cursor of a list by name: the last name of the page before.
pub(super) fn name_cursor(last: &str) -> String {
    URL_SAFE_NO_PAD.encode(last)
}

/// The name that `cursor` stands for; what no topic can be called was in no page.
pub(super) fn name_of(cursor: &str) -> Result<String, Problem> {
    let bad = || Problem::invalid("this is no cursor that a page of this list has given");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| bad())?;
    let name = String::from_utf8(bytes).map_err(|_| bad())?;
    TopicName::readable(&name).map_err(|_| bad())?;
    Ok(name)
}
