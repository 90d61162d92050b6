//! Which segments may go.

use crate::clock::Timestamp;
use crate::message::offset::Offset;
use crate::store::Kept;

/// Of a segment in which at most one message in so many waits, those are carried on at once.
const FEW: u64 = 4;
/// Segments that go at a time.
const SEGMENTS_MAX: usize = 16;
/// Segments that the log may have beyond twice what is needed.
const SPARE_SEGMENTS: u64 = 2;

/// What is to be done about the begin of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing may go now.
    Nothing,
    /// What waits before this place is to be carried on, and then what is before it can go.
    LetGo(Offset),
}

/// Decides by the counts of dispatch.
pub fn plan(kept: &Kept, segment_size: u64, now: Timestamp) -> Plan {
    if now < kept.hold_until || now < kept.latest {
        return Plan::Nothing;
    }
    let idle = is_mostly_idle(kept, segment_size, now);
    for (at, segment) in &kept.segments {
        // A segment of which nothing is counted has nothing to keep, and is not among them.
        if segment.free_after >= now {
            return to(kept, *at);
        }
        let few = segment.waiting * FEW <= segment.messages;
        if segment.waiting > 0 && !few && !idle {
            return to(kept, *at);
        }
    }
    to(kept, kept.end)
}

/// The last place up to `limit` where the log may begin, and not too far.
fn to(kept: &Kept, limit: Offset) -> Plan {
    let before = kept.boundaries.iter().filter(|&&at| at > kept.begin && at <= limit);
    before.take(SEGMENTS_MAX).last().map_or(Plan::Nothing, |&at| Plan::LetGo(at))
}

/// Whether more than half of the log is of use to nobody.
fn is_mostly_idle(kept: &Kept, segment_size: u64, now: Timestamp) -> bool {
    let needed = kept.segments.iter().map(|(_, segment)| {
        if segment.free_after >= now {
            return segment_size;
        }
        let all = segment.messages.max(segment.waiting).max(1);
        let share = u128::from(segment_size) * u128::from(segment.waiting) / u128::from(all);
        u64::try_from(share).unwrap_or(segment_size)
    });
    let needed: u64 = needed.sum();
    let there = kept.end.get() - kept.begin.get();
    there > 2 * needed + SPARE_SEGMENTS * segment_size
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SegmentKeep;

    const SIZE: u64 = 4096;

    fn at(segment: u64) -> Offset {
        Offset::new(segment * SIZE)
    }

    /// Segments from the first on, each: free after, messages, waiting.
    fn kept(segments: &[(u64, u64, u64)]) -> Kept {
        let segments = (0..).zip(segments).map(|(number, &(free, messages, waiting))| {
            let free_after = Timestamp::from_millis(free);
            (at(number), SegmentKeep { free_after, messages, waiting })
        });
        let segments: Vec<_> = segments.collect();
        let count = segments.len() as u64;
        Kept {
            begin: Offset::ZERO,
            end: at(count),
            latest: Timestamp::from_millis(100),
            hold_until: Timestamp::from_millis(0),
            segments,
            boundaries: (1..=count).map(at).collect(),
        }
    }

    fn planned(kept: &Kept) -> Plan {
        plan(kept, SIZE, Timestamp::from_millis(1000))
    }

    #[test]
    fn what_is_over_goes_up_to_the_first_segment_that_is_not() {
        assert_eq!(planned(&kept(&[(5, 9, 0), (999, 9, 0), (1000, 9, 0)])), Plan::LetGo(at(2)));
        assert_eq!(planned(&kept(&[(1000, 9, 0), (5, 9, 0)])), Plan::Nothing);
    }

    #[test]
    fn little_that_waits_is_carried_on_and_much_is_left_where_it_is() {
        assert_eq!(planned(&kept(&[(5, 9, 2), (5, 9, 3), (2000, 9, 0)])), Plan::LetGo(at(1)));
        assert_eq!(planned(&kept(&[(5, 9, 9), (2000, 9, 0)])), Plan::Nothing);
    }

    #[test]
    fn much_that_waits_is_carried_on_when_most_of_the_log_is_idle() {
        let mut segments = vec![(5, 9, 9)];
        segments.extend([(5, 9, 0); 4]);
        assert_eq!(planned(&kept(&segments[..4])), Plan::Nothing);
        assert_eq!(planned(&kept(&segments)), Plan::LetGo(at(5)));
    }

    #[test]
    fn nothing_goes_while_it_is_held_or_the_clock_is_behind() {
        let over = kept(&[(5, 9, 0)]);
        assert_eq!(planned(&over), Plan::LetGo(at(1)));
        let hold_until = Timestamp::from_millis(1001);
        assert_eq!(planned(&Kept { hold_until, ..over.clone() }), Plan::Nothing);
        let latest = Timestamp::from_millis(1001);
        assert_eq!(planned(&Kept { latest, ..over.clone() }), Plan::Nothing);
        assert_eq!(planned(&Kept { boundaries: Vec::new(), ..over }), Plan::Nothing);
    }
}
