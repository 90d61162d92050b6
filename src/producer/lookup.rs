//! Look-up: from an id to its message, in one read; and to what gives it its moment, in one more when it
//! was moved.

use std::sync::Arc;

use bytes::Bytes;

use super::LookError;
use super::look::head;
use crate::clock::Timestamp;
use crate::commitlog::{Outcome, ReadError, Receipt};
use crate::message::State;
use crate::message::id::ClaimedId;
use crate::message::offset::Offset;
use crate::message::record::{
    Clockwork, Commit, Delivery, Kind, Message, Moved, Placement, Record, RecordError, Reschedule,
    Round, RoundKind,
};
use crate::message::timer_tag::TimerTag;
use crate::store::{CauseError, Read, Store, Topic};

/// How many units before the likely ones are looked at for the firing of a message: about 10 ms of search.
const SEARCH_BACK: u64 = 100_000;

/// A message that an id stands for.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it first stood: what its id is made of.
    pub offset: Offset,
    /// Where it is read now: there, or where it was moved to.
    pub home: Offset,
    /// That record's unpadded length.
    pub length: u32,
    pub message: Message,
}

/// Why an id stands for nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotFound {
    /// It is not ours, or its message is gone.
    #[error("there is no message with this id")]
    Unknown,
    #[error(transparent)]
    Read(#[from] CauseError),
}

impl From<ReadError> for NotFound {
    fn from(error: ReadError) -> Self {
        Self::Read(error.into())
    }
}

/// The message that `id` stands for.
///
/// # Errors
///
/// [`NotFound::Unknown`] for everything that is not an id of a message that is kept.
pub fn find(store: &Store, id: &str) -> Result<Found, NotFound> {
    let claimed = ClaimedId::parse(id).ok_or(NotFound::Unknown)?;
    let mut bytes = Vec::new();
    if !claimed.offset.is_on_step() {
        return Err(NotFound::Unknown);
    }
    let home = store.home(claimed.offset)?;
    let record = match store.log().reader().head(home, &mut bytes) {
        Ok(record) => record,
        // Nothing that looks like a record stands where a forged id points.
        Err(ReadError::Record { .. } | ReadError::PastTheEnd { .. } | ReadError::Group { .. }) => {
            return Err(NotFound::Unknown);
        }
        Err(error @ ReadError::Row(_)) => return Err(error.into()),
    };
    let found = Found::read(&record).map_err(|_| NotFound::Unknown)?;
    let found = found.filter(|found| found.offset == claimed.offset).ok_or(NotFound::Unknown)?;
    if !store.ids().confirms(&claimed, found.message.nonce) || !is_kept(store, &found.message) {
        return Err(NotFound::Unknown);
    }
    Ok(found)
}

/// The message that `cause` speaks for, of `length` bytes as the wheel has it. Nothing when its record is
/// damaged: it is lost alone.
///
/// # Errors
///
/// When the disk fails.
pub fn of_cause(store: &Store, cause: Offset, length: u32) -> Result<Option<Found>, CauseError> {
    let mut bytes = Vec::new();
    match store.caused(cause, length, Read::HeadOnly, &mut bytes) {
        Ok(caused) => Ok(Some(Found::of(caused.offset, &caused.record, caused.message))),
        Err(CauseError::Read(ReadError::Record { offset, cause })) => {
            tracing::error!(offset, error = %cause, "a timed record is damaged");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Why a message's body cannot be given out.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BodyError {
    #[error(transparent)]
    Damaged(RecordError),
    #[error(transparent)]
    Read(ReadError),
}

/// The body of a message that was found.
///
/// # Errors
///
/// [`BodyError::Damaged`] when the disk has not kept it.
pub fn body(store: &Store, found: &Found) -> Result<Bytes, BodyError> {
    let mut bytes = Vec::new();
    match store.log().reader().record(found.home, Some(found.length), &mut bytes) {
        Ok(record) => Ok(Bytes::copy_from_slice(record.body)),
        Err(ReadError::Record { cause, .. }) => Err(BodyError::Damaged(cause)),
        Err(error) => Err(BodyError::Read(error)),
    }
}

/// Where a message stands, and what the answer waits for.
#[derive(Clone, Debug)]
pub struct Standing {
    pub state: State,
    /// When it is to be readable, or was put.
    pub deliver_at: Timestamp,
    /// What gave it its moment.
    pub cause: Offset,
    pub receipt: Option<Receipt>,
}

/// What gives a message its moment now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    pub cause: Offset,
    /// The cause's unpadded length.
    pub length: u32,
    pub deadline: Timestamp,
    /// How it was settled, if it was.
    pub outcome: Option<Outcome>,
    pub speaker: Speaker,
}

/// What it is that speaks for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// Its own record, or what has moved it since.
    Moment,
    /// The commit of its transaction.
    Commit,
    /// Its transaction is open, unless that was settled.
    Open(Clockwork),
    /// Its transaction was abandoned after so many checks.
    Abandoned { checks: u32 },
}

