//! One key, and a block of keys in stages.

use crate::fib::parts::lanes::{self, BLOCK, Noted};
use crate::fib::parts::upper;
use crate::fib::{CheckError, Fib};
use crate::memory::{self, Memory};
use crate::net::{Key, NextHop};
use crate::simd::{self, LANES, NODE_WORDS as WORDS, Nodes, Present, Walks, half_of, put};

use super::kernel;
use super::layout::{
    Forest, Line, NARROW, ROOTS_BITS, TREE_LINES, WIDE, below_bit, block_bit, cut, head, slot, window,
};

/// A table as kernels see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) direct_bits: u32,
    pub(super) first: u32,
    pub(super) direct: &'a [u32],
    pub(super) slots: &'a [u32],
    pub(super) nodes: Nodes<'a, Line>,
}

/// What the stages of a block leave to one another.
pub(super) struct Scratch {
    /// The first upper bits.
    pub(super) heads: [[u32; LANES]; BLOCK],
    /// The last upper bits.
    pub(super) windows: [[u32; LANES]; BLOCK],
    /// Roots of the trees of noted lanes.
    pub(super) roots: [[u32; LANES]; BLOCK],
    /// Lanes whose trees have roots.
    pub(super) rooted: Noted,
    /// Lanes whose values lead below.
    pub(super) below: Noted,
}

impl Scratch {
    #[inline]
    fn new() -> Self {
        let empty = [[0; LANES]; BLOCK];
        Self { heads: empty, windows: empty, roots: empty, rooted: Noted::new(), below: Noted::new() }
    }
}

/// How many of the first `COUNT` words of a line lie strictly below `key`, which ascend: two or three say which third
/// of some to look at, two more say the rest. No branch, and at most three loads deep.
#[inline(always)]
pub(super) fn rank_first<const COUNT: u32>(line: &[u32; WORDS], key: u32) -> u32 {
    let below = |at: u32| u32::from(line[at as usize % WORDS] < key);
    let first = if COUNT == WORDS as u32 { 8 * below(7) } else { 0 };
    let mut third = 3 * (below(first + 2) + below(first + 5));
    if COUNT == NARROW {
        third += 3 * below(8);
    }
    // Behind the last key stands none.
    let second =
        if COUNT == NARROW { below(third + 1) & u32::from(third < 9) } else { below(first + third + 1) };
    let second = if COUNT == WIDE { second & u32::from(third < 6) } else { second };
    first + third + below(first + third) + second
}

/// The value of a leaf behind so many of its keys.
#[inline(always)]
fn value<const LEAF_KEYS: u32>(line: &[u32; WORDS], rank: u32) -> u32 {
    if LEAF_KEYS == NARROW {
        half_of(line, (2 * LEAF_KEYS + rank) as usize % (2 * WORDS)).into()
    } else {
        line[(LEAF_KEYS + rank) as usize % WORDS]
    }
}

impl View<'_> {
    /// The value for an upper part. `inner` and `leaf` say how many keys of a node lie strictly below a window.
    #[inline(always)]
    pub(super) fn one<K: Key, const LEAF_KEYS: u32>(
        self,
        upper: u64,
        inner: impl Fn(&[u32; WORDS], u32) -> u32,
        leaf: impl Fn(&[u32; WORDS], u32) -> u32,
    ) -> u32 {
        let index = (head::<K>(upper) >> (32 - self.direct_bits)).wrapping_sub(self.first);
        let window = window(upper);
        let tree = self.slots[slot(self.direct[(index as usize).min(self.direct.len() - 1)], window)];
        let mut at = tree >> ROOTS_BITS;
        for roots in (0..=tree & ((1 << ROOTS_BITS) - 1)).rev() {
            at = child(self.nodes, at, window, roots, &inner);
        }
        let line = self.nodes.at(at);
        value::<LEAF_KEYS>(line, leaf(line, window))
    }
}

/// The child of a node that so many levels of inner nodes follow.
#[inline(always)]
fn child(
    nodes: Nodes<'_, Line>,
    at: u32,
    window: u32,
    levels: u32,
    inner: impl Fn(&[u32; WORDS], u32) -> u32,
) -> u32 {
    at + 1 + inner(nodes.at(at), window) * TREE_LINES[levels as usize % TREE_LINES.len()]
}

/// From trees to values: the stages that search nodes. No key waits for another, and no branch depends on one but for
/// the number of roots.
#[inline(always)]
pub(super) fn descend<const LEAF_KEYS: u32>(
    mut walks: Walks<'_, Line>,
    scratch: &mut Scratch,
    inner: impl Fn(&[u32; WORDS], u32) -> u32,
    leaf: impl Fn(&[u32; WORDS], u32) -> u32,
) {
    let Scratch { windows, roots, rooted, .. } = scratch;
    let (windows, roots) = (windows.as_flattened(), roots.as_flattened_mut());
    // Root by root: those who have more than one are few.
    let mut count = rooted.lanes().len();
    while count > 0 {
        let mut left = 0;
        for at in 0..count {
            let lane = usize::from(rooted.lanes()[at]);
            walks.step(lane, |nodes, place| child(nodes, place, windows[lane], roots[lane], &inner));
            roots[lane] -= 1;
            left = rooted.lane_behind(left, lane, roots[lane] > 0);
        }
        count = left;
    }
    walks.descend(&scratch.windows, inner, |line, window| value::<LEAF_KEYS>(line, leaf(line, window)));
}

