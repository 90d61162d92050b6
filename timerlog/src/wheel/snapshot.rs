//! A snapshot of both rings, so that recovery need not read the logs from their beginning.
//!
//! ```text
//!  0               8       12      16              24              32              40
//!  +---------------+-------+-------+---------------+---------------+---------------+
//!  | magic         |version| crc   | revision      | near length   | far length    |
//!  +---------------+-------+-------+---------------+---------------+---------------+
//!  40              48              56              64              72              96
//!  +---------------+---------------+---------------+---------------+---------------+
//!  | read time     | far boundary  | near count    | far count     | zeros         |
//!  +---------------+---------------+---------------+---------------+---------------+
//!  96
//!  +--------------------------------+--------------------------------+---- - -
//!  | slot, 32 bytes                 | slot, 32 bytes                 |
//!  +--------------------------------+--------------------------------+---- - -
//! ```
//!
//! | at | bytes | field        | meaning                                                     |
//! |----|-------|--------------|-------------------------------------------------------------|
//! | 0  | 8     | magic        | `HoroSnap`                                                  |
//! | 8  | 4     | version      | 1                                                           |
//! | 12 | 4     | crc          | crc32c of bytes 0 to 11 and 16 to 95                        |
//! | 16 | 8     | revision     | how many changes the wheel had seen; also the file's name   |
//! | 24 | 8     | near length  | the near log up to here is in the near slots                |
//! | 32 | 8     | far length   | the far log up to here is in the far slots                  |
//! | 40 | 8     | read time    | of the wheel at that moment                                 |
//! | 48 | 8     | far boundary | of the wheel at that moment                                 |
//! | 56 | 8     | near count   | slots of the near ring that follow                          |
//! | 64 | 8     | far count    | slots of the far ring that follow those                     |
//! | 72 | 24    | zeros        | free for later versions                                     |
//! | 96 | 32 n  | slots        | `slot` has their format; each has its own crc               |
//!
//! Little-endian. Written whole under another name, synced, then renamed, by the sole writer of the
//! wheel or by whoever it gave the captured slots to. A reader trusts it when every crc is right and
//! its revision is not above that of the checkpoint: a later one knows of slots that were settled
//! after the checkpoint, and they may not be settled any more.

use super::slot::{self, SlotState};
use crate::bytes::{get_u32, get_u64, put_u32, put_u64};
use crate::disk::{Directory, DiskError, File};
use crate::error::DamageKind;

const MAGIC: usize = 0;
const VERSION: usize = MAGIC + 8;
const CRC: usize = VERSION + 4;
const REVISION: usize = CRC + 4;
const NEAR_LENGTH: usize = REVISION + 8;
const FAR_LENGTH: usize = NEAR_LENGTH + 8;
const READ_TIME: usize = FAR_LENGTH + 8;
const FAR_BOUNDARY: usize = READ_TIME + 8;
const NEAR_COUNT: usize = FAR_BOUNDARY + 8;
const FAR_COUNT: usize = NEAR_COUNT + 8;
const ZEROS: usize = FAR_COUNT + 8;
const SLOTS: usize = ZEROS + 24;
const _: () = assert!(SLOTS == 96 && SLOTS.is_multiple_of(slot::SIZE));

const THE_MAGIC: [u8; 8] = *b"HoroSnap";
const THE_VERSION: u32 = 1;
const PREFIX: &str = "snapshot-";
const TEMPORARY: &str = "snapshot.tmp";
/// The newest, and one more in case that one is damaged.
const KEPT: usize = 2;
/// Slots that are written or read at once.
const BLOCK: usize = 2048;

/// What the slots are a snapshot of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) revision: u64,
    pub(super) near_length: u64,
    pub(super) far_length: u64,
    pub(super) read_time: u64,
    pub(super) far_boundary: u64,
    pub(super) near_count: u64,
    pub(super) far_count: u64,
}

