//! What lookups touch.

use core::fmt;
use core::marker::PhantomData;

use crate::fib::parts::intervals::{self, Blocks};
use crate::fib::parts::ranges::Merge;
use crate::memory::Buffer;
use crate::net::{Family, Key};

/// The integer that nodes hold and that searches compare.
pub trait Word: Copy + Ord + Send + Sync + fmt::Debug + 'static {
    /// Its width.
    const BITS: u32;
    /// All ones: the padding of nodes, which no address exceeds.
    const MAX: Self;
    /// The low bits of `bits`.
    fn truncate(bits: u64) -> Self;
    /// All its bits.
    fn bits(self) -> u64;
    /// Keys of this width and what they are compared with.
    fn row(keys: &[Self], word: Self) -> Row<'_>;
}

/// Keys that are to be compared with a word, at their width.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// 32 bits each.
    Narrow(&'a [u32], u32),
    /// 64 bits each.
    Wide(&'a [u64], u64),
}

macro_rules! words {
    ($($word:ty, $row:ident;)*) => {$(
        impl Word for $word {
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

/// A node: keys that ascend, in one cache line.
pub trait Node: Copy + Send + Sync + 'static {
    /// What its keys are.
    type Word: Word;
    /// Number of its keys; it has one child more.
    const KEYS: usize;
    /// A node of padding.
    const SENTINELS: Self;

    /// Its keys.
    fn keys(&self) -> &[Self::Word];
    /// Its keys, to be filled.
    fn keys_mut(&mut self) -> &mut [Self::Word];
}

/// Makes node types whose size and alignment are the cache line they are made for.
macro_rules! nodes {
    ($($(#[$attribute:meta])* $name:ident: $keys:literal of $word:ty, $line_bytes:literal bytes;)*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(C, align($line_bytes))]
        pub struct $name([$word; $keys]);

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
    /// IPv4 in a line of 64 bytes: whole addresses, so twice the keys.
    Node16x32: 16 of u32, 64 bytes;
    /// IPv4 in a line of 128 bytes.
    Node32x32: 32 of u32, 128 bytes;
    /// The smallest geometry: two prefixes make several levels.
    Node2x64: 2 of u64, 16 bytes;
    /// The smallest geometry's neighbour.
    Node4x64: 4 of u64, 32 bytes;
}

/// The tree, its values, and what lies beyond the searched half.
#[derive(Debug, Clone)]
pub struct PlanB<K, N: Copy> {
    /// Internal levels first, the root at 0, every one full; then the leaves up to the last that holds a key.
    pub(super) nodes: Buffer<N>,
    /// Index of the first leaf: the number of internal nodes.
    pub(super) leaf_first: usize,
    /// Number of internal levels: the paper's d in section 3.2.
    pub(super) levels: u32,
    /// A code an interval, in order: a key's value lies where the key lies in the leaves.
    pub(super) codes: Codes,
    /// Codes to next hops; code 0 is no route.
    pub(super) next_hops: Vec<u32>,
    /// What codes beyond the next hops lead to.
    pub(super) blocks: Blocks<u64>,
    pub(super) merge: Merge,
    pub(super) keys: PhantomData<fn(K)>,
}

/// The codes of intervals, at 16 bits while next hops and blocks together allow it.
#[derive(Debug, Clone)]
pub(super) enum Codes {
    Narrow(Buffer<u16>),
    Wide(Buffer<u32>),
}

/// What an interval leads to: a next hop (counted from 0 up) or a block (from all ones down).
pub(super) trait Code: Copy {
    /// Index of the next hop; one that is out of range says that the code is a block's.
    fn next_hop(self) -> usize;
    /// Index of the block.
    fn block(self) -> usize;
}

impl Code for u16 {
    #[inline]
    fn next_hop(self) -> usize {
        self.into()
    }

    #[inline]
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

/// How many leading bits the tree searches: the /64 of IPv6, all of IPv4, and half of a toy key, so that toys
/// have longer prefixes too.
pub(super) const fn upper_bits<K: Key>() -> u8 {
    match K::FAMILY {
        Family::Ipv4 => 32,
        Family::Ipv6 => 64,
        Family::Toy => K::BITS.div_ceil(2),
    }
}

/// The last lower half: as many ones as the tree does not search.
pub(super) fn lower_max<K: Key>() -> u64 {
    intervals::lower_max::<K, u64>(upper_bits::<K>())
}

/// The last upper half.
pub(super) const fn upper_max<K: Key>() -> u64 {
    u64::MAX >> (64 - upper_bits::<K>())
}

/// The half that the tree searches.
#[inline]
pub(super) fn upper<K: Key>(key: K) -> u64 {
    intervals::upper(key, upper_bits::<K>())
}

/// The rest.
#[inline]
pub(super) fn lower<K: Key>(key: K) -> u64 {
    intervals::lower(key, upper_bits::<K>())
}

/// An upper half as nodes hold it. Where the word is wider than the half (toys), ones fill it up: the last upper
/// half is then all ones at every width, as the padding is.
#[inline]
pub(super) fn word<K: Key, W: Word>(upper: u64) -> W {
    W::truncate(!(!upper << (W::BITS - upper_bits::<K>() as u32)))
}

/// The upper half of a word.
#[inline]
pub(super) fn half<K: Key, W: Word>(word: W) -> u64 {
    word.bits() >> (W::BITS - upper_bits::<K>() as u32)
}
