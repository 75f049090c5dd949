//! Arrays that grow and whose units are freed: where a structure is planted that changes, and what a change has prepared.
//!
//! Words of tables that lookups reach are not written before a change is published; what it writes until then is in units
//! that nothing leads to. A tree counts the slots that lead to it, as other slots may stay with it. A chain, the tables of
//! two equal words for one value whatever the window, counts the entries that lead to it from outside. All other tables have
//! one region of addresses, and go with it.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::HashMap;

use crate::check::CheckError;
use crate::fib::in_place::{Publication, Retired};
use crate::fib::parts::intervals::Blocks;
use crate::fib::parts::units::{Unit, Units};
use crate::memory::{self, Budget, Buffer, Cell, Memory, OutOfMemory, Shared};
use crate::net::{Family, Key};
use crate::simd::{LEAF_KEYS, LINE_UNITS, LINE_WORDS};

use super::build::PADDING;
use super::layout::{
    ALONE, BASE_BITS, BELOW, DirBtree, LEAF_INTERVALS, OBJECT_WORDS, SHIFT, cut, head, kind, window,
};
use super::object::{PART_UNITS, Record, block_head, push_pieces};
use super::plan::Intervals;
use super::scalar::place;
use super::storage::{BLOCK, Encoded, Refused, Storage};

/// In a value that is not encoded yet: set for an object of the array, of which the lower bits are the first unit.
const OLD: u64 = 1 << 33;

/// The arrays, by their number among retired units.
pub(super) const TABLES: usize = 0;
pub(super) const LINES: usize = 1;
pub(super) const OBJECTS: usize = 2;

/// Words of an element of each array.
const WORDS: [usize; 3] = [1, LINE_WORDS, OBJECT_WORDS];

/// Levels of words, from the first table to slots.
pub(super) const LEVELS: usize = 4;

/// A word to store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Store {
    pub(super) at: u32,
    pub(super) word: u32,
}

/// The tables that lead to one value whatever the window, and its tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    pub(super) value: u64,
    pub(super) mid: u32,
    pub(super) slots: u32,
    /// What the slots have.
    pub(super) tree: u32,
    /// Words that lead to it from outside.
    pub(super) uses: u32,
}

/// The words on the way of an upper part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) places: [u32; LEVELS],
    pub(super) words: [u32; LEVELS],
    /// Leading bits that the addresses of each word have in common.
    depths: [u32; LEVELS],
    /// The level whose entry leads to a chain, beyond which the path does not go.
    pub(super) alone: Option<usize>,
}

impl Path {
    /// Returns the depth of the addresses that only the entry of a level leads to.
    pub(super) fn depth(&self, level: usize) -> u32 {
        let last = self.alone.unwrap_or(LEVELS - 1);
        self.depths[level..=last].iter().copied().min().unwrap_or(0)
    }

    pub(super) fn slot_depth(&self) -> u32 {
        self.depths[LEVELS - 1]
    }
}

/// How far what is prepared had come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    stores: usize,
    made: usize,
    gone: usize,
    log: usize,
    chains: usize,
}

pub(super) struct Ground<K> {
    pub(super) first_shift: u32,
    pub(super) arrays: [Shared<u32>; 3],
    pub(super) units: [Units; 3],
    /// Elements that there is room for.
    most: [u32; 3],
    /// Elements that the budget has counted.
    charged: [u32; 3],
    pub(super) budget: Budget,
    /// The number of slots that lead to a tree, by its first line; those of chains are not counted.
    pub(super) tree_uses: Vec<u32>,
    /// By the entry of the second level.
    pub(super) chains: HashMap<u32, Chain>,
    /// The entry of the second level, by that of the first one and by value.
    mids: HashMap<u32, u32>,
    by_value: HashMap<u64, u32>,
    pub(super) stores: Vec<Store>,
    /// Units that were taken for what is prepared, and those that it replaces.
    made: Vec<Retired>,
    gone: Vec<Retired>,
    /// Words that lead to trees and chains: more of them at once, fewer when the change is complete.
    log: Vec<(u32, i32)>,
    new_chains: Vec<u32>,
    /// Trees whose objects stay, as they were copied to another place.
    moved: Vec<u32>,
    dead_chains: Vec<u32>,
    /// Entries of the log whose losses are counted.
    sealed: usize,
    /// Words of the objects of a leaf: heads, and pieces.
    heads: Buffer<u32>,
    pieces: Buffer<u32>,
    keys: PhantomData<fn(K)>,
}

