//! Routes to layout: one sweep over the ranges that appends to both tables.

use core::marker::PhantomData;

use crate::fib::BuildError;
use crate::fib::parts::ranges::{self, Merge};
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Key, NextHop, Prefix, Routes};

use super::layout::{Entry, Form, Geometry, MAP_BITS, PADDING, map_words, width_mask};
use super::{Chunks, NAME};

impl<K: Key> Chunks<K> {
    /// Builds the tables.
    ///
    /// # Errors
    /// When memory runs out, and when the chunks need more than 2^26 words.
    ///
    /// # Panics
    /// For keys of more than 32 bits.
    pub fn build(routes: &dyn Routes<K>, form: Form, limits: Limits) -> Result<Self, BuildError> {
        assert!(K::BITS <= 32, "{NAME} is for IPv4");
        let memory = |error| BuildError::memory(NAME, error);
        let mut filling = Filling::new(Geometry::new(form, K::BITS), limits).map_err(memory)?;
        ranges::try_for_each(routes, Prefix::ALL, Merge::EqualNeighbours, |range| {
            filling.fill(range.start.to_bits() as u64)?;
            filling.word = NextHop::word(range.next_hop);
            Ok(())
        })
        .and_then(|()| filling.fill(1 << K::BITS))
        .map_err(memory)?;
        filling.finish()
    }
}

/// A slot whose answer is not one next hop, in an array of slots.
const DEEP: u64 = 1 << 32;

/// Most slots of a chunk.
const SLOTS_MAX: usize = 256;

/// Most changes that a sparse chunk can hold: the bytes of a word.
const SPARSE_MAX: usize = 4;

/// Tables under construction, filled from the first address on.
struct Filling {
    geometry: Geometry,
    direct: Buffer<u32>,
    area: Area,
    deep: Area,
    budget: Budget,
    /// Addresses below this one are done.
    done: u64,
    /// Next hop of the addresses from here on.
    word: u32,
    /// The chunk that is open: next hops, or [`DEEP`] and the entry of a deeper chunk.
    slots: [u64; SLOTS_MAX],
    /// The slot that is open where its addresses are not all of one range.
    rest: [u64; SLOTS_MAX],
}

/// An area under construction.
#[derive(Default)]
struct Area {
    words: Buffer<u32>,
    /// Words it needs, beyond the limit too.
    needed: u64,
}

impl Area {
    /// Room for so many more words and the padding; false beyond what offsets can name, where words are only counted.
    fn reserve(&mut self, words: usize, budget: &mut Budget) -> Result<bool, OutOfMemory> {
        self.needed += words as u64;
        let fits = self.needed + PADDING as u64 <= WORDS_MAX;
        if fits {
            budget.reserve(&mut self.words, words + PADDING)?;
        }
        Ok(fits)
    }

    fn finish(mut self, budget: &mut Budget) -> Result<Buffer<u32>, BuildError> {
        let needed = self.needed + PADDING as u64;
        if needed > WORDS_MAX {
            return Err(BuildError::limit(NAME, "words of chunks", WORDS_MAX, needed));
        }
        budget.reserve(&mut self.words, PADDING).map_err(|error| BuildError::memory(NAME, error))?;
        self.words.resize(self.words.len() + PADDING, 0);
        budget.shrink(&mut self.words);
        Ok(self.words)
    }
}

impl Filling {
    fn new(geometry: Geometry, limits: Limits) -> Result<Self, OutOfMemory> {
        let mut budget = Budget::new(limits);
        Ok(Self {
            geometry,
            direct: budget.buffer(1 << geometry.direct_bits)?,
            area: Area::default(),
            deep: Area::default(),
            budget,
            done: 0,
            word: 0,
            slots: [0; SLOTS_MAX],
            rest: [0; SLOTS_MAX],
        })
    }

    /// Gives the addresses below `end` the current next hop.
    fn fill(&mut self, end: u64) -> Result<(), OutOfMemory> {
        let (rest_bits, chunk_bits) = (self.geometry.rest_bits, self.geometry.chunk_bits);
        let (rests, slots) = (1u64 << rest_bits, 1u64 << chunk_bits);
        let mut at = core::mem::replace(&mut self.done, end);
        while at < end {
            let (rest, slot) = (at % rests, (at >> rest_bits) % slots);
            if rest != 0 || end - at < rests {
                let stop = (at - rest + rests).min(end);
                self.rest[rest as usize..(rest + stop - at) as usize].fill(u64::from(self.word));
                at = stop;
                if at.is_multiple_of(rests) {
                    self.slots[slot as usize] = DEEP | u64::from(self.close_rest()?);
                    self.close_if_full(slot + 1)?;
                }
                continue;
            }
            let whole = (end - at) >> rest_bits;
            if slot == 0 && whole >= slots && self.word & Entry::CHUNK == 0 {
                let entries = whole >> chunk_bits;
                self.direct.resize(self.direct.len() + entries as usize, self.word);
                at += entries << (chunk_bits + rest_bits);
                continue;
            }
            let stop = (slot + whole).min(slots);
            // All ones say "deeper" at every width, so the next hop of that id stands one level down.
            let value = match self.word {
                u32::MAX => DEEP | u64::from(self.close_whole()?),
                word => u64::from(word),
            };
            self.slots[slot as usize..stop as usize].fill(value);
            at += (stop - slot) << rest_bits;
            self.close_if_full(stop)?;
        }
        Ok(())
    }

    /// Ends a slot that is all of the current next hop but cannot hold it.
    fn close_whole(&mut self) -> Result<u32, OutOfMemory> {
        self.rest.fill(u64::from(self.word));
        self.close_rest()
    }

