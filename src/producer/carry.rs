//! Carrying on: what still waits is appended again, so that the log may begin later.
//!
//! ```text
//!   segment to be let go            tail
//!   message ──────────────────────> Move         its body; from here on it is read here
//!   what gives it its moment ─────> Reschedule   to the same moment, when that stands there, too
//!   what speaks for a half ───────> Check        with the same count; or Abandon
//! ```
//!
//! Each is one turn, which settles what it carries on: a cancel, a firing or a decision that comes first wins, and then
//! there is nothing to carry. So there is no switch and no pause, and a crash anywhere leaves some carried on and some
//! not, and both are right.

use super::lookup::{Fate, Found, Live};
use super::put::check_index;
use super::{ChangeError, LookError, Settled, settle};
use crate::clock::{Now, Timestamp};
use crate::commitlog::{Outcome, ReadError};
use crate::message::offset::Offset;
use crate::message::record::{
    Clockwork, Encoded, Kind, Moved, Nack, Record, RecordError, Reschedule, Round, RoundKind,
};
use crate::message::timer_tag::TimerTag;
use crate::store::Store;

/// What is due so soon is waited for.
const SOON_MS: u64 = 3_600_000;

/// Whether a record holds its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It does not, or does no more.
    Free,
    /// It did, and was carried on.
    Carried,
    /// It does: look again then.
    Until(Timestamp),
}

/// Carries on what the record stands for, where that still waits for something and is read, or is given its moment,
/// before `upto`: the end of what is to be let go. `retention_ms` is how long a topic's messages wait for their readers.
///
/// # Errors
///
/// [`ChangeError`]; nothing was carried on then.
pub fn carry(
    store: &Store,
    record: &Record<'_>,
    upto: Offset,
    retention_ms: u64,
    now: Now,
) -> Result<Hold, ChangeError> {
    let message = match record.header.kind {
        Kind::Message | Kind::HalfMessage | Kind::Move => Found::read(record),
        Kind::Reschedule => pointed_at(store, Reschedule::decode(record).map(|of| of.message))?,
        Kind::Commit => {
            let commit = super::lookup::commit_of(record);
            pointed_at(store, commit)?
        }
        Kind::Check | Kind::Resume | Kind::Abandon => {
            pointed_at(store, Round::decode(record).map(|of| of.message))?
        }
        Kind::Nack => return retry(store, record, now.wall),
        _ => return Ok(Hold::Free),
    };
    match message {
        Ok(Some(found)) => carry_message(store, found, upto, retention_ms, now),
        // A damaged record is lost alone, and keeps nothing.
        Ok(None) | Err(_) => Ok(Hold::Free),
    }
}

type Pointed = Result<Option<Found>, RecordError>;

fn pointed_at(store: &Store, message: Result<Offset, RecordError>) -> Result<Pointed, LookError> {
    match message {
        Ok(message) => Ok(Ok(Found::at_home(store, message)?)),
        Err(error) => Ok(Err(error)),
    }
}

/// A retry that is not due yet needs its nack and the message: it is waited for.
fn retry(store: &Store, record: &Record<'_>, now: Timestamp) -> Result<Hold, ChangeError> {
    let Ok(nack) = Nack::decode(record) else { return Ok(Hold::Free) };
    let topic = nack.tag.and_then(|tag| store.topic_by_id(TimerTag(tag).topic_id()));
    let waits = topic.is_some_and(|topic| !topic.is_deleted())
        && store.log().settled().get(record.header.offset).map_err(LookError::from)?.is_none();
    Ok(if waits { Hold::Until(nack.comes_at.max(now)) } else { Hold::Free })
}

