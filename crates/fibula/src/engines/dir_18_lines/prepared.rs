//! The prepared state of a change: new lines next to those that lookups reach, the entries that will lead to them, and values
//! to store in lines in place.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::HashMap;

use crate::fib::in_place::{Publication, StoredWords};
use crate::fib::parts::arena::Arena;
use crate::fib::parts::overflow::{
    Area, DEEP, Level, SLOTS_MAX, SlotRecord, SlotWindows, append_records, holds, moved, width_mask,
    words_below,
};
use crate::fib::parts::shadow::Shadow;
use crate::memory::{self, Budget, Cell, Memory, OutOfMemory, Shared};
use crate::simd::LINE_WORDS;

use super::layout::line_words;

mod tidy;

/// Numbers of the arrays.
pub(super) const DIRECT: u8 = 0;
pub(super) const LINES: u8 = 1;
pub(super) const MAPS: u8 = 2;
pub(super) const BELOW: u8 = 3;

/// One entry of this many may get deeper slots by one change. With more such entries, a build chooses wider values.
const RARE: usize = 64;

/// The use count of a line that belongs to one entry.
const OWN: u32 = u32::MAX;
/// The use count of a shared line that no entry leads to after the prepared change.
const DYING: u32 = u32::MAX - 1;

/// The prepared stores of a change, and the state of the lines that only the writer needs.
pub(super) struct Prepared {
    pub(super) windows: SlotWindows,
    pub(super) width: u32,
    pub(super) direct: Shared<u32>,
    pub(super) lines: Arena<u32>,
    pub(super) maps: Shared<u32>,
    pub(super) below: Arena<u32>,
    pub(super) budget: Budget,
    /// Entries to store. Each entry is listed once at most.
    stores: Vec<Store>,
    /// Words of lines to store.
    edits: Vec<Edit>,
    /// Whether values are stored in lines that readers see.
    pub(super) stores_values: bool,
    /// Places of maps to store, by line.
    maps_to_store: Vec<Edit>,
    /// The shared line of each next hop that has one.
    shared: HashMap<u32, u32>,
    /// For each line, [`OWN`] or the number of entries that lead to it after the prepared change.
    uses: Vec<u32>,
    /// Shared lines that are new: the next hop, and the line that it had before.
    fresh: Vec<(u32, Option<u32>)>,
    /// Shared lines that no entry leads to after the change.
    dying: Vec<u32>,
    /// Lines whose maps the budget has counted.
    charged_maps: u32,
    /// The entry of the next chunk.
    pub(super) at: usize,
    /// The number of lines with deeper slots that were made for the change.
    pub(super) made_deeper: usize,
    /// The overflow of a shared line under construction.
    scratch: Area,
    /// Why the table has to be rebuilt, if it has to be.
    pub(super) refused: Option<&'static str>,
}

/// An entry to store, by the numbers of its lines.
#[derive(Debug, Clone, Copy)]
struct Store {
    at: u32,
    old: u32,
    new: u32,
}

/// A word to store.
#[derive(Debug, Clone, Copy)]
struct Edit {
    at: u32,
    word: u32,
}

/// The words of a line. Lines of narrow keys may have fewer.
pub(super) type LineWords = [u32; LINE_WORDS];

impl Prepared {
    /// Takes over tables that were built. Lines from `shared_from` on are shared.
    pub(super) fn new(
        (windows, width): (SlotWindows, u32),
        direct: Shared<u32>,
        lines: Arena<u32>,
        maps: Shared<u32>,
        below: Arena<u32>,
        shared_from: u32,
        mut budget: Budget,
    ) -> Result<Self, OutOfMemory> {
        let count = lines.units.end();
        let mut uses = budget.vec(count as usize)?;
        uses.resize(shared_from as usize, OWN);
        uses.resize(count as usize, 0);
        let mut prepared = Self {
            windows,
            width,
            direct,
            lines,
            maps,
            below,
            budget,
            stores: Vec::new(),
            edits: Vec::new(),
            stores_values: true,
            maps_to_store: Vec::new(),
            shared: HashMap::new(),
            uses,
            fresh: Vec::new(),
            dying: Vec::new(),
            charged_maps: count,
            at: 0,
            made_deeper: 0,
            scratch: Area::default(),
            refused: None,
        };
        prepared.budget.charge(count as usize * size_of::<u32>())?;
        for at in 0..prepared.direct.len() {
            let line = prepared.line_of(at) as usize;
            if prepared.uses[line] != OWN {
                prepared.uses[line] += 1;
            }
        }
        for line in shared_from..count {
            prepared.reserve_shared()?;
            let word = prepared.word_of(line);
            prepared.shared.insert(word, line);
        }
        Ok(prepared)
    }

