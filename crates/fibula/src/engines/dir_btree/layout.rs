//! The data that lookups read: tables, lines and objects, and which of their units are in use.

use core::marker::PhantomData;
use core::sync::atomic::AtomicU32;

use crate::fib::parts::units::Units;
use crate::memory::Shared;
use crate::net::{Key, KeyKind};
use crate::simd::{LEAF_KEYS, LINE_WORDS, SharedLine, SharedLines, half_of_shared};

/// The number of bits of an entry that are its shift. A table is placed so that its place has the same bits.
pub(super) const SHIFT_BITS: u32 = 5;

/// Mask of these bits.
pub(super) const SHIFT: u32 = (1 << SHIFT_BITS) - 1;

/// The shift of entries to two equal words, which have the same target for every window.
pub(super) const ALONE: u32 = SHIFT;

/// The most bits that an entry to different words removes from a window.
pub(super) const SHIFT_MOST: u32 = ALONE - 1;

/// Leaves of an inner node, with a key between any two.
pub(in crate::engines) const LEAVES: usize = LINE_WORDS + 1;

/// Intervals of a leaf.
pub(super) const LEAF_INTERVALS: usize = LEAF_KEYS + 1;

/// Most intervals of a tree.
pub(super) const TREE_INTERVALS: usize = LEAVES * LEAF_INTERVALS;

/// In a value: set unless it is a next hop.
pub(super) const BELOW: u32 = 1 << 15;

/// The place after the last interval's value in a leaf. It has the base of the leaf's objects.
pub(super) const BASE: usize = 2 * LINE_WORDS - 1;

/// The bits of a base's step. The objects of a leaf begin within twice that many units from its base on.
pub(super) const BASE_BITS: u32 = 14;

/// Words of a unit of objects.
pub(in crate::engines) const OBJECT_WORDS: usize = 2;

/// Most units of objects: 8 GiB.
pub(super) const OBJECT_UNITS: u64 = 1 << (16 + BASE_BITS);

/// How a key is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Leading bits that tables and trees search: all but those of objects.
    pub(super) upper: u32,
    /// The fewest leading bits after which the window distinguishes upper parts.
    pub(super) before: u32,
}

/// Returns how a key is cut. For IPv6, the upper part is the /48, and its last 32 bits are the window. Toys have objects too.
pub(super) const fn cut<K: Key>() -> Cut {
    let upper = match K::KIND {
        KeyKind::Toy => (K::BITS - K::BITS / 4) as u32,
        _ => 48,
    };
    Cut { upper, before: upper.saturating_sub(32) }
}

/// Returns how a key is cut, as the chapter names it.
pub(super) const fn numbers<K: Key>() -> [(&'static str, u32); 2] {
    [("upper-bits", cut::<K>().upper), ("key-bits", K::BITS as u32)]
}

/// Returns the first 32 of the upper bits, aligned to the left.
#[inline(always)]
pub(super) fn head<K: Key>(upper: u64) -> u32 {
    let bits = cut::<K>().upper;
    if bits > 32 { (upper >> (bits - 32)) as u32 } else { (upper << (32 - bits)) as u32 }
}

/// Returns the last 32 of the upper bits, which tables index and trees compare.
#[inline(always)]
pub(super) fn window(upper: u64) -> u32 {
    upper as u32
}

/// The kinds of objects, in the lowest bits of the first word. The bits above them are a count.
pub(super) mod kind {
    /// A next hop, and `count` prefixes with next hops of their own.
    pub(crate) const RECORD: u32 = 0;
    /// `count` sorted ranges, elsewhere.
    pub(crate) const BLOCK: u32 = 1;
    /// Bits of the kind.
    pub(crate) const BITS: u32 = 2;
}

/// The lines of trees, and how leaves hold values after their keys.
pub(in crate::engines) trait LeafForm: Copy {
    /// Keys of a leaf.
    const KEYS: usize;

    /// Lines before those of trees.
    const HEAD: u32 = 0;

    /// In a value as kernels return it: set unless it is a next hop.
    const BELOW: u32;

    /// Returns the line that begins after this many units.
    ///
    /// # Panics
    /// When there is none.
    fn at(&self, place: u32) -> &SharedLine;

    /// Returns a unit that is that of a value's object, or near it.
    fn near(self, leaf: &SharedLine, value: u32) -> usize;

    /// Returns the unit of the object of a window, whose value is not a next hop.
    fn object(self, objects: &[AtomicU32], leaf: &SharedLine, value: u32, window: u32) -> usize;

    /// Returns the values of all intervals that a leaf has room for, as it stores them.
    fn values(self, leaf: &SharedLine) -> impl Iterator<Item = u32>;

    /// Returns the units of the objects of the first `count` values. `None` if one is neither an object nor a next hop.
    fn objects(self, objects: &[AtomicU32], leaf: &SharedLine, count: usize) -> Option<Vec<u32>>;
}

/// Values of 16 bits: next hops below 2^15, and objects counted from a base.
#[derive(Debug, Clone, Copy)]
pub(in crate::engines) struct HalfLeaves<'a>(pub(super) SharedLines<'a>);

impl LeafForm for HalfLeaves<'_> {
    const KEYS: usize = LEAF_KEYS;
    const BELOW: u32 = BELOW;

    #[inline(always)]
    fn at(&self, place: u32) -> &SharedLine {
        self.0.at(place)
    }

    #[inline(always)]
    fn near(self, leaf: &SharedLine, value: u32) -> usize {
        ((half_of_shared(leaf, BASE) << BASE_BITS) + (value & (BELOW - 1))) as usize
    }

    #[inline(always)]
    fn object(self, _objects: &[AtomicU32], leaf: &SharedLine, value: u32, _window: u32) -> usize {
        self.near(leaf, value)
    }

    fn values(self, leaf: &SharedLine) -> impl Iterator<Item = u32> {
        (2 * LEAF_KEYS..BASE).map(|half| half_of_shared(leaf, half))
    }

    fn objects(self, _objects: &[AtomicU32], leaf: &SharedLine, count: usize) -> Option<Vec<u32>> {
        let objects = self.values(leaf).take(count).filter(|value| value & BELOW != 0);
        Some(objects.map(|value| self.near(leaf, value) as u32).collect())
    }
}

/// Tables over leading bits, and trees of two levels below them.
#[derive(Debug)]
pub struct DirBtree<K> {
    /// Leading bits that index the first table.
    pub(super) first_bits: u32,
    /// The first table, then the others: entries, and in tables of slots the first lines of trees.
    pub(in crate::engines) tables: Shared<u32>,
    /// The trees: an inner node, and its leaves in the lines after it.
    pub(in crate::engines) lines: Shared<u32>,
    /// The objects that values lead to if they are not next hops.
    pub(in crate::engines) objects: Shared<u32>,
    /// Units of words of tables, of lines, and of units of objects.
    pub(super) table_units: Units,
    pub(super) line_units: Units,
    pub(super) object_units: Units,
    /// The number of elements in use of each array, if the arrays may grow.
    pub(super) ends: Option<[AtomicU32; 3]>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// Returns words as lines.
#[inline(always)]
pub(super) fn lines_of(words: &[AtomicU32]) -> &[SharedLine] {
    words.as_chunks().0
}
