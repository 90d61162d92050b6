//! Snapshots of both rings, so that recovery need not read the logs from their beginning.
//!
//! A snapshot is written whole under another name and renamed, so it is there or it is not. Which
//! one may be used, and which one must go, is decided by its revision: one from after the checkpoint
//! knows slots as empty that were settled only later.

#[cfg(any(test, fuzzing))]
mod fuzzing;
mod head;

#[cfg(any(test, fuzzing))]
pub(in crate::wheel) use fuzzing::decoder;
pub(in crate::wheel) use head::Head;

use self::head::SLOTS;
use super::slot::{self, SlotState};
use crate::disk::{Directory, DiskError, File};
use crate::error::DamageKind;

const PREFIX: &str = "snapshot-";
const TEMPORARY: &str = "snapshot.tmp";
/// The newest, and one more in case that one is damaged.
const KEPT: usize = 2;
/// Slots that are written or read at once.
const BLOCK: usize = 2048;

/// The occupied slots of a wheel at one moment, to be written by whoever has the time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(in crate::wheel) head: Head,
    /// Near slots, then far ones.
    pub(in crate::wheel) slots: Vec<(u64, SlotState)>,
}

impl Snapshot {
    /// Writes the snapshot into the directory of its wheel, durably. A power cut leaves all of it
    /// or none.
    ///
    /// # Errors
    ///
    /// When the disk fails; the snapshots from before still stand.
    pub fn write(&self, directory: &dyn Directory) -> Result<(), DiskError> {
        let name = name_of(self.head.revision);
        if directory.list()?.contains(&name) {
            return Ok(());
        }
        match directory.remove(TEMPORARY) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        let length = self.head.file_length().expect("slots in memory are few enough");
        let file = directory.create(TEMPORARY, length)?;
        self.write_to(&*file)?;
        file.sync()?;
        directory.rename(TEMPORARY, &name)?;
        directory.sync()
    }

    fn write_to(&self, file: &dyn File) -> Result<(), DiskError> {
        file.write_at(0, &self.head.encode())?;
        let mut offset = SLOTS as u64;
        for block in self.slots.chunks(BLOCK) {
            let mut bytes = Vec::with_capacity(block.len() * slot::SIZE);
            for (number, state) in block {
                bytes.extend(state.encode(*number, offset + bytes.len() as u64));
            }
            file.write_at(offset, &bytes)?;
            offset += bytes.len() as u64;
        }
        Ok(())
    }
}

/// Calls `visit` with each slot of the snapshot `revision`, once its head satisfies `accept`; near
/// slots first.
pub(in crate::wheel) fn load(
    directory: &dyn Directory,
    revision: u64,
    accept: impl FnOnce(&Head) -> Result<(), DamageKind>,
    mut visit: impl FnMut(&Head, u64, u64, SlotState) -> Result<(), DamageKind>,
) -> Result<Head, DamageKind> {
    let unreadable = |error: DiskError| DamageKind::Unreadable { cause: error.to_string() };
    let file = directory.open(&name_of(revision)).map_err(unreadable)?;
    if file.length() < SLOTS as u64 {
        return Err(DamageKind::WrongLength { expected: SLOTS as u64, found: file.length() });
    }
    let mut bytes = [0; SLOTS];
    file.read_at(0, &mut bytes).map_err(unreadable)?;
    let head = Head::decode(&bytes)?;
    if head.file_length() != Some(file.length()) {
        let expected = head.file_length().unwrap_or(u64::MAX);
        return Err(DamageKind::WrongLength { expected, found: file.length() });
    }
    if head.revision != revision {
        return Err(DamageKind::Misplaced);
    }
    accept(&head)?;
    let (mut index, count) = (0, head.near_count + head.far_count);
    let mut block = Vec::new();
    while index < count {
        let offset = SLOTS as u64 + index * slot::SIZE as u64;
        let slots = usize::try_from(count - index).unwrap_or(BLOCK).min(BLOCK);
        block.resize(slots * slot::SIZE, 0);
        file.read_at(offset, &mut block).map_err(unreadable)?;
        for (within, bytes) in block.chunks_exact(slot::SIZE).enumerate() {
            let (number, state) = SlotState::decode(bytes, offset + (within * slot::SIZE) as u64)?;
            visit(&head, index, number, state)?;
            index += 1;
        }
    }
    Ok(head)
}

