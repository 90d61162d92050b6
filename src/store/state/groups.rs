//! Groups in the state; see the page above.

use super::{GroupState, Reader, StateError, Writer};
use crate::clock::Timestamp;
use crate::message::offset::Offset;
use crate::message::record::{decode_settings, encode_settings};
use crate::message::{GroupSettings, TagFilter};
use crate::store::groups::Reading;
use crate::store::progress::QueueProgress;
use crate::store::resets::{Reset, Resets};

/// Instead of a count of tags: the filter is not decided.
const UNDECIDED: u32 = u32::MAX;

impl GroupState {
    pub(super) fn encode(&self, out: &mut Writer) {
        out.u32(self.id);
        out.u32(self.epoch);
        out.u64(self.settings.invisible_for_ms);
        out.text(&self.name);
        let settings = encode_settings(&self.settings);
        out.count(settings.len());
        out.bytes(&settings);
        out.count(self.progress.len());
        for (&(topic, queue), progress) in &self.progress {
            out.u32(topic);
            out.u16(usize::from(queue));
            encode_progress(progress, out);
        }
        out.count(self.readings.len());
        for (&topic, reading) in &self.readings {
            out.u32(topic);
            encode_reading(reading, out);
        }
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, StateError> {
        let (id, epoch, invisible_for_ms) = (input.u32()?, input.u32()?, input.u64()?);
        let name = input.text()?;
        let length = input.u32()? as usize;
        let others = decode_settings(input.take(length)?)?;
        let settings = GroupSettings { invisible_for_ms, ..others };
        let progress = input.list(|input| {
            let key = (input.u32()?, input.u16()?);
            Ok((key, decode_progress(input)?))
        })?;
        let readings = input.list(|input| Ok((input.u32()?, decode_reading(input)?)))?;
        let (progress, readings) = (progress.into_iter().collect(), readings.into_iter().collect());
        Ok(Self { id, epoch, name, settings, progress, readings })
    }
}

fn encode_progress(progress: &QueueProgress, out: &mut Writer) {
    let (floor, stretches, attempts) = progress.parts();
    out.u64(floor);
    out.count(stretches.len());
    for (&first, &end) in stretches {
        out.u64(first);
        out.u64(end);
    }
    out.count(attempts.len());
    for (&offset, &attempts) in attempts {
        out.u64(offset);
        out.u32(attempts);
    }
    out.count(progress.delays().len());
    for (&offset, &until) in progress.delays() {
        out.u64(offset);
        out.u64(until.as_millis());
    }
    let (vouched_from, returned) = progress.returned();
    out.u64(vouched_from);
    out.count(returned.len());
    returned.iter().for_each(|&offset| out.u64(offset));
    let resets = progress.resets().parts();
    out.count(resets.len());
    for reset in resets {
        [reset.at.get(), reset.start, reset.retries_end].into_iter().for_each(|part| out.u64(part));
    }
}

fn decode_progress(input: &mut Reader<'_>) -> Result<QueueProgress, StateError> {
    let floor = input.u64()?;
    let stretches = input.list(|input| Ok((input.u64()?, input.u64()?)))?;
    let attempts = input.list(|input| Ok((input.u64()?, input.u32()?)))?;
    let delays = input.list(|input| Ok((input.u64()?, Timestamp::from_millis(input.u64()?))))?;
    let mut behind = floor;
    for &(first, end) in &stretches {
        if first <= behind || end <= first {
            return Err(StateError::Progress);
        }
        behind = end;
    }
    let (stretches, attempts) = (stretches.into_iter().collect(), attempts.into_iter().collect());
    let progress = QueueProgress::from_parts(floor, stretches, attempts);
    let vouched_from = input.u64()?;
    let returned = input.list(Reader::u64)?.into_iter().collect();
    let resets = input.list(|input| {
        let at = Offset::new(input.u64()?);
        Ok(Reset { at, start: input.u64()?, retries_end: input.u64()? })
    })?;
    let progress = progress.with_returned(delays.into_iter().collect(), vouched_from, returned);
    let resets = Resets::from_parts(resets);
    let resets = resets.ok_or(StateError::NotAsWritten("resets of offsets are out of order"))?;
    let progress = progress.with_resets(resets);
    if progress.adds_up() { Ok(progress) } else { Err(StateError::Progress) }
}

fn encode_reading(reading: &Reading, out: &mut Writer) {
    out.u64(reading.fence);
    match &reading.filter {
        None => out.u32(UNDECIDED),
        Some(filter) => {
            out.count(filter.tags().len());
            filter.tags().iter().for_each(|tag| out.text(tag));
        }
    }
}

fn decode_reading(input: &mut Reader<'_>) -> Result<Reading, StateError> {
    let fence = input.u64()?;
    let filter = match input.u32()? {
        UNDECIDED => None,
        count => {
            let tags = (0..count).map(|_| input.text()).collect::<Result<Vec<_>, _>>()?;
            Some(TagFilter::new(tags))
        }
    };
    Ok(Reading { fence, filter })
}
