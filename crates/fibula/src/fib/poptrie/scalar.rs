//! The walk down the trie: one key, and a block of keys level by level.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::memory::Cell;
use crate::net::{Key, NextHop};

use super::layout::{LEAF, Leaf, NODE_WORDS, Node, Poptrie, STRIDE, direct, direct_bits, levels, slot};

/// Keys that walk down side by side.
const BLOCK: usize = 128;

/// The words of a node.
type Words = [AtomicU64; NODE_WORDS];

/// Returns the node that these words are now. A writer changes the last one alone.
#[inline(always)]
fn node(words: &Words) -> Node {
    Node::new([words[0].read(), words[1].read(), words[2].read()])
}

impl<K: Key> Poptrie<K> {
    /// Returns the nodes.
    #[inline(always)]
    fn nodes(&self) -> &[Words] {
        self.nodes.as_chunks().0
    }

    /// Looks up one key. What an entry or the last word of a node leads to was written before it.
    pub(super) fn one<L: Leaf>(&self, leaves: &[L], key: K) -> Option<NextHop> {
        let mut entry = self.direct[direct(key)].load(Ordering::Acquire);
        if entry & LEAF != 0 {
            return NextHop::new(entry & !LEAF);
        }
        let mut offset = direct_bits(K::BITS);
        loop {
            let at = entry as usize * NODE_WORDS;
            let [vector, leafvec, bases] = &self.nodes[at..at + NODE_WORDS] else { return None };
            let slot = slot(key, offset);
            let mut node = Node { vector: vector.read(), ..Node::default() };
            if !node.is_node(slot) {
                node = Node::new([0, leafvec.read(), bases.load(Ordering::Acquire)]);
                return NextHop::new(leaves[node.leaf(slot) as usize].next_hop());
            }
            node.nodes = (bases.load(Ordering::Acquire) >> 32) as u32;
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
            let entry = self.direct[direct(key)].read();
            *word = entry & !LEAF;
            walking[count] = at as u8;
            count += usize::from(entry & LEAF == 0);
        }
        // A writer publishes what it wrote by an entry, or by the last word of a node.
        fence(Ordering::Acquire);
        // All keys that walk past the direct table: their words become indices of leaves.
        let left = walking;
        let left_count = count;
        let nodes = self.nodes();
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
                let node = node(&nodes[*word as usize]);
                let slot = slot(key, offset);
                let (deeper, leaf) = (node.node(slot), node.leaf(slot));
                let is_node = node.is_node(slot);
                *word = if is_node { deeper } else { leaf };
                walking[count] = at;
                count += usize::from(is_node);
            }
            fence(Ordering::Acquire);
            offset += STRIDE;
        }
        for &at in &left[..left_count] {
            let word = &mut words[usize::from(at)];
            *word = leaves[*word as usize].next_hop();
        }
    }
}
