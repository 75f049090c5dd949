//! The data that lookups read: the direct table, its slots, the lines of the trees, records and blocks.

use core::marker::PhantomData;

use crate::fib::parts::intervals::Blocks;
use crate::memory::Buffer;
use crate::net::{Family, Key};
use crate::simd::{LINE_WORDS as WORDS, Line, Nodes};

use super::record::Records;

/// A line without values, whose keys are padding: no window is above them.
pub(super) const EMPTY: Line = Line([u32::MAX; WORDS]);

/// Lines of padding after the last tree, which keep every child index in bounds.
pub(super) const PADDING: usize = Nodes::MARGIN;

/// Children of an inner node, with a key between any two.
pub(super) const CHILDREN: usize = WORDS + 1;

/// Keys of a leaf whose values are 16 bits wide: 10 keys and 11 values are 62 bytes.
pub(super) const NARROW: u32 = 10;

/// Keys of a leaf whose values are 32 bits wide: 7 keys and 8 values are 60 bytes.
pub(super) const WIDE: u32 = 7;

/// Returns the bit of a value that is set for a record, or with [`block_bit`] for a block, and clear for a next hop.
/// Its place depends on the keys of a leaf.
pub(super) const fn below_bit(leaf_keys: u32) -> u32 {
    if leaf_keys == NARROW { 1 << 15 } else { 1 << 31 }
}

/// Returns the bit that distinguishes a block from a record: see [`below_bit`].
pub(super) const fn block_bit(leaf_keys: u32) -> u32 {
    below_bit(leaf_keys) / 2
}

/// Bits of a slot that count the roots above the innermost nodes of its tree: the marks of a place.
pub(super) const ROOTS_BITS: u32 = 3;

const _: () = assert!(Nodes::LINE == 1 << ROOTS_BITS);

/// Mask of these bits.
pub(super) const ROOTS: u32 = Nodes::LINE - 1;

/// Most roots above the innermost nodes.
pub(super) const ROOTS_MAX: usize = 5;

/// Lines of a full tree, by its levels of inner nodes; 0 from [`ROOTS_MAX`] + 2 on.
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

/// Bits of the shift in a direct entry, below the ground.
pub(super) const SHIFT_BITS: u32 = 5;

/// Grounds are sums modulo this number, which is more than twice the number of slots.
pub(super) const GROUND: u32 = 1 << (32 - SHIFT_BITS);

/// Most slots.
pub(super) const SLOTS_MAX: u64 = GROUND as u64 / 2;

/// How a key is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Leading bits that the trees search: all but those of blocks and records.
    pub(super) upper_bits: u8,
    /// Fewest leading bits that index the direct table: the other upper bits then fit a window of 32.
    pub(super) direct_least: u8,
    /// Most leading bits that index the direct table.
    pub(super) direct_most: u8,
}

/// Returns how a key is cut. IPv6: the /48, of which 16 to 18 bits are direct. Toys have blocks and several direct bits
/// too.
pub(super) const fn cut<K: Key>() -> Cut {
    match K::FAMILY {
        Family::Toy => {
            let upper_bits = K::BITS - K::BITS / 4;
            Cut { upper_bits, direct_least: 1, direct_most: if upper_bits > 2 { 2 } else { 1 } }
        }
        _ => Cut { upper_bits: 48, direct_least: 16, direct_most: 18 },
    }
}

/// Returns the first 32 of the upper bits, aligned to the left.
#[inline(always)]
pub(super) fn head<K: Key>(upper: u64) -> u32 {
    let bits = cut::<K>().upper_bits;
    if bits > 32 { (upper >> (bits - 32)) as u32 } else { (upper << (32 - bits)) as u32 }
}

/// Returns the last 32 of the upper bits, which trees compare.
#[inline(always)]
pub(super) fn window(upper: u64) -> u32 {
    upper as u32
}

/// A direct table and a forest of B+-trees.
#[derive(Debug, Clone)]
pub(crate) struct Forest<K> {
    /// Leading bits that index the direct table.
    pub(super) direct_bits: u32,
    /// The leading bits of its first entry.
    pub(super) first: u32,
    /// Ground and shift of each value of the leading bits from `first` on. The last entry is for all other values.
    pub(super) direct: Buffer<u32>,
    /// The first line of a tree and the number of its roots, by ground and window.
    pub(super) slots: Buffer<u32>,
    /// The trees, every node before its children; then padding.
    pub(super) lines: Buffer<Line>,
    /// Keys of a leaf: [`NARROW`] or [`WIDE`].
    pub(super) leaf_keys: u32,
    /// The records of upper parts with a few longer prefixes, or with a next hop that does not fit a value.
    pub(super) records: Records,
    /// The blocks of upper parts with more longer prefixes.
    pub(super) blocks: Blocks<u128>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// Returns the slot of a window, given its direct entry.
#[inline(always)]
pub(super) fn slot(entry: u32, window: u32) -> usize {
    let place = (entry >> SHIFT_BITS).wrapping_add(window >> (entry & 31));
    (place & (GROUND - 1)) as usize
}
