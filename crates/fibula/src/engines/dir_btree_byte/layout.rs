//! The data that lookups read: tables, lines and objects, as `dir-btree` has them, but with codes in leaves.

use core::sync::atomic::AtomicU32;

use crate::engines::dir_btree::layout::{DirBtree, LeafForm, OBJECT_WORDS};
use crate::engines::dir_btree::object;
use crate::memory::Cell;
use crate::simd::{
    CODED_KEYS, CODED_VALUES, CodedLines, LINE_WORDS, SharedLine, code_rank_by_thirds, leaf_code,
};

/// Tables over leading bits, and trees of two levels below them.
#[derive(Debug)]
pub(crate) struct DirBtreeByte<K> {
    /// Tables, lines and objects. The first lines have the next hop of each code, 0 for no route, or [`BELOW`] for codes that are
    /// none. Leaves have codes.
    pub(super) trees: DirBtree<K>,
}

/// The code of objects.
pub(super) const OBJECT: u32 = CODED_VALUES as u32 - 1;

/// In the word of a code: set unless it is a next hop.
pub(super) const BELOW: u32 = 1 << 31;

/// Intervals of a leaf.
pub(super) const LEAF_INTERVALS: usize = CODED_KEYS + 1;

/// The base of a leaf's objects in the last word, above the last code.
pub(super) const BASE_AT: u32 = 8;

/// Most units of objects: 128 MiB.
pub(super) const OBJECT_UNITS: u32 = 1 << (32 - BASE_AT);

/// Codes of next hops, and of objects, which are found by counting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Codes<'a>(pub(super) CodedLines<'a>);

/// Returns the first unit of a leaf's objects.
fn base(leaf: &SharedLine) -> u32 {
    leaf[leaf.len() - 1].read() >> BASE_AT
}

/// Counts the codes of objects before an interval of a leaf.
fn objects_before(leaf: &SharedLine, interval: u32) -> u32 {
    let words = leaf[CODED_KEYS..].iter().rev();
    let codes = words.fold(0, |codes, word| codes << 32 | u128::from(word.read()));
    let before = codes & ((1 << (8 * interval)) - 1);
    // In each byte, the sum carries into the highest bit if the seven others are set.
    let (ones, sevens) = (u128::MAX / 0xff, u128::MAX / 0xff * 0x7f);
    (((before & sevens) + ones) & before & !sevens).count_ones()
}

impl LeafForm for Codes<'_> {
    const KEYS: usize = CODED_KEYS;
    const HEAD: u32 = (CODED_VALUES / LINE_WORDS) as u32;
    const BELOW: u32 = BELOW;

    #[inline(always)]
    fn at(&self, place: u32) -> &SharedLine {
        self.0.at(place)
    }

    fn near(self, leaf: &SharedLine, _value: u32) -> usize {
        base(leaf) as usize
    }

    fn object(self, objects: &[AtomicU32], leaf: &SharedLine, _value: u32, window: u32) -> usize {
        // The objects of the intervals before are passed.
        let before = objects_before(leaf, code_rank_by_thirds(leaf, window));
        (0..before).fold(base(leaf) as usize, |unit, _| unit + object::units(objects, unit))
    }

    fn values(self, leaf: &SharedLine) -> impl Iterator<Item = u32> {
        (0..LEAF_INTERVALS).map(|interval| leaf_code(leaf, interval))
    }

    fn objects(self, objects: &[AtomicU32], leaf: &SharedLine, count: usize) -> Option<Vec<u32>> {
        let mut next = base(leaf) as usize;
        let mut units = Vec::new();
        for code in self.values(leaf).take(count) {
            if code == OBJECT {
                // An object that is too large is refused, so that no place after it counts.
                units.push(next as u32);
                // A unit that is not there is found where the object is looked at.
                let is_there = objects.len() / OBJECT_WORDS > next;
                next += if is_there { object::units(objects, next) } else { 1 };
            } else if self.0.value(code) & BELOW != 0 {
                return None;
            }
        }
        Some(units)
    }
}