    fn reserve_shared(&mut self) -> Result<(), OutOfMemory> {
        let wanted_bytes = 16 * (self.shared.len() + 1);
        let no_memory = OutOfMemory { wanted_bytes, used_bytes: 0, limit_bytes: None };
        self.shared.try_reserve(1).map_err(|_| no_memory)
    }

    /// Returns the number of the line that an entry leads to.
    pub(super) fn line_of(&self, at: usize) -> u32 {
        self.direct[at].read() / self.line_bytes()
    }

    fn line_bytes(&self) -> u32 {
        4 * line_words(self.windows, self.width) as u32
    }

    /// Returns whether a line belongs to one entry, so that its words may be stored to.
    pub(super) fn is_own(&self, line: u32) -> bool {
        self.uses[line as usize] == OWN
    }

    /// Returns the number of entries that lead to a shared line after the prepared change.
    pub(super) fn uses(&self, line: u32) -> u32 {
        self.uses[line as usize]
    }

    /// Returns the memory of the lists.
    pub(super) fn memory(&self) -> Memory {
        let lists = memory::of(&self.stores) + memory::of(&self.edits) + memory::of(&self.uses);
        let shared = Memory { allocated_bytes: self.shared.capacity() * 9, ..Memory::default() };
        self.lines.memory() + self.below.memory() + lists + shared
    }

    /// Fetches the memory that a change of an entry reads, once the entry itself has arrived.
    pub(super) fn fetch(&self, at: usize) {
        let line = self.line_of(at) as usize;
        crate::simd::fetch_at(&self.lines.words, line * line_words(self.windows, self.width));
        crate::simd::fetch_at(&self.maps, line);
        crate::simd::fetch_at(&self.uses, line);
    }

    /// Returns the words of a line.
    pub(super) fn words(&self, line: u32) -> LineWords {
        let mut words = [0; LINE_WORDS];
        words.iter_mut().zip(self.lines.unit_words(line, 1)).for_each(|(to, word)| *to = word.read());
        words
    }

    /// Returns the place of the map of a line, 0 if it has none.
    pub(super) fn map(&self, line: u32) -> u32 {
        self.maps[line as usize].read()
    }

    /// Returns the next hop of a shared line.
    fn word_of(&self, line: u32) -> u32 {
        let value = self.lines.at(line)[0].read() & width_mask(self.width);
        if value != width_mask(self.width) {
            return value;
        }
        // The record of the first slot is right before the map.
        self.below.words[self.map(line) as usize - 2].read() >> SlotRecord::NEXT_HOP_AT
    }

    /// Takes a line, and notes the place of its map.
    fn take(&mut self, map: u32) -> Result<Option<u32>, OutOfMemory> {
        let line = self.lines.take(1, &mut self.budget)?;
        self.took(line, map)
    }

    fn took(&mut self, line: Option<u32>, map: u32) -> Result<Option<u32>, OutOfMemory> {
        let Some(line) = line else {
            self.refused = Some("more lines than there is room for");
            return Ok(None);
        };
        // The array of maps has room for all lines, but it takes memory only as far as it is used.
        if let Some(more) = (line + 1).checked_sub(self.charged_maps).filter(|&more| more > 0) {
            self.budget.charge(more as usize * size_of::<u32>())?;
            self.charged_maps = line + 1;
        }
        if self.uses.len() <= line as usize {
            let more = line as usize + 1 - self.uses.len();
            self.budget.reserve(&mut self.uses, more)?;
            self.uses.resize(line as usize + 1, OWN);
        }
        self.uses[line as usize] = OWN;
        // Relaxed, because the entry publishes this together with the words of the line.
        self.maps[line as usize].store(map, Ordering::Relaxed);
        Ok(Some(line))
    }

