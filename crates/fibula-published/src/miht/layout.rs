//! The data that lookups read: the nodes of the B+-tree, the roots of the tries and the nodes of all of them.

use core::fmt::Debug;

use fibula::net::{Key, Prefix, Route};
use fibula::unstable::memory::{Budget, Buffer};

/// Keys of the B+-tree, and numbers of what is below its nodes.
pub(super) trait Word: Copy + Default + Ord + Debug + Send + Sync + 'static {
    /// Returns the number as a word, which it fits.
    fn of(number: usize) -> Self;

    /// Returns the number.
    fn number(self) -> usize;
}

impl Word for u16 {
    #[inline(always)]
    fn of(number: usize) -> Self {
        number as Self
    }

    #[inline(always)]
    fn number(self) -> usize {
        self.into()
    }
}

impl Word for u32 {
    #[inline(always)]
    fn of(number: usize) -> Self {
        number as Self
    }

    #[inline(always)]
    fn number(self) -> usize {
        self as usize
    }
}

/// A node of the B+-tree: a cache line for 16 words of 16 bits in each row, four for 32 of 32 bits.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Index<W, const M: usize> {
    /// Keys, which ascend, and in the last word their number. In a leaf they are those of its tries; in other nodes each is
    /// greater than all keys below one child and not greater than those below the next.
    pub(super) keys: [W; M],
    /// In a leaf the numbers of tries, one a key; in other nodes those of children, one more.
    pub(super) below: [W; M],
}

const _: () = assert!(size_of::<Index<u16, 16>>() == 64 && size_of::<Index<u32, 32>>() == 256);

impl<W: Word, const M: usize> Index<W, M> {
    /// Returns the node of these keys and what is below them.
    pub(super) fn of(keys: &[W], below: &[W]) -> Self {
        let mut node = Self { keys: [W::default(); M], below: [W::default(); M] };
        node.keys[..keys.len()].copy_from_slice(keys);
        node.keys[M - 1] = W::of(keys.len());
        node.below[..below.len()].copy_from_slice(below);
        node
    }

    /// Returns the number of keys.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.keys[M - 1].number()
    }

    /// Returns the keys that are in use.
    #[inline(always)]
    pub(super) fn keys(&self) -> &[W] {
        &self.keys[..self.len().min(M - 1)]
    }

    /// Returns the number of the child that a key is below.
    #[inline(always)]
    pub(super) fn child(&self, key: W) -> usize {
        self.keys().partition_point(|&other| other <= key)
    }
}

/// The number of no node of a trie. There is no room for so many.
pub(super) const NONE: u32 = u32::MAX;

/// A node of a priority trie, which holds a route.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data<K> {
    pub(super) addr: K,
    pub(super) next_hop: u32,
    /// Where the trie goes on, by the bit of the node's depth; [`NONE`] for nowhere.
    pub(super) below: [u32; 2],
    pub(super) len: u8,
}

const _: () = assert!(size_of::<Data<u32>>() == 20 && size_of::<Data<u128>>() == 32);

impl<K: Key> Data<K> {
    /// Returns a node without others below it.
    pub(super) fn new(route: Route<K>) -> Self {
        let Route { prefix, next_hop } = route;
        Self { addr: prefix.addr(), next_hop: next_hop.id(), below: [NONE; 2], len: prefix.len() }
    }

    /// Returns whether it holds the route of a prefix.
    pub(super) fn is(&self, prefix: Prefix<K>) -> bool {
        (self.addr, self.len) == (prefix.addr(), prefix.len())
    }
}

/// The B+-tree.
#[derive(Debug)]
pub(super) struct Tree<W, const M: usize> {
    pub(super) nodes: Buffer<Index<W, M>>,
    /// Number of the root, which is a leaf if there are few keys or none.
    pub(super) root: usize,
    /// Levels above the leaves.
    pub(super) height: usize,
    /// Number of keys.
    pub(super) keys: usize,
    /// Most children of a node: the paper's `m`, at most `M` and at least 3.
    pub(super) order: usize,
    /// The first of `free_len` free nodes. The first word below each is the next one.
    pub(super) free: W,
    pub(super) free_len: usize,
}

/// A multi-index hybrid trie.
#[derive(Debug)]
pub(crate) struct Miht<K, W, const M: usize> {
    pub(super) tree: Tree<W, M>,
    /// The roots of the tries by number. A free one has the number of the next, the last one [`NONE`].
    pub(super) roots: Vec<u32>,
    pub(super) free_root: u32,
    pub(super) free_roots: usize,
    /// The nodes of all tries.
    pub(super) data: Buffer<Data<K>>,
    /// The first free node, whose `below[0]` is the next; [`NONE`] for none.
    pub(super) free: u32,
    pub(super) free_len: usize,
    /// The root of the trie of the routes without a key: the paper's `PT[-1]`.
    pub(super) keyless: u32,
    /// Bits of a key: the paper's `k`.
    pub(super) key_bits: u8,
    pub(super) budget: Budget,
}

/// Returns the key of an address.
#[inline(always)]
pub(super) fn key_of<K: Key, W: Word>(addr: K, key_bits: u8) -> W {
    W::of(addr.window(0, key_bits) as usize)
}
