//! The consistency check.

use fibula::fib::CheckError;
use fibula::net::Key;

use super::layout::{LEAF, Neurotrie, node_of};

impl<K: Key> Neurotrie<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        if let Some(next_hops) = &self.next_hops {
            for (code, &next_hop) in next_hops.iter().enumerate() {
                holds((code == 0) == (next_hop == 0), "(4) code 0 alone is no route", code)?;
            }
        }
        let codes = self.next_hops.as_ref().map_or(LEAF as usize, Vec::len);
        let mut done = 0;
        self.below(self.root, 0, codes, &mut done)?;
        holds(done == self.entries.len(), "(1) every entry is of a node", done)
    }

    /// Checks what an entry leads to, whose nodes begin where those before end.
    fn below(&self, entry: u32, offset: u8, codes: usize, done: &mut usize) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        if entry & LEAF != 0 {
            return holds(((entry & !LEAF) as usize) < codes, "(4) a code has a next hop", *done);
        }
        let (first, stride) = node_of(entry);
        holds(first == *done, "(1) a node follows all before it", first)?;
        holds(offset + stride <= K::BITS, "(2) the strides to a leaf are within a key", first)?;
        let node = self.entries.get(first..first + (1 << stride));
        let node = node.ok_or(CheckError::new("(1) a node is within the array", first))?;
        *done += node.len();
        holds(node.iter().any(|&entry| entry != node[0]), "(3) a node has entries that differ", first)?;
        node.iter().try_for_each(|&entry| self.below(entry, offset + stride, codes, done))
    }
}
