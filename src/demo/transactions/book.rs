//! What the second act was told and what it got, order by order, and what that amounts to.

use super::super::progress::Account;
use super::super::report::thousands;
use super::plan::{Ending, Shop};
use crate::clock::Timestamp;
use crate::sync::Mutex;

/// A message in a consumer's hands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) deliver_at: Timestamp,
    pub(super) fired_at: Timestamp,
    pub(super) received_at: Timestamp,
    /// Queue and offset: a message that fired twice is in two places.
    pub(super) place: (u64, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// It was begun, and its reminder cannot be due before this.
    due: Option<Timestamp>,
    is_silent: bool,
    is_checked: bool,
    /// Its commit is on the way, or was answered.
    may_be_read: bool,
    ended: Option<Ending>,
    place: Option<(u64, u64)>,
    is_lost_with_consumer: bool,
    came_again: bool,
    is_acked: bool,
    is_early: bool,
    is_twice: bool,
}

impl Entry {
    fn is_settled(&self) -> bool {
        match self.ended {
            None => false,
            Some(Ending::RolledBack) => true,
            Some(Ending::Committed) => self.is_acked,
        }
    }
}

#[derive(Debug)]
struct Pages {
    entries: Vec<Entry>,
    last_news: Timestamp,
}

/// The counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) begun: usize,
    pub(super) committed: usize,
    pub(super) rolled_back: usize,
    /// By the shop.
    pub(super) never_answered: usize,
    pub(super) checked_back: usize,
    pub(super) fired: usize,
    pub(super) came_again: usize,
    pub(super) settled: usize,
}

/// What may not happen, counted when all is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    pub(super) early: usize,
    pub(super) lost: usize,
    pub(super) twice: usize,
    pub(super) after_rollback: usize,
}

#[derive(Debug)]
pub(super) struct Book {
    pages: Mutex<Pages>,
}

impl Book {
    pub(super) fn new(orders: usize) -> Self {
        let entries = vec![Entry::default(); orders];
        Self { pages: Mutex::new(Pages { entries, last_news: Timestamp::from_millis(0) }) }
    }

    pub(super) fn len(&self) -> usize {
        self.pages.lock().entries.len()
    }

    /// An order is about to be begun whose reminder is not due before `due`.
    pub(super) fn begins(&self, order: usize, due: Timestamp, shop: Shop) {
        self.note(order, due, |entry| {
            entry.due = Some(due);
            entry.is_silent = shop == Shop::FallsSilent;
        });
    }

    pub(super) fn checked_back(&self, order: usize, now: Timestamp) {
        self.note(order, now, |entry| entry.is_checked = true);
    }

    /// The server is about to be told; from here on a commit may take effect.
    pub(super) fn ends(&self, order: usize, ending: Ending, now: Timestamp) {
        self.note(order, now, |entry| entry.may_be_read |= ending == Ending::Committed);
    }

    /// The server has answered that it ended so.
    pub(super) fn ended(&self, order: usize, ending: Ending, now: Timestamp) {
        self.note(order, now, |entry| entry.ended = Some(ending));
    }

    pub(super) fn delivered(&self, order: usize, delivery: Delivery) {
        let Delivery { deliver_at, fired_at, received_at, place } = delivery;
        self.note(order, received_at, |entry| {
            let is_due = entry.due.is_some_and(|due| due.max(deliver_at) <= received_at);
            entry.is_early |= !entry.may_be_read || !is_due || fired_at < deliver_at;
            entry.is_twice |= entry.is_acked || entry.place.is_some_and(|before| before != place);
            entry.came_again |= entry.is_lost_with_consumer;
            entry.place = Some(place);
        });
    }

    /// A consumer crashed that had the order's message.
    pub(super) fn lost_with_consumer(&self, order: usize, now: Timestamp) {
        self.note(order, now, |entry| entry.is_lost_with_consumer = true);
    }

    /// The server has answered that the group will not get it again.
    pub(super) fn acked(&self, order: usize, now: Timestamp) {
        self.note(order, now, |entry| {
            entry.is_twice |= entry.is_acked;
            entry.is_acked = true;
        });
    }

    fn note(&self, order: usize, now: Timestamp, change: impl FnOnce(&mut Entry)) {
        let mut pages = self.pages.lock();
        pages.last_news = pages.last_news.max(now);
        change(&mut pages.entries[order]);
    }

    /// Every order was rolled back, or committed and acknowledged.
    pub(super) fn is_settled(&self) -> bool {
        self.pages.lock().entries.iter().all(Entry::is_settled)
    }

    /// When something last happened; a moment that was asked for counts, too.
    pub(super) fn last_news(&self) -> Timestamp {
        self.pages.lock().last_news
    }

