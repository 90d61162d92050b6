//! Faults planted on purpose: the simulation must notice each.

use timerlog::planted::{Fault, plant};

use crate::OPERATIONS;
use crate::smaller;
use crate::world::World;

/// The first seed, of four hundred, whose run notices the fault.
fn noticed(fault: Fault) -> Option<(u64, String)> {
    plant(Some(fault));
    let found = (0..400).find_map(|seed| {
        let run = std::panic::catch_unwind(|| World::new(seed).run(OPERATIONS));
        match run {
            Ok(Ok(_)) => None,
            Ok(Err(violation)) => Some((seed, violation)),
            Err(_) => Some((seed, "an assertion of the code itself".to_owned())),
        }
    });
    plant(None);
    found
}

macro_rules! planted {
    ($($name:ident: $fault:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let found = noticed($fault);
                let (seed, violation) = found.expect("the fault goes unnoticed");
                println!("{:?} is noticed by seed {seed}: {violation}", $fault);
            }
        )*
    };
}

planted! {
    firing_without_asking_the_settled_bits_is_noticed: Fault::NoSettledCheck;
    a_step_back_that_is_not_clamped_is_noticed: Fault::UnclampedStepBack;
    pages_written_before_the_flush_are_noticed: Fault::PagesBeforeFlush;
    a_read_time_that_leaves_something_behind_is_noticed: Fault::AdvanceWithoutJoin;
    firing_early_is_noticed: Fault::Early;
    an_answer_before_the_flush_is_noticed: Fault::AnswerBeforeFlush;
    acks_that_are_forgotten_are_noticed: Fault::ForgetAcks;
    a_moved_message_that_still_waits_for_the_moment_it_had_is_noticed: Fault::MoveWithoutSettling;
    a_replaced_timer_that_still_waits_is_noticed: Fault::ReplaceWithoutSettling;
    a_request_that_is_taken_twice_is_noticed: Fault::ForgetRequests;
    an_index_that_lacks_what_came_since_the_checkpoint_is_noticed: Fault::ForgetIndexEntries;
    a_list_of_what_is_settled_is_noticed: Fault::ListSettled;
    a_list_that_passes_over_what_was_refiled_is_noticed: Fault::PassOverRefiled;
    a_start_that_is_not_recorded_is_noticed: Fault::StartNotRecorded;
    a_fold_that_lags_behind_a_reset_is_noticed: Fault::FoldLagsBehindReset;
    handles_that_outlive_a_reset_are_noticed: Fault::NoFence;
    a_hash_taken_for_the_tag_is_noticed: Fault::HashIsTag;
    what_is_left_out_and_not_recorded_is_noticed: Fault::ExcludedNotRecorded;
    levels_said_to_be_released_further_than_they_are_are_noticed: Fault::LevelReleasedAhead;
    what_is_released_along_with_a_head_that_is_due_is_noticed: Fault::LevelBehindHead;
    a_release_without_asking_the_settled_bits_is_noticed: Fault::LevelNotAsked;
    a_retry_that_counts_from_one_is_noticed: Fault::RetryForgetsAttempts;
    an_ack_of_what_went_on_is_noticed: Fault::ReturnedIsAcked;
    a_decision_made_twice_is_noticed: Fault::DecideTwice;
    a_check_that_leaves_no_record_is_noticed: Fault::CheckNotRecorded;
    message_groups_that_nobody_looks_at_are_noticed: Fault::NoMessageGroups;
    a_reset_that_leaves_the_retries_of_what_it_brings_back_is_noticed: Fault::ResetLeavesRetries;
}

/// Of a thousand operations a few are left, and they fail as the thousand did.
#[test]
fn a_run_that_fails_is_made_smaller() {
    let (seed, violation) = noticed(Fault::ForgetAcks).expect("the fault is noticed");
    plant(Some(Fault::ForgetAcks));
    let (only, smaller) = smaller::smallest(seed, OPERATIONS, violation);
    let again = smaller::run_only(seed, OPERATIONS, Some(&only)).expect_err("it fails again");
    plant(None);
    println!("{}", smaller::told(seed, &only, &smaller));
    assert_eq!(again, smaller);
    assert!(only.len() <= 40, "{} operations are left", only.len());
}
