//! Ranges to units: the addresses of a unit are filled in, then it is written.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::ranges::{self, Merge};
use crate::fib::parts::units::Units;
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Ipv4Key, NextHop, Prefix, Routes};

use super::NAME;
use super::layout::{
    Dir17Bitmap, Entry, PADDING, RESTS_MAX, SLOTS_MAX, STEP_MAX, Windows, deeper, value_words, width_of,
};
use super::record::{List, Record, push_list, push_values};

impl<K: Ipv4Key> Dir17Bitmap<K> {
    /// Builds the tables of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when the units need more than 2^26 words.
    pub fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        const { assert!(K::BITS <= 32, "keys fill lanes of 32 bits") };
        let memory = |error| BuildError::memory(NAME, error);
        let mut needed = 0;
        for step in 0..=STEP_MAX {
            let mut budget = Budget::new(limits);
            let mut tables = Tables::new(Self::WINDOWS, step, &mut budget).map_err(memory)?;
            fill(routes, &mut tables, &mut budget).map_err(memory)?;
            if tables.fits() {
                let Tables { direct, units, allotted, .. } = tables;
                let (direct, units) = (direct.into(), units.into());
                return Ok(Self { direct, units, allotted, step, keys: PhantomData });
            }
            needed = tables.needed;
        }
        Err(BuildError::limit(NAME, "words of units", Entry::PLACES << STEP_MAX, needed))
    }
}

/// Gives all addresses their next hops, in order.
fn fill<K: Ipv4Key>(
    routes: &dyn Routes<K>,
    tables: &mut Tables,
    budget: &mut Budget,
) -> Result<(), OutOfMemory> {
    let mut filling = Filling {
        windows: tables.windows,
        done: 0,
        word: 0,
        unit: Unit::new(),
        rests: [0; RESTS_MAX],
        tables,
        budget,
    };
    ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
        filling.fill(range.start.to_bits() as u64)?;
        filling.word = NextHop::word(range.next_hop);
        Ok(())
    })?;
    filling.fill(1 << K::BITS)?;
    filling.tables.finish(filling.budget)
}

/// Units that are filled from the first address on.
struct Filling<'a> {
    windows: Windows,
    /// The first address that has no next hop yet.
    done: u64,
    /// Next hop of the addresses from here on.
    word: u32,
    /// The open unit.
    unit: Unit,
    /// The open slot, if its addresses are not all of one range.
    rests: [u32; RESTS_MAX],
    tables: &'a mut Tables,
    budget: &'a mut Budget,
}

/// A unit under construction: the next hop or the record of each slot.
struct Unit {
    words: [u32; SLOTS_MAX],
    /// The slots that have a record.
    deeper: u128,
    records: [Told; SLOTS_MAX],
}

/// What a deeper slot is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Record(Record),
    /// A list that begins at this word.
    List(usize, List),
}

impl Unit {
    fn new() -> Self {
        Self { words: [0; SLOTS_MAX], deeper: 0, records: [Told::Record(Record(0)); SLOTS_MAX] }
    }
}

/// A next hop that no slot holds: all ones of the widest value.
const WIDEST: u32 = u32::MAX;

