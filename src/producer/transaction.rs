//! Transactions: a half message waits for its decision, and its producer is asked for it.
//!
//! ```text
//!   prepare ─> half message ─ check ─ check ─ ... ─ abandon ─ resume ─ check ─ ...
//!                        \       \       \                       \
//!                         └───────┴───────┴── commit, rollback ───┘
//! ```
//!
//! A half message is a cause whose moment is its decision. Each record of its life settles the one before it
//! and speaks for the transaction from there on, so whatever races (commit, rollback, check, abandon, resume)
//! races for one settled bit, and the appender decides. A rollback *withdraws*, a commit without a moment *delivers*;
//! all others *supersede* and are found by the index, as a reschedule is: a commit with a moment is a cause
//! like any that gives a message its moment.
//!
//! **What counts as a check.** Its record is durable before it is handed out, so after a crash a check that
//! somebody may have seen has counted, and there are never more than were agreed on. A caller that went away
//! before it was given its check gives it back: a record that takes the count back and makes the check due
//! again. When the power goes between the two, the check has counted and nobody saw it.

use std::sync::Arc;

use timerlog::planted::{self, Fault};

use super::look::head;
use super::lookup::{Fate, Found, Link, Live};
use super::put::{PutError, PutSettings, PutsAnswer, Request, check_index, put_request};
use super::{Atomic, ChangeError, Decided, LookError, Settled, settle};
use crate::clock::Timestamp;
use crate::commitlog::Outcome;
use crate::message::offset::Offset;
use crate::message::record::{
    Bound, Clockwork, Commit, Kind, Placement, Rollback, Round, RoundKind, Terms,
};
use crate::message::timer_tag::TimerTag;
use crate::message::{NewMessage, State, TopicName};
use crate::store::{HALF_TOPIC_ID, Store, Topic};

/// Half messages looked at for one page: what makes it short when few are wanted.
const MAX_READ: u64 = 10_000;

/// Stores `message` as a half message of `topic`: nobody reads it before it is committed.
///
/// # Errors
///
/// [`PutError`]; nothing was stored then.
#[expect(clippy::too_many_arguments, reason = "they are the parts of one request")]
pub fn prepare_transaction(
    store: &Store,
    settings: PutSettings,
    topic: &TopicName,
    message: NewMessage,
    terms: &Terms,
    bound: Option<Bound>,
    nonce: u64,
    now: Timestamp,
) -> Result<Decided<PutsAnswer>, PutError> {
    let request = Request { items: vec![Some(message)], atomic: Atomic::Yes, bound };
    put_request(store, settings, topic, request, Some(terms), &mut || nonce, now)
}

/// How a transaction ends by its producer's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Committed,
    RolledBack,
}

/// What came of ending a transaction: final, whichever it is, but for an abandoned one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndAnswer {
    /// As asked, now or before.
    AsAsked,
    /// The other way, before.
    Otherwise,
    Abandoned,
}

/// Ends the transaction of the half message that was found.
///
/// # Errors
///
/// [`ChangeError`]; nothing was changed then. [`ChangeError::Unknown`] when it is no half message.
pub fn end(
    store: &Store,
    found: &Found,
    how: Ended,
    now: Timestamp,
) -> Result<Decided<EndAnswer>, ChangeError> {
    let topic = found.topic(store).filter(|_| found.is_half()).ok_or(ChangeError::Unknown)?;
    let mut found = found.clone();
    loop {
        if store.log().is_closed(found.home) {
            found = found.moved_on(store)?.ok_or(ChangeError::Unknown)?;
        }
        let live = found.live(store)?.ok_or(ChangeError::Unknown)?;
        let before = match live.fate() {
            Fate::Open(_) => None,
            Fate::Abandoned { .. } => Some(EndAnswer::Abandoned),
            Fate::Committed if how == Ended::Committed => Some(EndAnswer::AsAsked),
            Fate::RolledBack if how == Ended::RolledBack => Some(EndAnswer::AsAsked),
            Fate::Committed | Fate::RolledBack => Some(EndAnswer::Otherwise),
        };
        if let Some(answer) = before
            && !(planted::is(Fault::DecideTwice) && how == Ended::Committed)
        {
            return Ok(Decided { answer, receipt: store.log().latest_receipt() });
        }
        let settled = match how {
            Ended::Committed => commit(store, &topic, &found, &live, now)?,
            Ended::RolledBack => roll_back(store, &topic, &found, &live, now)?,
        };
        if let Some(decided) = settled {
            return Ok(decided);
        }
    }
}

