//! An array of words that readers share, allotted in units: the writer fills new units beside those that readers see.
//!
//! What a change takes and gives up is noted, so that it can be taken back until it is published.

use core::ops::Range;

use crate::check::CheckError;
use crate::fib::in_place::{Publication, RetiredUnit, StoredWords};
use crate::memory::{self, Budget, Cell, Memory, OutOfMemory, Shared, Word};

use super::units::{Unit, Units};

/// An array, which of its elements are in use, and what a change has prepared.
#[derive(Debug)]
pub struct Arena<T: Word> {
    /// The elements.
    pub words: Shared<T>,
    /// Which of them are in use.
    pub units: Units,
    /// The number of the array among those of its structure.
    number: u8,
    /// Words of an element.
    width: usize,
    /// Elements that may be in use: those that there is room for, unless a limit is lower.
    most: u32,
    /// Elements that there is room for.
    room: u32,
    /// Elements that the budget has counted.
    charged: u32,
    /// Units that were taken, and units that they replace.
    made: Vec<Unit>,
    gone: Vec<Unit>,
}

/// How much a change had taken and given up.
#[derive(Debug, Clone, Copy, Default)]
pub struct ArenaSavepoint {
    made: usize,
    gone: usize,
}

/// The form of an array.
#[derive(Debug, Clone, Copy)]
pub struct ArrayLayout {
    /// Its number among those of the structure.
    pub number: u8,
    /// Words of an element.
    pub width: usize,
    /// Elements that there is room for. Only addresses are reserved for those to come.
    pub most: u32,
    /// Words of zeros after the last element.
    pub padding: usize,
    /// Whether huge pages are requested.
    pub huge_pages: bool,
}

impl<T: Word> Arena<T> {
    /// Returns an array that begins with these words, all of which are in use and were counted by a budget.
    ///
    /// # Errors
    /// When the system has no more addresses.
    pub fn new(built: &[T::Atomic], form: ArrayLayout) -> Result<Self, OutOfMemory> {
        let ArrayLayout { number, width, most, padding, huge_pages } = form;
        let words = Shared::zeros(most as usize * width + padding, huge_pages)?;
        for (word, to) in built.iter().zip(&words[..]) {
            word.read().write(to);
        }
        let mut units = Units::default();
        let end = (built.len() / width) as u32;
        let _ = units.append(end);
        let (made, gone) = Default::default();
        Ok(Self { words, units, number, width, most, room: most, charged: end, made, gone })
    }

    /// Returns the words up to the last unit.
    pub fn end_words(&self) -> usize {
        self.units.end() as usize * self.width
    }

    /// Limits the words. Fewer than are in use must not be given.
    pub fn limit(&mut self, words: usize) {
        self.most = u32::try_from(words / self.width).unwrap_or(u32::MAX).min(self.room);
    }

    /// Returns the words from an element on.
    #[inline]
    pub fn at(&self, place: u32) -> &[T::Atomic] {
        &self.words[place as usize * self.width..]
    }

    /// Returns the words of a unit.
    #[inline]
    pub fn unit_words(&self, place: u32, size: u32) -> &[T::Atomic] {
        &self.at(place)[..size as usize * self.width]
    }

