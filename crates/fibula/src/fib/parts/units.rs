//! Units of an array: runs of elements that are allotted and freed as one, so that a structure can be changed unit by unit.
//!
//! ```text
//! array    | used | free | used | used | free free | used | beyond the end
//! lists      free units by size, up to 64; larger ones in one list; what was given back since waits in a list of its own
//! ```
//!
//! A unit comes from the list of its size, else from the head of a larger free one, else from the end of the array. Giving
//! one back needs no memory beyond what was reserved before. [`Units::settle`] joins free neighbours and moves the end back;
//! it costs a sort of the free units, so that it is done when as many have been given back as there were.

use core::ops::Range;

use crate::check::CheckError;
use crate::memory::{self, Budget, Memory, OutOfMemory};

/// Units up to this size have a list for each size.
const LISTED: usize = 64;

/// A run of elements: the first one, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    /// The first element.
    pub place: u32,
    /// How many there are.
    pub size: u32,
}

impl Unit {
    /// Returns the unit of these elements.
    pub fn of(elements: Range<u32>) -> Self {
        Self { place: elements.start, size: elements.end - elements.start }
    }

    fn end(self) -> u32 {
        self.place + self.size
    }
}

/// Free elements below which none waits for its neighbours: the array may be full, and moving its end gains nothing.
const LEAST_LOOSE: u32 = 256;

/// Which elements of an array are in use, and which units are free.
#[derive(Debug, Clone, Default)]
pub struct Units {
    /// First elements of the free units of a size, by size less 1.
    free: Vec<Vec<u32>>,
    /// Larger free units.
    large: Vec<Unit>,
    /// Units that were given back, and are not in a list yet. The first ones wait until neighbours are joined.
    given: Vec<Unit>,
    waiting: usize,
    /// Units that may still be given back, for which `given` has room.
    expected: usize,
    /// Number of free units in lists when neighbours were last joined, and of those that joined a list since.
    settled: usize,
    since: usize,
    /// Whether a list had no room for the rest of a unit.
    is_tight: bool,
    /// Number of elements of free units, given ones included.
    free_elements: u32,
    /// Number of elements up to the last unit.
    end: u32,
}

