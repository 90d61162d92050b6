//! Room on the disk: whoever meets a full one says so here, and the ballast that is given up then.
//!
//! The ballast is a file of zeros in the data directory. Nothing is ever read from it: what counts is that its
//! bytes are allocated, and are there for others once it is removed.

use std::sync::Arc;

use timerlog::disk::{Directory, DiskError, Lock, Space};

use crate::clock::Timestamp;
use crate::stage::{Progress, Signal};
use crate::sync::{AtomicBool, Ordering};

const NAME: &str = "ballast";

/// After how long whoever found the disk full tries again.
const ROOM_RETRY_MS: u64 = 100;

/// The data directory as room for files.
#[derive(Debug)]
pub struct Room {
    root: Arc<dyn Directory>,
    wanted: AtomicBool,
    signal: Signal,
    /// Dropped with the store: another process may then take the directory.
    lock: Box<dyn Lock>,
}

impl Room {
    pub(super) fn new(root: Arc<dyn Directory>, lock: Box<dyn Lock>) -> Self {
        Self { root, wanted: AtomicBool::new(false), signal: Signal::default(), lock }
    }

    /// Somebody has found the disk full, keeps what it was about to write, and will try again.
    pub fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
        self.signal.raise();
    }

    /// As [`Room::want`], for a stage: when it is to step again.
    pub fn wait(&self, now: Timestamp) -> Progress {
        self.want();
        now.checked_add(ROOM_RETRY_MS).map_or(Progress::Idle, Progress::IdleUntil)
    }

    /// Whether somebody has found the disk full since this was last asked.
    pub fn take_wanted(&self) -> bool {
        self.wanted.swap(false, Ordering::Relaxed)
    }

    /// Raised when somebody has found the disk full.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// How large the disk is, and what of it is free without the ballast.
    ///
    /// # Errors
    ///
    /// When the data directory is not the one any more that was opened.
    pub fn space(&self) -> Result<Space, DiskError> {
        self.lock.check()?;
        self.root.space()
    }

    pub fn path(&self) -> String {
        self.root.path()
    }

    /// The length of the ballast, if there is one.
    ///
    /// # Errors
    ///
    /// The disk's.
    pub fn ballast(&self) -> Result<Option<u64>, DiskError> {
        match self.root.open(NAME) {
            Ok(file) => Ok(Some(file.length())),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the ballast. That it survives a power cut is not needed: one that is missing is made again.
    ///
    /// # Errors
    ///
    /// The disk's; for want of room, too.
    pub fn make_ballast(&self, length: u64) -> Result<(), DiskError> {
        self.root.create(NAME, length).map(drop)
    }

    /// Gives the ballast's room to the others. Synced, since some file systems free only then what was removed.
    ///
    /// # Errors
    ///
    /// The disk's.
    pub fn give_up_ballast(&self) -> Result<(), DiskError> {
        match self.root.remove(NAME) {
            Ok(()) => self.root.sync(),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Before a start reads and writes anything: on a disk with less room than the ballast takes, it goes.
    pub(super) fn make_way(&self) -> Result<(), DiskError> {
        match self.ballast()? {
            Some(length) if self.root.space()?.free < length => self.give_up_ballast(),
            _ => Ok(()),
        }
    }
}
