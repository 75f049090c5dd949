//! Changes that only replace values: they are stored in leaves in place, or in a copy of the tree if readers of old entries
//! must not see them.
//!
//! The changed intervals have to begin and end where the intervals of the tree do. When a route is removed, its intervals
//! stay, with the values around them, until their tree is replanted.

use core::sync::atomic::Ordering;

use crate::memory::{Cell, OutOfMemory};
use crate::net::{Key, Routes};
use crate::simd::{LEAF_KEYS, LINE_UNITS, LINE_WORDS, fetch_at};

use super::build::PADDING;
use super::ground::{AHEAD, Edit, Ground, LEVELS, LINES, TABLES};
use super::layout::{ALONE, BELOW, LEAF_INTERVALS, SHIFT, head, window};
use super::plan::Intervals;
use super::reach::{Path, TableSlots};
use super::scalar::place;
use super::storage::{BLOCK, PlantError, TreeStorage};
use super::update::{Editor, sweep};

/// Counts the keys below a window.
pub(super) fn below(keys: &[u32], window: u32) -> usize {
    keys.iter().filter(|&&key| (key as i32) < window as i32).count()
}

impl<K: Key> Ground<K> {
    /// Fetches the words that lead to upper parts, and their leaves.
    pub(super) fn fetch(&self, uppers: impl Iterator<Item = u64>) {
        let (mut all, mut count) = ([(0, 0); AHEAD], 0);
        for (walk, upper) in all.iter_mut().zip(uppers) {
            *walk = (upper, head::<K>(upper) >> self.first_shift);
            fetch_at(&self.arrays[TABLES], walk.1 as usize);
            count += 1;
        }
        for level in 1..LEVELS {
            for (upper, at) in &mut all[..count] {
                let entry = self.word(*at);
                // The entry of a chain is not followed, because it leads to the same word again.
                if entry & SHIFT != ALONE {
                    *at = place(entry, Self::bits(level, *upper));
                    fetch_at(&self.arrays[TABLES], *at as usize);
                }
            }
        }
        let line = |at: u32| (self.word(at) / LINE_UNITS) as usize * LINE_WORDS;
        for &(_, at) in &all[..count] {
            fetch_at(&self.arrays[LINES], line(at));
        }
        for &(upper, at) in &all[..count] {
            let root = line(at);
            // A word that is not a tree may have any value.
            let Some(node) = self.arrays[LINES].get(root..root + LINE_WORDS) else { continue };
            let leaf = node.iter().filter(|key| (key.read() as i32) < window(upper) as i32).count();
            fetch_at(&self.arrays[LINES], root + (1 + leaf) * LINE_WORDS);
        }
    }

    /// Returns the first and the last upper part that lead to a tree, if all between them do too.
    fn reach(&self, tree: u32, slots: TableSlots) -> Option<[u64; 2]> {
        let run = self.run(slots.slot, slots.places);
        // Slots of other tables may lead to the tree, too. Its ends are then not known here.
        (run[1] - run[0] + 1 == self.uses(tree)).then(|| slots.uppers(run))
    }

    /// Prepares a value of a leaf.
    fn set_value(&mut self, line: u32, number: usize, value: u32) -> Result<(), OutOfMemory> {
        let at = line as usize * LINE_WORDS + LEAF_KEYS + number / 2;
        // Values of a leaf are prepared in order.
        let last = self.edits.last().filter(|edit| edit.at == at).copied();
        let old = last.map_or_else(|| self.arrays[LINES][at].read(), |edit| edit.word);
        let shift = number % 2 * 16;
        let word = old & !(0xffff << shift) | value << shift;
        if word == old {
            return Ok(());
        }
        match self.edits.last_mut().filter(|edit| edit.at == at) {
            Some(edit) => edit.word = word,
            None => self.budget.push(&mut self.edits, Edit { at, word })?,
        }
        Ok(())
    }

    /// Prepares the values of upper parts in a tree, if the tree has all of the new intervals and no objects among them.
    fn set_values(
        &mut self,
        tree: u32,
        [first, last]: [u64; 2],
        new: &Intervals,
        slots: TableSlots,
    ) -> Result<bool, OutOfMemory> {
        let root = tree / LINE_UNITS;
        let node = self.line(root);
        let upper = |window: u32| first >> 32 << 32 | u64::from(window);
        let mut leaf = below(&node, window(first));
        let mut line = self.line(root + 1 + leaf as u32);
        let mut at = below(&line[..LEAF_KEYS], window(first));
        let before = at.checked_sub(1).map(|at| line[at]).or_else(|| leaf.checked_sub(1).map(|at| node[at]));
        // Whether the first interval begins there. Looked up only where its value changes.
        let begins = |ground: &Self| match before {
            Some(key) => upper(key) + 1 == first,
            None => ground.reach(tree, slots).is_some_and(|reach| reach[0] == first),
        };
        let (mut start, mut number) = (first, 0);
        loop {
            let in_leaf = line[..LEAF_KEYS].get(at).copied().filter(|&key| key != PADDING);
            let key = in_leaf.or_else(|| node.get(leaf).copied().filter(|&key| key != PADDING));
            let end = key.map_or(u64::MAX, upper);
            while new.starts.get(number + 1).is_some_and(|&next| next <= start) {
                number += 1;
            }
            // A new interval begins inside the old one, for which the leaf has no key.
            let is_cut = new.starts.get(number + 1).is_some_and(|&next| next <= end);
            let old = line[LEAF_KEYS + at / 2] >> (at % 2 * 16) & 0xffff;
            if is_cut || u64::from(old) != new.values[number] {
                let ends = match key {
                    Some(_) => end <= last,
                    None => self.reach(tree, slots).is_some_and(|reach| reach[1] == last),
                };
                // Objects are not replaced in place, and a value may change only for a whole interval.
                if is_cut || old & BELOW != 0 || !ends || start == first && !begins(self) {
                    return Ok(false);
                }
            }
            // The last value of a leaf is repeated in the places after it, so these change too.
            let until = if in_leaf.is_some() { at + 1 } else { LEAF_INTERVALS };
            for at in at..until {
                self.set_value(root + 1 + leaf as u32, at, new.values[number] as u32)?;
            }
            if end >= last {
                return Ok(true);
            }
            start = end + 1;
            at += 1;
            if in_leaf.is_none() {
                (leaf, at) = (leaf + 1, 0);
                line = self.line(root + 1 + leaf as u32);
            }
        }
    }
}

