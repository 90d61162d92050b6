//! The ConsumeQueue: per topic and queue, the messages that can be read, in order, as pointers into the
//! CommitLog.
//!
//! ```text
//!   consumequeue/<topic id>/00002-00000000000000000000   queue 2, units 0 to 127
//!                           00002-00000000000000000128   the next 256, and so on: sizes double
//! ```
//!
//! Ground rules: dispatch is the only writer; readers see units below *committed*, which grows after
//! the unit is written. Units before *first* have expired: they read as holes, and files that have none but
//! those are removed. Everything here is derived from the log. Files start small and double, so that
//! ten thousand quiet topics cost ten thousand small files and not gigabytes.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod home;
mod unit;

use std::collections::BTreeMap;
use std::sync::Arc;

use timerlog::disk::{Directory, DiskError, File, Mapping};
use timerlog::planted::{self, Fault};

pub use self::home::Home;
pub use self::unit::{UNIT_LENGTH, Unit};
use crate::clock::Timestamp;
use crate::sync::{AtomicBool, AtomicU64, Ordering, RwLock};

/// Units in the first file, and how often the size doubles.
const FIRST_FILE_UNITS: u64 = 128;
const DOUBLINGS: u32 = 11;

/// Stands beside the files of a topic of which one was found damaged while running: the next start, which looks at few
/// units, would not see it.
const CONDEMNED: &str = "condemned";

/// Why a queue cannot be opened or read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QueueError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Derived data is damaged, missing or an older copy: it must be built again from the log.
    #[error("{file}: unit {place} is not there")]
    Damaged { file: String, place: u64 },
}

/// One queue of one topic.
#[derive(Debug)]
pub struct ConsumeQueue {
    home: Arc<Home>,
    queue: u16,
    first: AtomicU64,
    committed: AtomicU64,
    /// A unit was found damaged.
    condemned: AtomicBool,
    /// By index.
    files: RwLock<BTreeMap<usize, QueueFile>>,
}

#[derive(Debug)]
struct QueueFile {
    file: Arc<dyn File>,
    mapping: Arc<dyn Mapping>,
    synced: bool,
}

/// A file's place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    index: usize,
    first: u64,
    units: u64,
}

impl Extent {
    /// The file that holds unit `place`.
    fn of(place: u64) -> Self {
        let doubling_units = FIRST_FILE_UNITS * ((1 << DOUBLINGS) - 1);
        if place >= doubling_units {
            let units = FIRST_FILE_UNITS << DOUBLINGS;
            let whole = (place - doubling_units) / units;
            let index = DOUBLINGS as usize + usize::try_from(whole).unwrap_or(usize::MAX);
            return Self { index, first: doubling_units + whole * units, units };
        }
        let index = (place / FIRST_FILE_UNITS + 1).ilog2();
        let units = FIRST_FILE_UNITS << index;
        Self { index: index as usize, first: units - FIRST_FILE_UNITS, units }
    }

    /// The file with this index.
    fn at(index: usize) -> Self {
        let doublings = index.min(DOUBLINGS as usize);
        let units = FIRST_FILE_UNITS << doublings;
        let first = units - FIRST_FILE_UNITS + (index - doublings) as u64 * units;
        Self { index, first, units }
    }

    fn end(self) -> u64 {
        self.first + self.units
    }
}

impl ConsumeQueue {
    /// Queue `queue` of a new topic, or a new one of a topic: it has no units, and no file until it has one.
    pub fn new(home: Arc<Home>, queue: u16) -> Self {
        Self {
            home,
            queue,
            first: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            condemned: AtomicBool::new(false),
            files: RwLock::default(),
        }
    }

