//! Offsets are reset, and handles of before tried again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use horolog::clock::Clock;
use horolog::commitlog::Receipt;
use horolog::consumer::{AckOutcome, ResetError, ResetTo};

use crate::model::{Checked, ensure};
use crate::reads::Decision;
use crate::world::{GROUPS, Open, TOPICS, World};

impl World {
    pub(crate) fn reset_offsets(&mut self) -> Checked {
        let (group, topic) = (self.index(GROUPS), self.index(TOPICS));
        let Some((group_there, topic_there)) = self.there(group, topic) else { return Ok(()) };
        let ends: Vec<_> = topic_there.queues.iter().map(|queue| queue.next_offset()).collect();
        let wall = self.wall();
        let to = match self.random.below(5) {
            0 => ResetTo::Earliest,
            1 => ResetTo::Latest,
            2 => ResetTo::Time(horolog::clock::Timestamp::from_millis(
                wall.saturating_sub(self.random.below(600_000)),
            )),
            _ => {
                let queue = self.index(ends.len());
                // Now and then beyond the end.
                let offset = self.random.below(ends[queue] + 2);
                ResetTo::Queues([(u16::try_from(queue).expect("few queues"), offset)].into())
            }
        };
        let consumers = Arc::clone(&self.engine().consumers);
        let first = consumers.reading(&group_there, &topic_there).is_none();
        let reset = consumers.reset(&group_there, &topic_there, &to, self.clock.now());
        let beyond = matches!(&to, ResetTo::Queues(offsets)
            if offsets.iter().any(|(&queue, &offset)| offset > ends[usize::from(queue)]));
        let (stands, receipt) = match reset {
            Ok(reset) => reset,
            Err(ResetError::BeyondEnd { .. }) => {
                ensure!(beyond, "group {group} could not be reset to {to:?}, with {ends:?}");
                return Ok(());
            }
            Err(_) => return Ok(()),
        };
        ensure!(!beyond, "group {group} was reset to {to:?}, beyond {ends:?}");
        let start = |(queue, stands): (u16, u64)| match &to {
            ResetTo::Queues(offsets) if !first => offsets.get(&queue).copied(),
            _ => Some(stands),
        };
        let starts: Vec<_> = (0..).zip(stands.iter().copied()).map(start).collect();
        let right = match &to {
            ResetTo::Earliest => stands.iter().all(|&offset| offset == 0),
            ResetTo::Latest => stands == ends,
            ResetTo::Time(_) => stands.iter().zip(&ends).all(|(offset, end)| offset <= end),
            ResetTo::Queues(offsets) => {
                offsets.iter().all(|(&queue, &offset)| stands[usize::from(queue)] == offset)
            }
        };
        ensure!(right, "group {group} was reset to {to:?}, and stands at {stands:?}");
        let decided = consumers.reading(&group_there, &topic_there).ok_or("it was reset")?;
        self.decided_anew(group, (topic, topic_there.id), starts, decided.fence, receipt);
        Ok(())
    }

    /// What is from there on may come again; no handle from before is good.
    fn decided_anew(
        &mut self,
        group: usize,
        (topic, topic_id): (usize, u32),
        starts: Vec<Option<u64>>,
        fence: u64,
        receipt: Receipt,
    ) {
        let again = self.model.messages.iter().filter(|message| {
            let Some((of, queue, offset)) = message.place else { return false };
            of == topic_id && starts[usize::from(queue)].is_some_and(|start| offset >= start)
        });
        let again: BTreeSet<_> = again.map(|message| message.number).collect();
        for &number in &again {
            if self.model.returned.may_be_dead(group, self.model.attempt(group, number)) {
                self.model.returned.double(group, number);
            }
        }
        self.model.returned.reset(group, &again);
        // What was given back just now does not come by that any more.
        let is_void = |open: &Open| matches!(open, Open::Nacked { group: of, number, .. } if *of == group && again.contains(number));
        self.open.retain(|(_, open)| !is_void(open));
        // Whatever is not read again lost its lease, too.
        for message in self.model.messages.iter().filter(|message| message.topic_id == topic_id) {
            self.model.returned.not_out(group, message.number);
        }
        let acked = again.iter().copied().filter(|&n| self.model.acked.remove(&(group, n)));
        let acked = acked.collect();
        // An ack that was not answered yet stands before the reset in the log.
        for (_, open) in &mut self.open {
            if let Open::Acked { group: of, number } = *open
                && of == group
                && again.contains(&number)
            {
                *open = Open::AckedBeforeReset;
                self.model.ack_unknown.insert((group, number));
            }
        }
        self.model.forget_attempts(group, &again);
        let (void, held) = std::mem::take(&mut self.held)
            .into_iter()
            .partition::<Vec<_>, _>(|held| (held.group, held.topic) == (group, topic));
        self.held = held;
        self.void.extend(void);
        self.void_by.entry((group, topic)).or_default().push(fence);
        let number = self.model.reads.number();
        let decision = Decision { number, fence, filter: None, starts, acked };
        self.model.reads.appended((group, topic), decision);
        self.open.push((receipt, Open::Reset { group, topic, number }));
        self.coverage.groups.count("resets");
    }

    /// A handle from before a reset is worth nothing.
    pub(crate) fn ack_void(&mut self) -> Checked {
        if self.void.is_empty() {
            return Ok(());
        }
        let index = self.index(self.void.len());
        let void = self.void[index].clone();
        let Some((group, _)) = self.there(void.group, void.topic) else { return Ok(()) };
        let consumers = Arc::clone(&self.engine().consumers);
        let now = self.clock.now();
        let longer = Duration::from_secs(60);
        ensure!(
            consumers.extend(&group, &void.handle, longer, now).is_none(),
            "a handle from before a reset was extended: {void:?}"
        );
        if let Ok((outcomes, _)) = consumers.ack(&group, std::slice::from_ref(&void.handle), now) {
            ensure!(
                outcomes == [AckOutcome::InvalidReceiptHandle],
                "a handle from before a reset was good: {void:?}"
            );
        }
        self.coverage.groups.count("void handles");
        Ok(())
    }
}
