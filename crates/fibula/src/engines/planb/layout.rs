//! The data that lookups read.

use core::fmt;
use core::marker::PhantomData;

use crate::fib::parts::intervals::{self, Blocks};
use crate::fib::parts::ranges::Merge;
use crate::fib::sections::{OwnedWords, Parts, PartsError};
use crate::memory::Buffer;
use crate::net::{Key, KeyKind};

/// An integer that nodes store and searches compare.
pub trait NodeWord: Copy + Ord + Send + Sync + fmt::Debug + 'static {
    /// Its width in bits.
    const BITS: u32;
    /// All ones: the padding of nodes, which is never below an address.
    const MAX: Self;
    /// Returns the low bits of `bits`.
    fn truncate(bits: u64) -> Self;
    /// Returns all bits.
    fn bits(self) -> u64;
    /// Returns words as an array of a file.
    #[allow(private_interfaces, reason = "the types are public for examples of the laboratory alone")]
    fn owned(words: Vec<Self>) -> OwnedWords;
    /// Returns an array of a file.
    #[allow(private_interfaces, reason = "as above")]
    fn found(parts: &mut Parts, name: &'static str) -> Result<Buffer<Self>, PartsError>;
    /// Returns keys of this width, and the word to compare them with.
    fn row(keys: &[Self], word: Self) -> Row<'_>;
}

/// Keys to compare with a word, by their width.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// 32 bits each.
    Narrow(&'a [u32], u32),
    /// 64 bits each.
    Wide(&'a [u64], u64),
}

macro_rules! words {
    ($($word:ty, $row:ident;)*) => {$(
        impl NodeWord for $word {
            const BITS: u32 = Self::BITS;
            const MAX: Self = Self::MAX;

            #[inline]
            fn truncate(bits: u64) -> Self {
                bits as Self
            }

            #[inline]
            fn bits(self) -> u64 {
                self.into()
            }

            #[allow(private_interfaces)]
            fn owned(words: Vec<Self>) -> OwnedWords {
                OwnedWords::$row(words)
            }

            #[allow(private_interfaces)]
            fn found(parts: &mut Parts, name: &'static str) -> Result<Buffer<Self>, PartsError> {
                parts.buffer(name)
            }

            #[inline(always)]
            fn row(keys: &[Self], word: Self) -> Row<'_> {
                Row::$row(keys, word)
            }
        }
    )*};
}

words! {
    u32, Narrow;
    u64, Wide;
}

/// A node: ascending keys in one cache line.
pub trait Node: Copy + Send + Sync + 'static {
    /// The type of its keys.
    type Word: NodeWord;
    /// Number of its keys; it has one more child.
    const KEYS: usize;
    /// A node that is all padding.
    const SENTINELS: Self;

    /// Returns its keys.
    fn keys(&self) -> &[Self::Word];
    /// Returns its keys for writing.
    fn keys_mut(&mut self) -> &mut [Self::Word];
}