    /// Takes a unit, which its words are to be written to; `None` where the array has no room.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn take(&mut self, size: u32, budget: &mut Budget) -> Result<Option<u32>, OutOfMemory> {
        self.expect(budget)?;
        let place = match self.units.take(size) {
            Some(place) => Ok(Some(place)),
            None => self.append(size, budget),
        };
        self.note(size, place)
    }

    /// Like [`take`](Self::take), for a unit before where the array would end if none of it were free.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn take_back(&mut self, size: u32, budget: &mut Budget) -> Result<Option<u32>, OutOfMemory> {
        self.expect(budget)?;
        let place = self.units.take_before(size, self.used());
        self.note(size, Ok(place))
    }

    /// Makes room to note a unit, which comes back if it is not published.
    fn expect(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        budget.reserve(&mut self.made, 1)?;
        self.units.expect(1, budget)
    }

    fn note(
        &mut self,
        size: u32,
        place: Result<Option<u32>, OutOfMemory>,
    ) -> Result<Option<u32>, OutOfMemory> {
        match place {
            Ok(Some(place)) => self.made.push(Unit { place, size }),
            _ => self.units.expect_less(1),
        }
        place
    }

    fn append(&mut self, size: u32, budget: &mut Budget) -> Result<Option<u32>, OutOfMemory> {
        let end = self.units.end().checked_add(size).filter(|&end| end <= self.most);
        let Some(end) = end else { return Ok(None) };
        if let Some(more) = end.checked_sub(self.charged) {
            budget.charge(more as usize * self.width * size_of::<T>())?;
            self.charged = end;
        }
        Ok(self.units.append(size))
    }

    /// Writes words from an element on, which no reader reaches.
    #[inline]
    pub fn write(&self, place: u32, words: impl IntoIterator<Item = T>) {
        for (to, word) in self.at(place).iter().zip(words) {
            word.write(to);
        }
    }

    /// Notes that a unit is to be retired.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn give_up(&mut self, place: u32, size: u32, budget: &mut Budget) -> Result<(), OutOfMemory> {
        if size == 0 {
            return Ok(());
        }
        budget.reserve(&mut self.gone, 1)?;
        self.units.expect(1, budget)?;
        self.gone.push(Unit { place, size });
        Ok(())
    }

    /// Returns where the array would end if none of it were free.
    pub fn used(&self) -> u32 {
        self.units.end() - self.units.free_elements()
    }

    /// Returns whether so much is free that units should move.
    pub fn is_loose(&self) -> bool {
        self.units.is_loose(1)
    }

    /// Returns whether so many more elements have room at the end.
    pub fn has_room(&self, elements: u64) -> bool {
        u64::from(self.units.end()) + elements <= self.most.into()
    }

    /// Returns the elements of the units that were taken.
    pub fn made(&self) -> impl Iterator<Item = usize> {
        self.made.iter().flat_map(|unit| (unit.place..unit.place + unit.size).map(|place| place as usize))
    }

    /// Returns the number of units that publishing retires.
    pub fn retires(&self) -> usize {
        self.gone.len()
    }

    /// Returns how much is prepared, to come back to.
    pub fn mark(&self) -> ArenaSavepoint {
        ArenaSavepoint { made: self.made.len(), gone: self.gone.len() }
    }

    /// Takes back what was taken and given up since.
    pub fn back_to(&mut self, mark: ArenaSavepoint) {
        for unit in self.made.drain(mark.made..) {
            self.units.give_expected(unit);
        }
        self.units.expect_less(self.gone.len() - mark.gone);
        self.gone.truncate(mark.gone);
    }

    /// Tells of the units that were taken, which is before any word leads to them.
    pub fn emit(&self, publication: &mut dyn Publication) {
        for &unit in &self.made {
            publication.stored(self.stored(self.words_of(unit)));
        }
    }

    /// Returns what is told of some words.
    pub fn stored(&self, words: Range<usize>) -> StoredWords<'_> {
        StoredWords::part(self.number, T::words(&self.words), words)
    }

    /// Tells of all words in use.
    pub fn emit_all(&self, publication: &mut dyn Publication) {
        publication.stored(StoredWords::whole(self.number, T::words(&self.words), self.end_words()));
    }

    /// Returns the words of free units.
    #[cfg(any(test, feature = "testing"))]
    pub fn free_words(&self) -> impl Iterator<Item = (u8, Range<usize>)> {
        self.units.free_units().into_iter().map(|unit| (self.number, self.words_of(unit)))
    }

    fn words_of(&self, unit: Unit) -> Range<usize> {
        unit.place as usize * self.width..(unit.place + unit.size) as usize * self.width
    }

    /// Retires what was given up. What was taken is published.
    pub fn retire(&mut self, publication: &mut dyn Publication) {
        self.units.expect_less(self.made.len());
        self.made.clear();
        for unit in self.gone.drain(..) {
            publication.retire(RetiredUnit { array: self.number, unit });
        }
    }

    /// Returns the bytes of a unit.
    pub fn bytes(&self, unit: Unit) -> usize {
        unit.size as usize * self.width * size_of::<T>()
    }

    /// Returns the memory of the lists, which lookups do not read.
    pub fn memory(&self) -> Memory {
        let notes = memory::of(&self.made) + memory::of(&self.gone);
        self.units.memory() + Memory { lookup_bytes: 0, ..notes }
    }

    /// Verifies that units which lookups reach, those that are retired and free ones are all that there is.
    ///
    /// # Errors
    /// At the first element that has no unit, or more than one.
    pub fn check(&self, mut used: Vec<Unit>, retired: &[RetiredUnit]) -> Result<(), CheckError> {
        let own = retired.iter().filter(|retired| retired.array == self.number);
        used.extend(own.map(|retired| retired.unit));
        self.units.check(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_of_all_words_of_a_unit_and_no_lookup_reads_the_lists() {
        let form = ArrayLayout { number: 0, width: 2, most: 8, padding: 0, huge_pages: false };
        let mut arena = Arena::<u32>::new(&[], form).unwrap();
        assert_eq!(arena.bytes(Unit { place: 0, size: 3 }), 3 * 2 * 4);
        assert_eq!(arena.take(3, &mut Budget::default()).unwrap(), Some(0));
        let memory = arena.memory();
        assert!(memory.lookup_bytes == 0 && memory.allocated_bytes > 0, "{memory:?}");
    }
}
