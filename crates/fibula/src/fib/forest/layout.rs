//! What lookups touch: the direct table, its slots, the trees' lines, and blocks.

use core::marker::PhantomData;

use crate::fib::parts::intervals::Blocks;
use crate::memory::Buffer;
use crate::net::{Family, Key};
use crate::simd::{LINE_WORDS as WORDS, Line, Nodes};

use super::record::Records;

/// Keys that no window is above, and no values.
pub(super) const EMPTY: Line = Line([u32::MAX; WORDS]);

/// Lines at the end that belong to no tree.
pub(super) const PADDING: usize = Nodes::MARGIN;

/// Children of an inner node: a key between any two.
pub(super) const CHILDREN: usize = WORDS + 1;

/// Keys of a leaf whose values are 16 bits wide: 10 keys and 11 values are 62 bytes.
pub(super) const NARROW: u32 = 10;

/// Keys of a leaf whose values are 32 bits wide: 7 keys and 8 values are 60 bytes.
pub(super) const WIDE: u32 = 7;

/// In a value of a leaf of so many keys: not a next hop, but the place of a record, or with [`block_bit`] a block.
pub(super) const fn below_bit(leaf_keys: u32) -> u32 {
    if leaf_keys == NARROW { 1 << 15 } else { 1 << 31 }
}

/// See [`below_bit`].
pub(super) const fn block_bit(leaf_keys: u32) -> u32 {
    below_bit(leaf_keys) / 2
}

/// Bits of a slot that say how many roots stand above the innermost nodes of its tree: the marks of a place.
pub(super) const ROOTS_BITS: u32 = 3;

const _: () = assert!(Nodes::LINE == 1 << ROOTS_BITS);

/// The bits themselves.
pub(super) const ROOTS: u32 = Nodes::LINE - 1;

/// Most roots above the innermost nodes.
pub(super) const ROOTS_MAX: usize = 5;

/// Lines of a full tree of so many levels of inner nodes; none behind [`ROOTS_MAX`] and one more.
pub(super) const TREE_LINES: [u32; 1 << ROOTS_BITS] = {
    let mut lines = [0; 1 << ROOTS_BITS];
    lines[0] = 1;
    let mut level = 1;
    while level < ROOTS_MAX + 2 {
        lines[level] = 1 + CHILDREN as u32 * lines[level - 1];
        level += 1;
    }
    lines
};

/// Bits of a direct entry below its ground: the shift.
pub(super) const SHIFT_BITS: u32 = 5;

/// Grounds are sums modulo this, and slots are fewer than half of it.
pub(super) const GROUND: u32 = 1 << (32 - SHIFT_BITS);

/// Most slots.
pub(super) const SLOTS_MAX: u64 = GROUND as u64 / 2;

/// How keys are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Leading bits that the trees know: all but what blocks hold.
    pub(super) upper_bits: u8,
    /// Fewest leading bits that the direct table takes: the rest of the upper bits fill a window of 32 at most.
    pub(super) direct_least: u8,
    /// Most of them.
    pub(super) direct_most: u8,
}

/// IPv6: the /48, behind 16 to 18 bits. Toys have blocks and several direct bits too.
pub(super) const fn cut<K: Key>() -> Cut {
    match K::FAMILY {
        Family::Toy => {
            let upper_bits = K::BITS - K::BITS / 4;
            Cut { upper_bits, direct_least: 1, direct_most: if upper_bits > 2 { 2 } else { 1 } }
        }
        _ => Cut { upper_bits: 48, direct_least: 16, direct_most: 18 },
    }
}

/// The first 32 of the upper bits, aligned left.
#[inline(always)]
pub(super) fn head<K: Key>(upper: u64) -> u32 {
    let bits = cut::<K>().upper_bits;
    if bits > 32 { (upper >> (bits - 32)) as u32 } else { (upper << (32 - bits)) as u32 }
}

/// The last 32 of the upper bits: what trees compare.
#[inline(always)]
pub(super) fn window(upper: u64) -> u32 {
    upper as u32
}

/// The engine.
#[derive(Debug, Clone)]
pub(crate) struct Forest<K> {
    /// Leading bits that the direct table takes.
    pub(super) direct_bits: u32,
    /// The leading bits that its first entry is for.
    pub(super) first: u32,
    /// By the leading bits from `first` on: ground and shift. The last entry is for all leading bits that have none.
    pub(super) direct: Buffer<u32>,
    /// By ground and window: the first line of a tree, and its roots.
    pub(super) slots: Buffer<u32>,
    /// The trees, every node before its children; and padding.
    pub(super) lines: Buffer<Line>,
    /// Keys of a leaf: [`NARROW`] or [`WIDE`].
    pub(super) leaf_keys: u32,
    /// What upper parts lead to that hold a few longer prefixes, or a next hop that no value can.
    pub(super) records: Records,
    /// What upper parts lead to that hold more.
    pub(super) blocks: Blocks<u128>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// The slot of a window below a direct entry.
#[inline(always)]
pub(super) fn slot(entry: u32, window: u32) -> usize {
    let place = (entry >> SHIFT_BITS).wrapping_add(window >> (entry & 31));
    (place & (GROUND - 1)) as usize
}
