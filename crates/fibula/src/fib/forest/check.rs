//! The fsck.

use crate::fib::CheckError;
use crate::fib::parts::intervals;
use crate::net::Key;

use crate::simd::Line;

use super::layout::{
    CHILDREN, EMPTY, Forest, GROUND, NARROW, PADDING, ROOTS_BITS, SHIFT_BITS, TREE_LINES, WIDE, below_bit,
    block_bit, cut, window,
};
use super::record::{PREFIXES, READ_WORDS};

impl<K: Key> Forest<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let cut = cut::<K>();
        let bits = cut.direct_least.into()..=cut.direct_most.into();
        holds(bits.contains(&self.direct_bits), "(1) leading bits within bounds", 0)?;
        holds(self.leaf_keys == NARROW || self.leaf_keys == WIDE, "values of 16 or 32 bits", 0)?;
        let entries = self.direct.len();
        holds(entries >= 2, "(1) an entry for some leading bits, and one for all others", entries)?;
        let last = u64::from(self.first) + entries as u64 - 2;
        holds(last < 1 << self.direct_bits, "(1) leading bits are that many", entries)?;

        let mut walk = Walk { fib: self, lines_done: 0, last_tree: None, records: self.record_places()? };
        // Slots and trees are checked in the order in which entries and slots lead to them.
        let mut slots_done = 0;
        let inside = u32::from(cut.upper_bits) - self.direct_bits;
        for (at, &entry) in self.direct.iter().enumerate() {
            let (shift, ground) = (entry & 31, entry >> SHIFT_BITS);
            let (upper, count) = if at + 1 == entries {
                holds(entry & 31 == 31, "(2) the last entry tells two halves apart", at)?;
                (0, 2)
            } else {
                let bits = inside.checked_sub(shift);
                let bits = bits.ok_or(CheckError::new("(2) a shift is within the entry", at))?;
                ((u64::from(self.first) + at as u64) << inside, 1usize << bits)
            };
            let first = ground.wrapping_add(window(upper) >> shift) & (GROUND - 1);
            holds(first as usize == slots_done, "(2) slots follow one another", at)?;
            holds(slots_done + count <= self.slots.len(), "(2) slots are within their array", at)?;
            for slot in slots_done..slots_done + count {
                let offset = if at + 1 == entries { 0 } else { ((slot - slots_done) as u64) << shift };
                walk.slot(slot, upper | offset)?;
            }
            slots_done += count;
        }
        holds(slots_done == self.slots.len(), "(2) every slot has an entry", slots_done)?;
        holds(walk.lines_done + PADDING == self.lines.len(), "(3) every tree has a slot", walk.lines_done)?;
        let empty = self.lines[walk.lines_done..].iter().all(|&line| line == EMPTY);
        holds(empty, "(3) padding is empty", walk.lines_done)?;
        self.blocks(walk.fib.blocks.first.len())
    }

    /// Returns where records begin, ascending.
    fn record_places(&self) -> Result<Vec<usize>, CheckError> {
        let holds = CheckError::unless;
        let words = &self.records.words;
        let end = words.len().checked_sub(READ_WORDS);
        let end = end.ok_or(CheckError::new("(6) padding follows the records", words.len()))?;
        let mut places = Vec::new();
        let mut done = 0;
        while done < end {
            let count = (words[done] >> 32) as usize;
            holds(count <= PREFIXES, "(6) a record has few prefixes", done)?;
            places.push(done);
            done += 1 + 2 * count;
        }
        holds(done == end && words[end..].iter().all(|&word| word == 0), "(6) padding is empty", done)?;
        Ok(places)
    }

    fn blocks(&self, count: usize) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let blocks = &self.blocks;
        holds(blocks.next_hops.len() == blocks.ends.len(), "(7) one next hop a piece", blocks.ends.len())?;
        let mut done = 0;
        for at in 0..count {
            let pieces = blocks.pieces(at);
            holds(pieces.start == done && pieces.end > done, "(7) blocks follow one another", at)?;
            done = pieces.end;
            let ends = &blocks.ends[pieces.clone()];
            holds(ends.windows(2).all(|pair| pair[0] < pair[1]), "(7) pieces ascend", at)?;
            let last = intervals::lower_max::<K, u128>(cut::<K>().upper_bits);
            holds(ends.last() == Some(&last), "(7) the last piece ends the block", at)?;
            let next_hops = &blocks.next_hops[pieces];
            holds(next_hops.windows(2).all(|pair| pair[0] != pair[1]), "(7) neighbours differ", at)?;
        }
        holds(done == blocks.ends.len(), "(7) every piece belongs to a block", done)
    }
}

