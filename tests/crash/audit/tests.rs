//! The oracle is shown every way to break a promise, and some ways to keep them.

use super::*;
use crate::ledger::Asked;

const AUDITOR: &str = "auditor";

fn put(number: u64, outcome: Outcome<Accepted>) -> Entry {
    Entry::Put(Put { number, topic: "orders", asked: Asked::After(50), sent_at: 950, outcome })
}

fn accepted(number: u64) -> Entry {
    put(number, Outcome::Ok(Accepted { id: format!("id-{number}"), deadline: Some(1000) }))
}

fn delivery(number: u64, offset: u64, change: impl FnOnce(&mut Delivery)) -> Entry {
    let mut delivery = Delivery {
        group: AUDITOR.to_owned(),
        began: 0,
        received_at: 1002,
        number,
        id: format!("id-{number}"),
        place: Place { topic: "orders".to_owned(), queue: 0, offset },
        deliver_at: 1000,
        fired_at: Some(1000),
        attempt: 1,
        body: Bytes::AsSent,
    };
    change(&mut delivery);
    Entry::Delivery(delivery)
}

fn told(outcome: Cancelled) -> Entry {
    Entry::Cancel(Cancel { number: 1, outcome: Outcome::Ok(outcome) })
}

fn to_workers(began: usize, attempt: u32) -> Entry {
    delivery(1, 0, |delivery| {
        delivery.group = "workers".to_owned();
        delivery.began = began;
        delivery.attempt = attempt;
    })
}

fn acked() -> Entry {
    Entry::Ack(Ack { group: "workers".to_owned(), number: 1, outcome: Outcome::Ok(()) })
}

fn nacked(attempt: u32) -> Entry {
    let (group, outcome) = ("workers".to_owned(), Outcome::Ok(()));
    Entry::Nack(Nack { group, number: 1, attempt, earliest: 1002, outcome })
}

fn redriving() -> Entry {
    Entry::Redriving { group: "workers".to_owned() }
}

fn redriven(began: usize) -> Entry {
    Entry::Redriven { began, count: 1 }
}

/// One of a message group, to the group that gets them in order.
fn in_order(number: u64, offset: u64, began: usize) -> Entry {
    delivery(number, offset, |delivery| {
        delivery.group = crate::consumer::ORDERED.to_owned();
        delivery.began = began;
    })
}

fn faults(entries: &[Entry]) -> Vec<Fault> {
    let report = Audit::of(entries, AUDITOR).report(2000);
    report.violations.into_iter().map(|violation| violation.fault).collect()
}

#[test]
fn what_is_promised_is_no_fault() {
    let seen = || delivery(1, 0, |_| {});
    let unknown = || put(1, Outcome::Unknown);
    let refused = || put(1, Outcome::Refused("NOT_READY".to_owned()));
    for entries in [
        vec![accepted(1), seen()],
        vec![seen(), accepted(1)],
        vec![accepted(1), told(Cancelled::Cancelled)],
        vec![accepted(1), told(Cancelled::AlreadyDelivered), seen()],
        vec![unknown()],
        vec![unknown(), seen()],
        vec![refused()],
        vec![accepted(1), to_workers(1, 1), to_workers(2, 2), acked(), seen()],
        vec![accepted(1), to_workers(1, 1), nacked(1), to_workers(3, 2), seen()],
        // It died meanwhile, and was redriven.
        vec![accepted(1), to_workers(1, 3), nacked(3), redriving(), to_workers(3, 1), seen()],
        // The redrive was under way when it died.
        vec![
            accepted(1),
            redriving(),
            to_workers(1, 3),
            nacked(3),
            to_workers(4, 1),
            redriven(1),
            seen(),
        ],
        vec![
            accepted(2),
            accepted(16),
            delivery(2, 0, |_| {}),
            delivery(16, 1, |_| {}),
            in_order(2, 0, 4),
            in_order(2, 0, 5),
            in_order(16, 1, 6),
        ],
        // The receive was under way when the ack was told.
        vec![accepted(1), acked(), to_workers(1, 1), seen()],
    ] {
        assert_eq!(faults(&entries), [], "{entries:?}");
    }
}

#[test]
fn every_broken_promise_is_found() {
    let seen = || delivery(1, 0, |_| {});
    let changed = |change: fn(&mut Delivery)| vec![accepted(1), delivery(1, 0, change)];
    for (fault, entries) in [
        (Fault::Lost, vec![accepted(1)]),
        (Fault::Lost, vec![accepted(1), to_workers(1, 1)]),
        (Fault::Lost, vec![accepted(1), told(Cancelled::AlreadyDelivered)]),
        (Fault::AfterCancel, vec![accepted(1), told(Cancelled::Cancelled), seen()]),
        (Fault::Twice, vec![accepted(1), seen(), delivery(1, 1, |_| {})]),
        (Fault::Twice, vec![put(1, Outcome::Unknown), seen(), delivery(1, 1, |_| {})]),
        (Fault::Early, changed(|delivery| delivery.fired_at = Some(999))),
        (Fault::Early, changed(|delivery| delivery.received_at = 999)),
        (Fault::AfterAck, vec![accepted(1), acked(), to_workers(2, 1), seen()]),
        (Fault::NeverAccepted, vec![seen()]),
        (Fault::NeverAccepted, vec![put(1, Outcome::Refused(String::new())), seen()]),
        (Fault::Altered, changed(|delivery| delivery.body = Bytes::Others)),
        (Fault::Altered, changed(|delivery| delivery.id = "id-2".to_owned())),
        (Fault::Altered, changed(|delivery| delivery.deliver_at = 1001)),
        (Fault::Altered, changed(|delivery| delivery.place.topic = "mails".to_owned())),
        (Fault::Places, vec![accepted(1), seen(), accepted(2), delivery(2, 0, |_| {})]),
        (Fault::Places, vec![accepted(1), delivery(1, 1, |_| {})]),
        (Fault::Places, vec![accepted(1), seen(), seen()]),
        (Fault::Attempts, vec![accepted(1), to_workers(1, 2), to_workers(2, 1), seen()]),
        (Fault::Attempts, vec![accepted(1), to_workers(1, 4), seen()]),
        // It had attempts left, so it was not dead.
        (Fault::Attempts, vec![accepted(1), to_workers(1, 2), redriving(), to_workers(3, 1)]),
        // The redrive was over before it died.
        (
            Fault::Attempts,
            vec![accepted(1), redriving(), redriven(1), to_workers(3, 3), to_workers(4, 1), seen()],
        ),
        (Fault::AfterNack, vec![accepted(1), to_workers(1, 1), nacked(1), to_workers(3, 1)]),
        (
            Fault::AfterNack,
            vec![
                accepted(1),
                to_workers(1, 1),
                nacked(1),
                delivery(1, 0, |delivery| {
                    delivery.group = "workers".to_owned();
                    (delivery.began, delivery.attempt, delivery.received_at) = (3, 2, 1001);
                }),
            ],
        ),
        (Fault::Order, vec![accepted(2), accepted(16), in_order(16, 1, 2), in_order(2, 0, 3)]),
    ] {
        let found = faults(&entries);
        assert!(found.contains(&fault), "{fault:?} is not in {found:?}: {entries:?}");
    }
}
