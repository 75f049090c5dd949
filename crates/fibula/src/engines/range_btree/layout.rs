//! The data that lookups read: nodes of eight words.

use core::marker::PhantomData;

use crate::memory::Buffer;
use crate::simd::LANES;

/// Ranges below a tree of their last addresses, or side by side if they fit registers.
#[derive(Debug, Clone)]
pub(crate) struct RangeBtree<K> {
    pub(super) form: RangeEncoding,
    /// Few ranges: last addresses, then next hops. A tree: the root, the inner nodes level by level, the leaves, and a
    /// node of padding.
    pub(super) nodes: Buffer<Node>,
    pub(super) keys: PhantomData<fn(K)>,
}

/// Half of a cache line: buffers are aligned to whole ones.
pub(super) type Node = [u32; LANES];

/// How the ranges are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeEncoding {
    /// At most [`FEW`] ranges: registers of last addresses, and the same number of registers of next hops.
    Few {
        /// Number of nodes with last addresses, 2 or 4.
        nodes: usize,
    },
    /// A tree.
    Tree(TreeLayout),
}

/// The shape of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeLayout {
    /// Binary logarithm of the bytes of a value, at most 2.
    pub(super) width: u32,
    /// Number of levels of inner nodes below the root.
    pub(super) levels: usize,
    /// The node at which each level begins. The leaves are the last level.
    pub(super) starts: [u32; LEVELS + 1],
}

/// Most ranges that are compared in registers alone.
pub(super) const FEW: usize = 32;

/// Nodes of the root: 31 last addresses lead to 32 children.
pub(super) const ROOT: usize = 4;

/// Children of the root.
pub(super) const ROOT_CHILDREN: usize = ROOT * LANES;

/// Children of an inner node. It has seven last addresses, and its eighth word is unused.
pub(super) const CHILDREN: usize = LANES;

/// The most levels of inner nodes: 32 * 8^9 leaves hold all addresses, one a range.
pub(super) const LEVELS: usize = 9;

/// The number of last addresses of a leaf, by the width of its values. The values follow them, one more than last addresses:
/// seven of 8 bits, six of 16 or four of 32.
pub(super) const LASTS: [usize; 3] = [6, 5, 3];

const _: () = assert!(LASTS[0] * 4 + LASTS[0] < 32 && LASTS[1] * 4 + 12 == 32 && LASTS[2] * 4 + 16 < 32);

/// A last address that no key is above: padding.
pub(super) const NEVER: u32 = u32::MAX;

/// Returns a value of a leaf.
#[inline(always)]
pub(super) fn value(leaf: &Node, width: u32, number: usize) -> u32 {
    let bit = number * (8 << width);
    let word = leaf[LASTS[width as usize] + bit / 32] >> (bit % 32);
    word & (u32::MAX >> (32 - (8 << width)))
}

impl TreeLayout {
    /// Returns the shape of a tree of this many ranges, and the number of its nodes without the padding.
    pub(super) fn of(ranges: usize, width: u32) -> (Self, usize) {
        let leaves = ranges.div_ceil(LASTS[width as usize] + 1);
        let mut levels = 0;
        while ROOT_CHILDREN * CHILDREN.pow(levels as u32) < leaves {
            levels += 1;
        }
        let mut tree = Self { width, levels, starts: [0; LEVELS + 1] };
        let mut nodes = ROOT;
        for level in 0..=levels {
            tree.starts[level] = nodes as u32;
            // Only the last node of a level can have fewer than all children.
            nodes += leaves.div_ceil(tree.leaves_below(level));
        }
        (tree, nodes)
    }

    /// Returns the number of leaves below a full node of a level.
    pub(super) fn leaves_below(&self, level: usize) -> usize {
        CHILDREN.pow((self.levels - level) as u32)
    }

    /// Returns the node at which the leaves begin.
    pub(super) fn leaves(&self) -> usize {
        self.starts[self.levels] as usize
    }

    /// Returns the number to add to eight times a node of a level to get its first child, modulo 2^32.
    #[inline(always)]
    pub(super) fn children(&self, level: usize) -> u32 {
        self.starts[level + 1].wrapping_sub(self.starts[level].wrapping_mul(CHILDREN as u32))
    }
}
