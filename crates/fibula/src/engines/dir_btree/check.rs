//! The fsck: walks everything that a lookup can reach, and compares it with what is allocated.

use core::sync::atomic::Ordering;
use std::collections::{BTreeMap, HashMap};

use crate::fib::CheckError;
use crate::fib::parts::intervals;
use crate::fib::parts::units::Unit;
use crate::memory::Cell;
use crate::net::Key;
use crate::simd::{LINE_UNITS, LINE_WORDS};

use super::layout::{
    ALONE, DirBtree, LEAVES, LeafForm, OBJECT_WORDS, SHIFT, cut, head, kind, lines_of, window,
};
use super::object::{PART_UNITS, PREFIXES, end_of};

/// Upper parts with the same leading bits, to which a word belongs.
#[derive(Debug, Clone, Copy)]
struct Region {
    upper: u64,
    depth: u32,
}

/// How often words are read on average, at most. Words that several entries lead to are short chains.
const MOST_SHARED: usize = 64;

/// Levels of tables below the first one.
const LEVELS: u32 = 3;

/// The state of the walk: everything that has been reached.
struct Walk<'a, K, F> {
    fib: &'a DirBtree<K>,
    form: F,
    /// Whether a lookup can read a word of the tables.
    words: Vec<bool>,
    /// The number of words read. A word counts once for each entry that leads to it.
    read: usize,
    /// Lines of trees, by the first one.
    trees: BTreeMap<u32, u32>,
    /// Units of objects, and of pieces, by the first one.
    objects: BTreeMap<u32, u32>,
    /// The words that lead to each tree, and to each table of two equal words.
    uses: HashMap<u32, u32>,
}

/// Everything that lookups can reach: units of the three arrays, and the words that lead to each tree and each table of two
/// equal words.
pub(super) struct Reached {
    pub(super) units: [Vec<Unit>; 3],
    pub(super) uses: HashMap<u32, u32>,
}

impl<K: Key> DirBtree<K> {
    /// Verifies all invariants of a structure that does not change.
    fn walk_all(&self, form: impl LeafForm) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let words = [(&self.tables, 1), (&self.lines, LINE_WORDS), (&self.objects, OBJECT_WORDS)];
        let units = [&self.table_units, &self.line_units, &self.object_units];
        let reached = self.walk_of(form)?;
        for (((words, each), units), used) in words.into_iter().zip(units).zip(reached.units) {
            holds(words.len() == units.end() as usize * each, "(1) units end where arrays do", words.len())?;
            units.check(used)?;
        }
        Ok(())
    }

    /// Verifies everything that lookups can reach.
    pub(super) fn walk(&self) -> Result<Reached, CheckError> {
        self.walk_of(self.halves())
    }

    /// Verifies what there is with leaves of this form.
    pub(in crate::engines) fn check_of(&self, form: impl LeafForm) -> Result<(), CheckError> {
        // Without a writer's lists, free units are not known, so only words that lookups reach can be checked.
        match self.ends {
            Some(_) => self.walk_of(form).map(drop),
            None => self.walk_all(form),
        }
    }

    fn walk_of<F: LeafForm>(&self, form: F) -> Result<Reached, CheckError> {
        let holds = CheckError::unless;
        let first = 1usize << self.first_bits;
        let words = match &self.ends {
            // Behind the words in use, a table that changes has room to grow.
            Some([tables, ..]) => tables.load(Ordering::Relaxed) as usize,
            None => self.tables.len(),
        };
        holds((1..=cut::<K>().upper).contains(&self.first_bits), "(2) leading bits are upper bits", 0)?;
        holds(words >= first, "(2) an entry for all leading bits", words)?;
        let mut walk = Walk {
            fib: self,
            form,
            words: vec![false; words],
            read: 0,
            trees: BTreeMap::new(),
            objects: BTreeMap::new(),
            uses: HashMap::new(),
        };
        // No slot leads to the lines of the head, which are in use all the same.
        if F::HEAD > 0 {
            walk.trees.insert(0, F::HEAD);
        }
        for at in 0..first {
            let upper = (at as u64) << (cut::<K>().upper - self.first_bits);
            let region = Region { upper, depth: self.first_bits };
            let entry = self.tables[at].read();
            walk.read(at, entry, entry & SHIFT == ALONE)?;
            walk.entry(entry, region, LEVELS, at)?;
        }
        let Walk { words, trees, objects, uses, .. } = walk;
        let unit = |(place, size)| Unit { place, size };
        let tables = words.iter().enumerate().filter(|&(_, &used)| used).map(|(at, _)| unit((at as u32, 1)));
        let units = [
            tables.collect(),
            trees.into_iter().map(unit).collect(),
            objects.into_iter().map(unit).collect(),
        ];
        Ok(Reached { units, uses })
    }
}

