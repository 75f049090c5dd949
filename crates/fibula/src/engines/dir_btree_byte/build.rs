//! Builds the layout: numbers the next hops by their frequency, and plants the tables and trees of `dir-btree`.

use crate::engines::dir_btree::layout::DirBtree;
use crate::engines::dir_btree::storage::{Arrays, BLOCK, LeafValues, PlantError};
use crate::fib::BuildError;
use crate::fib::parts::intervals::Blocks;
use crate::fib::parts::next_hop_dictionary::NextHopDictionary;
use crate::memory::{Budget, Buffer, Limits, OutOfMemory};
use crate::net::{Ipv6Key, NextHop, Routes};
use crate::simd::{CODED_VALUES, LINE_WORDS};

use super::NAME;
use super::layout::{BASE_AT, BELOW, DirBtreeByte, LEAF_INTERVALS, OBJECT, OBJECT_UNITS};

impl<K: Ipv6Key> DirBtreeByte<K> {
    /// Builds the tables and trees of the routes.
    ///
    /// # Errors
    /// When memory runs out, and when the routes need more than 2^29 words of tables, 2^29 lines or 2^24 units of objects.
    pub(crate) fn build(routes: &dyn Routes<K>, limits: Limits) -> Result<Self, BuildError> {
        let mut budget = Budget::new(limits);
        let planted = DirBtree::plant(routes, &mut budget, CodedValues::new);
        let (trees, values) = planted.map_err(|refused| refused.of(NAME))?;
        budget.free(values.codes);
        budget.free(values.next_hops);
        Ok(Self { trees })
    }
}

/// The next hops that have codes.
struct CodedValues {
    /// The word of each code.
    next_hops: Buffer<u32>,
    /// Next hops and their codes, by next hop.
    codes: Vec<(u32, u32)>,
}

impl CodedValues {
    /// Numbers the most frequent next hops among the values of intervals.
    fn new(values: &[u64], budget: &mut Budget) -> Result<Self, OutOfMemory> {
        // Blocks and large next hops are objects whatever their number, because their words could not be told from those of objects.
        let mut dictionary = NextHopDictionary::new(budget)?;
        for &value in values.iter().filter(|&&value| value < BELOW.into()) {
            dictionary.code(NextHop::new(value as u32), budget)?;
        }
        // Values have next hops, not codes of before, so their new order is not needed.
        let order = dictionary.by_popularity(budget)?;
        budget.free(order);
        let most_frequent = dictionary.into_next_hops(budget)?;
        let known = most_frequent.len().min(OBJECT as usize);
        let mut next_hops = budget.buffer(CODED_VALUES)?;
        next_hops.extend_from_slice(&most_frequent[..known]);
        next_hops.resize(CODED_VALUES, BELOW);
        budget.free(most_frequent);
        // By next hop, because values are looked for by it.
        let mut codes = budget.vec(known)?;
        codes.extend(next_hops[..known].iter().copied().zip(0..));
        codes.sort_unstable();
        Ok(Self { next_hops, codes })
    }

    /// Returns the code of a value.
    fn code(&self, value: u64) -> u32 {
        let known = self.codes.binary_search_by_key(&value, |&(next_hop, _)| next_hop.into());
        known.map_or(OBJECT, |at| self.codes[at].1)
    }
}

impl LeafValues for CodedValues {
    const INTERVALS: usize = LEAF_INTERVALS;
    const PACKS: bool = true;

    fn head(&self) -> &[u32] {
        &self.next_hops
    }

    fn put(
        arrays: &mut Arrays<'_, Self>,
        line: &mut [u32; LINE_WORDS],
        values: &[u64],
        blocks: &Blocks<u128>,
    ) -> Result<(), PlantError> {
        let mut codes = [0; LEAF_INTERVALS];
        // Objects are appended, so those of a leaf follow each other from here on.
        let base = arrays.object_units.end();
        // Pieces come after all objects, because those follow each other.
        let (mut heads, mut count) = ([(0, 0); LEAF_INTERVALS], 0);
        for (code, &value) in codes.iter_mut().zip(values) {
            *code = arrays.values.code(value);
            let number = value as u32;
            if *code != OBJECT {
                continue;
            }
            if value & BLOCK == 0 {
                arrays.alone_object(number)?;
            } else if let (head, true) = arrays.block(blocks, number as usize)? {
                heads[count] = (head, number as usize);
                count += 1;
            }
        }
        let has_objects = arrays.object_units.end() > base;
        if has_objects && base >= OBJECT_UNITS {
            return Err(PlantError::Limit("units of objects", OBJECT_UNITS.into()));
        }
        for &(head, block) in &heads[..count] {
            arrays.pieces(head, blocks, block)?;
        }
        // As in leaves of halves, the last value is repeated.
        let (used, rest) = codes.split_at_mut(values.len());
        rest.fill(used[used.len() - 1]);
        // Twelve codes fill three words, and the last one shares a word with the base.
        let (words, last) = line.split_at_mut(LINE_WORDS - 1);
        let (fours, rest) = codes.as_chunks::<4>();
        for (word, four) in words[LINE_WORDS - 1 - fours.len()..].iter_mut().zip(fours) {
            *word = four.iter().rev().fold(0, |word, code| word << 8 | code);
        }
        // Leaves without objects have no base, because it might not fit.
        last[0] = rest[0] | if has_objects { base << BASE_AT } else { 0 };
        Ok(())
    }
}
