//! A small file that is always whole: two copies, of which one is written while the other stands.
//!
//! ```text
//!  0               8       12      16              24              32      36      40
//!  +---------------+-------+-------+---------------+---------------+-------+-------+---- - -
//!  | magic         |version| head  | generation    | length        | crc   | zeros | payload
//!  +---------------+-------+-------+---------------+---------------+-------+-------+---- - -
//! ```
//!
//! | at | bytes  | field      | meaning                                                        |
//! |----|--------|------------|----------------------------------------------------------------|
//! | 0  | 8      | magic      | the owner's: which kind of checkpoint this is                  |
//! | 8  | 4      | version    | the owner's: of the payload                                    |
//! | 12 | 4      | head       | crc32c of bytes 0 to 11; the same place in every version, so   |
//! |    |        |            | that a newer version is told from a damaged file               |
//! | 16 | 8      | generation | higher is newer; even ones are in `checkpoint-a`, odd in `-b`  |
//! | 24 | 8      | length     | bytes of payload; they end the file                            |
//! | 32 | 4      | crc        | crc32c of bytes 0 to 31, of 36 to 39, and of the payload       |
//! | 36 | 4      | zeros      |                                                                |
//! | 40 | length | payload    | the owner's                                                    |
//!
//! Little-endian. Written under a third name, synced, renamed over the older copy, and the directory
//! synced: at every moment the newer of the two before is on the disk, whole. A reader trusts the
//! copy of the highest generation whose crc is right. Whoever owns the directory is the one writer.

use crate::bytes::{get_u32, get_u64, put_u32, put_u64};
use crate::disk::{Directory, DiskError};
use crate::error::{Damage, DamageKind};

#[cfg(any(test, fuzzing))]
mod fuzzing;
#[cfg(any(test, fuzzing))]
pub(crate) use fuzzing::decoder;

const MAGIC: usize = 0;
const VERSION: usize = MAGIC + 8;
const HEAD: usize = VERSION + 4;
const GENERATION: usize = HEAD + 4;
const LENGTH: usize = GENERATION + 8;
const CRC: usize = LENGTH + 8;
const ZEROS: usize = CRC + 4;
const PAYLOAD: usize = ZEROS + 4;
const _: () = assert!(PAYLOAD == 40);

const COPIES: [&str; 2] = ["checkpoint-a", "checkpoint-b"];
const TEMPORARY: &str = "checkpoint.tmp";

/// Which kind of checkpoint, and the version of its payload that this program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub magic: [u8; 8],
    pub version: u32,
}

/// What was read of the two copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// The newest that is whole.
    pub newest: Option<Stored>,
    /// The copies that are there and not whole; to be reported, not to be minded.
    pub damaged: Vec<Damage>,
}

/// One checkpoint as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub generation: u64,
    /// The version its writer had: never above that of the [`Format`] it was read with.
    pub version: u32,
    pub payload: Vec<u8>,
}

/// A checkpoint that must not be passed over.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Written by a newer program: falling back to an older copy would undo what that one did.
    #[error("{file} has format version {found}, and this program knows {known}")]
    NewerVersion { file: String, found: u32, known: u32 },
}

/// Writes checkpoint `generation` durably, over the older copy. Generations count up by one: so the
/// two newest are kept.
///
/// # Errors
///
/// When the disk fails; then the checkpoints from before still stand.
pub fn write(
    directory: &dyn Directory,
    format: Format,
    generation: u64,
    payload: &[u8],
) -> Result<(), DiskError> {
    match directory.remove(TEMPORARY) {
        Err(error) if !error.is_not_found() => return Err(error),
        _ => {}
    }
    let bytes = encode(format, generation, payload);
    let file = directory.create(TEMPORARY, bytes.len() as u64)?;
    file.write_at(0, &bytes)?;
    file.sync()?;
    directory.rename(TEMPORARY, copy_of(generation))?;
    directory.sync()
}

