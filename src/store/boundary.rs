//! Where the log may begin: the state at the begin of a segment, written into the log itself.
//!
//! ```text
//!   segment 3      │ segment 4                 segment 9 (the tail)
//!   ... the fold ──┴─> state as of here ──────────> parts, end            as soon as dispatch is past the segment's end
//!                                      ──────────> parts, end: lets go    before what is in front of segment 4 may go
//! ```
//!
//! A start without derived files begins with the oldest segment. What the segments before it said is in the state at
//! its begin; so none of them goes before that state stands in the log, twice, and durable.
//!
//! Ground rules:
//!
//! - A state is the fold of all that lies before its place: dispatch copies it when it stands there. One that a crash
//!   keeps from the log is missed by nobody: the log then begins at another segment.
//! - What is let go counts as settled and expired at once, in memory. The files go when both copies of the checkpoint
//!   say so, since a start may go by either: oldest first, and a crash in the midst leaves a log that begins at a place
//!   for which there need be no state. Then the next place that was let go up to is as good: nobody needs what is before
//!   it.

use std::collections::VecDeque;

use super::fold::{Dispatcher, Fold};
use super::keep::SegmentKeep;
use super::state::{State, StateError};
use super::{Store, StoreError};
use crate::clock::Timestamp;
use crate::commitlog::{AppendError, ReadError, Receipt};
use crate::message::offset::Offset;
use crate::message::record::{Kind, Record, STATE_PART, StateEnd, StatePart};
use crate::sync::Mutex;

/// States that wait to be appended.
const WAITING_MAX: usize = 2;

/// States that were copied and are not in the log yet.
#[derive(Debug, Default)]
pub(super) struct Boundaries {
    waiting: Mutex<VecDeque<Boundary>>,
}

/// The state at the begin of a segment.
#[derive(Clone, Debug)]
pub struct Boundary {
    pub at: Offset,
    bytes: Vec<u8>,
}

/// Why a state cannot be read back: then the log cannot begin where it stands for.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BoundaryError {
    #[error("no state as of offset {at} stands in the log")]
    Unknown { at: u64 },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the state as of offset {at} is damaged: {cause}")]
    Damaged { at: u64, cause: StateError },
}

/// How long the segments are kept, as dispatch has counted.
#[derive(Clone, Debug)]
pub struct Kept {
    pub begin: Offset,
    pub end: Offset,
    /// The latest time that any record tells.
    pub latest: Timestamp,
    pub hold_until: Timestamp,
    pub segments: Vec<(Offset, SegmentKeep)>,
    /// Where the log may begin.
    pub boundaries: Vec<Offset>,
}

/// What went unread, of one group and topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    pub group: String,
    pub topic: String,
    pub unread: u64,
}

impl Store {
    /// Copies the state when dispatch stands at the begin of a segment.
    pub(super) fn note_boundary(&self, dispatcher: &Dispatcher) {
        let at = dispatcher.at.offset;
        if at == Offset::ZERO || !at.get().is_multiple_of(self.log.segment_size()) {
            return;
        }
        let bytes = self.capture_at(dispatcher, Vec::new()).encode();
        debug_assert_eq!(State::decode(&bytes).map(drop), Ok(()), "what is written is read");
        let mut waiting = self.boundaries.waiting.lock();
        if waiting.len() == WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back(Boundary { at, bytes });
    }

    /// The oldest state that is not in the log yet.
    pub fn next_boundary(&self) -> Option<Boundary> {
        self.boundaries.waiting.lock().pop_front()
    }

    /// Appends the parts of the state from `part` on, and its end; answers the receipt of the end. Each stands in
    /// a group of its own, so that writers are not kept waiting.
    ///
    /// # Errors
    ///
    /// With the part to go on with, when the log takes nothing now.
    pub fn append_boundary(
        &self,
        boundary: &Boundary,
        lets_go: bool,
        part: &mut usize,
    ) -> Result<Receipt, AppendError> {
        let parts = boundary.bytes.chunks(STATE_PART);
        let count = parts.len();
        for bytes in parts.skip(*part) {
            let number = u32::try_from(*part).expect("a state has far fewer parts");
            let record = StatePart { at: boundary.at, part: number, bytes }.encode();
            self.log.turn_for_accepted(record.len())?.append(record);
            *part += 1;
        }
        let hash = xxhash_rust::xxh3::xxh3_64(&boundary.bytes);
        let parts = u32::try_from(count).expect("a state has far fewer parts");
        let record = StateEnd { at: boundary.at, hash, lets_go, parts }.encode();
        let mut turn = self.log.turn_for_accepted(record.len())?;
        turn.append(record);
        Ok(turn.receipt())
    }

    /// Reads back the state as of `at`.
    ///
    /// # Errors
    ///
    /// [`BoundaryError`]; then the log cannot begin there.
    pub fn boundary(&self, at: Offset) -> Result<Boundary, BoundaryError> {
        let parts = self.dispatcher.lock().boundaries.get(&at.get()).cloned();
        let parts = parts.ok_or(BoundaryError::Unknown { at: at.get() })?;
        let (mut state, mut bytes) = (Vec::new(), Vec::new());
        for offset in parts {
            let record = self.log.reader().record(offset, None, &mut bytes)?;
            let bad = |cause| ReadError::Record { offset: offset.get(), cause };
            state.extend_from_slice(StatePart::decode(&record).map_err(bad)?.bytes);
        }
        let found = State::decode(&state);
        let found = found.map_err(|cause| BoundaryError::Damaged { at: at.get(), cause })?;
        debug_assert_eq!(found.at.offset, at);
        Ok(Boundary { at, bytes: state })
    }

