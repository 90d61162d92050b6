//! The ledger: every operation with what its caller was told, and every delivery, in the order in which
//! the test came to know of them. It only grows.

use horolog::clock::{Clock, SystemClock};
use parking_lot::Mutex;

/// What a caller knows of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<T> {
    Ok(T),
    /// The server said no, or was never reached: nothing may have come of it.
    Refused(String),
    /// The answer never came: it may have gone either way, but only one way.
    Unknown,
}

/// When a message was asked to be readable, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Now,
    At(u64),
    After(u64),
    /// By delay level 1 or 2.
    Level(u32),
}

/// How long the first levels delay.
pub(crate) const LEVELS_MS: [u64; 2] = [1000, 5000];

#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub number: u64,
    pub topic: &'static str,
    pub asked: Asked,
    pub sent_at: u64,
    pub outcome: Outcome<Accepted>,
}

impl Put {
    /// By this test's own clock, the message must not be seen before.
    pub(crate) fn earliest(&self) -> u64 {
        match self.asked {
            Asked::Now => self.sent_at,
            Asked::At(moment) => moment,
            Asked::After(delay) => self.sent_at + delay,
            Asked::Level(level) => self.sent_at + LEVELS_MS[level as usize - 1],
        }
    }

    pub(crate) fn accepted(&self) -> Option<&Accepted> {
        match &self.outcome {
            Outcome::Ok(accepted) => Some(accepted),
            Outcome::Refused(_) | Outcome::Unknown => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub id: String,
    /// `None` when it was accepted as readable at once.
    pub deadline: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Cancel {
    pub number: u64,
    pub outcome: Outcome<Cancelled>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancelled {
    Cancelled,
    AlreadyDelivered,
}

#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub group: String,
    /// How long the ledger was when the receive was sent: what stands before that had happened.
    pub began: usize,
    pub received_at: u64,
    pub number: u64,
    pub id: String,
    pub place: Place,
    pub deliver_at: u64,
    pub fired_at: Option<u64>,
    pub attempt: u32,
    pub body: Bytes,
}

/// Where a message stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub topic: String,
    pub queue: u16,
    pub offset: u64,
}

/// The body that came, held against the one that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bytes {
    AsSent,
    Others,
}

#[derive(Clone, Debug)]
pub(crate) struct Ack {
    pub group: String,
    pub number: u64,
    pub outcome: Outcome<()>,
}

/// A message was given back.
#[derive(Clone, Debug)]
pub(crate) struct Nack {
    pub group: String,
    pub number: u64,
    /// Of the handle.
    pub attempt: u32,
    /// By this test's own clock, it must not come again before.
    pub earliest: u64,
    pub outcome: Outcome<()>,
}

#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Put(Put),
    Cancel(Cancel),
    Delivery(Delivery),
    Ack(Ack),
    Nack(Nack),
    /// All dead letters of the group are about to be redriven.
    Redriving {
        group: String,
    },
    /// So many were, by the request that began there.
    Redriven {
        began: usize,
        count: u64,
    },
}

#[derive(Debug)]
pub(crate) struct Ledger {
    clock: SystemClock,
    entries: Mutex<Vec<Entry>>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self { clock: SystemClock::new(), entries: Mutex::default() }
    }

    /// The wall clock, in milliseconds. It is the server's clock too: both are on this machine.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().wall.as_millis()
    }

    /// Says where it stands.
    pub(crate) fn append(&self, entry: Entry) -> usize {
        let mut entries = self.entries.lock();
        entries.push(entry);
        entries.len() - 1
    }

    pub(crate) fn length(&self) -> usize {
        self.entries.lock().len()
    }

    /// Looks at what is there so far.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&[Entry]) -> T) -> T {
        look(&self.entries.lock())
    }
}
