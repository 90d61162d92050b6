//! What the model knows of messages that were given back: nacked, dead, redriven, and out in order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::{Checked, ensure};

/// A group and a message.
type Key = (usize, u64);

#[derive(Debug, Default)]
pub(crate) struct Returned {
    /// Given back at least once, or a dead letter, whatever the disk made of it.
    again: BTreeSet<Key>,
    /// There may be two of it: as a dead letter, and in its queue, since offsets were reset.
    doubled: BTreeSet<Key>,
    /// Redriven once: it has lost its place in the order.
    died: BTreeSet<Key>,
    nacks: u64,
    /// Async mode has taken back what was told: what has come of it, nobody knows.
    forgot: bool,
    /// Told that it comes again: not before, and with a higher attempt.
    nacked: BTreeMap<Key, (u32, u64)>,
    /// The fewest attempts that a group was ever set to.
    fewest: BTreeMap<usize, u32>,
    /// The most that it was set to since the start.
    most: BTreeMap<usize, u32>,
    /// Of an ordered group: until when the lease lasts at least.
    pub(crate) out: BTreeMap<Key, Duration>,
}

impl Returned {
    pub(crate) fn set(&mut self, group: usize, most_attempts: u32) {
        let fewest = self.fewest.entry(group).or_insert(16);
        *fewest = (*fewest).min(most_attempts);
        let most = self.most.entry(group).or_insert(16);
        *most = (*most).max(most_attempts);
    }

    pub(crate) fn asked(&mut self, group: usize, number: u64) {
        self.again.insert((group, number));
        self.nacks += 1;
        self.not_out(group, number);
    }

    pub(crate) fn told(&mut self, group: usize, number: u64, attempt: u32, comes_at: u64) {
        // A second nack of one attempt is told that it holds, and changes nothing.
        let known = self.nacked.entry((group, number)).or_insert((attempt, comes_at));
        if known.0 < attempt {
            *known = (attempt, comes_at);
        }
    }

    pub(crate) fn not_out(&mut self, group: usize, number: u64) {
        self.out.remove(&(group, number));
    }

    pub(crate) fn redriven(&mut self, group: usize, number: u64) {
        self.again.insert((group, number));
        self.died.insert((group, number));
        self.nacked.remove(&(group, number));
    }

    pub(crate) fn has_died(&self, group: usize, number: u64) -> bool {
        self.died.contains(&(group, number)) || self.forgot
    }

    /// How many retries may wait at the most.
    pub(crate) fn waiting(&self) -> u64 {
        self.nacks
    }

    pub(crate) fn may_come_again(&self, group: usize, number: u64) -> bool {
        self.again.contains(&(group, number)) || self.forgot
    }

    /// Whether so many attempts may have been the last.
    pub(crate) fn may_be_dead(&self, group: usize, attempts: u32) -> bool {
        attempts >= self.fewest.get(&group).copied().unwrap_or(16)
    }

    pub(crate) fn is_doubled(&self, group: usize, number: u64) -> bool {
        self.doubled.contains(&(group, number)) || self.forgot
    }

    /// These come in their queue: no retry of them does.
    pub(crate) fn reset(&mut self, group: usize, numbers: &BTreeSet<u64>) {
        for &number in numbers {
            self.nacked.remove(&(group, number));
            self.out.remove(&(group, number));
        }
    }

    /// A message may be a dead letter by now, and be in its queue again after a reset.
    pub(crate) fn double(&mut self, group: usize, number: u64) {
        self.again.insert((group, number));
        self.doubled.insert((group, number));
    }

    pub(crate) fn check_received(
        &mut self,
        group: usize,
        number: u64,
        attempt: u32,
        highest_wall: u64,
    ) -> Checked {
        let most = self.most.get(&group).copied().unwrap_or(16).max(16);
        ensure!(
            attempt <= most,
            "message {number} was handed to group {group} for the {attempt}th time of {most}"
        );
        // A handle of an earlier life may stand for what has died since: giving that back changes nothing.
        if self.is_doubled(group, number) || self.has_died(group, number) {
            self.nacked.remove(&(group, number));
            return Ok(());
        }
        if let Some((nacked, comes_at)) = self.nacked.remove(&(group, number)) {
            ensure!(
                attempt > nacked,
                "message {number} was nacked at attempt {nacked}, and came at {attempt}"
            );
            ensure!(
                highest_wall >= comes_at,
                "message {number} was to come again at {comes_at}, and came at {highest_wall}"
            );
        }
        Ok(())
    }

    pub(crate) fn forget(&mut self) {
        self.nacked.clear();
        self.out.clear();
        self.forgot = true;
    }
}
