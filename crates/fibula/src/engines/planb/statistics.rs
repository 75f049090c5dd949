//! Sizes: how much a tree of a given height can hold, and how large the parts of a built tree are.

use crate::memory::{self, Memory};
use crate::net::Key;

use super::PlanB;
use super::layout::{Codes, Node};

/// The number of nodes and levels of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeShape {
    /// Keys of a node.
    pub node_keys: usize,
    /// Levels above the leaves.
    pub internal_levels: u32,
    /// Nodes of those levels.
    pub internal_nodes: usize,
    /// Leaves.
    pub leaf_nodes: usize,
}

impl TreeShape {
    /// Returns the shape of the smallest tree for `keys` keys: as few levels as hold them, and as few leaves.
    pub fn of(node_keys: usize, keys: usize) -> Self {
        let arity = node_keys + 1;
        let leaf_nodes = keys.div_ceil(node_keys).max(1);
        let (mut internal_levels, mut internal_nodes, mut level_nodes) = (0, 0, 1);
        while level_nodes < leaf_nodes {
            internal_nodes += level_nodes;
            internal_levels += 1;
            level_nodes *= arity;
        }
        Self { node_keys, internal_levels, internal_nodes, leaf_nodes }
    }

    /// Returns the children of a node.
    #[must_use]
    pub fn arity(&self) -> usize {
        self.node_keys + 1
    }

    /// Returns the leaf keys below one node of level `depth`; the leaves are the last level.
    pub fn keys_below(&self, depth: u32) -> usize {
        self.node_keys * self.arity().pow(self.internal_levels - depth)
    }
}

/// The size of a full tree of a given height (section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Levels above the leaves; a lookup reads one more node.
    pub internal_levels: u32,
    /// Nodes of those levels.
    pub internal_nodes: u64,
    /// Most leaves.
    pub leaf_nodes: u64,
    /// Most keys; there is one more interval.
    pub keys: u64,
    /// Bytes of the internal nodes, which are always stored completely.
    pub internal_bytes: u64,
    /// Bytes of the leaves of a full tree.
    pub leaf_bytes: u64,
}

/// Returns the size of a full tree of such nodes with `internal_levels` levels above the leaves.
///
/// # Panics
/// When the count of keys exceeds 64 bits, which begins at 19 levels of 8-key nodes.
#[must_use]
pub fn capacity<N: Node>(internal_levels: u32) -> Capacity {
    let (keys, node_bytes) = (N::KEYS as u64, size_of::<N>() as u64);
    let fits = "the capacity of so many levels does not fit 64 bits";
    let leaf_nodes = (keys + 1).checked_pow(internal_levels).expect(fits);
    // The sum of the powers of all levels above: a geometric series.
    let internal_nodes = (leaf_nodes - 1) / keys;
    Capacity {
        internal_levels,
        internal_nodes,
        leaf_nodes,
        keys: leaf_nodes.checked_mul(keys).expect(fits),
        internal_bytes: internal_nodes.checked_mul(node_bytes).expect(fits),
        leaf_bytes: leaf_nodes.checked_mul(node_bytes).expect(fits),
    }
}

/// The sizes of the parts of a built tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeStatistics {
    /// Elementary intervals of the searched half; a block of longer prefixes counts as one.
    pub intervals: usize,
    /// Levels above the leaves; a lookup reads one more node.
    pub internal_levels: u32,
    /// Nodes of those levels.
    pub internal_nodes: usize,
    /// Leaves stored.
    pub leaf_nodes: usize,
    /// Bytes of the internal nodes.
    pub internal_bytes: usize,
    /// Bytes of the leaves.
    pub leaf_bytes: usize,
    /// Bits of a value, 16 or 32.
    pub value_bits: u32,
    /// Bytes of the values.
    pub value_bytes: usize,
    /// Distinct next hops.
    pub next_hops: usize,
    /// Bytes of the dictionary from values to next hops.
    pub next_hop_bytes: usize,
    /// Blocks of prefixes that are longer than the searched half.
    pub blocks: usize,
    /// Ranges inside those blocks.
    pub block_ranges: usize,
    /// Bytes of those blocks.
    pub block_bytes: usize,
}

impl TreeStatistics {
    /// Returns the bytes that the paper counts: nodes and values, without the dictionary and the blocks.
    #[must_use]
    pub fn published_bytes(&self) -> usize {
        self.internal_bytes + self.leaf_bytes + self.value_bytes
    }
}

impl<K: Key, N: Node> PlanB<K, N> {
    /// Returns the sizes of the parts of the tree.
    #[must_use]
    pub fn statistics(&self) -> TreeStatistics {
        let (intervals, value_bits) = match &self.codes {
            Codes::Narrow(codes) => (codes.len(), u16::BITS),
            Codes::Wide(codes) => (codes.len(), u32::BITS),
        };
        let leaf_nodes = self.nodes.len() - self.leaf_first;
        TreeStatistics {
            intervals,
            internal_levels: self.levels,
            internal_nodes: self.leaf_first,
            leaf_nodes,
            internal_bytes: self.leaf_first * size_of::<N>(),
            leaf_bytes: leaf_nodes * size_of::<N>(),
            value_bits,
            value_bytes: intervals * (value_bits / u8::BITS) as usize,
            // Code 0 is no route, and no next hop.
            next_hops: self.next_hops.len().saturating_sub(1),
            next_hop_bytes: size_of_val(&*self.next_hops),
            blocks: self.blocks.first.len(),
            block_ranges: self.blocks.ends.len(),
            block_bytes: size_of_val(&*self.blocks.first)
                + size_of_val(&*self.blocks.ends)
                + size_of_val(&*self.blocks.next_hops),
        }
    }

    /// Returns the memory of the tree. All arrays are cut to size, so lookups may read all of it, except for the end of
    /// a mapping's last page.
    pub fn bytes(&self) -> Memory {
        let codes = match &self.codes {
            Codes::Narrow(codes) => memory::of(codes),
            Codes::Wide(codes) => memory::of(codes),
        };
        let Self { nodes, next_hops, blocks, .. } = self;
        memory::of(nodes) + codes + memory::of(next_hops) + blocks.memory()
    }
}