/// Commits, if `live` still speaks for the transaction, and its message is where it was found.
fn commit(
    store: &Store,
    topic: &Topic,
    found: &Found,
    live: &Live,
    now: Timestamp,
) -> Result<Option<Decided<EndAnswer>>, ChangeError> {
    let queue = topic.queue(found.message.queue).ok_or(ChangeError::Unknown)?;
    let mut commit = Commit {
        cause: live.cause,
        message: found.offset,
        home: found.home,
        placement: match found.message.placement {
            Placement::Timed { deadline } if deadline > now => Placement::Timed { deadline },
            _ => Placement::Ready { queue_offset: 0 },
        },
        at: now,
        tag: found.timer_tag(live).0,
        message_length: found.length,
    };
    let outcome = match commit.placement {
        Placement::Timed { .. } | Placement::Level { .. } => Outcome::Superseded,
        Placement::Ready { .. } => Outcome::Delivered,
    };
    check_index(store)?;
    let mut turn = store.log().turn_for_accepted(commit.encode().len())?;
    if topic.is_deleted() {
        return Err(ChangeError::Unknown);
    }
    // It was moved meanwhile.
    if turn.is_closed(found.home) {
        return Ok(None);
    }
    let settled = settle(&mut turn, live.cause, outcome)?;
    if matches!(settled, Settled::Before(_)) && !planted::is(Fault::DecideTwice) {
        return Ok(None);
    }
    if let Placement::Ready { queue_offset } = &mut commit.placement {
        *queue_offset = queue.take_offsets(1);
    }
    let offset = turn.append(commit.encode());
    store.index().insert(store.keys().moved(found.offset), offset);
    topic.appended(offset);
    Ok(Some(Decided { answer: EndAnswer::AsAsked, receipt: turn.receipt() }))
}

fn roll_back(
    store: &Store,
    topic: &Topic,
    found: &Found,
    live: &Live,
    now: Timestamp,
) -> Result<Option<Decided<EndAnswer>>, ChangeError> {
    let (cause, message, tag) = (live.cause, found.offset, found.timer_tag(live).0);
    let record = Rollback { cause, message, at: now, tag }.encode();
    let mut turn = store.log().turn_for_accepted(record.len())?;
    if topic.is_deleted() {
        return Err(ChangeError::Unknown);
    }
    if let Settled::Before(_) = settle(&mut turn, live.cause, Outcome::Withdrawn)? {
        return Ok(None);
    }
    topic.appended(turn.append(record));
    Ok(Some(Decided { answer: EndAnswer::AsAsked, receipt: turn.receipt() }))
}

/// A check that is for somebody, once its receipt is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOut {
    /// The record of the check.
    pub cause: Offset,
    /// Which check it is, from 1.
    pub check: u32,
    /// When the transaction would have ended before this check.
    pub abandoned_at: Timestamp,
}

/// Hands out the check that is due under `cause`. Nothing when none is: it was decided, or handed out, since.
///
/// # Errors
///
/// [`ChangeError`]; nothing was changed then.
pub fn hand_out(
    store: &Store,
    found: &Found,
    cause: Offset,
    now: Timestamp,
) -> Result<Option<Decided<HandedOut>>, ChangeError> {
    if planted::is(Fault::CheckNotRecorded)
        && let Some(live) = found.live(store)?
        && let Fate::Open(open) = live.fate()
    {
        let (check, abandoned_at) = (open.count + 1, open.abandoned_at);
        let answer = HandedOut { cause: live.cause, check, abandoned_at };
        return Ok(Some(Decided { answer, receipt: store.log().latest_receipt() }));
    }
    let mut before = None;
    let decided = advance(store, found, now, RoundKind::Check, |live, terms| match live.fate() {
        Fate::Open(open) if live.cause == cause && open.abandoned_at > now => {
            open.next_check_at.filter(|at| *at <= now)?;
            before = Some(open.abandoned_at);
            Some(terms.checked(open.count + 1, now, open.abandoned_at))
        }
        _ => None,
    })?;
    Ok(decided.zip(before).map(|(decided, abandoned_at)| {
        let (cause, round) = decided.answer;
        let answer = HandedOut { cause, check: round.count, abandoned_at };
        Decided { answer, receipt: decided.receipt }
    }))
}