/// What has become of the transaction of a half message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Open(Clockwork),
    Abandoned { checks: u32 },
    Committed,
    RolledBack,
}

impl Live {
    /// The fate of the transaction, for what speaks for a half message.
    pub fn fate(&self) -> Fate {
        match (self.speaker, self.outcome) {
            (Speaker::Open(clockwork), None) => Fate::Open(clockwork),
            (Speaker::Open(_), Some(Outcome::Withdrawn | Outcome::Dropped)) => Fate::RolledBack,
            (Speaker::Abandoned { checks }, _) => Fate::Abandoned { checks },
            (Speaker::Open(_) | Speaker::Commit | Speaker::Moment, _) => Fate::Committed,
        }
    }
}

/// A record that was appended for a message later than its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Link {
    Reschedule(Reschedule),
    Commit(Commit),
    Round(Round),
}

impl Link {
    fn read(record: &Record<'_>) -> Result<Option<Self>, RecordError> {
        Ok(match record.header.kind {
            Kind::Reschedule => Some(Self::Reschedule(Reschedule::decode(record)?)),
            Kind::Commit => Some(Self::Commit(Commit::decode(record)?)),
            Kind::Check | Kind::Resume | Kind::Abandon => Some(Self::Round(Round::decode(record)?)),
            _ => None,
        })
    }

    const fn message(&self) -> Offset {
        match self {
            Self::Reschedule(moved) => moved.message,
            Self::Commit(commit) => commit.message,
            Self::Round(round) => round.message,
        }
    }
}

/// The half message that a commit is about.
pub(super) fn commit_of(record: &Record<'_>) -> Result<Offset, RecordError> {
    Commit::decode(record).map(|commit| commit.message)
}

fn is_kept(store: &Store, message: &Message) -> bool {
    store.topic_by_id(message.topic_id).is_some_and(|topic| !topic.is_deleted())
}

impl Found {
    pub(super) fn of(offset: Offset, record: &Record<'_>, message: Message) -> Self {
        let length = record.header.length();
        let length = u32::try_from(length).expect("a record is shorter than its group of 8 MiB");
        Self { offset, home: record.header.offset, length, message }
    }

    /// The message that first stood at `message`; `None` when it is damaged, or gone.
    pub(super) fn at_home(store: &Store, message: Offset) -> Result<Option<Self>, LookError> {
        let home = store.home(message)?;
        let found = head(store, home, Self::read)?;
        Ok(found.filter(|found| found.offset == message))
    }

    /// The message where it was moved to since; `None` when it is lost, or was not moved.
    pub(super) fn moved_on(&self, store: &Store) -> Result<Option<Self>, LookError> {
        match store.last_move(self.offset)? {
            Some(home) if home > self.home => head(store, home, Self::read),
            _ => Ok(None),
        }
    }

    /// The message of its own record, or of one that it was moved to; `None` for any other record.
    pub(super) fn read(record: &Record<'_>) -> Result<Option<Self>, RecordError> {
        Ok(match record.header.kind {
            Kind::Message | Kind::HalfMessage => {
                Some(Self::of(record.header.offset, record, Message::decode(record)?))
            }
            Kind::Move => {
                let moved = Moved::decode(record)?;
                Some(Self::of(moved.message, record, moved.of))
            }
            _ => None,
        })
    }

    /// The message's id.
    pub fn id(&self, store: &Store) -> String {
        store.ids().message_id(self.offset, self.message.nonce)
    }

    /// Whether it is found by `key`: one of its own, or that of its timer.
    pub fn has_key(&self, key: &str) -> bool {
        let timer = self.message.timer.as_ref().is_some_and(|timer| timer.key == key);
        timer || self.message.attributes.keys.iter().any(|own| own == key)
    }

    /// The message's topic; `None` when that was deleted.
    pub fn topic(&self, store: &Store) -> Option<Arc<Topic>> {
        store.topic_by_id(self.message.topic_id).filter(|topic| !topic.is_deleted())
    }

