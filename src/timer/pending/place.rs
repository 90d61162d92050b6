//! Where a walk stands, in 49 bytes that a client keeps for it.
//!
//! ```text
//! byte   0       1        9          17            25         33       41      49
//!        +-------+--------+----------+-------------+----------+--------+-------+
//!        | flags | slot   | position | incarnation | far slot | low    | high  |
//!        +-------+--------+----------+-------------+----------+--------+-------+
//! ```
//!
//! Big-endian. *flags*: 1 the far ring, 8 the delay levels, else the near ring; 2 *position* and *incarnation*
//! are there; 4 *far slot*, *low* and *high* are there; what is not there is zero.
//!
//! - *slot* is the one that the walk is in, of the ring's own numbering. *position* is the next record of
//!   its chain. A position means something only to the life of the server (*incarnation*) that gave it,
//!   and only while the slot's chain reaches down to it; otherwise the slot is begun again. So after a
//!   restart the rest of one slot may be given twice.
//! - In the delay levels *slot* is the queue, and *position* the place of its next unit.
//! - *far slot*, *low* and *high*: of that far slot's entries those with an offset from *low* to *high* have
//!   been seen. Causes are filed in the order of their offsets, so in a far chain, newest first, offsets
//!   fall, and what was seen is one range. When the far slot is re-filed while the walk rests, the walk
//!   goes on in the near slots of the same time and leaves that range out: nothing is missed, and nothing
//!   is given twice. *low* 0 says that the far chain was seen to its end: that happens while the slot is
//!   being re-filed, and the near slots of its time then hold what was filed since.

/// Bytes of a place.
pub const PLACE_LENGTH: usize = HIGH + 8;
const FLAGS: usize = 0;
const SLOT: usize = FLAGS + 1;
const POSITION: usize = SLOT + 8;
const INCARNATION: usize = POSITION + 8;
const FAR_SLOT: usize = INCARNATION + 8;
const LOW: usize = FAR_SLOT + 8;
const HIGH: usize = LOW + 8;
const _: () = assert!(PLACE_LENGTH == 49);

const IS_FAR: u8 = 1;
const HAS_NEXT: u8 = 2;
const HAS_SEEN: u8 = 4;
const IS_LEVEL: u8 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    Near,
    Far,
}

/// The record that comes next in the slot's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextRecord {
    pub(super) position: u64,
    /// The life of the server in which the position was read.
    pub(super) incarnation: u64,
}

/// What was seen of a far slot: the offsets from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) far_slot: u64,
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Seen {
    /// The chain of `far_slot` was seen to its end.
    pub(super) fn all_of(far_slot: u64, seen: Option<Self>) -> Self {
        let high = seen.filter(|seen| seen.far_slot == far_slot).map_or(0, |seen| seen.high);
        Self { far_slot, low: 0, high }
    }

    pub(super) fn is_all_of(&self, far_slot: u64) -> bool {
        self.far_slot == far_slot && self.low == 0
    }

    pub(super) fn covers(&self, far_slot: u64, offset: u64) -> bool {
        self.far_slot == far_slot && (self.low..=self.high).contains(&offset)
    }
}

/// Where a walk goes on: see the page above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// `None`: the delay levels, where a walk begins.
    pub(super) ring: Option<Ring>,
    pub(super) slot: u64,
    pub(super) next: Option<NextRecord>,
    pub(super) seen: Option<Seen>,
}

impl Place {
    pub(super) fn level(queue: u64) -> Self {
        Self { ring: None, slot: queue, next: None, seen: None }
    }

    pub(super) fn near(slot: u64, seen: Option<Seen>) -> Self {
        Self { ring: Some(Ring::Near), slot, next: None, seen }
    }

    pub(super) fn far(slot: u64, seen: Option<Seen>) -> Self {
        let seen = seen.filter(|seen| seen.far_slot == slot);
        Self { ring: Some(Ring::Far), slot, next: None, seen }
    }

