//! Which files of runs no longer used may be removed.
//!
//! ```text
//!   in use ── merged, forgotten ──> retired ── in no checkpoint that counts ──> removed
//! ```
//!
//! A start goes by the last checkpoint that is on the disk: the last one confirmed, or, when the answer
//! is not in yet, one captured after it. A run that any of them lists keeps its file. A start that must
//! go by an older one, because the last is damaged, finds runs missing and builds the index anew.

use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Files {
    /// By the last checkpoint known to be durable.
    listed: BTreeSet<u64>,
    /// By the last capture.
    captured: BTreeSet<u64>,
    /// By all captures since the last checkpoint known to be durable.
    awaited: BTreeSet<u64>,
    retired: BTreeSet<u64>,
}

impl Files {
    pub(super) fn opened(listed: BTreeSet<u64>) -> Self {
        Self { captured: listed.clone(), listed, ..Self::default() }
    }

    pub(super) fn capture(&mut self, runs: BTreeSet<u64>) {
        self.awaited.extend(&runs);
        self.captured = runs;
    }

    /// The last capture is durable.
    pub(super) fn confirm(&mut self) {
        self.listed.clone_from(&self.captured);
        self.awaited.clear();
    }

    /// Nothing uses run `number` any more.
    pub(super) fn retire(&mut self, number: u64) {
        self.retired.insert(number);
    }

    /// A retired run whose file no checkpoint needs.
    pub(super) fn removable(&self) -> Option<u64> {
        let is_needed = |number| self.listed.contains(number) || self.awaited.contains(number);
        self.retired.iter().find(|number| !is_needed(number)).copied()
    }

    pub(super) fn removed(&mut self, number: u64) {
        self.retired.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_once_no_checkpoint_that_may_be_the_last_lists_it() {
        let mut files = Files::opened([1, 2].into());
        files.retire(1);
        files.retire(7);
        assert_eq!(files.removable(), Some(7));
        files.removed(7);
        assert_eq!(files.removable(), None);

        // 3 is in a checkpoint whose fate is unknown until the one after it is durable.
        files.capture([2, 3].into());
        files.retire(3);
        assert_eq!(files.removable(), None);
        files.capture([2, 4].into());
        assert_eq!(files.removable(), None);
        files.confirm();
        assert_eq!(files.removable(), Some(1));
        files.removed(1);
        assert_eq!(files.removable(), Some(3));
        files.removed(3);
        assert_eq!(files.removable(), None);
    }
}
