//! What the first act was told and what it got, order by order, and what that amounts to.

use hdrhistogram::Histogram;

use super::progress::Account;
use super::report::thousands;
use crate::clock::Timestamp;
use crate::sync::Mutex;

/// What the server said when an order was paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Cancelled,
    AlreadyDelivered,
}

/// One delivery, as the order service saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) deliver_at: Timestamp,
    pub(super) fired_at: Timestamp,
    pub(super) received_at: Timestamp,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    scheduled: Option<Timestamp>,
    told: Option<Told>,
    deliveries: u32,
}

impl Entry {
    fn is_settled(&self) -> bool {
        self.told == Some(Told::Cancelled) || self.deliveries > 0
    }
}

#[derive(Debug)]
struct Pages {
    entries: Vec<Entry>,
    settled: usize,
    tally: Tally,
    last_moment: Timestamp,
    fired: Histogram<u64>,
    received: Histogram<u64>,
}

/// The counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) scheduled: usize,
    pub(super) cancelled: usize,
    pub(super) already_delivered: usize,
    pub(super) fired: usize,
    pub(super) early: usize,
}

/// What may not happen, counted when all is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    pub(super) early: usize,
    pub(super) lost: usize,
    pub(super) twice: usize,
    pub(super) after_cancel: usize,
}

#[derive(Debug)]
pub(super) struct Book {
    pages: Mutex<Pages>,
}

impl Book {
    pub(super) fn new(orders: usize) -> Self {
        let pages = Pages {
            entries: vec![Entry::default(); orders],
            settled: 0,
            tally: Tally::default(),
            last_moment: Timestamp::from_millis(0),
            fired: histogram(),
            received: histogram(),
        };
        Self { pages: Mutex::new(pages) }
    }

    pub(super) fn len(&self) -> usize {
        self.pages.lock().entries.len()
    }

    pub(super) fn scheduled(&self, order: usize, deliver_at: Timestamp) {
        let mut pages = self.pages.lock();
        pages.entries[order].scheduled = Some(deliver_at);
        pages.tally.scheduled += 1;
        pages.last_moment = pages.last_moment.max(deliver_at);
    }

    pub(super) fn told(&self, order: usize, told: Told) {
        let mut pages = self.pages.lock();
        match told {
            Told::Cancelled => pages.tally.cancelled += 1,
            Told::AlreadyDelivered => pages.tally.already_delivered += 1,
        }
        pages.settle(order, |entry| entry.told = Some(told));
    }

    pub(super) fn delivered(&self, order: usize, delivery: Delivery) {
        let mut pages = self.pages.lock();
        let Delivery { deliver_at, fired_at, received_at } = delivery;
        if fired_at < deliver_at || received_at < deliver_at {
            pages.tally.early += 1;
        }
        if pages.entries[order].deliveries == 0 {
            pages.tally.fired += 1;
        }
        pages.fired.saturating_record(fired_at.since(deliver_at));
        pages.received.saturating_record(received_at.since(deliver_at));
        pages.settle(order, |entry| entry.deliveries += 1);
    }

    /// Every order is cancelled or delivered.
    pub(super) fn is_settled(&self) -> bool {
        let pages = self.pages.lock();
        pages.settled == pages.entries.len()
    }

    pub(super) fn is_scheduled(&self) -> bool {
        let pages = self.pages.lock();
        pages.tally.scheduled == pages.entries.len()
    }

    /// The latest moment that was asked for.
    pub(super) fn last_moment(&self) -> Timestamp {
        self.pages.lock().last_moment
    }

    pub(super) fn tally(&self) -> Tally {
        self.pages.lock().tally
    }

    pub(super) fn faults(&self) -> Faults {
        let pages = self.pages.lock();
        let count = |fault: fn(&Entry) -> bool| pages.entries.iter().filter(|e| fault(e)).count();
        Faults {
            early: pages.tally.early,
            lost: count(|entry| entry.scheduled.is_some() && !entry.is_settled()),
            twice: count(|entry| entry.deliveries > 1),
            after_cancel: count(|entry| {
                entry.told == Some(Told::Cancelled) && entry.deliveries > 0
            }),
        }
    }

    /// How late messages fired, and how late they were in the consumer's hands, in milliseconds.
    pub(super) fn lateness(&self) -> (Histogram<u64>, Histogram<u64>) {
        let pages = self.pages.lock();
        (pages.fired.clone(), pages.received.clone())
    }
}

impl Account for Book {
    fn settled(&self) -> usize {
        self.pages.lock().settled
    }

    fn line(&self) -> String {
        let Tally { scheduled, cancelled, fired, .. } = self.tally();
        let [scheduled, cancelled, fired] = [scheduled, cancelled, fired].map(thousands);
        format!("scheduled {scheduled}, cancelled {cancelled}, fired {fired}")
    }
}

impl Pages {
    fn settle(&mut self, order: usize, change: impl FnOnce(&mut Entry)) {
        let entry = &mut self.entries[order];
        let before = entry.is_settled();
        change(entry);
        if entry.is_settled() && !before {
            self.settled += 1;
        }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000, 3).expect("an hour in milliseconds, to three digits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn delivery(fired_at: u64) -> Delivery {
        Delivery { deliver_at: at(100), fired_at: at(fired_at), received_at: at(fired_at + 1) }
    }

    #[test]
    fn every_way_to_break_a_promise_is_counted() {
        let book = Book::new(5);
        for order in 0..5 {
            book.scheduled(order, at(100));
        }
        book.told(0, Told::Cancelled);
        book.delivered(0, delivery(100));
        book.delivered(1, delivery(99));
        book.delivered(2, delivery(100));
        book.delivered(2, delivery(101));
        book.told(3, Told::AlreadyDelivered);
        assert!(!book.is_settled());
        let faults = book.faults();
        assert_eq!(faults, Faults { early: 1, lost: 2, twice: 1, after_cancel: 1 });
    }

    #[test]
    fn an_order_is_settled_when_it_is_cancelled_or_delivered() {
        let book = Book::new(2);
        book.scheduled(0, at(100));
        book.scheduled(1, at(100));
        book.told(0, Told::Cancelled);
        book.told(1, Told::AlreadyDelivered);
        assert!(!book.is_settled());
        book.delivered(1, delivery(105));
        assert!(book.is_settled());
        assert_eq!(book.faults(), Faults::default());
    }
}
