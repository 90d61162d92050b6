//! The story of an ordered group: fifty message groups, eight consumers, and whatever can go wrong.
//!
//! Consumers take, acknowledge, give back, forget and extend at random; the process is killed, the power
//! goes, the server rests. Whatever happens, of each message group
//!
//! - one message is out at a time,
//! - the next one is handed out only when all before it are acknowledged, durably, or dead,
//! - and so nobody is ever handed one that stands before one that was handed out.

mod lanes;
mod story;

use std::sync::Arc;
use std::time::Duration;

use horolog::clock::Clock;
use timerlog::planted::{Fault, plant};

use crate::model::Checked;
use story::{CONSUMERS, Happened, MESSAGE_GROUPS, Story};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn in_an_ordered_group_order_holds_whatever_becomes_of_consumers_and_server() {
    for seed in 0..6 {
        let happened =
            Story::new(seed).run().unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        println!("seed {seed}: {happened:?}");
        let Happened { handed_out, acked, given_back, dead, again, unknown_acks, lives } = happened;
        // A story in which something never happens proves nothing about it.
        assert!(handed_out > 300 && acked > 200 && given_back > 20 && again > 20, "seed {seed}");
        assert!(dead > 0 && unknown_acks > 0 && lives > 5, "seed {seed}");
    }
}

/// After a power cut in between, the next one would have been out before the one that comes again.
#[test]
fn a_message_group_released_before_its_ack_is_folded_is_noticed() {
    plant(Some(Fault::ReleasedBeforeFold));
    let found = (0..6).find_map(|seed| Story::new(seed).run().err());
    plant(None);
    println!("it is noticed: {}", found.expect("the fault goes unnoticed"));
}

/// Of two message groups the head is stuck: one is out and never acknowledged, one was given back for an
/// hour. All others are read to their ends meanwhile.
#[test]
fn a_message_group_that_is_stuck_stops_no_other() -> Checked {
    const EACH: usize = 30;
    const SILENT: usize = 0;
    const GIVEN_BACK: usize = 1;
    for seed in 0..3 {
        let mut story = Story::new(seed);
        for _ in 0..EACH {
            // Put in turns, so that each stands behind the stuck ones.
            (0..MESSAGE_GROUPS).for_each(|lane| story.put(lane));
        }
        story.settle();
        let began = story.clock.now().monotonic;
        let mut rounds = 0;
        loop {
            let mut any = 0;
            for consumer in 0..CONSUMERS {
                any += story.receive(consumer, 32, 2 * HOUR)?;
                for held in std::mem::take(&mut story.consumers[consumer]) {
                    match held.message {
                        (SILENT, _) => {}
                        (GIVEN_BACK, 0) if held.attempt == 1 => {
                            let (group, _) = story.there();
                            let consumers = Arc::clone(&story.bench().engine.consumers);
                            let (handles, now) = ([held.handle.clone()], story.clock.now());
                            let nacked = consumers.nack(&group, &handles, Some(HOUR), now);
                            nacked.expect("the log has room");
                            story.is_out_no_more(held.message);
                        }
                        _ => story.ack(&held),
                    }
                }
            }
            story.settle();
            rounds += 1;
            // In the midst of it the server goes: what is stuck stays so.
            if rounds == 5 {
                story.live_again();
                story.settle();
            } else if any == 0 {
                break;
            }
        }
        let acked = |story: &Story, lane: usize| story.lanes[lane].acked.len();
        for lane in 2..MESSAGE_GROUPS {
            assert_eq!(acked(&story, lane), EACH, "message group {lane} waits for others");
        }
        assert_eq!(story.clock.now().monotonic, began, "nobody has waited for time to pass");
        for lane in [SILENT, GIVEN_BACK] {
            assert_eq!((acked(&story, lane), story.lanes[lane].furthest), (0, 0));
        }
        story.clock.advance(3_599_999);
        story.settle();
        assert_eq!(story.receive(0, 32, HOUR)?, 0, "it was given back for an hour");
        // The lease of the silent one ends, too, and both go on where they were.
        story.clock.advance(3 * 3_600_000);
        story.drain()?;
        for lane in [SILENT, GIVEN_BACK] {
            assert_eq!(acked(&story, lane), story.lanes[lane].put);
        }
    }
    Ok(())
}