    /// The bytes of the place.
    pub fn encode(&self) -> [u8; PLACE_LENGTH] {
        let mut bytes = [0; PLACE_LENGTH];
        let mut put = |at: usize, value: u64| {
            bytes[at..at + 8].copy_from_slice(&value.to_be_bytes());
        };
        put(SLOT, self.slot);
        let mut flags = match self.ring {
            Some(Ring::Near) => 0,
            Some(Ring::Far) => IS_FAR,
            None => IS_LEVEL,
        };
        if let Some(next) = self.next {
            flags |= HAS_NEXT;
            put(POSITION, next.position);
            put(INCARNATION, next.incarnation);
        }
        if let Some(seen) = self.seen {
            flags |= HAS_SEEN;
            put(FAR_SLOT, seen.far_slot);
            put(LOW, seen.low);
            put(HIGH, seen.high);
        }
        bytes[FLAGS] = flags;
        bytes
    }

    /// The place that `bytes` are, if they are one.
    pub fn decode(bytes: &[u8; PLACE_LENGTH]) -> Option<Self> {
        let get = |at: usize| {
            let mut value = [0; 8];
            value.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(value)
        };
        let flags = bytes[FLAGS];
        let has = |flag| flags & flag != 0;
        let place = Self {
            ring: match (has(IS_LEVEL), has(IS_FAR)) {
                (true, _) => None,
                (false, true) => Some(Ring::Far),
                (false, false) => Some(Ring::Near),
            },
            slot: get(SLOT),
            next: has(HAS_NEXT)
                .then(|| NextRecord { position: get(POSITION), incarnation: get(INCARNATION) }),
            seen: has(HAS_SEEN).then(|| Seen {
                far_slot: get(FAR_SLOT),
                low: get(LOW),
                high: get(HIGH),
            }),
        };
        // Unknown flags, and fields that should be zero and are not, are of no place that we wrote.
        (place.encode() == *bytes).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places() -> impl Strategy<Value = Place> {
        let numbers = any::<[u64; 6]>();
        let rings = prop_oneof![Just(None), Just(Some(Ring::Near)), Just(Some(Ring::Far))];
        (numbers, rings, any::<[bool; 2]>()).prop_map(|(numbers, ring, [next, seen])| {
            let [slot, position, incarnation, far_slot, low, high] = numbers;
            Place {
                ring,
                slot,
                next: next.then_some(NextRecord { position, incarnation }),
                seen: seen.then_some(Seen { far_slot, low, high }),
            }
        })
    }

    #[test]
    fn the_bytes_are_those_of_version_1() {
        let next = Some(NextRecord { position: 0x0304, incarnation: 5 });
        let seen = Some(Seen { far_slot: 6, low: 7, high: 8 });
        let place = Place { ring: Some(Ring::Far), slot: 0x0102, next, seen };
        let mut golden = [0; PLACE_LENGTH];
        golden[0] = 7;
        (golden[7], golden[8], golden[15], golden[16]) = (1, 2, 3, 4);
        (golden[24], golden[32], golden[40], golden[48]) = (5, 6, 7, 8);
        assert_eq!(place.encode(), golden);
        let place = Place { next, ..Place::level(0x0102) };
        let mut golden = [0; PLACE_LENGTH];
        golden[0] = 10;
        (golden[7], golden[8], golden[15], golden[16], golden[24]) = (1, 2, 3, 4, 5);
        assert_eq!(place.encode(), golden);
    }

    #[test]
    fn what_no_place_is_written_as_is_no_place() {
        let near = Place::near(5, None).encode();
        for (at, byte) in [(0, 9), (0, 16), (0, 0x80), (16, 1), (24, 1), (32, 1), (48, 1)] {
            let mut bytes = near;
            bytes[at] = byte;
            assert_eq!(Place::decode(&bytes), None, "byte {at}");
        }
    }

    #[test]
    fn a_range_of_offsets_is_seen_in_its_own_far_slot_only() {
        let seen = Seen { far_slot: 3, low: 64, high: 128 };
        assert!(seen.covers(3, 64) && seen.covers(3, 128));
        assert!(!seen.covers(3, 32) && !seen.covers(3, 160) && !seen.covers(4, 96));
        let all = Seen::all_of(3, Some(seen));
        assert!(all.is_all_of(3) && all.covers(3, 32) && !all.covers(3, 160));
        assert_eq!(Seen::all_of(4, Some(seen)).high, 0, "of another slot nothing was seen");
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(place in places()) {
            prop_assert_eq!(Place::decode(&place.encode()), Some(place));
        }
    }
}