/// Declares node types whose size and alignment are those of a cache line.
macro_rules! nodes {
    ($($(#[$attribute:meta])* $name:ident: $keys:literal of $word:ty, $line_bytes:literal bytes;)*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(C, align($line_bytes))]
        pub struct $name([$word; $keys]);

        // A level of a lookup costs one cache line only if a node is one and begins at one.
        const _: () = assert!(size_of::<$name>() == $line_bytes && align_of::<$name>() == $line_bytes);
        const _: () = assert!(size_of::<[$word; $keys]>() == $line_bytes);

        impl Node for $name {
            type Word = $word;
            const KEYS: usize = $keys;
            const SENTINELS: Self = Self([<$word>::MAX; $keys]);

            #[inline]
            fn keys(&self) -> &[$word] {
                &self.0
            }

            #[inline]
            fn keys_mut(&mut self) -> &mut [$word] {
                &mut self.0
            }
        }
    )*};
}

nodes! {
    /// The paper's node: 8 keys, 9 children, a line of 64 bytes.
    Node8x64: 8 of u64, 64 bytes;
    /// The paper's node for lines of 128 bytes: 16 keys, 17 children.
    Node16x64: 16 of u64, 128 bytes;
    /// The node for IPv4 in a line of 64 bytes: whole addresses, so twice the keys.
    Node16x32: 16 of u32, 64 bytes;
    /// The node for IPv4 in a line of 128 bytes.
    Node32x32: 32 of u32, 128 bytes;
    /// The smallest node: with it, two prefixes already make several levels.
    Node2x64: 2 of u64, 16 bytes;
    /// The second smallest node.
    Node4x64: 4 of u64, 32 bytes;
}

/// A PlanB tree, its values, and the ranges of longer prefixes.
#[derive(Debug, Clone)]
pub struct PlanB<K, N: Copy> {
    /// The full internal levels, from the root at index 0 on; then the leaves, up to the last one that holds a key.
    pub nodes: Buffer<N>,
    /// Index of the first leaf: the number of internal nodes.
    pub leaf_first: usize,
    /// Number of internal levels: the paper's d in section 3.2.
    pub levels: u32,
    /// Code of each interval, in order: the value of a key has the index of the key in the leaves.
    pub codes: Codes,
    /// Next hop of each code; code 0 is no route.
    pub next_hops: Vec<u32>,
    /// The blocks, to which the other codes lead.
    pub blocks: Blocks<u64>,
    /// Which ranges were merged.
    pub merge: Merge,
    /// The keys it is for.
    pub keys: PhantomData<fn(K)>,
}

/// The codes of intervals: 16 bits wide where next hops and blocks together fit, else 32.
#[derive(Debug, Clone)]
pub enum Codes {
    /// Of 16 bits.
    Narrow(Buffer<u16>),
    /// Of 32 bits.
    Wide(Buffer<u32>),
}

/// The code of an interval: a next hop (counted from 0 up) or a block (counted from all ones down).
pub trait Code: Copy {
    /// Returns the index of the next hop. An index out of range means that the code is that of a block.
    fn next_hop(self) -> usize;
    /// Returns the index of the block.
    fn block(self) -> usize;
}

impl Code for u16 {
    #[inline]
    fn next_hop(self) -> usize {
        self.into()
    }

    #[inline]
    // Counted from the other end, so that next hops and blocks share one range without a fixed border.
    fn block(self) -> usize {
        (!self).into()
    }
}

impl Code for u32 {
    #[inline]
    fn next_hop(self) -> usize {
        self as usize
    }

    #[inline]
    fn block(self) -> usize {
        !self as usize
    }
}

/// Returns how many leading bits the tree searches: 64 for IPv6, all for IPv4, and half of a toy key, so that toys have
/// longer prefixes too.
pub const fn upper_bits<K: Key>() -> u8 {
    match K::KIND {
        KeyKind::Ipv4 => 32,
        KeyKind::Ipv6 => 64,
        KeyKind::Toy => K::BITS.div_ceil(2),
    }
}

/// Returns the last lower half: ones for all bits that the tree does not search.
pub fn lower_max<K: Key>() -> u64 {
    intervals::lower_max::<K, u64>(upper_bits::<K>())
}

/// Returns the last upper half.
pub const fn upper_max<K: Key>() -> u64 {
    u64::MAX >> (64 - upper_bits::<K>())
}

/// Returns the upper half of a key, which the tree searches.
#[inline]
pub fn upper<K: Key>(key: K) -> u64 {
    intervals::upper(key, upper_bits::<K>())
}

/// Returns the lower half of a key.
#[inline]
pub fn lower<K: Key>(key: K) -> u64 {
    intervals::lower(key, upper_bits::<K>())
}

/// Returns an upper half as nodes store it. Where the word is wider than the half (toys), ones fill it up, so that the
/// last upper half is all ones at every width, like the padding.
#[inline]
pub fn word<K: Key, W: NodeWord>(upper: u64) -> W {
    // The complement is shifted, because the zeros that a shift brings in become ones.
    W::truncate(!(!upper << (W::BITS - upper_bits::<K>() as u32)))
}

/// Returns the upper half that a word stores.
#[inline]
pub fn half<K: Key, W: NodeWord>(word: W) -> u64 {
    word.bits() >> (W::BITS - upper_bits::<K>() as u32)
}
