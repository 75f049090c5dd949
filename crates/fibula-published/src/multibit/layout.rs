//! The data that lookups read, and the lengths that changes need.

use core::marker::PhantomData;

use fibula::net::Key;
use fibula::unstable::memory::{Budget, Buffer};

/// Number of the root. The root is not below any slot, so in a slot this number means "none".
pub(super) const ROOT: u32 = 0;

/// The longest stride: nodes of 65,536 slots.
pub(super) const MOST_STRIDE: u32 = 16;

/// A slot of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Slot {
    /// Next hop of the longest prefix that ends in this node and has the slot; 0 for none.
    pub(super) next_hop: u32,
    /// The node that goes on; `ROOT` for none.
    pub(super) node: u32,
}

const _: () = assert!(size_of::<Slot>() == 8);

/// A trie with a fixed number of bits a level.
#[derive(Debug)]
pub struct Multibit<K> {
    /// The slots of all nodes, node by node; node 0 is the root.
    pub(super) slots: Buffer<Slot>,
    /// For each slot, one more than the bits of its prefix in this node; 0 for none.
    pub(super) lens: Vec<u8>,
    /// Bits of a level.
    pub(super) stride: u32,
    /// The first free node, `ROOT` for none. The first slot of a free node leads to the next one.
    pub(super) free: u32,
    pub(super) free_len: usize,
    pub(super) budget: Budget,
    pub(super) keys: PhantomData<fn(K)>,
}

/// Returns the bits of a key from `offset` on, as many as a level has. Bits past the end of the key are zeros.
#[inline(always)]
pub(super) fn bits<K: Key>(key: K, offset: u32, stride: u32) -> usize {
    if K::BITS <= 64 {
        let key = (key.to_bits() as u64) << (64 - u32::from(K::BITS));
        ((key << offset) >> (64 - stride)) as usize
    } else {
        let key = key.to_bits() << (128 - u32::from(K::BITS));
        ((key << offset) >> (128 - stride)) as usize
    }
}

impl<K: Key> Multibit<K> {
    /// Returns the index of the slot of a key in a node that reads the bits from `offset` on.
    #[inline(always)]
    pub(super) fn at(&self, node: u32, key: K, offset: u32) -> usize {
        ((node as usize) << self.stride) | bits(key, offset, self.stride)
    }

    /// Returns the number of nodes that are in the trie.
    #[must_use]
    pub fn nodes(&self) -> usize {
        (self.slots.len() >> self.stride) - self.free_len
    }

    /// Returns the number of reads of a lookup: slots, one a level.
    #[must_use]
    pub fn reads(&self, key: K) -> u32 {
        let (mut node, mut reads) = (ROOT, 0);
        loop {
            node = self.slots[self.at(node, key, reads * self.stride)].node;
            reads += 1;
            if node == ROOT {
                return reads;
            }
        }
    }

    /// Returns the most reads that any table of this stride needs for a lookup.
    #[must_use]
    pub fn most_reads(stride: u32) -> u32 {
        u32::from(K::BITS).div_ceil(stride)
    }
}