fn room<A: Eq + core::hash::Hash, B>(map: &mut HashMap<A, B>) -> Result<(), OutOfMemory> {
    map.try_reserve(1).map_err(|_| OutOfMemory { wanted_bytes: 64, used_bytes: 0, limit_bytes: None })
}

impl<K: Key> Ground<K> {
    /// Returns arrays without elements. Only addresses are reserved for those to come.
    pub(super) fn new(budget: Budget, routes: usize, huge_pages: bool) -> Result<Self, OutOfMemory> {
        let most = match K::FAMILY {
            Family::Toy => {
                let uppers = 1usize << cut::<K>().upper;
                [16 * uppers + 256, 2 * uppers + 64, 16 * uppers + 256]
            }
            // A route has at most two intervals, eight tables of two words, or twenty units of objects.
            _ => [
                (1 << 25).max(routes * 32),
                (1 << 23).max(routes * 8),
                (1 << 26).max(routes.saturating_mul(64)),
            ],
        };
        let most = most.map(|most: usize| most.min(1 << 29));
        let array = |at: usize| Shared::zeros(most[at] * WORDS[at], huge_pages);
        Ok(Self {
            first_shift: 0,
            arrays: [array(TABLES)?, array(LINES)?, array(OBJECTS)?],
            units: Default::default(),
            most: most.map(|most| most as u32),
            charged: [0; 3],
            budget,
            tree_uses: Vec::new(),
            chains: HashMap::new(),
            mids: HashMap::new(),
            by_value: HashMap::new(),
            stores: Vec::new(),
            made: Vec::new(),
            gone: Vec::new(),
            log: Vec::new(),
            new_chains: Vec::new(),
            moved: Vec::new(),
            dead_chains: Vec::new(),
            sealed: 0,
            heads: Buffer::new(),
            pieces: Buffer::new(),
            keys: PhantomData,
        })
    }

    /// Returns what lookups read.
    pub(super) fn reading(&mut self) -> DirBtree<K> {
        let [tables, lines, objects] = &mut self.arrays;
        DirBtree {
            first_bits: 32 - self.first_shift,
            tables: tables.another(),
            lines: lines.another(),
            objects: objects.another(),
            table_units: Units::default(),
            line_units: Units::default(),
            object_units: Units::default(),
            ends: Some([0, 1, 2].map(|at| AtomicU32::new(self.units[at].end()))),
            keys: PhantomData,
        }
    }

    pub(super) fn word(&self, at: u32) -> u32 {
        self.arrays[TABLES][at as usize].read()
    }

    /// Returns the slots around one, from `first` to `last` at most, that lead to the same tree.
    pub(super) fn run(&self, slot: u32, [first, last]: [u32; 2]) -> [u32; 2] {
        let tree = self.word(slot);
        let before = (first..slot).rev().take_while(|&at| self.word(at) == tree).count();
        let after = (slot + 1..=last).take_while(|&at| self.word(at) == tree).count();
        [slot - before as u32, slot + after as u32]
    }

