//! Rows of callers, asked by hand: no runtime, and nobody waits.

use std::pin::pin;
use std::task::{Context, Poll as Asked, Waker};

use super::*;

/// Asks once, without a runtime: no test here waits.
fn is_awake(poll: &mut Poll) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(poll.woken()).poll(&mut context) == Asked::Ready(())
}

/// One that has looked, found nothing, and waits.
fn waiter(polls: &Arc<LongPolls>) -> Poll {
    let mut poll = polls.join(1, 1);
    if poll.admission(false) == Admission::Look {
        poll.looks();
        poll.rests();
    }
    poll
}

fn awake(row: &mut [Poll]) -> Vec<usize> {
    (0..row.len()).filter(|&index| is_awake(&mut row[index])).collect()
}

#[test]
fn as_many_are_woken_as_messages_came_and_the_oldest_first() {
    let polls = Arc::new(LongPolls::default());
    let mut row: Vec<_> = (0..5).map(|_| waiter(&polls)).collect();
    assert_eq!(awake(&mut row), [0; 0]);
    polls.arrived(1, 2);
    assert_eq!(awake(&mut row), [0, 1]);
    polls.arrived(1, 1);
    assert_eq!(awake(&mut row), [0, 1, 2]);
    polls.arrived(2, 9);
    polls.wake(2, 1, 9);
    assert_eq!(awake(&mut row), [0, 1, 2]);
}

#[test]
fn who_comes_back_empty_handed_keeps_its_place() {
    let polls = Arc::new(LongPolls::default());
    let mut row: Vec<_> = (0..3).map(|_| waiter(&polls)).collect();
    for _ in 0..10 {
        polls.arrived(1, 1);
        assert_eq!(awake(&mut row), [0]);
        row[0].looks();
        row[0].rests();
    }
}

#[test]
fn a_message_that_comes_while_its_waiter_looks_makes_it_look_again() {
    let polls = Arc::new(LongPolls::default());
    let mut row: Vec<_> = (0..2).map(|_| waiter(&polls)).collect();
    polls.arrived(1, 1);
    row[0].looks();
    polls.arrived(1, 1);
    assert_eq!(awake(&mut row), [0; 0]);
    row[0].rests();
    assert_eq!(awake(&mut row), [0]);
}

#[test]
fn a_wake_up_of_one_who_went_away_is_passed_on() {
    let polls = Arc::new(LongPolls::default());
    let mut row: Vec<_> = (0..4).map(|_| waiter(&polls)).collect();
    polls.arrived(1, 1);
    drop(row.remove(0));
    assert_eq!(awake(&mut row), [0]);
    row[0].looks();
    drop(row.remove(0));
    assert_eq!(awake(&mut row), [0]);
    row[0].looks();
    row[0].is_served();
    drop(row.remove(0));
    assert_eq!(awake(&mut row), [0; 0]);
}

/// One that takes all there is and comes again at once, and one that asks for one message.
#[test]
fn who_comes_again_and_again_overtakes_nobody() {
    let polls = Arc::new(LongPolls::default());
    let mut patient = waiter(&polls);
    for _ in 0..100 {
        polls.arrived(1, 3);
        let mut greedy = polls.join(1, 1);
        assert_eq!(greedy.admission(true), Admission::Held);
        assert!(!is_awake(&mut greedy) && is_awake(&mut patient));
        // Somebody was faster; it is still the first.
        patient.looks();
        patient.rests();
        assert!(is_awake(&mut greedy), "it is let in when the one before has looked");
        greedy.looks();
        greedy.is_served();
    }
}

#[test]
fn what_came_before_it_was_announced_is_left_to_those_who_wait() {
    let polls = Arc::new(LongPolls::default());
    let mut patient = waiter(&polls);
    let mut greedy = polls.join(1, 1);
    assert_eq!(greedy.admission(true), Admission::Held);
    assert!(is_awake(&mut patient) && !is_awake(&mut greedy));
    let mut late = polls.join(1, 1);
    assert_eq!(late.admission(false), Admission::Held);
    patient.looks();
    patient.is_served();
    drop(patient);
    assert!(is_awake(&mut greedy) && is_awake(&mut late));
}

#[test]
fn a_thousand_who_wait_do_not_look_and_one_message_wakes_one() {
    let polls = Arc::new(LongPolls::default());
    let mut row: Vec<_> = (0..1000).map(|_| waiter(&polls)).collect();
    // The first has looked; those behind it know by that that there is nothing.
    assert_eq!((polls.waiting(), polls.looks()), (1000, 1));
    polls.arrived(1, 1);
    assert_eq!(awake(&mut row), [0]);
    // The end of a wait costs nobody else a look.
    for _ in 0..500 {
        drop(row.pop());
    }
    assert_eq!(awake(&mut row), [0]);
    assert_eq!((polls.waiting(), polls.looks()), (500, 1));
}

#[test]
fn all_are_woken_when_the_server_stops() {
    let polls = Arc::new(LongPolls::default());
    let mut row: Vec<_> = (0..3).map(|_| waiter(&polls)).collect();
    polls.drain();
    assert_eq!(awake(&mut row), [0, 1, 2]);
    assert_eq!(awake(&mut [waiter(&polls)]), [0]);
    drop(row);
    assert!(polls.rows.lock().is_empty());
}
