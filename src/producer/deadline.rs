//! A moment as it was asked for, and the deadline that it means now.

use super::put::Refusal;
use crate::clock::Timestamp;
use crate::message::record::Placement;
use crate::message::{MAX_DELAY_MS, Moment};
use crate::store::{Level, Levels};

/// The moment as a deadline; `None` is now.
pub(super) fn deadline(
    moment: Moment,
    levels: &Levels,
    now: Timestamp,
) -> Result<Option<Timestamp>, Refusal> {
    let after = |delay| now.checked_add(delay).ok_or(Refusal::TooFarAhead);
    let deadline = match moment {
        Moment::Now | Moment::After(0) => return Ok(None),
        Moment::At(deadline) => deadline,
        Moment::After(delay) => after(delay)?,
        Moment::Level(level) => match levels.of(level) {
            Some(level) => after(level.delay_ms)?,
            None => return Ok(None),
        },
    };
    match deadline.since(now) {
        0 => Ok(None),
        ahead if ahead > MAX_DELAY_MS => Err(Refusal::TooFarAhead),
        _ => Ok(Some(deadline)),
    }
}

/// Where a message put with `moment` belongs. The place in a queue is given inside the turn.
pub(super) fn placement(
    moment: Moment,
    levels: &Levels,
    now: Timestamp,
) -> Result<Placement, Refusal> {
    let level = match moment {
        Moment::Level(level) => levels.of(level),
        Moment::Now | Moment::At(_) | Moment::After(_) => None,
    };
    Ok(match (deadline(moment, levels, now)?, level) {
        (None, _) => Placement::Ready { queue_offset: 0 },
        (Some(deadline), None) => Placement::Timed { deadline },
        (Some(deadline), Some(Level { queue, .. })) => Placement::Level { deadline, queue },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    fn after(millis: u64) -> Option<Timestamp> {
        NOW.checked_add(millis)
    }

    #[test]
    fn a_moment_not_after_now_is_now_and_one_too_far_is_refused() {
        let deadline = |moment| deadline(moment, &Levels::default(), NOW);
        let at = |millis| deadline(Moment::At(Timestamp::from_millis(millis)));
        assert_eq!(deadline(Moment::Now), Ok(None));
        assert_eq!(at(0), Ok(None));
        assert_eq!(at(NOW.as_millis()), Ok(None));
        assert_eq!(at(NOW.as_millis() + 1), Ok(after(1)));
        assert_eq!(at(NOW.as_millis() + MAX_DELAY_MS), Ok(after(MAX_DELAY_MS)));
        assert_eq!(at(NOW.as_millis() + MAX_DELAY_MS + 1), Err(Refusal::TooFarAhead));
        assert_eq!(at(u64::MAX), Err(Refusal::TooFarAhead));
        assert_eq!(deadline(Moment::After(0)), Ok(None));
        assert_eq!(deadline(Moment::After(50)), Ok(after(50)));
        assert_eq!(deadline(Moment::After(u64::MAX)), Err(Refusal::TooFarAhead));
    }
}
