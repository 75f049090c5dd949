//! What lookups touch.

use core::marker::PhantomData;

use crate::memory::Budget;

/// Index of the root, which no child has: as a child it means "none".
pub(super) const ROOT: u32 = 0;

/// The node of one prefix.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Node {
    pub(super) children: [u32; 2],
    /// 0 for none.
    pub(super) next_hop: u32,
}

const _: () = assert!(size_of::<Node>() == 12);

/// The trie.
#[derive(Debug)]
pub(crate) struct BinaryTrie<K> {
    /// Node 0 is the root.
    pub(super) nodes: Vec<Node>,
    /// First free node, chained through `children[0]`; `ROOT` for none.
    pub(super) free: u32,
    pub(super) free_len: usize,
    pub(super) budget: Budget,
    pub(super) keys: PhantomData<fn(K)>,
}
