//! The data that lookups read: the direct table, the nodes and the leaves.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU16, AtomicU32};

use fibula::net::Key;
use fibula::unstable::memory::{Cell, Shared, Word};

/// Bits of the key that a node reads: 64 slots.
pub(super) const STRIDE: u32 = 6;

/// Slots of a node.
pub(super) const SLOTS: usize = 1 << STRIDE;

/// Words of a node.
pub(super) const NODE_WORDS: usize = 3;

/// An internal node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// A bit for each slot: set for an internal node, clear for a leaf.
    pub(super) vector: u64,
    /// A bit for each slot: set for a leaf that differs from the leaf before it in this node.
    pub(super) leafvec: u64,
    /// Index of the first leaf.
    pub(super) leaves: u32,
    /// Index of the first child.
    pub(super) nodes: u32,
}

/// Returns a mask of the first `slot + 1` bits.
#[inline(always)]
pub(super) fn up_to(slot: u32) -> u64 {
    // One instruction where there is BMI2.
    (2u64 << slot).wrapping_sub(1)
}

impl Node {
    /// Returns the node of these words.
    #[inline(always)]
    pub(super) fn new([vector, leafvec, bases]: [u64; NODE_WORDS]) -> Self {
        Self { vector, leafvec, leaves: bases as u32, nodes: (bases >> 32) as u32 }
    }

    /// Returns the words of the node.
    pub(super) fn words(self) -> [u64; NODE_WORDS] {
        [self.vector, self.leafvec, self.bases()]
    }

    /// Returns the word that leads to leaves and children.
    pub(super) fn bases(self) -> u64 {
        u64::from(self.nodes) << 32 | u64::from(self.leaves)
    }

    /// Returns whether a slot is an internal node.
    #[inline(always)]
    pub(super) fn is_node(&self, slot: u32) -> bool {
        self.vector >> slot & 1 != 0
    }

    /// Returns the index of the node in a slot that is an internal node.
    #[inline(always)]
    pub(super) fn node(&self, slot: u32) -> u32 {
        self.nodes.wrapping_add((self.vector & up_to(slot)).count_ones()).wrapping_sub(1)
    }

    /// Returns the index of the leaf in a slot that is a leaf.
    #[inline(always)]
    pub(super) fn leaf(&self, slot: u32) -> u32 {
        self.leaves.wrapping_add((self.leafvec & up_to(slot)).count_ones()).wrapping_sub(1)
    }

    /// Returns the number of children.
    pub(super) fn children(&self) -> u32 {
        self.vector.count_ones()
    }

    /// Returns the number of leaves.
    pub(super) fn leaf_count(&self) -> u32 {
        self.leafvec.count_ones()
    }
}

/// The bit of a direct entry that is set for a next hop and clear for a node: the paper's `LEAF`.
pub(super) const LEAF: u32 = 1 << 31;

/// The leaves, which are next hops: 16 bits wide where all next hops of a table fit, else 32.
#[derive(Debug)]
pub(super) enum Leaves {
    Narrow(Shared<u16>),
    Wide(Shared<u32>),
}

/// A leaf as it is stored.
pub(super) trait Leaf: Cell {
    /// Returns the next hop.
    fn next_hop(&self) -> u32;
}

impl Leaf for AtomicU16 {
    #[inline(always)]
    fn next_hop(&self) -> u32 {
        self.read().into()
    }
}

impl Leaf for AtomicU32 {
    #[inline(always)]
    fn next_hop(&self) -> u32 {
        self.read()
    }
}

/// The width of leaves.
pub(super) trait LeafWord: Word<Atomic: Leaf> {
    /// The greatest next hop.
    const MOST: u32;

    /// Returns the leaf of a next hop, which is not greater.
    fn of(next_hop: u32) -> Self;

    /// Returns an array as the leaves of a trie.
    fn leaves(array: Shared<Self>) -> Leaves;
}

impl LeafWord for u16 {
    const MOST: u32 = 0xffff;

    fn of(next_hop: u32) -> Self {
        next_hop as Self
    }

    fn leaves(array: Shared<Self>) -> Leaves {
        Leaves::Narrow(array)
    }
}

impl LeafWord for u32 {
    const MOST: u32 = u32::MAX;

    fn of(next_hop: u32) -> Self {
        next_hop
    }

    fn leaves(array: Shared<Self>) -> Leaves {
        Leaves::Wide(array)
    }
}

/// A Poptrie with direct pointing.
#[derive(Debug)]
pub(crate) struct Poptrie<K> {
    /// [`LEAF`] and a next hop, or the index of a node, for each value of the leading bits.
    pub(super) direct: Shared<u32>,
    /// The words of the nodes.
    pub(super) nodes: Shared<u64>,
    pub(super) leaves: Leaves,
    /// Number of nodes and of leaves that are used or free, where a writer changes it.
    pub(super) ends: Option<[AtomicU32; 2]>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// Returns the bits of direct pointing: the paper's 18, and the same share of narrower keys.
pub(super) const fn direct_bits(key_bits: u8) -> u32 {
    if key_bits >= 32 { 18 } else { key_bits as u32 * 18 / 32 }
}

/// Returns the levels of nodes below the direct table.
pub(super) const fn levels(key_bits: u8) -> usize {
    (key_bits as u32 - direct_bits(key_bits)).div_ceil(STRIDE) as usize
}

/// Returns the key bits after a slot of level `level - 1`, or after a direct entry where `level` is 0.
pub(super) const fn rest_bits(key_bits: u8, level: usize) -> u32 {
    (key_bits as u32 - direct_bits(key_bits)).saturating_sub(STRIDE * level as u32)
}

/// Returns the slot of a key in nodes that read the bits from `offset` on. Bits past the end of the key are zeros.
#[inline(always)]
pub(super) fn slot<K: Key>(key: K, offset: u32) -> u32 {
    if K::BITS <= 64 {
        let key = (key.to_bits() as u64) << (64 - u32::from(K::BITS));
        ((key << offset) >> (64 - STRIDE)) as u32
    } else {
        let key = key.to_bits() << (128 - u32::from(K::BITS));
        ((key << offset) >> (128 - STRIDE)) as u32
    }
}

/// Returns the index of the direct entry of a key.
#[inline(always)]
pub(super) fn direct<K: Key>(key: K) -> usize {
    key.window(0, direct_bits(K::BITS) as u8) as usize
}
