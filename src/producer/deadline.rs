//! A moment as it was asked for, and the deadline that it means now.

use super::put::Refusal;
use crate::clock::Timestamp;
use crate::message::{MAX_DELAY_MS, Moment};

/// The moment as a deadline; `None` is now.
pub(super) fn deadline(moment: Moment, now: Timestamp) -> Result<Option<Timestamp>, Refusal> {
    let deadline = match moment {
        Moment::Now | Moment::After(0) => return Ok(None),
        Moment::At(deadline) => deadline,
        Moment::After(delay) => now.checked_add(delay).ok_or(Refusal::TooFarAhead)?,
    };
    match deadline.since(now) {
        0 => Ok(None),
        ahead if ahead > MAX_DELAY_MS => Err(Refusal::TooFarAhead),
        _ => Ok(Some(deadline)),
    }
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
        let at = |millis| deadline(Moment::At(Timestamp::from_millis(millis)), NOW);
        assert_eq!(deadline(Moment::Now, NOW), Ok(None));
        assert_eq!(at(0), Ok(None));
        assert_eq!(at(NOW.as_millis()), Ok(None));
        assert_eq!(at(NOW.as_millis() + 1), Ok(after(1)));
        assert_eq!(at(NOW.as_millis() + MAX_DELAY_MS), Ok(after(MAX_DELAY_MS)));
        assert_eq!(at(NOW.as_millis() + MAX_DELAY_MS + 1), Err(Refusal::TooFarAhead));
        assert_eq!(at(u64::MAX), Err(Refusal::TooFarAhead));
        assert_eq!(deadline(Moment::After(0), NOW), Ok(None));
        assert_eq!(deadline(Moment::After(50), NOW), Ok(after(50)));
        assert_eq!(deadline(Moment::After(u64::MAX), NOW), Err(Refusal::TooFarAhead));
    }
}
