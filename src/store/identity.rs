//! `id.key`: what makes a data directory this data directory. Truth: it cannot be built again.
//!
//! ```text
//! byte   0        8         12     16          48             56      60     64
//!        +--------+---------+------+-----------+--------------+-------+------+
//!        | magic  | version | zero | key       | segment size | zero  | crc  |
//!        +--------+---------+------+-----------+--------------+-------+------+
//! ```
//!
//! Little-endian; *crc* is CRC-32C over bytes 0 to 60. Written once, when the directory is made, and
//! never again. The *key* makes ids and receipt handles, and the magics of records and groups are
//! derived from it. The *segment size* is that of the CommitLog's files: a setting for a new directory,
//! a fact for an old one.

use sha2::{Digest, Sha256};
use timerlog::disk::{Directory, DiskError};

use super::keys::Keys;
use crate::commitlog::Secrets;
use crate::commitlog::group::GroupMagic;
use crate::message::id::IdKey;
use crate::message::record::{Magic, read_u32, read_u64};

const NAME: &str = "id.key";
const NEW_NAME: &str = "id.key.new";
const LOG: &str = "commitlog";
const MAGIC: u64 = u64::from_le_bytes(*b"HOROLOG\x1a");
const VERSION: u32 = 1;
const LENGTH: usize = 64;
const KEY: usize = 16;
const SEGMENT_SIZE: usize = KEY + 32;
const CRC: usize = LENGTH - 4;

/// Why a directory is not, or no longer, a data directory of ours.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("{path} is not a Horolog data directory: it holds {found}")]
    Foreign { path: String, found: String },
    #[error(
        "{path} has a commitlog but no id.key: without the key its ids cannot be read. Put the file \
         back from the backup that the log came from"
    )]
    KeyMissing { path: String },
    #[error("{path}/id.key is damaged ({reason}); put it back from a backup")]
    Damaged { path: String, reason: &'static str },
    #[error(
        "{path} was written in format {got} by a newer version; this one reads up to {VERSION}. \
         Nothing was changed"
    )]
    Newer { path: String, got: u32 },
}

/// What `id.key` says.
#[derive(Clone, Debug)]
pub struct Identity {
    pub key: IdKey,
    pub secrets: Secrets,
    /// Of the hashes that the index is asked for.
    pub(super) keys: Keys,
    pub segment_size: u64,
}

impl Identity {
    /// Refuses a directory that is not ours, or cannot be, without making or changing anything in it:
    /// to be called before the lock is taken, which writes a file. Another process may be giving the
    /// directory its identity meanwhile; who holds the lock decides.
    ///
    /// # Errors
    ///
    /// [`IdentityError`].
    pub fn check(directory: &dyn Directory) -> Result<(), IdentityError> {
        match Self::read(directory)? {
            Some(_) => Ok(()),
            None => check_new(directory),
        }
    }

    /// Reads the identity of the directory, or gives it one when it is new: `key` and `segment_size`
    /// are used then only.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]; nothing was changed then.
    pub fn open(
        directory: &dyn Directory,
        key: &[u8; 32],
        segment_size: u64,
    ) -> Result<Self, IdentityError> {
        if let Some(identity) = Self::read(directory)? {
            return Ok(identity);
        }
        check_new(directory)?;
        create(directory, &encode(key, segment_size))?;
        Ok(Self::of(key, segment_size))
    }

    /// The identity of a directory that has one.
    pub(super) fn read(directory: &dyn Directory) -> Result<Option<Self>, IdentityError> {
        let file = match directory.open(NAME) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let path = || directory.path();
        let damaged = |reason| IdentityError::Damaged { path: path(), reason };
        if file.length() != LENGTH as u64 {
            return Err(damaged("its length is wrong"));
        }
        let mut bytes = [0; LENGTH];
        file.read_at(0, &mut bytes)?;
        let identity = Self::decode(&bytes).map_err(|error| match error {
            DecodeError::Damaged(reason) => damaged(reason),
            DecodeError::Newer(got) => IdentityError::Newer { path: path(), got },
        })?;
        Ok(Some(identity))
    }

    fn of(key: &[u8; 32], segment_size: u64) -> Self {
        let derive = |what: &[u8]| Sha256::new().chain_update(what).chain_update(key).finalize();
        Self {
            key: IdKey::new(key),
            secrets: Secrets {
                record: Magic(read_u32(&derive(b"record magic"), 0)),
                group: GroupMagic(read_u64(&derive(b"group magic"), 0)),
            },
            keys: Keys::new(read_u64(&derive(b"index keys"), 0)),
            segment_size,
        }
    }