/// A block of keys without vectors; lanes whose values lead below are noted.
pub(super) fn block<K: Key, const LEAF_KEYS: u32>(
    view: View<'_>,
    keys: &[[K; LANES]],
    found: &mut [[u32; LANES]],
    scratch: &mut Scratch,
) {
    let keys = keys.as_flattened();
    let windows = scratch.windows.as_flattened_mut();
    let last = view.direct.len() - 1;
    for ((&key, window_of), place) in keys.iter().zip(&mut *windows).zip(found.as_flattened_mut()) {
        let upper = upper::upper(key, cut::<K>().upper_bits);
        let index = (head::<K>(upper) >> (32 - view.direct_bits)).wrapping_sub(view.first);
        let window = window(upper);
        let entry = view.direct[(index as usize).min(last)];
        put(window_of, window);
        put(place, slot(entry, window) as u32);
    }
    let mut noted = 0;
    let roots = scratch.roots.as_flattened_mut();
    for (lane, (place, roots)) in found.as_flattened_mut().iter_mut().zip(roots).enumerate() {
        let tree = view.slots[*place as usize];
        *roots = tree & ((1 << ROOTS_BITS) - 1);
        // Without a branch: one lane in eight has some.
        noted = scratch.rooted.lane_behind(noted, lane, *roots > 0);
        put(place, tree >> ROOTS_BITS);
    }
    scratch.rooted.noted(noted);
    let mut walks = Walks::new(view.nodes, found);
    for _ in 0..keys.len() / LANES {
        let places = *walks.lanes().before();
        walks.lanes().push(places);
    }
    descend::<LEAF_KEYS>(walks, scratch, rank_first::<{ WORDS as u32 }>, rank_first::<LEAF_KEYS>);
    let found = found.as_flattened();
    if found.iter().fold(0, |all, &value| all | value) & below_bit(LEAF_KEYS) != 0 {
        let below = |lane: &usize| found[*lane] & below_bit(LEAF_KEYS) != 0;
        (0..found.len()).filter(below).for_each(|lane| scratch.below.lane(lane));
    }
}

impl<K: Key> Forest<K> {
    #[inline]
    fn view(&self) -> View<'_> {
        let Self { direct_bits, first, .. } = *self;
        View { direct_bits, first, direct: &self.direct, slots: &self.slots, nodes: Nodes::new(&self.lines) }
    }

    /// What a value says: a next hop, or what its block has for the key.
    #[inline(always)]
    fn answer<const LEAF_KEYS: u32>(&self, value: u32, key: K) -> u32 {
        if value & const { below_bit(LEAF_KEYS) } == 0 {
            value
        } else {
            self.find_below::<LEAF_KEYS>(value, key)
        }
    }

    /// What stands below a value for the key.
    fn find_below<const LEAF_KEYS: u32>(&self, value: u32, key: K) -> u32 {
        let lower = upper::lower(key, cut::<K>().upper_bits);
        let place = (value & const { block_bit(LEAF_KEYS) - 1 }) as usize;
        if value & const { block_bit(LEAF_KEYS) } == 0 {
            self.records.find(place, lower)
        } else {
            self.blocks.find(place, lower)
        }
    }

    /// Asks for the record that a value leads to, or for what is at that place.
    #[inline(always)]
    fn fetch_record<const LEAF_KEYS: u32>(&self, value: u32) {
        let place = (value & const { block_bit(LEAF_KEYS) - 1 }) as usize;
        simd::fetch(self.records.words.get(place..).and_then(|words| words.get(..3)).unwrap_or(&[]));
    }

    fn one<const LEAF_KEYS: u32>(&self, isa: Present, key: K) -> u32 {
        let upper = upper::upper(key, cut::<K>().upper_bits);
        self.answer::<LEAF_KEYS>(kernel::one::<K, LEAF_KEYS>(isa, self.view(), upper), key)
    }

    fn batch<const LEAF_KEYS: u32>(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        if keys.len() < LANES {
            for (&key, result) in keys.iter().zip(results) {
                *result = NextHop::new(self.one::<LEAF_KEYS>(isa, key));
            }
            return;
        }
        let view = self.view();
        let mut scratch = Scratch::new();
        let mut done = 0;
        lanes::in_blocks(keys, results, |block, found| {
            // What comes next is asked for while this is worked through: stages have no loads to spare at their start.
            done += BLOCK * LANES;
            let next = keys.len().min(done)..keys.len().min(done + BLOCK * LANES);
            simd::fetch(&keys[next]);
            scratch.rooted.clear();
            scratch.below.clear();
            kernel::block::<K, LEAF_KEYS>(isa, view, block, found, &mut scratch);
            let (block, found) = (block.as_flattened(), found.as_flattened_mut());
            let below = || scratch.below.lanes().iter().map(|&lane| usize::from(lane));
            below().for_each(|lane| self.fetch_record::<LEAF_KEYS>(found[lane]));
            below().for_each(|lane| found[lane] = self.find_below::<LEAF_KEYS>(found[lane], block[lane]));
        });
    }
}

impl<K: Key> Fib<K> for Forest<K> {
    fn lookup(&self, key: K) -> Option<NextHop> {
        let isa = simd::chosen();
        NextHop::new(if self.leaf_keys == NARROW {
            self.one::<NARROW>(isa, key)
        } else {
            self.one::<WIDE>(isa, key)
        })
    }

    fn lookup_batch_on(&self, isa: Present, keys: &[K], results: &mut [Option<NextHop>]) {
        assert_eq!(keys.len(), results.len(), "a batch needs one result a key");
        if self.leaf_keys == NARROW {
            self.batch::<NARROW>(isa, keys, results);
        } else {
            self.batch::<WIDE>(isa, keys, results);
        }
    }

    fn memory(&self) -> Memory {
        memory::of(&self.direct)
            + memory::of(&self.slots)
            + memory::of(&self.lines)
            + memory::of(&self.records.words)
            + self.blocks.memory()
    }

    fn check(&self) -> Result<(), CheckError> {
        self.walk()
    }
}
