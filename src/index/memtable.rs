//! The newest entries, in memory and in order.
//!
//! The active memtable takes inserts. Once it is full it is *frozen*: the same value, that nobody
//! inserts into any more, read by look-ups until a run holds what it holds. A look-up that began
//! before keeps it alive and goes on reading it.

use std::collections::BTreeSet;

use super::entry::{Entry, KeyHash};
use crate::message::offset::Offset;
use crate::sync::RwLock;

#[derive(Debug, Default)]
pub(super) struct Memtable {
    entries: RwLock<BTreeSet<Entry>>,
}

impl Memtable {
    /// Adds `entry`, which may be there already, and answers how many there are now.
    pub(super) fn insert(&self, entry: Entry) -> usize {
        let mut entries = self.entries.write();
        entries.insert(entry);
        entries.len()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.read().len()
    }

    /// The newest offset of `key` below `below`.
    pub(super) fn newest(&self, key: KeyHash, below: Option<Offset>) -> Option<Offset> {
        let bound = Entry::first_below(key, below)?;
        let entries = self.entries.read();
        let first = entries.range(bound..).next()?;
        (first.hash == key).then_some(first.offset)
    }

    /// All entries not below `floor`, in order.
    pub(super) fn entries(&self, floor: Offset) -> Vec<Entry> {
        let entries = self.entries.read();
        entries.iter().copied().filter(|entry| entry.offset >= floor).collect()
    }
}