/// The revisions of all snapshots in `directory`, newest first.
pub(in crate::wheel) fn list(directory: &dyn Directory) -> Result<Vec<u64>, DiskError> {
    let names = directory.list()?;
    let revisions = names.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok());
    let mut revisions: Vec<u64> = revisions.collect();
    revisions.sort_unstable_by(|one, other| other.cmp(one));
    Ok(revisions)
}

pub(in crate::wheel) fn remove(directory: &dyn Directory, revision: u64) -> Result<(), DiskError> {
    directory.remove(&name_of(revision))
}

pub(in crate::wheel) fn name_of(revision: u64) -> String {
    format!("{PREFIX}{revision:020}")
}

/// Removes the snapshots that a checkpoint of `revision` will not need: all that are older than the
/// two newest it can use.
pub(in crate::wheel) fn remove_older(
    directory: &dyn Directory,
    revision: u64,
) -> Result<(), DiskError> {
    let usable = list(directory)?.into_iter().filter(|found| *found <= revision);
    // Not synced: one that comes back is older than those that stand, and is removed again.
    usable.skip(KEPT).try_for_each(|found| remove(directory, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::SimDisk;
    use crate::position::Position;

    fn sample(revision: u64, slots: u64) -> Snapshot {
        let at = |bytes| Position::new(bytes).expect("not zero");
        let slot = |n| (n, SlotState { first: at(n + 1), last: at(n + 2), count: 1 });
        let head = Head {
            revision,
            near_length: 2,
            far_length: 3,
            read_time: 4,
            far_boundary: 5,
            near_count: slots - 1,
            far_count: 1,
        };
        Snapshot { head, slots: (0..slots).map(slot).collect() }
    }

    fn read(disk: &SimDisk, revision: u64) -> Result<Snapshot, DamageKind> {
        let mut slots = Vec::new();
        let head = load(
            &*disk.root(),
            revision,
            |_| Ok(()),
            |_, index, number, state| {
                assert_eq!(index, slots.len() as u64);
                slots.push((number, state));
                Ok(())
            },
        )?;
        Ok(Snapshot { head, slots })
    }

    #[test]
    fn what_is_written_is_read_in_blocks() {
        let disk = SimDisk::new(1);
        let written = sample(9, BLOCK as u64 * 2 + 7);
        written.write(&*disk.root()).expect("write");
        let found = read(&disk, 9).expect("sound");
        assert_eq!((found.head, found.slots), (written.head, written.slots));
        assert_eq!(list(&*disk.root()).expect("list"), [9]);
    }

    #[test]
    fn every_flipped_bit_and_every_other_length_is_noticed() {
        let disk = SimDisk::new(1);
        sample(9, 4).write(&*disk.root()).expect("write");
        let path = "snapshot-00000000000000000009";
        let length = disk.content(path).len();
        for bit in 0..length * 8 {
            let (offset, bit) = (bit as u64 / 8, u8::try_from(bit % 8).expect("below 8"));
            disk.flip_bit(path, offset, bit);
            assert!(read(&disk, 9).is_err(), "bit {bit} of byte {offset}");
            disk.flip_bit(path, offset, bit);
        }
        read(&disk, 9).expect("whole again");
        for length in (0..length).rev() {
            disk.edit(path, |bytes| bytes.truncate(length));
            assert!(read(&disk, 9).is_err(), "cut to {length}");
        }
    }

    #[test]
    fn a_snapshot_under_another_name_is_not_taken() {
        let disk = SimDisk::new(1);
        sample(9, 2).write(&*disk.root()).expect("write");
        disk.root().rename(&name_of(9), &name_of(8)).expect("rename");
        assert_eq!(read(&disk, 8).err(), Some(DamageKind::Misplaced));
    }

    #[test]
    fn the_two_newest_that_a_checkpoint_can_use_are_kept_and_all_after_it() {
        let disk = SimDisk::new(1);
        for revision in [3, 5, 8, 13, 21] {
            sample(revision, 2).write(&*disk.root()).expect("write");
        }
        remove_older(&*disk.root(), 12).expect("remove");
        assert_eq!(list(&*disk.root()).expect("list"), [21, 13, 8, 5]);
    }
}
