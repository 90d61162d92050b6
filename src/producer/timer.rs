//! Timers by the caller's own key: of one topic and key at most one waits, always.
//!
//! A put replaces what waits under its key: the new message's record is the fact that settles the old one,
//! so after a crash there is the one or the other. Writers of a key take turns from look-up to append.

use timerlog::planted::{self, Fault};

use super::deadline::deadline;
use super::look::head;
use super::lookup::{Found, Live};
use super::put::{
    Item, Prepared, PutAnswer, PutError, PutSettings, check_index, prepare, topic_for,
};
use super::{Decided, LookError, Settled, settle};
use crate::clock::Timestamp;
use crate::commitlog::Outcome;
use crate::message::record::{KeyedTimer, Replaced};
use crate::message::{NewMessage, TopicName};
use crate::store::{Store, Topic};

/// What came of putting a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerPut {
    Put {
        answer: PutAnswer,
        /// The id of the one that waited under the key, and will never be delivered.
        replaced: Option<String>,
    },
    /// One waits under the key, and was to be left alone.
    Exists,
}

/// Whether a timer that waits under the key is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    Replace,
    Refuse,
}

/// Puts `message` on `topic` as the timer of `key`.
///
/// # Errors
///
/// [`PutError`]; nothing was stored or replaced then.
#[expect(clippy::too_many_arguments, reason = "they are the parts of one request")]
pub fn put_timer(
    store: &Store,
    settings: PutSettings,
    topic: &TopicName,
    key: &str,
    message: NewMessage,
    if_exists: IfExists,
    nonce: u64,
    now: Timestamp,
) -> Result<Decided<TimerPut>, PutError> {
    // What is refused on whatever topic makes none.
    deadline(message.moment, store.levels(), now)
        .map_err(|refusal| PutError::Refused { index: 0, refusal })?;
    let mut item: Item = Some(message);
    loop {
        let named = topic_for(store, settings, topic, now)?;
        let _alone = store.stripes().timer(store.keys().timer(named.id, key));
        let found = latest(store, &named, key)?;
        let before = match &found {
            Some(found) => waiting(store, found)?.map(|live| (found, live)),
            None => None,
        };
        if before.is_some() && if_exists == IfExists::Refuse {
            let receipt = store.log().latest_receipt();
            return Ok(Decided { answer: TimerPut::Exists, receipt });
        }
        let replaces = before.map(|(found, live)| Replaced {
            cause: live.cause,
            deadline: live.deadline,
            tag: found.timer_tag(&live).0,
        });
        let timer = KeyedTimer { key: key.to_owned(), replaces };
        let prepared = prepare(store, &named, item, Some(timer), None, nonce, now)
            .map_err(|refused| PutError::Refused { index: 0, refusal: refused.refusal })?;
        match append(store, &named, prepared, replaces)? {
            Ok(decided) => {
                let replaced = before.map(|(found, _)| found.id(store));
                let answer = TimerPut::Put { answer: decided.answer, replaced };
                return Ok(Decided { answer, receipt: decided.receipt });
            }
            Err(prepared) => item = prepared.into_item(),
        }
    }
}

/// Appends the timer, settling what it replaces. Gives it back when somebody changed that in between.
fn append(
    store: &Store,
    topic: &Topic,
    prepared: Prepared,
    replaces: Option<Replaced>,
) -> Result<Result<Decided<PutAnswer>, Prepared>, PutError> {
    check_index(store)?;
    let mut turn = store.log().turn(prepared.encoded.len())?;
    if topic.is_deleted() {
        return Ok(Err(prepared));
    }
    if let Some(replaced) = replaces
        && !planted::is(Fault::ReplaceWithoutSettling)
        && let Settled::Before(_) = settle(&mut turn, replaced.cause, Outcome::Withdrawn)?
    {
        return Ok(Err(prepared));
    }
    let answer = prepared.append(store, topic, &mut turn);
    let receipt = turn.receipt();
    Ok(Ok(Decided { answer, receipt }))
}

/// What gives the message its moment, if it waits for one.
fn waiting(store: &Store, found: &Found) -> Result<Option<Live>, LookError> {
    Ok(found.live(store)?.filter(|live| live.outcome.is_none()))
}

/// The message that was put under the key last, whatever became of it.
///
/// # Errors
///
/// As [`super::find`].
pub fn find_timer(store: &Store, topic: &Topic, key: &str) -> Result<Option<Found>, LookError> {
    latest(store, topic, key)
}

fn latest(store: &Store, topic: &Topic, key: &str) -> Result<Option<Found>, LookError> {
    for offset in store.index().newest_first(store.keys().timer(topic.id, key), None) {
        let offset = offset?;
        let found = head(store, offset, Found::read)?;
        let is_it = |found: &Found| {
            let timer = found.message.timer.as_ref();
            found.message.topic_id == topic.id && timer.is_some_and(|timer| timer.key == key)
        };
        if let Some(found) = found.filter(is_it) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
