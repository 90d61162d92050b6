//! Stretches of the log that are set aside, since they are damaged: what was found by recovery, and what was found
//! when a message was to be handed out. Kept by the fold, so a start knows of them from the checkpoint or from the log.

use std::collections::BTreeMap;

use super::Store;
use crate::message::offset::Offset;
use crate::message::record::{DamageReason, Quarantine};

/// The newest of so many are listed; all are counted.
pub(super) const LISTED_MAX: usize = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quarantined {
    /// All that were ever set aside, whether the log still has them or not.
    pub count: u64,
    /// Those that the log still has, by where they begin.
    pub(super) listed: BTreeMap<u64, (u64, DamageReason)>,
}

impl Quarantined {
    /// A record says that the stretch is set aside; more than one may say it of the same.
    pub(super) fn add(&mut self, quarantine: Quarantine) {
        let Quarantine { from, length, reason } = quarantine;
        if self.listed.insert(from.get(), (length, reason)).is_none() {
            self.count += 1;
        }
        while self.listed.len() > LISTED_MAX {
            self.listed.pop_first();
        }
    }

    pub(super) fn forget_below(&mut self, begin: Offset) {
        self.listed = self.listed.split_off(&begin.get());
    }

    /// Those that are listed, by where they begin.
    pub fn iter(&self) -> impl Iterator<Item = Quarantine> + '_ {
        self.listed.iter().map(|(&from, &(length, reason))| Quarantine {
            from: Offset::new(from),
            length,
            reason,
        })
    }
}

impl Store {
    /// What is set aside of the log.
    pub fn quarantined(&self) -> Quarantined {
        self.dispatcher.lock().quarantined.clone()
    }

    /// The file of the log in which `offset` lies, and where in it.
    pub fn place_in_file(&self, offset: Offset) -> (String, u64) {
        let inside = offset.get() % self.log.segment_size();
        (format!("commitlog/{:020}", offset.get() - inside), inside)
    }
}
