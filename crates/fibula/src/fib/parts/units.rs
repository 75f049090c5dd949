//! Units of an array: runs of elements that are allocated and freed as one, so that a structure can be changed unit by
//! unit.
//!
//! Free units are kept in lists by class. What a class means (a size, or a size and an alignment) is the structure's
//! affair; all units of a class have one size and may replace each other. New units come from the end of the array.

use crate::check::CheckError;
use crate::memory::{self, Budget, Memory, OutOfMemory};

/// Which elements of an array are in use, and which units are free.
#[derive(Debug, Clone, Default)]
pub(crate) struct Units {
    /// First elements of the free units, by class.
    free: Vec<Vec<u32>>,
    /// Number of elements that were ever in use.
    end: u32,
}

impl Units {
    /// Returns the number of elements that are used or free, which is where the array must end at the earliest.
    #[must_use]
    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    /// Appends a unit of `size` elements, and returns its first one; `None` when elements are beyond 32 bits.
    #[must_use]
    pub(crate) fn append(&mut self, size: u32) -> Option<u32> {
        let place = self.end;
        self.end = place.checked_add(size)?;
        Some(place)
    }

    /// Takes a free unit of a class.
    #[must_use]
    pub(crate) fn take(&mut self, class: usize) -> Option<u32> {
        self.free.get_mut(class)?.pop()
    }

    /// Frees a unit, which no reader can reach any more.
    ///
    /// # Errors
    /// When memory for the list runs out.
    pub(crate) fn give(&mut self, class: usize, place: u32, budget: &mut Budget) -> Result<(), OutOfMemory> {
        while self.free.len() <= class {
            budget.push(&mut self.free, Vec::new())?;
        }
        budget.push(&mut self.free[class], place)
    }

    /// Returns the memory of the lists, which lookups do not read.
    #[must_use]
    pub(crate) fn memory(&self) -> Memory {
        let lists = self.free.iter().map(memory::of).fold(memory::of(&self.free), |all, list| all + list);
        Memory { lookup_bytes: 0, ..lists }
    }

    /// Verifies that units which are used, given by first element and size and each given once, and units which are free
    /// cover all elements exactly once.
    ///
    /// # Errors
    /// At the first element that has no unit, or more than one.
    pub(crate) fn check(
        &self,
        mut used: Vec<(u32, u32)>,
        size_of: impl Fn(usize) -> u32,
    ) -> Result<(), CheckError> {
        for (class, list) in self.free.iter().enumerate() {
            used.extend(list.iter().map(|&place| (place, size_of(class))));
        }
        used.sort_unstable();
        let mut done = 0;
        for (place, size) in used {
            CheckError::unless(
                place == done,
                "every element is in one unit, used or free",
                done.min(place) as usize,
            )?;
            done = place.saturating_add(size);
        }
        CheckError::unless(done == self.end, "units end where the array does", done as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units of 1, 2, 4, ... elements: a class is the logarithm.
    fn size_of(class: usize) -> u32 {
        1 << class
    }

    #[test]
    fn freed_units_are_taken_again_by_their_class() {
        let mut budget = Budget::default();
        let mut units = Units::default();
        let places: Vec<u32> = [2, 1, 4, 2].map(|size| units.append(size).unwrap()).to_vec();
        assert_eq!((places.as_slice(), units.end()), ([0, 2, 3, 7].as_slice(), 9));
        assert_eq!(units.take(1), None);
        units.give(1, 0, &mut budget).unwrap();
        units.give(1, 7, &mut budget).unwrap();
        units.give(0, 2, &mut budget).unwrap();
        assert_eq!(units.memory().lookup_bytes, 0);
        assert_eq!(units.memory().allocated_bytes, budget.used_bytes());
        units.check(vec![(3, 4)], size_of).unwrap();
        let taken = [units.take(1), units.take(1), units.take(1), units.take(0)];
        assert_eq!(taken, [Some(7), Some(0), None, Some(2)]);
        units.check(vec![(0, 2), (2, 1), (3, 4), (7, 2)], size_of).unwrap();
    }

    #[test]
    fn elements_without_a_unit_or_with_two_are_found() {
        let mut budget = Budget::default();
        let mut units = Units::default();
        for _ in 0..3 {
            let _ = units.append(2);
        }
        units.give(1, 2, &mut budget).unwrap();
        units.check(vec![(4, 2), (0, 2)], size_of).unwrap();
        let wrong: [Vec<(u32, u32)>; 4] = [
            vec![(0, 2)],                 // lost at the end
            vec![(4, 2)],                 // lost at the beginning
            vec![(0, 2), (2, 2), (4, 2)], // used and free
            vec![(0, 2), (1, 2), (4, 2)], // overlapping
        ];
        for used in wrong {
            assert!(units.check(used.clone(), size_of).is_err(), "{used:?}");
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
