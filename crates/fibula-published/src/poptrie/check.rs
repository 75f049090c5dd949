//! The consistency check.

use fibula::fib::CheckError;
use fibula::net::Key;
use fibula::unstable::memory::Cell;
use fibula::unstable::parts::units::Unit;

use super::layout::{LEAF, Leaves, NODE_WORDS, Node, Poptrie, SLOTS, levels};

/// The units that entries lead to, in the order of the walk.
#[derive(Debug, Default)]
pub(super) struct Reached {
    pub(super) nodes: Vec<Unit>,
    pub(super) leaves: Vec<Unit>,
}

impl<K: Key> Poptrie<K> {
    pub(super) fn walk(&self) -> Result<(), CheckError> {
        let reached = self.reached()?;
        if self.ends.is_some() {
            // Its writer knows which elements are free.
            return Ok(());
        }
        let leaves = match &self.leaves {
            Leaves::Narrow(leaves) => leaves.len(),
            Leaves::Wide(leaves) => leaves.len(),
        };
        in_order(&reached.nodes, self.nodes.len() / NODE_WORDS, "(2) nodes follow all that is below them")?;
        in_order(&reached.leaves, leaves, "(3) leaves follow those of the nodes below")
    }

    /// Checks all nodes that entries lead to, and returns the units.
    pub(super) fn reached(&self) -> Result<Reached, CheckError> {
        let holds = CheckError::unless;
        let entries = 1 << super::layout::direct_bits(K::BITS);
        holds(self.direct.len() == entries, "(1) an entry for all leading bits", self.direct.len())?;
        let mut walk = Walk { nodes: &self.nodes, leaves: &self.leaves, met: 0, reached: Reached::default() };
        for entry in self.direct.iter().map(Cell::read).filter(|entry| entry & LEAF == 0) {
            walk.node(entry, levels(K::BITS))?;
            walk.reached.nodes.push(Unit { place: entry, size: 1 });
        }
        Ok(walk.reached)
    }
}

/// Checks that units fill an array in their order.
fn in_order(units: &[Unit], end: usize, what: &'static str) -> Result<(), CheckError> {
    let mut done = 0;
    for unit in units {
        CheckError::unless(unit.place == done, what, done as usize)?;
        done += unit.size;
    }
    CheckError::unless(done as usize == end, what, end)
}

/// A build makes a node when its last slot is known. So everything below a node comes before its children, and its leaves
/// come after theirs.
struct Walk<'a> {
    nodes: &'a [core::sync::atomic::AtomicU64],
    leaves: &'a Leaves,
    /// Number of nodes met.
    met: usize,
    reached: Reached,
}

impl Walk<'_> {
    /// Checks a node that has at most `levels` levels, its own included.
    fn node(&mut self, index: u32, levels: usize) -> Result<(), CheckError> {
        let holds = CheckError::unless;
        let at = index as usize;
        let words = self.nodes.as_chunks::<NODE_WORDS>().0.get(at);
        let words = words.ok_or(CheckError::new("(2) a node is within the array", at))?;
        let node = Node::new(words.each_ref().map(Cell::read));
        holds(levels > 1 || node.vector == 0, "(2) the last level has leaves only", at)?;
        // Every node is met once, so that the walk ends soon whatever the words are.
        self.met += 1;
        holds(self.met <= self.nodes.len() / NODE_WORDS, "(2) a node has one parent", at)?;
        for child in 0..node.children() {
            self.node(node.nodes.saturating_add(child), levels - 1)?;
        }
        if node.vector != 0 {
            self.reached.nodes.push(Unit { place: node.nodes, size: node.children() });
        }

        let leaf_slots = !node.vector;
        holds(node.leafvec & node.vector == 0, "(4) a slot is a node or a leaf", at)?;
        let first = leaf_slots & leaf_slots.wrapping_neg();
        holds(node.leafvec & first == first, "(4) the first leaf has a bit", at)?;
        let count = node.leaf_count() as usize;
        debug_assert!(count <= SLOTS);
        let range = node.leaves as usize..node.leaves as usize + count;
        let differ = match self.leaves {
            Leaves::Narrow(leaves) => leaves.get(range).map(differ),
            Leaves::Wide(leaves) => leaves.get(range).map(differ),
        };
        holds(differ.is_some(), "(3) leaves are within the array", at)?;
        holds(differ == Some(true), "(4) neighbouring leaves differ", at)?;
        if count > 0 {
            self.reached.leaves.push(Unit { place: node.leaves, size: count as u32 });
        }
        Ok(())
    }
}

fn differ<T: Cell<Value: PartialEq>>(leaves: &[T]) -> bool {
    leaves.windows(2).all(|pair| pair[0].read() != pair[1].read())
}
