//! The parts of a block, and the word that leads to one.

use crate::net::Key;
use crate::simd::{LEAF_KEYS, LINE_WORDS};

/// Children of an inner line, which has 16 keys.
pub(super) const CHILDREN: usize = LINE_WORDS + 1;

/// Values of a leaf, which has 10 keys.
pub(super) const LEAF_VALUES: usize = LEAF_KEYS + 1;

/// Most inner levels of a tree.
pub(super) const LEVELS: usize = 6;

/// Lines of a full tree by its inner levels.
pub(super) const LINES: [u32; LEVELS] = {
    let mut lines = [1; LEVELS];
    let mut levels = 1;
    while levels < LEVELS {
        lines[levels] = 1 + CHILDREN as u32 * lines[levels - 1];
        levels += 1;
    }
    lines
};

/// A key that no window is above: padding. Keys are compared as signed numbers.
pub(super) const NEVER: u32 = i32::MAX as u32;

/// The bit that turns windows into signed numbers of the same order.
pub(super) const SIGN: u32 = 1 << 31;

/// The bit of a leaf's value that says that it is the number of an object, not a next hop.
pub(super) const BELOW: u32 = 1 << 15;

/// Words of an object.
pub(super) const OBJECT_WORDS: usize = 4;

/// Most objects of a block.
pub(super) const OBJECTS: usize = BELOW as usize;

/// An object: where a leaf's value cannot say the next hop.
///
/// ```text
/// next hop outside | next hop inside | first | last     windows from first to last have the next hop inside
/// distance         | levels          | 1     | 0        a tree of the next windows, so many lines after the block's root
/// ```
pub(super) type Object = [u32; OBJECT_WORDS];

/// Returns whether an object is a tree.
#[inline(always)]
pub(super) fn is_tree(object: &Object) -> bool {
    object[2] > object[3]
}

/// Bits of a window: an IPv4 address is one, an IPv6 address four. The narrow keys of tests have several, but for those of 16
/// bits.
pub(super) const fn window_bits<K: Key>() -> u8 {
    match K::BITS {
        16 => 16,
        32.. => 32,
        bits => bits.div_ceil(4),
    }
}

/// Returns the number of windows of a key.
pub(super) const fn windows<K: Key>() -> u8 {
    K::BITS.div_ceil(window_bits::<K>())
}

/// Returns a window of a key.
#[inline(always)]
pub(super) fn window<K: Key>(key: K, depth: u8) -> u32 {
    let bits = const { window_bits::<K>() };
    let at = depth * bits;
    // The last window of a narrow key may be shorter than the others.
    key.window(at, if at + bits <= K::BITS { bits } else { K::BITS - at })
}

/// Returns the greatest window of a depth.
pub(super) fn last_window<K: Key>(depth: u8) -> u32 {
    window(K::MAX, depth)
}

/// Half of a VRF's word: the block or the engine for one family.
///
/// ```text
/// lll x pppppppppppppppppppppppppppp      l inner levels, of the tree at line p; 7: structure number p
/// ```
///
/// Without the bit x there is no such VRF. Line 0 is a tree that has no next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vrf) struct BlockRoot(pub(in crate::vrf) u32);

impl BlockRoot {
    /// The root of a VRF that does not exist.
    pub(in crate::vrf) const ABSENT: Self = Self(0);
    /// The root of a VRF without routes.
    pub(in crate::vrf) const EMPTY: Self = Self(Self::EXISTS);
    const EXISTS: u32 = 1 << 28;
    pub(super) const LEVELS_AT: u32 = 29;
    /// The levels of a structure, which are none.
    const LARGE: u32 = 7;
    /// Number of places.
    pub(in crate::vrf) const PLACES: u32 = 1 << 28;

    /// Returns the root of a tree.
    pub(in crate::vrf) fn tree(place: u32, levels: u32) -> Self {
        // Trees have fewer levels than `LARGE`, which is in the same bits.
        debug_assert!(place < Self::PLACES && (levels as usize) < LEVELS);
        Self(levels << Self::LEVELS_AT | Self::EXISTS | place)
    }

    /// Returns the root of a structure of this number.
    pub(in crate::vrf) fn large(number: u32) -> Self {
        debug_assert!(number < Self::PLACES);
        Self(Self::LARGE << Self::LEVELS_AT | Self::EXISTS | number)
    }

    /// Returns the number of the structure, if it is one.
    #[inline(always)]
    pub(in crate::vrf) fn as_large(self) -> Option<u32> {
        (self.levels() == Self::LARGE).then_some(self.place())
    }

    /// Returns whether there is such a VRF.
    #[inline(always)]
    pub(in crate::vrf) fn exists(self) -> bool {
        self.0 & Self::EXISTS != 0
    }

    /// Returns the inner levels of the tree.
    #[inline(always)]
    pub(in crate::vrf) fn levels(self) -> u32 {
        self.0 >> Self::LEVELS_AT
    }

    /// Returns the line of the tree's root, or the number of the structure.
    #[inline(always)]
    pub(in crate::vrf) fn place(self) -> u32 {
        self.0 & (Self::PLACES - 1)
    }
}

/// Returns the word of the two halves.
pub(in crate::vrf) fn word(v4: BlockRoot, v6: BlockRoot) -> u64 {
    u64::from(v6.0) << 32 | u64::from(v4.0)
}

/// Returns the half of a word that is of IPv4 addresses.
#[inline(always)]
pub(in crate::vrf) fn half_v4(word: u64) -> BlockRoot {
    BlockRoot(word as u32)
}

/// Returns the half of a word that is of IPv6 addresses.
#[inline(always)]
pub(in crate::vrf) fn half_v6(word: u64) -> BlockRoot {
    BlockRoot((word >> 32) as u32)
}
