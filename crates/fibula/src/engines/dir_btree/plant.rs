//! Writes tables, lines and objects to units that nothing leads to yet.

use crate::fib::parts::intervals::Blocks;
use crate::memory::{Budget, Cell, OutOfMemory};
use crate::net::Key;
use crate::simd::LINE_WORDS;

use super::ground::{Chain, Ground, LINES, OBJECTS, OLD, TABLES, room};
use super::layout::{ALONE, BASE_BITS, BELOW, LEAF_INTERVALS, OBJECT_WORDS, SHIFT, kind};
use super::object::{ObjectRecord, PART_UNITS, block_head, push_pieces};
use super::storage::{BLOCK, Encoded, PlantError, TreeStorage, put_halves};

impl<K: Key> Ground<K> {
    /// Adds the words of an object to those of a leaf. Returns its first unit among them.
    fn stage(&mut self, value: u64, blocks: &Blocks<u128>) -> Result<u32, OutOfMemory> {
        let Self { budget, heads, pieces, .. } = self;
        let at = (heads.len() / OBJECT_WORDS) as u32;
        let number = value as u32;
        let first = (pieces.len() / OBJECT_WORDS) as u32;
        if value & BLOCK != 0 {
            if let Some(record) = ObjectRecord::of(blocks, number as usize) {
                budget.reserve(heads, record.words().len())?;
                heads.extend_from_slice(record.words());
            } else {
                push_pieces(blocks, number as usize, pieces, budget)?;
                budget.reserve(heads, OBJECT_WORDS)?;
                heads.extend_from_slice(&block_head(blocks.pieces(number as usize).len() as u32, first));
            }
        } else if value & OLD != 0 {
            // Copied, because the object is given up together with its leaf.
            let words = &self.arrays[OBJECTS][number as usize * OBJECT_WORDS..];
            let (head, second) = (words[0].read(), words[1].read());
            let parts = (head >> kind::BITS) as usize * PART_UNITS * OBJECT_WORDS;
            let is_block = head % (1 << kind::BITS) == kind::BLOCK;
            budget.reserve(heads, OBJECT_WORDS)?;
            // Pieces count from those of this leaf until `encode` knows their place.
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
            heads.extend_from_slice(ObjectRecord::whole(number).words());
        }
        Ok(at)
    }

    /// Encodes the values of a leaf, and makes the objects that they need.
    fn encode(&mut self, values: &[u64], blocks: &Blocks<u128>) -> Result<Encoded, PlantError> {
        let mut encoded = [0; LEAF_INTERVALS];
        self.heads.truncate(0);
        self.pieces.truncate(0);
        for (at, &value) in values.iter().enumerate() {
            encoded[at] = if value < BELOW.into() {
                value as u32
            } else if let Some(same) = values[..at].iter().position(|&other| other == value) {
                // Intervals of one leaf with the same value share an object.
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
        // Blocks lead to their pieces, which are after all heads, so their words are known only now.
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
        // The units counted from the first object. Values count from the base, which is not after it.
        for value in encoded.iter_mut().filter(|value| **value & BELOW != 0) {
            *value += place - (base << BASE_BITS);
        }
        Ok((encoded, base))
    }
}

impl<K: Key> TreeStorage for Ground<K> {
    const LEAF_INTERVALS: usize = LEAF_INTERVALS;
    const PACKS: bool = false;

    fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    fn table(&mut self, words: u32, remainder: u32) -> Result<u32, PlantError> {
        self.room(TABLES)?;
        let place = self.place(words, remainder);
        self.note(TABLES, words, place)
    }

    fn fill(&mut self, first: u32, words: u32, entry: u32) -> Result<(), PlantError> {
        for at in first..first + words {
            self.write(TABLES, at, &[entry]);
        }
        if entry & SHIFT == ALONE {
            self.gain(entry, words)?;
        }
        Ok(())
    }

    fn fill_slot(&mut self, slot: u32, tree: u32) -> Result<(), PlantError> {
        self.write(TABLES, slot, &[tree]);
        Ok(self.gain(tree, 1)?)
    }

    fn lines(&mut self, count: u32) -> Result<u32, PlantError> {
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

    fn put_values(
        &mut self,
        line: &mut [u32; LINE_WORDS],
        values: &[u64],
        blocks: &Blocks<u128>,
    ) -> Result<(), PlantError> {
        put_halves(line, self.encode(values, blocks)?, values.len());
        Ok(())
    }

    fn known_alone(&mut self, value: u64, from_first: bool) -> Result<Option<u32>, PlantError> {
        let sub = self.by_value.get(&value).copied();
        Ok(if from_first { sub.and_then(|sub| self.chains.get(&sub)).map(|chain| chain.mid) } else { sub })
    }

    fn alone(&mut self, value: u64, tree: u32, from_first: bool) -> Result<u32, PlantError> {
        // All room first, so that the chain gets into all three maps or into none.
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
        // The number of a block is not valid later, so only next hops are remembered.
        if value < BLOCK {
            self.by_value.insert(value, sub);
        }
        self.new_chains.push(sub);
        Ok(if from_first { mid } else { sub })
    }
}
