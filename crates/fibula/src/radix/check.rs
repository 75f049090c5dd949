//! The invariants of the tree.

use crate::check::CheckError;
use crate::net::Key;

use super::{FREE, ROOT, RadixTree};

impl<K: Key> RadixTree<K> {
    /// Checks the module's invariants.
    ///
    /// # Errors
    /// The first invariant that does not hold, and the node.
    pub fn check(&self) -> Result<(), CheckError> {
        let fail = |holds, invariant, at: u32| CheckError::unless(holds, invariant, at as usize);
        let mut stack: Vec<u32> = if self.nodes.is_empty() { Vec::new() } else { vec![ROOT] };
        let (mut reached, mut routes) = (0, 0);
        while let Some(at) = stack.pop() {
            let node = &self.nodes[at as usize];
            reached += 1;
            fail(reached <= self.nodes.len(), "a node is reachable once", at)?;
            routes += usize::from(node.next_hop != 0);
            fail(node.prefix().addr() == node.key, "bits after the length are zero", at)?;
            let children = node.children.iter().filter(|&&child| child != ROOT).count();
            fail(
                at == ROOT || node.next_hop != 0 || children == 2,
                "a node has a route or two children",
                at,
            )?;
            fail(node.len < K::BITS || children == 0, "a host prefix has no children", at)?;
            for (side, &child) in node.children.iter().enumerate().filter(|(_, child)| **child != ROOT) {
                let below =
                    self.nodes.get(child as usize).ok_or(CheckError::new("a child exists", at as usize))?;
                fail(below.len > node.len && node.contains(below.key), "a child extends its parent", child)?;
                fail(node.side(below.key) == side, "a child continues with the bit of its side", child)?;
                stack.push(child);
            }
        }
        let (mut free, mut at) = (0, self.free);
        while at != ROOT && free <= self.free_len {
            free += 1;
            let node = &self.nodes[at as usize];
            fail(node.len == FREE && node.next_hop == 0, "a free node has no prefix and no route", at)?;
            at = node.children[0];
        }
        fail(free == self.free_len, "the free chain has the recorded length", self.free)?;
        fail(reached + free == self.nodes.len(), "every node is in the tree or free", ROOT)?;
        fail(routes == self.routes, "the number of routes is right", ROOT)?;
        match self.index.fault(&self.nodes) {
            Some(slot) => Err(CheckError::new("a slot has the longest node and route that contain it", slot)),
            None => Ok(()),
        }
    }
}