impl<K: Key, F: LeafForm> Walk<'_, K, F> {
    /// Notes a word that lookups read. Counts it once if its target counts its words.
    fn read(&mut self, at: usize, word: u32, counts: bool) -> Result<(), CheckError> {
        // Ends the walk soon, whatever the words are.
        self.read += 1;
        let most = MOST_SHARED * self.words.len().max(1 << 12);
        CheckError::unless(self.read <= most, "(3) few entries lead to the same words", at)?;
        let seen = self.words.get_mut(at).ok_or(CheckError::new("(3) an entry leads to a table", at))?;
        // Several entries may lead to a word, but the word leads to its target once.
        if !core::mem::replace(seen, true) && counts {
            *self.uses.entry(word).or_default() += 1;
        }
        Ok(())
    }

    /// Checks the target of an entry, with `levels` levels of tables left.
    fn entry(&mut self, entry: u32, region: Region, levels: u32, at: usize) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let Region { upper, depth } = region;
        // The first level is indexed by heads.
        let (bits, of) = if levels == LEVELS {
            (32u32.min(cut::<K>().upper), head::<K>(upper))
        } else {
            (cut::<K>().upper, window(upper))
        };
        let shift = entry & SHIFT;
        let below = if shift == ALONE {
            let words = self.fib.tables.get(entry as usize..).and_then(|words| words.get(..2));
            let words = words.ok_or(CheckError::new("(3) an entry leads to a table", at))?;
            holds(
                words[0].read() == words[1].read(),
                "(3) entries for one interval lead to equal words",
                at,
            )?;
            let word = words[0].read();
            // Words of slots lead to trees. Other words are counted if they lead to a chain.
            let counts = levels == 1 || word & SHIFT == ALONE;
            self.read(entry as usize, word, counts)?;
            self.read(entry as usize + 1, word, counts)?;
            0
        } else {
            holds(levels == LEVELS || depth >= cut::<K>().before, "(3) windows tell upper parts apart", at)?;
            // Heads of toys are aligned to the left.
            let shift = if levels == LEVELS { (shift + bits).saturating_sub(32) } else { shift };
            (bits - depth.min(bits)).saturating_sub(shift)
        };
        for word in 0..1u64 << below {
            let depth = depth + below;
            let inside =
                Region { upper: upper | word << (cut::<K>().upper - depth.min(cut::<K>().upper)), depth };
            let of = if below == 0 {
                of
            } else if levels == LEVELS {
                head::<K>(inside.upper)
            } else {
                window(inside.upper)
            };
            let place = if shift == ALONE { entry } else { entry.wrapping_add(of >> shift) };
            let value = self.fib.tables.get(place as usize).map(Cell::read);
            let value = value.ok_or(CheckError::new("(3) an entry leads to a table", at))?;
            self.read(place as usize, value, levels == 1 || value & SHIFT == ALONE)?;
            if levels > 1 {
                self.entry(value, inside, levels - 1, place as usize)?;
            } else {
                self.tree(value, place as usize)?;
            }
        }
        Ok(())
    }

    fn tree(&mut self, tree: u32, at: usize) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let lines = lines_of(&self.fib.lines);
        holds(tree.is_multiple_of(LINE_UNITS), "(4) a slot leads to a tree", at)?;
        let tree = tree / LINE_UNITS;
        holds(tree >= F::HEAD, "(4) a slot leads to a tree", at)?;
        // Any number of slots may share a tree, so it is checked once.
        if self.trees.contains_key(&tree) {
            return Ok(());
        }
        let node = lines.get(tree as usize).ok_or(CheckError::new("(4) a slot leads to a tree", at))?;
        let keys: Vec<i32> = node.iter().map(|key| key.read() as i32).collect();
        let count = Self::ascending(&keys, tree as usize)?;
        debug_assert!(count < LEAVES);
        // The node, and one leaf more than it has keys.
        self.trees.insert(tree, 2 + count as u32);
        for leaf in 0..=count {
            let line = tree as usize + 1 + leaf;
            holds(line < lines.len(), "(4) leaves follow their node", line)?;
            let low = leaf.checked_sub(1).map(|before| keys[before]);
            // Padding bounds nothing: the last leaf holds all windows after the last key.
            self.leaf(line, low, keys.get(leaf).copied().filter(|_| leaf < count))?;
        }
        Ok(())
    }

    /// Checks that keys ascend, followed by padding, and returns their number.
    fn ascending(keys: &[i32], line: usize) -> Result<usize, CheckError> {
        let holds = CheckError::unless;
        let count = keys.iter().filter(|&&key| key != i32::MAX).count();
        holds(keys[count..].iter().all(|&key| key == i32::MAX), "(5) keys come before the padding", line)?;
        let used = &keys[..count];
        holds(used.windows(2).all(|pair| pair[0] < pair[1]), "(5) keys ascend", line)?;
        // Searches compare signed words. With keys of both halves, the order of keys would not be that of addresses.
        holds(used.is_empty() || used[0] >= 0 || used[count - 1] < 0, "(5) keys are in one half", line)?;
        Ok(count)
    }

    /// Checks a leaf for the windows after `low` up to `high`.
    fn leaf(&mut self, at: usize, low: Option<i32>, high: Option<i32>) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let line = &lines_of(&self.fib.lines)[at];
        let keys: Vec<i32> = line[..F::KEYS].iter().map(|key| key.read() as i32).collect();
        let count = Self::ascending(&keys, at)?;
        let used = &keys[..count];
        holds(
            used.first().is_none_or(|&key| low.is_none_or(|low| key > low)),
            "(5) keys are within the leaf",
            at,
        )?;
        holds(
            used.last().is_none_or(|&key| high.is_none_or(|high| key < high)),
            "(5) keys are within the leaf",
            at,
        )?;
        let values: Vec<u32> = self.form.values(line).collect();
        holds(
            values[count..].iter().all(|&value| value == values[count]),
            "(6) the last value fills up",
            at,
        )?;
        let objects = self.form.objects(&self.fib.objects, line, count + 1);
        let objects = objects.ok_or(CheckError::new("(7) values are next hops or objects", at))?;
        objects.into_iter().try_for_each(|unit| self.object(unit, at))
    }

    fn object(&mut self, unit: u32, at: usize) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        // Several values may lead to an object, so it is checked once.
        if self.objects.contains_key(&unit) {
            return Ok(());
        }
        let objects = &self.fib.objects;
        let words =
            objects.get(unit as usize * OBJECT_WORDS..).and_then(|words| words.first_chunk::<OBJECT_WORDS>());
        let [head, second] = words.ok_or(CheckError::new("(7) a value leads to an object", at))?;
        let (count, second) = (head.read() >> kind::BITS, second.read());
        let units = match head.read() % (1 << kind::BITS) {
            kind::RECORD => {
                holds(count <= PREFIXES as u32, "(7) a record has few prefixes", unit as usize)?;
                1 + count * PART_UNITS as u32
            }
            kind::BLOCK => {
                self.pieces(second, count)?;
                1
            }
            _ => return Err(CheckError::new("(7) objects are records or blocks", unit as usize)),
        };
        self.objects.insert(unit, units);
        Ok(())
    }

    fn pieces(&mut self, first: u32, count: u32) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let at = first as usize;
        // A piece is four words: three of its last lower part, and its next hop.
        let words = self.fib.objects.get(at * OBJECT_WORDS..).map(|words| words.as_chunks::<4>().0);
        let pieces = words.and_then(|pieces| pieces.get(..count as usize));
        let pieces = pieces.ok_or(CheckError::new("(8) a block leads to its pieces", at))?;
        let ends: Vec<u128> = pieces.iter().map(end_of).collect();
        holds(ends.windows(2).all(|pair| pair[0] < pair[1]), "(8) pieces ascend", at)?;
        let last = intervals::lower_max::<K, u128>(cut::<K>().upper as u8);
        holds(ends.last() == Some(&last), "(8) the last piece ends the block", at)?;
        let differ = pieces.windows(2).all(|pair| pair[0][3].read() != pair[1][3].read());
        holds(differ, "(8) neighbours differ", at)?;
        self.objects.insert(first, count * PART_UNITS as u32);
        Ok(())
    }
}
