//! Filing: which slot an entry goes to.

use super::error::FileError;
use super::track::Placed;
use super::wheel::TimerWheel;
use crate::log::{Entry, EntryKind};

/// An entry, and what to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filing {
    pub kind: EntryKind,
    pub entry: Entry,
}

impl Filing {
    pub const fn add(entry: Entry) -> Self {
        Self { kind: EntryKind::Add, entry }
    }

    /// Takes an entry that was added out of the counts, and out of a re-filing to come. It carries
    /// the same deadline and offset as the add.
    pub const fn cancel(entry: Entry) -> Self {
        Self { kind: EntryKind::Cancel, entry }
    }

    /// An entry that is walked as an add is, and counts for nothing. It stands in the near ring only: one
    /// that is due beyond it stands in its last slot, comes early, and is to be filed again.
    pub const fn note(entry: Entry) -> Self {
        Self { kind: EntryKind::Note, entry }
    }
}

/// Where a filing belongs.
enum Home {
    Near(Placed),
    Far(Placed),
    /// A cancel of what is settled already or was never filed: nothing depends on it.
    Nowhere,
}

impl TimerWheel {
    /// Files a batch: one write for each log it touches. The entries are there for the next walk at
    /// once, and durable after [`TimerWheel::flush`].
    ///
    /// An add whose slot is settled joins the open slot, [`TimerWheel::read_time`]; a cancel in such
    /// a slot is dropped.
    ///
    /// # Errors
    ///
    /// [`FileError::BeyondRange`] for a deadline at or after [`TimerWheel::deadline_limit`], before
    /// anything is filed; the disk's errors otherwise. After one for want of room
    /// ([`DiskError::wants_room`](crate::disk::DiskError::wants_room)) nothing is filed, and the call may be
    /// repeated.
    pub fn file(&mut self, filings: &[Filing]) -> Result<(), FileError> {
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for filing in filings {
            match self.home_of(filing)? {
                Home::Near(placed) => near.push(placed),
                Home::Far(placed) => far.push(placed),
                Home::Nowhere => {}
            }
        }
        // Both logs first: what found no room may be filed again, and nothing is there twice then.
        self.far.log.make_room(far.len())?;
        self.near.log.make_room(near.len())?;
        self.touch();
        if !far.is_empty() {
            self.far.file(&far)?;
        }
        if !near.is_empty() {
            self.near.file(&near)?;
        }
        Ok(())
    }

    fn home_of(&self, filing: &Filing) -> Result<Home, FileError> {
        let Filing { kind, entry } = *filing;
        let mut slot = self.window.slot_of(entry.deadline);
        if kind == EntryKind::Note {
            slot = slot.min(self.filing_boundary() - 1);
        }
        if slot < self.filing_boundary() {
            return Ok(match kind {
                EntryKind::Cancel if slot < self.read_time => Home::Nowhere,
                _ => Home::Near(Placed { slot: slot.max(self.read_time), kind, entry }),
            });
        }
        if slot < self.window.end(self.boundary) {
            return Ok(Home::Far(Placed { slot: self.window.far_slot_of(slot), kind, entry }));
        }
        match kind {
            EntryKind::Cancel => Ok(Home::Nowhere),
            EntryKind::Add | EntryKind::Note => Err(FileError::BeyondRange {
                deadline: entry.deadline,
                limit: self.deadline_limit(),
            }),
        }
    }

    /// The first slot whose entries are filed far. A far slot takes nothing more once its re-filing
    /// has begun: what belongs there goes where the re-filing would bring it.
    fn filing_boundary(&self) -> u64 {
        match &self.refiling {
            Some(_) => self.boundary + self.window.far_width(),
            None => self.boundary,
        }
    }
}