    /// What its entry in the wheel is tagged with, while `live` speaks for it; or that it has none, since it
    /// waits in a delay level.
    pub(super) fn timer_tag(&self, live: &Live) -> TimerTag {
        let message = &self.message;
        let tag = match message.placement {
            Placement::Level { .. } if live.cause == self.offset => TimerTag::level,
            _ => TimerTag::message,
        };
        tag(message.topic_id, message.queue, message.tag_hash)
    }

    /// Whether it came by way of a transaction.
    pub const fn is_half(&self) -> bool {
        self.message.terms.is_some()
    }

    /// What gives the message its moment: its own record, or the last that was appended for it, as a
    /// reschedule is. It may be settled by another one before it is used: a turn tells. A message that was ready
    /// at once has none.
    ///
    /// What speaks for a half message is found in the same way. The outcome of its open transaction tells
    /// a rollback (*withdrawn*) and a commit without a moment (*delivered*); everything else supersedes it, and the
    /// record that does is the last of those that the index has.
    ///
    /// # Errors
    ///
    /// [`LookError::NotWritten`] when the last such record cannot be read yet.
    pub fn live(&self, store: &Store) -> Result<Option<Live>, LookError> {
        let (deadline, speaker) = match (self.message.placement.deadline(), &self.message.terms) {
            (None, None) => return Ok(None),
            (Some(deadline), None) => (deadline, Speaker::Moment),
            (_, Some(terms)) => {
                (self.asked_for(), Speaker::Open(terms.opened(self.message.born_at)))
            }
        };
        let settled = store.log().settled();
        let outcome = settled.get(self.offset)?;
        if outcome != Some(Outcome::Superseded) {
            let (cause, length) = (self.offset, self.length);
            return Ok(Some(Live { cause, length, deadline, outcome, speaker }));
        }
        let mut missed = Missed::Never;
        loop {
            let Some((cause, link)) = self.last_link(store)? else {
                if self.offset < store.log().begin() {
                    return Ok(Some(self.delivered_long_ago()));
                }
                return Err(LookError::Lost { message: self.offset.get() });
            };
            if let Link::Commit(Commit { placement: Placement::Ready { .. }, .. }) = link {
                return Ok(Some(self.committed_for_now()));
            }
            let outcome = settled.get(cause)?;
            if outcome != Some(Outcome::Superseded) {
                return Ok(Some(self.spoken_for(cause, &link, outcome)));
            }
            // A turn settles before it inserts: what it is about to insert is there when it ends.
            if missed == Missed::At(cause) {
                return Err(LookError::Lost { message: self.offset.get() });
            }
            missed = Missed::At(cause);
            store.log().end();
        }
    }

    /// When it is to be readable, as its producer asked.
    pub(super) const fn asked_for(&self) -> Timestamp {
        match self.message.placement.deadline() {
            Some(deadline) => deadline,
            None => self.message.born_at,
        }
    }

    /// What gave it its moment was let go, and nothing carries it on: it had fired.
    fn delivered_long_ago(&self) -> Live {
        let speaker = if self.is_half() { Speaker::Commit } else { Speaker::Moment };
        Live { speaker, ..self.committed_for_now() }
    }

    /// Such a commit is no cause: the unit in the queue is that of the half message.
    const fn committed_for_now(&self) -> Live {
        Live {
            cause: self.offset,
            length: self.length,
            deadline: self.asked_for(),
            outcome: Some(Outcome::Delivered),
            speaker: Speaker::Commit,
        }
    }

    fn spoken_for(&self, cause: Offset, link: &Link, outcome: Option<Outcome>) -> Live {
        let (length, deadline, speaker) = match link {
            Link::Reschedule(moved) => (Reschedule::LENGTH, moved.deadline, Speaker::Moment),
            Link::Commit(_) => (Commit::LENGTH, self.asked_for(), Speaker::Commit),
            Link::Round(round) => {
                let speaker = match round.kind {
                    RoundKind::Abandon => Speaker::Abandoned { checks: round.count },
                    RoundKind::Check | RoundKind::Resume => Speaker::Open(round.clockwork()),
                };
                (Round::LENGTH, self.asked_for(), speaker)
            }
        };
        Live { cause, length, deadline, outcome, speaker }
    }