impl Units {
    /// Returns the number of elements that are used or free, which is where the array must end at the earliest.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.end
    }

    /// Returns the number of free elements before the end.
    #[must_use]
    pub fn free_elements(&self) -> u32 {
        self.free_elements
    }

    /// Appends a unit of `size` elements, and returns its first one; `None` when elements are beyond 32 bits.
    #[must_use]
    pub fn append(&mut self, size: u32) -> Option<u32> {
        let place = self.end;
        self.end = place.checked_add(size)?;
        Some(place)
    }

    /// Takes a free unit of this size, or the head of a larger one.
    #[must_use]
    pub fn take(&mut self, size: u32) -> Option<u32> {
        self.take_before(size, u32::MAX)
    }

    /// Like [`take`](Self::take), if it begins before a place.
    #[must_use]
    pub fn take_before(&mut self, size: u32, before: u32) -> Option<u32> {
        let listed = (size as usize - 1).min(self.free.len());
        // The rest of a larger unit goes to a list that has room for it.
        for number in listed..self.free.len() {
            let Some(&place) = self.free[number].last().filter(|&&place| place < before) else { continue };
            let rest = Unit { place: place + size, size: number as u32 + 1 - size };
            if rest.size > 0 {
                let list = &mut self.free[rest.size as usize - 1];
                if !has_room(list) {
                    self.is_tight = true;
                    continue;
                }
                list.push(rest.place);
            }
            self.free[number].pop();
            self.free_elements -= size;
            return Some(place);
        }
        let at = self.large.iter().rposition(|unit| unit.size >= size && unit.place < before)?;
        let unit = self.large[at];
        let rest = Unit { place: unit.place + size, size: unit.size - size };
        match rest.size as usize {
            0 => drop(self.large.swap_remove(at)),
            size if size > LISTED => self.large[at] = rest,
            size => {
                let list = self.free.get_mut(size - 1)?;
                if !has_room(list) {
                    self.is_tight = true;
                    return None;
                }
                list.push(rest.place);
                self.large.swap_remove(at);
            }
        }
        self.free_elements -= size;
        Some(unit.place)
    }

    /// Takes a free unit of this size whose place has this remainder by a power of two, without dividing any.
    #[must_use]
    pub fn take_at(&mut self, size: u32, remainder: u32, by: u32) -> Option<u32> {
        let fits = |place: u32| place % by == remainder;
        let place = match self.free.get_mut(size as usize - 1) {
            Some(list) => {
                let at = list.iter().rposition(|&place| fits(place))?;
                list.swap_remove(at)
            }
            None => {
                let at = self.large.iter().rposition(|unit| unit.size == size && fits(unit.place))?;
                self.large.swap_remove(at).place
            }
        };
        self.free_elements -= size;
        Some(place)
    }

    /// Like [`take_at`](Self::take_at), but divides larger units. What is left of them is given back.
    ///
    /// # Errors
    /// When memory runs out; nothing is taken then.
    pub fn take_at_within(
        &mut self,
        size: u32,
        remainder: u32,
        by: u32,
        budget: &mut Budget,
    ) -> Result<Option<u32>, OutOfMemory> {
        self.expect(2, budget)?;
        let inside = |unit: Unit| {
            let skipped = (remainder + by - unit.place % by) % by;
            (skipped + size <= unit.size).then_some(unit.place + skipped)
        };
        let mut found = None;
        for (number, list) in self.free.iter_mut().enumerate().skip(size as usize - 1) {
            let unit = |place| Unit { place, size: number as u32 + 1 };
            if let Some(at) = list.iter().rposition(|&place| inside(unit(place)).is_some()) {
                found = Some(unit(list.swap_remove(at)));
                break;
            }
        }
        if found.is_none() {
            let at = self.large.iter().rposition(|&unit| inside(unit).is_some());
            found = at.map(|at| self.large.swap_remove(at));
        }
        let Some((unit, place)) = found.and_then(|unit| Some((unit, inside(unit)?))) else {
            self.expect_less(2);
            return Ok(None);
        };
        self.free_elements -= unit.size;
        for rest in [unit.place..place, place + size..unit.end()] {
            if rest.is_empty() {
                self.expect_less(1);
            } else {
                self.give_or_expect(Unit::of(rest), budget);
            }
        }
        Ok(Some(place))
    }

    /// Frees a unit that was expected, and that can be taken at once if there is memory.
    pub fn give_or_expect(&mut self, unit: Unit, budget: &mut Budget) {
        match self.give(unit, budget) {
            Ok(()) => self.expect_less(1),
            Err(_) => self.give_expected(unit),
        }
    }

    /// Makes room for `count` more units to be given back.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn expect(&mut self, count: usize, budget: &mut Budget) -> Result<(), OutOfMemory> {
        budget.reserve(&mut self.given, self.expected + count)?;
        self.expected += count;
        Ok(())
    }

    /// Takes back that `count` units were expected, which will not come.
    pub fn expect_less(&mut self, count: usize) {
        self.expected -= count;
    }

    /// Frees a unit that was expected, and that no reader can reach any more.
    pub fn give_expected(&mut self, unit: Unit) {
        self.expected -= 1;
        self.free_elements += unit.size;
        self.given.push(unit);
    }

    /// Frees a unit, which no reader can reach any more.
    ///
    /// # Errors
    /// When memory for the list runs out.
    pub fn give(&mut self, unit: Unit, budget: &mut Budget) -> Result<(), OutOfMemory> {
        self.list(unit, budget)?;
        self.free_elements += unit.size;
        Ok(())
    }

    fn list(&mut self, unit: Unit, budget: &mut Budget) -> Result<(), OutOfMemory> {
        if unit.size as usize > LISTED {
            return budget.push(&mut self.large, unit);
        }
        self.make_lists(budget)?;
        budget.push(&mut self.free[unit.size as usize - 1], unit.place)
    }

    /// Makes all lists, each with some room.
    fn make_lists(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        while self.free.len() < LISTED {
            let list = budget.vec(8)?;
            budget.push(&mut self.free, list)?;
        }
        Ok(())
    }

    /// Returns whether an eighth of the elements is free, and so many at least.
    pub fn is_loose(&self, least: u32) -> bool {
        self.free_elements >= (self.end / 8).max(least)
    }

    /// Puts what was given back into the lists. Joins neighbours if that is due, which takes the time of as many units as
    /// were given back since the last time.
    ///
    /// # Errors
    /// When memory runs out; nothing is lost.
    pub fn absorb(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        // Where much is free, what lies after where all would fit is not taken again, so that the end can move back.
        let is_loose = self.is_loose(LEAST_LOOSE);
        let used = self.end - self.free_elements;
        while self.given.len() > self.waiting {
            let last = self.given.len() - 1;
            let unit = self.given[last];
            if is_loose && unit.place >= used {
                self.given.swap(self.waiting, last);
                self.waiting += 1;
            } else {
                self.list(unit, budget)?;
                self.given.pop();
            }
            self.since += 1;
        }
        if self.is_tight {
            for list in &mut self.free {
                budget.reserve(list, 1)?;
            }
            self.is_tight = false;
        }
        if self.since > self.settled.max(LEAST_GIVEN) { self.settle(budget) } else { Ok(()) }
    }

    /// Joins free neighbours. Free elements after the last used unit are given up: the array then ends before them.
    ///
    /// # Errors
    /// When memory runs out; nothing is lost.
    pub fn settle(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        let count = self.free.iter().map(Vec::len).sum::<usize>() + self.large.len() + self.given.len();
        let mut all: Vec<Unit> = budget.vec(count)?;
        // No more large units than elements would fill, and each list keeps its room.
        let large = (self.free_elements as usize / LISTED).min(count);
        budget.reserve(&mut self.large, large)?;
        budget.reserve(&mut self.given, self.expected + count)?;
        self.make_lists(budget)?;
        for (number, list) in self.free.iter_mut().enumerate() {
            all.extend(list.drain(..).map(|place| Unit { place, size: number as u32 + 1 }));
        }
        all.append(&mut self.large);
        all.append(&mut self.given);
        self.waiting = 0;
        all.sort_unstable();
        let mut joined = 0;
        for at in 0..all.len() {
            let unit = all[at];
            if joined > 0 && all[joined - 1].end() == unit.place {
                all[joined - 1].size += unit.size;
            } else {
                all[joined] = unit;
                joined += 1;
            }
        }
        all.truncate(joined);
        if let Some(last) = all.pop_if(|last| last.end() == self.end) {
            self.end = last.place;
            self.free_elements -= last.size;
        }
        (self.settled, self.since) = (all.len(), 0);
        // The lowest places are the last of their lists, which are taken first.
        while let Some(&unit) = all.last() {
            if self.list(unit, budget).is_err() {
                // What has no room in a list waits where there is room for it.
                self.given.append(&mut all);
                break;
            }
            all.pop();
        }
        budget.free(all);
        Ok(())
    }

    /// Returns the memory of the lists, which lookups do not read.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let lists = self.free.iter().map(memory::of).fold(memory::of(&self.free), |all, list| all + list);
        let all = lists + memory::of(&self.large) + memory::of(&self.given);
        Memory { lookup_bytes: 0, ..all }
    }

    /// Returns the free units, those that were given back included.
    pub fn free_units(&self) -> Vec<Unit> {
        let lists = self.free.iter().zip(1..);
        let listed = lists.flat_map(|(list, size)| list.iter().map(move |&place| Unit { place, size }));
        listed.chain(self.large.iter().chain(&self.given).copied()).collect()
    }

    /// Verifies that units which are used, each given once, and units which are free cover all elements exactly once.
    ///
    /// # Errors
    /// At the first element that has no unit, or more than one.
    pub fn check(&self, mut used: Vec<Unit>) -> Result<(), CheckError> {
        let before = used.iter().map(|unit| u64::from(unit.size)).sum::<u64>();
        used.extend(self.free_units());
        used.sort_unstable();
        let mut done = 0;
        for &Unit { place, size } in &used {
            CheckError::unless(
                place == done,
                "every element is in one unit, used or free",
                done.min(place) as usize,
            )?;
            done = place.saturating_add(size);
        }
        CheckError::unless(done == self.end, "units end where the array does", done as usize)?;
        let free = u64::from(self.end) - before;
        CheckError::unless(free == u64::from(self.free_elements), "free elements are counted", free as usize)
    }
}

