//! Another moment for a message that waits: later, earlier, or now.
//!
//! A reschedule settles the cause that gave the message its moment and is the new one, in one record. To
//! fire now takes no new moment: it is a delivery like the timer's own, decided by the same referee.

use super::deadline::deadline;
use super::lookup::{Found, Live};
use super::put::check_index;
use super::{ChangeError, Decided, Settled, foregone, settle};
use crate::clock::Timestamp;
use crate::commitlog::{Outcome, Receipt};
use crate::message::Moment;
use crate::message::record::{Delivery, DeliveryReason, Fired, Reschedule};
use crate::store::{Store, Topic};

/// What was asked of a message came too late, or it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed<T> {
    Done(T),
    AlreadyDelivered,
    AlreadyCancelled,
}

/// When it is to be readable now.
pub type RescheduleAnswer = Changed<Timestamp>;
/// When it fired.
pub type FireAnswer = Changed<Timestamp>;

/// Gives the message that was found another moment. One that is not after now means now: it fires as soon
/// as the timer comes to it. What waited in a delay level waits in the wheel from then on.
///
/// # Errors
///
/// [`ChangeError`]; nothing was changed then.
pub fn reschedule(
    store: &Store,
    found: &Found,
    moment: Moment,
    now: Timestamp,
) -> Result<Decided<RescheduleAnswer>, ChangeError> {
    let deadline = deadline(moment, store.levels(), now);
    let deadline = deadline.map_err(|_| ChangeError::TooFarAhead)?.unwrap_or(now);
    change(store, found, |topic, live| {
        let reschedule = Reschedule {
            cause: live.cause,
            message: found.offset,
            was_due_at: live.deadline,
            deadline,
            tag: found.timer_tag(&live).0,
            at: now,
            message_length: found.length,
        };
        check_index(store)?;
        let record = reschedule.encode();
        let mut turn = store.log().turn_for_accepted(record.len())?;
        if topic.is_deleted() {
            return Err(ChangeError::Unknown);
        }
        let settled = settle(&mut turn, live.cause, Outcome::Superseded)?;
        if let Settled::Now = settled {
            let offset = turn.append(record);
            store.index().insert(store.keys().moved(found.offset), offset);
            topic.appended(offset);
        }
        Ok((settled, deadline, turn.receipt()))
    })
}

/// Fires the message that was found, whatever its moment.
///
/// # Errors
///
/// [`ChangeError`]; nothing was changed then.
pub fn fire_now(
    store: &Store,
    found: &Found,
    now: Timestamp,
) -> Result<Decided<FireAnswer>, ChangeError> {
    change(store, found, |topic, live| {
        let queue = topic.queue(found.message.queue).ok_or(ChangeError::Unknown)?;
        check_index(store)?;
        let mut turn = store.log().turn_for_accepted(Delivery::encoded_length(1))?;
        if topic.is_deleted() {
            return Err(ChangeError::Unknown);
        }
        let settled = settle(&mut turn, live.cause, Outcome::Delivered)?;
        if let Settled::Now = settled {
            let (cause, length) = (live.cause, live.length);
            let run = Delivery {
                fired_at: now,
                first_queue_offset: queue.take_offsets(1),
                topic_id: topic.id,
                queue: found.message.queue,
                reason: DeliveryReason::Asked,
                fired: vec![Fired { cause, length, tag_hash: found.message.tag_hash }],
            };
            let offset = turn.append(run.encode());
            store.index().insert(store.keys().asked(cause), offset);
            topic.appended(offset);
        }
        Ok((settled, now, turn.receipt()))
    })
}

/// Tries `attempt` on what gives the message its moment, again while somebody moves it in between.
fn change(
    store: &Store,
    found: &Found,
    attempt: impl Fn(&Topic, Live) -> Result<(Settled, Timestamp, Receipt), ChangeError>,
) -> Result<Decided<Changed<Timestamp>>, ChangeError> {
    let topic = found.topic(store).ok_or(ChangeError::Unknown)?;
    loop {
        let Some(live) = found.live(store)? else {
            let receipt = store.log().latest_receipt();
            return Ok(Decided { answer: Changed::AlreadyDelivered, receipt });
        };
        if let Some(outcome) = foregone(found, &live)? {
            let answer = match outcome {
                Outcome::Delivered => Changed::AlreadyDelivered,
                _ => Changed::AlreadyCancelled,
            };
            return Ok(Decided { answer, receipt: store.log().latest_receipt() });
        }
        let (settled, at, receipt) = attempt(&topic, live)?;
        let answer = match settled {
            Settled::Now => Changed::Done(at),
            Settled::Before(Outcome::Delivered) => Changed::AlreadyDelivered,
            Settled::Before(Outcome::Withdrawn | Outcome::Dropped) => Changed::AlreadyCancelled,
            Settled::Before(Outcome::Superseded) => continue,
        };
        return Ok(Decided { answer, receipt });
    }
}