impl<K: Key> Editor<K> {
    /// Fetches the memory that the spans from this one on read, if it is time for it.
    pub(super) fn fetch(&self, span: usize) {
        if span.is_multiple_of(AHEAD) && self.spans.len() > self.fetched {
            self.ground.fetch(self.spans[span..].iter().map(|span| span[0]));
        }
    }

    /// Prepares the values of a span in place: in the leaves of the tree that its first upper part leads to. Does so only if
    /// nothing else has to change.
    pub(super) fn in_leaf(
        &mut self,
        [upper, last]: [u64; 2],
        path: &Path,
        after: &dyn Routes<K>,
    ) -> Result<bool, OutOfMemory> {
        let slots = path.slots::<K>(upper);
        if last > slots.uppers(slots.places)[1] {
            return Ok(false);
        }
        let tree = path.words[LEVELS - 1];
        let [_, last_slot] = Ground::<K>::places(LEVELS - 1, path.words[LEVELS - 2], [upper, last]);
        if (slots.slot + 1..=last_slot).any(|at| self.ground.word(at) != tree) {
            return Ok(false);
        }
        self.set_span([upper, last], tree, slots, after)
    }

    /// Prepares the values of a span in a tree, if nothing else has to change.
    fn set_span(
        &mut self,
        span: [u64; 2],
        tree: u32,
        slots: TableSlots,
        after: &dyn Routes<K>,
    ) -> Result<bool, OutOfMemory> {
        let Self { ground, new, blocks, .. } = self;
        new.clear();
        blocks.clear();
        sweep(after, Self::prefix(span), new, blocks, &mut ground.budget)?;
        // A leaf holds smaller values only. Others are objects.
        if new.values.iter().any(|&value| value >= BLOCK.min(BELOW.into())) {
            return Ok(false);
        }
        let edits = ground.edits.len();
        let stored = ground.set_values(tree, span, new, slots);
        // Edits of a part of the span must not be published without the rest.
        if !matches!(stored, Ok(true)) {
            ground.edits.truncate(edits);
        }
        stored
    }

    /// Prepares a copy of the tree that the first upper part of a span leads to. The copy gets the values of all spans in the
    /// slots around it that share the tree, if nothing else has to change. Returns the last upper part of these slots.
    pub(super) fn in_copy(
        &mut self,
        span: usize,
        path: &Path,
        after: &dyn Routes<K>,
    ) -> Result<Option<u64>, PlantError> {
        let (slots, tree) = (path.slots::<K>(self.spans[span][0]), path.words[LEVELS - 1]);
        let run = self.ground.run(slots.slot, slots.places);
        let [first, last] = slots.uppers(run);
        let (line, leaves) = (tree / LINE_UNITS, self.ground.leaves(tree));
        // Objects belong to one tree, so a tree with objects is not copied.
        if (1..=leaves).any(|leaf| self.ground.objects(&self.ground.line(line + leaf)).is_some()) {
            return Ok(None);
        }
        debug_assert!(
            self.ground.edits.is_empty(),
            "with copies, nothing is stored in leaves that readers see"
        );
        for at in span..self.spans.len() {
            let span = self.spans[at];
            if span[0] > last {
                break;
            }
            if span[1] > last || !self.set_span(span, tree, slots, after)? {
                self.ground.edits.clear();
                return Ok(None);
            }
        }
        let mark = self.ground.mark();
        let copy = self.ground.lines(1 + leaves)?;
        for at in 0..=leaves {
            self.ground.write_line(copy + at, &self.ground.line(line + at));
        }
        let (from, to) = (line as usize * LINE_WORDS, copy as usize * LINE_WORDS);
        let Ground { edits, arrays, .. } = &mut self.ground;
        for Edit { at, word } in edits.drain(..) {
            // Relaxed, because nothing leads to the copy yet.
            arrays[LINES][at - from + to].store(word, Ordering::Relaxed);
        }
        for slot in run[0]..=run[1] {
            self.ground.store(slot, copy * LINE_UNITS, true)?;
        }
        self.ground.budget.push(&mut self.marks, (first, mark))?;
        Ok(Some(last))
    }
}
