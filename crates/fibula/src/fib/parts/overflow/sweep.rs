//! Turns ranges into slots, chunk by chunk, and their overflow.

use core::ops::Range;

use crate::fib::BuildError;
use crate::fib::parts::bitmap;
use crate::fib::parts::ranges::{self, Merge};
use crate::memory::{Budget, Buffer, Cell, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Routes};
use crate::simd::Cell32;

use super::SlotWindows;
use super::record::{OverflowEntry, SlotRecord, WIDTHS, holds, width_mask, width_of};

/// One route of this many may have a next hop that does not fit a slot. Routes are weighted by the space that they
/// cover. More such routes would cost more time and memory in the overflow than wider values do.
const RARE: u64 = 64;

/// Returns the width of the values of slots for a table, as a binary logarithm of bytes.
pub(crate) fn width_for<K: Key>(routes: &dyn Routes<K>) -> u32 {
    let half = K::BITS / 2;
    let (mut all, mut beyond) = (0, [0u64; WIDTHS]);
    let Ok(()) = routes.try_for_each(Prefix::ALL, |route| {
        // Weighted by space, because a short prefix fills many slots, and each of them would go to the overflow.
        let share = 1 + (1u64 << half >> route.prefix.len().min(63));
        all += share;
        for (width, beyond) in beyond.iter_mut().enumerate() {
            *beyond += if holds(width as u32, route.next_hop.id()) { 0 } else { share };
        }
        Ok::<(), core::convert::Infallible>(())
    });
    (0..WIDTHS as u32 - 1).find(|&width| beyond[width as usize] <= all / RARE).unwrap_or(2)
}

/// Words of zeros at the end of an area, so that 32 bits can be read from its last byte on and it is never empty.
pub(crate) const PADDING: usize = 1;

/// Most words of an area: as many as the offset of an entry can address.
pub(crate) const WORDS_MAX: u64 = OverflowEntry::OFFSET as u64 + 1;

/// Marks a deeper slot in an array of slots.
pub(crate) const DEEP: u64 = 1 << 32;

/// Most slots of a chunk, and most addresses of a slot.
pub(crate) const SLOTS_MAX: usize = 256;

/// Most changes that a sparse chunk can hold: the bytes of a word.
const SPARSE_MAX: usize = 4;

/// What an engine builds from slots, which come in the order of their addresses.
pub(crate) trait Level {
    /// Returns whether a slot of a chunk can hold this next hop; never for 2^32 - 1.
    fn holds(&self, word: u32) -> bool;

    /// Returns whether a direct entry can hold this next hop.
    fn holds_whole(&self, word: u32) -> bool;

    /// Appends direct entries whose addresses all have the next hop `word`.
    fn uniform(&mut self, entries: usize, word: u32, budget: &mut Budget) -> Result<(), OutOfMemory>;

    /// Appends a direct entry for these slots: next hops, or [`DEEP`] with the map at word `map` of the area below.
    fn chunk(
        &mut self,
        slots: &[u64],
        map: Option<u32>,
        below: &mut Area,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory>;
}

/// Passes the slots of `routes` to `level`. Returns the overflow area.
pub(crate) fn sweep<K: Key, L: Level>(
    routes: &dyn Routes<K>,
    windows: SlotWindows,
    level: &mut L,
    budget: &mut Budget,
) -> Result<Area, OutOfMemory> {
    let mut filling = SlotFiller::new(windows);
    let mut word = 0;
    ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
        filling.fill(range.start.to_bits() as u64, word, level, budget)?;
        word = NextHop::word(range.next_hop);
        Ok(())
    })?;
    filling.fill(1 << K::BITS, word, level, budget)?;
    Ok(filling.below)
}

/// Words under construction.
#[derive(Default)]
pub(crate) struct Area {
    pub(crate) words: Buffer<u32>,
    /// Number of words needed, which may exceed the limit.
    pub(crate) needed: u64,
}

