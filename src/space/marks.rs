//! At which free space what is done.

use crate::config::DiskReserve;

const MIB: u64 = 1 << 20;

/// Of a disk of any size the reserve is a twentieth, at most this, ...
const SHARE: u64 = 20;
const MOST: u64 = 2048 * MIB;
/// ... at the least this, and two files of the log, in which what was accepted can go on, ...
const LEAST: u64 = 96 * MIB;
const SEGMENTS: u64 = 2;
/// ... but never more than a quarter of a small disk.
const LARGEST_SHARE: u64 = 4;

/// The watermarks of a disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// With less free than this, new work is refused.
    pub refuse_below: u64,
    /// With less free than this, the ballast is given up.
    pub give_up_below: u64,
    /// The length of the ballast.
    pub ballast: u64,
}

/// How near the disk is to being full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    /// There is room for new work.
    None,
    /// New work is refused.
    NewWorkRefused,
    /// And what is left of the ballast's room is being used up.
    BallastGivenUp,
}

/// What is to become of the ballast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ballast {
    Leave,
    GiveUp,
    Make,
}

/// What was seen of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) free: u64,
    pub(super) has_ballast: bool,
    /// Somebody has found the disk full.
    pub(super) room_is_wanted: bool,
}

impl Marks {
    /// Those of a disk of `total` bytes with log files of `segment_size`.
    pub fn of(reserve: DiskReserve, total: u64, segment_size: u64) -> Self {
        let refuse_below = match reserve {
            DiskReserve::Bytes(bytes) => bytes,
            DiskReserve::Auto => (total / SHARE)
                .clamp(LEAST, MOST)
                .max(SEGMENTS * segment_size)
                .min(total / LARGEST_SHARE),
        };
        let half = refuse_below / 2;
        Self { refuse_below, give_up_below: half, ballast: half }
    }

    /// How near the disk is to being full, and what is to become of the ballast. Without the ballast new work
    /// waits until there is room for it and the ballast, so that the one does not take what the other needs.
    pub(super) fn judge(self, seen: Seen) -> (Pressure, Ballast) {
        let owed = if seen.has_ballast { 0 } else { self.ballast };
        if seen.free >= self.refuse_below.saturating_add(owed) && !seen.room_is_wanted {
            let make = owed > 0;
            return (Pressure::None, if make { Ballast::Make } else { Ballast::Leave });
        }
        let low = seen.free < self.give_up_below || seen.room_is_wanted;
        match seen.has_ballast {
            true if low => (Pressure::BallastGivenUp, Ballast::GiveUp),
            true => (Pressure::NewWorkRefused, Ballast::Leave),
            false if owed == 0 => (Pressure::NewWorkRefused, Ballast::Leave),
            false => (Pressure::BallastGivenUp, Ballast::Leave),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1024 * MIB;

    #[test]
    fn the_reserve_grows_with_the_disk_within_bounds() {
        let reserve = |total, segment| Marks::of(DiskReserve::Auto, total, segment).refuse_below;
        assert_eq!(reserve(64 * MIB, MIB), 16 * MIB, "a quarter of a small disk");
        assert_eq!(reserve(GIB, MIB), 96 * MIB, "the least");
        assert_eq!(reserve(20 * GIB, GIB), 2 * GIB, "two files of the log");
        assert_eq!(reserve(20 * GIB, MIB), GIB, "a twentieth");
        assert_eq!(reserve(1000 * GIB, GIB), 2 * GIB, "the most");
        let given = Marks::of(DiskReserve::Bytes(10), 1000 * GIB, GIB);
        assert_eq!(given, Marks { refuse_below: 10, give_up_below: 5, ballast: 5 });
    }

    #[test]
    fn each_watermark_has_its_two_sides() {
        let marks = Marks { refuse_below: 100, give_up_below: 50, ballast: 40 };
        let seen =
            |free, has_ballast| marks.judge(Seen { free, has_ballast, room_is_wanted: false });
        assert_eq!(seen(100, true), (Pressure::None, Ballast::Leave));
        assert_eq!(seen(99, true), (Pressure::NewWorkRefused, Ballast::Leave));
        assert_eq!(seen(50, true), (Pressure::NewWorkRefused, Ballast::Leave));
        assert_eq!(seen(49, true), (Pressure::BallastGivenUp, Ballast::GiveUp));
        assert_eq!(seen(139, false), (Pressure::BallastGivenUp, Ballast::Leave));
        assert_eq!(seen(140, false), (Pressure::None, Ballast::Make));
    }

    #[test]
    fn who_finds_the_disk_full_is_believed_whatever_it_says_is_free() {
        let marks = Marks { refuse_below: 100, give_up_below: 50, ballast: 40 };
        let seen =
            |has_ballast| marks.judge(Seen { free: 1000, has_ballast, room_is_wanted: true });
        assert_eq!(seen(true), (Pressure::BallastGivenUp, Ballast::GiveUp));
        assert_eq!(seen(false), (Pressure::BallastGivenUp, Ballast::Leave));
    }

    #[test]
    fn without_a_reserve_there_is_no_ballast_and_only_a_full_disk_refuses() {
        let marks = Marks::of(DiskReserve::Bytes(0), GIB, MIB);
        let seen =
            |free, room_is_wanted| marks.judge(Seen { free, has_ballast: false, room_is_wanted });
        assert_eq!(seen(0, false), (Pressure::None, Ballast::Leave));
        assert_eq!(seen(0, true), (Pressure::NewWorkRefused, Ballast::Leave));
    }
}