    fn write(&self, array: usize, element: u32, words: &[u32]) {
        let to = &self.arrays[array][element as usize * WORDS[array]..][..words.len()];
        for (to, &word) in to.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Returns the words of a line.
    pub(super) fn line(&self, line: u32) -> [u32; LINE_WORDS] {
        let words = self.arrays[LINES][line as usize * LINE_WORDS..].first_chunk::<LINE_WORDS>();
        words.map(|words| words.each_ref().map(Cell::read)).unwrap_or([0; LINE_WORDS])
    }

    /// Returns the bits that index words of a level.
    fn bits(level: usize, upper: u64) -> u32 {
        if level < 2 { head::<K>(upper) } else { window(upper) }
    }

    /// Returns the depth of the words of a level to which an entry leads.
    fn depth(level: usize, entry: u32) -> u32 {
        (if level < 2 { 32 } else { cut::<K>().upper }) - (entry & SHIFT)
    }

    /// Returns the upper parts of a region.
    pub(super) fn region(upper: u64, depth: u32) -> [u64; 2] {
        let inside = (1u64 << (cut::<K>().upper - depth)) - 1;
        [upper & !inside, upper | inside]
    }

    /// Returns the places of words of a level to which an entry leads for upper parts.
    pub(super) fn places(level: usize, entry: u32, uppers: [u64; 2]) -> [u32; 2] {
        uppers.map(|upper| place(entry, Self::bits(level, upper)))
    }

    pub(super) fn path(&self, upper: u64) -> Path {
        let mut path = Path { places: [0; 4], words: [0; 4], depths: [0; 4], alone: None };
        path.places[0] = head::<K>(upper) >> self.first_shift;
        path.depths[0] = 32 - self.first_shift;
        path.words[0] = self.word(path.places[0]);
        for level in 1..LEVELS {
            let entry = path.words[level - 1];
            if entry & SHIFT == ALONE {
                path.alone = Some(level - 1);
                break;
            }
            path.places[level] = place(entry, Self::bits(level, upper));
            path.depths[level] = Self::depth(level, entry);
            path.words[level] = self.word(path.places[level]);
        }
        path
    }

    /// Returns the number of leaves of a tree.
    pub(super) fn leaves(&self, tree: u32) -> u32 {
        1 + self.line(tree / LINE_UNITS).iter().filter(|&&key| key != PADDING).count() as u32
    }

    /// Adds the intervals of a tree that meet these upper parts, the first of which begins there.
    pub(super) fn intervals(
        &mut self,
        tree: u32,
        [first, last]: [u64; 2],
        all: &mut Intervals,
    ) -> Result<(), OutOfMemory> {
        let most = super::layout::TREE_INTERVALS;
        self.budget.reserve(&mut all.starts, most)?;
        self.budget.reserve(&mut all.values, most)?;
        let line = tree / LINE_UNITS;
        let node = self.line(line);
        let leaves = self.leaves(tree);
        let upper = |window: u32| first >> 32 << 32 | u64::from(window);
        let mut start = first;
        for leaf in 0..leaves {
            let end_of_leaf = node.get(leaf as usize).copied().filter(|_| leaf + 1 < leaves);
            if end_of_leaf.is_some_and(|end| upper(end) < start) {
                continue;
            }
            let words = self.line(line + 1 + leaf);
            let keys = words[..LEAF_KEYS].iter().copied().take_while(|&key| key != PADDING);
            let ends = keys.map(upper).chain([end_of_leaf.map_or(last, upper)]);
            for (at, end) in ends.enumerate() {
                if end < start {
                    continue;
                }
                all.starts.push(start);
                all.values.push(self.value(&words, at));
                start = end + 1;
                if end >= last {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns a value of a leaf.
    fn value(&self, leaf: &[u32; LINE_WORDS], at: usize) -> u64 {
        let half = |at: usize| leaf[at / 2] >> (at % 2 * 16) & 0xffff;
        let value = half(2 * LEAF_KEYS + at);
        if value & BELOW == 0 {
            return value.into();
        }
        let unit = (half(super::layout::BASE) << BASE_BITS) + (value & (BELOW - 1));
        let [head, second] = self.object(unit);
        if head == kind::RECORD { second.into() } else { OLD | u64::from(unit) }
    }

    /// Returns the first words of an object.
    fn object(&self, unit: u32) -> [u32; OBJECT_WORDS] {
        [0, 1].map(|word| self.arrays[OBJECTS][unit as usize * OBJECT_WORDS + word].read())
    }

    /// Returns the unit that the objects of a leaf are, if it has any.
    fn objects(&self, leaf: &[u32; LINE_WORDS]) -> Option<Unit> {
        let half = |at: usize| leaf[at / 2] >> (at % 2 * 16) & 0xffff;
        let base = half(super::layout::BASE) << BASE_BITS;
        let mut all: Option<core::ops::Range<u32>> = None;
        let values = (2 * LEAF_KEYS..super::layout::BASE).map(half);
        for unit in values.filter(|value| value & BELOW != 0).map(|value| base + (value & (BELOW - 1))) {
            let [head, second] = self.object(unit);
            let parts = (head >> kind::BITS) * PART_UNITS as u32;
            let is_block = head % (1 << kind::BITS) == kind::BLOCK;
            let end = if is_block { (second + parts).max(unit + 1) } else { unit + 1 + parts };
            all = Some(all.map_or(unit..end, |all| all.start.min(unit)..all.end.max(end)));
        }
        all.map(Unit::of)
    }

    /// Takes a unit of an array: a free one, or one at the end.
    fn take(&mut self, array: usize, size: u32) -> Result<u32, Refused> {
        self.room(array)?;
        let place = match self.units[array].take(size) {
            Some(place) => Ok(place),
            None => self.append(array, size),
        };
        self.note(array, size, place)
    }

    /// Makes room to note a unit, which comes back one day.
    fn room(&mut self, array: usize) -> Result<(), OutOfMemory> {
        self.budget.reserve(&mut self.made, 1)?;
        self.units[array].expect(1, &mut self.budget)
    }

    /// Notes a unit for which there is room, unless it was refused.
    fn note(&mut self, array: usize, size: u32, place: Result<u32, Refused>) -> Result<u32, Refused> {
        match place {
            Ok(place) => self.made.push(Retired { array: array as u8, unit: Unit { place, size } }),
            Err(_) => self.units[array].expect_less(1),
        }
        place
    }

    fn append(&mut self, array: usize, size: u32) -> Result<u32, Refused> {
        const FULL: [&str; 3] = ["words of tables", "lines", "units of objects"];
        let end = u64::from(self.units[array].end()) + u64::from(size);
        if end > self.most[array].into() {
            return Err(Refused::Limit(FULL[array], self.most[array].into()));
        }
        if let Some(more) = (end as u32).checked_sub(self.charged[array]) {
            self.budget.charge(more as usize * WORDS[array] * size_of::<u32>())?;
            self.charged[array] = end as u32;
        }
        Ok(self.units[array].append(size).unwrap_or_default())
    }

    /// Takes words at a place with this remainder by 32.
    fn place(&mut self, words: u32, remainder: u32) -> Result<u32, Refused> {
        let Self { units: [units, ..], budget, .. } = self;
        if let Some(place) = units.take_at_within(words, remainder, SHIFT + 1, budget)? {
            return Ok(place);
        }
        let skipped = remainder.wrapping_sub(units.end()) & SHIFT;
        if skipped > 0 {
            units.expect(1, budget)?;
            let place = self.append(TABLES, skipped);
            let Self { units: [units, ..], budget, .. } = self;
            match place {
                Ok(place) => units.give_or_expect(Unit { place, size: skipped }, budget),
                Err(refused) => {
                    units.expect_less(1);
                    return Err(refused);
                }
            }
        }
        self.append(TABLES, words)
    }

    fn gone(&mut self, array: usize, unit: Unit) -> Result<(), OutOfMemory> {
        self.budget.reserve(&mut self.gone, 1)?;
        self.units[array].expect(1, &mut self.budget)?;
        self.gone.push(Retired { array: array as u8, unit });
        Ok(())
    }

    /// Counts more words that lead to a tree, or to a chain if it is one.
    fn gain(&mut self, word: u32, count: u32) -> Result<(), OutOfMemory> {
        self.budget.push(&mut self.log, (word, count as i32))?;
        self.count(word, count as i32);
        Ok(())
    }

    fn lose(&mut self, word: u32, count: u32) -> Result<(), OutOfMemory> {
        self.budget.push(&mut self.log, (word, -(count as i32)))
    }

    /// Adds to the words that lead to a tree or a chain. Returns how many there are.
    fn count(&mut self, word: u32, more: i32) -> u32 {
        let uses = if word & SHIFT == ALONE {
            let sub = self.mids.get(&word).copied().unwrap_or(word);
            self.chains.get_mut(&sub).map(|chain| &mut chain.uses)
        } else {
            self.tree_uses.get_mut((word / LINE_UNITS) as usize)
        };
        uses.map_or(1, |uses| {
            *uses = uses.wrapping_add_signed(more);
            *uses
        })
    }

    /// Prepares the word of published tables at a place, which is an entry or, in slots, a tree.
    pub(super) fn store(&mut self, at: u32, word: u32, is_slot: bool) -> Result<(), OutOfMemory> {
        self.budget.push(&mut self.stores, Store { at, word })?;
        let old = self.word(at);
        for (word, is_old) in [(old, true), (word, false)] {
            if is_slot || word & SHIFT == ALONE {
                if is_old { self.lose(word, 1)? } else { self.gain(word, 1)? }
            }
        }
        Ok(())
    }

    /// Gives up the words of a level, and of those below, to which an entry leads for a region of its own.
    pub(super) fn give_up(&mut self, level: usize, entry: u32, uppers: [u64; 2]) -> Result<(), OutOfMemory> {
        if entry & SHIFT == ALONE {
            return Ok(());
        }
        let [first, last] = Self::places(level, entry, uppers);
        self.gone(TABLES, Unit::of(first..last + 1))?;
        if level == LEVELS - 1 {
            let mut count = 0;
            for at in first..=last {
                count += 1;
                if at == last || self.word(at + 1) != self.word(at) {
                    self.lose(self.word(at), count)?;
                    count = 0;
                }
            }
            return Ok(());
        }
        let depth = Self::depth(level, entry);
        let mut upper = uppers[0];
        while upper <= uppers[1] {
            let word = self.word(place(entry, Self::bits(level, upper)));
            let within = if word & SHIFT == ALONE {
                self.lose(word, 1)?;
                Self::region(upper, depth)
            } else {
                let within = Self::region(upper, depth.min(Self::depth(level + 1, word)));
                self.give_up(level + 1, word, within)?;
                within
            };
            upper = within[1] + 1;
        }
        Ok(())
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            stores: self.stores.len(),
            made: self.made.len(),
            gone: self.gone.len(),
            log: self.log.len(),
            chains: self.new_chains.len(),
        }
    }

    /// Forgets what was prepared after a mark.
    pub(super) fn back_to(&mut self, mark: Mark) {
        for at in (mark.log..self.log.len()).rev() {
            let (word, more) = self.log[at];
            if more > 0 || at < self.sealed {
                self.count(word, -more);
            }
        }
        self.log.truncate(mark.log);
        self.sealed = self.sealed.min(mark.log);
        for sub in self.new_chains.drain(mark.chains..) {
            if let Some(chain) = self.chains.remove(&sub) {
                self.mids.remove(&chain.mid);
                self.by_value.remove(&chain.value);
            }
        }
        for retired in self.gone.drain(mark.gone..) {
            self.units[retired.array as usize].expect_less(1);
        }
        for made in self.made.drain(mark.made..) {
            self.units[made.array as usize].give_expected(made.unit);
        }
        self.stores.truncate(mark.stores);
        self.dead_chains.clear();
        self.moved.clear();
    }

    /// Prepares the move of a tree to free lines before `used`, given all slots that lead to it.
    pub(super) fn move_tree(&mut self, slots: [u32; 2], used: u32) -> Result<(), OutOfMemory> {
        let tree = self.word(slots[0]);
        let line = tree / LINE_UNITS;
        let count = slots[1] - slots[0] + 1;
        // Slots of other tables may lead to it as well.
        if line < used || self.moved.contains(&tree) || self.tree_uses.get(line as usize) != Some(&count) {
            return Ok(());
        }
        let size = 1 + self.leaves(tree);
        self.budget.reserve(&mut self.moved, 1)?;
        self.room(LINES)?;
        let Some(to) = self.units[LINES].take_before(size, used) else {
            self.units[LINES].expect_less(1);
            return Ok(());
        };
        self.made.push(Retired { array: LINES as u8, unit: Unit { place: to, size } });
        for at in 0..size {
            self.write(LINES, to + at, &self.line(line + at));
        }
        self.moved.push(tree);
        (slots[0]..=slots[1]).try_for_each(|slot| self.store(slot, to * LINE_UNITS, true))
    }

    /// Completes what is prepared: finds the trees and chains that nothing leads to any more.
    pub(super) fn seal(&mut self) -> Result<(), OutOfMemory> {
        while let Some(&(word, more)) = self.log.get(self.sealed) {
            self.sealed += 1;
            if more > 0 || self.count(word, more) != 0 {
                continue;
            }
            if word & SHIFT != ALONE {
                self.uproot(word)?;
                continue;
            }
            let sub = self.mids.get(&word).copied().unwrap_or(word);
            let Some(&chain) = self.chains.get(&sub) else { continue };
            self.budget.push(&mut self.dead_chains, sub)?;
            for place in [chain.mid, sub, chain.slots] {
                self.gone(TABLES, Unit { place, size: 2 })?;
            }
            self.uproot(chain.tree)?;
        }
        Ok(())
    }

    /// Gives up the lines of a tree, and the objects of its leaves.
    fn uproot(&mut self, tree: u32) -> Result<(), OutOfMemory> {
        let (line, leaves) = (tree / LINE_UNITS, self.leaves(tree));
        if !self.moved.contains(&tree) {
            for leaf in 0..leaves {
                if let Some(unit) = self.objects(&self.line(line + 1 + leaf)) {
                    self.gone(OBJECTS, unit)?;
                }
            }
        }
        self.gone(LINES, Unit { place: line, size: 1 + leaves })
    }

    /// Returns the bytes of a unit.
    pub(super) fn bytes(retired: Retired) -> usize {
        retired.unit.size as usize * WORDS[retired.array as usize] * size_of::<u32>()
    }

    /// Returns the memory of what lookups do not read, other than lists of units.
    pub(super) fn memory(&self) -> Memory {
        let lists = [memory::of(&self.tree_uses), memory::of(&self.stores), memory::of(&self.made)];
        let more = [memory::of(&self.gone), memory::of(&self.log), memory::of(&self.heads)];
        let all = lists.into_iter().chain(more).fold(Memory::default(), |all, list| all + list);
        let chains = self.chains.capacity() * (size_of::<Chain>() + 5)
            + self.mids.capacity() * 9
            + self.by_value.capacity() * 17;
        Memory { lookup_bytes: 0, allocated_bytes: all.allocated_bytes + chains, ..all }
    }

    /// Verifies the counts, given how many words lead to each tree and chain. Adds the units of chains that no lookup reaches.
    pub(super) fn check_uses(
        &self,
        mut uses: HashMap<u32, u32>,
        used: &mut [Vec<Unit>; 3],
    ) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        for (&sub, chain) in &self.chains {
            let mid = uses.remove(&chain.mid).unwrap_or(0);
            let through = if mid > 0 { 2 } else { 0 };
            let all = mid + uses.remove(&sub).unwrap_or(0) - through;
            holds(all == chain.uses && all > 0, "(9) words that lead to chains are counted", sub as usize)?;
            let inside = [chain.slots, chain.tree].map(|word| uses.remove(&word));
            holds(inside == [Some(2); 2], "(9) chains are tables of two words", sub as usize)?;
            if mid == 0 {
                used[TABLES].push(Unit { place: chain.mid, size: 2 });
            }
        }
        for (at, &count) in self.tree_uses.iter().enumerate() {
            let is = uses.remove(&(at as u32 * LINE_UNITS)).unwrap_or(0);
            holds(is == count, "(9) slots that lead to trees are counted", at)?;
        }
        holds(uses.is_empty(), "(9) what words lead to is counted", uses.len())
    }

    /// Frees the lists of a build.
    pub(super) fn free_lists(&mut self) {
        self.budget.free(core::mem::take(&mut self.log));
        self.budget.free(core::mem::take(&mut self.made));
    }

    /// Returns the number of units that publishing retires.
    pub(super) fn retires(&self) -> usize {
        self.gone.len()
    }

    /// Tells of the units that a change has written.
    pub(super) fn tell_units(&self, publication: &mut dyn Publication) {
        for &Retired { array, unit } in &self.made {
            publication.stored(array, unit.place..unit.place + unit.size);
        }
    }

    /// Ends a change that was published, and passes on what it retires.
    pub(super) fn done(&mut self, publication: &mut dyn Publication) {
        self.gone.drain(..).for_each(|unit| publication.retire(unit));
        for made in self.made.drain(..) {
            self.units[made.array as usize].expect_less(1);
        }
        for sub in self.dead_chains.drain(..) {
            if let Some(chain) = self.chains.remove(&sub) {
                self.mids.remove(&chain.mid);
                if self.by_value.get(&chain.value) == Some(&sub) {
                    self.by_value.remove(&chain.value);
                }
            }
        }
        self.log.clear();
        self.moved.clear();
        self.stores.clear();
        self.new_chains.clear();
        self.sealed = 0;
    }

    /// Adds the words of an object to those of a leaf. Returns its first unit among them.
    fn stage(&mut self, value: u64, blocks: &Blocks<u128>) -> Result<u32, OutOfMemory> {
        let Self { budget, heads, pieces, .. } = self;
        let at = (heads.len() / OBJECT_WORDS) as u32;
        let number = value as u32;
        let first = (pieces.len() / OBJECT_WORDS) as u32;
        if value & BLOCK != 0 {
            if let Some(record) = Record::of(blocks, number as usize) {
                budget.reserve(heads, record.words().len())?;
                heads.extend_from_slice(record.words());
            } else {
                push_pieces(blocks, number as usize, pieces, budget)?;
                budget.reserve(heads, OBJECT_WORDS)?;
                heads.extend_from_slice(&block_head(blocks.pieces(number as usize).len() as u32, first));
            }
        } else if value & OLD != 0 {
            let words = &self.arrays[OBJECTS][number as usize * OBJECT_WORDS..];
            let (head, second) = (words[0].read(), words[1].read());
            let parts = (head >> kind::BITS) as usize * PART_UNITS * OBJECT_WORDS;
            let is_block = head % (1 << kind::BITS) == kind::BLOCK;
            budget.reserve(heads, OBJECT_WORDS)?;
            heads.extend_from_slice(&[head, if is_block { first } else { second }]);
            let (from, to) = if is_block {
                (&self.arrays[OBJECTS][second as usize * OBJECT_WORDS..], pieces)
            } else {
                (&words[OBJECT_WORDS..], heads)
            };
            budget.reserve(to, parts)?;
            for word in &from[..parts] {
                to.push(word.read());
            }
        } else {
            budget.reserve(heads, OBJECT_WORDS)?;
            heads.extend_from_slice(Record::whole(number).words());
        }
        Ok(at)
    }
}

impl<K: Key> Storage for Ground<K> {
    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    fn table(&mut self, words: u32, remainder: u32) -> Result<u32, Refused> {
        self.room(TABLES)?;
        let place = self.place(words, remainder);
        self.note(TABLES, words, place)
    }

    fn fill(&mut self, first: u32, words: u32, entry: u32) -> Result<(), Refused> {
        for at in first..first + words {
            self.write(TABLES, at, &[entry]);
        }
        if entry & SHIFT == ALONE {
            self.gain(entry, words)?;
        }
        Ok(())
    }

    fn fill_slot(&mut self, slot: u32, tree: u32) -> Result<(), Refused> {
        self.write(TABLES, slot, &[tree]);
        Ok(self.gain(tree, 1)?)
    }

    fn lines(&mut self, count: u32) -> Result<u32, Refused> {
        let line = self.take(LINES, count)?;
        let end = self.units[LINES].end() as usize;
        if let Some(more) = end.checked_sub(self.tree_uses.len()) {
            self.budget.reserve(&mut self.tree_uses, more)?;
            self.tree_uses.resize(end, 0);
        }
        Ok(line)
    }

    fn write_line(&mut self, line: u32, words: &[u32; LINE_WORDS]) {
        self.write(LINES, line, words);
    }

    fn encode(&mut self, values: &[u64], blocks: &Blocks<u128>) -> Result<Encoded, Refused> {
        let mut encoded = [0; LEAF_INTERVALS];
        self.heads.truncate(0);
        self.pieces.truncate(0);
        for (at, &value) in values.iter().enumerate() {
            encoded[at] = if value < BELOW.into() {
                value as u32
            } else if let Some(same) = values[..at].iter().position(|&other| other == value) {
                encoded[same]
            } else {
                BELOW | self.stage(value, blocks)?
            };
        }
        if self.heads.is_empty() {
            return Ok((encoded, 0));
        }
        let heads = (self.heads.len() / OBJECT_WORDS) as u32;
        let size = heads + (self.pieces.len() / OBJECT_WORDS) as u32;
        let place = self.take(OBJECTS, size)?;
        // Blocks lead to their pieces, which are after all heads.
        let mut at = 0;
        while at < self.heads.len() {
            let head = self.heads[at];
            if head % (1 << kind::BITS) == kind::BLOCK {
                self.heads[at + 1] += place + heads;
                at += OBJECT_WORDS;
            } else {
                at += OBJECT_WORDS * (1 + PART_UNITS * (head >> kind::BITS) as usize);
            }
        }
        self.write(OBJECTS, place, &self.heads);
        self.write(OBJECTS, place + heads, &self.pieces);
        let base = place >> BASE_BITS;
        for value in encoded.iter_mut().filter(|value| **value & BELOW != 0) {
            *value += place - (base << BASE_BITS);
        }
        Ok((encoded, base))
    }

    fn known_alone(&mut self, value: u64, from_first: bool) -> Result<Option<u32>, Refused> {
        let sub = self.by_value.get(&value).copied();
        Ok(if from_first { sub.and_then(|sub| self.chains.get(&sub)).map(|chain| chain.mid) } else { sub })
    }

    fn alone(&mut self, value: u64, tree: u32, from_first: bool) -> Result<u32, Refused> {
        room(&mut self.chains)?;
        room(&mut self.mids)?;
        room(&mut self.by_value)?;
        self.budget.reserve(&mut self.new_chains, 1)?;
        let [slots, sub, mid] = [self.table(2, ALONE)?, self.table(2, ALONE)?, self.table(2, ALONE)?];
        for (place, word) in [(slots, tree), (sub, slots), (mid, sub)] {
            self.write(TABLES, place, &[word; 2]);
        }
        self.chains.insert(sub, Chain { value, mid, slots, tree, uses: 0 });
        self.mids.insert(mid, sub);
        // What blocks are numbered by is not known later.
        if value < BLOCK {
            self.by_value.insert(value, sub);
        }
        self.new_chains.push(sub);
        Ok(if from_first { mid } else { sub })
    }
}
