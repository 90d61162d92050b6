//! What is pending, as messages: listed in pages, or cancelled by the thousand.
//!
//! ```text
//!   cursor ──> Walk (timer/pending) ──> entries ──> message, if key or tag is asked for
//!                                          │
//!                          a page <────────┴────────> turns of 256 cancels, one receipt
//! ```
//!
//! A call does a bounded piece of work and says by a cursor where the next one goes on. The cursor holds
//! the walk's place and a digest of the query, under a MAC:
//!
//! ```text
//! byte   0         1          9        58    66        base64url
//!        +---------+----------+--------+-----+
//!        | version | query    | place  | MAC |
//!        +---------+----------+--------+-----+
//! ```
//!
//! Over all pages of one walk a message that was pending all along is given, whatever fires, is cancelled
//! or is re-filed from the far ring in between; what was put, or settled, meanwhile may be given or not.
//! Nothing is given twice, but for the rest of one slot after a restart of the server.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use timerlog::Entry;

use super::cancel::{CancelAnswer, Cause, cancel_all};
use super::lookup::{Found, of_cause};
use super::{ChangeError, Decided};
use crate::clock::{Clock, Timestamp};
use crate::commitlog::Receipt;
use crate::message::Attributes;
use crate::message::id::IdKey;
use crate::message::offset::Offset;
use crate::message::record::tag_hash;
use crate::message::timer_tag::TimerTag;
use crate::store::{CauseError, Store};
use crate::timer::Pending;
use crate::timer::pending::{Budget, PLACE_LENGTH, Place, Step, Walk, WalkError, Wanted};

/// Most messages that one call cancels.
pub const MAX_BULK_CANCEL: usize = 10_000;
/// Cancels in one turn of the appender: others get theirs in between.
const CANCELS_A_TURN: usize = 256;
/// Most records of the wheel that one call looks at, and how long it looks.
const RECORDS: u64 = 100_000;
const LIST_TIME: Duration = Duration::from_millis(100);
const CANCEL_TIME: Duration = Duration::from_millis(500);
/// What reading a message costs, in records of the wheel.
const A_MESSAGE: u64 = 8;
/// What the names, keys and properties of a page may weigh before it ends, in bytes.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

const VERSION: u8 = 1;
const QUERY: usize = 1;
const PLACE: usize = QUERY + 8;
const CURSOR_LENGTH: usize = PLACE + PLACE_LENGTH;

/// Which of the pending are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub topic_id: Option<u32>,
    /// What one of the message's keys, or its timer's, begins with.
    pub key: Option<String>,
    pub tag: Option<String>,
    pub deadlines: Range<Timestamp>,
}

/// A message that waits, and when it is due.
#[derive(Clone, Debug)]
pub struct Listed {
    pub found: Found,
    pub deadline: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Page {
    pub items: Vec<Listed>,
    /// Where the next page begins; `None` when there is none.
    pub next: Option<String>,
}

/// What is to become of what matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenMatched {
    Cancel,
    /// A dry run.
    Count,
}

/// One that matched and was asked to be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    pub cause: Cause,
    pub answer: CancelAnswer,
}