    /// Prepares to lead an entry to a line, instead of the line that it leads to now.
    fn lead(&mut self, at: usize, new: u32) -> Result<(), OutOfMemory> {
        let old = self.line_of(at);
        self.budget.reserve(&mut self.stores, 1)?;
        // The counts are those after the change, so that `finish` finds the lines that lose their last entry.
        if self.is_own(old) {
            self.give_up(old)?;
        } else {
            self.uses[old as usize] -= 1;
        }
        if !self.is_own(new) {
            self.uses[new as usize] += 1;
        }
        self.stores.push(Store { at: at as u32, old, new });
        Ok(())
    }

    /// Notes that a line and the words below it are to be retired.
    fn give_up(&mut self, line: u32) -> Result<(), OutOfMemory> {
        let map = self.map(line);
        if map != 0 {
            let words = words_below(&self.below.words, map as usize, self.windows);
            self.below.give_up(words.start as u32, words.len() as u32, &mut self.budget)?;
        }
        self.lines.give_up(line, 1, &mut self.budget)
    }

    /// Prepares the values of all slots of an entry. No slot may be deeper, or with `as_deep` the same slots as before must be.
    pub(super) fn set_values(
        &mut self,
        at: usize,
        words: &LineWords,
        as_deep: bool,
    ) -> Result<(), OutOfMemory> {
        let count = line_words(self.windows, self.width);
        let (line, words) = (self.line_of(at), &words[..count]);
        let first = words[0] & width_mask(self.width);
        let splat = splat(first, self.width);
        let is_uniform = match self.windows.slots() << self.width {
            bytes if bytes == 4 * count => words.iter().all(|&word| word == splat),
            // Lines of narrow keys fill only a part of a word.
            bytes => (words[0] ^ splat) << (32 - 8 * bytes) == 0,
        };
        if is_uniform && first != width_mask(self.width) {
            return self.uniform_entry(at, first);
        }
        // A reader that saw a deeper slot still needs its record, so values are stored in place only if the record stays.
        let (is_own, map) = (self.is_own(line), self.map(line));
        if is_own && self.stores_values && (as_deep || map == 0) {
            return self.edit(line, words);
        }
        // In a shadow a line is copied for new values, unless none of them differs.
        if is_own && (as_deep || map == 0) && self.words(line)[..count] == *words {
            return Ok(());
        }
        // The copy takes over the words below, because the same slots are deeper.
        if is_own && map != 0 && as_deep {
            let Some(new) = self.take(map)? else { return Ok(()) };
            self.lines.write(new, words.iter().copied());
            return self.replace(at, line, new);
        }
        let Some(new) = self.take(0)? else { return Ok(()) };
        self.lines.write(new, words.iter().copied());
        self.lead(at, new)
    }

    /// Prepares one value for some slots of an entry, if it can be stored in place and nothing else changes. Returns whether that is
    /// so; if not, nothing is prepared.
    pub(super) fn set_slots(
        &mut self,
        at: usize,
        slots: Range<usize>,
        value: u32,
    ) -> Result<bool, OutOfMemory> {
        let line = self.line_of(at);
        let is_stored = self.stores_values && self.is_own(line) && self.map(line) == 0;
        let count = line_words(self.windows, self.width);
        if !is_stored || !holds(self.width, value) || self.windows.slots() << self.width != 4 * count {
            return Ok(false);
        }
        let begin = line as usize * count;
        let words = &self.lines.words[begin..begin + count];
        let all = splat(value, self.width);
        let Range { start, end } = slots.start << self.width..slots.end << self.width;
        let changed = start / 4..end.div_ceil(4);
        let word = |at: usize| {
            let (from, to) = (start.max(4 * at) - 4 * at, end.min(4 * at + 4) - 4 * at);
            let mask = u32::MAX >> (8 * (4 - (to - from))) << (8 * from);
            words[at].read() & !mask | all & mask
        };
        // Not here, because a line of one next hop is shared.
        let is_same = |at: usize| (if changed.contains(&at) { word(at) } else { words[at].read() }) == all;
        if (0..count).all(is_same) {
            return Ok(false);
        }
        self.budget.reserve(&mut self.edits, changed.len())?;
        for at in changed {
            let word = word(at);
            if word != words[at].read() {
                self.edits.push(Edit { at: (begin + at) as u32, word });
            }
        }
        Ok(true)
    }

