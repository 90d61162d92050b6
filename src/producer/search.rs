//! Search: the messages that have a key, newest first.

use super::LookError;
use super::look::head;
use super::lookup::Found;
use crate::message::offset::Offset;
use crate::store::{Store, Topic};

/// Records read in one search: what makes a page short when other keys share the hash, which nobody can
/// bring about.
const MAX_READ: usize = 10_000;

/// Some of what was searched for.
#[derive(Clone, Debug)]
pub struct FoundPage {
    pub found: Vec<Found>,
    /// Where to go on: below this offset. `None` at the end.
    pub next: Option<Offset>,
}

/// The messages of `topic` with `key`, put before the one at `below`, newest first, at most `limit`.
///
/// # Errors
///
/// [`LookError`], also when the newest of them cannot be read yet.
pub fn search(
    store: &Store,
    topic: &Topic,
    key: &str,
    below: Option<Offset>,
    limit: usize,
) -> Result<FoundPage, LookError> {
    let mut found = Vec::new();
    let hash = store.keys().key(topic.id, key);
    for (read, offset) in store.index().newest_first(hash, below).enumerate() {
        let offset = offset?;
        if found.len() == limit || read == MAX_READ {
            // The one at hand is the first of the next page.
            return Ok(FoundPage { found, next: Some(offset.plus(1)) });
        }
        let one = head(store, offset, Found::read)?;
        let one = one.filter(|one| one.message.topic_id == topic.id && one.has_key(key));
        let Some(one) = one else { continue };
        // A message that was moved stands where it was moved to.
        let home = store.last_move(one.offset)?;
        if home.is_none_or(|home| home == one.home) {
            found.push(one);
        }
    }
    Ok(FoundPage { found, next: None })
}