impl Head {
    fn encode(&self) -> [u8; SLOTS] {
        let mut bytes = [0; SLOTS];
        bytes[..VERSION].copy_from_slice(&THE_MAGIC);
        put_u32(&mut bytes, VERSION, THE_VERSION);
        put_u64(&mut bytes, REVISION, self.revision);
        put_u64(&mut bytes, NEAR_LENGTH, self.near_length);
        put_u64(&mut bytes, FAR_LENGTH, self.far_length);
        put_u64(&mut bytes, READ_TIME, self.read_time);
        put_u64(&mut bytes, FAR_BOUNDARY, self.far_boundary);
        put_u64(&mut bytes, NEAR_COUNT, self.near_count);
        put_u64(&mut bytes, FAR_COUNT, self.far_count);
        let crc = crc(&bytes);
        put_u32(&mut bytes, CRC, crc);
        bytes
    }

    fn decode(bytes: &[u8; SLOTS]) -> Result<Self, DamageKind> {
        let (expected, found) = (get_u32(bytes, CRC), crc(bytes));
        if expected != found || bytes[..VERSION] != THE_MAGIC {
            return Err(DamageKind::Checksum { expected, found });
        }
        let version = get_u32(bytes, VERSION);
        if version != THE_VERSION {
            return Err(DamageKind::UnknownVersion { known: THE_VERSION, found: version });
        }
        Ok(Self {
            revision: get_u64(bytes, REVISION),
            near_length: get_u64(bytes, NEAR_LENGTH),
            far_length: get_u64(bytes, FAR_LENGTH),
            read_time: get_u64(bytes, READ_TIME),
            far_boundary: get_u64(bytes, FAR_BOUNDARY),
            near_count: get_u64(bytes, NEAR_COUNT),
            far_count: get_u64(bytes, FAR_COUNT),
        })
    }

    /// The length of the file, unless the counts are beyond all sense.
    fn file_length(&self) -> Option<u64> {
        let slots = self.near_count.checked_add(self.far_count)?;
        slots.checked_mul(slot::SIZE as u64)?.checked_add(SLOTS as u64)
    }
}

fn crc(bytes: &[u8; SLOTS]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CRC]), &bytes[REVISION..])
}

/// The occupied slots of a wheel at one moment, to be written by whoever has the time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) head: Head,
    /// Near slots, then far ones.
    pub(super) slots: Vec<(u64, SlotState)>,
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
pub(super) fn load(
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
pub(super) fn list(directory: &dyn Directory) -> Result<Vec<u64>, DiskError> {
    let names = directory.list()?;
    let revisions = names.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok());
    let mut revisions: Vec<u64> = revisions.collect();
    revisions.sort_unstable_by(|one, other| other.cmp(one));
    Ok(revisions)
}

pub(super) fn remove(directory: &dyn Directory, revision: u64) -> Result<(), DiskError> {
    directory.remove(&name_of(revision))
}

pub(super) fn name_of(revision: u64) -> String {
    format!("{PREFIX}{revision:020}")
}

/// Removes the snapshots that a checkpoint of `revision` will not need: all that are older than the
/// two newest it can use.
pub(super) fn remove_older(directory: &dyn Directory, revision: u64) -> Result<(), DiskError> {
    let usable = list(directory)?.into_iter().filter(|found| *found <= revision);
    // Not synced: one that comes back is older than those that stand, and is removed again.
    usable.skip(KEPT).try_for_each(|found| remove(directory, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::SimDisk;
    use crate::position::Position;

    fn head(revision: u64, near_count: u64, far_count: u64) -> Head {
        Head {
            revision,
            near_length: 2,
            far_length: 3,
            read_time: 4,
            far_boundary: 5,
            near_count,
            far_count,
        }
    }

    fn sample(revision: u64, slots: u64) -> Snapshot {
        let at = |bytes| Position::new(bytes).expect("not zero");
        let slot = |n| (n, SlotState { first: at(n + 1), last: at(n + 2), count: 1 });
        Snapshot { head: head(revision, slots - 1, 1), slots: (0..slots).map(slot).collect() }
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
    fn the_bytes_of_the_head_are_those_of_version_1() {
        let mut golden = [0; SLOTS];
        golden[..8].copy_from_slice(b"HoroSnap");
        golden[8] = 1;
        golden[12..16].copy_from_slice(&[0xF6, 0x25, 0xA9, 0xE3]);
        for number in 1..=7_u8 {
            golden[8 + 8 * usize::from(number)] = number;
        }
        assert_eq!(head(1, 6, 7).encode(), golden);
        assert_eq!(Head::decode(&golden), Ok(head(1, 6, 7)));
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