    /// Prepares stores to words of a line that readers see.
    fn edit(&mut self, line: u32, words: &[u32]) -> Result<(), OutOfMemory> {
        let begin = line as usize * words.len();
        self.budget.reserve(&mut self.edits, words.len())?;
        for (at, (&word, old)) in words.iter().zip(&self.lines.words[begin..]).enumerate() {
            if old.read() != word {
                self.edits.push(Edit { at: (begin + at) as u32, word });
            }
        }
        Ok(())
    }

    /// Prepares to lead an entry to a line that takes over the words below its present line.
    fn replace(&mut self, at: usize, line: u32, new: u32) -> Result<(), OutOfMemory> {
        self.budget.reserve(&mut self.stores, 1)?;
        self.lines.give_up(line, 1, &mut self.budget)?;
        self.stores.push(Store { at: at as u32, old: line, new });
        Ok(())
    }

    /// Prepares an entry whose addresses all have one next hop.
    fn uniform_entry(&mut self, at: usize, word: u32) -> Result<(), OutOfMemory> {
        let current = self.shared.get(&word).copied();
        if current == Some(self.line_of(at)) {
            return Ok(());
        }
        let line = match current {
            Some(line) => Some(line),
            None => self.make_shared(word)?,
        };
        line.map_or(Ok(()), |line| self.lead(at, line))
    }

    /// Makes the shared line of a next hop.
    fn make_shared(&mut self, word: u32) -> Result<Option<u32>, OutOfMemory> {
        let slots = self.windows.slots();
        let Some(line) = (if holds(self.width, word) {
            let line = self.take(0)?;
            if let Some(line) = line {
                self.write_values(line, core::iter::repeat_n(word, slots));
            }
            line
        } else {
            let Some(record) = SlotRecord::narrow(&[word]) else {
                debug_assert!(false, "a next hop that whole entries can go to");
                return Ok(None);
            };
            // Taken out, because `deeper_line` needs all of `self`.
            let mut below = core::mem::take(&mut self.scratch);
            below.clear();
            let deep = [DEEP; SLOTS_MAX];
            let records = &[record; SLOTS_MAX][..slots];
            let map = append_records(&mut below, &deep[..slots], records, &mut self.budget);
            let line = map.and_then(|map| self.deeper_line(&deep[..slots], map, &below));
            self.scratch = below;
            line?
        }) else {
            return Ok(None);
        };
        self.reserve_shared()?;
        self.budget.reserve(&mut self.fresh, 1)?;
        // `take` made it a line of one entry. `lead` counts the entries of a shared one.
        self.uses[line as usize] = 0;
        let before = self.shared.insert(word, line);
        self.fresh.push((word, before));
        Ok(Some(line))
    }

    /// Writes the values of a line that no entry leads to yet.
    fn write_values(&self, line: u32, values: impl Iterator<Item = u32>) {
        let mut words = [0; LINE_WORDS];
        for (slot, value) in values.enumerate() {
            let byte = slot << self.width;
            words[byte / 4] |= (value & width_mask(self.width)) << (8 * (byte % 4));
        }
        self.lines.write(line, words.into_iter().take(line_words(self.windows, self.width)));
    }

