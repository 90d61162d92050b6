//! A ring of slots in memory. The near and the far ring are both of this kind.
//!
//! A slot number has its place at `number mod length`. The place remembers whose it is, so a slot
//! whose place another number has is empty. At most one number claims a place at a time: the wheel
//! keeps all slots in use within one turn, and filing into a claimed place is a bug that panics.

use std::ops::Range;

use super::slot::SlotState;
use crate::position::Position;

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    number: u64,
    state: Option<SlotState>,
}

const _: () = assert!(size_of::<Place>() == 32);

#[derive(Debug)]
pub(super) struct Ring {
    places: Vec<Place>,
    /// One bit for each place that is not empty, to pass quickly over those that are.
    occupied: Vec<u64>,
    /// The sum of the counts of all slots.
    pending: u64,
}

impl Ring {
    pub(super) fn new(slots: u64) -> Self {
        let length = usize::try_from(slots).expect("a ring fits in memory");
        let words = length.div_ceil(64);
        Self { places: vec![Place::default(); length], occupied: vec![0; words], pending: 0 }
    }

    fn index(&self, number: u64) -> usize {
        let index = number & (self.places.len() as u64 - 1);
        usize::try_from(index).expect("a remainder by the length of the ring")
    }

    /// How many places there are.
    pub(super) fn length(&self) -> u64 {
        self.places.len() as u64
    }

    pub(super) fn get(&self, number: u64) -> Option<SlotState> {
        let place = &self.places[self.index(number)];
        place.state.filter(|_| place.number == number)
    }

    /// Whether the place of `number` is free, or its own.
    pub(super) fn has_place_for(&self, number: u64) -> bool {
        let place = &self.places[self.index(number)];
        place.state.is_none() || place.number == number
    }

    pub(super) fn set(&mut self, number: u64, state: SlotState) {
        let index = self.index(number);
        let place = &mut self.places[index];
        let free = place.state.is_none() || place.number == number;
        assert!(free, "slot {number} and slot {} claim one place", place.number);
        self.pending -= place.state.map_or(0, |old| u64::from(old.count));
        self.pending += u64::from(state.count);
        *place = Place { number, state: Some(state) };
        self.occupied[index / 64] |= 1 << (index % 64);
    }

    pub(super) fn clear(&mut self, number: u64) {
        if let Some(state) = self.get(number) {
            let index = self.index(number);
            self.pending -= u64::from(state.count);
            self.places[index].state = None;
            self.occupied[index / 64] &= !(1 << (index % 64));
        }
    }

    /// All slots that are not empty, in the order of their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, SlotState)> {
        let words = self.occupied.iter().enumerate().filter(|(_, word)| **word != 0);
        let indices = words.flat_map(|(index, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * 64 + bit)
        });
        indices.filter_map(|index| {
            let place = &self.places[index];
            place.state.map(|state| (place.number, state))
        })
    }

    /// How many entries are pending in all slots.
    pub(super) fn pending(&self) -> u64 {
        self.pending
    }

    /// How many entries are pending in the slots of `range`.
    pub(super) fn pending_in(&self, range: &Range<u64>) -> u64 {
        let within = self.iter().filter(|(number, _)| range.contains(number));
        within.map(|(_, state)| u64::from(state.count)).sum()
    }

    /// The first slot of `range` that is not empty. The range is at most one turn long.
    pub(super) fn first_in(&self, range: Range<u64>) -> Option<u64> {
        let mut number = range.start;
        while number < range.end {
            let index = self.index(number);
            if self.get(number).is_some() {
                return Some(number);
            }
            let later = self.occupied[index / 64] >> (index % 64) & !1;
            let to_word = 64 - index as u64 % 64;
            let to_turn = (self.places.len() - index) as u64;
            number += u64::from(later.trailing_zeros()).min(to_word).min(to_turn);
        }
        None
    }

    /// The highest number of a slot that is not empty.
    pub(super) fn highest(&self) -> Option<u64> {
        self.iter().map(|(number, _)| number).max()
    }

    /// The position of the oldest record that any slot still leads to.
    pub(super) fn oldest(&self) -> Option<Position> {
        self.iter().map(|(_, state)| state.first).min()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn state(count: u32) -> SlotState {
        let position = Position::new(u64::from(count) * 48 + 48).expect("not zero");
        SlotState { first: position, last: position, count }
    }

    #[test]
    fn a_place_that_another_number_has_is_empty_to_the_wanted_one() {
        let mut ring = Ring::new(16);
        ring.set(3, state(5));
        assert_eq!(ring.get(3), Some(state(5)));
        assert_eq!(ring.get(19), None);
        assert!(!ring.has_place_for(19));
        ring.clear(19);
        assert_eq!(ring.get(3), Some(state(5)), "clearing an empty slot touches nobody");
        ring.clear(3);
        ring.set(19, state(1));
        assert_eq!((ring.get(3), ring.get(19)), (None, Some(state(1))));
    }

    #[test]
    #[should_panic(expected = "claim one place")]
    fn two_numbers_in_one_place_are_a_bug() {
        let mut ring = Ring::new(16);
        ring.set(3, state(5));
        ring.set(19, state(1));
    }

    proptest! {
        #[test]
        fn a_ring_is_a_map_of_one_turn(
            start in 0_u64..100_000,
            bits in 3_u32..8,
            steps in prop::collection::vec((0_u64..128, prop::option::of(0_u32..9)), 1..80),
        ) {
            let slots = 1_u64 << bits;
            let mut ring = Ring::new(slots);
            let mut model = BTreeMap::new();
            for (ahead, count) in steps {
                let number = start + ahead % slots;
                match count {
                    Some(count) => {
                        ring.set(number, state(count));
                        model.insert(number, count);
                    }
                    None => {
                        ring.clear(number);
                        model.remove(&number);
                    }
                }
            }
            for number in start..start + 2 * slots {
                prop_assert_eq!(ring.get(number), model.get(&number).map(|count| state(*count)));
            }
            let mut all: Vec<_> = ring.iter().collect();
            all.sort_by_key(|(number, _)| *number);
            let expected: Vec<_> = model.iter().map(|(number, count)| (*number, state(*count))).collect();
            prop_assert_eq!(all, expected);
            prop_assert_eq!(ring.pending(), model.values().map(|count| u64::from(*count)).sum::<u64>());
            prop_assert_eq!(ring.highest(), model.keys().next_back().copied());
            prop_assert_eq!(ring.oldest(), model.values().map(|count| state(*count).first).min());
            for end in start..=start + slots {
                let first = model.range(start..end).next().map(|(number, _)| *number);
                prop_assert_eq!(ring.first_in(start..end), first);
                let sum: u64 = model.range(start..end).map(|(_, count)| u64::from(*count)).sum();
                prop_assert_eq!(ring.pending_in(&(start..end)), sum);
                // Slots in use may lie before the range: their places are passed over.
                let half = start + (end - start) / 2;
                let later = model.range(half..end).next().map(|(number, _)| *number);
                prop_assert_eq!(ring.first_in(half..end), later);
                let wraps = half..half + slots;
                let of_wrap = model.range(wraps.clone()).next().map(|(number, _)| *number);
                prop_assert_eq!(ring.first_in(wraps), of_wrap);
            }
        }
    }
}