fn carry_message(
    store: &Store,
    found: Found,
    upto: Offset,
    retention_ms: u64,
    now: Now,
) -> Result<Hold, ChangeError> {
    let Some(topic) = found.topic(store) else { return Ok(Hold::Free) };
    // The record that was read may be where the message was, and no more is.
    let mut found = found;
    loop {
        // What was ready at once is kept by the time at which it was put.
        let Some(live) = found.live(store)? else { return Ok(Hold::Free) };
        let Some(speaks) = Speaks::of(&found, &live) else {
            return delivered(store, &found, &live, upto, retention_ms, now.wall);
        };
        if let Some(moved) = found.moved_on(store)? {
            found = moved;
        }
        let (body_goes, cause_goes) = (found.home < upto, live.cause < upto);
        if !body_goes && !cause_goes {
            return Ok(Hold::Free);
        }
        if let Speaks::Moment = speaks
            && live.deadline.since(now.wall) <= SOON_MS
        {
            return Ok(Hold::Until(live.deadline.max(now.wall)));
        }
        let body = match body_goes {
            true => match moved(store, &found, speaks.deadline(&live), now.wall)? {
                Some(moved) => Some(moved),
                None => return Ok(Hold::Free),
            },
            false => None,
        };
        let again = cause_goes.then(|| speaks.again(&found, &live, now.wall));
        check_index(store)?;
        let bodies = body.iter().map(|(_, record)| record);
        let room = bodies.chain(&again).map(Encoded::len).sum();
        let mut turn = store.log().turn_for_accepted(room)?;
        if topic.is_deleted() {
            return Ok(Hold::Free);
        }
        let before = match cause_goes {
            true => match settle(&mut turn, live.cause, Outcome::Superseded)? {
                Settled::Now => None,
                Settled::Before(before) => Some(before),
            },
            // The turn is the referee of this, too, although it settles nothing.
            false => store.log().settled().get(live.cause).map_err(LookError::from)?,
        };
        if before.is_some() {
            drop(turn);
            continue;
        }
        if let Some((moved, record)) = body {
            let offset = turn.append(record);
            store.keys().of_moved(&moved, |key| store.index().insert(key, offset));
            topic.appended(offset);
        }
        if let Some(again) = again {
            let offset = turn.append(again);
            store.index().insert(store.keys().moved(found.offset), offset);
            topic.appended(offset);
        }
        return Ok(Hold::Carried);
    }
}

/// What is to be appended for a message that waits.
enum Speaks {
    Moment,
    Open(Clockwork),
    Abandoned { checks: u32 },
}

impl Speaks {
    /// Nothing, for a message that waits no more.
    fn of(found: &Found, live: &Live) -> Option<Self> {
        if found.is_half() {
            match live.fate() {
                Fate::Open(clockwork) => return Some(Self::Open(clockwork)),
                Fate::Abandoned { checks } => return Some(Self::Abandoned { checks }),
                Fate::RolledBack => return None,
                Fate::Committed => {}
            }
        }
        live.outcome.is_none().then_some(Self::Moment)
    }

    fn deadline(&self, live: &Live) -> Option<Timestamp> {
        match self {
            Self::Moment => Some(live.deadline),
            // That of its transaction, if it is committed, is its own.
            Self::Open(_) | Self::Abandoned { .. } => None,
        }
    }

    fn again(&self, found: &Found, live: &Live, now: Timestamp) -> Encoded {
        let round = |kind, count, next_check_at, abandoned_at| Round {
            kind,
            cause: live.cause,
            message: found.offset,
            at: now,
            next_check_at,
            abandoned_at,
            tag: TimerTag::check(found.message.topic_id).0,
            message_length: found.length,
            count,
        };
        match *self {
            Self::Moment => Reschedule {
                cause: live.cause,
                message: found.offset,
                was_due_at: live.deadline,
                deadline: live.deadline,
                tag: found.timer_tag(live).0,
                at: now,
                message_length: found.length,
            }
            .encode(),
            Self::Open(open) => {
                round(RoundKind::Check, open.count, open.next_check_at, open.abandoned_at).encode()
            }
            Self::Abandoned { checks } => {
                round(RoundKind::Abandon, checks, None, Timestamp::from_millis(0)).encode()
            }
        }
    }
}

/// The message appended again, with its body; `None` when the disk has not kept that.
fn moved(
    store: &Store,
    found: &Found,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Result<Option<(Moved, Encoded)>, LookError> {
    let of = found.message.clone();
    let moved = Moved { message: found.offset, at: now, deadline, waits: true, of };
    let mut bytes = Vec::new();
    match store.log().reader().record(found.home, Some(found.length), &mut bytes) {
        Ok(record) => {
            let encoded = moved.encode(record.body);
            Ok(Some((moved, encoded)))
        }
        Err(ReadError::Record { offset, cause }) => {
            tracing::error!(offset, error = %cause, "a message that waits is damaged");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Its readers have it for as long as its topic keeps messages from when it fired. What fired by a record that goes,
/// too, is kept by the time at which it did.
fn delivered(
    store: &Store,
    found: &Found,
    live: &Live,
    upto: Offset,
    retention_ms: u64,
    now: Timestamp,
) -> Result<Hold, ChangeError> {
    if live.outcome != Some(Outcome::Delivered) || live.cause < upto || found.home >= upto {
        return Ok(Hold::Free);
    }
    let Some(topic) = found.topic(store) else { return Ok(Hold::Free) };
    let retention_ms = topic.settings.retention_ms.unwrap_or(retention_ms);
    let standing = found.standing(store)?;
    let fired_at = found.fired_at(store, &topic, &standing)?;
    // Nobody can say: it is asked again until what it fired by can go, too.
    let until = fired_at.unwrap_or(now).checked_add(retention_ms);
    let until = until.unwrap_or(Timestamp::from_millis(u64::MAX));
    Ok(if until > now { Hold::Until(until) } else { Hold::Free })
}