impl Area {
    /// Forgets the words.
    pub(crate) fn clear(&mut self) {
        self.words.truncate(0);
        self.needed = 0;
    }

    /// Reserves room for more words and the padding. Returns false past the limit of offsets, where words are only
    /// counted.
    pub(crate) fn reserve(&mut self, words: usize, budget: &mut Budget) -> Result<bool, OutOfMemory> {
        self.needed += words as u64;
        let fits = self.needed + PADDING as u64 <= WORDS_MAX;
        if fits {
            budget.reserve(&mut self.words, words + PADDING)?;
        }
        Ok(fits)
    }

    /// Returns the words with their padding. `name` is that of the structure.
    ///
    /// # Errors
    /// When memory runs out, or there are more words than offsets can address.
    pub(crate) fn finish(
        mut self,
        name: &'static str,
        budget: &mut Budget,
    ) -> Result<Buffer<u32>, BuildError> {
        let needed = self.needed + PADDING as u64;
        if needed > WORDS_MAX {
            return Err(BuildError::limit(name, "words of chunks", WORDS_MAX, needed));
        }
        budget.reserve(&mut self.words, PADDING).map_err(|error| BuildError::memory(name, error))?;
        self.words.resize(self.words.len() + PADDING, 0);
        budget.shrink(&mut self.words);
        Ok(self.words)
    }
}

/// Slots that are filled in ascending order of addresses, chunk by chunk.
pub(crate) struct SlotFiller {
    windows: SlotWindows,
    /// What is below the chunks.
    pub(crate) below: Area,
    /// The first address that has no next hop yet.
    pub(crate) done: u64,
    /// The open chunk: next hops, or [`DEEP`].
    slots: [u64; SLOTS_MAX],
    /// The records of its deeper slots.
    records: [SlotRecord; SLOTS_MAX],
    /// The open slot, if its addresses are not all of one range.
    rest: [u32; SLOTS_MAX],
}

impl SlotFiller {
    pub(crate) fn new(windows: SlotWindows) -> Self {
        let (slots, records, rest) = ([0; SLOTS_MAX], [SlotRecord([0; 2]); SLOTS_MAX], [0; SLOTS_MAX]);
        Self { windows, below: Area::default(), done: 0, slots, records, rest }
    }

    /// Gives the addresses before `end` a next hop.
    pub(crate) fn fill<L: Level>(
        &mut self,
        end: u64,
        word: u32,
        level: &mut L,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        let SlotWindows { slot_bits, rest_bits, .. } = self.windows;
        let (rests, slots) = (1u64 << rest_bits, 1u64 << slot_bits);
        let mut at = core::mem::replace(&mut self.done, end);
        while at < end {
            let (rest, slot) = (at % rests, (at >> rest_bits) % slots);
            if rest != 0 || end - at < rests {
                let stop = (at - rest + rests).min(end);
                self.rest[rest as usize..(rest + stop - at) as usize].fill(word);
                at = stop;
                if at.is_multiple_of(rests) {
                    self.records[slot as usize] = self.close_rest(budget)?;
                    self.slots[slot as usize] = DEEP;
                    self.close_if_full(slot + 1, level, budget)?;
                }
                continue;
            }
            let whole = (end - at) >> rest_bits;
            if slot == 0 && whole >= slots && level.holds_whole(word) {
                let entries = whole >> slot_bits;
                level.uniform(entries as usize, word, budget)?;
                at += entries << (slot_bits + rest_bits);
                continue;
            }
            let stop = (slot + whole).min(slots);
            let open = slot as usize..stop as usize;
            if level.holds(word) {
                self.slots[open].fill(u64::from(word));
            } else {
                self.rest.fill(word);
                let record = self.close_rest(budget)?;
                self.records[open.clone()].fill(record);
                self.slots[open].fill(DEEP);
            }
            at += (stop - slot) << rest_bits;
            self.close_if_full(stop, level, budget)?;
        }
        Ok(())
    }

