//! The words that a change of one route would rewrite.

use crate::fib::parts::intervals;
use crate::net::{Key, Prefix};
use crate::simd::{LEAF_KEYS, LINE_UNITS, leaf_rank_by_thirds, rank_by_thirds};

use super::layout::{ALONE, DirBtree, LEAF_INTERVALS, SHIFT, cut, lines_of, window};

impl<K: Key> DirBtree<K> {
    /// Returns the number of cache lines that a change of this prefix writes before it stores one word: the tree of the prefix's
    /// slot, replanted for this slot alone. A prefix that is longer than trees search also has the lines of its object. Returns
    /// `None` for a prefix that meets several slots.
    #[must_use]
    pub fn lines_of_change(&self, prefix: Prefix<K>) -> Option<usize> {
        let bits = const { cut::<K>().upper as u8 };
        let upper = intervals::upper(prefix.addr(), bits);
        let view = self.view();
        let (slots, slot) = view.slot::<K>(upper);
        if view.slot::<K>(intervals::upper(prefix.last(), bits)).1 != slot {
            return None;
        }
        let tree = view.load(slot);
        let lines = &lines_of(&self.lines)[(tree / LINE_UNITS) as usize..];
        let place = |window: u32| {
            let leaf = rank_by_thirds(&lines[0], window);
            let line = &lines[1 + leaf as usize];
            leaf as usize * LEAF_INTERVALS + leaf_rank_by_thirds(line, window) as usize
        };
        let shift = slots & SHIFT;
        let inside = if shift == ALONE { u32::MAX } else { (1 << shift) - 1 };
        let window = window(upper);
        let intervals = place(window | inside) + 1 - place(window & !inside);
        // An object of a few prefixes is 72 bytes; it grows with their number.
        let object = usize::from(prefix.len() > bits) * 2;
        Some(1 + (intervals - 1) / (LEAF_KEYS + 1) + 1 + object)
    }
}