impl Filling<'_> {
    /// Gives the addresses before `end` the current next hop.
    fn fill(&mut self, end: u64) -> Result<(), OutOfMemory> {
        let rest_bits = self.windows.rest_bits;
        let (rests, slots) = (self.windows.rests() as u64, self.windows.slots() as u64);
        let mut at = core::mem::replace(&mut self.done, end);
        while at < end {
            let (rest, slot) = (at % rests, (at >> rest_bits) % slots);
            if rest != 0 || end - at < rests {
                let stop = (at - rest + rests).min(end);
                self.rests[rest as usize..(rest + stop - at) as usize].fill(self.word);
                at = stop;
                if at.is_multiple_of(rests) {
                    let told = self.tables.tell(&self.rests[..rests as usize], self.budget)?;
                    self.deepen(slot as usize, 1, told);
                    self.close_if_full(slot + 1)?;
                }
                continue;
            }
            let whole = (end - at) >> rest_bits;
            if slot == 0 && whole >= slots && self.word != WIDEST {
                let units = whole / slots;
                self.tables.uniform(units as usize, self.word, self.budget)?;
                at += (units * slots) << rest_bits;
                continue;
            }
            let stop = (slot + whole).min(slots);
            let (first, count) = (slot as usize, (stop - slot) as usize);
            if self.word == WIDEST {
                // Rare: one list for all of the slots.
                self.rests.fill(WIDEST);
                let told = self.tables.tell(&self.rests[..rests as usize], self.budget)?;
                self.deepen(first, count, told);
            } else {
                self.unit.words[first..first + count].fill(self.word);
            }
            at += (stop - slot) << rest_bits;
            self.close_if_full(stop)?;
        }
        Ok(())
    }

    /// Makes `count` slots from `first` on deeper.
    fn deepen(&mut self, first: usize, count: usize, told: Told) {
        self.unit.deeper |= (u128::MAX >> (128 - count)) << first;
        self.unit.records[first..first + count].fill(told);
    }

    /// Ends the open unit if `slot` is past its last one.
    fn close_if_full(&mut self, slot: u64) -> Result<(), OutOfMemory> {
        if slot < self.windows.slots() as u64 {
            return Ok(());
        }
        self.tables.unit(&self.unit, self.budget)?;
        self.unit.deeper = 0;
        Ok(())
    }
}

/// The tables under construction.
struct Tables {
    windows: Windows,
    step: u32,
    /// Entries; those of uniform units have their number in `uniform` as place.
    direct: Buffer<u32>,
    units: Buffer<u64>,
    allotted: Units,
    /// Next hops of the uniform units, in order; a run of equal ones is one element.
    uniform: Buffer<u32>,
    /// Number of words needed, which may exceed what places can address.
    needed: u64,
}

impl Tables {
    fn new(windows: Windows, step: u32, budget: &mut Budget) -> Result<Self, OutOfMemory> {
        let direct = budget.buffer(1 << windows.direct_bits)?;
        let (units, uniform) = (Buffer::new(), Buffer::new());
        Ok(Self { windows, step, direct, units, allotted: Units::default(), uniform, needed: 0 })
    }

    /// Returns whether places can address all words.
    fn fits(&self) -> bool {
        self.needed <= Entry::PLACES << self.step
    }

    /// Makes room for more words, and counts them. Returns false past what places can address: words are then only counted.
    fn reserve(&mut self, words: usize, budget: &mut Budget) -> Result<bool, OutOfMemory> {
        self.needed += words as u64;
        let fits = self.fits();
        if fits {
            budget.reserve(&mut self.units, words)?;
        }
        Ok(fits)
    }

    /// Ends a unit: the next one begins at a place.
    fn close(&mut self) {
        let end = self.units.len().next_multiple_of(1 << self.step);
        self.units.resize(end, 0);
        // Places reach less far than 32 bits.
        let _ = self.allotted.append(end as u32 - self.allotted.end());
    }

    /// Returns what a slot with these next hops is told. A list is written at once, before the rest of its unit.
    fn tell(&mut self, rests: &[u32], budget: &mut Budget) -> Result<Told, OutOfMemory> {
        if let Some(record) = Record::narrow(rests) {
            return Ok(Told::Record(record));
        }
        let mut words = 0;
        push_list(rests, |_| words += 1);
        let begin = self.units.len();
        if !self.reserve(words, budget)? {
            return Ok(Told::Record(Record(0)));
        }
        let list = push_list(rests, |word| self.units.push(word));
        Ok(Told::List(begin, list))
    }