    /// Ends the open chunk if `slot` is past its last one.
    fn close_if_full<L: Level>(
        &mut self,
        slot: u64,
        level: &mut L,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        if slot < self.windows.slots() as u64 { Ok(()) } else { self.close(level, budget) }
    }

    /// Ends the open chunk.
    pub(crate) fn close<L: Level>(&mut self, level: &mut L, budget: &mut Budget) -> Result<(), OutOfMemory> {
        let count = self.windows.slots();
        let (slots, records) = (&self.slots[..count], &self.records[..count]);
        let map = if slots.contains(&DEEP) {
            Some(append_records(&mut self.below, slots, records, budget)?)
        } else {
            None
        };
        level.chunk(slots, map, &mut self.below, budget)
    }

    /// Opens a chunk with these values, of which this one says that a slot is deeper. The answers of deeper slots that
    /// `keeps` are taken over from an area that has the map of the chunk at this word; nothing else is below.
    pub(crate) fn open<C: Cell32>(
        &mut self,
        values: impl Iterator<Item = u32>,
        deeper: u32,
        (area, map): (&[C], usize),
        keeps: impl Fn(usize) -> bool,
        budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        self.below.clear();
        let (mut rank, mut last) = (0, None);
        for (slot, value) in values.enumerate() {
            self.slots[slot] = u64::from(value);
            if value != deeper {
                continue;
            }
            rank += 1;
            self.slots[slot] = DEEP;
            let record = SlotRecord([area[map - 2 * rank].read(), area[map - 2 * rank + 1].read()]);
            let Some(entry) = record.entry().filter(|_| keeps(slot)) else {
                self.records[slot] = record;
                continue;
            };
            // Neighbouring slots may share their wide chunk.
            let copy = match last {
                Some((before, copy)) if before == entry => copy,
                _ => self.copy(area, entry, budget)?,
            };
            last = Some((entry, copy));
            self.records[slot] = SlotRecord::wide(copy);
        }
        Ok(())
    }

    /// Appends a copy of a wide chunk, and returns its entry.
    fn copy<C: Cell32>(
        &mut self,
        area: &[C],
        entry: OverflowEntry,
        budget: &mut Budget,
    ) -> Result<OverflowEntry, OutOfMemory> {
        let words = wide_words(area, entry, self.windows);
        let offset = self.below.needed;
        if self.below.reserve(words.len(), budget)? {
            area[words].iter().for_each(|word| self.below.words.push(word.read()));
        }
        Ok(OverflowEntry::chunk(entry.shift(), entry.width(), offset as u32))
    }

    /// Ends the open slot. Returns its record.
    fn close_rest(&mut self, budget: &mut Budget) -> Result<SlotRecord, OutOfMemory> {
        let slots = &self.rest[..self.windows.rests()];
        if let Some(record) = SlotRecord::narrow(slots) {
            return Ok(record);
        }
        let changes = || (1..slots.len()).filter(|&at| slots[at] != slots[at - 1]);
        let count = changes().count();
        let spread = changes().fold(slots.len(), |all, at| all | at).trailing_zeros();
        let sparse = count <= SPARSE_MAX;
        let shift = if sparse { OverflowEntry::SPARSE } else { spread.min(OverflowEntry::SPARSE - 1) };
        let step = if sparse { 1 } else { 1 << shift };
        let width = width_of(slots.iter().max().copied().unwrap_or(0));
        let head_words = if sparse { 1 } else { bitmap::words((slots.len() / step) as u32) as usize };
        let offset = self.below.needed;
        if !self.below.reserve(head_words + values_words(count + 1, width), budget)? {
            return Ok(SlotRecord::wide(OverflowEntry(OverflowEntry::CHUNK)));
        }
        let area = &mut self.below.words;
        if sparse {
            area.push(changes().rev().fold(u32::MAX, |word, at| word << 8 | (at - 1) as u32));
        } else {
            let starts = (0..slots.len()).step_by(step);
            bitmap::append(area, starts.map(|at| at > 0 && slots[at] != slots[at - 1]));
        }
        append_values(area, width, core::iter::once(0).chain(changes()).map(|at| slots[at]), count + 1);
        Ok(SlotRecord::wide(OverflowEntry::chunk(shift, width, offset as u32)))
    }
}

