//! The state at a place in the log, as bytes: what a checkpoint holds.
//!
//! ```text
//! version 5 · T: offset 8, next group number 8, previous hash 16, incarnation 8
//! durable upto 8 · settled pages written upto 8 · the log begins at 8
//! counts: accepted 8, scheduled 8, fired 8, cancelled 8, dropped 8, timer units 8
//! next topic id 4 · next group id 4
//! topics 4, each: id 4, set at 8, type 1, retention ms 8, pending 8, queues 2, each: first 8, length 8;
//!     name (length 2, bytes)
//! groups 4, each: id 4, epoch 4, invisible for 8, name; settings 4, bytes (the body of their record);
//!     queues 4, each: topic 4, queue 2, floor 8, stretches 4, each: first 8, end 8,
//!         attempts 4, each: offset 8, attempts 4, delays 4, each: offset 8, until ms 8;
//!         vouched from 8, returned 4, each: offset 8,
//!         resets 4, each: at 8, start 8, retries end 8;
//!     topics read 4, each: topic 4, fence 8, tags 4 and each of them, all ones: not decided
//! level queues 4, each: delay ms 8, released up to 8
//! latest time 8, hold until 8 · segments 4, each: begin 8, free after 8, messages 8, waiting 8
//! boundaries 4, each: at 8, parts 4, each: offset 8
//! set aside 8 · of them listed 4, each: from 8, length 8, reason 1
//! index: length 4, bytes (the index's own format) · timer: length 4, bytes (the timer's own format)
//! ```
//!
//! Little-endian. The envelope (magic, generation, crc, two copies) is that of the checkpoint file. A
//! reader may trust it when the envelope is whole, and the log is durable up to *durable upto*.

use std::collections::BTreeMap;

#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
mod groups;
mod order;

use super::groups::{QueueKey, Reading};
use super::keep::SegmentKeep;
use super::levels::LevelQueue;
use super::progress::QueueProgress;
use super::quarantined::Quarantined;
use crate::clock::Timestamp;
use crate::commitlog::ScanFrom;
use crate::message::offset::Offset;
use crate::message::record::{DamageReason, RecordError, topic_type_number, topic_type_of};
use crate::message::{GroupSettings, TopicType};

const VERSION: u32 = 5;

/// What dispatch has counted since the log began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages put, to be ready at once or at a moment.
    pub accepted: u64,
    /// Those of them with a moment.
    pub scheduled: u64,
    pub fired: u64,
    pub cancelled: u64,
    /// Those that waited when their topic was deleted.
    pub dropped: u64,
    /// Units of the timer topic: causes and cancels.
    pub timer_units: u64,
}

