//! What was decided of how groups read topics: from where, and what of it.
//!
//! A decision (a group's first receive of a topic, a reset of its offsets) counts for the engine as soon as
//! it is appended, and for its caller once it is durable. In between, the power may take it back: then what
//! was before it counts again, acks too. After each start the engine must stand where the last decision
//! that was told has put it, or a later one.

use std::collections::{BTreeMap, BTreeSet};

use horolog::message::{GroupSettings, TagFilter};
use horolog::store::Reading;

use crate::model::{Checked, ensure};

/// A group and a topic.
pub(crate) type Pair = (usize, usize);

/// Appended, and perhaps not durable yet.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub number: u64,
    pub fence: u64,
    pub filter: Option<TagFilter>,
    /// By queue; `None` stays.
    pub starts: Vec<Option<u64>>,
    /// What was acked, and may come again by this.
    pub acked: BTreeSet<u64>,
}

/// Where a group stands by all that was decided.
#[derive(Clone, Debug)]
pub(crate) struct Decided {
    pub fence: u64,
    pub filter: Option<TagFilter>,
    pub starts: Vec<u64>,
    /// Where it starts is known: not so when async mode has taken back what was told.
    pub certain: bool,
}

#[derive(Debug, Default)]
struct Read {
    told: Option<Decided>,
    open: Vec<Decision>,
}

#[derive(Debug, Default)]
pub(crate) struct Reads {
    reads: BTreeMap<Pair, Read>,
    /// Of a group: what it may be set to. The first was told, or is what it was made with.
    settings: BTreeMap<usize, Vec<(u64, GroupSettings)>>,
    /// Groups whose settings were told to hold.
    told: BTreeSet<usize>,
    /// Topics that were deleted in this life: after a start they may be there again.
    deleted: BTreeSet<usize>,
    numbers: u64,
}

impl Decided {
    fn after(before: Option<&Self>, decision: &Decision) -> Self {
        let start = |queue: usize| {
            let before = before.and_then(|before| before.starts.get(queue).copied());
            decision.starts[queue].or(before).unwrap_or(0)
        };
        Self {
            fence: decision.fence,
            filter: decision.filter.clone().or_else(|| before.and_then(|b| b.filter.clone())),
            starts: (0..decision.starts.len()).map(start).collect(),
            certain: before.is_none_or(|before| before.certain)
                || decision.starts.iter().all(Option::is_some),
        }
    }
}

impl Reads {
    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Where the group stands for the engine, told or not.
    pub(crate) fn latest(&self, pair: Pair) -> Option<Decided> {
        let read = self.reads.get(&pair)?;
        let open = read.open.iter();
        open.fold(read.told.clone(), |before, decision| {
            Some(Decided::after(before.as_ref(), decision))
        })
    }

    pub(crate) fn appended(&mut self, pair: Pair, decision: Decision) {
        self.reads.entry(pair).or_default().open.push(decision);
    }

    /// The decision is durable, and all before it.
    pub(crate) fn told(&mut self, pair: Pair, number: u64) {
        let read = self.reads.entry(pair).or_default();
        let count = read.open.iter().filter(|decision| decision.number <= number).count();
        for decision in read.open.drain(..count) {
            read.told = Some(Decided::after(read.told.as_ref(), &decision));
        }
    }

    /// What is handed out must be wanted. What comes `again` may stand before where the group starts now.
    pub(crate) fn check_received(
        &self,
        pair: Pair,
        place: (u16, u64),
        tag: Option<&str>,
        again: bool,
    ) -> Checked {
        let decided = self.latest(pair);
        let Some(decided) = decided else { return Err(format!("{pair:?} reads undecided")) };
        let wanted = decided.filter.as_ref().is_some_and(|filter| filter.admits(tag));
        ensure!(wanted, "{tag:?} at {place:?} was handed to {pair:?}, which wants {decided:?}");
        let start = decided.starts.get(usize::from(place.0)).copied().unwrap_or(0);
        ensure!(
            place.1 >= start || !decided.certain || again,
            "{place:?} was handed to {pair:?}, which starts behind it: {decided:?}"
        );
        Ok(())
    }