#[derive(Clone, Debug)]
pub struct BulkCancel {
    pub matched: u64,
    /// In the order of the slots, without those that were moved in between; empty for a dry run.
    pub selected: Vec<Selected>,
    pub next: Option<String>,
}

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScheduledError {
    #[error("the cursor is not one of this server, or of another query")]
    Cursor,
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error(transparent)]
    Read(#[from] CauseError),
    /// What was cancelled before it stays cancelled.
    #[error(transparent)]
    Cancel(#[from] ChangeError),
}

/// At most `limit` of the pending that `query` means, from `cursor` on. A page may be short, or empty:
/// only a missing `next` says that there are no more.
///
/// # Errors
///
/// [`ScheduledError::Cursor`] for a cursor that was not given out for this query; the disk's errors.
pub fn list_scheduled(
    store: &Store,
    pending: &Pending,
    query: &Query,
    cursor: Option<&str>,
    limit: usize,
    clock: &dyn Clock,
) -> Result<Decided<Page>, ScheduledError> {
    let budget = Budget::new(clock, LIST_TIME, RECORDS);
    let mut selection = Selection::new(store, pending, query, cursor, budget)?;
    let (mut items, mut bytes) = (Vec::new(), 0);
    let next = loop {
        if items.len() == limit || bytes >= PAGE_BYTES {
            break selection.cursor();
        }
        match selection.step()? {
            Step::Paused => break selection.cursor(),
            Step::End => break None,
            Step::Entry(entry) => {
                if let Some(found) = selection.read(&entry)? {
                    let deadline = Timestamp::from_millis(entry.deadline);
                    bytes += length_of(&found.message.attributes);
                    items.push(Listed { found, deadline });
                }
            }
        }
    };
    // What is left out was left out for facts that need not be durable yet.
    let receipt = store.log().latest_receipt();
    Ok(Decided { answer: Page { items, next }, receipt })
}

fn length_of(attributes: &Attributes) -> usize {
    let keys = attributes.keys.iter().map(String::len);
    let properties = attributes.properties.iter().map(|(name, value)| name.len() + value.len());
    keys.sum::<usize>() + properties.sum::<usize>()
}

/// Cancels, or counts, the pending that `query` means, from `cursor` on; [`MAX_BULK_CANCEL`] at most.
///
/// # Errors
///
/// As [`list_scheduled`], and when the log takes no cancels. Those decided before that hold.
pub fn cancel_scheduled(
    store: &Store,
    pending: &Pending,
    query: &Query,
    cursor: Option<&str>,
    when_matched: WhenMatched,
    clock: &dyn Clock,
) -> Result<Decided<BulkCancel>, ScheduledError> {
    let budget = Budget::new(clock, CANCEL_TIME, RECORDS);
    let mut selection = Selection::new(store, pending, query, cursor, budget)?;
    let mut answer = BulkCancel { matched: 0, selected: Vec::new(), next: None };
    let mut receipt = None;
    loop {
        let before = selection.cursor();
        let room = MAX_BULK_CANCEL.saturating_sub(usize::try_from(answer.matched).unwrap_or(0));
        let (causes, more) = selection.take(CANCELS_A_TURN.min(room))?;
        if when_matched == WhenMatched::Cancel && !causes.is_empty() {
            match cancel_all(store, &causes, clock.now().wall) {
                Ok(decided) => {
                    receipt = Some(decided.receipt);
                    let selected = causes.iter().zip(decided.answer);
                    let selected = selected
                        .filter_map(|(&cause, answer)| Some(Selected { cause, answer: answer? }));
                    answer.selected.extend(selected);
                }
                // The log is busy, or full. What was done is worth telling; the next call is told why.
                Err(ChangeError::Append(_)) if answer.matched > 0 => {
                    answer.next = before;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        answer.matched += causes.len() as u64;
        answer.next = match more {
            More::No => None,
            More::Perhaps => selection.cursor(),
        };
        let full = answer.matched >= MAX_BULK_CANCEL as u64;
        if more == More::No || full || selection.budget.is_spent() {
            break;
        }
    }
    let receipt: Receipt = receipt.unwrap_or_else(|| store.log().latest_receipt());
    Ok(Decided { answer, receipt })
}

/// Whether the walk has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    No,
    Perhaps,
}

/// A walk of one call over what its query means.
struct Selection<'a> {
    store: &'a Store,
    query: &'a Query,
    walk: Walk<'a>,
    budget: Budget<'a>,
    /// What was given in this call: the wheel may hold an entry twice.
    given: HashSet<u64>,
}

impl<'a> Selection<'a> {
    fn new(
        store: &'a Store,
        pending: &'a Pending,
        query: &'a Query,
        cursor: Option<&str>,
        budget: Budget<'a>,
    ) -> Result<Self, ScheduledError> {
        let place = match cursor {
            None => None,
            Some(text) => Some(query.place(store.ids(), text).ok_or(ScheduledError::Cursor)?),
        };
        let wanted = Wanted {
            topic_id: query.topic_id,
            tag_hash: query.tag.as_deref().map(|tag| tag_hash(Some(tag))),
            deadlines: query.deadlines.clone(),
        };
        let walk = pending.walk(wanted, place);
        Ok(Self { store, query, walk, budget, given: HashSet::new() })
    }

    fn step(&mut self) -> Result<Step, WalkError> {
        loop {
            let step = self.walk.step(&mut self.budget)?;
            match step {
                Step::Entry(entry) if !self.given.insert(entry.offset) => {}
                step => return Ok(step),
            }
        }
    }

    fn cursor(&self) -> Option<String> {
        Some(self.query.cursor(self.store.ids(), &self.walk.place()))
    }

    /// The entry's message, if it is the query's: key and tag are its own, not hashes.
    fn read(&mut self, entry: &Entry) -> Result<Option<Found>, CauseError> {
        self.budget.spend(A_MESSAGE);
        let found = of_cause(self.store, Offset::new(entry.offset), entry.length)?;
        Ok(found.filter(|found| self.query.takes(found)))
    }

    /// Up to `count` that match, without a look at their messages if the entries say enough.
    fn take(&mut self, count: usize) -> Result<(Vec<Cause>, More), ScheduledError> {
        let mut causes = Vec::with_capacity(count);
        while causes.len() < count {
            let entry = match self.step()? {
                Step::Paused => break,
                Step::End => return Ok((causes, More::No)),
                Step::Entry(entry) => entry,
            };
            let by_entry = self.query.key.is_none() && self.query.tag.is_none();
            if by_entry || self.read(&entry)?.is_some() {
                causes.push(Cause {
                    offset: Offset::new(entry.offset),
                    deadline: Timestamp::from_millis(entry.deadline),
                    tag: TimerTag(entry.tag),
                });
            }
        }
        Ok((causes, More::Perhaps))
    }
}

impl Query {
    fn takes(&self, found: &Found) -> bool {
        let attributes = &found.message.attributes;
        let timer = found.message.timer.as_ref().map(|timer| &timer.key);
        let mut keys = attributes.keys.iter().chain(timer);
        let key = |prefix: &String| keys.any(|key| key.starts_with(prefix));
        let tag = |tag: &String| attributes.tag.as_ref() == Some(tag);
        self.key.as_ref().is_none_or(key) && self.tag.as_ref().is_none_or(tag)
    }

    /// Tells a cursor of this query from one of another.
    fn digest(&self) -> [u8; 8] {
        let mut bytes = Vec::new();
        for number in [
            self.topic_id.map_or(u64::MAX, u64::from),
            self.deadlines.start.as_millis(),
            self.deadlines.end.as_millis(),
        ] {
            bytes.extend(number.to_be_bytes());
        }
        for text in [&self.key, &self.tag] {
            let length = text.as_ref().map_or(u64::MAX, |text| text.len() as u64);
            bytes.extend(length.to_be_bytes());
            bytes.extend(text.iter().flat_map(|text| text.bytes()));
        }
        xxhash_rust::xxh3::xxh3_64(&bytes).to_be_bytes()
    }

    fn cursor(&self, ids: &IdKey, place: &Place) -> String {
        let mut fields = [0; CURSOR_LENGTH];
        fields[0] = VERSION;
        fields[QUERY..PLACE].copy_from_slice(&self.digest());
        fields[PLACE..].copy_from_slice(&place.encode());
        ids.write_cursor(&fields)
    }

    fn place(&self, ids: &IdKey, text: &str) -> Option<Place> {
        let fields: [u8; CURSOR_LENGTH] = ids.read_cursor(text)?;
        if fields[0] != VERSION || fields[QUERY..PLACE] != self.digest() {
            return None;
        }
        Place::decode(fields[PLACE..].try_into().ok()?)
    }
}
