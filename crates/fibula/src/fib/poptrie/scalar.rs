//! The walk down the trie: one key, and a block of keys level by level.

use crate::net::{Key, NextHop};

use super::layout::{LEAF, Leaf, Node, Poptrie, STRIDE, direct, direct_bits, levels, slot};

/// Keys that walk down side by side.
const BLOCK: usize = 128;

impl<K: Key> Poptrie<K> {
    /// Looks up one key.
    pub(super) fn one<L: Leaf>(&self, leaves: &[L], key: K) -> Option<NextHop> {
        let mut entry = self.direct[direct(key)];
        if entry & LEAF != 0 {
            return NextHop::new(entry & !LEAF);
        }
        let mut offset = direct_bits(K::BITS);
        loop {
            let node = &self.nodes[entry as usize];
            let slot = slot(key, offset);
            if !node.is_node(slot) {
                return NextHop::new(leaves[node.leaf(slot) as usize].into());
            }
            entry = node.node(slot);
            offset += STRIDE;
        }
    }

    /// Looks up a batch, each block of it level by level: no key waits for another, and no branch depends on a key.
    #[inline(always)]
    pub(super) fn batch<L: Leaf>(&self, leaves: &[L], keys: &[K], results: &mut [Option<NextHop>]) {
        for (keys, results) in keys.chunks(BLOCK).zip(results.chunks_mut(BLOCK)) {
            self.block(leaves, keys, NextHop::words(results));
        }
    }

    #[inline(always)]
    fn block<L: Leaf>(&self, leaves: &[L], keys: &[K], words: &mut [u32]) {
        // The keys that are still walking. Each key is written, and the count decides whether it stays.
        let mut walking = [0u8; BLOCK + 1];
        let mut count = 0;
        for (at, (&key, word)) in keys.iter().zip(&mut *words).enumerate() {
            let entry = self.direct[direct(key)];
            *word = entry & !LEAF;
            walking[count] = at as u8;
            count += usize::from(entry & LEAF == 0);
        }
        // All keys that walk past the direct table: their words become indices of leaves.
        let left = walking;
        let left_count = count;
        let nodes: &[Node] = &self.nodes;
        let mut offset = direct_bits(K::BITS);
        for _ in 0..levels(K::BITS) {
            if count == 0 {
                break;
            }
            // The list is rewritten in place: a key is written at or before the place that it is read from.
            let walkers = core::mem::take(&mut count);
            for index in 0..walkers {
                let at = walking[index];
                let (key, word) = (keys[usize::from(at)], &mut words[usize::from(at)]);
                let node = &nodes[*word as usize];
                let slot = slot(key, offset);
                let (deeper, leaf) = (node.node(slot), node.leaf(slot));
                let is_node = node.is_node(slot);
                *word = if is_node { deeper } else { leaf };
                walking[count] = at;
                count += usize::from(is_node);
            }
            offset += STRIDE;
        }
        for &at in &left[..left_count] {
            let word = &mut words[usize::from(at)];
            *word = leaves[*word as usize].into();
        }
    }
}
