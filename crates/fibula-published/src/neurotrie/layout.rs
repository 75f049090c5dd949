//! The data that lookups read: one array of entries, and the dictionary.

use core::marker::PhantomData;

use fibula::net::Key;
use fibula::unstable::memory::Buffer;

/// The bit of an entry that is set for a code and clear for a node.
pub(super) const LEAF: u32 = 1 << 31;

/// Most bits that a node reads.
pub(super) const STRIDE_MAX: u8 = 16;

/// Bits of an entry that number the first entry of a node, in pairs: a node has two entries at least.
const PLACE_BITS: u32 = 27;

/// Most entries that can be numbered.
pub(super) const ENTRIES_MAX: u64 = 2 << PLACE_BITS;

/// A trie with a stride a node.
#[derive(Debug, Clone)]
pub(crate) struct Neurotrie<K> {
    /// The entry that leads to the root, or the code of all addresses.
    pub(super) root: u32,
    /// The entries of one node after the other, each node before those that its entries lead to.
    pub(super) entries: Buffer<u32>,
    /// Next hop of each code, 0 for no route; `None` where codes are the ids of the next hops.
    pub(super) next_hops: Option<Vec<u32>>,
    pub(super) keys: PhantomData<fn(K)>,
}

impl<K: Key> Neurotrie<K> {
    /// Largest id that entries hold directly. In the tests' small spaces it is so small that tables of both forms occur.
    pub(super) const ID_MAX: u32 = if K::BITS >= 32 { !LEAF } else { 2 };
}

/// Returns the entry that leads to a node, whose first entry has an even number below [`ENTRIES_MAX`].
pub(super) fn node(first: usize, stride: u8) -> u32 {
    u32::from(stride - 1) << PLACE_BITS | (first / 2) as u32
}

/// Returns the first entry of the node that an entry leads to, and the bits that the node reads.
#[inline(always)]
pub(super) fn node_of(entry: u32) -> (usize, u8) {
    let place = entry & ((1 << PLACE_BITS) - 1);
    (2 * place as usize, 1 + (entry >> PLACE_BITS) as u8 % STRIDE_MAX)
}

const _: () = assert!(31 - PLACE_BITS == STRIDE_MAX.ilog2());