/// Neighbours are not joined before so many units were given back.
const LEAST_GIVEN: usize = 256;

fn has_room(list: &Vec<u32>) -> bool {
    list.len() < list.capacity()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(place: u32, size: u32) -> Unit {
        Unit { place, size }
    }

    #[test]
    fn freed_units_are_taken_again_and_larger_ones_divided() {
        let mut budget = Budget::default();
        let mut units = Units::default();
        let places: Vec<u32> = [2, 1, 4, 2, 100].map(|size| units.append(size).unwrap()).to_vec();
        assert_eq!((places.as_slice(), units.end()), ([0, 2, 3, 7, 9].as_slice(), 109));
        assert_eq!(units.take(2), None);
        for free in [unit(0, 2), unit(7, 2), unit(2, 1), unit(9, 100)] {
            units.give(free, &mut budget).unwrap();
        }
        assert_eq!(units.memory().lookup_bytes, 0);
        assert_eq!(units.memory().allocated_bytes, budget.used_bytes());
        units.check(vec![unit(3, 4)]).unwrap();
        // Two of the same size, then the heads of larger ones.
        assert_eq!([2, 2, 1, 90].map(|size| units.take(size)), [Some(7), Some(0), Some(2), Some(9)]);
        assert_eq!((units.take(11), units.free_elements()), (None, 10));
    }

    #[test]
    fn neighbours_are_joined_and_the_end_moves_back() {
        let mut budget = Budget::default();
        let mut units = Units::default();
        for _ in 0..10 {
            let _ = units.append(3);
        }
        units.expect(6, &mut budget).unwrap();
        for place in [3, 6, 15, 27, 24, 21] {
            units.give_expected(unit(place, 3));
        }
        let used = || vec![unit(0, 3), unit(9, 3), unit(12, 3), unit(18, 3)];
        units.check(used()).unwrap();
        units.absorb(&mut budget).unwrap();
        units.check(used()).unwrap();
        assert_eq!(units.take(5), None);
        units.settle(&mut budget).unwrap();
        units.check(used()).unwrap();
        assert_eq!((units.end(), units.free_elements()), (21, 9));
        assert_eq!((units.take(6), units.take_before(3, 15), units.take(3)), (Some(3), None, Some(15)));
        assert_eq!(units.free_elements(), 0);
    }

    #[test]
    fn places_with_a_remainder_are_found() {
        let mut budget = Budget::default();
        let mut units = Units::default();
        for size in [4, 4, 4, 128, 128] {
            let _ = units.append(size);
        }
        for free in [unit(0, 4), unit(4, 4), unit(8, 4), unit(12, 128), unit(140, 128)] {
            units.give(free, &mut budget).unwrap();
        }
        assert_eq!((units.take_at(4, 4, 8), units.take_at(4, 4, 8)), (Some(4), None));
        assert_eq!((units.take_at(128, 12, 32), units.take_at(128, 13, 32)), (Some(140), None));
    }

    #[test]
    fn elements_without_a_unit_or_with_two_are_found() {
        let mut budget = Budget::default();
        let mut units = Units::default();
        for _ in 0..3 {
            let _ = units.append(2);
        }
        units.give(unit(2, 2), &mut budget).unwrap();
        units.check(vec![unit(4, 2), unit(0, 2)]).unwrap();
        let wrong = [
            vec![unit(0, 2)],                         // lost at the end
            vec![unit(4, 2)],                         // lost at the beginning
            vec![unit(0, 2), unit(2, 2), unit(4, 2)], // used and free
            vec![unit(0, 2), unit(1, 2), unit(4, 2)], // overlapping
            vec![unit(1, 2), unit(4, 2)],             // overlapping, and as many lost
        ];
        for used in wrong {
            assert!(units.check(used.clone()).is_err(), "{used:?}");
        }
    }

    #[test]
    fn elements_beyond_32_bits_are_refused() {
        let mut units = Units::default();
        assert_eq!(units.append(u32::MAX), Some(0));
        assert_eq!(units.append(1), None);
        assert_eq!(units.end(), u32::MAX);
    }
}