/// Takes back a check that nobody was given: it has not counted, and is due again at `due_at`. Nothing happens
/// when the transaction has gone on since.
///
/// # Errors
///
/// [`ChangeError`]; then the check has counted.
pub fn give_back(
    store: &Store,
    found: &Found,
    handed: &HandedOut,
    due_at: Timestamp,
    now: Timestamp,
) -> Result<(), ChangeError> {
    advance(store, found, now, RoundKind::Check, |live, _| match live.fate() {
        Fate::Open(open) if live.cause == handed.cause => Some(Clockwork {
            count: open.count.saturating_sub(1),
            next_check_at: Some(due_at),
            abandoned_at: handed.abandoned_at,
        }),
        _ => None,
    })
    .map(drop)
}

/// Ends a transaction whose time is over. Nothing happens when it is not, or was decided.
///
/// # Errors
///
/// [`ChangeError`]; nothing was changed then.
pub fn abandon(store: &Store, found: &Found, now: Timestamp) -> Result<(), ChangeError> {
    let never = Timestamp::from_millis(0);
    advance(store, found, now, RoundKind::Abandon, |live, _| match live.fate() {
        Fate::Open(open) if open.abandoned_at <= now => {
            Some(Clockwork { count: open.count, next_check_at: None, abandoned_at: never })
        }
        _ => None,
    })
    .map(drop)
}

/// What came of resuming a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// It is open again, and checked from zero.
    Open,
    /// It was not abandoned.
    NotAbandoned,
}

/// Opens an abandoned transaction again.
///
/// # Errors
///
/// [`ChangeError`]; nothing was changed then.
pub fn resume(
    store: &Store,
    found: &Found,
    now: Timestamp,
) -> Result<Decided<Resumed>, ChangeError> {
    let decided = advance(store, found, now, RoundKind::Resume, |live, terms| match live.fate() {
        Fate::Abandoned { .. } => Some(terms.resumed(now)),
        _ => None,
    })?;
    Ok(match decided {
        Some(decided) => Decided { answer: Resumed::Open, receipt: decided.receipt },
        None => {
            let receipt = store.log().latest_receipt();
            Decided { answer: Resumed::NotAbandoned, receipt }
        }
    })
}

/// Appends the next record of the transaction, if `next` wants one when it sees what speaks for it; again
/// while somebody else does so in between.
fn advance(
    store: &Store,
    found: &Found,
    now: Timestamp,
    kind: RoundKind,
    mut next: impl FnMut(&Live, &Terms) -> Option<Clockwork>,
) -> Result<Option<Decided<(Offset, Round)>>, ChangeError> {
    let topic = found.topic(store).ok_or(ChangeError::Unknown)?;
    let terms = found.message.terms.as_ref().ok_or(ChangeError::Unknown)?;
    loop {
        let live = found.live(store)?.ok_or(ChangeError::Unknown)?;
        let Some(clockwork) = next(&live, terms) else { return Ok(None) };
        let round = Round {
            kind,
            cause: live.cause,
            message: found.offset,
            at: now,
            next_check_at: clockwork.next_check_at,
            abandoned_at: clockwork.abandoned_at,
            tag: TimerTag::check(topic.id).0,
            message_length: found.length,
            count: clockwork.count,
        };
        check_index(store)?;
        let record = round.encode();
        let mut turn = store.log().turn_for_accepted(record.len())?;
        if topic.is_deleted() {
            return Err(ChangeError::Unknown);
        }
        if let Settled::Now = settle(&mut turn, live.cause, Outcome::Superseded)? {
            let offset = turn.append(record);
            store.index().insert(store.keys().moved(found.offset), offset);
            topic.appended(offset);
            return Ok(Some(Decided { answer: (offset, round), receipt: turn.receipt() }));
        }
    }
}

