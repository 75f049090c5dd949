//! Takes a unit apart and puts it together: the next hops of its slots, and the words that lookups read.

use core::ops::Range;

use crate::memory::{Budget, OutOfMemory};

use super::layout::{Entry, SLOTS_MAX, Windows, deeper, value_words, width_of};
use super::record::{List, Record, list_words, push_list, push_values};
use super::scalar::View;

/// A next hop that no slot holds: all ones of the widest value. It is the word of a deeper slot.
pub(super) const WIDEST: u32 = u32::MAX;

/// The next hop or the record of each slot.
pub(super) struct UnitContent {
    pub(super) words: [u32; SLOTS_MAX],
    /// The records of the slots whose word is [`WIDEST`].
    records: [Deeper; SLOTS_MAX],
}

/// The content of a deeper slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deeper {
    Record(Record),
    /// A list that begins at this word of the unit.
    List(usize, List),
}

impl UnitContent {
    pub(super) fn new() -> Self {
        Self { words: [0; SLOTS_MAX], records: [Deeper::Record(Record(0)); SLOTS_MAX] }
    }

    /// Makes slots deeper.
    pub(super) fn deepen(&mut self, slots: Range<usize>, deeper: Deeper) {
        self.words[slots.clone()].fill(WIDEST);
        self.records[slots].fill(deeper);
    }

    /// Returns the next hop of all addresses, if it is the same and slots can hold it.
    pub(super) fn uniform(&self, windows: Windows) -> Option<u32> {
        let words = &self.words[..windows.slots()];
        let first = words[0];
        (first != WIDEST && words.iter().all(|&word| word == first)).then_some(first)
    }
}

/// How lookups read a unit that was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnitLayout {
    /// Words before the first bitmap, in whole places.
    before: usize,
    offset: u32,
    width: u32,
    uniform: [bool; 2],
}

impl UnitLayout {
    /// Returns the entry of the unit, if its words begin at this place.
    pub(super) fn entry(self, place: u32, step: u32) -> Entry {
        Entry::new(place + (self.before >> step) as u32, self.offset, self.width, self.uniform)
    }
}

impl View<'_> {
    /// Returns the words of the unit of an entry. The unit must not be a uniform one.
    pub(super) fn extent(&self, entry: Entry) -> Range<usize> {
        let (place, width) = (entry.word(self.step), entry.width());
        let second = place + entry.offset();
        // Each change begins another value, after the value of the first slots.
        let values = |at: usize| self.word_at(at).count_ones() as usize + 1;
        let end = second + 1 + value_words(values(second), width);
        // No bit of an entry tells whether there are records: only a value of all ones does.
        let is_deeper = |at: usize| {
            (0..values(at)).any(|number| self.value(width, 8 * (at + 1) + (number << width)) == deeper(width))
        };
        let mut begin = place;
        // Halves that share a bitmap have an offset of 0, and are examined once.
        if is_deeper(place) || second > place && is_deeper(second) {
            let maps = self.word_at(place - 1).count_ones() + self.word_at(place - 2).count_ones();
            let records = place - 2 - maps as usize..place - 2;
            // Lists lie before the records, so the farthest one begins the unit.
            let lists = records.clone().filter_map(|record| Record(self.word_at(record)).as_list());
            begin = lists.fold(records.start, |begin, list| begin.min(place - list.distance));
        }
        begin..end
    }
}

/// Writes the words of units, one unit at a time.
#[derive(Debug)]
pub(super) struct UnitWriter {
    windows: Windows,
    /// Places count 2^`step` words.
    step: u32,
    words: Vec<u64>,
}

impl UnitWriter {
    pub(super) fn new(windows: Windows, step: u32) -> Self {
        Self { windows, step, words: Vec::new() }
    }

    /// Forgets the words.
    pub(super) fn clear(&mut self) {
        self.words.clear();
    }

    /// Returns the words of the finished unit, in whole places.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Frees the memory.
    pub(super) fn free(self, budget: &mut Budget) {
        budget.free(self.words);
    }

    /// Returns the content of a slot with these next hops. A list is written at once, before the rest of its unit.
    pub(super) fn deeper(&mut self, rests: &[u32], budget: &mut Budget) -> Result<Deeper, OutOfMemory> {
        if let Some(record) = Record::narrow(rests) {
            return Ok(Deeper::Record(record));
        }
        let begin = self.words.len();
        budget.reserve(&mut self.words, self.windows.list_words())?;
        let list = push_list(rests, |word| self.words.push(word));
        Ok(Deeper::List(begin, list))
    }