    pub(super) fn tally(&self) -> Tally {
        let pages = self.pages.lock();
        let count = |is: fn(&Entry) -> bool| pages.entries.iter().filter(|e| is(e)).count();
        Tally {
            begun: count(|entry| entry.due.is_some()),
            committed: count(|entry| entry.ended == Some(Ending::Committed)),
            rolled_back: count(|entry| entry.ended == Some(Ending::RolledBack)),
            never_answered: count(|entry| entry.is_silent),
            checked_back: count(|entry| entry.is_checked),
            fired: count(|entry| entry.place.is_some()),
            came_again: count(|entry| entry.came_again),
            settled: count(Entry::is_settled),
        }
    }

    pub(super) fn faults(&self) -> Faults {
        let pages = self.pages.lock();
        let count = |is: fn(&Entry) -> bool| pages.entries.iter().filter(|e| is(e)).count();
        Faults {
            early: count(|entry| entry.is_early),
            lost: count(|entry| entry.due.is_some() && !entry.is_settled()),
            twice: count(|entry| entry.is_twice),
            after_rollback: count(|entry| {
                entry.ended == Some(Ending::RolledBack) && entry.place.is_some()
            }),
        }
    }
}

impl Account for Book {
    fn settled(&self) -> usize {
        self.tally().settled
    }

    fn line(&self) -> String {
        let Tally { begun, committed, rolled_back, fired, .. } = self.tally();
        let counts = [begun, committed, rolled_back, fired].map(thousands);
        let [begun, committed, rolled_back, fired] = counts;
        format!("begun {begun}, committed {committed}, rolled back {rolled_back}, fired {fired}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn delivery(received_at: u64, offset: u64) -> Delivery {
        Delivery {
            deliver_at: at(100),
            fired_at: at(received_at),
            received_at: at(received_at),
            place: (0, offset),
        }
    }

    fn committed(orders: usize) -> Book {
        let book = Book::new(orders);
        for order in 0..orders {
            book.begins(order, at(100), Shop::Answers);
            book.ends(order, Ending::Committed, at(50));
            book.ended(order, Ending::Committed, at(51));
        }
        book
    }

    #[test]
    fn an_order_that_went_well_is_no_fault() {
        let book = committed(2);
        book.delivered(0, delivery(100, 0));
        assert!(!book.is_settled());
        book.acked(0, at(101));
        // A consumer crashes, and the message comes again, from the place where it was.
        book.delivered(1, delivery(100, 1));
        book.lost_with_consumer(1, at(101));
        assert_eq!(book.faults(), Faults { lost: 1, ..Faults::default() });
        book.delivered(1, delivery(3_100, 1));
        book.acked(1, at(3_101));
        assert!(book.is_settled());
        assert_eq!(book.faults(), Faults::default());
        let tally = book.tally();
        assert_eq!((tally.begun, tally.committed, tally.fired, tally.came_again), (2, 2, 2, 1));
        assert_eq!((tally.settled, book.last_news()), (2, at(3_101)));
    }

    #[test]
    fn one_that_fell_silent_is_settled_by_the_answer_to_its_check_back() {
        let book = Book::new(1);
        book.begins(0, at(100), Shop::FallsSilent);
        book.checked_back(0, at(1_000));
        book.ends(0, Ending::RolledBack, at(1_001));
        assert!(!book.is_settled());
        book.ended(0, Ending::RolledBack, at(1_002));
        assert!(book.is_settled());
        let tally = book.tally();
        assert_eq!((tally.never_answered, tally.checked_back, tally.rolled_back), (1, 1, 1));
        assert_eq!(book.faults(), Faults::default());
    }

    #[test]
    fn every_way_to_break_a_promise_is_counted() {
        let early = |delivery| {
            let book = committed(1);
            book.delivered(0, delivery);
            book.faults().early
        };
        assert_eq!(early(delivery(100, 0)), 0);
        assert_eq!(early(Delivery { fired_at: at(99), ..delivery(100, 0) }), 1);
        assert_eq!(
            early(Delivery { deliver_at: at(98), ..delivery(99, 0) }),
            1,
            "before it is due"
        );
        let book = Book::new(2);
        book.begins(0, at(100), Shop::Answers);
        book.delivered(0, delivery(100, 0));
        book.delivered(1, delivery(100, 0));
        assert_eq!(book.faults().early, 2, "one is not committed, one not begun");

        let book = Book::new(1);
        book.begins(0, at(100), Shop::Answers);
        book.ends(0, Ending::RolledBack, at(50));
        book.ended(0, Ending::RolledBack, at(51));
        book.delivered(0, delivery(100, 0));
        assert_eq!(book.faults(), Faults { early: 1, after_rollback: 1, ..Faults::default() });

        let twice = |second: &dyn Fn(&Book)| {
            let book = committed(1);
            book.delivered(0, delivery(100, 0));
            second(&book);
            book.faults().twice
        };
        assert_eq!(twice(&|book| book.delivered(0, delivery(101, 0))), 0, "not acknowledged yet");
        assert_eq!(twice(&|book| book.delivered(0, delivery(101, 1))), 1, "fired twice");
        let after_ack = |book: &Book| {
            book.acked(0, at(101));
            book.delivered(0, delivery(102, 0));
        };
        assert_eq!(twice(&after_ack), 1);
    }
}
