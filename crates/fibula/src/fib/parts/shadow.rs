//! A second array of entries, for changes that new readers see all at once.
//!
//! A change is stored in a copy of the entries, which then takes the place of the array at hand. That one is kept: when no
//! reader is in it any more, the few entries that were stored since make a copy of it again, which takes a microsecond where
//! copying all of them takes tens.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::memory::{Budget, Cell, Memory, OutOfMemory, Shared};

/// Entries stored since that are noted; with more, all are copied.
const NOTED: usize = 1 << 12;

/// A copy of the entries, and what it takes to make the next one.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    /// A copy of the entries at hand.
    ready: Option<Shared<u32>>,
    /// An earlier array of entries.
    spare: Option<Shared<u32>>,
    /// What was stored since, unless `is_behind`.
    since: Vec<u32>,
    is_behind: bool,
    /// Bytes that a budget has counted for the second array.
    counted: usize,
}

impl Shadow {
    /// Makes a copy of the entries, of which the first ones are used. A new array is taken from `array`.
    ///
    /// # Errors
    /// When `array` fails.
    pub(crate) fn make(
        &mut self,
        entries: &[AtomicU32],
        budget: &mut Budget,
        array: impl FnOnce(&mut Budget) -> Result<Shared<u32>, OutOfMemory>,
    ) -> Result<(), OutOfMemory> {
        self.keep();
        let all = |to: &[AtomicU32]| {
            to.iter().zip(entries).for_each(|(to, entry)| to.store(entry.read(), Ordering::Relaxed));
        };
        if let Some(mut spare) = self.spare.take() {
            if spare.is_alone() {
                if self.is_behind {
                    all(&spare);
                } else {
                    for at in self.since.iter().map(|&at| at as usize) {
                        spare[at].store(entries[at].read(), Ordering::Relaxed);
                    }
                }
                self.since.clear();
                self.is_behind = false;
                self.ready = Some(spare);
                return Ok(());
            }
            // Its last reader frees it.
            budget.release(core::mem::take(&mut self.counted));
        }
        let before = budget.used_bytes();
        let copy = array(budget)?;
        self.counted = budget.used_bytes() - before;
        all(&copy);
        self.ready = Some(copy);
        Ok(())
    }

    /// Returns an array that a budget has counted.
    ///
    /// # Errors
    /// When memory runs out.
    pub(crate) fn array(len: usize, budget: &mut Budget) -> Result<Shared<u32>, OutOfMemory> {
        let mut array = budget.buffer(len)?;
        array.resize(len, 0);
        Ok(array.into())
    }

    /// Returns the copy, if one was made.
    pub(crate) fn take(&mut self) -> Option<Shared<u32>> {
        self.ready.take()
    }

    /// Keeps a copy that is not published for the next change.
    pub(crate) fn keep(&mut self) {
        if let Some(ready) = self.ready.take() {
            self.spare = Some(ready);
            self.since.clear();
            self.is_behind = self.since.try_reserve(NOTED).is_err();
        }
    }

    /// Keeps the entries that a copy took the place of.
    pub(crate) fn replaced(&mut self, old: Shared<u32>) {
        self.ready = Some(old);
        self.keep();
    }

    /// Notes that entries were stored.
    #[inline]
    pub(crate) fn note(&mut self, entries: Range<usize>) {
        if self.spare.is_none() || self.is_behind {
            return;
        }
        if self.since.len() + entries.len() > NOTED {
            self.is_behind = true;
        } else {
            self.since.extend(entries.map(|at| at as u32));
        }
    }

    /// Returns the memory of what is kept, if so many elements of an array are used.
    pub(crate) fn memory(&self, used: usize) -> Memory {
        let kept = self.spare.iter().chain(&self.ready).map(|array| array.memory_of(used));
        let all = kept.fold(crate::memory::of(&self.since), |all, one| all + one);
        Memory { lookup_bytes: 0, ..all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(array: &[AtomicU32]) -> Vec<u32> {
        array.iter().map(Cell::read).collect()
    }

    #[test]
    fn a_copy_follows_what_was_stored_and_readers_keep_theirs() {
        let (mut shadow, mut budget) = (Shadow::default(), Budget::default());
        let mut entries = Shared::<u32>::filled(0..10);
        let mut copies = 0;
        let mut change = |entries: &mut Shared<u32>, shadow: &mut Shadow, at: usize, word: u32| {
            let make = |budget: &mut Budget| {
                copies += 1;
                Shadow::array(10, budget)
            };
            shadow.make(entries, &mut budget, make).unwrap();
            let copy = shadow.take().unwrap();
            assert_eq!(words(&copy), words(entries));
            copy[at].store(word, Ordering::Relaxed);
            shadow.replaced(core::mem::replace(entries, copy));
            shadow.note(at..at + 1);
            copies
        };
        assert_eq!(change(&mut entries, &mut shadow, 3, 30), 1);
        assert_eq!(change(&mut entries, &mut shadow, 4, 40), 1);
        // Stored in place meanwhile.
        entries[9].store(90, Ordering::Relaxed);
        shadow.note(9..10);
        assert_eq!(change(&mut entries, &mut shadow, 4, 41), 1);
        assert_eq!(words(&entries), [0, 1, 2, 30, 41, 5, 6, 7, 8, 90]);
        // A reader stays in the entries that are replaced, and in those after them.
        let reader = entries.another();
        assert_eq!(change(&mut entries, &mut shadow, 5, 50), 1);
        assert_eq!(change(&mut entries, &mut shadow, 5, 51), 2);
        assert_eq!(words(&reader)[5], 5);
        // More entries than `shadow` notes, so the next change copies all of them.
        entries[0].store(7, Ordering::Relaxed);
        shadow.note(0..NOTED);
        shadow.note(0..NOTED);
        assert_eq!(change(&mut entries, &mut shadow, 1, 10), 2);
        assert_eq!(words(&entries), [7, 10, 2, 30, 41, 51, 6, 7, 8, 90]);
    }

    #[test]
    fn a_copy_that_is_not_published_is_kept() {
        let (mut shadow, mut budget) = (Shadow::default(), Budget::default());
        let entries = Shared::<u32>::filled(0..4);
        shadow.make(&entries, &mut budget, |budget| Shadow::array(4, budget)).unwrap();
        shadow.keep();
        entries[2].store(20, Ordering::Relaxed);
        shadow.note(2..3);
        shadow.make(&entries, &mut budget, |_| panic!("another one")).unwrap();
        assert_eq!(words(&shadow.take().unwrap()), [0, 1, 20, 3]);
    }
}
