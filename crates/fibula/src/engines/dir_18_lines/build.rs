//! Builds lines from slots.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::overflow::{
    self, Area, DEEP, Level, PADDING, SLOTS_MAX, SlotRecord, SlotWindows, append_records, append_values,
    holds, width_mask,
};
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Ipv4Key, Routes};

use super::layout::line_words;
use super::{Dir18Lines, NAME};

impl<K: Ipv4Key> Dir18Lines<K> {
    /// Builds the tables of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when the overflow below the lines needs more than 2^26 words.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        const { assert!(K::BITS <= 32, "keys fill lanes of 32 bits") };
        let memory = |error| BuildError::memory(NAME, error);
        let width = overflow::width_for(routes);
        let windows = Self::WINDOWS[width as usize];
        let mut budget = Budget::new(limits);
        let mut tables = Tables::new(windows, width, &mut budget).map_err(memory)?;
        let mut below = overflow::sweep(routes, windows, &mut tables, &mut budget).map_err(memory)?;
        let shared_from = tables.share(&mut below, &mut budget).map_err(memory)?;
        let below = below.finish(NAME, &mut budget)?;
        let Tables { direct, lines, maps, .. } = tables;
        Ok(Self { width, direct, lines, shared_from, maps, below, keys: PhantomData })
    }
}

/// The tables under construction.
struct Tables {
    windows: SlotWindows,
    width: u32,
    /// The byte at which a line begins, or [`SHARED`] and an index into `shared`.
    direct: Buffer<u32>,
    lines: Buffer<u32>,
    maps: Buffer<u32>,
    /// Next hops of the direct entries that have a single one, in order; a run of equal ones is one element.
    shared: Buffer<u32>,
}

/// Marks a direct entry with a single next hop. The bit is free, because at most 2^20 entries have lines of their own, of 64
/// bytes each.
const SHARED: u32 = 1 << 31;

impl Tables {
    fn new(windows: SlotWindows, width: u32, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let direct = budget.buffer(1 << windows.direct_bits)?;
        let (lines, maps, shared) = (Buffer::new(), Buffer::new(), Buffer::new());
        Ok(Self { windows, width, direct, lines, maps, shared })
    }

    /// Appends a line and returns the byte at which it begins. Slots whose next hop does not fit a value become all ones.
    fn line(
        &mut self,
        slots: impl Iterator<Item = u64>,
        map: Option<u32>,
        budget: &mut Budget,
    ) -> Result<u32, OutOfMemory> {
        let line_words = line_words(self.windows, self.width);
        let (begin, number) = (self.lines.len(), self.lines.len() / line_words);
        budget.reserve(&mut self.lines, line_words + PADDING)?;
        let ones = u64::from(width_mask(self.width));
        append_values(
            &mut self.lines,
            self.width,
            slots.map(|slot| slot.min(ones) as u32),
            self.windows.slots(),
        );
        if let Some(map) = map {
            // Lines without deeper slots have no map, but their places must be filled once a later line has one.
            let missing = number + 1 - self.maps.len();
            budget.reserve(&mut self.maps, missing)?;
            self.maps.resize(number, 0);
            self.maps.push(map);
        }
        Ok(4 * begin as u32)
    }

    /// Appends a line for each next hop that is the only one of some direct entry. Returns the byte at which these lines begin.
    fn share(&mut self, below: &mut Area, budget: &mut Budget) -> Result<u32, OutOfMemory> {
        let begin = 4 * self.lines.len() as u32;
        // Sorted by next hop, so that equal ones are neighbours and get one line. The low half keeps the place.
        let mut order: Buffer<u64> = budget.buffer(self.shared.len())?;
        for (number, &word) in self.shared.iter().enumerate() {
            order.push(u64::from(word) << 32 | number as u64);
        }
        order.sort_unstable();
        let (mut last, mut at) = (None, 0);
        for &entry in &order {
            let word = (entry >> 32) as u32;
            if last != Some(word) {
                at = self.line_of(word, below, budget)?;
                last = Some(word);
            }
            self.shared[entry as u32 as usize] = at;
        }
        budget.free(order);
        for entry in self.direct.iter_mut().filter(|entry| **entry & SHARED != 0) {
            *entry = self.shared[(*entry & !SHARED) as usize];
        }
        budget.free(core::mem::take(&mut self.shared));
        if !self.maps.is_empty() {
            // Shared lines without deeper slots follow the last map.
            let lines = self.lines.len() / line_words(self.windows, self.width);
            let missing = lines - self.maps.len();
            budget.reserve(&mut self.maps, missing)?;
            self.maps.resize(lines, 0);
        }
        budget.reserve(&mut self.lines, PADDING)?;
        self.lines.resize(self.lines.len() + PADDING, 0);
        budget.shrink(&mut self.lines);
        budget.shrink(&mut self.maps);
        Ok(begin)
    }

    /// Appends the line of a next hop.
    fn line_of(&mut self, word: u32, below: &mut Area, budget: &mut Budget) -> Result<u32, OutOfMemory> {
        let slots = self.windows.slots();
        if holds(self.width, word) {
            return self.line(core::iter::repeat_n(word.into(), slots), None, budget);
        }
        // The next hop is too wide for the line's values, so every slot leads to a record in the overflow.
        let record = SlotRecord::narrow(&[word]).expect("a next hop that whole entries can go to");
        let map = append_records(below, &[DEEP; SLOTS_MAX][..slots], &[record; SLOTS_MAX][..slots], budget)?;
        self.line(core::iter::repeat_n(DEEP, slots), Some(map), budget)
    }
}

impl Level for Tables {
    fn holds(&self, word: u32) -> bool {
        holds(self.width, word)
    }

    fn holds_whole(&self, word: u32) -> bool {
        holds(self.width, word) || word < SlotRecord::NEXT_HOPS
    }

    fn uniform(&mut self, entries: usize, word: u32, budget: &mut Budget) -> Result<(), OutOfMemory> {
        if self.shared.last() != Some(&word) {
            budget.push(&mut self.shared, word)?;
        }
        let number = self.shared.len() as u32 - 1;
        self.direct.resize(self.direct.len() + entries, SHARED | number);
        Ok(())
    }

    fn chunk(
        &mut self,
        slots: &[u64],
        map: Option<u32>,
        _below: &mut Area,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        let line = self.line(slots.iter().copied(), map, budget)?;
        self.direct.push(line);
        Ok(())
    }
}
