//! The search in portable code: one key, or eight side by side.

use core::hint::select_unpredictable;

use crate::fib::parts::lanes;
use crate::net::{Ipv4Key, NextHop};
use crate::simd::LANES;

use super::layout::{CHILDREN, Node, ROOT, RangeBtree, RangeEncoding, TreeLayout, value};

impl<K: Ipv4Key> RangeBtree<K> {
    /// Looks up one key.
    #[inline]
    pub(super) fn one_portable(&self, key: K) -> Option<NextHop> {
        let mut results = [None];
        self.groups::<1>(&[key], &mut results);
        results[0]
    }

    /// Looks up a batch, [`LANES`] keys at a time.
    #[inline]
    pub(super) fn batch(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        let whole = keys.len() - keys.len() % LANES;
        self.groups::<LANES>(&keys[..whole], &mut results[..whole]);
        self.groups::<1>(&keys[whole..], &mut results[whole..]);
    }

    /// Looks up keys in groups of `COUNT`. All searches of a group run in step, because each takes the same number of
    /// steps.
    #[inline(always)]
    fn groups<const COUNT: usize>(&self, keys: &[K], results: &mut [Option<NextHop>]) {
        let nodes = &self.nodes[..];
        match &self.form {
            RangeEncoding::Few { nodes: 2 } => {
                each::<K, COUNT>(keys, results, |keys| few::<COUNT, 16>(nodes, keys));
            }
            RangeEncoding::Few { .. } => {
                each::<K, COUNT>(keys, results, |keys| few::<COUNT, 32>(nodes, keys));
            }
            RangeEncoding::Tree(tree) => match tree.width {
                0 => each::<K, COUNT>(keys, results, |keys| walk::<COUNT, 0>(nodes, tree, keys)),
                1 => each::<K, COUNT>(keys, results, |keys| walk::<COUNT, 1>(nodes, tree, keys)),
                _ => each::<K, COUNT>(keys, results, |keys| walk::<COUNT, 2>(nodes, tree, keys)),
            },
        }
    }
}

/// Calls `search` for each group of keys.
#[inline(always)]
fn each<K: Ipv4Key, const COUNT: usize>(
    keys: &[K],
    results: &mut [Option<NextHop>],
    search: impl Fn(&[u32; COUNT]) -> [u32; COUNT],
) {
    let groups = keys.as_chunks::<COUNT>().0.iter().zip(results.as_chunks_mut::<COUNT>().0);
    for (keys, results) in groups {
        *results = search(&keys.map(lanes::aligned)).map(NextHop::new);
    }
}

/// Returns the next hop of each key among at most `RANGES` ranges.
#[inline(always)]
fn few<const COUNT: usize, const RANGES: usize>(nodes: &[Node], keys: &[u32; COUNT]) -> [u32; COUNT] {
    let (lasts, values) = nodes.as_flattened().split_at(RANGES);
    let mut at = [0; COUNT];
    halve(lasts, 0, &mut at, keys, RANGES / 2);
    at.map(|at| values[at])
}

/// Returns the next hop of each key in a tree.
#[inline(always)]
fn walk<const COUNT: usize, const WIDTH: u32>(
    nodes: &[Node],
    tree: &TreeLayout,
    keys: &[u32; COUNT],
) -> [u32; COUNT] {
    let words = nodes.as_flattened();
    let mut at = [0; COUNT];
    halve(words, 0, &mut at, keys, ROOT * LANES / 2);
    let mut first = ROOT;
    for level in 0..tree.levels {
        // From the number of a node within its level to that of its first child.
        at.iter_mut().for_each(|at| *at *= CHILDREN);
        halve(words, first * LANES, &mut at, keys, CHILDREN / 2);
        first = tree.starts[level + 1] as usize;
    }
    core::array::from_fn(|lane| {
        let leaf = &nodes[first + at[lane]];
        value(leaf, WIDTH, rank::<WIDTH>(leaf, keys[lane]))
    })
}

/// Advances each search past the last addresses below its key. There are twice `half` less one of them, from `first` plus the
/// place of the search on.
#[inline(always)]
fn halve<const COUNT: usize>(
    lasts: &[u32],
    first: usize,
    at: &mut [usize; COUNT],
    keys: &[u32; COUNT],
    mut half: usize,
) {
    while half > 0 {
        for (at, key) in at.iter_mut().zip(keys) {
            // Not a branch, because it would be mispredicted every other time.
            *at = select_unpredictable(lasts[first + *at + half - 1] < *key, *at + half, *at);
        }
        half /= 2;
    }
}

/// Returns the number of last addresses of a leaf below the key. The third address selects the ones that are left to compare.
#[inline(always)]
fn rank<const WIDTH: u32>(leaf: &Node, key: u32) -> usize {
    let is_below = |at: usize| usize::from(leaf[at] < key);
    if WIDTH == 2 {
        return is_below(0) + is_below(1) + is_below(2);
    }
    let third = 3 * is_below(2);
    // If the third address is not below the key, the sixth is not either, so it can be counted in both cases.
    third + is_below(third) + is_below(third + 1) + if WIDTH == 0 { is_below(5) } else { 0 }
}