    /// Makes a line of slots, some of them deeper, given the words below it and the place of its map in them.
    fn deeper_line(&mut self, slots: &[u64], map: u32, below: &Area) -> Result<Option<u32>, OutOfMemory> {
        self.made_deeper += 1;
        if self.made_deeper > (self.direct.len() / RARE).max(RARE) {
            self.refused = Some("more next hops that are wider than values than are rare");
            return Ok(None);
        }
        let size = below.words.len() as u32;
        let Some(place) = self.below.take(size, &mut self.budget)? else {
            self.refused = Some("more words of overflow than records can address");
            return Ok(None);
        };
        self.below.write(place, moved(&below.words[..], map as usize, self.windows, place));
        let Some(line) = self.take(place + map)? else { return Ok(None) };
        let ones = u64::from(width_mask(self.width));
        self.write_values(line, slots.iter().map(|&slot| slot.min(ones) as u32));
        Ok(Some(line))
    }

    /// Ends the preparation: gives up shared lines that no entry will lead to.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn finish(&mut self) -> Result<(), OutOfMemory> {
        for at in 0..self.stores.len() {
            let old = self.stores[at].old;
            // If several entries leave a line, only the first of them finds a count of 0.
            if self.uses[old as usize] == 0 {
                self.budget.reserve(&mut self.dying, 1)?;
                self.give_up(old)?;
                self.uses[old as usize] = DYING;
                self.dying.push(old);
            }
        }
        Ok(())
    }

    /// Forgets the prepared change.
    pub(super) fn abandon(&mut self) {
        // Before the stores, which add their entries to these counts again.
        for line in self.dying.drain(..) {
            self.uses[line as usize] = 0;
        }
        for store in self.stores.drain(..).rev() {
            if self.uses[store.new as usize] != OWN {
                self.uses[store.new as usize] -= 1;
            }
            if self.uses[store.old as usize] != OWN {
                self.uses[store.old as usize] += 1;
            }
        }
        // In reverse, because a next hop that got two new lines must end with the line that it had before both.
        for (word, before) in self.fresh.drain(..).rev() {
            match before {
                Some(line) => drop(self.shared.insert(word, line)),
                None => drop(self.shared.remove(&word)),
            }
        }
        self.edits.clear();
        self.maps_to_store.clear();
        self.lines.back_to(Default::default());
        self.below.back_to(Default::default());
        self.refused = None;
    }

    /// Returns the most units that publishing retires. It is more than 0 if there are entries to store, even if none is retired.
    pub(super) fn retires(&self) -> usize {
        self.lines.retires() + self.below.retires() + self.stores.len()
    }

    /// Notifies the publication of new lines and of the words below them.
    pub(super) fn emit_contents(&self, publication: &mut dyn Publication) {
        // In the order in which readers depend on them: the words below, the maps, the lines, and later the entries.
        self.below.emit(publication);
        for line in self.lines.made() {
            publication.stored(StoredWords::part(MAPS, &self.maps[..], line..line + 1));
        }
        self.lines.emit(publication);
    }

    /// Stores values in lines in place, and places of maps.
    fn store_edits(&self, publication: &mut dyn Publication) {
        let listens = publication.listens();
        let mut store = |array: u8, words: &[AtomicU32], edits: &[Edit]| {
            for &Edit { at, word } in edits {
                let at = at as usize;
                words[at].store(word, Ordering::Release);
                if listens {
                    publication.stored(StoredWords::part(array, words, at..at + 1));
                }
            }
        };
        store(LINES, &self.lines.words, &self.edits);
        store(MAPS, &self.maps, &self.maps_to_store);
    }

    /// Stores words of lines, and then entries, each by one store.
    pub(super) fn publish(&mut self, shadow: &mut Shadow, publication: &mut dyn Publication) {
        let listens = publication.listens();
        if listens {
            // A listener gets new lines before the entries that lead to them, as readers do.
            self.emit_contents(publication);
        }
        self.store_edits(publication);
        let line_bytes = self.line_bytes();
        for &Store { at, new, .. } in &self.stores {
            let at = at as usize;
            // Release, because readers follow the entry to the words of its line.
            self.direct[at].store(new * line_bytes, Ordering::Release);
            if listens {
                publication.stored(StoredWords::part(DIRECT, &self.direct[..], at..at + 1));
            }
            shadow.note(at..at + 1);
        }
        self.retire(publication);
    }

    /// Stores the entries in a copy, which takes the place of the published entries.
    pub(super) fn publish_in(
        &mut self,
        copy: Shared<u32>,
        shadow: &mut Shadow,
        publication: &mut dyn Publication,
    ) {
        shadow.replaced(core::mem::replace(&mut self.direct, copy));
        for &Store { at, new, .. } in &self.stores {
            // Relaxed, because no reader has the copy yet.
            self.direct[at as usize].store(new * self.line_bytes(), Ordering::Relaxed);
            shadow.note(at as usize..at as usize + 1);
        }
        if publication.listens() {
            self.emit_contents(publication);
            publication.stored(StoredWords::whole(DIRECT, &self.direct[..], self.direct.len()));
        }
        self.store_edits(publication);
        self.retire(publication);
    }

    /// Notifies the publication of all arrays.
    pub(super) fn emit_all(&self, publication: &mut dyn Publication) {
        self.below.emit_all(publication);
        let lines = self.lines.units.end() as usize;
        publication.stored(StoredWords::whole(MAPS, &self.maps[..], lines));
        self.lines.emit_all(publication);
        publication.stored(StoredWords::whole(DIRECT, &self.direct[..], self.direct.len()));
    }

    /// Retires the lines and words that were replaced. The prepared change is published by now.
    fn retire(&mut self, publication: &mut dyn Publication) {
        for at in 0..self.dying.len() {
            let line = self.dying[at];
            let word = self.word_of(line);
            // The next hop may have another line by now.
            if self.shared.get(&word) == Some(&line) {
                self.shared.remove(&word);
            }
        }
        self.dying.clear();
        self.stores.clear();
        self.edits.clear();
        self.maps_to_store.clear();
        self.fresh.clear();
        self.lines.retire(publication);
        self.below.retire(publication);
    }
}

