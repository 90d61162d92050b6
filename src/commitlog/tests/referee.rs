//! The appender as referee: a cause is settled once, in log order, and every answer waits for what it was
//! decided on.

use timerlog::disk::sim::SimDisk;

use super::bench::{Bench, SMALL, at, message_of};
use super::*;
use crate::clock::Timestamp;
use crate::message::record::{Cancel, Delivery, DeliveryReason, Encoded, Fired, Record};
use timerlog::disk::sim::Random;

fn cancel(cause: Offset) -> Encoded {
    let deadline = Timestamp::from_millis(9);
    Cancel { cause, deadline, tag: 7, at: at(1).wall }.encode()
}

fn delivery(cause: Offset) -> Encoded {
    let fired = vec![Fired { cause, length: 90, tag_hash: 0 }];
    let (topic_id, queue, reason) = (1, 0, DeliveryReason::Deadline);
    Delivery { fired_at: at(1).wall, first_queue_offset: 0, topic_id, queue, reason, fired }
        .encode()
}

/// Appends a message and returns its offset.
fn cause(log: &CommitLog) -> Offset {
    log.turn(96).unwrap().append(message_of(96, 1))
}

/// Settles `cause` and appends `fact`, or says what came first; with the claim of that answer.
fn decide(
    log: &CommitLog,
    cause: Offset,
    outcome: Outcome,
    fact: Encoded,
) -> (Option<Outcome>, Receipt) {
    let mut turn = log.turn(fact.len()).unwrap();
    let before = match turn.settle(cause, outcome) {
        Ok(()) => {
            turn.append(fact);
            None
        }
        Err(SettleError::Before(before)) => Some(before),
        Err(SettleError::Disk(error)) => panic!("{error}"),
    };
    (before, turn.receipt())
}

#[test]
fn the_first_fact_settles_a_cause_and_the_second_is_told_which_it_was() {
    let outcomes = [Outcome::Delivered, Outcome::Withdrawn, Outcome::Superseded, Outcome::Dropped];
    for first in outcomes {
        for second in outcomes {
            let bench = Bench::sync(SMALL);
            let (log, _) = bench.open();
            let cause = cause(&log);
            assert_eq!(decide(&log, cause, first, cancel(cause)).0, None);
            let end = log.end();
            let (before, _) = decide(&log, cause, second, delivery(cause));
            assert_eq!(before, Some(first), "{second:?} after {first:?}");
            assert_eq!(log.end(), end, "what is refused is not appended");
            assert_eq!(log.settled().get(cause).unwrap(), Some(first));
        }
    }
}

#[test]
fn a_refusal_waits_for_the_fact_that_came_first() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    let cause = cause(&log);
    log.flush(at(0)).unwrap();
    let (_, won) = decide(&log, cause, Outcome::Withdrawn, cancel(cause));
    let (before, lost) = decide(&log, cause, Outcome::Delivered, delivery(cause));
    assert_eq!(before, Some(Outcome::Withdrawn));
    assert_eq!((won.outcome(), lost.outcome()), (None, None), "nothing is durable yet");
    log.flush(at(1)).unwrap();
    let durable = Some(Durability::Durable);
    assert_eq!((won.outcome(), lost.outcome()), (durable, durable));
    let (_, late) = decide(&log, cause, Outcome::Delivered, delivery(cause));
    assert_eq!(late.outcome(), durable, "it was decided on what is durable already");
}

#[test]
fn a_refusal_of_what_could_not_be_made_durable_fails_too() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    let cause = cause(&log);
    log.flush(at(0)).unwrap();
    let (_, won) = decide(&log, cause, Outcome::Withdrawn, cancel(cause));
    let (_, lost) = decide(&log, cause, Outcome::Delivered, delivery(cause));
    bench.disk.fail_next(timerlog::disk::Operation::Sync, 1, std::io::ErrorKind::Other);
    log.flush(at(1)).unwrap_err();
    let failed = Some(Durability::Failed);
    assert_eq!((won.outcome(), lost.outcome()), (failed, failed));
}

#[test]
fn a_refusal_waits_for_the_fact_also_when_its_group_was_closed_meanwhile() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    let cause = cause(&log);
    let half = usize::try_from(SMALL / 2).unwrap();
    log.turn(half).unwrap().append(message_of(half, 2));
    log.flush(at(0)).unwrap();
    let (_, won) = decide(&log, cause, Outcome::Withdrawn, cancel(cause));
    // So long a turn begins the next segment, whether it appends anything there or not.
    let mut turn = log.turn(half).unwrap();
    assert!(turn.settle(cause, Outcome::Delivered).is_err());
    let lost = turn.receipt();
    drop(turn);
    assert_eq!((won.outcome(), lost.outcome()), (None, None));
    log.flush(at(1)).unwrap();
    let durable = Some(Durability::Durable);
    assert_eq!((won.outcome(), lost.outcome()), (durable, durable));
}