/// Reads both copies and returns the newest that is whole. A copy that is damaged or cannot be read
/// is listed and passed over.
///
/// # Errors
///
/// [`CheckpointError::NewerVersion`] when either copy is of a newer version; the directory's error
/// when it cannot be listed.
pub fn read(directory: &dyn Directory, format: Format) -> Result<Copies, CheckpointError> {
    let names = directory.list()?;
    let mut copies = Copies::default();
    for name in COPIES.into_iter().filter(|name| names.iter().any(|found| found == name)) {
        let path = format!("{}/{name}", directory.path());
        match load(directory, name).and_then(|bytes| decode(format, &bytes)) {
            Ok(stored) => {
                let newer =
                    copies.newest.as_ref().is_none_or(|other| stored.generation > other.generation);
                if newer {
                    copies.newest = Some(stored);
                }
            }
            Err(DamageKind::UnknownVersion { known, found }) if found > known => {
                return Err(CheckpointError::NewerVersion { file: path, found, known });
            }
            Err(kind) => copies.damaged.push(Damage::of(path, kind)),
        }
    }
    Ok(copies)
}

fn copy_of(generation: u64) -> &'static str {
    if generation.is_multiple_of(2) { COPIES[0] } else { COPIES[1] }
}

fn load(directory: &dyn Directory, name: &str) -> Result<Vec<u8>, DamageKind> {
    let unreadable = |error: DiskError| DamageKind::Unreadable { cause: error.to_string() };
    let file = directory.open(name).map_err(unreadable)?;
    let length = usize::try_from(file.length())
        .map_err(|_| DamageKind::WrongLength { expected: PAYLOAD as u64, found: file.length() })?;
    let mut bytes = vec![0; length];
    file.read_at(0, &mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn encode(format: Format, generation: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; PAYLOAD];
    bytes[..VERSION].copy_from_slice(&format.magic);
    put_u32(&mut bytes, VERSION, format.version);
    let head = crc32c::crc32c(&bytes[..HEAD]);
    put_u32(&mut bytes, HEAD, head);
    put_u64(&mut bytes, GENERATION, generation);
    put_u64(&mut bytes, LENGTH, payload.len() as u64);
    bytes.extend_from_slice(payload);
    let crc = crc(&bytes);
    put_u32(&mut bytes, CRC, crc);
    bytes
}

fn decode(format: Format, bytes: &[u8]) -> Result<Stored, DamageKind> {
    if bytes.len() < PAYLOAD {
        let (expected, found) = (PAYLOAD as u64, bytes.len() as u64);
        return Err(DamageKind::WrongLength { expected, found });
    }
    let (expected, found) = (get_u32(bytes, HEAD), crc32c::crc32c(&bytes[..HEAD]));
    if expected != found {
        return Err(DamageKind::Checksum { expected, found });
    }
    if bytes[..VERSION] != format.magic {
        return Err(DamageKind::Misplaced);
    }
    let version = get_u32(bytes, VERSION);
    if version > format.version {
        return Err(DamageKind::UnknownVersion { known: format.version, found: version });
    }
    let expected = get_u64(bytes, LENGTH).saturating_add(PAYLOAD as u64);
    if expected != bytes.len() as u64 {
        return Err(DamageKind::WrongLength { expected, found: bytes.len() as u64 });
    }
    let (expected, found) = (get_u32(bytes, CRC), crc(bytes));
    if expected != found {
        return Err(DamageKind::Checksum { expected, found });
    }
    if bytes[ZEROS..PAYLOAD] != [0; PAYLOAD - ZEROS] {
        return Err(DamageKind::NotZero);
    }
    let generation = get_u64(bytes, GENERATION);
    Ok(Stored { generation, version, payload: bytes[PAYLOAD..].to_vec() })
}

fn crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CRC]), &bytes[ZEROS..])
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use proptest::prelude::*;

    use super::*;
    use crate::disk::Operation;
    use crate::disk::sim::{Random, SimDisk};

    const FORMAT: Format = Format { magic: *b"A magic.", version: 3 };

    fn newest(disk: &SimDisk) -> Option<(u64, Vec<u8>)> {
        let copies = read(&*disk.root(), FORMAT).expect("readable");
        copies.newest.map(|stored| (stored.generation, stored.payload))
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let mut golden =
            b"A magic.\x03\0\0\0HEAD\x07\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0CRC.\0\0\0\0hi".to_vec();
        golden[12..16].copy_from_slice(&[0xA7, 0x17, 0x48, 0x98]);
        golden[32..36].copy_from_slice(&[0xF7, 0x22, 0xE1, 0xED]);
        assert_eq!(encode(FORMAT, 7, b"hi"), golden);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = encode(FORMAT, 7, b"payload");
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let result = decode(FORMAT, &damaged);
            assert!(result.is_err(), "bit {bit}");
            let newer = matches!(result, Err(DamageKind::UnknownVersion { .. }));
            assert!(!newer, "rot is not taken for a newer version, bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(decode(FORMAT, &bytes[..length]).is_err(), "cut to {length}");
        }
    }

    #[test]
    fn an_empty_directory_has_none() {
        let copies = read(&*SimDisk::new(1).root(), FORMAT).expect("readable");
        assert_eq!(copies, Copies::default());
    }

    #[test]
    fn a_damaged_copy_is_listed_and_the_other_is_used() {
        let disk = SimDisk::new(1);
        for generation in 1..=4 {
            write(&*disk.root(), FORMAT, generation, &[5; 9]).expect("write");
        }
        disk.flip_bit("checkpoint-a", 41, 0);
        let copies = read(&*disk.root(), FORMAT).expect("readable");
        assert_eq!(copies.newest.map(|stored| stored.generation), Some(3));
        assert_eq!(copies.damaged.len(), 1);
        assert_eq!(copies.damaged[0].file, "/checkpoint-a");
        disk.edit("checkpoint-b", Vec::clear);
        let copies = read(&*disk.root(), FORMAT).expect("readable");
        assert_eq!((copies.newest, copies.damaged.len()), (None, 2));
    }

    #[test]
    fn a_copy_that_cannot_be_read_is_passed_over() {
        let disk = SimDisk::new(1);
        write(&*disk.root(), FORMAT, 1, b"one").expect("write");
        write(&*disk.root(), FORMAT, 2, b"two").expect("write");
        disk.fail_next(Operation::Read, 1, ErrorKind::Other);
        assert_eq!(newest(&disk), Some((1, b"one".to_vec())));
    }

    #[test]
    fn a_newer_version_is_refused_by_name_and_an_older_one_is_given_out() {
        let disk = SimDisk::new(1);
        write(&*disk.root(), Format { version: 2, ..FORMAT }, 1, b"old").expect("write");
        let stored = read(&*disk.root(), FORMAT).expect("readable").newest.expect("there");
        assert_eq!((stored.version, stored.payload), (2, b"old".to_vec()));
        write(&*disk.root(), Format { version: 4, ..FORMAT }, 2, b"new").expect("write");
        let refused = read(&*disk.root(), FORMAT).expect_err("version 4 is unknown");
        let text = "/checkpoint-a has format version 4, and this program knows 3";
        assert_eq!(refused.to_string(), text);
    }

    #[test]
    fn another_kind_of_checkpoint_is_not_taken() {
        let disk = SimDisk::new(1);
        write(&*disk.root(), Format { magic: *b"Another.", ..FORMAT }, 1, b"x").expect("write");
        assert_eq!(newest(&disk), None);
    }

    #[test]
    fn a_power_cut_at_any_change_leaves_the_old_or_the_new() {
        for seed in 0..200 {
            for cut in 1..=6 {
                let disk = SimDisk::new(seed);
                write(&*disk.root(), FORMAT, 1, &[1; 5000]).expect("write");
                write(&*disk.root(), FORMAT, 2, &[2; 9000]).expect("write");
                disk.cut_after(cut);
                let written = write(&*disk.root(), FORMAT, 3, &[3; 3000]);
                disk.crash(&mut Random::new(seed));
                let (generation, payload) = newest(&disk).expect("one of them");
                assert!(generation == 3 || (generation == 2 && written.is_err()), "seed {seed}");
                assert!(payload.iter().all(|byte| u64::from(*byte) == generation));
                write(&*disk.root(), FORMAT, 4, b"goes on").expect("write");
                assert_eq!(newest(&disk), Some((4, b"goes on".to_vec())));
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            generation in any::<u64>(),
            payload in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let stored = decode(FORMAT, &encode(FORMAT, generation, &payload));
            prop_assert_eq!(stored, Ok(Stored { generation, version: 3, payload }));
        }
    }
}