    /// Whether the group must get what stands at a place, unless it has acked it.
    pub(crate) fn must_come(&self, pair: Pair, place: (u16, u64), tag: Option<&str>) -> bool {
        self.latest(pair).is_some_and(|decided| {
            let start = decided.starts.get(usize::from(place.0)).copied().unwrap_or(0);
            let wanted = decided.filter.is_some_and(|filter| filter.admits(tag));
            decided.certain && place.1 >= start && wanted
        })
    }

    /// After a start: what has become of the decisions that were not told. Answers what was acked before
    /// those that are lost.
    pub(crate) fn started(
        &mut self,
        pair: Pair,
        engine: Option<&Reading>,
        keeps: bool,
    ) -> Result<BTreeSet<u64>, String> {
        let read = self.reads.entry(pair).or_default();
        let mut acked = BTreeSet::new();
        for decision in std::mem::take(&mut read.open) {
            let survived = engine.is_some_and(|engine| {
                let filter_is_there = decision.filter.is_none() || engine.filter.is_some();
                engine.fence > decision.fence || engine.fence == decision.fence && filter_is_there
            });
            match survived {
                true => read.told = Some(Decided::after(read.told.as_ref(), &decision)),
                false => acked.extend(decision.acked),
            }
        }
        match (&read.told, engine) {
            (None, None) => {}
            (None, Some(engine)) => {
                let came_back = self.deleted.contains(&pair.1);
                ensure!(!keeps || came_back, "nobody decided how {pair:?} reads: {engine:?}");
                read.told = Some(Decided {
                    fence: engine.fence,
                    filter: engine.filter.clone(),
                    starts: Vec::new(),
                    certain: false,
                });
            }
            (Some(told), None) => {
                return Err(format!("how {pair:?} reads was decided, and is forgotten: {told:?}"));
            }
            (Some(told), Some(engine)) => {
                ensure!(
                    (told.fence, &told.filter) == (engine.fence, &engine.filter),
                    "{pair:?} was told {told:?}, and after a start reads by {engine:?}"
                );
            }
        }
        Ok(acked)
    }

    /// The topic is deleted: nobody has read its successor. Answers what was acked before decisions that may
    /// be lost along with the deletion: then those acks count again.
    pub(crate) fn topic_deleted(&mut self, topic: usize) -> BTreeSet<(usize, u64)> {
        let mut acked = BTreeSet::new();
        self.reads.retain(|pair, read| {
            let gone = pair.1 == topic;
            for decision in read.open.iter().filter(|_| gone) {
                acked.extend(decision.acked.iter().map(|&number| (pair.0, number)));
            }
            !gone
        });
        self.deleted.insert(topic);
        acked
    }

    /// What a start has left is known.
    pub(crate) fn all_started(&mut self) {
        self.deleted.clear();
    }

    /// The group, which was set `before` if it was there, is set.
    pub(crate) fn set(
        &mut self,
        group: usize,
        number: u64,
        before: Option<GroupSettings>,
        settings: GroupSettings,
    ) {
        let may_be = self.settings.entry(group).or_default();
        if may_be.is_empty() {
            may_be.extend(before.map(|before| (0, before)));
        }
        may_be.push((number, settings));
    }

    /// The settings with this number are durable: those before it cannot come back.
    pub(crate) fn set_is_told(&mut self, group: usize, number: u64) {
        self.settings.entry(group).or_default().retain(|(of, _)| *of >= number);
        self.told.insert(group);
    }

    /// After a start a group is set to what it was told, or to something later.
    pub(crate) fn check_settings(
        &mut self,
        group: usize,
        there: Option<&GroupSettings>,
    ) -> Checked {
        let Some(there) = there else {
            self.settings.remove(&group);
            ensure!(!self.told.contains(&group), "group {group} was set, and is gone");
            return Ok(());
        };
        if let Some(may_be) = self.settings.get_mut(&group) {
            let found = may_be.iter().rev().find(|(_, settings)| settings == there).cloned();
            let Some(found) = found else {
                return Err(format!("group {group} is set to {there:?}, not one of {may_be:?}"));
            };
            *may_be = vec![found];
        }
        Ok(())
    }

    /// Async mode has taken back what was told.
    pub(crate) fn forget(&mut self) {
        self.reads.clear();
        self.settings.clear();
        self.told.clear();
    }
}
