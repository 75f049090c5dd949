//! The tables as their writer has them: words of two entries, and the segments that are in use.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::fib::parts::arena::{Arena, ArrayLayout};
use crate::memory::{self, Budget, Cell, Memory, OutOfMemory, Shared};
use crate::net::Key;

use super::Dir248;
use super::build::Tables;
use super::layout::{HALVES, SEGMENT, SEGMENTS_MAX, half, word_of};

/// Number of the array of segments among those of the structure.
pub(super) const SEGMENTS: u8 = 1;

/// The tables, and the state that only their writer needs.
pub(super) struct Written {
    pub(super) first: Shared<u32>,
    pub(super) segments: Arena<u32>,
    /// For each segment, the entry that it was made for. That entry leads to it if it has the segment's number.
    owners: Vec<u32>,
}

/// A run of equal entries to store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) entry: u16,
}

impl Run {
    /// Returns the words that have the entries.
    pub(super) fn words(self) -> Range<usize> {
        let first = self.first as usize;
        first / HALVES..(first + self.count as usize).div_ceil(HALVES)
    }

    /// Stores the entries of some of the words. Each word is one store, so readers see an entry as it was or as it will be.
    pub(super) fn store(self, to: &[AtomicU32], words: Range<usize>) {
        let all = word_of(self.entry, self.entry);
        for at in words {
            let (old, new) = (to[at].read(), all & self.mask(at));
            let new = old & !self.mask(at) | new;
            // An entry that stays is not stored, because the store would take its cache line from the readers.
            if new != old {
                to[at].store(new, Ordering::Release);
            }
        }
    }

    /// Returns the bits of a word that are entries of the run.
    fn mask(self, word: usize) -> u32 {
        let is_inside = |at: usize| (self.first as usize..(self.first + self.count) as usize).contains(&at);
        let bits = |at: usize| if is_inside(at) { u16::MAX } else { 0 };
        word_of(bits(word * HALVES), bits(word * HALVES + 1))
    }
}

impl Written {
    /// Returns tables without routes.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn new<K: Key>(huge_pages: bool, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let words = Dir248::<K>::ENTRIES.div_ceil(HALVES);
        budget.charge(words * size_of::<u32>())?;
        let width = Dir248::<K>::SPAN / HALVES;
        let form = ArrayLayout { number: SEGMENTS, width, most: SEGMENTS_MAX as u32, padding: 0, huge_pages };
        let (first, segments) = (Shared::zeros(words, huge_pages)?, Arena::new(&[], form)?);
        Ok(Self { first, segments, owners: Vec::new() })
    }

    /// Returns an entry of the first table.
    pub(super) fn entry(&self, at: usize) -> u16 {
        half(&self.first, at)
    }

    /// Reads the codes of the addresses of an entry.
    pub(super) fn read(&self, at: usize, codes: &mut [u16]) {
        let entry = self.entry(at);
        if entry & SEGMENT == 0 {
            return codes.fill(entry);
        }
        let words = self.segments.at((entry & !SEGMENT).into());
        codes.iter_mut().enumerate().for_each(|(at, code)| *code = half(words, at));
    }

    /// Makes a segment that no entry leads to yet, and returns its number; `None` if all are in use.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn make(
        &mut self,
        owner: usize,
        codes: &[u16],
        budget: &mut Budget,
    ) -> Result<Option<u32>, OutOfMemory> {
        // Room for the owner first, so that a segment that was taken always gets one.
        let room = self.owners.len() as u32 <= self.segments.units.end();
        budget.reserve(&mut self.owners, room.into())?;
        let Some(number) = self.segments.take(1, budget)? else { return Ok(None) };
        self.segments.write(number, codes.as_chunks().0.iter().map(|&[low, high]| word_of(low, high)));
        if number as usize >= self.owners.len() {
            self.owners.resize(number as usize + 1, 0);
        }
        self.owners[number as usize] = owner as u32;
        Ok(Some(number))
    }

    /// Copies a segment to a free place before the end that all would fit in, if an entry leads to it. Returns the run to store.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn move_back(&mut self, number: u32, budget: &mut Budget) -> Result<Option<Run>, OutOfMemory> {
        let Some(&owner) = self.owners.get(number as usize) else { return Ok(None) };
        // The segment was replaced and is free or retired: its owner leads elsewhere.
        if self.entry(owner as usize) != SEGMENT | number as u16 {
            return Ok(None);
        }
        let Some(to) = self.segments.take_back(1, budget)? else { return Ok(None) };
        let words = self.segments.unit_words(number, 1);
        self.segments.write(to, words.iter().map(Cell::read));
        // The old segment keeps its owner: readers may be in it until the entry is stored and their pins end.
        self.owners[to as usize] = owner;
        self.give_up(SEGMENT | number as u16, budget)?;
        Ok(Some(Run { first: owner, count: 1, entry: SEGMENT | to as u16 }))
    }

    /// Notes that the segment of an entry is to be retired, if the entry has one.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn give_up(&mut self, entry: u16, budget: &mut Budget) -> Result<(), OutOfMemory> {
        if entry & SEGMENT == 0 {
            return Ok(());
        }
        self.segments.give_up((entry & !SEGMENT).into(), 1, budget)
    }

    /// Returns the memory of the lists, which lookups do not read.
    pub(super) fn memory(&self) -> Memory {
        self.segments.memory() + Memory { lookup_bytes: 0, ..memory::of(&self.owners) }
    }
}

impl Tables for Written {
    fn whole(&mut self, first: usize, count: usize, code: u16) {
        let run = Run { first: first as u32, count: count as u32, entry: code };
        run.store(&self.first, run.words());
    }

    fn divided(
        &mut self,
        at: usize,
        _number: u16,
        codes: &[u16],
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        if let Some(number) = self.make(at, codes, budget)? {
            self.whole(at, 1, SEGMENT | number as u16);
        }
        Ok(())
    }
}