    fn decode(bytes: &[u8; LENGTH]) -> Result<Self, DecodeError> {
        if read_u64(bytes, 0) != MAGIC {
            return Err(DecodeError::Damaged("it does not begin as one"));
        }
        if read_u32(bytes, 8) > VERSION {
            return Err(DecodeError::Newer(read_u32(bytes, 8)));
        }
        if read_u32(bytes, CRC) != crc32c::crc32c(&bytes[..CRC]) {
            return Err(DecodeError::Damaged("its crc is wrong"));
        }
        let mut key = [0; 32];
        key.copy_from_slice(&bytes[KEY..SEGMENT_SIZE]);
        let segment_size = read_u64(bytes, SEGMENT_SIZE);
        if encode(&key, segment_size) != *bytes {
            return Err(DecodeError::Damaged("bytes that must be zero are not"));
        }
        Ok(Self::of(&key, segment_size))
    }
}

enum DecodeError {
    Damaged(&'static str),
    Newer(u32),
}

fn encode(key: &[u8; 32], segment_size: u64) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[KEY..SEGMENT_SIZE].copy_from_slice(key);
    bytes[SEGMENT_SIZE..SEGMENT_SIZE + 8].copy_from_slice(&segment_size.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..CRC]);
    bytes[CRC..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// A new directory is empty, but for the lock and what a crash left of an earlier try. One that has got
/// its key meanwhile is not foreign either.
fn check_new(directory: &dyn Directory) -> Result<(), IdentityError> {
    let path = directory.path();
    // Folders first: the log's is made after the key, so whoever finds the one finds the other.
    let subdirectories = directory.subdirectories()?;
    let files = directory.list()?;
    if files.iter().any(|name| name == NAME) {
        return Ok(());
    }
    if subdirectories.iter().any(|name| name == LOG) {
        return Err(IdentityError::KeyMissing { path });
    }
    let ours = |name: &&String| *name != super::LOCK_NAME && *name != NEW_NAME;
    match files.iter().find(ours).or(subdirectories.first()) {
        Some(found) => Err(IdentityError::Foreign { path, found: found.clone() }),
        None => Ok(()),
    }
}

fn create(directory: &dyn Directory, bytes: &[u8; LENGTH]) -> Result<(), DiskError> {
    if let Err(error) = directory.remove(NEW_NAME)
        && !error.is_not_found()
    {
        return Err(error);
    }
    let file = directory.create(NEW_NAME, LENGTH as u64)?;
    file.write_at(0, bytes)?;
    file.sync()?;
    directory.rename(NEW_NAME, NAME)?;
    directory.sync()
}

#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;

#[cfg(test)]
mod tests {
    use timerlog::disk::sim::SimDisk;

    use super::*;

    #[test]
    fn a_directory_keeps_the_identity_it_was_given_first() {
        let disk = SimDisk::new(1);
        let first = Identity::open(&*disk.root(), &[1; 32], 1 << 20).unwrap();
        let again = Identity::open(&*disk.root(), &[2; 32], 1 << 30).unwrap();
        assert_eq!((first.secrets, first.segment_size), (again.secrets, again.segment_size));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let whole = encode(&[3; 32], 4096);
        for bit in 0..LENGTH * 8 {
            let mut bytes = whole;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Identity::decode(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_foreign_directory_and_a_log_without_its_key_are_refused_untouched() {
        let disk = SimDisk::new(1);
        disk.root().create("thesis.doc", 3).unwrap();
        let error = Identity::open(&*disk.root(), &[1; 32], 4096).unwrap_err();
        assert!(error.to_string().contains("thesis.doc"), "{error}");
        disk.root().remove("thesis.doc").unwrap();
        disk.root().subdirectory("commitlog").unwrap();
        let error = Identity::open(&*disk.root(), &[1; 32], 4096).unwrap_err();
        assert!(matches!(error, IdentityError::KeyMissing { .. }), "{error}");
        assert_eq!(disk.root().list().unwrap(), [] as [&str; 0]);
    }

    #[test]
    fn a_directory_that_cannot_be_ours_is_told_before_anything_is_made_in_it() {
        let disk = SimDisk::new(1);
        let check = || Identity::check(&*disk.root());
        check().unwrap();
        disk.root().create("LOCK", 6).unwrap();
        check().unwrap();
        disk.root().create("CURRENT", 16).unwrap();
        assert!(matches!(check(), Err(IdentityError::Foreign { found, .. }) if found == "CURRENT"));
        disk.root().remove("CURRENT").unwrap();
        Identity::open(&*disk.root(), &[1; 32], 4096).unwrap();
        disk.root().subdirectory("commitlog").unwrap();
        check().unwrap();
        disk.edit("id.key", |bytes| bytes[20] ^= 1);
        assert!(matches!(check(), Err(IdentityError::Damaged { .. })));
        assert_eq!(disk.root().list().unwrap(), ["LOCK", "id.key"]);
    }

    #[test]
    fn a_newer_format_is_refused_by_its_number() {
        let disk = SimDisk::new(1);
        Identity::open(&*disk.root(), &[1; 32], 4096).unwrap();
        disk.edit("id.key", |bytes| bytes[8] = 9);
        let error = Identity::open(&*disk.root(), &[1; 32], 4096).unwrap_err();
        assert!(matches!(error, IdentityError::Newer { got: 9, .. }), "{error}");
    }
}
