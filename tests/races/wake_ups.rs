//! Wake-ups: one that comes between a look and the wait that follows is not lost.
//!
//! A long poll is driven as [`Service::receive`](horolog::service::Service::receive) drives it: join, ask whether there
//! is something, be admitted or not, look, rest, wait. The look itself is a counter here, from which callers take.

use std::sync::Arc;
use std::time::Duration;

use horolog::consumer::long_poll::{Admission, LongPolls};
use horolog::stage::{Signal, Watermark};
use horolog::store::ArrivalListener;
use horolog::sync::{AtomicU64, Ordering};
use shuttle::future::block_on;
use shuttle::thread;
use timerlog::planted::Fault;

use crate::explore::{SMALL, holds, notices};

const GROUP: u32 = 1;
const TOPIC: u32 = 1;
/// No wait of these tests ends because time has passed.
const EVER: Duration = Duration::from_secs(1);

/// Work is put where a stage finds it, and its signal raised; the stage looks, and waits when there is none.
fn a_stage_and_two_that_give_it_work() {
    let signal = Signal::default();
    let work = Arc::new(AtomicU64::new(0));
    let giving = [(); 2].map(|()| {
        let (signal, work) = (signal.clone(), Arc::clone(&work));
        thread::spawn(move || {
            work.fetch_add(1, Ordering::AcqRel);
            signal.raise();
        })
    });
    let mut done = 0;
    while done < 2 {
        match work.swap(0, Ordering::AcqRel) {
            0 => signal.wait(EVER),
            found => done += found,
        }
    }
    giving.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

/// Two wait for different marks, and a third raises them.
fn two_that_wait_for_a_mark() {
    let mark = Arc::new(Watermark::new(0));
    let waiting = [1, 3].map(|target| {
        let mark = Arc::clone(&mark);
        thread::spawn(move || {
            assert!(mark.wait_for(target, EVER));
            assert!(mark.get() >= target, "it ended before its mark");
        })
    });
    for to in [1, 2, 3] {
        mark.raise(to);
    }
    waiting.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

/// One call of a consumer that waits for as long as it takes: `true` when it has got one of what there is.
fn receive(polls: &Arc<LongPolls>, there: &AtomicU64) -> bool {
    let mut poll = polls.join(GROUP, TOPIC);
    let mut may_look = match poll.admission(there.load(Ordering::Acquire) > 0) {
        Admission::Look => true,
        Admission::Nothing => false,
        Admission::Held => {
            block_on(poll.woken());
            true
        }
    };
    loop {
        if may_look {
            poll.looks();
            if there.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1)).is_ok()
            {
                poll.is_served();
                return true;
            }
            poll.rests();
        }
        if polls.is_draining() {
            return false;
        }
        block_on(poll.woken());
        may_look = true;
    }
}

fn consumer(polls: &Arc<LongPolls>, there: &Arc<AtomicU64>) -> thread::JoinHandle<bool> {
    let (polls, there) = (Arc::clone(polls), Arc::clone(there));
    thread::spawn(move || receive(&polls, &there))
}

/// As many messages come as there are consumers, each announced once: each consumer gets one.
fn consumers_and_messages() {
    let (polls, there) = (Arc::new(LongPolls::default()), Arc::new(AtomicU64::new(0)));
    let consumers = [(); 3].map(|()| consumer(&polls, &there));
    for _ in &consumers {
        there.fetch_add(1, Ordering::AcqRel);
        polls.arrived(TOPIC, 1);
    }
    for consumer in consumers {
        assert!(consumer.join().expect("no panic"), "nobody drains");
    }
    assert_eq!(there.load(Ordering::Acquire), 0);
    assert_eq!(polls.waiting(), 0);
}

/// More consumers than messages, and then the server stops: all end, and no message is left.
fn consumers_and_the_end() {
    let (polls, there) = (Arc::new(LongPolls::default()), Arc::new(AtomicU64::new(0)));
    let consumers = [(); 3].map(|()| consumer(&polls, &there));
    there.fetch_add(1, Ordering::AcqRel);
    polls.arrived(TOPIC, 1);
    polls.drain();
    let served = consumers.into_iter().map(|c| c.join().expect("no panic"));
    let served = served.filter(|served| *served).count() as u64;
    assert_eq!(served + there.load(Ordering::Acquire), 1);
    assert_eq!(polls.waiting(), 0);
}

#[test]
fn a_signal_raised_between_look_and_wait_is_not_lost() {
    holds(SMALL, a_stage_and_two_that_give_it_work);
}

#[test]
fn a_signal_that_is_not_kept_is_noticed() {
    notices(Fault::SignalNotKept, "deadlock", SMALL, a_stage_and_two_that_give_it_work);
}

#[test]
fn a_mark_raised_between_look_and_wait_is_seen() {
    holds(SMALL, two_that_wait_for_a_mark);
}

#[test]
fn a_wait_for_a_mark_that_does_not_look_again_is_noticed() {
    notices(Fault::LookThenWait, "deadlock", SMALL, two_that_wait_for_a_mark);
}

#[test]
fn a_message_that_comes_while_a_consumer_joins_or_looks_wakes_it() {
    holds(SMALL, consumers_and_messages);
}

#[test]
fn a_look_that_is_not_repeated_is_noticed() {
    notices(Fault::LookNotRepeated, "deadlock", SMALL, consumers_and_messages);
}

#[test]
fn a_server_that_stops_wakes_every_consumer() {
    holds(SMALL, consumers_and_the_end);
}
