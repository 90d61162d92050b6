//! Groups are made, and set again, by a record that has all of their settings.

use std::sync::Arc;

use super::groups::Group;
use super::{MakeError, Store};
use crate::clock::Timestamp;
use crate::commitlog::{AppendError, Receipt};
use crate::message::record::GroupSet;
use crate::message::{GroupName, GroupSettings};

/// Whether a group was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    Now,
    Before,
}

impl Store {
    /// Up to `max` groups by name, those after `after`.
    pub fn groups(&self, after: Option<&str>, max: usize) -> Vec<Arc<Group>> {
        self.fold.groups.page(after, max)
    }

    /// The group `name`, made with `settings` when there is none; one that is there stays as it is.
    ///
    /// # Errors
    ///
    /// When it must be made and cannot.
    pub fn make_group(
        &self,
        name: &GroupName,
        settings: &GroupSettings,
        now: Timestamp,
    ) -> Result<(Arc<Group>, Made), MakeError> {
        let _making = self.making.lock();
        if let Some(group) = self.group(name) {
            return Ok((group, Made::Before));
        }
        let group_id = self.fold.groups.next_id();
        let (name, settings) = (name.as_str().to_owned(), settings.clone());
        // A group whose record is lost with the power leaves its id to another one. That one is of a
        // later incarnation, so by the epoch it tells the lost one's receipt handles from its own.
        let epoch =
            u32::try_from(self.incarnation & u64::from(u32::MAX)).expect("masked to 32 bits");
        let set = GroupSet { group_id, epoch, at: now, name, settings };
        let record = set.encode();
        // Nothing is received without a group.
        let at = self.log.turn_for_accepted(record.len())?.append(record);
        let group = Group::new(group_id, &set.name, epoch, at, set.settings);
        Ok((self.fold.groups.add(group), Made::Now))
    }

    /// Sets the group. Its new settings count from here on; they hold once the receipt is durable.
    ///
    /// # Errors
    ///
    /// When the log takes nothing now; the settings stay then.
    pub fn set_group(
        &self,
        group: &Group,
        settings: GroupSettings,
        now: Timestamp,
    ) -> Result<Receipt, AppendError> {
        let name = group.name.clone();
        let set = GroupSet { group_id: group.id, epoch: group.epoch, at: now, name, settings };
        let record = set.encode();
        let mut turn = self.log.turn_for_accepted(record.len())?;
        let at = turn.append(record);
        let receipt = turn.receipt();
        drop(turn);
        group.set(at, set.settings);
        Ok(receipt)
    }
}
