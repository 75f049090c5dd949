//! The data that lookups read.

use core::marker::PhantomData;
use core::sync::atomic::AtomicU32;

use fibula::unstable::memory::{Buffer, Shared};

use super::geometry::{Geometry, Split};
use super::options::Search;

/// A DXR table in one of the formats.
#[derive(Debug, Clone)]
pub struct Dxr<K> {
    pub(super) form: Form,
    pub(super) shape: Shape,
    pub(super) keys: PhantomData<fn(K)>,
}

/// How keys are cut, and how chunks are searched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) geometry: Geometry,
    pub(super) search: Search,
}

/// The arrays of a format.
#[derive(Debug, Clone)]
pub(super) enum Form {
    Compact(Compact),
    Wide(Wide),
}

/// The paper's format. The range table is an array of the halves of its 4-byte units.
#[derive(Debug, Clone)]
pub(super) struct Compact {
    /// The direct entry of each value of the first k bits: see [`SHORT`] and [`Split`].
    pub(super) direct: Buffer<u32>,
    /// A short entry is one half: base in the high byte, code in the low one. A long entry is two halves: base, code.
    pub(super) ranges: Buffer<u16>,
    /// Next hop of each code, 0 for no route.
    pub(super) next_hops: Vec<u32>,
    pub(super) split: Split,
}

/// [`Compact`] in words that one writer changes: two halves a word, the first one lower.
#[derive(Debug)]
pub(super) struct LiveCompact {
    pub(super) direct: Shared<u32>,
    pub(super) ranges: Shared<u32>,
    pub(super) next_hops: Shared<u32>,
    pub(super) split: Split,
}

/// The format bit of a direct entry: the chunk's entries are short.
pub(super) const SHORT: u32 = 1 << 31;

/// Bits of a short entry that hold the code.
pub(super) const SHORT_CODE_BITS: u32 = 8;

/// Halves of a 4-byte unit.
pub(super) const HALVES: usize = 2;

const _: () = assert!(size_of::<u16>() * HALVES == 4);
const _: () = assert!(u16::BITS == SHORT_CODE_BITS + 8, "k >= 16 leaves a short base 8 bits of 32");

/// The format that holds any table.
#[derive(Debug, Clone)]
pub(super) struct Wide {
    /// For each value of the first k bits, the first entry of the chunk, and the number of its entries less one. Where
    /// that number is 0, the first word is the next hop.
    pub(super) direct: Buffer<[u32; 2]>,
    /// The address bits after the first k at which each range starts.
    pub(super) bases: Buffer<u16>,
    /// Next hop of each range, 0 for no route.
    pub(super) next_hops: Buffer<u32>,
}

/// [`Wide`] in words that one writer changes. A chunk begins at an even entry, so that no word has bases of two.
#[derive(Debug)]
pub(super) struct LiveWide {
    /// Both words of a direct entry, the first one lower.
    pub(super) direct: Shared<u64>,
    /// Two bases a word, the first one lower.
    pub(super) bases: Shared<u32>,
    pub(super) next_hops: Shared<u32>,
}

/// Keys that a portable batch searches side by side.
pub(super) const LANES: usize = 8;

/// Keys of a block of the portable branch-free batch: the list between its stages fits the first-level cache.
pub(super) const BLOCK: usize = 256;

/// A table in one of the live formats.
#[derive(Debug)]
pub(super) struct Live<K, F> {
    pub(super) form: F,
    pub(super) shape: Shape,
    /// Words up to the last chunk, of the range table or the bases; and words of next hops.
    pub(super) used: [AtomicU32; 2],
    pub(super) keys: PhantomData<fn(K)>,
}