    /// Ends the open slot: the entry of the deeper chunk that holds its answers.
    fn close_rest(&mut self) -> Result<u32, OutOfMemory> {
        let slots = self.rest;
        self.append(&slots[..1 << self.geometry.rest_bits], Style::Rest)
    }

    /// Ends the open chunk where `slot` is behind its last one.
    fn close_if_full(&mut self, slot: u64) -> Result<(), OutOfMemory> {
        if slot < 1 << self.geometry.chunk_bits {
            return Ok(());
        }
        let slots = self.slots;
        let slots = &slots[..1 << self.geometry.chunk_bits];
        if slots.iter().any(|&slot| slot >= DEEP) {
            self.append_deep(slots)?;
        }
        let style = match self.geometry.form {
            Form::Rank => Style::Rank,
            Form::Dense => Style::Dense,
        };
        let entry = self.append(slots, style)?;
        self.direct.push(entry);
        Ok(())
    }

    /// Appends the list of deeper chunks, last first, and the map that says which slots they belong to; the place of
    /// the map in front of the chunk.
    fn append_deep(&mut self, slots: &[u64]) -> Result<(), OutOfMemory> {
        let count = slots.iter().filter(|&&slot| slot >= DEEP).count();
        let fits = self.deep.reserve(count + self.geometry.deep_words() as usize, &mut self.budget)?;
        if self.area.reserve(1, &mut self.budget)? && fits {
            let deep = &mut self.deep.words;
            deep.extend(slots.iter().rev().filter(|&&slot| slot >= DEEP).map(|&slot| slot as u32));
            self.area.words.push(deep.len() as u32);
            append_map(deep, slots.iter().map(|&slot| slot >= DEEP));
        }
        Ok(())
    }

    /// Appends a chunk; its entry.
    fn append(&mut self, slots: &[u64], style: Style) -> Result<u32, OutOfMemory> {
        let coded = |slot: u64| if slot >= DEEP { DEEP } else { slot };
        let changes = || (1..slots.len()).filter(|&at| coded(slots[at]) != coded(slots[at - 1]));
        let count = changes().count();
        let spread = changes().fold(slots.len(), |all, at| all | at).trailing_zeros();
        let sparse = style == Style::Rest && count <= SPARSE_MAX;
        let shift = if sparse { Entry::SPARSE } else { spread.min(Entry::SPARSE - 1) };
        let step = if sparse { 1 } else { 1 << shift };
        let width = width(slots, style != Style::Rest);

        let values = if style == Style::Dense { slots.len() / step } else { count + 1 };
        let value_words = (values << width).div_ceil(4);
        let head_words = match style {
            Style::Dense => 0,
            _ if sparse => 1,
            _ => map_words((slots.len() / step) as u32) as usize,
        };
        let area = if style == Style::Rest { &mut self.deep } else { &mut self.area };
        let offset = area.needed;
        if !area.reserve(head_words + value_words, &mut self.budget)? {
            return Ok(Entry::CHUNK);
        }
        let area = &mut area.words;
        if sparse {
            area.push(changes().rev().fold(u32::MAX, |word, at| word << 8 | (at - 1) as u32));
        } else if style != Style::Dense {
            let starts = (0..slots.len()).step_by(step);
            append_map(area, starts.map(|at| at > 0 && coded(slots[at]) != coded(slots[at - 1])));
        }
        let first = area.len();
        area.resize(first + value_words, 0);
        let mut put = |at: usize, slot: u64| {
            let (byte, value) = (at << width, slot.min(u64::from(u32::MAX)) as u32 & width_mask(width));
            area[first + byte / 4] |= value << (8 * (byte % 4));
        };
        if style == Style::Dense {
            slots.iter().step_by(step).enumerate().for_each(|(at, &slot)| put(at, slot));
        } else {
            put(0, slots[0]);
            changes().enumerate().for_each(|(at, slot)| put(at + 1, slots[slot]));
        }
        Ok(Entry::chunk(shift, width, offset as u32).0)
    }

    fn finish<K: Key>(mut self) -> Result<Chunks<K>, BuildError> {
        let area = self.area.finish(&mut self.budget)?;
        let deep = self.deep.finish(&mut self.budget)?;
        Ok(Chunks { geometry: self.geometry, direct: self.direct, area, deep, keys: PhantomData })
    }
}

/// Most words of an area: what the offset of an entry can name.
const WORDS_MAX: u64 = Entry::OFFSET as u64 + 1;

/// What a chunk looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// First level, a map and values.
    Rank,
    /// First level, values.
    Dense,
    /// Below the first level: a map or a few changes, and values.
    Rest,
}

/// Binary logarithm of the bytes that every value fits; where all ones are taken, with room for them.
fn width(slots: &[u64], ones_are_taken: bool) -> u32 {
    let greatest = slots.iter().filter(|&&slot| slot < DEEP).max().copied().unwrap_or(0);
    let fits = |width| greatest + u64::from(ones_are_taken) <= u64::from(width_mask(width));
    (0..2).find(|&width| fits(width)).unwrap_or(2)
}

/// Appends a map: a word for every [`MAP_BITS`] slots, with the set bits of the words before it counted.
fn append_map(area: &mut Buffer<u32>, bits: impl Iterator<Item = bool>) {
    let (mut word, mut count) = (0, 0);
    let mut slots = 0;
    for bit in bits {
        if slots == MAP_BITS {
            area.push(word);
            count += (word & 0x00ff_ffff).count_ones();
            (word, slots) = (count << MAP_BITS, 0);
        }
        word |= u32::from(bit) << slots;
        slots += 1;
    }
    area.push(word);
}
