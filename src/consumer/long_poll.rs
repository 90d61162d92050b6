//! Long polls: callers that wait for messages to arrive, in a row for each group and topic.
//!
//! ```text
//!                    a message                        it found nothing: back to its place
//!            Waiting ─────────> Woken ──> Looking ──────────────────────────────> Waiting
//!               ^                 ^          └──> it found some, and leaves
//!      nothing  │    the row is   │
//!   New ────────┴─ Held ──────────┘
//!    └───────────────────────────────────> Looking, when nobody waits
//! ```
//!
//! Ground rules:
//!
//! - A message wakes one waiter of each group, the oldest that is not awake; nobody polls. A waiter that
//!   comes back with nothing keeps its place, so the next message is its own.
//! - Who comes new overtakes nobody: it looks at once only when nobody waits. Otherwise it stands behind
//!   those who wait, and while some of them have been woken it is held until they have looked. So a caller
//!   that comes again and again, and takes all there is, starves nobody.
//! - A wake-up is never lost: whoever was woken and goes away passes it on, and one that comes while its
//!   waiter looks makes it look again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use timerlog::planted::{self, Fault};

use crate::store::ArrivalListener;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Notify, Ordering};

/// A group's callers for a topic, by their place: the oldest first.
type Row = BTreeMap<u64, Waiter>;

/// By topic, then by group: an arrival is for all groups of a topic.
type Rows = HashMap<u32, HashMap<u32, Row>>;

/// All callers that wait, by topic and group.
#[derive(Debug, Default)]
pub struct LongPolls {
    rows: Mutex<Rows>,
    places: AtomicU64,
    waiting: AtomicUsize,
    looks: AtomicU64,
    draining: AtomicBool,
}

#[derive(Debug)]
struct Waiter {
    phase: Phase,
    notify: Arc<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Has joined, and does not know yet whether it may look.
    New {
        again: bool,
    },
    /// New, and kept from looking until those before it have looked.
    Held,
    Waiting,
    Woken,
    /// `again`: something has come since it began.
    Looking {
        again: bool,
        rank: Rank,
    },
}

/// Whether those who come new wait for the end of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    Newcomer,
    Waiter,
}

impl Phase {
    /// Those who come new are held until this is over.
    fn goes_first(self) -> bool {
        matches!(self, Self::Woken | Self::Looking { rank: Rank::Waiter, .. })
    }
}

/// What a caller that has joined may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Look now.
    Look,
    /// Look when [`Poll::woken`] returns, which is soon.
    Held,
    /// There is nothing, and others wait for it already.
    Nothing,
}

/// A place in the row of a group's callers for a topic; dropping it leaves the row.
#[derive(Debug)]
pub struct Poll {
    polls: Arc<LongPolls>,
    group_id: u32,
    topic_id: u32,
    place: u64,
    notify: Arc<Notify>,
    served: bool,
}

impl LongPolls {
    /// Joins the row, at its end. Join before looking whether there is something, so that nothing that
    /// arrives in between is missed.
    pub fn join(self: &Arc<Self>, group_id: u32, topic_id: u32) -> Poll {
        let notify = Arc::new(Notify::new());
        let waiter = Waiter { phase: Phase::New { again: false }, notify: Arc::clone(&notify) };
        let mut rows = self.rows.lock();
        let place = self.places.fetch_add(1, Ordering::Relaxed);
        rows.entry(topic_id).or_default().entry(group_id).or_default().insert(place, waiter);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Poll { polls: Arc::clone(self), group_id, topic_id, place, notify, served: false }
    }

    /// How many are there.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// How often anybody has looked.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Wakes everyone, and whoever comes later does not wait.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        for row in self.rows.lock().values().flat_map(HashMap::values) {
            row.values().for_each(|waiter| waiter.notify.notify_one());
        }
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Wakes up to `count` waiters of one group.
    pub fn wake(&self, group_id: u32, topic_id: u32, count: u64) {
        if let Some(row) = row(&mut self.rows.lock(), group_id, topic_id) {
            wake_first(row, count);
        }
    }
}

fn row(rows: &mut Rows, group_id: u32, topic_id: u32) -> Option<&mut Row> {
    rows.get_mut(&topic_id)?.get_mut(&group_id)
}

fn wake_first(row: &mut Row, count: u64) {
    let mut left = count;
    for waiter in row.values_mut() {
        if left == 0 {
            return;
        }
        if waiter.wake() {
            left -= 1;
        }
    }
}

impl ArrivalListener for LongPolls {
    fn arrived(&self, topic_id: u32, count: u64) {
        if let Some(groups) = self.rows.lock().get_mut(&topic_id) {
            groups.values_mut().for_each(|row| wake_first(row, count));
        }
    }

