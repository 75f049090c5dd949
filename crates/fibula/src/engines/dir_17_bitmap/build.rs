//! Builds tables from ranges: the units in order of their addresses, and the entries that lead to them.

use core::marker::PhantomData;
use core::sync::atomic::AtomicUsize;

use crate::fib::BuildError;
use crate::fib::parts::ranges::{self, Merge};
use crate::fib::parts::units::Units;
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Ipv4Key, NextHop, Prefix, Routes};

use super::NAME;
use super::fill::{Filling, Sink};
use super::layout::{Dir17Bitmap, Entry, PADDING, STEP_MAX, Windows};
use super::unit::{UnitContent, UnitWriter};

impl<K: Ipv4Key> Dir17Bitmap<K> {
    /// Builds the tables of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when the units need more than 2^26 words.
    pub fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        Self::build_from(routes, 0, &mut Budget::new(limits))
    }

    /// Like [`build`](Self::build), with places of at least 2^`step` words.
    pub(super) fn build_from(
        routes: &dyn Routes<K>,
        step: u32,
        budget: &mut Budget,
    ) -> Result<Self, BuildError> {
        const { assert!(K::BITS <= 32, "keys fill lanes of 32 bits") };
        let memory = |error| BuildError::memory(NAME, error);
        let mut needed = 0;
        // The smallest step that fits, because every unit is rounded up to whole places.
        for step in step..=STEP_MAX {
            let mut tables = Tables::new(Self::WINDOWS, step, budget).map_err(memory)?;
            fill(routes, &mut tables, Self::WINDOWS, budget).map_err(memory)?;
            let Tables { direct, units, allotted, .. } = tables;
            needed = tables.needed;
            if needed <= Entry::PLACES << step {
                let end = AtomicUsize::new(units.len() - PADDING);
                let (direct, units) = (direct.into(), units.into());
                return Ok(Self { direct, units, allotted: Some(allotted), end, step, keys: PhantomData });
            }
            budget.free(direct);
            budget.free(units);
        }
        Err(BuildError::limit(NAME, "words of units", Entry::PLACES << STEP_MAX, needed))
    }
}

/// Gives all addresses their next hops, in order.
fn fill<K: Ipv4Key>(
    routes: &dyn Routes<K>,
    tables: &mut Tables,
    windows: Windows,
    budget: &mut Budget,
) -> Result<(), OutOfMemory> {
    let mut filling = Filling::new(windows, tables.step);
    let mut word = 0;
    ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
        // A range ends where the next one begins, so each call fills the range before this one.
        filling.fill(range.start.to_bits() as u64, word, tables, budget)?;
        word = NextHop::word(range.next_hop);
        Ok(())
    })?;
    // No range follows the last one, so it is filled up to the end of the addresses.
    filling.fill(1 << K::BITS, word, tables, budget)?;
    filling.writer.free(budget);
    tables.finish(budget)
}

/// The tables under construction.
struct Tables {
    step: u32,
    /// Entries. In an entry of a uniform unit, the place is its number in `uniform`.
    direct: Buffer<u32>,
    units: Buffer<u64>,
    allotted: Units,
    /// Next hops of the uniform units, in order; a run of equal ones is one element.
    uniform: Buffer<u32>,
    /// The number of words needed. It may be more than places can address.
    needed: u64,
}

impl Tables {
    fn new(windows: Windows, step: u32, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let direct = budget.buffer(1 << windows.direct_bits)?;
        let (units, uniform) = (Buffer::new(), Buffer::new());
        Ok(Self { step, direct, units, allotted: Units::default(), uniform, needed: 0 })
    }

    /// Makes room for more words, and counts them. If there are more than places can address, only counts them and returns
    /// false.
    fn reserve(&mut self, words: usize, budget: &mut Budget) -> Result<bool, OutOfMemory> {
        // Counted past the limit, too, because the error reports how many words the table would need.
        self.needed += words as u64;
        let fits = self.needed <= Entry::PLACES << self.step;
        if fits {
            budget.reserve(&mut self.units, words)?;
        }
        Ok(fits)
    }

    /// Appends the words of a unit, which are whole places, and returns its first place; `None` past the last place that
    /// entries can address.
    fn append(&mut self, words: &[u64], budget: &mut Budget) -> Result<Option<u32>, OutOfMemory> {
        if !self.reserve(words.len(), budget)? {
            return Ok(None);
        }
        self.units.extend_from_slice(words);
        Ok(self.allotted.append((words.len() >> self.step) as u32))
    }

    /// Writes the uniform units, one for each next hop, and the padding.
    fn finish(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        // Sorted by next hop, so that equal ones are neighbours and get one unit. The low half keeps the number.
        let mut order: Buffer<u64> = budget.buffer(self.uniform.len())?;
        for (number, &word) in self.uniform.iter().enumerate() {
            order.push(u64::from(word) << 32 | number as u64);
        }
        order.sort_unstable();
        let (mut last, mut place) = (None, 0);
        for &entry in &order {
            let word = (entry >> 32) as u32;
            if last != Some(word) {
                last = Some(word);
                let words = uniform_words(word);
                let Some(at) = self.append(&words[..uniform_len(self.step)], budget)? else { break };
                place = at;
            }
            self.uniform[entry as u32 as usize] = place;
        }
        budget.free(order);
        for entry in self.direct.iter_mut().filter(|entry| Entry(**entry).is_shared()) {
            *entry = Entry::shared(self.uniform[Entry(*entry).place() as usize]).0;
        }
        budget.free(core::mem::take(&mut self.uniform));
        if self.reserve(PADDING, budget)? {
            self.units.resize(self.units.len() + PADDING, 0);
        }
        budget.shrink(&mut self.units);
        Ok(())
    }
}

/// Returns the words of a unit that has one value. Only the first [`uniform_len`] of them are used: one in place of a bitmap,
/// which does not change any answer, and the value.
pub(super) fn uniform_words(word: u32) -> [u64; 1 << STEP_MAX] {
    let mut words = [0; 1 << STEP_MAX];
    words[1] = word.into();
    words
}

/// Returns the number of words of such a unit, in whole places.
pub(super) fn uniform_len(step: u32) -> usize {
    2usize.next_multiple_of(1 << step)
}

impl Sink for Tables {
    fn unit(
        &mut self,
        _at: usize,
        unit: &UnitContent,
        writer: &mut UnitWriter,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        let form = writer.finish(unit, budget)?;
        let place = self.append(writer.words(), budget)?;
        self.direct.push(place.map_or(0, |place| form.entry(place, self.step).0));
        Ok(())
    }

    fn uniform(
        &mut self,
        _at: usize,
        count: usize,
        word: u32,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        if self.uniform.last() != Some(&word) {
            budget.push(&mut self.uniform, word)?;
        }
        let number = self.uniform.len() as u32 - 1;
        // A number fits into the bits of a place, because there are fewer entries than places.
        self.direct.resize(self.direct.len() + count, Entry::shared(number).0);
        Ok(())
    }
}
