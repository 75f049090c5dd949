//! The data that lookups read: the direct table, and the words and leaves of each level.

use core::marker::PhantomData;

use fibula::net::Key;
use fibula::unstable::memory::Buffer;

/// Bits of a slot within a word: 64 slots.
pub(super) const WORD_BITS: u32 = 6;

/// Most slots of a node.
pub(super) const SLOTS_MAX: usize = 256;

/// 64 slots of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// A bit for each slot: set for a node of the next level, clear for a leaf.
    pub(super) nodes: u64,
    /// A bit for each slot: set for a leaf that differs from the leaf before it in this node.
    pub(super) leaves: u64,
    /// Set bits of `nodes` in all words of the level before this one.
    pub(super) nodes_before: u32,
    /// Set bits of `leaves` in all words of the level before this one.
    pub(super) leaves_before: u32,
}

const _: () = assert!(size_of::<Word>() == 24);

/// The nodes that begin at one bit of the key, in the order of their addresses.
#[derive(Debug)]
pub(super) struct Level<L: Copy> {
    pub(super) words: Buffer<Word>,
    pub(super) leaves: Buffer<L>,
}

/// A leaf, which is a next hop: 16 bits wide where all next hops of a table fit, else 32.
pub(super) trait Leaf: Copy + Eq + Send + Sync + core::fmt::Debug + 'static {
    /// The greatest next hop.
    const MOST: u32;

    /// Returns the leaf of a next hop, which is not greater.
    fn of(next_hop: u32) -> Self;

    /// Returns the next hop.
    fn next_hop(self) -> u32;
}

impl Leaf for u16 {
    const MOST: u32 = 0xffff;

    fn of(next_hop: u32) -> Self {
        next_hop as Self
    }

    #[inline(always)]
    fn next_hop(self) -> u32 {
        self.into()
    }
}

impl Leaf for u32 {
    const MOST: u32 = u32::MAX;

    fn of(next_hop: u32) -> Self {
        next_hop
    }

    #[inline(always)]
    fn next_hop(self) -> u32 {
        self
    }
}

/// The bit of a direct entry that is set for a next hop and clear for the number of a node.
pub(super) const LEAF: u32 = 1 << 31;

/// Bits that each step reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strides {
    /// Those of the direct table.
    pub(super) direct: u8,
    /// Those of a node. The last level has what is left of the key.
    pub(super) node: u8,
}

impl Strides {
    /// Returns the number of levels of nodes.
    pub(super) fn levels(self, key_bits: u8) -> usize {
        (key_bits - self.direct).div_ceil(self.node).into()
    }

    /// Returns the first bit of the key that nodes of a level read, and how many they read.
    #[inline(always)]
    pub(super) fn of_level(self, key_bits: u8, level: usize) -> (u8, u8) {
        let offset = self.direct + self.node * level as u8;
        (offset, self.node.min(key_bits - offset))
    }

    /// Returns the words of a node of a level.
    pub(super) fn words(self, key_bits: u8, level: usize) -> usize {
        1 << u32::from(self.of_level(key_bits, level).1).saturating_sub(WORD_BITS)
    }
}

/// A trie of bit maps with cumulative counts.
#[derive(Debug)]
pub(crate) struct CpTrie<K, L: Copy> {
    /// [`LEAF`] and a next hop, or the number of a node of the first level, for each value of the leading bits.
    pub(super) direct: Buffer<u32>,
    pub(super) levels: Vec<Level<L>>,
    pub(super) strides: Strides,
    pub(super) keys: PhantomData<fn(K)>,
}

/// Returns a mask of the bits up to one.
#[inline(always)]
pub(super) fn up_to(bit: u32) -> u64 {
    (2u64 << bit).wrapping_sub(1)
}

/// Returns the word of a node, and the bit in it, for the slot of a key at a level.
#[inline(always)]
pub(super) fn place<K: Key>(strides: Strides, level: usize, node: u32, key: K) -> (usize, u32) {
    let (offset, bits) = strides.of_level(K::BITS, level);
    let slot = key.window(offset, bits);
    let words = u32::from(bits).saturating_sub(WORD_BITS);
    (((node as usize) << words) + (slot >> WORD_BITS) as usize, slot & ((1 << WORD_BITS) - 1))
}