    fn last_link(&self, store: &Store) -> Result<Option<(Offset, Link)>, LookError> {
        // The first of all is missed in the same way.
        for look in 0..2 {
            if look > 0 {
                store.log().end();
            }
            let found = self.newest_link(store, |_| true)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The newest of the records appended for it that is `wanted`.
    pub(super) fn newest_link(
        &self,
        store: &Store,
        wanted: impl Fn(&Link) -> bool,
    ) -> Result<Option<(Offset, Link)>, LookError> {
        for offset in store.index().newest_first(store.keys().moved(self.offset), None) {
            let offset = offset?;
            let link = head(store, offset, Link::read)?;
            if let Some(link) = link.filter(|link| link.message() == self.offset && wanted(link)) {
                return Ok(Some((offset, link)));
            }
        }
        Ok(None)
    }

    /// Where the message stands now. A timed message's answer holds once its receipt is durable.
    ///
    /// # Errors
    ///
    /// As [`Found::live`].
    pub fn standing(&self, store: &Store) -> Result<Standing, LookError> {
        let Some(live) = self.live(store)? else {
            let (deliver_at, cause) = (self.message.born_at, self.offset);
            return Ok(Standing { state: State::Ready, deliver_at, cause, receipt: None });
        };
        let undecided = self.is_half().then(|| live.fate());
        let (state, cause) = match (undecided, live.outcome) {
            (Some(Fate::Open(_)), _) => (State::Prepared, live.cause),
            (Some(Fate::Abandoned { .. }), _) => (State::Abandoned, live.cause),
            (Some(Fate::RolledBack), _) => (State::RolledBack, live.cause),
            // Committed while its transaction was open: its place in the queue is its own.
            (Some(Fate::Committed), Some(Outcome::Delivered))
                if matches!(live.speaker, Speaker::Open(_)) =>
            {
                (State::Ready, self.offset)
            }
            (_, None) => (State::Scheduled, live.cause),
            (_, Some(Outcome::Delivered)) => (State::Ready, live.cause),
            (_, Some(Outcome::Withdrawn | Outcome::Superseded | Outcome::Dropped)) => {
                (State::Cancelled, live.cause)
            }
        };
        let receipt = Some(store.log().latest_receipt());
        Ok(Standing { state, deliver_at: live.deadline, cause, receipt })
    }

    /// When the message fired, as it stands: by the index for one that was asked to, else searched in its
    /// queue; `None` when dispatch has not brought it there, or it fired too long before its place in the
    /// order of time, under a clock that was set back.
    ///
    /// Firing of itself leaves no index behind. A queue's units are in the order of their firing, so the
    /// search starts at the deadline; it ends at once but for messages that fired long after theirs.
    ///
    /// # Errors
    ///
    /// When the queue cannot be read.
    pub fn fired_at(
        &self,
        store: &Store,
        topic: &Topic,
        standing: &Standing,
    ) -> Result<Option<Timestamp>, LookError> {
        if self.message.placement.deadline().is_none() {
            return Ok(None);
        }
        if standing.cause < store.log().begin() {
            // Where it stood has expired.
            return Ok(None);
        }
        if standing.cause == self.offset
            && self.is_half()
            && let Some((_, Link::Commit(commit))) = self.newest_link(store, |_| true)?
        {
            return Ok(Some(commit.at));
        }
        if let Some(at) = asked(store, standing.cause)? {
            return Ok(Some(at));
        }
        let Some(queue) = topic.queue(self.message.queue) else { return Ok(None) };
        let units = &queue.units;
        let start = units.first_not_before(standing.deliver_at)?;
        // A clock that was stepped back breaks the order: then some of what lies before is searched, too.
        let before = start.saturating_sub(SEARCH_BACK)..start;
        for place in (start..units.committed()).chain(before.rev()) {
            let unit = units.unit(place)?;
            if unit.offset == standing.cause {
                return Ok(Some(unit.time));
            }
        }
        Ok(None)
    }
}

/// When the cause was asked to fire, if it was.
fn asked(store: &Store, cause: Offset) -> Result<Option<Timestamp>, LookError> {
    for offset in store.index().newest_first(store.keys().asked(cause), None) {
        let mut bytes = Vec::new();
        let record = store.log().reader().record(offset?, None, &mut bytes)?;
        if record.header.kind == Kind::Delivery
            && let Ok(run) = Delivery::decode(&record)
            && run.fired.iter().any(|fired| fired.cause == cause)
        {
            return Ok(Some(run.fired_at));
        }
    }
    Ok(None)
}

/// The last reschedule that was found settled by a later one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missed {
    Never,
    At(Offset),
}
