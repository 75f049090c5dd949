//! The consistency check.

use crate::fib::CheckError;
use crate::net::Key;

use super::layout::{LEAF, Leaves, Node, Poptrie, SLOTS, direct_bits, levels};

impl<K: Key> Poptrie<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let entries = 1 << direct_bits(K::BITS);
        holds(self.direct.len() == entries, "(1) an entry for all leading bits", self.direct.len())?;
        let mut walk = Walk { nodes: &self.nodes, leaves: &self.leaves, nodes_done: 0, leaves_done: 0 };
        for &entry in self.direct.iter().filter(|&&entry| entry & LEAF == 0) {
            walk.node(entry as usize, levels(K::BITS))?;
            holds(walk.nodes_done == entry as usize, "(2) a node follows its children", walk.nodes_done)?;
            walk.nodes_done += 1;
        }
        holds(walk.nodes_done == self.nodes.len(), "(2) every node has a parent", walk.nodes_done)?;
        holds(walk.leaves_done == self.leaves.len(), "(3) every leaf has a node", walk.leaves_done)
    }
}

/// A node is made when its last slot is known. So everything below a node comes before its children, and its leaves
/// come after theirs.
struct Walk<'a> {
    nodes: &'a [Node],
    leaves: &'a Leaves,
    nodes_done: usize,
    leaves_done: usize,
}

impl Walk<'_> {
    /// Checks a node that has at most `levels` levels, its own included.
    fn node(&mut self, index: usize, levels: usize) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let node = *self.nodes.get(index).ok_or(CheckError::new("(2) a node is within the array", index))?;
        holds(levels > 1 || node.vector == 0, "(2) the last level has leaves only", index)?;
        let children = node.vector.count_ones() as usize;
        for child in 0..children {
            self.node(node.nodes as usize + child, levels - 1)?;
        }
        holds(node.nodes as usize == self.nodes_done, "(2) children follow all that is below them", index)?;
        self.nodes_done += children;

        // The children are done, so the node's own leaves come next.
        let leaf_slots = !node.vector;
        holds(node.leafvec & node.vector == 0, "(4) a slot is a node or a leaf", index)?;
        let first = leaf_slots & leaf_slots.wrapping_neg();
        holds(node.leafvec & first == first, "(4) the first leaf has a bit", index)?;
        let count = node.leafvec.count_ones() as usize;
        holds(node.leaves as usize == self.leaves_done, "(3) leaves follow those of the nodes below", index)?;
        self.leaves_done += count;
        holds(self.leaves_done <= self.leaves.len(), "(3) leaves are within the array", index)?;
        let differ = match self.leaves {
            Leaves::Narrow(leaves) => differ(&leaves[self.leaves_done - count..self.leaves_done]),
            Leaves::Wide(leaves) => differ(&leaves[self.leaves_done - count..self.leaves_done]),
        };
        holds(differ, "(4) neighbouring leaves differ", index)?;
        debug_assert!(count <= SLOTS);
        Ok(())
    }
}

fn differ<T: PartialEq>(leaves: &[T]) -> bool {
    leaves.windows(2).all(|pair| pair[0] != pair[1])
}
