//! The data that lookups read: the direct table, the nodes and the leaves.

use core::marker::PhantomData;

use crate::memory::Buffer;
use crate::net::Key;

/// Bits of the key that a node reads: 64 slots.
pub(super) const STRIDE: u32 = 6;

/// Slots of a node.
pub(super) const SLOTS: usize = 1 << STRIDE;

/// An internal node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
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

const _: () = assert!(size_of::<Node>() == 24);

/// Returns a mask of the first `slot + 1` bits.
#[inline(always)]
fn up_to(slot: u32) -> u64 {
    u64::MAX >> (63 - slot)
}

impl Node {
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
}

/// The bit of a direct entry that is set for a next hop and clear for a node: the paper's `LEAF`.
pub(super) const LEAF: u32 = 1 << 31;

/// The leaves, which are next hops: 16 bits wide where all next hops of a table fit, else 32.
#[derive(Debug, Clone)]
pub(super) enum Leaves {
    Narrow(Buffer<u16>),
    Wide(Buffer<u32>),
}

/// A leaf as it is stored.
pub(super) trait Leaf: Copy + Into<u32> {}
impl Leaf for u16 {}
impl Leaf for u32 {}

/// A Poptrie with direct pointing.
#[derive(Debug, Clone)]
pub(crate) struct Poptrie<K> {
    /// [`LEAF`] and a next hop, or the index of a node, for each value of the leading bits.
    pub(super) direct: Buffer<u32>,
    pub(super) nodes: Buffer<Node>,
    pub(super) leaves: Leaves,
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
