//! The consistency check.

use crate::fib::CheckError;
use crate::net::Key;

use super::BinaryTrie;
use super::layout::ROOT;

impl<K: Key> BinaryTrie<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let mut stack = vec![(ROOT, 0)];
        let mut reached = 0;
        while let Some((at, depth)) = stack.pop() {
            let index = at as usize;
            let node = self.nodes.get(index).ok_or(CheckError::new("(2) a child exists", index))?;
            reached += 1;
            // The bound also ends the walk of nodes that are their own descendants.
            CheckError::unless(reached <= self.nodes.len(), "(2) a node is reachable once", index)?;
            CheckError::unless(depth <= K::BITS, "(3) no node is deeper than the key is wide", index)?;
            let leads = node.next_hop != 0 || node.children != [ROOT; 2];
            CheckError::unless(at == ROOT || leads, "(1) every node leads to a route", index)?;
            let children = node.children.iter().filter(|&&child| child != ROOT);
            stack.extend(children.map(|&child| (child, depth + 1)));
        }
        // The bound ends the walk of a free chain that is a circle.
        let (mut free, mut at) = (0, self.free);
        while at != ROOT && free <= self.free_len {
            free += 1;
            at = self.nodes[at as usize].children[0];
        }
        CheckError::unless(free == self.free_len, "(2) the free chain has the recorded length", free)?;
        CheckError::unless(
            reached + free == self.nodes.len(),
            "(2) every node is in the trie or free",
            reached,
        )
    }
}