/// Returns a word with the value in all of its places.
pub(super) fn splat(value: u32, width: u32) -> u32 {
    match width {
        0 => value * 0x0101_0101,
        1 => value * 0x0001_0001,
        _ => value,
    }
}

impl Level for Prepared {
    fn holds(&self, word: u32) -> bool {
        holds(self.width, word)
    }

    fn holds_whole(&self, word: u32) -> bool {
        holds(self.width, word) || word < SlotRecord::NEXT_HOPS
    }

    fn uniform(&mut self, entries: usize, word: u32, _budget: &mut Budget) -> Result<(), OutOfMemory> {
        for at in self.at..self.at + entries {
            if self.refused.is_none() {
                self.uniform_entry(at, word)?;
            }
        }
        self.at += entries;
        Ok(())
    }

    fn chunk(
        &mut self,
        slots: &[u64],
        map: Option<u32>,
        below: &mut Area,
        _budget: &mut Budget,
    ) -> Result<(), OutOfMemory> {
        let at = self.at;
        self.at += 1;
        if self.refused.is_some() {
            below.clear();
            return Ok(());
        }
        let Some(map) = map else {
            let mut words = [0; LINE_WORDS];
            for (slot, &value) in slots.iter().enumerate() {
                let byte = slot << self.width;
                words[byte / 4] |= (value as u32) << (8 * (byte % 4));
            }
            // No slot is deeper any more, so a line with a map is replaced.
            return self.set_values(at, &words, false);
        };
        if let Some(word) = alone(slots, map as usize, &below.words) {
            below.clear();
            return self.uniform_entry(at, word);
        }
        let line = self.deeper_line(slots, map, below)?;
        below.clear();
        line.map_or(Ok(()), |line| self.lead(at, line))
    }
}

/// Returns the next hop of all slots, if all are deeper and have the same one and records hold it.
fn alone(slots: &[u64], map: usize, below: &[u32]) -> Option<u32> {
    if slots.iter().any(|&slot| slot != DEEP) {
        return None;
    }
    let record = |rank: usize| SlotRecord([below[map - 2 * rank], below[map - 2 * rank + 1]]);
    let word = record(1).uniform()?;
    (2..=slots.len()).all(|rank| record(rank).uniform() == Some(word)).then_some(word)
}