    fn came_back(&self, group_id: u32, topic_id: u32, count: u64) {
        self.wake(group_id, topic_id, count);
    }
}

impl Waiter {
    /// `false` when it will look anyway.
    fn wake(&mut self) -> bool {
        match &mut self.phase {
            Phase::New { again } | Phase::Looking { again, .. } => {
                !std::mem::replace(again, !planted::is(Fault::LookNotRepeated))
            }
            Phase::Waiting => {
                self.rouse();
                true
            }
            Phase::Held | Phase::Woken => false,
        }
    }

    fn rouse(&mut self) {
        self.phase = Phase::Woken;
        self.notify.notify_one();
    }
}

/// When none is left that goes first, those who were held look, too.
fn release_held(row: &mut Row) {
    if !row.values().any(|waiter| waiter.phase.goes_first()) {
        row.values_mut().filter(|waiter| waiter.phase == Phase::Held).for_each(Waiter::rouse);
    }
}

impl Poll {
    /// Whether a caller that has just joined may look. `there_is_something` must have been asked after
    /// joining.
    pub fn admission(&mut self, there_is_something: bool) -> Admission {
        let place = self.place;
        self.with_row(|row| {
            let mut older = row.range(..place).map(|(_, waiter)| waiter.phase);
            let held = older.clone().any(|phase| phase.goes_first() || phase == Phase::Held);
            let waits = older.any(|phase| phase == Phase::Waiting);
            let again = row.get(&place).is_some_and(|w| w.phase == Phase::New { again: true });
            let (phase, admission) = if held {
                (Phase::Held, Admission::Held)
            } else if waits && (there_is_something || again) {
                // It came in this very moment, and it is theirs.
                let oldest = row.values_mut().find(|waiter| waiter.phase == Phase::Waiting);
                oldest.into_iter().for_each(Waiter::rouse);
                (Phase::Held, Admission::Held)
            } else if waits {
                (Phase::Waiting, Admission::Nothing)
            } else {
                (Phase::New { again }, Admission::Look)
            };
            if let Some(waiter) = row.get_mut(&place) {
                waiter.phase = phase;
            }
            admission
        })
    }

    /// A look begins.
    pub fn looks(&mut self) {
        self.polls.looks.fetch_add(1, Ordering::Relaxed);
        self.with_phase(|phase| {
            let rank = match phase {
                Phase::New { .. } => Rank::Newcomer,
                _ => Rank::Waiter,
            };
            *phase = Phase::Looking { again: false, rank };
        });
    }

    /// The look found nothing: back to its place, which it has kept.
    pub fn rests(&mut self) {
        let place = self.place;
        self.with_row(|row| {
            let Some(waiter) = row.get_mut(&place) else { return };
            let went_first = waiter.phase.goes_first();
            match waiter.phase {
                Phase::Looking { again: true, .. } => waiter.rouse(),
                _ => waiter.phase = Phase::Waiting,
            }
            if went_first {
                release_held(row);
            }
        });
    }

    /// The look found something: nothing is passed on when the caller leaves.
    pub fn is_served(&mut self) {
        self.served = true;
    }

    /// Returns when something may be there for this caller, or when the server is stopping.
    pub async fn woken(&mut self) {
        while !self.polls.is_draining() && self.with_phase(|phase| *phase != Phase::Woken) {
            self.notify.notified().await;
        }
    }

    fn with_row<T>(&self, look: impl FnOnce(&mut Row) -> T) -> T {
        let mut rows = self.polls.rows.lock();
        let row = row(&mut rows, self.group_id, self.topic_id);
        look(row.expect("a row is there as long as somebody stands in it"))
    }

    fn with_phase<T>(&self, look: impl FnOnce(&mut Phase) -> T) -> T {
        self.with_row(|row| {
            let waiter = row.get_mut(&self.place);
            look(&mut waiter.expect("it stands there until it is dropped").phase)
        })
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let mut rows = self.polls.rows.lock();
        let Some(groups) = rows.get_mut(&self.topic_id) else { return };
        if let Some(row) = groups.get_mut(&self.group_id) {
            let left = row.remove(&self.place).map(|waiter| waiter.phase);
            let unused = match left {
                Some(Phase::New { again } | Phase::Looking { again, .. }) if self.served => again,
                Some(Phase::New { again }) => again,
                // Its caller went away while it looked.
                Some(Phase::Woken | Phase::Looking { .. }) => true,
                Some(Phase::Held | Phase::Waiting) | None => false,
            };
            if unused {
                wake_first(row, 1);
            }
            if left.is_some_and(Phase::goes_first) {
                release_held(row);
            }
            if row.is_empty() {
                groups.remove(&self.group_id);
            }
        }
        if groups.is_empty() {
            rows.remove(&self.topic_id);
        }
        drop(rows);
        self.polls.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