/// The half message that the record at `cause` speaks for, and how far its transaction was with it. Nothing
/// when a record is damaged: it is lost alone.
///
/// # Errors
///
/// As [`super::find`].
pub fn transaction_of(
    store: &Store,
    cause: Offset,
) -> Result<Option<(Found, Clockwork)>, LookError> {
    let first = head(store, cause, |record| match record.header.kind {
        Kind::Check | Kind::Resume => Ok(Some(Opened::ByRound(Round::decode(record)?))),
        _ => Ok(Found::read(record)?.map(|found| Opened::ByHalf(Box::new(found)))),
    })?;
    Ok(match first {
        None => None,
        Some(Opened::ByHalf(found)) => {
            let terms = found.message.terms.as_ref();
            let clockwork = terms.map(|terms| terms.opened(found.message.born_at));
            clockwork.map(|clockwork| (*found, clockwork))
        }
        Some(Opened::ByRound(round)) => {
            let found = Found::at_home(store, round.message)?.filter(Found::is_half);
            found.map(|found| (found, round.clockwork()))
        }
    })
}

/// What speaks for an open transaction.
enum Opened {
    ByHalf(Box<Found>),
    ByRound(Round),
}

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionStanding {
    pub fate: Fate,
    /// Checks that were handed out since it was prepared, or resumed.
    pub checks: u32,
}

impl TransactionStanding {
    /// As what its message is to be seen until it is committed.
    pub const fn state(&self) -> Option<State> {
        match self.fate {
            Fate::Open(_) => Some(State::Prepared),
            Fate::Abandoned { .. } => Some(State::Abandoned),
            Fate::RolledBack => Some(State::RolledBack),
            Fate::Committed => None,
        }
    }
}

/// Where the transaction of the half message that was found stands.
///
/// # Errors
///
/// As [`Found::live`]. [`ChangeError::Unknown`] when it is no half message.
pub fn transaction_standing(
    store: &Store,
    found: &Found,
) -> Result<Decided<TransactionStanding>, ChangeError> {
    let live = found.live(store)?.filter(|_| found.is_half()).ok_or(ChangeError::Unknown)?;
    let fate = live.fate();
    let checks = match fate {
        Fate::Open(open) => open.count,
        Fate::Abandoned { checks } => checks,
        Fate::Committed | Fate::RolledBack => {
            match found.newest_link(store, |link| matches!(link, Link::Round(_)))? {
                Some((_, Link::Round(round))) => round.count,
                _ => 0,
            }
        }
    };
    let receipt = store.log().latest_receipt();
    Ok(Decided { answer: TransactionStanding { fate, checks }, receipt })
}

/// Some of the transactions, in the order they were prepared.
#[derive(Clone, Debug)]
pub struct TransactionPage {
    pub items: Vec<(Found, TransactionStanding)>,
    /// The unit of the half topic to go on with; `None` at the end.
    pub next: Option<u64>,
}

/// The transactions whose standing is `wanted`, of one topic or of all, from unit `from` of the half topic on.
///
/// # Errors
///
/// [`ChangeError::Look`].
pub fn list_transactions(
    store: &Store,
    topic_id: Option<u32>,
    wanted: impl Fn(&TransactionStanding) -> bool,
    from: u64,
    limit: usize,
) -> Result<Decided<TransactionPage>, ChangeError> {
    let receipt = store.log().latest_receipt();
    let halves: Arc<Topic> = store.topic_by_id(HALF_TOPIC_ID).ok_or(ChangeError::Unknown)?;
    let units = &halves.queues[0].units;
    let end = units.committed();
    let mut items = Vec::new();
    for place in from.max(units.first())..end {
        if items.len() == limit || place - from == MAX_READ {
            return Ok(Decided { answer: TransactionPage { items, next: Some(place) }, receipt });
        }
        let unit = units.unit(place).map_err(LookError::from)?;
        if unit.is_hole() {
            continue;
        }
        let Some((found, _)) = transaction_of(store, unit.offset)? else { continue };
        // One that was moved stands where it was moved to.
        let home = store.last_move(found.offset).map_err(LookError::from)?;
        if home.is_some_and(|home| home != found.home) {
            continue;
        }
        let named = topic_id.is_none_or(|id| id == found.message.topic_id);
        if !named || found.topic(store).is_none() {
            continue;
        }
        let standing = transaction_standing(store, &found)?.answer;
        if wanted(&standing) {
            items.push((found, standing));
        }
    }
    Ok(Decided { answer: TransactionPage { items, next: None }, receipt })
}
