//! Finding the files of a row again, and judging them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::shared::Segment;
use super::{RowError, name};
use crate::disk::{Directory, File};
use crate::error::{Damage, DamageKind};

/// The segments in `directory`, by start position.
///
/// They follow each other without a gap, all are `segment_size` long, and they reach up to `length`.
/// The one file that may be otherwise is the newest, when it holds nothing but zeros and none of the
/// trusted `length` bytes: a crash while it was made has left it without its length. It is removed. A
/// file that was cut short is not: what is left of it may be all there is.
pub(super) fn find_segments(
    directory: &dyn Directory,
    segment_size: u64,
    length: u64,
) -> Result<BTreeMap<u64, Arc<Segment>>, RowError> {
    let starts = starts(directory, segment_size)?;
    let mut segments = BTreeMap::new();
    for (index, start) in starts.iter().enumerate() {
        let file = directory.open(&name::encode(*start))?;
        if file.length() == segment_size {
            segments.insert(*start, Segment::new(file));
        } else if index + 1 == starts.len() && *start >= length && holds_nothing(&*file)? {
            directory.remove(&name::encode(*start))?;
        } else {
            let kind = DamageKind::WrongLength { expected: segment_size, found: file.length() };
            return Err(Damage::of(file.path(), kind).into());
        }
    }
    let allocated = segments.keys().next_back().map_or(0, |start| start + segment_size);
    if length > allocated {
        return Err(missing(directory, allocated).into());
    }
    if !starts.is_empty() {
        make_durable(directory, &segments, segment_size, length)?;
    }
    Ok(segments)
}

/// Whether the file is empty or all zeros.
fn holds_nothing(file: &dyn File) -> Result<bool, RowError> {
    let mut block = vec![0; 64 * 1024];
    let mut at = 0;
    while let Some(found) = file.next_data(at)? {
        let left = usize::try_from(file.length() - found).unwrap_or(usize::MAX);
        let read = &mut block[..left.min(64 * 1024)];
        file.read_at(found, read)?;
        if read.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at = found + read.len() as u64;
    }
    Ok(true)
}

/// A process that was killed may have left files that only the page cache knows of. Before they are
/// reused as space they must be as durable as files that are made in this life.
fn make_durable(
    directory: &dyn Directory,
    segments: &BTreeMap<u64, Arc<Segment>>,
    segment_size: u64,
    length: u64,
) -> Result<(), RowError> {
    for (_, segment) in segments.iter().filter(|(start, _)| *start + segment_size > length) {
        segment.file.sync()?;
    }
    Ok(directory.sync()?)
}

/// The start positions that the names stand for, in order and without a gap.
fn starts(directory: &dyn Directory, segment_size: u64) -> Result<Vec<u64>, RowError> {
    let mut starts = Vec::new();
    for found in directory.list()? {
        match name::decode(&found) {
            Some(start) if start % segment_size == 0 => starts.push(start),
            _ => {
                let path = format!("{}/{found}", directory.path());
                return Err(Damage::of(path, DamageKind::ForeignName).into());
            }
        }
    }
    for pair in starts.windows(2) {
        let next = pair[0] + segment_size;
        if pair[1] != next {
            return Err(missing(directory, next).into());
        }
    }
    Ok(starts)
}

fn missing(directory: &dyn Directory, start: u64) -> Damage {
    let path = format!("{}/{}", directory.path(), name::encode(start));
    Damage::of(path, DamageKind::Missing)
}