/// Returns the words of a wide chunk.
fn wide_words<C: Cell32>(area: &[C], entry: OverflowEntry, windows: SlotWindows) -> Range<usize> {
    let start = entry.offset();
    let (changes, head) = if entry.shift() == OverflowEntry::SPARSE {
        let changes = area[start].read().to_le_bytes();
        (changes.iter().filter(|&&change| change != u8::MAX).count(), 1)
    } else {
        let head = bitmap::words((windows.rests() >> entry.shift()) as u32) as usize;
        (bitmap::rank(area[start + head - 1].read(), bitmap::MAP_BITS - 1) as usize, head)
    };
    start..start + head + values_words(changes + 1, entry.width())
}

/// Returns the words below a chunk whose map is at this word: wide ones, records, and the map.
pub(crate) fn words_below<C: Cell32>(area: &[C], map: usize, windows: SlotWindows) -> Range<usize> {
    let records = records_of(area, map, windows);
    let entries = records.clone().step_by(2).filter_map(|at| SlotRecord([area[at].read(), 0]).entry());
    let begin = entries.map(OverflowEntry::offset).fold(records.start, usize::min);
    begin..map + bitmap::words(windows.slots() as u32) as usize
}

/// Returns the words below a chunk for another place: wide chunks are that much further on, modulo 2^32.
pub(crate) fn moved<C: Cell32>(
    words: &[C],
    map: usize,
    windows: SlotWindows,
    by: u32,
) -> impl Iterator<Item = u32> {
    let records = records_of(words, map, windows);
    words.iter().map(Cell::read).enumerate().map(move |(at, word)| {
        let entry = OverflowEntry(word);
        if records.contains(&at) && entry.is_chunk() {
            word & !OverflowEntry::OFFSET | (entry.offset() as u32).wrapping_add(by) & OverflowEntry::OFFSET
        } else {
            word
        }
    })
}

/// Returns the words of the records of a chunk whose map is at this word.
fn records_of<C: Cell32>(words: &[C], map: usize, windows: SlotWindows) -> Range<usize> {
    let map_words = bitmap::words(windows.slots() as u32) as usize;
    let count = bitmap::rank(words[map + map_words - 1].read(), bitmap::MAP_BITS - 1) as usize;
    map - 2 * count..map
}

/// Returns the number of words of `count` values.
fn values_words(count: usize, width: u32) -> usize {
    (count << width).div_ceil(4)
}

/// Appends `count` values, truncated to this width.
///
/// # Panics
/// When there is no room.
pub(crate) fn append_values(
    area: &mut Buffer<u32>,
    width: u32,
    values: impl Iterator<Item = u32>,
    count: usize,
) {
    let first = area.len();
    area.resize(first + values_words(count, width), 0);
    for (at, value) in values.enumerate() {
        let byte = at << width;
        area[first + byte / 4] |= (value & width_mask(width)) << (8 * (byte % 4));
    }
}

/// Appends the records of the deeper slots, last first, and the map of these slots. Returns the place of the map. Past the
/// limit of offsets, words are only counted.
pub(crate) fn append_records(
    below: &mut Area,
    slots: &[u64],
    records: &[SlotRecord],
    budget: &mut Budget,
) -> Result<u32, OutOfMemory> {
    let count = slots.iter().filter(|&&slot| slot == DEEP).count();
    if !below.reserve(2 * count + bitmap::words(slots.len() as u32) as usize, budget)? {
        return Ok(0);
    }
    let area = &mut below.words;
    for (_, record) in slots.iter().zip(records).rev().filter(|&(&slot, _)| slot == DEEP) {
        area.extend_from_slice(&record.0);
    }
    let map = area.len() as u32;
    bitmap::append(area, slots.iter().map(|&slot| slot == DEEP));
    Ok(map)
}
