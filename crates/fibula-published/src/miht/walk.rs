//! Lookups, one key at a time, as published.

use fibula::net::{Key, NextHop};

use super::layout::{Miht, NONE, Tree, Word, key_of};

impl<W: Word, const M: usize> Tree<W, M> {
    /// Returns what the leaf of a key leads to, if it has the key.
    #[inline(always)]
    pub(super) fn find(&self, key: W) -> Option<usize> {
        let mut node = &self.nodes[self.root];
        for _ in 0..self.height {
            node = &self.nodes[node.below[node.child(key)].number()];
        }
        let at = node.keys().binary_search(&key).ok()?;
        Some(node.below[at].number())
    }
}

impl<K: Key, W: Word, const M: usize> Miht<K, W, M> {
    #[inline(always)]
    pub(super) fn find(&self, key: K) -> Option<NextHop> {
        let found = match self.tree.find(key_of(key, self.key_bits)) {
            Some(trie) => self.find_below(self.roots[trie], self.key_bits, key),
            None => 0,
        };
        NextHop::new(if found == 0 { self.find_below(self.keyless, 0, key) } else { found })
    }

    /// Returns the next hop of the longest match in a trie with its root at this depth; 0 for none.
    #[inline(always)]
    fn find_below(&self, root: u32, mut depth: u8, key: K) -> u32 {
        let (mut node, mut best) = (root, 0);
        while node != NONE {
            let data = &self.data[node as usize];
            if data.addr.common_len(key) >= data.len {
                best = data.next_hop;
                // One that is longer than the way to it is the longest of all below.
                if data.len > depth {
                    break;
                }
            }
            if depth == K::BITS {
                break;
            }
            node = data.below[usize::from(key.bit(depth))];
            depth += 1;
        }
        best
    }
}