    /// Appends the entry of a unit, and its words.
    fn unit(&mut self, unit: &Unit, budget: &mut Budget) -> Result<(), OutOfMemory> {
        let half = self.windows.half();
        // Ones of every width for deeper slots.
        let at = |slot: usize| if unit.deeper >> slot & 1 == 1 { WIDEST } else { unit.words[slot] };
        let changed = |slot: &usize| at(*slot) != at(slot - 1);
        let bitmap = |from: usize| {
            (from + 1..from + half).filter(changed).fold(0u64, |bits, slot| bits | 1 << (slot - from))
        };
        let [first, second] = [0, half].map(bitmap);
        let greatest = (0..2 * half).filter(|slot| unit.deeper >> slot & 1 == 0).map(at).max().unwrap_or(0);
        let width = width_of(greatest);

        let records = unit.deeper.count_ones() as usize;
        let head = if records > 0 { records + 2 } else { 0 };
        let before = (self.units.len() + head).next_multiple_of(1 << self.step) - self.units.len();
        let mut uniform = [first == 0, second == 0];
        let values = |bits: u64| bits.count_ones() as usize + 1;
        let (after, offset) = if uniform == [false; 2] {
            let offset = 1 + value_words(values(first), width);
            (offset + 1 + value_words(values(second), width), offset)
        } else {
            (1 + value_words(values(first) + values(second), width), 0)
        };
        if !self.reserve(before + after.next_multiple_of(1 << self.step), budget)? {
            self.direct.push(0);
            return Ok(());
        }
        let units = &mut self.units;
        let place = units.len() + before;
        units.resize(place - head, 0);
        for slot in (0..2 * half).rev().filter(|slot| unit.deeper >> slot & 1 == 1) {
            units.push(match unit.records[slot] {
                Told::Record(record) => record.0,
                Told::List(begin, list) => Record::list(List { distance: place - begin, ..list }).0,
            });
        }
        if records > 0 {
            units.push((unit.deeper >> half) as u64 & (u64::MAX >> (64 - half)));
            units.push(unit.deeper as u64 & (u64::MAX >> (64 - half)));
        }
        let in_half = |from: usize, bits: u64| {
            core::iter::once(0)
                .chain((1..half).filter(move |slot| bits >> slot & 1 == 1))
                .map(move |slot| at(from + slot).min(deeper(width)))
        };
        if offset > 0 {
            for (from, bits) in [(0, first), (half, second)] {
                units.push(bits);
                push_values(width, in_half(from, bits), |word| units.push(word));
            }
        } else {
            // The value of the uniform half comes first, and a change at the first slot of the other leads past it.
            let (from, bits) = if uniform[0] { (half, second) } else { (0, first) };
            uniform[1] &= !uniform[0];
            units.push(bits | 1);
            let alone = in_half(half - from, 0);
            push_values(width, alone.chain(in_half(from, bits)), |word| units.push(word));
        }
        self.direct.push(Entry::new((place >> self.step) as u32, offset as u32, width, uniform).0);
        self.close();
        Ok(())
    }

    /// Appends entries of units that have one value each.
    fn uniform(&mut self, units: usize, word: u32, budget: &mut Budget) -> Result<(), OutOfMemory> {
        if self.uniform.last() != Some(&word) {
            budget.push(&mut self.uniform, word)?;
        }
        let number = self.uniform.len() as u32 - 1;
        self.direct.resize(self.direct.len() + units, Entry::UNIFORM | number << Entry::PLACE_AT);
        Ok(())
    }

    /// Writes the uniform units, one for each next hop, and the padding.
    fn finish(&mut self, budget: &mut Budget) -> Result<(), OutOfMemory> {
        // Sorted by next hop, so that equal ones are neighbours and get one unit; the low half remembers the number.
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
                if !self.reserve(2usize.next_multiple_of(1 << self.step), budget)? {
                    break;
                }
                place = self.units.len() >> self.step;
                // In place of a bitmap, a word that changes no answer.
                self.units.push(0);
                self.units.push(word.into());
                self.close();
            }
            self.uniform[entry as u32 as usize] = place as u32;
        }
        budget.free(order);
        for entry in self.direct.iter_mut() {
            if *entry & Entry::UNIFORM == Entry::UNIFORM {
                let number = (*entry & Entry::PLACE) >> Entry::PLACE_AT;
                *entry = Entry::UNIFORM | self.uniform[number as usize] << Entry::PLACE_AT;
            }
        }
        budget.free(core::mem::take(&mut self.uniform));
        if self.reserve(PADDING, budget)? {
            self.units.resize(self.units.len() + PADDING, 0);
        }
        budget.shrink(&mut self.units);
        Ok(())
    }
}