/// Trees are in the order of the first slots that lead to them. Trees of one interval are shared.
struct Walk<'a, K> {
    fib: &'a Forest<K>,
    lines_done: usize,
    /// The tree of the slot before.
    last_tree: Option<u32>,
    /// Where records begin.
    records: Vec<usize>,
}

impl<K: Key> Walk<'_, K> {
    /// Checks a slot whose first upper part is `upper`.
    fn slot(&mut self, at: usize, upper: u64) -> Result<(), CheckError> {
        let tree = self.fib.slots[at];
        let same = self.last_tree.replace(tree) == Some(tree);
        let place = (tree >> ROOTS_BITS) as usize;
        if same || place < self.lines_done {
            // The slot before leads to the same tree, or the tree is a shared one.
            return CheckError::unless(place < self.lines_done, "(3) a slot leads to a tree", at);
        }
        CheckError::unless(place == self.lines_done, "(3) trees follow one another", at)?;
        let levels = (tree & ((1 << ROOTS_BITS) - 1)) + 1;
        self.node(levels as usize, window(upper), u32::MAX)?;
        Ok(())
    }

    /// Checks a node with so many levels of inner nodes, whose windows are from `low` to `high`. Returns whether it is
    /// full.
    fn node(&mut self, levels: usize, low: u32, high: u32) -> Result<bool, CheckError> {
        let holds = CheckError::unless;
        let place = self.lines_done;
        let fib = self.fib;
        let Line(line) = fib.lines.get(place).ok_or(CheckError::new("(3) a node is a line", place))?;
        self.lines_done += 1;
        let keys = if levels == 0 { &line[..fib.leaf_keys as usize] } else { &line[..] };
        let count = keys.iter().filter(|&&key| key != u32::MAX).count();
        let used = &keys[..count];
        holds(keys[count..].iter().all(|&key| key == u32::MAX), "(4) keys come before the padding", place)?;
        holds(used.windows(2).all(|pair| pair[0] < pair[1]), "(4) keys ascend", place)?;
        holds(used.first().is_none_or(|&key| key >= low), "(4) keys are within the node", place)?;
        holds(used.last().is_none_or(|&key| key < high), "(4) keys are within the node", place)?;
        if levels == 0 {
            self.values(line, count, place)?;
            return Ok(count == keys.len());
        }
        for child in 0..=count {
            // The windows of a child lie between the keys around it.
            let low = child.checked_sub(1).map_or(low, |key| keys[key] + 1);
            let high = if child == count { high } else { keys[child] };
            let expected = place + 1 + child * TREE_LINES[levels - 1] as usize;
            holds(self.lines_done == expected, "(4) children are where their number says", place)?;
            let full = self.node(levels - 1, low, high)?;
            holds(full || child == count, "(4) all children but the last are full", place)?;
        }
        Ok(count + 1 == CHILDREN && self.lines_done == place + TREE_LINES[levels] as usize)
    }

    fn values(&self, line: &[u32; 16], keys: usize, place: usize) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let leaf_keys = self.fib.leaf_keys;
        let values: Vec<u32> = (0..=leaf_keys as usize)
            .map(|at| match leaf_keys {
                NARROW => line[leaf_keys as usize + at / 2] >> (16 * (at % 2)) & 0xffff,
                _ => line[leaf_keys as usize + at],
            })
            .collect();
        holds(
            values[keys..].iter().all(|&value| value == values[keys]),
            "(5) the last value fills up",
            place,
        )?;
        let known = |&value: &u32| {
            let place = (value & (block_bit(leaf_keys) - 1)) as usize;
            match (value & below_bit(leaf_keys), value & block_bit(leaf_keys)) {
                (0, _) => true,
                (_, 0) => self.records.binary_search(&place).is_ok(),
                _ => place < self.fib.blocks.first.len(),
            }
        };
        holds(values.iter().all(known), "(5) a value is a next hop, a record or a block", place)
    }
}