    /// The state as of `at` cannot be read back.
    pub fn forget_boundary(&self, at: Offset) {
        self.dispatcher.lock().boundaries.remove(&at.get());
    }

    /// The latest time that a record tells which dispatch has passed: the server was there then.
    pub fn latest_time(&self) -> Timestamp {
        self.dispatcher.lock().keep.latest
    }

    /// What retention goes by.
    pub fn kept(&self) -> Kept {
        let dispatcher = self.dispatcher.lock();
        let keep = &dispatcher.keep;
        let segments = keep.segments.iter().map(|(&at, &segment)| (Offset::new(at), segment));
        Kept {
            begin: self.log.begin(),
            end: dispatcher.at.offset,
            latest: keep.latest,
            hold_until: keep.hold_until,
            segments: segments.collect(),
            boundaries: dispatcher.boundaries.keys().map(|&at| Offset::new(at)).collect(),
        }
    }

    /// The log begins at the boundary from now on: nothing before it is needed by anybody. Its state must stand in
    /// the log, durable, and say that it lets go. Answers what nobody had read.
    pub fn let_go(&self, boundary: &Boundary) -> Vec<Expired> {
        let state = State::decode(&boundary.bytes).expect("it was decoded when it was read");
        let mut dispatcher = self.dispatcher.lock();
        dispatcher.keep.forget_below(boundary.at);
        dispatcher.boundaries = dispatcher.boundaries.split_off(&boundary.at.get());
        dispatcher.quarantined.forget_below(boundary.at);
        let expired = self.fold.expire(&state);
        self.log.let_go(boundary.at);
        self.index.forget_below(boundary.at);
        expired
    }

    /// Removes files that nobody needs any more, when both copies of the checkpoint say so.
    pub(super) fn release(&self, begin: Offset) -> Result<(), StoreError> {
        if self.log.extent().0 >= begin {
            return Ok(());
        }
        self.log.release(begin)?;
        for topic in self.fold.topics.all() {
            for queue in &topic.queues {
                queue.units.release(queue.units.first())?;
            }
        }
        Ok(())
    }
}

impl Fold {
    /// Everything that was readable at `state` has expired.
    pub(super) fn expire(&self, state: &State) -> Vec<Expired> {
        let mut unread = Vec::new();
        for of in &state.topics {
            let Some(topic) = self.topics.by_id(of.id) else { continue };
            for (number, (queue, &(_, length))) in (0..).zip(topic.queues.iter().zip(&of.queues)) {
                queue.units.expire(length);
                for group in self.groups.all() {
                    let mut progress = group.progress.lock();
                    let Some(there) = progress.get_mut(&(of.id, number)) else { continue };
                    let count = there.expire(length);
                    if count > 0 {
                        let (group, topic) = (group.name.clone(), topic.name.clone());
                        unread.push(Expired { group, topic, unread: count });
                    }
                }
            }
        }
        self.levels.expire(self.topics.by_id(super::LEVEL_TOPIC_ID).as_deref());
        unread
    }
}

/// Collects states from records as they come, and says which one a log is to begin with.
#[derive(Debug, Default)]
pub(super) struct Search {
    begin: Offset,
    at: Offset,
    parts: u32,
    bytes: Vec<u8>,
    /// The oldest from `begin` on.
    oldest: Option<(Offset, Vec<u8>)>,
    let_go: Offset,
}

impl Search {
    /// For a log whose oldest file begins at `begin`.
    pub(super) fn new(begin: Offset) -> Self {
        Self { begin, ..Self::default() }
    }

    /// Whether there is nothing more to look for.
    pub(super) fn see(&mut self, record: &Record<'_>) -> bool {
        match record.header.kind {
            Kind::State => {
                if let Ok(part) = StatePart::decode(record) {
                    if part.part == 0 {
                        (self.at, self.parts) = (part.at, 0);
                        self.bytes.clear();
                    }
                    if part.at == self.at && part.part == self.parts {
                        self.parts += 1;
                        self.bytes.extend_from_slice(part.bytes);
                    }
                }
            }
            Kind::StateEnd => {
                if let Ok(end) = StateEnd::decode(record) {
                    self.end(&end);
                }
            }
            _ => {}
        }
        self.oldest.as_ref().is_some_and(|&(at, _)| at == self.begin)
    }

    fn end(&mut self, end: &StateEnd) {
        let whole = end.at == self.at
            && end.parts == self.parts
            && end.hash == xxhash_rust::xxh3::xxh3_64(&self.bytes);
        if end.lets_go {
            self.let_go = self.let_go.max(end.at);
        }
        if whole
            && end.at >= self.begin
            && self.oldest.as_ref().is_none_or(|&(oldest, _)| end.at < oldest)
        {
            self.oldest = Some((end.at, std::mem::take(&mut self.bytes)));
        }
        self.parts = 0;
    }

    /// The state to begin with.
    pub(super) fn found(self) -> Result<State, BoundaryError> {
        let begin = self.begin.get();
        let (at, bytes) = self.oldest.ok_or(BoundaryError::Unknown { at: begin })?;
        if at > self.begin && at > self.let_go {
            return Err(BoundaryError::Unknown { at: begin });
        }
        State::decode(&bytes).map_err(|cause| BoundaryError::Damaged { at: at.get(), cause })
    }
}
