//! Everything that leaves: receive, ack, extend, and leases that run out.
//!
//! ```text
//!   units ── grant (lease) ──> read bodies ──> the caller ── ack ──> a record ──> progress (the fold)
//!     ^                                            │
//!     └── readable again <── lease expired (a record) ┘ or nobody took it
//! ```
//!
//! Ground rules:
//!
//! - Leases are memory; acks and expiries are records. A restart makes what was out readable again, at
//!   an equal or higher attempt.
//! - A lease that ran out is handed out again only when its record is durable, so that attempts never
//!   go back.
//! - What says where a group starts, what it acked and what its filter left out is appended under the
//!   leases' lock: see [`reading`].
//! - Order of locks: leases, then a group's progress or the appender.

mod ack;
mod bounds;
mod carry;
mod dead_letters;
mod expiry;
mod fifo;
mod filter;
mod lease;
pub mod long_poll;
mod nack;
mod reading;
mod receive;
mod reset;
mod retry;
mod set_aside;
mod settings;
mod stats;

pub use ack::{AckError, AckOutcome, Extended};
pub use carry::LettersWalk;
pub use dead_letters::{DeadLettersError, DeadMessage, Mark, NoOrigin, Wanted};
pub use expiry::ExpiryStage;
pub use fifo::MAX_PARKED;
pub use nack::NackError;
pub use reading::SubscribeError;
pub use receive::{Leased, More, ReceiveError, Received};
pub use reset::{ResetError, ResetTo};
pub use settings::SetError;
pub use stats::{QueuesAtBound, TopicStats};

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use self::bounds::{Ends, Tally};
use self::fifo::{Lanes, Place};
use self::lease::{LeaseNumber, QueueLeases};
use self::long_poll::LongPolls;
use self::reading::Reading;
use crate::config::LeaseBounds;
use crate::stage::Signal;
use crate::store::{Group, Store, Topic};
use crate::sync::Mutex;

/// The shortest and the longest lease, in milliseconds.
pub const INVISIBLE_FOR_MS: std::ops::RangeInclusive<u64> = 1..=12 * 60 * 60 * 1000;

/// All consumers of a store.
#[derive(Debug)]
pub struct Consumers {
    store: Arc<Store>,
    leases: Mutex<Leases>,
    polls: Arc<LongPolls>,
    expiry_signal: Signal,
}

/// One queue of one topic, for one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Seat {
    group_id: u32,
    topic_id: u32,
    queue: u16,
}

#[derive(Debug)]
struct Leases {
    queues: HashMap<Seat, QueueLeases>,
    numbers: LeaseNumber,
    tally: Tally,
    ends: Ends,
    /// With which queue the next receive of a group and topic begins.
    turns: HashMap<(u32, u32), usize>,
    /// By group and topic; `None` was looked for and is not there.
    readings: BTreeMap<(u32, u32), Option<Reading>>,
    /// What was given back, until its lease would have ended: its handle acknowledges nothing.
    nacked: HashMap<Place, LeaseNumber>,
    /// The message groups of ordered groups, by group and topic.
    lanes: HashMap<(u32, u32), Lanes>,
    /// Done, and waiting for dispatch to say so: then the next of its message group may go.
    releases: VecDeque<Release>,
}

/// A message that was done while it owned its message group.
#[derive(Clone, Copy, Debug)]
struct Release {
    place: Place,
    topic_id: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    until: Duration,
    seat: Seat,
    queue_offset: u64,
    number: LeaseNumber,
}

impl Consumers {
    pub fn new(store: Arc<Store>, bounds: LeaseBounds) -> Self {
        let numbers = LeaseNumber::first_of(store.incarnation());
        let polls = Arc::new(LongPolls::default());
        store.listen(Arc::clone(&polls) as Arc<_>);
        Self {
            store,
            leases: Mutex::new(Leases {
                queues: HashMap::new(),
                numbers,
                tally: Tally::new(bounds),
                ends: Ends::new(),
                turns: HashMap::new(),
                readings: BTreeMap::new(),
                nacked: HashMap::new(),
                lanes: HashMap::new(),
                releases: VecDeque::new(),
            }),
            polls,
            expiry_signal: Signal::default(),
        }
    }

    pub fn polls(&self) -> &Arc<LongPolls> {
        &self.polls
    }

    /// How many messages are out, or wait in memory to be handed out again.
    pub fn kept(&self) -> usize {
        self.leases.lock().tally.all()
    }
}

impl Leases {
    fn queue(&mut self, group: &Group, seat: Seat) -> &mut QueueLeases {
        self.queues.entry(seat).or_insert_with(|| {
            let floor = group.progress((seat.topic_id, seat.queue), |progress| progress.floor());
            QueueLeases::new(floor, self.tally.part())
        })
    }

    /// A lease ends then.
    fn add_end(&mut self, end: End) {
        self.ends.push(end);
        if self.ends.is_overgrown() {
            self.forget_old_ends();
        }
    }

    /// Throws away what says when leases end that are gone, and what says that they were given back when
    /// the progress says so, too.
    fn forget_old_ends(&mut self) {
        let (queues, nacked) = (&self.queues, &mut self.nacked);
        nacked.retain(|(seat, offset), number| {
            queues.get(seat).is_some_and(|queue| queue.is_acking(*offset, *number))
        });
        self.ends.keep(|end| {
            let queue = queues.get(&end.seat);
            queue.is_some_and(|queue| queue.lasts_until(end.queue_offset, end.number, end.until))
                || nacked.get(&(end.seat, end.queue_offset)) == Some(&end.number)
        });
    }

    /// The message is done, by a record that is appended: in an ordered group the next one of its message
    /// group may go when dispatch has folded that.
    fn done(&mut self, group: &Group, place: Seat, topic_id: u32, offset: u64) {
        if group.settings().ordered {
            self.releases.push_back(Release { place: (place, offset), topic_id });
        }
    }
}

fn seat(group: &Group, topic: &Topic, queue: u16) -> Seat {
    Seat { group_id: group.id, topic_id: topic.id, queue }
}
