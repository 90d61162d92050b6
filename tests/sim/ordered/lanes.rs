//! What is known of each message group, and what must hold when one of its messages is handed out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use horolog::consumer::{Mark, Received};

use super::story::{MAX_ATTEMPTS, Story};
use crate::model::{Checked, ensure};

/// A message: its message group, and how many were put there before it.
pub(super) type Number = (usize, usize);

/// What its consumers and producers know of one message group.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) put: usize,
    /// Told to be stored.
    pub(super) stored: BTreeSet<usize>,
    /// Told to be acknowledged, ...
    pub(super) acked: BTreeSet<usize>,
    /// ... or asked for, and the answer went with the process.
    pub(super) perhaps_acked: BTreeSet<usize>,
    pub(super) dead: BTreeSet<usize>,
    /// The last that was handed out.
    pub(super) furthest: usize,
    /// Handed out in this life, and until when.
    pub(super) out: Option<(usize, Duration)>,
}

pub(super) fn number_of(text: &str) -> Number {
    let (message_group, number) = text.split_once('/').expect("a body that was put");
    (message_group.parse().expect("a number"), number.parse().expect("a number"))
}

impl Story {
    /// A consumer has this in its hands now.
    pub(super) fn handed_out(&mut self, one: &Received, now: Duration, lease: Duration) -> Checked {
        let (of, number) = number_of(&String::from_utf8_lossy(&one.body));
        ensure!(one.attempt <= MAX_ATTEMPTS, "{of}/{number} has no attempts left: {one:?}");
        self.hear();
        let lane = &self.lanes[of];
        if let Some((other, until)) = lane.out {
            ensure!(until <= now, "{of}/{number} is out, and so is {of}/{other}");
        }
        ensure!(number >= lane.furthest, "{of}/{number} came after {of}/{}", lane.furthest);
        let before = lane.stored.range(..number);
        let done = [&lane.acked, &lane.perhaps_acked, &lane.dead];
        let mut left: Vec<_> = before
            .copied()
            .filter(|number| !done.iter().any(|done| done.contains(number)))
            .collect();
        if !left.is_empty() {
            self.look_at_dead_letters()?;
            left.retain(|number| !self.lanes[of].dead.contains(number));
        }
        ensure!(left.is_empty(), "{of}/{number} came before {left:?}, which are not done");
        let lane = &mut self.lanes[of];
        ensure!(!lane.acked.contains(&number), "{of}/{number} was acknowledged, and came again");
        lane.furthest = number;
        lane.out = Some((number, now + lease));
        self.happened.handed_out += 1;
        self.happened.again += u64::from(one.attempt > 1);
        Ok(())
    }

    pub(super) fn look_at_dead_letters(&mut self) -> Checked {
        let (group, _) = self.there();
        let consumers = Arc::clone(&self.bench().engine.consumers);
        let listed = consumers.dead_letters(&group, Mark::default(), usize::MAX);
        for letter in listed.map_err(|error| error.to_string())?.0 {
            let (lane, number) = number_of(&letter.attributes.keys[0]);
            ensure!(letter.attempts == MAX_ATTEMPTS, "it died too early: {letter:?}");
            ensure!(!self.lanes[lane].acked.contains(&number), "acked, and dead: {letter:?}");
            self.happened.dead += u64::from(self.lanes[lane].dead.insert(number));
        }
        Ok(())
    }
}