impl Counts {
    /// Messages that wait for their moment.
    pub fn pending(&self) -> u64 {
        self.scheduled.saturating_sub(self.fired + self.cancelled + self.dropped)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopicState {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) set_at: Offset,
    pub(super) of: TopicType,
    pub(super) retention_ms: Option<u64>,
    pub(super) pending: u64,
    /// Of each queue the first unit that has not expired, and where the next one goes.
    pub(super) queues: Vec<(u64, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupState {
    pub(super) id: u32,
    pub(super) epoch: u32,
    pub(super) name: String,
    pub(super) settings: GroupSettings,
    pub(super) progress: BTreeMap<QueueKey, QueueProgress>,
    pub(super) readings: BTreeMap<u32, Reading>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) at: ScanFrom,
    pub(super) durable_upto: Offset,
    pub(super) settled_upto: Offset,
    pub(super) begin: Offset,
    pub(super) counts: Counts,
    pub(super) next_topic_id: u32,
    pub(super) next_group_id: u32,
    pub(super) topics: Vec<TopicState>,
    pub(super) groups: Vec<GroupState>,
    pub(super) levels: Vec<LevelQueue>,
    pub(super) latest: Timestamp,
    pub(super) hold_until: Timestamp,
    pub(super) segments: BTreeMap<u64, SegmentKeep>,
    pub(super) boundaries: BTreeMap<u64, Vec<Offset>>,
    pub(super) quarantined: Quarantined,
    pub(super) index: Vec<u8>,
    pub(super) timer: Vec<u8>,
}

/// Why bytes are not a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("the state ends too early")]
    Short,
    #[error("the state is in version {got}, not in {VERSION}")]
    Version { got: u32 },
    #[error("a name in the state is not UTF-8")]
    NotText,
    #[error("a topic in the state has type {number}, which is not known")]
    TopicType { number: u8 },
    #[error("a stretch in the state is set aside for reason {number}, which is not known")]
    DamageReason { number: u8 },
    #[error("the settings of a group in the state: {0}")]
    Settings(#[from] RecordError),
    #[error("{0} bytes follow the state's end")]
    Trailing(usize),
    #[error("how far a group is does not add up")]
    Progress,
    #[error("the state is not written as it would be: {0}")]
    NotAsWritten(&'static str),
}

impl State {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u32(VERSION);
        out.u64(self.at.offset.get());
        out.u64(self.at.next_number);
        out.bytes(&self.at.previous_hash.to_le_bytes());
        out.u64(self.at.incarnation);
        out.u64(self.durable_upto.get());
        out.u64(self.settled_upto.get());
        out.u64(self.begin.get());
        let counts = &self.counts;
        for count in [
            counts.accepted,
            counts.scheduled,
            counts.fired,
            counts.cancelled,
            counts.dropped,
            counts.timer_units,
        ] {
            out.u64(count);
        }
        out.u32(self.next_topic_id);
        out.u32(self.next_group_id);
        out.count(self.topics.len());
        self.topics.iter().for_each(|topic| topic.encode(&mut out));
        out.count(self.groups.len());
        self.groups.iter().for_each(|group| group.encode(&mut out));
        out.count(self.levels.len());
        for queue in &self.levels {
            out.u64(queue.delay_ms);
            out.u64(queue.released);
        }
        self.encode_retention(&mut out);
        for part in [&self.index, &self.timer] {
            out.count(part.len());
            out.bytes(part);
        }
        out.0
    }

    fn encode_retention(&self, out: &mut Writer) {
        out.u64(self.latest.as_millis());
        out.u64(self.hold_until.as_millis());
        out.count(self.segments.len());
        for (&begin, segment) in &self.segments {
            let free_after = segment.free_after.as_millis();
            for value in [begin, free_after, segment.messages, segment.waiting] {
                out.u64(value);
            }
        }
        out.count(self.boundaries.len());
        for (&at, parts) in &self.boundaries {
            out.u64(at);
            out.count(parts.len());
            parts.iter().for_each(|part| out.u64(part.get()));
        }
        out.u64(self.quarantined.count);
        out.count(self.quarantined.listed.len());
        for (&from, &(length, reason)) in &self.quarantined.listed {
            out.u64(from);
            out.u64(length);
            out.bytes(&[reason as u8]);
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StateError> {
        let mut input = Reader(bytes);
        let version = input.u32()?;
        if version != VERSION {
            return Err(StateError::Version { got: version });
        }
        let at = ScanFrom {
            offset: Offset::new(input.u64()?),
            next_number: input.u64()?,
            previous_hash: input.u128()?,
            incarnation: input.u64()?,
        };
        let (durable_upto, settled_upto) = (Offset::new(input.u64()?), Offset::new(input.u64()?));
        let begin = Offset::new(input.u64()?);
        let counts = Counts {
            accepted: input.u64()?,
            scheduled: input.u64()?,
            fired: input.u64()?,
            cancelled: input.u64()?,
            dropped: input.u64()?,
            timer_units: input.u64()?,
        };
        let (next_topic_id, next_group_id) = (input.u32()?, input.u32()?);
        let topics = input.list(TopicState::decode)?;
        let groups = input.list(GroupState::decode)?;
        let level = |input: &mut Reader<'_>| {
            Ok(LevelQueue { delay_ms: input.u64()?, released: input.u64()? })
        };
        let levels = input.list(level)?;
        let (latest, hold_until) = (input.time()?, input.time()?);
        let segments = input.list(|input| {
            let (begin, free_after) = (input.u64()?, input.time()?);
            let (messages, waiting) = (input.u64()?, input.u64()?);
            Ok((begin, SegmentKeep { free_after, messages, waiting }))
        })?;
        let boundaries = input.list(|input| {
            let at = input.u64()?;
            Ok((at, input.list(|input| Ok(Offset::new(input.u64()?)))?))
        })?;
        let count = input.u64()?;
        let listed = input.list(|input| {
            let (from, length) = (input.u64()?, input.u64()?);
            let [number] = input.array()?;
            let reason = DamageReason::of(number).ok_or(StateError::DamageReason { number })?;
            Ok((from, (length, reason)))
        })?;
        let quarantined = Quarantined { count, listed: listed.into_iter().collect() };
        let (index, timer) = (input.part()?, input.part()?);
        if !input.0.is_empty() {
            return Err(StateError::Trailing(input.0.len()));
        }
        let state = Self {
            at,
            durable_upto,
            settled_upto,
            begin,
            counts,
            next_topic_id,
            next_group_id,
            topics,
            groups,
            levels,
            latest,
            hold_until,
            segments: segments.into_iter().collect(),
            boundaries: boundaries.into_iter().collect(),
            quarantined,
            index,
            timer,
        };
        // A key that is there twice, or lists out of order: no state of ours.
        if state.encode() != bytes {
            return Err(StateError::NotAsWritten("something is there twice, or out of order"));
        }
        order::check(&state)?;
        Ok(state)
    }
}

impl TopicState {
    fn encode(&self, out: &mut Writer) {
        out.u32(self.id);
        out.u64(self.set_at.get());
        out.bytes(&[topic_type_number(self.of)]);
        out.u64(self.retention_ms.unwrap_or(0));
        out.u64(self.pending);
        out.u16(self.queues.len());
        for &(first, length) in &self.queues {
            out.u64(first);
            out.u64(length);
        }
        out.text(&self.name);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, StateError> {
        let (id, set_at) = (input.u32()?, Offset::new(input.u64()?));
        let [number] = input.array()?;
        let of = topic_type_of(number).ok_or(StateError::TopicType { number })?;
        let retention_ms = Some(input.u64()?).filter(|&retention| retention > 0);
        let pending = input.u64()?;
        let queues = input.u16()?;
        let queue = |_| Ok((input.u64()?, input.u64()?));
        let queues = (0..queues).map(queue).collect::<Result<_, StateError>>()?;
        Ok(Self { id, name: input.text()?, set_at, of, retention_ms, pending, queues })
    }
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u16(&mut self, value: usize) {
        let value = u16::try_from(value).expect("queues and names are counted in 16 bits");
        self.bytes(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).expect("ids have 32 bits, so nothing here is more"));
    }

    fn text(&mut self, text: &str) {
        self.u16(text.len());
        self.bytes(text.as_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], StateError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(StateError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], StateError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16, StateError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, StateError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, StateError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn time(&mut self) -> Result<Timestamp, StateError> {
        Ok(Timestamp::from_millis(self.u64()?))
    }

    fn u128(&mut self) -> Result<u128, StateError> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    fn part(&mut self) -> Result<Vec<u8>, StateError> {
        let length = self.u32()? as usize;
        Ok(self.take(length)?.to_vec())
    }

    fn text(&mut self) -> Result<String, StateError> {
        let length = usize::from(self.u16()?);
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| StateError::NotText)?;
        Ok(text.to_owned())
    }

    /// A count and so many items. Nothing is allocated for a count that the bytes cannot hold.
    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, StateError>,
    ) -> Result<Vec<T>, StateError> {
        let count = self.u32()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::fuzzing::sample;
    use super::*;

    #[test]
    fn a_state_comes_back_as_it_was_written() {
        assert_eq!(State::decode(&sample().encode()), Ok(sample()));
        assert_eq!(State::decode(&State::default().encode()), Ok(State::default()));
    }

    #[test]
    fn a_state_cut_anywhere_is_refused() {
        let bytes = sample().encode();
        for length in 0..bytes.len() {
            assert!(State::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(State::decode(&[&bytes[..], &[0]].concat()), Err(StateError::Trailing(1)));
    }
}