    /// Opens queue `queue` at `home`, trusting its units from `first` up to `length`, and nothing else.
    ///
    /// # Errors
    ///
    /// [`QueueError::Damaged`] when they are not all there.
    pub fn open(home: Arc<Home>, queue: u16, first: u64, length: u64) -> Result<Self, QueueError> {
        let mut opened = Self::new(home, queue);
        *opened.first.get_mut() = first;
        *opened.committed.get_mut() = length;
        let directory = Arc::clone(opened.home.directory()?);
        match directory.open(CONDEMNED) {
            Ok(marker) => return Err(QueueError::Damaged { file: marker.path(), place: first }),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        let mut place = first;
        while place < length {
            let extent = Extent::of(place);
            let name = opened.file_name(extent);
            let file = directory.open(&name).map_err(|error| {
                if error.is_not_found() {
                    QueueError::Damaged { file: error.path, place }
                } else {
                    error.into()
                }
            })?;
            opened.add(file, extent)?;
            // An older copy of the file has no unit here, or not this one.
            opened.look(extent.end().min(length) - 1)?;
            place = extent.end();
        }
        opened.find_leftovers()?;
        Ok(opened)
    }

    /// Files that were to go when the power did go with the next ones. They go oldest first, so what is left of them
    /// is right before those that are kept.
    fn find_leftovers(&self) -> Result<(), QueueError> {
        let directory = self.home.directory()?;
        for index in (0..Extent::of(self.first()).index).rev() {
            let extent = Extent::at(index);
            match directory.open(&self.file_name(extent)) {
                Ok(file) => self.add(file, extent)?,
                Err(error) if error.is_not_found() => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The first unit that has not expired: those before it read as holes.
    pub fn first(&self) -> u64 {
        self.first.load(Ordering::Acquire)
    }

    /// The units before `first` have expired.
    pub fn expire(&self, first: u64) {
        self.first.fetch_max(first, Ordering::AcqRel);
    }

    /// Removes the files that hold no unit from `first` on, all of which have expired.
    ///
    /// # Errors
    ///
    /// The disk's.
    pub fn release(&self, first: u64) -> Result<(), DiskError> {
        debug_assert!(first <= self.first());
        let kept = Extent::of(first);
        let gone = {
            let mut files = self.files.write();
            let rest = files.split_off(&kept.index);
            std::mem::replace(&mut *files, rest)
        };
        if gone.is_empty() {
            return Ok(());
        }
        let directory = self.home.directory()?;
        for &index in gone.keys() {
            directory.remove(&self.file_name(Extent::at(index)))?;
        }
        directory.sync()
    }

    /// Where the next unit goes: how many there have ever been.
    pub fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// Appends `units`, the first of them at place `first`. Places that were left out are holes.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn append(&self, first: u64, units: &[Unit]) -> Result<(), QueueError> {
        let mut next = self.committed();
        // Replay brings what is there already.
        let skip = next.saturating_sub(first).min(units.len() as u64);
        let units = &units[usize::try_from(skip).expect("at most the length of a slice")..];
        if units.is_empty() {
            return Ok(());
        }
        let first = first + skip;
        if planted::is(Fault::CommittedBeforeUnits) {
            self.committed.store(first + units.len() as u64, Ordering::Release);
        }
        while next < first {
            self.write(next, &[Unit::HOLE])?;
            next += 1;
        }
        let mut rest = units;
        while !rest.is_empty() {
            let room = usize::try_from(Extent::of(next).end() - next).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.write(next, now)?;
            next += now.len() as u64;
            rest = later;
        }
        self.committed.store(next, Ordering::Release);
        Ok(())
    }

    /// Reads up to `max` units from place `from` on.
    ///
    /// # Errors
    ///
    /// [`QueueError::Damaged`] when one of them is not there although it was committed.
    pub fn read(&self, from: u64, max: usize, units: &mut Vec<Unit>) -> Result<(), QueueError> {
        units.clear();
        let end = self.committed().min(from.saturating_add(max as u64));
        for place in from..end {
            units.push(self.unit(place)?);
        }
        Ok(())
    }

    /// The unit at `place`, which must be committed.
    ///
    /// # Errors
    ///
    /// As [`ConsumeQueue::read`].
    pub fn unit(&self, place: u64) -> Result<Unit, QueueError> {
        if place < self.first() {
            return Ok(Unit::HOLE);
        }
        self.look(place).inspect_err(|error| {
            if let QueueError::Damaged { .. } = error {
                self.condemn();
            }
        })
    }

    /// Reads every unit, and marks nothing.
    ///
    /// # Errors
    ///
    /// [`QueueError::Damaged`] for the first that is not there.
    pub fn check(&self) -> Result<(), QueueError> {
        (self.first()..self.committed()).try_for_each(|place| self.look(place).map(drop))
    }

    fn look(&self, place: u64) -> Result<Unit, QueueError> {
        let extent = Extent::of(place);
        let files = self.files.read();
        let damaged = |file| QueueError::Damaged { file, place };
        let Some(file) = files.get(&extent.index) else {
            // It may have expired, and its file gone, since it was asked for.
            return match place < self.first() {
                true => Ok(Unit::HOLE),
                false => Err(damaged(self.file_name(extent))),
            };
        };
        let mut bytes = [0; UNIT_LENGTH];
        let at = (place - extent.first) * UNIT_LENGTH as u64;
        if !file.mapping.read(at, &mut bytes) {
            return Err(damaged(file.file.path()));
        }
        Unit::decode(&bytes, place).ok_or_else(|| damaged(file.file.path()))
    }

    /// The next checkpoint fails, and with it the server ends; the next start builds again what is derived.
    fn condemn(&self) {
        if !self.condemned.swap(true, Ordering::AcqRel) {
            let mark = |directory: &Arc<dyn Directory>| {
                directory.create(CONDEMNED, 0)?;
                directory.sync()
            };
            if let Err(error) = self.home.directory().and_then(mark) {
                let directory = self.home.path();
                tracing::error!(directory, %error, "a damaged queue could not be marked");
            }
        }
    }

    /// The first place whose time is not before `time`, supposing that times grow along the queue. A hole
    /// has no time: it goes with what stands behind it.
    ///
    /// # Errors
    ///
    /// As [`ConsumeQueue::read`].
    pub fn first_not_before(&self, time: Timestamp) -> Result<u64, QueueError> {
        let (mut low, mut high) = (self.first(), self.committed());
        while low < high {
            let middle = low + (high - low) / 2;
            let mut there = middle;
            let mut unit = self.unit(there)?;
            while unit.is_hole() && there + 1 < high {
                there += 1;
                unit = self.unit(there)?;
            }
            if !unit.is_hole() && unit.time < time {
                low = there + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Syncs the files that were written since the last call.
    ///
    /// # Errors
    ///
    /// The disk's; [`QueueError::Damaged`] when a unit was found damaged.
    pub fn flush(&self) -> Result<(), QueueError> {
        if self.condemned.load(Ordering::Acquire) {
            let file = format!("{}/{CONDEMNED}", self.home.path());
            return Err(QueueError::Damaged { file, place: self.first() });
        }
        let dirty: Vec<_> = {
            let mut files = self.files.write();
            let dirty = files.values_mut().filter(|file| !file.synced);
            dirty
                .map(|file| {
                    file.synced = true;
                    Arc::clone(&file.file)
                })
                .collect()
        };
        if dirty.is_empty() {
            return Ok(());
        }
        for file in dirty {
            file.sync()?;
        }
        Ok(self.home.directory()?.sync()?)
    }

    fn write(&self, place: u64, units: &[Unit]) -> Result<(), QueueError> {
        let extent = Extent::of(place);
        if !self.files.read().contains_key(&extent.index) {
            self.create(extent)?;
        }
        let mut bytes = Vec::with_capacity(units.len() * UNIT_LENGTH);
        for (unit, place) in units.iter().zip(place..) {
            bytes.extend_from_slice(&unit.encode(place));
        }
        const THERE: &str = "dispatch, which writes, expires what it is past";
        let file = Arc::clone(&self.files.read().get(&extent.index).expect(THERE).file);
        if planted::is(Fault::MarkedThenWritten) {
            self.mark(extent);
        }
        file.write_at((place - extent.first) * UNIT_LENGTH as u64, &bytes)?;
        // Only now: a flush that took the mark before the write would leave nothing for the next one to sync.
        if !planted::is(Fault::MarkedThenWritten) {
            self.mark(extent);
        }
        Ok(())
    }

    /// The file has something that no sync has seen.
    fn mark(&self, extent: Extent) {
        if let Some(file) = self.files.write().get_mut(&extent.index) {
            file.synced = false;
        }
    }

    fn create(&self, extent: Extent) -> Result<(), QueueError> {
        let name = self.file_name(extent);
        let length = extent.units * UNIT_LENGTH as u64;
        let directory = self.home.directory()?;
        let file = match directory.create(&name, length) {
            Err(error) if error.is_already_exists() => {
                // Left over from before a restart: nothing in it is trusted, its room is. A crash
                // while it was made may have cost it that too.
                let left = directory.open(&name)?;
                if left.length() == length {
                    left
                } else {
                    directory.remove(&name)?;
                    directory.create(&name, length)?
                }
            }
            created => created?,
        };
        self.add(file, extent)
    }

    fn add(&self, file: Arc<dyn File>, extent: Extent) -> Result<(), QueueError> {
        if file.length() != extent.units * UNIT_LENGTH as u64 {
            return Err(QueueError::Damaged { file: file.path(), place: extent.first });
        }
        let mapping = file.map()?;
        let mut files = self.files.write();
        files.insert(extent.index, QueueFile { file, mapping, synced: true });
        Ok(())
    }

    fn file_name(&self, extent: Extent) -> String {
        format!("{:05}-{:020}", self.queue, extent.first)
    }
}

#[cfg(test)]
mod tests {
    use timerlog::disk::Operation;
    use timerlog::disk::sim::{Random, SimDisk};

    use super::*;
    use crate::message::offset::Offset;

    fn unit(number: u64) -> Unit {
        Unit {
            offset: Offset::new(number * 32),
            length: 100,
            tag_hash: 0,
            time: Timestamp::from_millis(1000 + number),
        }
    }

    fn home(disk: &SimDisk) -> Arc<Home> {
        Home::new(disk.root(), "topic".to_owned())
    }

    /// On a full disk a new topic is made all the same: it is its first unit that waits for room.
    #[test]
    fn a_new_queue_touches_nothing_before_its_first_unit() {
        let disk = SimDisk::new(1);
        disk.fail_next(Operation::Create, 1, std::io::ErrorKind::StorageFull);
        let queue = ConsumeQueue::new(home(&disk), 0);
        queue.flush().unwrap();
        let error = queue.append(0, &[unit(1)]).unwrap_err();
        assert!(matches!(&error, QueueError::Disk(error) if error.wants_room()), "{error}");
        assert_eq!(queue.committed(), 0);
        queue.append(0, &[unit(1)]).unwrap();
        assert_eq!(queue.unit(0).unwrap(), unit(1));
    }

    #[test]
    fn files_double_and_then_stay_the_same_size() {
        let mut place = 0;
        for index in 0..20 {
            let extent = Extent::of(place);
            assert_eq!((extent.index, extent.first), (index, place));
            assert_eq!(Extent::of(extent.end() - 1), extent);
            assert_eq!(extent.units, 128 << index.min(11));
            assert_eq!(Extent::at(index), extent);
            place = extent.end();
        }
    }

    #[test]
    fn units_are_read_in_order_and_across_files_and_a_restart() {
        let disk = SimDisk::new(1);
        let queue = ConsumeQueue::open(home(&disk), 3, 0, 0).unwrap();
        let units: Vec<_> = (0..1000).map(unit).collect();
        queue.append(0, &units[..100]).unwrap();
        queue.append(100, &units[100..]).unwrap();
        queue.flush().unwrap();
        disk.crash(&mut Random::new(3));
        let queue = ConsumeQueue::open(home(&disk), 3, 0, 1000).unwrap();
        let mut read = Vec::new();
        queue.read(120, 300, &mut read).unwrap();
        assert_eq!(read, units[120..420]);
        assert_eq!(queue.first_not_before(Timestamp::from_millis(1500)).unwrap(), 500);
    }

    #[test]
    fn replay_overlaps_and_what_the_log_lost_is_a_hole() {
        let disk = SimDisk::new(1);
        let queue = ConsumeQueue::open(home(&disk), 0, 0, 0).unwrap();
        queue.append(0, &[unit(0), unit(1)]).unwrap();
        queue.append(0, &[unit(0), unit(1), unit(2)]).unwrap();
        queue.append(5, &[unit(5)]).unwrap();
        let mut read = Vec::new();
        queue.read(0, 10, &mut read).unwrap();
        assert_eq!(read, [unit(0), unit(1), unit(2), Unit::HOLE, Unit::HOLE, unit(5)]);
    }

    /// Whatever part of the files that go has gone when the power does: what is left is read, and what has expired
    /// reads as holes.
    #[test]
    fn what_has_expired_is_a_hole_and_its_files_go() {
        let units: Vec<_> = (0..1000).map(unit).collect();
        let write = |disk: &SimDisk| {
            let queue = ConsumeQueue::open(home(disk), 3, 0, 0).unwrap();
            queue.append(0, &units).unwrap();
            queue.flush().unwrap();
            disk.root().sync().unwrap();
            queue.expire(500);
            queue
        };
        let disk = SimDisk::new(1);
        let (queue, before) = (write(&disk), disk.allocated());
        let changes = disk.counters().changes();
        queue.release(500).unwrap();
        let changes = disk.counters().changes() - changes;
        // Of files of 128, 256, 512 and 1024 units the first two.
        assert_eq!(before - disk.allocated(), 384 * UNIT_LENGTH as u64);
        for cut in 1..=changes + 1 {
            let disk = SimDisk::new(cut);
            let queue = write(&disk);
            disk.cut_after(cut);
            assert_eq!(queue.release(500).is_err(), cut <= changes);
            drop(queue);
            disk.crash(&mut Random::new(cut));
            let queue = ConsumeQueue::open(home(&disk), 3, 500, 1000).unwrap();
            let mut read = Vec::new();
            queue.read(490, 20, &mut read).unwrap();
            assert_eq!(read, [&[Unit::HOLE; 10][..], &units[500..510]].concat(), "cut {cut}");
            queue.release(500).unwrap();
            assert_eq!(before - disk.allocated(), 384 * UNIT_LENGTH as u64, "cut {cut}");
        }
    }

    /// A hole's time is zero, and a search that believed it went on behind what it was looking for.
    #[test]
    fn a_hole_leads_no_search_by_time_astray() {
        let disk = SimDisk::new(1);
        let queue = ConsumeQueue::open(home(&disk), 0, 0, 0).unwrap();
        for place in [0, 1, 4, 5, 9] {
            queue.append(place, &[unit(place)]).unwrap();
        }
        for (time, place) in [(999, 0), (1000, 0), (1001, 1), (1002, 2), (1004, 2), (1005, 5)] {
            assert_eq!(queue.first_not_before(Timestamp::from_millis(time)).unwrap(), place);
        }
        for (time, place) in [(1006, 6), (1009, 6), (1010, 10)] {
            assert_eq!(queue.first_not_before(Timestamp::from_millis(time)).unwrap(), place);
        }
    }

    #[test]
    fn a_missing_or_older_file_is_noticed_at_the_start() {
        let disk = SimDisk::new(1);
        let queue = ConsumeQueue::open(home(&disk), 0, 0, 0).unwrap();
        let units: Vec<_> = (0..200).map(unit).collect();
        queue.append(0, &units).unwrap();
        queue.flush().unwrap();
        assert!(ConsumeQueue::open(home(&disk), 0, 0, 200).is_ok());
        assert!(matches!(
            ConsumeQueue::open(home(&disk), 0, 0, 201),
            Err(QueueError::Damaged { place: 200, .. })
        ));
        let topic = disk.root().subdirectory("topic").unwrap();
        topic.remove(&topic.list().unwrap()[0]).unwrap();
        assert!(matches!(
            ConsumeQueue::open(home(&disk), 0, 0, 200),
            Err(QueueError::Damaged { place: 0, .. })
        ));
    }
}