#[test]
fn one_turn_settles_many_and_leaves_out_what_was_settled_before() {
    let bench = Bench::sync(SMALL);
    let (log, _) = bench.open();
    let causes: Vec<_> = (0..8).map(|_| cause(&log)).collect();
    for &cause in causes.iter().step_by(3) {
        decide(&log, cause, Outcome::Withdrawn, cancel(cause));
    }
    let mut turn = log.turn(Delivery::encoded_length(causes.len())).unwrap();
    let due: Vec<_> = causes
        .iter()
        .copied()
        .filter(|&cause| turn.settle(cause, Outcome::Delivered).is_ok())
        .collect();
    assert_eq!(due, [1, 2, 4, 5, 7].map(|index: usize| causes[index]));
    turn.append(delivery(due[0]));
    drop(turn);
    for (index, &cause) in causes.iter().enumerate() {
        let expected = if index % 3 == 0 { Outcome::Withdrawn } else { Outcome::Delivered };
        assert_eq!(log.settled().get(cause).unwrap(), Some(expected), "cause {index}");
    }
}

/// The outcome that a fact stands for.
fn outcome_of(record: &Record<'_>) -> Option<(Offset, Outcome)> {
    if let Ok(cancel) = Cancel::decode(record) {
        return Some((cancel.cause, Outcome::Withdrawn));
    }
    Delivery::decode(record).ok().map(|run| (run.fired[0].cause, Outcome::Delivered))
}

/// Reads the log and sets the bits of its facts, as a start without any derived file does.
fn restart(bench: &Bench) -> (CommitLog, Vec<(Offset, Outcome)>) {
    let settled = Settled::empty(SimDisk::new(2).root(), SMALL).unwrap();
    let mut facts = Vec::new();
    let mut fold = |record: Record<'_>| {
        if let Some((cause, outcome)) = outcome_of(&record) {
            settled.replay(cause, outcome)?;
            facts.push((cause, outcome));
        }
        Ok::<_, settled::SettledError>(())
    };
    let recovered =
        recover(bench.directory(), SMALL, bench::SECRETS, bench::BEGIN, Offset::ZERO, &mut fold)
            .unwrap();
    let incarnation = recovered.tail.incarnation + 1;
    (recovered.open(settled, bench.mode, incarnation, Offset::ZERO), facts)
}

/// Cancels and deliveries race for the same causes over crashes and restarts; whoever was told that it
/// won has won for good, and the log never has two facts of one cause.
#[test]
fn every_race_has_one_winner_over_any_crash() {
    for seed in 0..30 {
        let bench = Bench::sync(SMALL);
        let mut random = Random::new(seed);
        let mut causes = Vec::new();
        let mut answers: Vec<(Offset, Outcome)> = Vec::new();
        for life in 0..4 {
            let context = format!("seed {seed}, life {life}");
            let (log, facts) = restart(&bench);
            let mut settled: Vec<_> = facts.iter().map(|(cause, _)| *cause).collect();
            settled.sort_unstable();
            settled.dedup();
            assert_eq!(settled.len(), facts.len(), "{context}: a cause has two facts");
            for answer in &answers {
                assert!(facts.contains(answer), "{context}: {answer:?} was told and is not so");
            }
            let mut waiting = Vec::new();
            for step in 0..40 {
                if random.once_in(3) || causes.is_empty() {
                    causes.push(cause(&log));
                }
                let which = usize::try_from(random.below(causes.len() as u64)).unwrap();
                let cause = causes[which];
                let (outcome, fact) = if random.once_in(2) {
                    (Outcome::Withdrawn, cancel(cause))
                } else {
                    (Outcome::Delivered, delivery(cause))
                };
                let (before, receipt) = decide(&log, cause, outcome, fact);
                waiting.push(((cause, before.unwrap_or(outcome)), receipt));
                if random.once_in(6) {
                    log.flush(at(step)).unwrap();
                }
            }
            let durable = waiting
                .into_iter()
                .filter(|(_, receipt)| receipt.outcome() == Some(Durability::Durable));
            answers.extend(durable.map(|(answer, _)| answer));
            causes.retain(|cause| *cause < log.durable());
            bench.disk.crash(&mut random);
        }
    }
}

#[test]
fn a_cause_that_cannot_be_looked_up_is_not_settled() {
    let bench = Bench::sync(SMALL);
    let disk = SimDisk::new(3);
    let settled = Settled::empty(disk.root(), SMALL).unwrap();
    let (recovered, _) = bench.recover().unwrap();
    let log = recovered.open(settled, FlushMode::Sync, 1, Offset::ZERO);
    let cause = cause(&log);
    disk.fail_next(timerlog::disk::Operation::Open, 1, std::io::ErrorKind::Other);
    let mut turn = log.turn(64).unwrap();
    let refused = turn.settle(cause, Outcome::Withdrawn).unwrap_err();
    assert!(matches!(refused, SettleError::Disk(_)), "{refused}");
    turn.settle(cause, Outcome::Withdrawn).unwrap();
    turn.append(cancel(cause));
}
