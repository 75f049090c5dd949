//! The consistency check.

use fibula::fib::CheckError;
use fibula::net::Key;

use super::layout::{Miht, NONE, Tree, Word};
use super::tries::Link;

/// What a walk has met.
#[derive(Default)]
struct Met {
    tries: Vec<bool>,
    data: usize,
}

impl<K: Key, W: Word, const M: usize> Miht<K, W, M> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let mut met = Met { tries: vec![false; self.roots.len()], data: 0 };
        for (key, trie) in self.tree.walk()? {
            let is_new = met.tries.get_mut(trie).map(|met| !core::mem::replace(met, true));
            holds(is_new == Some(true), "(3) a key has a trie of its own", trie)?;
            holds(self.roots[trie] != NONE, "(3) a trie has a route", trie)?;
            let addr = K::from_bits((key.number() as u128) << (K::BITS - self.key_bits));
            let lens = (self.key_bits, K::BITS);
            self.walk_trie(Link::Root(trie), self.key_bits, addr, lens, &mut met)?;
        }
        self.walk_trie(Link::Keyless, 0, K::ZERO, (0, self.key_bits - 1), &mut met)?;
        let (mut free, mut root) = (0, self.free_root);
        while root != NONE && free <= self.free_roots {
            let is_new = met.tries.get_mut(root as usize).map(|met| !core::mem::replace(met, true));
            holds(is_new == Some(true), "(3) a root is that of a key or free", root as usize)?;
            (free, root) = (free + 1, self.roots[root as usize]);
        }
        holds(free == self.free_roots, "(3) the free roots have the recorded number", free)?;
        holds(met.tries.iter().all(|&met| met), "(3) a root is that of a key or free", free)?;
        let (mut free, mut node) = (0, self.free);
        while node != NONE && free <= self.free_len {
            let data = self.data.get(node as usize);
            let data = data.ok_or(CheckError::new("(6) a free node exists", node as usize))?;
            (free, node) = (free + 1, data.below[0]);
        }
        holds(free == self.free_len, "(6) the free nodes have the recorded number", free)?;
        holds(met.data + free == self.data.len(), "(6) every node is in a trie or free", met.data)
    }

    /// Checks a trie whose addresses begin like `addr` up to its depth, and returns the length of its longest route.
    fn walk_trie(
        &self,
        link: Link,
        depth: u8,
        addr: K,
        (shortest, longest): (u8, u8),
        met: &mut Met,
    ) -> Result<u8, CheckError> {
        let holds = CheckError::unless;
        let node = self.follow(link);
        if node == NONE {
            return Ok(0);
        }
        let at = node as usize;
        let data = self.data.get(at).ok_or(CheckError::new("(6) a node exists", at))?;
        met.data += 1;
        holds(met.data <= self.data.len(), "(6) a node is reachable once", at)?;
        holds(data.addr.common_len(addr) >= depth, "(4) a route begins with the way to it", at)?;
        holds(data.addr == data.addr.and(K::mask(data.len)), "(4) bits after the length are zero", at)?;
        holds((shortest..=longest).contains(&data.len), "(3) a route is as long as its trie's are", at)?;
        holds(data.len >= depth && data.next_hop != 0, "(4) a route is as long as the way to it", at)?;
        holds(depth < K::BITS || data.below == [NONE; 2], "(4) a trie ends with the key", at)?;
        let mut most = 0;
        if depth < K::BITS {
            for side in 0..2 {
                let bit = K::mask(depth + 1).xor(K::mask(depth));
                let begin = data.addr.and(K::mask(depth));
                let begin = if side == 1 { begin.or(bit) } else { begin };
                let link = Link::Below(node, side);
                most = most.max(self.walk_trie(link, depth + 1, begin, (shortest, longest), met)?);
            }
        }
        holds(data.len == depth || data.len >= most, "(5) a route is the longest of all below it", at)?;
        Ok(most.max(data.len))
    }
}

impl<W: Word, const M: usize> Tree<W, M> {
    /// Checks the tree and returns its keys, each with the number of its trie.
    fn walk(&self) -> Result<Vec<(W, usize)>, CheckError> {
        let holds = CheckError::unless;
        let mut leaves = Vec::new();
        let reached = self.walk_node(self.root, self.height, &mut leaves)?;
        let ascends = leaves.windows(2).all(|pair| pair[0].0 < pair[1].0);
        holds(ascends, "(2) the keys of all leaves ascend", leaves.len())?;
        holds(leaves.len() == self.keys, "(2) the number of keys is right", leaves.len())?;
        let mut free = self.free;
        for _ in 0..self.free_len {
            let node = self.nodes.get(free.number());
            free = node.ok_or(CheckError::new("(1) a free node exists", free.number()))?.below[0];
        }
        holds(reached + self.free_len == self.nodes.len(), "(1) every node is in the tree or free", reached)?;
        Ok(leaves)
    }

    /// Checks a node this far above the leaves, and returns how many nodes there are from it on.
    fn walk_node(&self, at: usize, height: usize, leaves: &mut Vec<(W, usize)>) -> Result<usize, CheckError> {
        let holds = CheckError::unless;
        let node = self.nodes.get(at).ok_or(CheckError::new("(1) a node exists", at))?;
        holds(node.len() < self.order, "(1) a node has no more children than the order says", at)?;
        let fewest = match (at == self.root, height) {
            (true, 0) => 0,
            (true, _) => 1,
            (false, _) => self.fewest(height == 0),
        };
        holds(node.len() >= fewest, "(1) a node is half full", at)?;
        if height == 0 {
            leaves.extend(node.keys().iter().zip(&node.below).map(|(&key, below)| (key, below.number())));
            return Ok(1);
        }
        let mut reached = 1;
        for child in 0..=node.len() {
            let first = leaves.len();
            reached += self.walk_node(node.below[child].number(), height - 1, leaves)?;
            holds(reached <= self.nodes.len(), "(1) a node is reachable once", at)?;
            let (least, most) = (leaves.get(first), leaves.last());
            let above = |key: W| child == 0 || key >= node.keys[child - 1];
            let below = |key: W| child == node.len() || key < node.keys[child];
            let is_between = least.is_some_and(|key| above(key.0)) && most.is_some_and(|key| below(key.0));
            holds(is_between, "(2) keys are below their child", at)?;
        }
        Ok(reached)
    }
}
