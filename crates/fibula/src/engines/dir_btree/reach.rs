//! Follows the words that lookups follow, in arrays that change: the path of an address, and the intervals of a tree.

use crate::fib::parts::units::Unit;
use crate::memory::{Cell, OutOfMemory};
use crate::net::Key;
use crate::simd::{LEAF_KEYS, LINE_UNITS, LINE_WORDS};

use super::build::PADDING;
use super::ground::{Ground, LEVELS, LINES, OBJECTS, OLD, TABLES};
use super::layout::{
    ALONE, BASE, BASE_BITS, BELOW, OBJECT_WORDS, SHIFT, TREE_INTERVALS, cut, head, kind, window,
};
use super::object::PART_UNITS;
use super::plan::Intervals;
use super::scalar::place;

/// The words on the path of an upper part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) places: [u32; LEVELS],
    pub(super) words: [u32; LEVELS],
    /// The number of leading bits that the addresses of each word have in common.
    depths: [u32; LEVELS],
    /// The level whose entry leads to a chain. The path ends there.
    pub(super) alone: Option<usize>,
}

impl Path {
    /// Returns the depth of the addresses to which only the entry of a level leads.
    pub(super) fn depth(&self, level: usize) -> u32 {
        let last = self.alone.unwrap_or(LEVELS - 1);
        self.depths[level..=last].iter().copied().min().unwrap_or(0)
    }

    /// Returns the slots of the table that the path to an upper part ends in.
    pub(super) fn slots<K: Key>(&self, upper: u64) -> TableSlots {
        let level = LEVELS - 1;
        let region = Ground::<K>::region(upper, self.depth(level - 1));
        TableSlots {
            slot: self.places[level],
            places: Ground::<K>::places(level, self.words[level - 1], region),
            first: region[0],
            bits: cut::<K>().upper - self.depths[level],
        }
    }
}

/// The slots of a table, one of which leads to a tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableSlots {
    pub(super) slot: u32,
    /// The first and the last one of the table.
    pub(super) places: [u32; 2],
    /// The first upper part of the table.
    first: u64,
    /// The number of bits that differ within a slot.
    pub(super) bits: u32,
}

impl TableSlots {
    /// Returns the first upper part of a slot.
    pub(super) fn start(&self, slot: u32) -> u64 {
        self.first + (u64::from(slot - self.places[0]) << self.bits)
    }

    /// Returns the first and the last upper part of some slots.
    pub(super) fn uppers(&self, [first, last]: [u32; 2]) -> [u64; 2] {
        [self.start(first), self.start(last + 1) - 1]
    }
}

impl<K: Key> Ground<K> {
    pub(super) fn word(&self, at: u32) -> u32 {
        self.arrays[TABLES][at as usize].read()
    }

    /// Returns the slots around a slot that lead to the same tree, within `first` to `last`.
    pub(super) fn run(&self, slot: u32, [first, last]: [u32; 2]) -> [u32; 2] {
        let tree = self.word(slot);
        let before = (first..slot).rev().take_while(|&at| self.word(at) == tree).count();
        let after = (slot + 1..=last).take_while(|&at| self.word(at) == tree).count();
        [slot - before as u32, slot + after as u32]
    }

    /// Returns the words of a line.
    pub(super) fn line(&self, line: u32) -> [u32; LINE_WORDS] {
        let words = self.arrays[LINES][line as usize * LINE_WORDS..].first_chunk::<LINE_WORDS>();
        words.map(|words| words.each_ref().map(Cell::read)).unwrap_or([0; LINE_WORDS])
    }

    /// Returns the bits that index words of a level.
    pub(super) fn bits(level: usize, upper: u64) -> u32 {
        if level < 2 { head::<K>(upper) } else { window(upper) }
    }

    /// Returns the depth of the words of a level to which an entry leads.
    pub(super) fn depth(level: usize, entry: u32) -> u32 {
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

    /// Adds the intervals of a tree that meet these upper parts. The first interval is cut to begin with them.
    pub(super) fn intervals(
        &mut self,
        tree: u32,
        [first, last]: [u64; 2],
        all: &mut Intervals,
    ) -> Result<(), OutOfMemory> {
        let most = TREE_INTERVALS;
        self.budget.reserve(&mut all.starts, most)?;
        self.budget.reserve(&mut all.values, most)?;
        let line = tree / LINE_UNITS;
        let node = self.line(line);
        let leaves = self.leaves(tree);
        // Keys are windows. The bits before the window are the same in the whole tree.
        let upper = |window: u32| first >> 32 << 32 | u64::from(window);
        let mut start = first;
        for leaf in 0..leaves {
            let end_of_leaf = node.get(leaf as usize).copied().filter(|_| leaf + 1 < leaves);
            if end_of_leaf.is_some_and(|end| upper(end) < start) {
                continue;
            }
            let words = self.line(line + 1 + leaf);
            let keys = words[..LEAF_KEYS].iter().position(|&key| key == PADDING).unwrap_or(LEAF_KEYS);
            for at in 0..=keys {
                let end = if at < keys { upper(words[at]) } else { end_of_leaf.map_or(last, upper) };
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
        let unit = (half(BASE) << BASE_BITS) + (value & (BELOW - 1));
        let [head, second] = self.object(unit);
        // A next hop is taken by its value, so that equal neighbours can be merged. Other objects are referred to.
        if head == kind::RECORD { second.into() } else { OLD | u64::from(unit) }
    }

    /// Returns the first words of an object.
    fn object(&self, unit: u32) -> [u32; OBJECT_WORDS] {
        [0, 1].map(|word| self.arrays[OBJECTS][unit as usize * OBJECT_WORDS + word].read())
    }

    /// Returns the unit of the objects of a leaf, if it has any.
    pub(super) fn objects(&self, leaf: &[u32; LINE_WORDS]) -> Option<Unit> {
        let half = |at: usize| leaf[at / 2] >> (at % 2 * 16) & 0xffff;
        // Most leaves have no objects, and then no word has such a bit.
        let any = leaf[LEAF_KEYS..].iter().fold(0, |any, word| any | word);
        if (any | any >> 16) & BELOW == 0 {
            return None;
        }
        let base = half(BASE) << BASE_BITS;
        let mut all: Option<core::ops::Range<u32>> = None;
        let values = (2 * LEAF_KEYS..BASE).map(half);
        for unit in values.filter(|value| value & BELOW != 0).map(|value| base + (value & (BELOW - 1))) {
            let [head, second] = self.object(unit);
            let parts = (head >> kind::BITS) * PART_UNITS as u32;
            let is_block = head % (1 << kind::BITS) == kind::BLOCK;
            let end = if is_block { (second + parts).max(unit + 1) } else { unit + 1 + parts };
            all = Some(all.map_or(unit..end, |all| all.start.min(unit)..all.end.max(end)));
        }
        all.map(Unit::of)
    }
}
