//! The data that lookups read.

use core::marker::PhantomData;

use crate::memory::Budget;

/// Index of the root. The root is not a child of any node, so as a child this index means "none".
pub(super) const ROOT: u32 = 0;

/// The node of one prefix.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Node {
    pub(super) children: [u32; 2],
    /// 0 for none.
    pub(super) next_hop: u32,
}

const _: () = assert!(size_of::<Node>() == 12);

/// A trie with one bit a level.
#[derive(Debug)]
pub(crate) struct BinaryTrie<K> {
    /// All nodes; node 0 is the root.
    pub(super) nodes: Vec<Node>,
    /// The first free node, `ROOT` for none. `children[0]` of a free node is the next one.
    pub(super) free: u32,
    pub(super) free_len: usize,
    pub(super) budget: Budget,
    pub(super) keys: PhantomData<fn(K)>,
}