    /// Takes the unit of an entry apart. The contents of slots for which `keeps` returns true are taken over.
    pub(super) fn read(
        &mut self,
        view: &View<'_>,
        entry: Entry,
        unit: &mut UnitContent,
        keeps: impl Fn(usize) -> bool,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        self.clear();
        let windows = self.windows;
        let (half, place, width) = (windows.half(), entry.word(self.step), entry.width());
        if entry.is_shared() {
            unit.words[..2 * half].fill(view.word_at(place + 1) as u32);
            return Ok(());
        }
        let mut records = 0;
        for number in 0..2 {
            let at = place + if number == 1 { entry.offset() } else { 0 };
            // In a unit with one bitmap, it belongs to the other half.
            let mut changes = if entry.is_uniform(number) { 0 } else { view.word_at(at) };
            // A change at the first slot is there to skip the value of the other half.
            let mut rank = (changes & 1) as usize;
            changes &= !1;
            let mut from = 0;
            loop {
                let to = (changes.trailing_zeros() as usize).min(half);
                let value = view.value(width, 8 * (at + 1) + (rank << width));
                let slots = number * half + from..number * half + to;
                if value != deeper(width) {
                    unit.words[slots].fill(value);
                } else {
                    for slot in slots {
                        // The record of the lowest slot is next to the maps, and those of higher slots are before it.
                        let record = Record(view.word_at(place - 3 - records));
                        records += 1;
                        unit.words[slot] = WIDEST;
                        // Other records are counted but not copied, because the caller fills their slots again.
                        if keeps(slot) {
                            unit.records[slot] = self.keep(view, place, record, budget)?;
                        }
                    }
                }
                if to == half {
                    break;
                }
                changes &= changes - 1;
                (from, rank) = (to, rank + 1);
            }
        }
        Ok(())
    }

    /// Takes over the content of a slot of the unit at a place.
    fn keep(
        &mut self,
        view: &View<'_>,
        place: usize,
        record: Record,
        budget: &mut Budget,
    ) -> Result<Deeper, OutOfMemory> {
        let Some(list) = record.as_list() else { return Ok(Deeper::Record(record)) };
        let (from, begin) = (place - list.distance, self.words.len());
        budget.reserve(&mut self.words, self.windows.list_words())?;
        let count = list_words(self.windows, list, |at| view.word_at(from + at));
        self.words.extend((from..from + count).map(|at| view.word_at(at)));
        Ok(Deeper::List(begin, list))
    }

    /// Writes a unit after its lists.
    pub(super) fn finish(
        &mut self,
        unit: &UnitContent,
        budget: &mut Budget,
    ) -> Result<UnitLayout, OutOfMemory> {
        let half = self.windows.half();
        let (all, each) = (&unit.words[..2 * half], 1 << self.step);
        let bitmap = |words: &[u32]| {
            let pairs = words.windows(2).enumerate();
            pairs.fold(0u64, |bits, (at, pair)| bits | u64::from(pair[0] != pair[1]) << (at + 1))
        };
        let (first, second) = (bitmap(&all[..half]), bitmap(&all[half..]));
        // One more than the greatest next hop. Deeper slots wrap around to 0, so that they do not count.
        let beyond = all.iter().fold(0, |most, &word| most.max(word.wrapping_add(1)));
        let width = width_of(beyond.saturating_sub(1));
        let records = all.iter().filter(|&&word| word == WIDEST).count();
        let head = if records > 0 { records + 2 } else { 0 };
        let values = |bits: u64| bits.count_ones() as usize + 1;
        // The most words that there can be.
        let most = head + each + 2 + value_words(values(first) + values(second), width) + 1 + each;
        budget.reserve(&mut self.words, most)?;

        let before = (self.words.len() + head).next_multiple_of(each);
        // Zeros go before the records, because lookups find those from the first bitmap backwards.
        self.words.resize(before - head, 0);
        if records > 0 {
            let mut maps = [0u64; 2];
            // The highest slot first, because lookups count records backwards from the maps.
            for slot in (0..2 * half).rev().filter(|&slot| all[slot] == WIDEST) {
                maps[slot / half] |= 1 << (slot % half);
                self.words.push(match unit.records[slot] {
                    Deeper::Record(record) => record.0,
                    Deeper::List(begin, list) => Record::list(List { distance: before - begin, ..list }).0,
                });
            }
            self.words.extend([maps[1], maps[0]]);
        }
        let mut uniform = [first == 0, second == 0];
        let mut offset = 0;
        let in_half = |from: usize, bits: u64, alone: Option<u32>, words: &mut Vec<u64>| {
            // This turns `WIDEST` into the number that marks a deeper slot in this width.
            let cut = |word: u32| word.min(deeper(width));
            let mut left = bits & !1;
            let changes = core::iter::from_fn(|| {
                let slot = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(slot)
            });
            let slots = alone.into_iter().chain([all[from]]).map(cut);
            let values = slots.chain(changes.map(|slot| cut(all[from + slot])));
            words.push(bits);
            push_values(width, values, |word| words.push(word));
        };
        if uniform == [false; 2] {
            in_half(0, first, None, &mut self.words);
            offset = (self.words.len() - before) as u32;
            in_half(half, second, None, &mut self.words);
        } else {
            // The value of the uniform half comes first. A change at the first slot of the other half skips it.
            let (from, bits) = if uniform[0] { (half, second) } else { (0, first) };
            // Both halves may have one value each. Then only the first counts as uniform, because both bits together
            // mean a unit of one value; the second half's value is read after the change at its first slot.
            uniform[1] &= !uniform[0];
            in_half(from, bits | 1, Some(all[half - from]), &mut self.words);
        }
        let end = self.words.len().next_multiple_of(each);
        self.words.resize(end, 0);
        Ok(UnitLayout { before, offset, width, uniform })
    }
}
