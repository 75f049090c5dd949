//! The prepared state of a change: the words to store, the units that they replace, and how to undo it.

use core::sync::atomic::Ordering;

use crate::fib::in_place::{Publication, RetiredUnit, StoredWords};
use crate::fib::parts::units::Unit;
use crate::memory::OutOfMemory;
use crate::net::Key;
use crate::simd::LINE_UNITS;

use super::ground::{Edit, Ground, LEVELS, LINES, OBJECTS, Store, TABLES};
use super::layout::{ALONE, SHIFT};

/// A position in the prepared state, to go back to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Savepoint {
    stores: usize,
    made: usize,
    gone: usize,
    log: usize,
    chains: usize,
}

impl<K: Key> Ground<K> {
    /// Prepares a word of published tables at a place. It is an entry or, in slots, a tree.
    pub(super) fn store(&mut self, at: u32, word: u32, is_slot: bool) -> Result<(), OutOfMemory> {
        self.budget.push(&mut self.stores, Store { at, word })?;
        let old = self.word(at);
        for (word, is_old) in [(old, true), (word, false)] {
            // Slots and entries of chains are counted. Other tables have one entry each.
            if is_slot || word & SHIFT == ALONE {
                if is_old { self.lose(word, 1)? } else { self.gain(word, 1)? }
            }
        }
        Ok(())
    }

    /// Gives up the words of a level and of the levels below, to which an entry leads for a region of its own.
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
                // Equal neighbours are counted together, which keeps the log short.
                if at == last || self.word(at + 1) != self.word(at) {
                    self.lose(self.word(at), count)?;
                    count = 0;
                }
            }
            return Ok(());
        }
        let mut upper = uppers[0];
        while upper <= uppers[1] {
            // Some words of a level may lead to one table with finer words, and a part of that table to one slot with more
            // addresses than a word of this level has. So the region is the one that all words of the path share.
            let path = self.path(upper);
            let (word, within) = (path.words[level], Self::region(upper, path.depth(level)));
            if word & SHIFT == ALONE {
                self.lose(word, 1)?;
            } else {
                self.give_up(level + 1, word, within)?;
            }
            upper = within[1] + 1;
        }
        Ok(())
    }

    pub(super) fn mark(&self) -> Savepoint {
        Savepoint {
            stores: self.stores.len(),
            made: self.made.len(),
            gone: self.gone.len(),
            log: self.log.len(),
            chains: self.new_chains.len(),
        }
    }

    /// Forgets everything that was prepared after a mark.
    pub(super) fn back_to(&mut self, mark: Savepoint) {
        for at in (mark.log..self.log.len()).rev() {
            let (word, more) = self.log[at];
            // Losses that `seal` has not reached were never counted.
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
        // These units stay in use, so they will not be given back.
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
        // Slots of other tables may lead to it too. They would still lead to the old place, so such a tree stays.
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
        self.made.push(RetiredUnit { array: LINES as u8, unit: Unit { place: to, size } });
        for at in 0..size {
            self.write(LINES, to + at, &self.line(line + at));
        }
        self.moved.push(tree);
        (slots[0]..=slots[1]).try_for_each(|slot| self.store(slot, to * LINE_UNITS, true))
    }

    /// Completes the prepared change: finds the trees and chains that nothing leads to any more.
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

    /// Frees the lists of a build.
    pub(super) fn free_lists(&mut self) {
        self.budget.free(core::mem::take(&mut self.log));
        self.budget.free(core::mem::take(&mut self.made));
    }

    /// Returns the number of units that publishing retires.
    pub(super) fn retires(&self) -> usize {
        self.gone.len()
    }

    /// Notifies the publication of the units that a change has written.
    pub(super) fn emit_units(&self, publication: &mut dyn Publication) {
        for &made in &self.made {
            let all = &self.arrays[usize::from(made.array)][..];
            publication.stored(StoredWords::part(made.array, all, Self::words(made)));
        }
    }

    /// Stores values in leaves in place.
    pub(super) fn store_edits(&self, publication: &mut dyn Publication) {
        let lines = &self.arrays[LINES];
        for &Edit { at, word } in &self.edits {
            lines[at].store(word, Ordering::Release);
            if publication.listens() {
                publication.stored(StoredWords::part(LINES as u8, &lines[..], at..at + 1));
            }
        }
    }

    /// Ends a change that was published, and passes on the units that it retires.
    pub(super) fn done(&mut self, publication: &mut dyn Publication) {
        self.gone.drain(..).for_each(|unit| publication.retire(unit));
        // The units are in use now, so an abandoned change cannot give them back any more.
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
        self.edits.clear();
        self.new_chains.clear();
        self.sealed = 0;
    }
}
